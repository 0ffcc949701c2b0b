"""The action log: written, read, verified, and the conversation rebuilt from it."""

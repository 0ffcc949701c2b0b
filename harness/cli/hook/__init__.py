"""hook: `harness hook AGENT` and `harness exec`, which an agent starts for each call, and the commands that a person types."""

"""The prompt: a person, a model, and the turns of their conversation."""

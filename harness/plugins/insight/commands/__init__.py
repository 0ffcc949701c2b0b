"""The commands of `harness audit` and `harness policy` that count, export and suggest. Each module is one command."""

"""The command line: the only layer that knows the terminal, the environment and the clock."""

"""The settings of a person: flags, environment and their file."""

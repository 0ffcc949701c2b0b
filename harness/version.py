"""The version, and nothing else: read by the build, the log and `--version`."""

__version__ = "0.1.0"

"""The four tools."""

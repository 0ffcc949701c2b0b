"""A plugin of harness: see docs/plugins.md."""

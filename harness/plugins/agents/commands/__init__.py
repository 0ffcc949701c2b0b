"""`harness hook`, `exec` and `approve`. An agent starts the first two for each of its calls, so they start quickly."""

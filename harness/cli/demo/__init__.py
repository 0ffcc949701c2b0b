"""`harness demo` and the first run."""

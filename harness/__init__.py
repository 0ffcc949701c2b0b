"""harness: a coding harness for tool-using language models, behind a permission gate."""

"""The features: each folder is one, with its engine, its commands and its words.

No module outside imports one of these folders, but for the table of what ships. They do not import one another, but for the
list in tests/test_imports.py.
"""

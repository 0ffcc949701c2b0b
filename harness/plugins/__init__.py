"""The features: each folder is one, with its engine, its commands and its words.

The rooms outside do not import these folders, and the folders do not import one another, but for the two lists in
tests/test_imports.py.
"""

"""The features. Each folder is one feature, with its engine, its commands and its texts.

No package outside imports these folders, and the folders do not import one another. The two lists in
tests/test_imports.py are the exceptions.
"""

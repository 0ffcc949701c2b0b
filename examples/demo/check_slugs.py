"""The test of slugs.py: says what is wrong, and exits with 1."""

import sys

from slugs import slugify

WANTED = {"Hello World": "hello-world", "  Hello   World ": "hello-world"}

for title, wanted in WANTED.items():
    if slugify(title) != wanted:
        sys.exit(f"slugify({title!r}) gives {slugify(title)!r}, not {wanted!r}")
print(f"{len(WANTED)} titles are right")

"""Words of commands that no model covers, taken for paths: what may be the name of a file, or hold one; pure.

Meant to find too much: a word that is no path costs a question, a path that is missed costs a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MAX_CLUSTER_LETTERS = 24
"""Of letters and digits behind a single dash; behind each of them the name of a file may begin."""


def likely_paths(words: Sequence[str]) -> Iterator[str]:
    """Yield what may be a path among the operands of a command."""
    for word in path_words(words, options_too=False):
        if word[0] == "~":
            yield f"./{word}"  # it was quoted, so bash leaves it as it is; the program may still take it as the home folder
        yield word


def cluster(word: str) -> str:
    """Return the dash and the letters and digits that `word` begins with, or nothing: `-nf` of `-nf.env`."""
    match = re.match("-[A-Za-z0-9]*", word)
    return match.group() if match else ""


def path_words(words: Sequence[str], *, options_too: bool) -> Iterator[str]:
    """Yield what may be a path among operands, once: each word, and what may be the name of a file inside a word."""
    seen = {""}
    for word in _all_path_words(words, options_too=options_too):
        if word not in seen:
            seen.add(word)
            yield word


def _all_path_words(words: Sequence[str], *, options_too: bool) -> Iterator[str]:
    operands_only = False
    for word in words:
        if options_too or operands_only or not word.startswith("-"):
            yield word
        operands_only = operands_only or word == "--"
    for word in words:
        yield from _inner_paths(word, whole_trees=options_too)


def _inner_paths(word: str, *, whole_trees: bool) -> Iterator[str]:
    """Yield what stands behind `=`, `@` (`curl -d @.env`), a colon (`git show HEAD:.env`) or the letters of a short option.

    `whole_trees`: also the folder of which a pattern takes everything (`src/*`).
    """
    if "=" in word:
        yield word.partition("=")[2].removeprefix("@")
        yield word.rpartition("=")[2]
    if ":" in word and not (behind := word.rpartition(":")[2]).startswith("/"):
        yield behind
    if word.startswith("@"):
        yield word[1:]
    for start in range(2, min(len(cluster(word)), MAX_CLUSTER_LETTERS) + 1):
        yield word[start:].removeprefix("=")
    if whole_trees and word.endswith(("/*", "/.*", "/**")):
        yield word.rpartition("/")[0] or "/"

"""A tokenisation that always exists: what could be words in text that was not understood; for strict rules only, pure."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[\s;&|<>(){}`,]+")
_QUOTES = str.maketrans("", "", "'\"\\")
_EXPANSIONS = (("${IFS}", " "), ("$IFS", " "), ("$HOME", "~"), ("${HOME}", "~"), ("$PWD", "."), ("${PWD}", "."))


def loose_words(text: str) -> tuple[str, ...]:
    """Return the words of `text` with quotes and backslashes dropped, split at blanks and at every operator.

    Words inside quotes come out one by one, since they may be a command for another shell. Meant to find too much:
    a strict rule that matches here by mistake costs a question, one that misses costs more.
    """
    text = text.replace("\\\n", "")
    for expansion, plain in _EXPANSIONS:
        text = text.replace(expansion, plain)
    return tuple(word.lstrip("$") for word in _SEPARATORS.split(text.translate(_QUOTES)) if word.strip("$"))

"""A tokenisation that always exists: what could be commands in text that was not understood; for strict rules, pure."""

from __future__ import annotations

import re

_REDIRECTIONS = re.compile(r"[<>]&|&>|>\|")
_COMMAND_ENDS = re.compile(r"[;&|\n()`]+")
_WORD_ENDS = re.compile(r"[\s<>{},]+")
_QUOTES = str.maketrans("", "", "'\"\\")
_EXPANSIONS = (("${IFS}", " "), ("$IFS", " "), ("${HOME}", "~"), ("$HOME", "~"), ("${PWD}", "."), ("$PWD", "."))


def loose_commands(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of `text` as words, quotes and backslashes dropped, split at blanks and at every operator.

    Quoted text is split like the rest, since it may be a command for another shell. Meant to find too much: a strict
    rule that matches here by mistake costs a question, one that misses costs more.
    """
    text = text.replace("\\\n", "")
    for expansion, plain in _EXPANSIONS:
        text = text.replace(expansion, plain)
    text = _REDIRECTIONS.sub(" ", text.translate(_QUOTES))
    commands = (
        tuple(word.lstrip("$") for word in _WORD_ENDS.split(part) if word.strip("$"))
        for part in _COMMAND_ENDS.split(text)
    )
    return tuple(command for command in commands if command)

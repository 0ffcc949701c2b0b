"""Fill the placeholders in the words of a declared script. No shell parses the words. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from harness.actions import JsonValue
from harness.errors import ToolError
from harness.gate.tool import Arguments
from harness.text.visible import visible_line
from harness.tools.script_declaration import PLACEHOLDER, placeholders

MAX_WORD_BYTES = 120_000
"""Maximum size of a word. Linux allows 131,071 bytes per argument (execve(2), MAX_ARG_STRLEN)."""
MAX_BYTES = 1_000_000
"""Maximum size of all words together, in bytes."""


def command_words(argv: Sequence[str], arguments: Arguments) -> tuple[str, ...]:
    """Return the command line, with its placeholders filled.

    Raises ToolError if a value would be read as an option, if a word contains a NUL, or if the line is too long. A
    value would be read as an option if its word begins with `-` only after filling, unless it follows `--` with only
    values in between.
    """
    words: list[str] = []
    only_operands = False
    for word in argv:
        values = list(filled(word, arguments))
        if not placeholders(word):
            only_operands = word == "--"
        elif not word.startswith("-") and not (only_operands and PLACEHOLDER.fullmatch(word)):
            only_operands = False
            for value in values:
                if value.startswith("-"):
                    raise ToolError(
                        f"{visible_line(value, 100)} begins with `-`, and would be read as an option, which no argument of "
                        "this tool may be. Write a file as ./-name."
                    )
        words += values
    sizes = [len(word.encode("utf-8", "surrogatepass")) for word in words]
    if max(sizes) > MAX_WORD_BYTES or sum(sizes) > MAX_BYTES:
        raise ToolError(f"The arguments are too long: a word may have {MAX_WORD_BYTES:,} bytes, and all {MAX_BYTES:,}.")
    if any("\0" in word for word in words):
        raise ToolError("An argument contains a NUL character.")
    return tuple(words)


def filled(word: str, arguments: Arguments) -> Iterator[str]:
    """Yield the word with its placeholders filled: no word if an argument is missing, several for a list."""
    names = placeholders(word)
    if any(name not in arguments for name in names):
        return
    whole_match = PLACEHOLDER.fullmatch(word)
    if whole_match is not None and isinstance(values := arguments[whole_match[1]], list):
        yield from map(_text, values)
    else:
        yield PLACEHOLDER.sub(lambda match: _text(arguments[match[1]]), word)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""Parses TOML, and finds the line of each key, which tomllib does not provide."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from harness.regex import regex

_HEADER = regex(r"\s*(\[\[?)\s*([^\]]*?)\s*\]\]?")
_KEY = regex(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*[.=]""")
_STRING_OR_MARK = regex(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]', re.DOTALL
)


def read_toml(data: bytes) -> tuple[str, dict[str, Any]]:
    """Return the text and the table of `data`, TOML in UTF-8. Raises ValueError if it is not UTF-8 or not TOML."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: byte {error.start}") from None
    try:
        return text, tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a plain ValueError comes from a number with thousands of digits
        raise ValueError(f"is not TOML: {error}") from None


def key_lines(text: str) -> dict[tuple[str, int, str], int]:
    """Return the line (from 1) of every key, by (table, index, key). The key "" is the table's header.

    A key that occurs several times (`[[rule]]`, or `tools` in `tools.bash` and `tools.default`) has the line of its first
    use.

    `text` must be valid TOML.

    `index` counts the elements of an array of tables from 0. It is 0 for plain tables and for the top level, which is
    the table "".
    """
    lines: dict[tuple[str, int, str], int] = {("", 0, ""): 1}
    counts: dict[str, int] = {}
    table, index = "", 0
    for number, line in _statement_lines(text):
        header = _HEADER.match(line)
        if header:
            table = header.group(2).strip("\"'")
            index = counts.get(table, -1) + 1 if header.group(1) == "[[" else 0
            counts[table] = index
            lines.setdefault((table, index, ""), number)
            parent, _, key = table.rpartition(".")  # [a.b] is the key b of the table a, [a] is a key of the top
            lines.setdefault((parent, counts.get(parent, 0), key), number)
            continue
        key = _KEY.match(line)
        if key:
            lines.setdefault((table, index, key.group(1).strip("\"'")), number)
    return lines


def _statement_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of its first line. A statement may span lines (arrays, long strings)."""
    depth = 0
    start = 0
    number = 1
    statement_at = 1
    for mark in _STRING_OR_MARK.finditer(text):
        value = mark.group()
        if value in "[{":
            depth += 1
        elif value in "]}":
            depth -= 1
        elif value == "\n":
            if depth <= 0:
                yield statement_at, text[start : mark.start()]
                start, statement_at = mark.end(), number + 1
            number += 1
        else:
            number += value.count("\n")
    yield statement_at, text[start:]

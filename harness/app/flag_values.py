"""What stands behind a flag, read and refused: each function takes a text, and raises ArgumentTypeError for a wrong one."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

from harness.tool_kinds import SERVER_NAME


def server_name(text: str) -> str:
    """Return the name of an MCP server, of which names of tools can be made."""
    if not re.fullmatch(SERVER_NAME, text):
        raise ArgumentTypeError(
            f"{text!r} is no name of a server: up to 32 of A-Z, a-z, 0-9, - and _, no _ at an end, no two in a row"
        )
    return text


def count(text: str) -> int:
    """Return a whole number, 0 too."""
    return 0 if text == "0" else whole(text)


def filled(text: str) -> str:
    """Refuse an empty value: a variable of the shell that is not set must not count as a flag that was not given."""
    if not text.strip():
        raise ArgumentTypeError("it is empty")
    return text


def whole(text: str) -> int:
    """Return a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def number(text: str) -> float:
    """Return a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def sha256(text: str) -> str:
    """Return a digest as it is written everywhere here: 64 hexadecimal digits, small ones."""
    digest = text.strip().lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ArgumentTypeError(f"{text!r} is no SHA-256: 64 hexadecimal digits are wanted")
    return digest


def report(text: str) -> str:
    """Return FORM:FILE; which forms there are is checked where they are made."""
    form, colon, file = text.partition(":")
    if not (form.strip() and colon and file.strip()):
        raise ArgumentTypeError(f"{text!r} is not FORM:FILE, as in md:report.md")
    return text


def shard(text: str) -> tuple[int, int]:
    """Return which part of how many: of `2/8` 2 and 8."""
    part, _, parts = text.partition("/")
    one, all_of_them = whole(part), whole(parts)
    if one > all_of_them:
        raise ArgumentTypeError(f"{text!r}: there is no part {one} of {all_of_them}")
    return one, all_of_them

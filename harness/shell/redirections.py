"""Redirections: how one is written."""

from __future__ import annotations

import re

from harness.shell.cursor import Cursor
from harness.shell.syntax import Redirection
from harness.shell.words import WordReader, check_no_array_element

_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])")
_OPERATOR = re.compile(r"&>>|&>|<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_DUPLICATED = re.compile(r"-|[A-Za-z0-9_./][A-Za-z0-9_./,:=@%+-]*")


def read_redirection(cursor: Cursor, words: WordReader, char: str) -> Redirection | None:
    """Read the redirection that begins here with `char`, or return None if there is none."""
    start = cursor.position
    descriptor = None
    if char.isdecimal():
        match = _DESCRIPTOR.match(cursor.text, start)
        if match is None:
            return None
        if len(match.group()) > 2:
            raise cursor.stop("a redirection of a descriptor above 99")
        descriptor = int(match.group())
        cursor.position = match.end()
    elif char not in "<>&":
        return None
    if cursor.text[cursor.position] in "<>" and cursor.text[cursor.position + 1] == "(":
        if descriptor is not None:
            raise cursor.stop("a process substitution inside a word")
        return None
    match = _OPERATOR.match(cursor.text, cursor.position)
    if match is None:
        return None
    operator = match.group()
    cursor.position = match.end()
    if operator in ("<<", "<<-"):
        target = cursor.here_document(strip=operator == "<<-")
        operator = "<<"
    else:
        cursor.skip()
        target = words.word()
        check_no_array_element(cursor, target)
        # bash 5.2 expands this target twice (`>&'$(id)'` runs id), and takes the dash of `>&-x` for a word of its own.
        if operator in (">&", "<&") and not (target.plain and _DUPLICATED.fullmatch(target.constant or "")):
            raise cursor.stop(f"a target of {operator} that is more than a plain word", target.start)
    return Redirection(operator=operator, descriptor=descriptor, target=target, start=start, end=cursor.end)

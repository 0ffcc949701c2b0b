"""Redirections: `read_redirection` parses one, `apply_redirections` finds the files that it opens.

The parser calls the first and puts its result into the tree. The reader of the line calls the second for each
command: each file that a redirection opens becomes a facet, or a path of the command that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, PathAccess
from harness.programs.program import Unknown
from harness.regex import regex
from harness.shell.command_line import CommandLine
from harness.shell.cursor import Cursor
from harness.shell.expansion import is_pattern
from harness.shell.shell_state import ShellState, StopReading
from harness.shell.syntax import Redirection
from harness.shell.words import WordReader, check_no_array_element

_DESCRIPTOR = regex(r"[0-9]+(?=[<>])")
_OPERATOR = regex(r"&>>|&>|<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_PLAIN_TARGET = regex(r"-|[A-Za-z0-9_./][A-Za-z0-9_./,:=@%+-]*")


def read_redirection(cursor: Cursor, words: WordReader, char: str) -> Redirection | None:
    """Read the redirection (`2>> file`, `<<EOF`) that starts here with `char`. Return `None` if there is none."""
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
        # bash 5.2 expands this target twice: `>&'$(id)'` runs id. In `>&-x`, only the dash is the target; x is the next word.
        if operator in (">&", "<&") and not (target.plain and _PLAIN_TARGET.fullmatch(target.constant or "")):
            raise cursor.stop(f"a target of {operator} that is more than a plain word", target.start)
    return Redirection(operator=operator, descriptor=descriptor, target=target, start=start, end=cursor.end)


_ACCESS = {
    "<": Access.READ,
    ">": Access.WRITE,
    ">>": Access.WRITE,
    ">|": Access.WRITE,
    "&>": Access.WRITE,
    "&>>": Access.WRITE,
    ">&": Access.WRITE,
    "<>": Access.EITHER,
}
"""Access of each operator to its file. `<&` is missing: it opens no file, and `_check_target` refuses one with a file."""


class Stdin:
    """The input of a command from its redirections: constant text, and files."""

    __slots__ = ("paths", "text")

    def __init__(self, text: str | None = None, paths: tuple[PathAccess, ...] = ()) -> None:
        self.text = text
        self.paths = paths


NO_STDIN = Stdin()


def apply_redirections(
    line: CommandLine,
    redirections: Sequence[Redirection],
    state: ShellState,
    *,
    of_command: bool = False,
) -> Stdin:
    """Add a facet for each file that redirections open, and return the command's redirected input.

    `of_command` says that the redirections belong to a simple command. A file that it reads (`< file`) is then a path of
    the command instead of a facet. Raises StopReading for an unknown target.
    """
    stdin = NO_STDIN
    for each in redirections:
        expander = line.expander(state)
        opens_no_file = each.operator in ("<<", "<<<")
        temporary = None if opens_no_file else expander.temporary(each.target)
        value = temporary or expander.value(each.target)
        # If several redirections replace stdin, the last one counts.
        if each.descriptor in (None, 0) and "<" in each.operator:
            text = opens_no_file and not isinstance(value, Unknown)
            stdin = Stdin(value if text else None, stdin.paths)
        elif each.descriptor == 0:
            stdin = Stdin(None, stdin.paths)
        if opens_no_file or each.copies_descriptor:
            continue
        _check_target(line, each, value, state)
        access = _ACCESS[each.operator]
        for path in line.resolved(value, access, state):
            if access is Access.READ and of_command:
                stdin = Stdin(stdin.text, (*stdin.paths, path))
            else:
                line.add(path)
    return stdin


def _check_target(line: CommandLine, redirection: Redirection, value: str, state: ShellState) -> None:
    """Raise StopReading if the file that a redirection opens is unknown."""
    part = line.text[redirection.start : redirection.end]
    if isinstance(value, Unknown) or redirection.operator == "<&" or is_pattern(redirection.target):
        raise StopReading("a redirection whose target is not plain", part)
    if value.startswith(("/dev/tcp/", "/dev/udp/")):
        raise StopReading("a redirection to the network", part)
    if not state.folders and not value.startswith("/"):
        raise StopReading("a redirection in a folder that is not known", part)

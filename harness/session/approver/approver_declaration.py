"""The table `[approver]` of the user's configuration: the approver outside of the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from harness.record import Record
from harness.text.fields import Fields

SECONDS = 300.0
MOST_SECONDS = 86_400
_ABSOLUTE = ("/", "~/")

_FIELDS = Fields({
    "command?": "list of filled",
    "socket?": "line",
    "seconds?": f"number above 0, at most {MOST_SECONDS}",
    "env?": "list of line",
})  # fmt: skip


class ApproverDeclaration(Record):
    """An approver and its time limit. INVARIANT: exactly one of `command` and `socket` is given."""

    command: tuple[str, ...] = ()
    """A program and its arguments, started for each question."""
    socket: str = ""
    """Path of a Unix socket. Each question opens its own connection."""
    seconds: float = SECONDS
    """Seconds to wait for an answer."""
    env: tuple[str, ...] = ()
    """Names of additional environment variables for the program."""


def declared(table: Mapping[str, object]) -> ApproverDeclaration:
    """Parse a table. Raises ValueError("key: problem").

    INVARIANT: paths are absolute. A relative one would depend on the current folder, where the model may write.
    """
    fields = _FIELDS.read(table)
    if ("command" in fields) == ("socket" in fields):
        raise ValueError("command: give either command or socket")
    if "command" in fields:
        command = fields["command"]
        if not command:
            raise ValueError("command: must name a program")
        if "/" in command[0] and not command[0].startswith(_ABSOLUTE):
            raise ValueError("command: the program is a bare name, found by PATH, or a path that begins with / or ~/")
    elif not fields["socket"].startswith(_ABSOLUTE):
        raise ValueError("socket: must be a path that begins with / or ~/")
    elif "env" in fields:
        raise ValueError("env: goes with command alone")
    return ApproverDeclaration(**{**fields, "seconds": float(fields.get("seconds", SECONDS))})

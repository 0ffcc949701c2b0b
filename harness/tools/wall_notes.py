"""Recognise in a command's output that the walls refused something, so that model and person know why: a guess, and said so."""

from __future__ import annotations

import re

from harness.record import Record
from harness.sandbox.walls import Walls
from harness.visible import visible_line

MAX_PLACES = 8

_REFUSED = re.compile(
    r"Permission denied|Operation not permitted|Read-only file system|EACCES|EPERM|EROFS|PermissionError"
    r"|Invalid cross-device link|EXDEV|cannot create temp file for here-document"
)
_UNREACHABLE = re.compile(
    r"Could not resolve|Temporary failure in name resolution|Name or service not known|Network is unreachable|getaddrinfo"
    r"|ENETUNREACH|EAI_AGAIN|ENOTFOUND|Connection refused|nodename nor servname|unable to (?:access|connect)"
    r"|Failed to (?:connect|establish)"
)


_TERMINAL = re.compile(r"out of pty devices|no more ptys|pseudo-?terminal|/dev/ptmx|openpty|forkpty")
_MEMORY = re.compile(r"Cannot allocate memory|MemoryError|bad_alloc|[Oo]ut of memory|ENOMEM")
_COMPLAINT = re.compile(
    r"^[\w./+-]+: .*(?:: Permission denied|: Operation not permitted|cannot create temp file for here-document.*)$",
    re.MULTILINE,
)
"""As programs write it: a whole line, its own name in front."""


class Held(Record):
    """What a command was held to."""

    walls: Walls
    gaps: tuple[str, ...]
    """What was asked for and is not enforced, a sentence each."""


def wall_notes(output: str, held: Held, *, failed: bool) -> list[str]:
    """Return notes on the walls around a command: their gaps, and what its output shows of them; mostly none.

    That of a command which did not fail as a whole may be any text (`grep -r`): there only a program's own complaint counts.
    """
    notes = [f"[not enforced: {visible_line(gap, 300)}]" for gap in held.gaps[:MAX_PLACES]]
    if not failed and not _COMPLAINT.search(output):
        return notes
    if _REFUSED.search(output):
        notes.append(
            f"[confined: it may write {_places(held.walls)}; a refused write or a hidden file may come from that]"
        )
    if not held.walls.network and (_UNREACHABLE.search(output) or ("socket" in output and _REFUSED.search(output))):
        notes.append("[confined: it has no network; that it could not connect may come from that]")
    if failed and _TERMINAL.search(output):
        notes.append(
            "[confined: it opens no pseudo-terminal while one is in use here; that it got none may come from that]"
        )
    if failed and _MEMORY.search(output):
        notes.append("[limited: a process may have 4 GiB of memory of its own; that it got no more may come from that]")
    return notes


def _places(walls: Walls) -> str:
    places = [*walls.write, *([] if walls.temporary is None else [walls.temporary])]
    shown = ", ".join(visible_line(place, 100) for place in places[:MAX_PLACES])
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    return f"{shown}{more}" if shown else "nothing"

"""What the one line says that is written over: waiting, running, and what the person typed meanwhile; pure."""

from __future__ import annotations

from harness.cli.terminal.cells import cells, ending, fitted
from harness.cli.words import counted

SPINNER, ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
TURNS_A_SECOND = 5
"""Of the spinner, and looks of the ticker: seen to move, and hardly any work."""
CHARACTERS_A_TOKEN = 4
"""An estimate, and marked as one: the server alone knows."""


def spinner(seconds: float, *, ascii_only: bool) -> str:
    """Return the sign of this moment."""
    signs = ASCII_SPINNER if ascii_only else SPINNER
    return signs[int(seconds * TURNS_A_SECOND) % len(signs)]


def elapsed(seconds: float) -> str:
    """Return a time in words: `12 s`, `3 min 05 s`, `1 h 02 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole // 60 % 60:02} min"


def size(count: int) -> str:
    """Return a number of bytes in words, to three digits."""
    if count < 1000:
        return f"{count} B"
    value, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value < 99.95 else f"{value:.0f} {units[0]}"


def thinking(seconds: float, characters: int) -> str:
    """Return how long the model has been at it, and about how many tokens came."""
    tokens = f"  ~{max(1, characters // CHARACTERS_A_TOKEN):,} tokens" if characters else ""
    return f"{'answering' if characters else 'thinking'} {elapsed(seconds)}{tokens}"


def running(tool: str, seconds: float, lines: int, count: int) -> str:
    """Return how long a call has been running, and how much it printed."""
    printed = f"  {counted(lines, 'line')}  {size(count)}" if count else ""
    return f"{tool} {elapsed(seconds)}{printed}"


def composed(width: int, state: str, tail: str, typed: str) -> str:
    """Return one line shorter than `width` cells: what goes on, the end of what waits, and what the person typed.

    What the person typed comes first where there is little room: they look at it.
    """
    room = max(0, width - 1)
    if typed:
        typed = ending(typed, room if not state else max(room // 2, min(room, room - cells(state) - 2)))
        room -= cells(typed) + 2
    if room < 4:
        return typed
    state = fitted(state, room)
    left = room - cells(state) - 2
    if tail and left >= 12:
        state = f"{state}  {ending(tail, left)}" if state else ending(tail, left)
    return f"{state}  {typed}" if state and typed else state or typed

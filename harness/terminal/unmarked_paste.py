"""Pastes that the terminal does not mark: they look like keys, but come together. They send no line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from harness.terminal.escape_sequences import PASTE_BEGINS, PASTE_ENDS
from harness.terminal.keys import ALONE_SECONDS, readable

HAND = 3
"""Maximum number of characters of a hand that come together; a slow connection may deliver them so."""
LONGEST_KEYS = 1_000
"""Length from which a read counts as a piece of a paste, even without a line end."""
MOST_AT_ONCE = 1_000_000
"""Maximum length of a paste that is read as one."""

Text = TypeVar("Text", str, bytes)


def read_at_once(descriptor: int, read: Callable[[], Text]) -> Text:
    """Read the available input. Read on until none follows if a paste of lines begins."""
    came = read()
    if len(came) < LONGEST_KEYS and (len(came) <= HAND + 1 or came.splitlines()[0] == came):
        return came
    while len(came) < MOST_AT_ONCE and readable((descriptor,), ALONE_SECONDS):
        more = read()
        if not more:
            break
        came += more
    return came


def with_marks(units: Sequence[str], ends: str = "\r") -> Iterator[str]:
    """Yield units that were read at once. If they are a paste of lines, its text has the marks of a paste.

    INVARIANT: a key of `ends` is a key only if it was read alone, or last behind at most HAND other units.
    """
    place = next((index for index, unit in enumerate(units) if unit in ends), len(units))
    if place == len(units) or place == len(units) - 1 <= HAND:
        yield from units
        return
    for is_text, run in groupby(units, _is_text):
        if is_text:
            yield f"{PASTE_BEGINS}{''.join(run)}{PASTE_ENDS}"
        else:
            yield from run


def _is_text(unit: str) -> bool:
    return len(unit) == 1 and (unit.isprintable() or unit in "\r\n\t")

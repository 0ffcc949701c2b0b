"""Look: what a terminal can show, and what the person wants of it; asks the stream once and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from harness.record import Record

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import TextIO


class Look(Record):
    """How to draw."""

    colour: bool = False
    ascii: bool = False
    """Whether to draw with ASCII alone: asked for, or the stream's encoding has no more."""
    repaints: bool = False
    """Whether a line may be written over: not with TERM=dumb, not for a screen reader, not where there is no terminal."""


def look_of(
    stream: TextIO, environment: Mapping[str, str], *, ascii_only: bool = False, screen_reader: bool = False
) -> Look:
    """Return how to draw on `stream`: colour unless NO_COLOR is set (https://no-color.org), escapes only on a terminal
    that says that it knows them."""
    capable = stream.isatty() and environment.get("TERM", "") not in ("", "dumb")
    return Look(
        colour=capable and not environment.get("NO_COLOR"),
        ascii=ascii_only or not _has_lines(stream),
        repaints=capable and not screen_reader,
    )


def _has_lines(stream: TextIO) -> bool:
    try:
        "─…".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

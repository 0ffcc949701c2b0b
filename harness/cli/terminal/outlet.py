"""What a stream is for a screen: how large it is, which characters it can hold, how it calls a person; writes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import TextIO

DEFAULT_SIZE = (80, 24)
UNBROKEN = (100_000, 24)
"""Of what is no terminal: whoever reads a file or a pipe wants lines as they are."""


class Notices(Enum):
    """How a person is told that a question waits."""

    BELL = "bell"
    OSC9 = "osc9"
    """A notice of the desktop (iTerm2 and kin: OSC 9), where the terminal knows them."""
    OFF = "off"


def size_of(stream: TextIO) -> tuple[int, int]:
    """Return columns and lines of the terminal behind a stream, asked each time: it may be resized (tty_ioctl(4))."""
    if not stream.isatty():
        return UNBROKEN
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return DEFAULT_SIZE
    return (size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1])


def encodable_for(stream: TextIO) -> Callable[[str], str]:
    """Return what makes of a text one that the stream can hold: an escape that the stream made itself would be wider than
    what was counted."""
    encoding = (stream.encoding or "utf-8").lower()  # a text in memory has none, and holds everything
    if encoding.startswith("utf"):
        return lambda text: text
    return lambda text: text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)

"""Modes of a terminal: keys one at a time, and the way back; reads no key, and knows no meaning of one.

Who sets a mode says when: TCSAFLUSH where what was typed before must not count (a question), TCSANOW and TCSADRAIN where
it must not be lost (typing ahead, a line) (termios(3)).
"""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import Any

PASTES, PASTES_NOT = "\x1b[?2004h", "\x1b[?2004l"
"""Switch bracketed paste on and off (xterm's control sequences): the terminal then says where a paste begins and ends."""

_IFLAG, _LFLAG, _CC = 0, 3, 6
"""Places in what tcgetattr returns."""
_NO_KEY = b"\0" if sys.platform == "linux" else b"\xff"
"""_POSIX_VDISABLE: what no key sends (Linux: termios(3); BSD and macOS: <unistd.h>)."""


class Interrupts(Enum):
    """What Ctrl-C, Ctrl-Z and Ctrl-S do."""

    SIGNALS = "signals"
    """What they do in every program: while a turn runs, the one who reads keys may be a thread without work."""
    KEYS = "keys"
    """They are bytes among the others, in their place, and never lost between two calls: at a question."""


def single_keys(mode: list[Any], interrupts: Interrupts) -> list[Any]:
    """Return `mode` (of tcgetattr, which stays as it is) such that keys come one by one and unseen, and Enter is told from
    Ctrl-J."""
    keys = [*mode[:_CC], list(mode[_CC])]
    keys[_IFLAG] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
    keys[_LFLAG] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    match interrupts:
        case Interrupts.SIGNALS:
            keys[_LFLAG] |= termios.ISIG
            keys[_CC][termios.VQUIT] = _NO_KEY  # Ctrl-\ would end the program and leave the terminal like this
        case Interrupts.KEYS:
            keys[_LFLAG] &= ~termios.ISIG
            keys[_IFLAG] &= ~termios.IXON
    keys[_CC][termios.VMIN], keys[_CC][termios.VTIME] = 1, 0
    return keys


@contextmanager
def kept(descriptor: int) -> Iterator[None]:
    """Leave the terminal as it is now, whatever the block does to it; what was typed meanwhile is kept. Nothing where there
    is no terminal."""
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        yield
        return
    try:
        yield
    finally:
        try:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        except termios.error:
            pass  # it is gone

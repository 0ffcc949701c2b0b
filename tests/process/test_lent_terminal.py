"""A terminal that is lent to a command is given back as it was, whatever goes wrong."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from rows import all_rows

from harness.process.lent_terminal import LentTerminal

pytestmark = pytest.mark.terminal

PLAIN = b"\x1b7\x1b[r\x1b8\x1b(B\x0f\x1b[m\x1b[4l\x1b>"
SECONDS = 10.0
"""No test needs them."""
TOO_MUCH = 1 << 46
"""Bytes that no stack of a thread has."""


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """The two ends of a person's terminal: the emulator's, and the program's."""
    master, slave = os.openpty()
    yield master, slave
    os.close(slave)
    os.close(master)


def test_terminal_is_restored_if_a_thread_cannot_start(ends: tuple[int, int]) -> None:
    before = termios.tcgetattr(ends[1])
    terminal = LentTerminal(ends[1], ends[1], {})
    usual = threading.stack_size(TOO_MUCH)
    try:
        with pytest.raises(OSError, match="thread"):
            terminal.__enter__()
    finally:
        threading.stack_size(usual)
    assert (termios.tcgetattr(ends[1]), terminal.near) == (before, -1)


@pytest.mark.parametrize("name", ["setraw", "start", "join", "_put_back"])
def test_terminal_is_restored_after_an_interrupt(ends: tuple[int, int], name: str) -> None:
    def interrupt(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_name == name and event == "return":
            sys.setprofile(None)
            raise KeyboardInterrupt

    before = termios.tcgetattr(ends[1])
    usual = sys.getprofile()
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), LentTerminal(ends[1], ends[1], {}):
            pass
    finally:
        sys.setprofile(usual)
    assert termios.tcgetattr(ends[1]) == before


@all_rows(
    "wrote, undoing",
    {
        "nothing": ([b"plain\n"], b""),
        "modes, the last first": ([b"\x1b[?1000;1006h\x1b[?25l\n"], b"\x1b[?25h\x1b[?1006l\x1b[?1000l"),
        "a mode that was undone": ([b"\x1b[?2004h\x1b[?2004l\n"], b""),
        "a sequence in two pieces": ([b"\x1b[?20", b"04h\n"], b"\x1b[?2004l"),
        "keys of kitty": ([b"\x1b[>1u\x1b[>5u\n"], b"\x1b[<u\x1b[<u"),
        "and taken back": ([b"\x1b[>1u\x1b[>5u", b"\x1b[<2u\n"], b""),
        "more than there were": ([b"\x1b[<9u\x1b[>1u\n"], b"\x1b[<u"),
        "other keys": ([b"\x1b[>4;2m\n"], b"\x1b[>4m"),
        "and taken back, too": ([b"\x1b[>4;2m\x1b[>4;0m\x1b[>4;1m\x1b[>4m\n"], b""),
        "the shape of the cursor": ([b"\x1b[6 q\n"], b"\x1b[0 q"),
        "and as it was": ([b"\x1b[6 q\x1b[0 q\x1b[2 q\x1b[ q\n"], b""),
    },
)
def test_terminal_modes_set_by_a_command_are_reset(ends: tuple[int, int], wrote: list[bytes], undoing: bytes) -> None:
    """And line drawing is left, which nothing says."""
    with LentTerminal(ends[1], ends[1], {}) as terminal:
        for block in wrote:
            terminal.add(block)
    wanted, shown = b"".join(wrote) + undoing + PLAIN, b""
    while len(shown) < len(wanted) and select.select([ends[0]], [], [], SECONDS)[0]:
        shown += os.read(ends[0], 4096)
    assert shown == wanted

"""A person's terminal, lent to one command: an editor, a pager, whatever asks for keys.

The command has a pseudo-terminal of its own (pty(7)), which is the controlling one of its session, and what is typed and
what it shows is passed on between the two.

INVARIANT: no command holds a descriptor of the person's terminal, so that its modes are put back however the command ends,
and nothing that a command leaves behind can read or write there.
"""

from __future__ import annotations

import os
import re
import select
import termios
import threading
import tty
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

BLOCK_BYTES = 4_096
"""What is typed is read in pieces of this size: a pseudo-terminal takes no more at once."""
_MODE = re.compile(rb"\x1b\[\?([0-9;]{1,60})([hl])")
"""DECSET and DECRST (xterm, "Control Sequences")."""
_LEFT_OWN_SCREEN = b"\x1b[?1049l"
_UNSEEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78])|\r")
"""Sequences and the return: nothing of them is seen in the line."""
_LONGEST = 70
_ON_AT_FIRST = frozenset((b"7", b"25"))
"""Lines that wrap, and a cursor that is seen."""
_OWN_SCREENS = (b"1049", b"1047", b"47")
"""Only left where one was taken: 1049 would move the cursor else."""
_PLAIN = b"\x1b[r\x1b8\x1b(B\x1b[m\x1b[4l\x1b>"
"""All rows scroll, which moves the cursor: it was saved before; letters, plain text, keys as they are."""


class LentTerminal:
    """The terminal at which a person sits, while one command has it; a `with` block."""

    def __init__(self, keyboard: int, screen: int, environment: Mapping[str, str], *, escapes: bool = True) -> None:
        """Take the descriptors of the person's terminal and their environment; `escapes`: it knows control sequences."""
        self._keyboard = keyboard
        self._screen = screen
        self.environment = environment
        self._escapes = escapes
        self._modes: list[Any] = []
        self.near = self.far = -1
        """The ends of the pseudo-terminal: the harness's, and the command's until it was started."""
        self._wake = self._woken = -1
        self._thread = threading.Thread(target=self._type, name="lent-terminal", daemon=True)
        self._tail = b""
        self._changed: dict[bytes, None] = {}
        """Private modes that are not as they were at first, in the order in which they were changed."""
        self._is_at_line_start = True

    def __enter__(self) -> Self:
        """Take the terminal. Raises OSError where there is none."""
        try:
            modes = termios.tcgetattr(self._keyboard)
            self.near, self.far = os.openpty()
            termios.tcsetattr(self.far, termios.TCSANOW, modes)
            self._fit()
            self._woken, self._wake = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self.near, False)
            self._modes = modes
            tty.setraw(self._keyboard, termios.TCSAFLUSH)
        except termios.error as error:
            self._close()
            raise OSError(*error.args) from error
        except BaseException:
            self._close()
            raise
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back as it was; what was typed and not read was meant for the command, and is dropped."""
        os.write(self._wake, b"x")
        self._thread.join()
        self._write(self._put_back())
        try:
            termios.tcsetattr(self._keyboard, termios.TCSAFLUSH, self._modes)
        except termios.error:
            pass  # it is gone
        self._close()

    def started(self) -> None:
        """Close the command's end: it has its own now, and the end of its output is seen when it is closed there too."""
        if self.far >= 0:
            os.close(self.far)
            self.far = -1

    def add(self, block: bytes) -> None:
        """Show what the command wrote."""
        seen = self._tail + block
        for found in _MODE.finditer(seen):
            if found.end() > len(self._tail):
                for mode in found[1].split(b";"):
                    self._changed.pop(mode, None)
                    if (found[2] == b"h") is not (mode in _ON_AT_FIRST):
                        self._changed[mode] = None
        self._tail = seen[-_LONGEST:]
        left = _LEFT_OWN_SCREEN
        begin = max(seen.rfind(b"\n") + 1, seen.rfind(left) + len(left) if left in seen else 0)
        if begin or _UNSEEN.sub(b"", block):
            self._is_at_line_start = bool(begin) and not _UNSEEN.sub(b"", seen[begin:])
        self._write(block)

    def deliver(self, *, last: bool) -> None:  # noqa: ARG002 - as Live has it
        """Give the command the size of the window, as it is now."""
        self._fit()

    def _put_back(self) -> bytes:
        """Return what undoes what the command left: modes, its own screen, colours."""
        text = b""
        if self._escapes:
            for mode in reversed(self._changed):
                text += b"\x1b[?%s%s" % (mode, b"h" if mode in _ON_AT_FIRST else b"l")
            text += b"\x1b7" + _PLAIN
        took_a_screen = any(mode in self._changed for mode in _OWN_SCREENS)
        return text if self._is_at_line_start or took_a_screen else text + b"\r\n"

    def _fit(self) -> None:
        try:
            size = termios.tcgetwinsize(self._screen)
            if size != termios.tcgetwinsize(self.near):
                termios.tcsetwinsize(self.near, size)
        except (termios.error, OSError):
            pass  # it is gone

    def _type(self) -> None:
        """Pass on what is typed, until there is no more or the terminal is given back."""
        pending = b""
        while True:
            ready, room, _ = select.select(
                [self._woken, *([] if pending else [self._keyboard])], [self.near] if pending else [], []
            )
            if self._woken in ready:
                return
            try:
                if room:
                    pending = pending[os.write(self.near, pending) :]
                elif self._keyboard in ready:
                    pending = os.read(self._keyboard, BLOCK_BYTES)
                    if not pending:
                        return
            except BlockingIOError:
                pass
            except OSError:
                return  # one of the two is gone

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._screen, rest) :]
            except BlockingIOError:
                select.select([], [self._screen], [], 1.0)
            except OSError:
                return  # nobody looks any more

    def _close(self) -> None:
        for descriptor in (self.near, self.far, self._wake, self._woken):
            if descriptor >= 0:
                os.close(descriptor)
        self.near = self.far = self._wake = self._woken = -1

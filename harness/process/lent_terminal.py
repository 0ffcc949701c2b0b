"""The user's terminal, lent to one command that reads keys, such as an editor or a pager.

The command gets its own pseudo-terminal (pty(7)) as the controlling terminal of its session. Keys and output are passed
on between the two terminals.

INVARIANT: no command has a descriptor of the user's terminal. So its modes can be restored after any end of the
command, and no remaining process can read or write there.
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

from harness.regex import regex

BLOCK_BYTES = 4_096
"""Size of a read from the keyboard, in bytes. A pseudo-terminal accepts no more at once."""
_SWITCH = regex(
    rb"\x1b\[(?:\?(?P<modes>[0-9;]{1,60})(?P<to>[hl])"
    rb"|(?P<stack>[<>])(?P<count>[0-9]{0,3})u|>4(?:;(?P<keys>[0-9]))?m|(?P<shape>[0-9]{0,2}) q)"
)
"""DECSET and DECRST, modifyOtherKeys and DECSCUSR (xterm, "Control Sequences"); the stack of kitty's keyboard protocol."""
_LEFT_OWN_SCREEN = b"\x1b[?1049l"
_UNSEEN = regex(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78])|\r")
"""Control sequences and carriage returns, which are invisible in a line."""
_LONGEST = 70
_MOST_PUSHED = 99
_ON_AT_FIRST = frozenset((b"7", b"25"))
"""Modes that are on by default: lines wrap (7), and the cursor is visible (25)."""
_OWN_SCREENS = (_LEFT_OWN_SCREEN, b"\x1b[?1047l", b"\x1b[?47l")
"""Sequences that leave the alternate screen. Sent only if the command entered it, since 1049 moves the cursor."""
_PLAIN = b"\x1b[r\x1b8\x1b(B\x0f\x1b[m\x1b[4l\x1b>"
"""Reset: all rows scroll (this moves the cursor, so the saved one is restored), usual letters, text style and keys."""
_POP, _USUAL_KEYS, _USUAL_SHAPE = b"\x1b[<u", b"\x1b[>4m", b"\x1b[0 q"
"""Sent only if a command switched these modes: an old terminal would show parts of them, and a pop may undo another
program's push.
"""


class LentTerminal:
    """The user's terminal while one command has it. Use it in a `with` block."""

    def __init__(self, keyboard: int, screen: int, environment: Mapping[str, str], *, escapes: bool = True) -> None:
        """Initialize with the descriptors of the user's terminal and the user's environment.

        `escapes` tells whether the terminal supports control sequences.
        """
        self._keyboard = keyboard
        self._screen = screen
        self.environment = environment
        self._escapes = escapes
        self._modes: list[Any] = []
        self.near = self.far = -1
        """The ends of the pseudo-terminal: the harness's, and the command's until the command has started."""
        self._wake = self._woken = -1
        self._thread = threading.Thread(target=self._type, name="lent-terminal", daemon=True)
        self._tail = b""
        self._undoing: dict[bytes, int] = {}
        """Sequences that undo changed modes, in the order of the changes, with counts."""
        self._is_at_line_start = True

    def __enter__(self) -> Self:
        """Take over the terminal. Raises OSError if there is none."""
        try:
            modes = termios.tcgetattr(self._keyboard)
            self.near, self.far = os.openpty()
            termios.tcsetattr(self.far, termios.TCSANOW, modes)
            self._fit()
            self._woken, self._wake = os.pipe()
            os.set_blocking(self.near, False)
            self._modes = modes
            tty.setraw(self._keyboard, termios.TCSAFLUSH)
            self._thread.start()
        except BaseException as error:
            self._give_back()
            if isinstance(error, termios.error | RuntimeError):  # no terminal, or no further thread possible
                raise OSError(*error.args) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal. Unread keys were typed for the command, and are dropped."""
        try:
            self._end_typing()
            self._write(self._put_back())
        finally:  # an interrupt may come at any moment
            self._give_back()

    def started(self) -> None:
        """Close the command's end in the harness. The command has its own copy, whose closing ends the output."""
        if self.far >= 0:
            os.close(self.far)
            self.far = -1

    def add(self, block: bytes) -> None:
        """Show output of the command."""
        output = self._tail + block
        for match in _SWITCH.finditer(output):
            if match.end() > len(self._tail):
                self._note(match)
        self._tail = output[-_LONGEST:]
        own_screen_left = _LEFT_OWN_SCREEN
        begin = max(
            output.rfind(b"\n") + 1,
            output.rfind(own_screen_left) + len(own_screen_left) if own_screen_left in output else 0,
        )
        if begin or _UNSEEN.sub(b"", block):
            self._is_at_line_start = bool(begin) and not _UNSEEN.sub(b"", output[begin:])
        self._write(block)

    def _note(self, match: re.Match[bytes]) -> None:
        """Record the sequence that undoes a switched mode."""
        if match["modes"]:
            for mode in match["modes"].split(b";"):
                at_first = b"h" if mode in _ON_AT_FIRST else b"l"
                self._switched(b"\x1b[?%s%s" % (mode, at_first), int(match["to"] != at_first))
        elif match["stack"]:
            pushed = 1 if match["stack"] == b">" else -int(match["count"] or 1)
            self._switched(_POP, min(self._undoing.get(_POP, 0) + pushed, _MOST_PUSHED))
        elif match["shape"] is not None:
            self._switched(_USUAL_SHAPE, int(match["shape"].strip(b"0") != b""))
        else:
            self._switched(_USUAL_KEYS, int(match["keys"] not in (None, b"0")))

    def _switched(self, undoing: bytes, times: int) -> None:
        self._undoing.pop(undoing, None)
        if times > 0:
            self._undoing[undoing] = times

    def deliver(self, *, last: bool) -> None:  # noqa: ARG002 - the signature of Live
        """Set the command's window size to the current one."""
        self._fit()

    def _put_back(self) -> bytes:
        """Return the sequences that undo the command's changes: modes, its own screen, colours."""
        text = b""
        if self._escapes:
            text = b"".join(undoing * self._undoing[undoing] for undoing in reversed(self._undoing)) + b"\x1b7" + _PLAIN
        took_a_screen = any(leaving in self._undoing for leaving in _OWN_SCREENS)
        return text if self._is_at_line_start or took_a_screen else text + b"\r\n"

    def _fit(self) -> None:
        try:
            size = termios.tcgetwinsize(self._screen)
            if size != termios.tcgetwinsize(self.near):
                termios.tcsetwinsize(self.near, size)
        except (termios.error, OSError):
            pass  # it is gone

    def _type(self) -> None:
        """Pass on keys until the end of input, or until the terminal is restored."""
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
                return  # the terminal is gone

    def _give_back(self) -> None:
        """Restore the terminal's modes if it was taken over, and close the descriptors."""
        if self._modes:
            try:
                termios.tcsetattr(self._keyboard, termios.TCSAFLUSH, self._modes)
            except termios.error:
                pass  # it is gone
        self._end_typing()
        self._close()

    def _end_typing(self) -> None:
        if self._thread.is_alive():
            os.write(self._wake, b"x")
            self._thread.join()

    def _close(self) -> None:
        for descriptor in (self.near, self.far, self._wake, self._woken):
            if descriptor >= 0:
                os.close(descriptor)
        self.near = self.far = self._wake = self._woken = -1

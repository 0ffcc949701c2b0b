"""Keys of a question, read from the terminal one at a time. Keys that were typed ahead or pasted are dropped.

Reads the bytes of the terminal directly. A line editing library would turn parts of unknown sequences (`ESC [ ? y`) into
keys, and here a key is an answer. Only a byte that arrives alone counts as a key, and so does an answer that a hand typed
as a line: `y`, `yes`, `n` or `no`, ended with Enter.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import Any, Self

from harness.record import Record
from harness.session.config.declared import LEAST_DEAD_SECONDS
from harness.system import quiet_pipe
from harness.terminal.escape_sequences import ESC, PASTE_BEGINS, PASTE_ENDS, key_of, typed_text

PASTES, PASTES_NOT = "\x1b[?2004h", "\x1b[?2004l"
"""Sequences that switch bracketed paste on and off (xterm). When on, the terminal marks the start and end of a paste."""

_IFLAG, _LFLAG, _CC = 0, 3, 6
"""Indexes in the result of tcgetattr."""
_NO_KEY = b"\0" if sys.platform == "linux" else b"\xff"
"""_POSIX_VDISABLE, which switches a special character off (Linux: termios(3); BSD and macOS: <unistd.h>)."""


class Interrupts(Enum):
    """The effect of Ctrl-C, Ctrl-Z and Ctrl-S."""

    SIGNALS = "signals"
    """They have their usual effects. For use during a turn, when the thread that reads keys may be idle."""
    KEYS = "keys"
    """They are read as bytes, in order with others, so that none is lost between two calls. For use at a question."""


def single_keys(mode: list[Any], interrupts: Interrupts) -> list[Any]:
    """Return a changed copy of `mode` (from tcgetattr): single keys without echo, and Enter distinct from Ctrl-J."""
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
def kept_mode(descriptor: int) -> Iterator[None]:
    """Restore the terminal's present mode at the end of the block. Typed keys are kept. No effect without a terminal."""
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


ALONE_SECONDS = 0.05
"""Seconds within which further bytes belong to the same input: a paste, a function key's sequence, or hasty typing.

Keys of a paste arrive within a millisecond, even over a network. A hand needs at least 80 ms between two keys.
"""
SURE_SECONDS = 0.25
"""Seconds without further bytes after which a key that acts counts as an answer.

The time is longer because `y` may begin a sentence of a user who believes that they are typing ahead. A user who answers
waits anyway. Keys that refuse or only show something need no longer wait.
"""
ACTS = frozenset("yspoehkxcfYSPOEHKXCF123456789\t")
"""Keys that permit, grant, change or end something, at any step of a question."""
TYPING_SECONDS = 0.01
"""Seconds within which bytes belong together while text is typed: less, because a fast hand may roll over keys."""
_ANSWERS = {b"y\r": b"y", b"yes\r": b"y", b"n\r": b"n", b"no\r": b"n"}
"""Answers that are typed as a line, and the key for each."""
_ANSWER_BEGINS = frozenset(line[:length] for line in _ANSWERS for length in range(1, len(line) + 1))
NOISY_SECONDS = 20.0
"""Maximum seconds of constant input. A keyboard that never rests counts as a no."""
PASTE_SECONDS = 1.0
"""Seconds without input after which an unfinished paste counts as ended."""
MOST_BYTES = 65_536
"""Maximum number of bytes kept of one burst. The rest is read and dropped."""

_PASTE_BEGINS, _PASTE_ENDS = PASTE_BEGINS.encode(), PASTE_ENDS.encode()
_CTRL_C, _CTRL_Z = 0x03, 0x1A


class Event(Enum):
    """Input that is not a key."""

    END = "end of input"
    """End of input or a hang-up."""
    STOP = "Ctrl-C"
    BURST = "several keys at once"
    """A paste, keys typed ahead, or a function key: dropped."""
    RETURNED = "returned"
    """The program continues after a suspension, or the terminal was resized. Shown rows may be gone."""
    TIME = "time"
    """No input arrived in time."""


class Key(Record):
    """One key that was pressed alone."""

    text: str
    """One character, or a name.

    The names are `esc`, `enter` (also Ctrl-J), `tab`, `backspace`, `end` (Ctrl-D), `kill` (Ctrl-U), `word` (Ctrl-W), and
    for paging `page` (PageDown, Down) and `rest` (End).
    """


class Pasted(Record):
    """Several characters that arrived at once. They may become text, but are never an answer."""

    text: str
    bracketed: bool
    """Whether the terminal marked it as a paste."""


_KEYS = {
    b"\x1b": "esc", b"\r": "enter", b"\n": "enter", b"\x7f": "backspace", b"\x08": "backspace", b"\x04": "end",
    b"\x15": "kill", b"\x17": "word", b"\t": "tab",
}  # fmt: skip


_PAGES = {
    **dict.fromkeys((b"\x1b[6~", b"\x1b[B", b"\x1bOB"), "page"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"\x1b[8~"), "rest"),
}
"""Sequences of keys that only show more rows (ECMA-48, DEC VT220, rxvt, Linux console)."""


def _refusal(burst: bytes) -> bytes:
    """Return the Ctrl-C or Esc that a keyboard protocol's sequence encodes, or an empty string.

    Other keys in such sequences do not count, so that a sequence can never permit a call.
    """
    if not burst.startswith(b"\x1b["):
        return b""
    key = key_of(burst.decode("utf-8", "replace")).encode()
    return key if key in (b"\x03", b"\x1b") else b""


def readable(descriptors: Sequence[int], seconds: float | None) -> Sequence[int]:
    """Wait until a descriptor is readable, for at most `seconds` (`None`: forever). Return the readable ones."""
    return select.select(descriptors, [], [], seconds)[0]


class Keyboard:
    """Reads the keys of a terminal during a `with` block.

    INVARIANT: at the end of the block, the terminal always gets its earlier mode back.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        brackets: Callable[[str], None] = lambda _: None,
        on_return: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
        readable: Callable[[Sequence[int], float | None], Sequence[int]] = readable,
        suspend: Callable[[], None] = lambda: os.kill(0, signal.SIGTSTP),
        noisy_seconds: float = NOISY_SECONDS,
    ) -> None:
        """Use the terminal at `descriptor`.

        `brackets` writes the switch of bracketed paste. `on_return` is called after a return to the terminal.
        `monotonic` and `readable` are the clock and the wait for input. `suspend` suspends the program (Ctrl-Z).
        """
        self._descriptor = descriptor
        self._brackets = brackets
        self._on_return = on_return
        self._monotonic = monotonic
        self._readable = readable
        self._suspend = suspend
        self._noisy_seconds = noisy_seconds
        self._before: list[Any] | None = None
        self._wake = (-1, -1)
        self._handlers: list[tuple[signal.Signals, Any]] = []
        self._in_paste = False
        self._came_at = 0.0
        self._flushed = False
        """Whether keys were unread when this keyboard took the terminal."""
        self.dropped = False
        """Whether the last call of `rest` dropped keys, or the terminal had unread keys before it."""

    @property
    def came_at(self) -> float:
        """Time at which the last key arrived, before the wait for further bytes."""
        return self._came_at

    def __enter__(self) -> Self:
        """Start to read keys. Earlier keys are dropped. Raises OSError if the terminal is gone."""
        self._wake = quiet_pipe()
        try:
            self._take()
            self._watch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the terminal's earlier mode, and the signal handlers."""
        for number, handler in self._handlers:
            signal.signal(number, handler)
        self._handlers.clear()
        self._give_back()
        for descriptor in self._wake:
            if descriptor >= 0:
                os.close(descriptor)
        self._wake = (-1, -1)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the terminal to other programs during the block. Keys that they leave unread are dropped."""
        self._give_back()
        try:
            yield
        finally:
            self._take()
            self._on_return()

    def rest(self, seconds: float) -> Event | None:
        """Drop keys until none arrives for `seconds`, so that text begun before a question cannot answer it.

        Return `None`; END or STOP if such a key arrives; BURST if keys never rest.
        """
        seconds = max(seconds, LEAST_DEAD_SECONDS)
        began = self._monotonic()
        self.dropped, self._flushed = self._flushed, False
        while True:
            came = self._next(seconds, sure=0.0)
            if came is Event.TIME:
                return None
            if came is Event.END or came is Event.STOP:
                return came
            self.dropped = self.dropped or came is not Event.RETURNED
            if self._monotonic() - began > self._noisy_seconds:
                return Event.BURST

    def next(self, seconds: float | None = None) -> Key | Pasted | Event:
        """Return the next input, or TIME if none arrives within `seconds` (`None`: no limit). The wait does not poll.

        A key that acts is returned only after SURE_SECONDS without further bytes, and so is an answer that a hand typed
        as a line: it is returned as the key `y` or `n`.
        """
        return self._next(seconds, sure=SURE_SECONDS)

    def _next(self, seconds: float | None, *, sure: float) -> Key | Pasted | Event:
        burst = self._burst(seconds, ALONE_SECONDS, sure)
        if isinstance(burst, Event):
            return burst
        return self._meaning(burst)

    def typed(self) -> Key | Pasted | Event:
        """Return the next input while text is typed. Several characters at once are returned as text (`Pasted`)."""
        burst = self._burst(None, TYPING_SECONDS, 0.0)
        if isinstance(burst, Event):
            return burst
        came = self._meaning(burst)
        if isinstance(came, Pasted) and not came.bracketed and ESC in came.text:
            text = typed_text(came.text)
            return Pasted(text=text, bracketed=False) if text else Event.BURST  # a function key, or a report
        return came

    def _meaning(self, burst: bytes) -> Key | Pasted | Event:
        was_in_paste = self._in_paste
        if was_in_paste or _PASTE_BEGINS in burst:
            last_begin, last_end = burst.rfind(_PASTE_BEGINS), burst.rfind(_PASTE_ENDS)
            self._in_paste = last_begin > last_end or (was_in_paste and last_end < 0)
            pasted = burst.replace(_PASTE_BEGINS, b"").replace(_PASTE_ENDS, b"")
            return Pasted(text=pasted.decode("utf-8", "replace"), bracketed=True)
        burst = _refusal(burst) or burst
        if _CTRL_C in burst:  # in doubt, stop: a mistake costs no more than another question
            return Event.STOP
        if burst == bytes((_CTRL_Z,)):
            return self._stopped()
        if burst in _KEYS or burst in _PAGES:
            return Key(text=_KEYS.get(burst) or _PAGES[burst])
        try:
            text = burst.decode("utf-8")
        except UnicodeDecodeError:
            return Event.BURST
        if len(text) == 1 and text.isprintable():
            return Key(text=text)
        return Pasted(text=text, bracketed=False)

    def _burst(self, seconds: float | None, alone: float, sure: float) -> bytes | Event:
        """Return all bytes that arrive together, until none follows for `alone` seconds (`sure` after a key that acts).

        With `sure`, an answer that a hand types as a line arrives together, too.
        """
        if self._in_paste:
            seconds = PASTE_SECONDS if seconds is None else max(seconds, PASTE_SECONDS)
        ready = self._wait(seconds)
        if isinstance(ready, Event):
            if ready is Event.TIME and self._in_paste:
                self._in_paste = False
                return Event.BURST
            return ready
        burst = b""
        by_hand = sure > 0
        self._came_at = self._monotonic()
        until = self._came_at + self._noisy_seconds
        while True:
            piece = self._piece()
            if isinstance(piece, Event):
                return piece
            if len(burst) < MOST_BYTES:
                burst += piece
            # Only the keys of a hand arrive one by one. The wait finds bytes that arrived together, however late it is.
            typed = burst.lower().replace(b"\n", b"\r")
            by_hand = by_hand and len(piece) == 1 and typed in _ANSWER_BEGINS and not self._more(TYPING_SECONDS)
            acts = (len(burst) == 1 and chr(burst[0]) in ACTS) or (by_hand and len(burst) > 1)
            if self._monotonic() > until or not self._more(max(alone, sure) if acts else alone):
                if by_hand:
                    return _ANSWERS.get(typed, burst)
                return burst if len(burst) < MOST_BYTES else burst[:MOST_BYTES] + b"\0"

    def _piece(self) -> bytes | Event:
        try:
            return os.read(self._descriptor, 4096) or Event.END
        except BlockingIOError:
            return Event.BURST
        except OSError:  # EIO: the terminal is gone
            return Event.END

    def _more(self, seconds: float) -> bool:
        return bool(self._readable((self._descriptor,), seconds))

    def _wait(self, seconds: float | None) -> Event | None:
        """Wait for input. Return `None` if there is some, else RETURNED or TIME."""
        ready = self._readable((self._descriptor, self._wake[0]), seconds)
        if self._wake[0] in ready:
            numbers = os.read(self._wake[0], 4096)
            if signal.SIGCONT in numbers:  # the shell may have changed the terminal's mode
                self._take()
            self._on_return()
            return Event.RETURNED
        return None if ready else Event.TIME

    def _stopped(self) -> Event:
        with self.released():
            self._suspend()
        return Event.RETURNED

    def _take(self) -> None:
        """Set the terminal to single keys without echo, and drop unread keys. Raises OSError.

        Unread keys can be noticed only in the new mode, since the earlier one may hide an unfinished line.
        """
        try:
            # Only the first mode is kept, because a crashed editor may have left another.
            if self._before is None:
                self._before = termios.tcgetattr(self._descriptor)
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, single_keys(self._before, Interrupts.KEYS))
            self._flushed = self._more(0)
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        except termios.error as error:
            raise OSError(*error.args) from error
        self._in_paste = False
        self._brackets(PASTES)

    def _give_back(self) -> None:
        if self._before is None:
            return
        self._brackets(PASTES_NOT)
        try:
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, self._before)
        except termios.error:
            pass  # the terminal is gone

    def _watch(self) -> None:
        """Let a resize, or a return from suspension, end the wait for input.

        That is possible in the main thread only. In other threads, the size is compared at every key.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGWINCH, signal.SIGCONT):
            self._handlers.append((number, signal.signal(number, self._on_signal)))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what signal.signal calls
        try:
            os.write(self._wake[1], bytes((number,)))
        except OSError:
            pass  # the pipe is full, so the wait ends anyway

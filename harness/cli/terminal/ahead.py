"""TypedAhead: what is typed while a turn runs is read, shown and kept; it never answers anything, and the terminal is always
put back as it was."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from harness.cli.terminal.typing_ahead import MOST_CHARACTERS, MOST_LINES, Keyed, TypedText, Typing

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import Any, Self

ESCAPE_SECONDS = 0.05
"""After an Esc: what comes within this time belongs to it."""
BACKGROUND_SECONDS = 0.5
"""Between two looks whether the terminal is ours again."""
SWITCH_SECONDS = 0.0005
"""Between two threads that both have work: with Python's 5 ms, a key waits for several of them while output floods."""
MOST_BYTES = 4_096
MOST_SHOWN = 400
"""Characters, of what was typed: its end while it is typed, its beginning when it is finished."""
FULL = f"no room for more than {MOST_LINES} lines or {MOST_CHARACTERS:,} characters: the last keys were dropped"
_PASTES, _PASTES_NOT = b"\x1b[?2004h", b"\x1b[?2004l"
_IFLAG, _LFLAG, _CC = 0, 3, 6


class TypedAhead:
    """Reads keys while it is entered; does nothing where stdin is no terminal.

    `with ahead:` is for the main thread (signals are looked after there), and a thread of its own reads. Signals still
    come from the terminal (Ctrl-C, Ctrl-Z); Ctrl-Z and `fg` put the terminal back and take it again.
    """

    def __init__(
        self, stdin_fd: int, *, tell: Callable[[str], None], stop: Callable[[], None], escapes: bool = True
    ) -> None:
        """Take the terminal; `tell` is told from the reading thread what to show, `stop` is called when Esc was pressed.
        `escapes`: whether the terminal knows bracketed paste."""
        self._fd = stdin_fd
        self._tell = tell
        self._stop = stop
        self._escapes = escapes
        self._typing = Typing()
        self._lock = threading.RLock()
        self._before: list[Any] | None = None
        """How the terminal was, while it is not that."""
        self._reader: threading.Thread | None = None
        self._wake = -1
        self._interval = SWITCH_SECONDS
        self._on_stop: Any = None

    def __enter__(self) -> Self:
        """Begin to read."""
        if os.isatty(self._fd):
            self._look_after_stops()
            self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        """Put the terminal back as it was; what was typed is kept."""
        self._end()
        self._look_after_no_stops()
        self._tell("")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question: nothing is read, and what was typed is no answer but stays a draft."""
        reads = self._reader is not None
        self._end()
        self._tell("")  # behind the keys of a question it would look like an answer
        try:
            yield
        finally:
            if reads:
                self._begin()
                self._show()

    def take(self) -> str | None:
        """Return the oldest finished line and forget it; None if there is none."""
        with self._lock:
            return self._typing.take()

    @property
    def draft(self) -> str:
        """What was typed and not finished."""
        with self._lock:
            return self._typing.draft

    def take_draft(self) -> str:
        """Return what was typed and not finished, and forget it."""
        with self._lock:
            return self._typing.take_draft()

    # The terminal

    def _begin(self) -> None:
        self._take_terminal()
        if self._before is None:
            return
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        wake, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._reader = threading.Thread(target=self._read, args=(wake,), name="typed-ahead", daemon=True)
        self._reader.start()

    def _end(self) -> None:
        """Put the terminal back, and let the thread end. An interrupt in between leaves nothing undone that matters."""
        reader, self._reader = self._reader, None
        try:
            if reader is not None:
                wake, self._wake = self._wake, -1
                os.close(wake)  # its end of file wakes the thread, which closes the other end
                reader.join(1.0)
                sys.setswitchinterval(self._interval)
        finally:
            self._give_terminal()

    def _take_terminal(self) -> None:
        """Let keys come one by one and unseen, and Enter be told from Ctrl-J; signals stay (termios(3))."""
        try:
            if os.tcgetpgrp(self._fd) != os.getpgrp():
                return
            mode = termios.tcgetattr(self._fd)
            keys = [*mode[:_CC], list(mode[_CC])]
            keys[_IFLAG] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
            keys[_LFLAG] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            keys[_LFLAG] |= termios.ISIG
            keys[_CC][termios.VMIN], keys[_CC][termios.VTIME] = 1, 0
            self._before = mode
            termios.tcsetattr(self._fd, termios.TCSANOW, keys)
            if self._escapes:
                os.write(self._fd, _PASTES)
        except (OSError, termios.error):
            pass  # the terminal has hung up, or cannot be written to: then pastes come as lines

    def _give_terminal(self) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, before)
            if self._escapes:
                os.write(self._fd, _PASTES_NOT)
        except (OSError, termios.error):
            pass

    def _look_after_stops(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._on_stop = signal.signal(signal.SIGTSTP, self._stopped)

    def _look_after_no_stops(self) -> None:
        if self._on_stop is not None:
            signal.signal(signal.SIGTSTP, self._on_stop)
            self._on_stop = None

    def _stopped(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what signal.signal calls
        """Stop as Ctrl-Z does, with the terminal as it was; go on when the shell says so."""
        took = self._before is not None
        self._give_terminal()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stopped)
        if took and self._reader is not None:
            self._take_terminal()  # nothing is shown from here: a write may be under way in this very thread

    # The thread that reads

    def _read(self, wake: int) -> None:
        try:
            while self._read_once(wake):
                pass
        except (OSError, ValueError):
            pass  # the terminal has hung up: SIGHUP tells the program
        finally:
            os.close(wake)

    def _read_once(self, wake: int) -> bool:
        """Wait for keys and take them in; return whether to go on."""
        if self._before is None:  # in the background, until `fg`: reading would stop the program (SIGTTIN)
            return not select.select([wake], [], [], BACKGROUND_SECONDS)[0]
        ready, _, _ = select.select([self._fd, wake], [], [], ESCAPE_SECONDS if self._typing.in_escape else None)
        if wake in ready:
            return False
        if ready and os.tcgetpgrp(self._fd) != os.getpgrp():
            return not select.select([wake], [], [], BACKGROUND_SECONDS)[0]
        raw = os.read(self._fd, MOST_BYTES) if ready else b""
        if ready and not raw:
            return False
        with self._lock:
            told = self._typing.feed(raw) if ready else self._typing.lone_escape()
        self._show(full=Keyed.DROPPED in told)
        if Keyed.STOP in told:
            self._stop()
        return True

    def _show(self, *, full: bool = False) -> None:
        with self._lock:
            standing = self._typing.standing
        self._tell(FULL if full else shown(standing))


def shown(typed: TypedText) -> str:
    """Return what waits, in one line: what is being typed, or the line that was finished last."""
    if typed.draft:
        waiting = f"({typed.waiting} queued) " if typed.waiting else ""
        return f"{waiting}> {typed.draft[-MOST_SHOWN:]}"
    if not typed.waiting:
        return ""
    more = f" (and {typed.waiting - 1} before)" if typed.waiting > 1 else ""
    return f"queued{more}: {typed.last[:MOST_SHOWN]}"

"""Keys typed during a turn: they are read, shown and kept for later. They never answer a question."""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import Any, Self

from harness.record import Record
from harness.terminal.activity import AFTER_TURN, WITH_RESULTS
from harness.terminal.escape_sequences import ESC, SHIFT_TAB, EscapeSequences, key_of, pasted_text, typed_text
from harness.terminal.keys import PASTES, PASTES_NOT, Interrupts, single_keys
from harness.terminal.typing_times import TypingTimes
from harness.terminal.unmarked_paste import read_at_once, with_marks

MOST_LINES = 100
"""Maximum number of waiting lines. Each becomes a turn."""
MOST_CHARACTERS = 100_000
"""Maximum number of characters in the waiting lines and the draft together."""
LINE_ENDS = "\r\t"
"""The keys that finish a line."""
NEXT_MODE = "/mode next"
"""The line that Shift-Tab queues. Like other lines, it waits for the end of the turn."""


class Keyed(Enum):
    """The effect of a key beyond text."""

    STOP = "stop"
    """Esc, alone."""
    DROPPED = "dropped"
    """The key was dropped for lack of room."""


class FinishedLine(Record):
    """A finished line."""

    text: str
    steers: bool = False
    """Whether the model may get it during the turn. Otherwise it waits for the end of the turn."""


class TypedText(Record):
    """The waiting text, for display."""

    draft: str
    waiting: int
    last: FinishedLine = FinishedLine(text="")
    """The waiting line that was finished last."""
    keys: Sequence[str] = ()
    """The effects of the keys that finish the draft, in forms for ever narrower rows. Empty if both have the same one."""


def no_message(line: str) -> bool:  # noqa: ARG001 - a default
    """Return `False`: no line is a message to the model."""
    return False


class Typing:
    """The finished lines in order, and the unfinished one (the draft).

    Enter and Tab finish a line. Ctrl-J and Alt-Enter add a newline to it. A paste is always text. The rest of an answer is
    dropped.
    """

    def __init__(
        self,
        *,
        is_message: Callable[[str], bool] = no_message,
        tab_steers: bool = False,
        times: TypingTimes | None = None,
    ) -> None:
        """`is_message` returns whether a line is a message to the model; only such a line may steer a turn.

        Enter lets a line steer, and Tab lets it wait. With `tab_steers`, the keys are exchanged.
        """
        self.steers = False
        """Whether a turn of the model goes on, which takes messages."""
        self._is_message = is_message
        self._tab_steers = tab_steers
        self._times = times or TypingTimes()
        self._before_answer = 0
        """Number of characters of the draft that were typed before the last answer."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[FinishedLine] = deque()
        self._size = 0
        self._draft: list[str] = []
        self._sequences = EscapeSequences()

    @property
    def in_escape(self) -> bool:
        """Whether the last character was an Esc, which may be a key or begin a sequence."""
        return self._sequences.in_escape

    @property
    def in_paste(self) -> bool:
        """Whether a paste has begun and not ended."""
        return self._sequences.pasted is not None

    @property
    def in_key(self) -> bool:
        """Whether the last key may be incomplete."""
        return bool(self._sequences.in_key or self._decoder.getstate()[0])

    @property
    def draft(self) -> str:
        """The unfinished line."""
        return "".join(self._draft)

    @property
    def standing(self) -> TypedText:
        """The draft, with the end of an unfinished paste, and the waiting lines, for display."""
        draft = self.draft + typed_text((self._sequences.pasted or "")[-MOST_SHOWN:])
        keys: Sequence[str] = ()
        if self.steers and (words := self.draft.strip()) and self._is_message(words):
            keys = TAB_STEERS if self._tab_steers else ENTER_STEERS
        last = self._lines[-1] if self._lines else FinishedLine(text="")
        return TypedText(draft=draft, waiting=len(self._lines), last=last, keys=keys)

    def take(self, *, steering: bool = False) -> str | None:
        """Remove and return the oldest finished line, or the oldest that steers. `None` if there is none."""
        line = next((line for line in self._lines if line.steers or not steering), None)
        if line is None:
            return None
        self._lines.remove(line)
        self._size -= len(line.text)
        return line.text

    def take_draft(self) -> str:
        """Remove and return the unfinished line."""
        draft = self.draft
        self._set_draft([])
        return draft

    def begin_after_answer(self) -> None:
        """Record that the user has just answered a question: text up to an Enter may belong to the answer."""
        self._before_answer = len(self._draft)

    def drop_rest_of_answer(self) -> None:
        """Remove the unfinished rest of an answer from the draft."""
        if self._times.begins_rest(self.draft[self._before_answer :]):
            self._set_draft(self._draft[: self._before_answer])

    def feed(self, raw: bytes) -> list[Keyed]:
        """Process bytes that were read at once, and return their effects in order."""
        came: list[Keyed] = []
        for unit in with_marks(self._sequences.feed(self._decoder.decode(raw)), LINE_ENDS):
            pasted = pasted_text(unit)
            if pasted is None:
                self._key(key_of(unit), came)
            else:
                self._paste(pasted, came)
        return came

    def lone_escape(self) -> list[Keyed]:
        """Treat an Esc that no input followed as a key. Return its effects."""
        return [Keyed.STOP] if self._sequences.pause() == ESC else []

    def end_keys(self) -> list[Keyed]:
        """End unfinished keys and pastes, so that later bytes do not continue them. Return the effects."""
        came = self.lone_escape()
        self._paste(self._sequences.end(), came)
        self._decoder.reset()
        return came

    def _paste(self, text: str, came: list[Keyed]) -> None:
        for character in typed_text(text).replace("\r\n", "\n").replace("\r", "\n"):
            if character in "\n\t" or (character >= " " and character != "\x7f"):
                self._add(character, came)

    def _key(self, key: str, came: list[Keyed]) -> None:
        match key:
            case _ if key and key in LINE_ENDS:
                self._end_line(came, steers=self.steers and (key == "\t") is self._tab_steers)
            case "\n" | "\x1b\r" | "\x1b\n":
                self._add("\n", came)
            case "\x1b":
                came.append(Keyed.STOP)
            case _ if key == SHIFT_TAB:
                self._queue(FinishedLine(text=NEXT_MODE), came)
            case "\x7f" | "\x08":
                self._set_draft(self._draft[:-1])
            case "\x15":
                self._set_draft([])
            case "\x17":
                self._set_draft(list(_without_last_word(self.draft)))
            case _ if key >= " ":
                self._add(key, came)
            case _:
                pass

    def _add(self, character: str, came: list[Keyed]) -> None:
        if self._size >= MOST_CHARACTERS:
            came += [] if Keyed.DROPPED in came else [Keyed.DROPPED]
            return
        self._draft.append(character)
        self._size += 1

    def _set_draft(self, draft: list[str]) -> None:
        self._size += len(draft) - len(self._draft)
        self._draft = draft
        self._before_answer = min(self._before_answer, len(draft))

    def _end_line(self, came: list[Keyed], *, steers: bool) -> None:
        line = self.draft
        if self._times.ends_answer(line[self._before_answer :]):
            self._set_draft(self._draft[: self._before_answer])
        elif line.strip():
            self._set_draft([])  # even if there is no room, so that the text does not join the next line
            self._queue(FinishedLine(text=line, steers=steers and self._is_message(line.strip())), came)

    def _queue(self, line: FinishedLine, came: list[Keyed]) -> None:
        if len(self._lines) >= MOST_LINES:
            came += [] if Keyed.DROPPED in came else [Keyed.DROPPED]
            return
        self._size += len(line.text)
        self._lines.append(line)


def _without_last_word(text: str) -> str:
    text = text.rstrip()
    return text[: max(text.rfind(" "), text.rfind("\n")) + 1]


BACKGROUND_SECONDS = 0.5
"""Seconds between two checks whether we are in the foreground again. No signal reports it (`bg`, then `fg` in bash)."""
SWITCH_SECONDS = 0.0005
"""Switch interval of Python's threads, in seconds. With the default of 5 ms, keys would wait during much output."""
MOST_BYTES = 4_096
"""Maximum number of bytes per read: the buffer size of the line discipline (termios(3))."""
MOST_SHOWN = 400
"""Maximum number of typed characters shown: the end of the draft, or the beginning of a finished line."""
ENTER_STEERS = (
    "Enter: to the model with the next results, Tab: after this turn",
    "Enter: with the results, Tab: later",
)
TAB_STEERS = (
    "Tab: to the model with the next results, Enter: after this turn",
    "Tab: with the results, Enter: later",
)
"""Effects of the keys that finish a line during a turn, in a long and a short form."""
FULL = f"no room for more than {MOST_LINES} lines or {MOST_CHARACTERS:,} characters: what was typed last was dropped"
_CC = 6
"""Index of the special characters in the result of tcgetattr."""


class TypeAhead:
    """Context manager that reads keys during its block. Has no effect unless stdin is a terminal.

    Enter it in the main thread, because it handles signals; a separate thread reads the keys. Ctrl-C and Ctrl-Z still
    send signals. Ctrl-Z restores the terminal's mode, and `fg` sets it again.
    """

    escape_seconds = 0.05
    """Seconds within which bytes after an Esc belong to it."""
    paste_seconds = 3.0
    """Seconds without input after which an unfinished paste counts as ended."""
    longest_paste_seconds = 20.0
    """Maximum seconds in total to read the rest of a paste before another reader gets the terminal."""

    def __init__(
        self,
        stdin_fd: int,
        *,
        tell: Callable[[str, Sequence[str]], None],
        stop: Callable[[], None],
        escapes: bool = True,
        is_message: Callable[[str], bool] = no_message,
        tab_steers: bool = False,
        times: TypingTimes | None = None,
    ) -> None:
        """Use the terminal at `stdin_fd`. `escapes`: it supports bracketed paste. `times` are shared with other readers.

        The reading thread calls `tell` with the text to show and with hints about the keys, and `stop` when the user
        presses Esc. For `is_message` and `tab_steers` see Typing.
        """
        self._fd = stdin_fd
        self._tell = tell
        self._stop = stop
        self._escapes = escapes
        self._times = times or TypingTimes()
        self._typing = Typing(is_message=is_message, tab_steers=tab_steers, times=self._times)
        self._lock = threading.RLock()
        self._before: list[Any] | None = None
        """The terminal's earlier mode, while it is changed."""
        self._reader: threading.Thread | None = None
        self._wake = -1
        """Descriptor of a pipe to the reading thread. A byte makes it check its state; closing the pipe ends it."""
        self._interval = SWITCH_SECONDS
        self._on_stop: Any = None

    def __enter__(self) -> Self:
        """Start to read keys."""
        if os.isatty(self._fd):
            self._look_after_stops()
            self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop reading, and restore the terminal's mode. Typed text is kept."""
        try:
            self._end()
        finally:
            self._give_terminal()
            self._look_after_no_stops()
            self._tell("", ())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal, in its earlier mode, to a question or another program during the block.

        Earlier typed text stays a draft, and does not answer the question. If it ends with Esc, that still stops the
        turn.
        """
        reads = self._reader is not None
        try:
            stops = self._end()
        finally:
            self._give_terminal()
        with self._lock:
            self._typing.drop_rest_of_answer()
        self._tell("", ())  # next to the keys of a question, typed text would look like an answer
        if stops:
            self._stop()
        try:
            yield
        finally:
            if reads:
                with self._lock:
                    self._typing.begin_after_answer()
                self._begin()
                self._show()

    @contextmanager
    def steering(self) -> Iterator[None]:
        """Let typed messages steer a turn of the model during the block."""
        with self._lock:
            self._typing.steers = True
        try:
            yield
        finally:
            with self._lock:
                self._typing.steers = False

    def take(self) -> str | None:
        """Remove and return the oldest finished line. `None` if there is none."""
        with self._lock:
            return self._typing.take()

    def take_steering(self) -> str | None:
        """Remove and return the oldest message that steers the turn. `None` if there is none."""
        with self._lock:
            line = self._typing.take(steering=True)
        if line is not None:
            self._show()
        return line

    def take_draft(self) -> str:
        """Remove and return the unfinished line."""
        with self._lock:
            return self._typing.take_draft()

    # The terminal

    def _begin(self) -> None:
        self._take_terminal()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        wake, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._reader = threading.Thread(target=self._read, args=(wake,), name="typed-ahead", daemon=True)
        self._reader.start()

    def _end(self) -> bool:
        """End the thread after it has read the rest of a key or paste. Return whether the last key was Esc.

        An interrupt in between does no harm.
        """
        reader, self._reader = self._reader, None
        if reader is None:
            return False
        wake, self._wake = self._wake, -1
        os.close(wake)  # its end of file wakes the thread, which closes the other end
        try:
            reader.join(self.longest_paste_seconds + self.paste_seconds)
        finally:
            sys.setswitchinterval(self._interval)
        with self._lock:
            return Keyed.STOP in self._typing.end_keys()

    def _is_ours(self) -> bool:
        """Return whether this process group is in the foreground (tcgetpgrp(3)). Raises OSError.

        In the background, reading the terminal or setting its mode would stop the process.
        """
        return os.tcgetpgrp(self._fd) == os.getpgrp()

    def _take_terminal(self) -> None:
        """Set the terminal to single keys without echo. Keys still send signals, except SIGQUIT.

        SIGQUIT would end the program without restoring the terminal's mode.
        """
        try:
            with self._lock:
                if not self._is_ours():
                    return
                if self._before is None:
                    self._before = termios.tcgetattr(self._fd)
                keys = single_keys(self._before, Interrupts.SIGNALS)
                keys[_CC][termios.VQUIT] = bytes((os.fpathconf(self._fd, "PC_VDISABLE") & 0xFF,))
                termios.tcsetattr(self._fd, termios.TCSANOW, keys)
                if self._escapes:
                    os.write(self._fd, PASTES.encode())
        except (OSError, termios.error):
            pass  # the terminal has hung up, or cannot be written to; then pastes arrive as lines

    def _give_terminal(self) -> None:
        with self._lock:
            before, self._before = self._before, None
            if before is None:
                return
            try:
                termios.tcsetattr(self._fd, termios.TCSANOW, before)
                if self._escapes:
                    os.write(self._fd, PASTES_NOT.encode())
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
        """Restore the terminal's mode, stop the process as Ctrl-Z does, and resume when the shell continues it."""
        took = self._before is not None
        self._give_terminal()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stopped)
        if took and self._reader is not None:
            self._take_terminal()  # without output, because this signal may have interrupted a write of this thread
            if self._before is None:
                os.write(self._wake, b"\0")

    # The thread that reads

    def _read(self, wake: int) -> None:
        try:
            while self._read_once(wake):
                pass
            self._read_rest()
        except (OSError, ValueError):
            pass  # the terminal has hung up; the program also gets SIGHUP
        finally:
            os.close(wake)

    def _read_once(self, wake: int) -> bool:
        """Wait for keys, and process them. Return whether to continue."""
        if self._before is None and self._is_ours():  # after `bg` and `fg`
            self._take_terminal()
        if self._before is None or not self._is_ours():
            return _goes_on(wake, BACKGROUND_SECONDS)
        typing = self._typing
        wait = self.escape_seconds if typing.in_escape else self.paste_seconds if typing.in_paste else None
        ready, _, _ = select.select([self._fd, wake], [], [], wait)
        if wake in ready:
            return _goes_on(wake, 0)
        if ready and not self._is_ours():
            return True
        raw = read_at_once(self._fd, lambda: os.read(self._fd, MOST_BYTES)) if ready else b""
        if ready and not raw:
            return False
        if ready:
            self._times.type()
        with self._lock:
            came = typing.feed(raw) if ready else typing.end_keys()
        self._show(full=Keyed.DROPPED in came)
        if Keyed.STOP in came:
            self._stop()
        return True

    def _read_rest(self) -> None:
        """Read the rest of an unfinished paste or key, which the next reader would treat as keys."""
        until = time.monotonic() + self.longest_paste_seconds
        while (self._typing.in_paste or self._typing.in_key) and time.monotonic() < until:
            wait = self.paste_seconds if self._typing.in_paste else self.escape_seconds
            if not select.select([self._fd], [], [], wait)[0] or not self._is_ours():
                break
            raw = read_at_once(self._fd, lambda: os.read(self._fd, MOST_BYTES))
            if not raw:
                break
            with self._lock:
                self._typing.feed(raw)

    def _show(self, *, full: bool = False) -> None:
        with self._lock:
            standing = self._typing.standing
        self._tell(*((FULL, ()) if full else (waiting_text(standing), standing.keys)))


def _goes_on(wake: int, seconds: float) -> bool:
    """Wait for `seconds`, or until the pipe `wake` is readable. Return whether to continue: false at its end of file."""
    return not select.select([wake], [], [], seconds)[0] or bool(os.read(wake, MOST_BYTES))


def waiting_text(typed: TypedText) -> str:
    """Return the waiting text in one line: the draft, or the last finished line."""
    if typed.draft:
        waiting = f"({typed.waiting} {AFTER_TURN}) " if typed.waiting else ""
        return f"{waiting}> {typed.draft[-MOST_SHOWN:]}"
    if not typed.waiting:
        return ""
    more = f" (and {typed.waiting - 1} before)" if typed.waiting > 1 else ""
    return f"{WITH_RESULTS if typed.last.steers else AFTER_TURN}{more}: {typed.last.text[:MOST_SHOWN]}"

"""A terminal that is played: the program on a pseudo-terminal, everything it writes drawn by an emulator (pyte).

A thread reads what the program writes; every wait has an end, and says what was on the screen when it came.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyte
from forked import Forked, can_fork
from pyte.screens import Char

ENTER, ESC, TAB, BACKSPACE, SPACE = "\r", "\x1b", "\t", "\x7f", " "
ENTER_KEY, TAB_KEY = "\x1b[13u", "\x1b[9u"
"""Enter and Tab of a keyboard protocol: always a key, also behind text that is read with it."""
CTRL_A, CTRL_C, CTRL_D, CTRL_E, CTRL_J, CTRL_L = "\x01", "\x03", "\x04", "\x05", "\n", "\x0c"
CTRL_R, CTRL_U, CTRL_W, CTRL_X, CTRL_Z, CTRL_BACKSLASH = "\x12", "\x15", "\x17", "\x18", "\x1a", "\x1c"
ALT_ENTER = ESC + ENTER
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END, DELETE, PAGE_UP, PAGE_DOWN, F1 = "\x1b[H", "\x1b[F", "\x1b[3~", "\x1b[5~", "\x1b[6~", "\x1bOP"

SECONDS = 60.0
"""How long anything is waited for, unless a test says otherwise: no test waits so long that goes well."""
SCROLLBACK = 200_000
KEYS_OF_A_QUESTION = re.compile(r"\[n\] no|\bn\b.* \?$")
"""In the line of keys, which is there only while keys count."""

# In a session of its own, with the terminal on stdin as the controlling one (tty_ioctl(4)); then the program itself,
# under the same process id. A process of its own, since a process with threads must not fork in Python.
_LAUNCHER = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


def paste(text: str) -> str:
    """Return what a terminal sends when text is pasted while bracketed paste is on (xterm, "Bracketed Paste Mode")."""
    return f"\x1b[200~{text}\x1b[201~"


def started_at(
    command: Sequence[str],
    terminal: int,
    cwd: str | os.PathLike[str] | None,
    environment: Mapping[str, str] | None,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, on its terminal; the program itself is forked where that comes to the same."""
    options: dict[str, Any] = {
        "stdin": terminal,
        "stdout": terminal,
        "stderr": terminal,
        "cwd": cwd,
        "env": None if environment is None else dict(environment),
        "start_new_session": True,
    }
    is_harness = list(command[:3]) == [sys.executable, "-m", "harness"]
    if is_harness and environment is not None and can_fork(environment, options):
        return Forked(command[2:], **options, controlling_terminal=True)
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", _LAUNCHER, *command], **options)


class Cell(NamedTuple):
    """A character on the screen and how it is drawn, as pyte names it; a wide one is followed by a cell without data."""

    data: str
    fg: str
    bg: str
    bold: bool
    italics: bool
    underscore: bool
    strikethrough: bool
    reverse: bool
    blink: bool


class _Screen(pyte.HistoryScreen):
    """A screen that keeps what scrolls away, and answers the program's questions to the terminal."""

    def __init__(self, columns: int, lines: int, reply: Callable[[str], None]) -> None:
        self._answer = reply
        super().__init__(columns, lines, history=SCROLLBACK, ratio=0.5)

    def write_process_input(self, data: str) -> None:
        """Send what the terminal answers."""
        self._answer(data)


class PlayedTerminal:
    """A program on a pseudo-terminal, and the screen that a person would see. Ends the program when left."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        lines: int = 24,
        cwd: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        before: str = "",
        ahead: str = "",
        draws: bool = True,
    ) -> None:
        """`environment` is the whole of it (the test's own if None); `before` is on the screen before the program starts, and
        `ahead` was typed before.
        Where it does not draw, there is `raw` alone: drawing a megabyte takes seconds."""
        self._draws = draws
        self.screen = _Screen(columns, lines, self._reply)
        self._stream = pyte.ByteStream(self.screen)
        self._raw = bytearray()
        self._scrolled: list[str] = []
        self._changed = threading.Condition(threading.RLock())
        self._ended = False
        self._problem: BaseException | None = None
        self._stream.feed(before.replace("\n", "\r\n").encode())
        self._fd, slave = os.openpty()
        self._wake, self._waker = os.pipe()
        try:
            self._set_size(columns, lines)
            os.set_blocking(self._fd, False)
            os.write(self._fd, ahead.encode())
            self.mode_before = self.mode()
            """How the terminal was set before the program started."""
            self._process = started_at(command, slave, cwd, environment)
        finally:
            os.close(slave)
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What is there.

    @property
    def raw(self) -> bytes:
        """Everything that the program wrote."""
        with self._changed:
            return bytes(self._raw)

    def display(self) -> list[str]:
        """Return the rows of the screen, without blanks at their ends."""
        with self._changed:
            return [self._row(self.screen.buffer[y]) for y in range(self.screen.lines)]

    def scrollback(self) -> list[str]:
        """Return the rows that left the screen at its top, the oldest first."""
        with self._changed:
            top = self.screen.history.top
            if len(top) < len(self._scrolled):
                self._scrolled.clear()
            self._scrolled.extend(self._row(line) for line in islice(top, len(self._scrolled), None))
            return list(self._scrolled)

    def rows(self) -> list[str]:
        """Return scrollback and screen, without the empty rows at the end."""
        with self._changed:
            rows = self.scrollback() + self.display()
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def text(self) -> str:
        """Return scrollback and screen as text."""
        return "\n".join(self.rows())

    def unwrapped(self) -> str:
        """Return scrollback and screen, rows that are full joined with the next: what was wrapped at the width."""
        columns = self.screen.columns
        return "".join(row if len(row) >= columns else f"{row}\n" for row in self.rows())

    def cells(self, text: str) -> list[Cell]:
        """Return the cells of the last place on the screen where `text` stands, all on one row."""
        with self._changed:
            for y in reversed(range(self.screen.lines)):
                line = [Cell(*self.screen.buffer[y][x]) for x in range(self.screen.columns)]
                starts, row = [], ""
                for x, cell in enumerate(line):
                    starts += [x] * len(cell.data)
                    row += cell.data
                at = row.rfind(text)
                if at >= 0:
                    return line[starts[at] : starts[at + len(text) - 1] + 1]
        raise AssertionError(self._told(f"{text!r} is not on the screen"))

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, from 0."""
        with self._changed:
            return self.screen.cursor.y, self.screen.cursor.x

    def cursor_row(self) -> str:
        """Return the row that the cursor stands in, without blanks at its end."""
        with self._changed:
            return self._row(self.screen.buffer[self.screen.cursor.y])

    def before_cursor(self) -> str:
        """Return what stands before the cursor in its row."""
        with self._changed:
            line = self.screen.buffer[self.screen.cursor.y]
            return "".join(line[x].data for x in range(self.screen.cursor.x))

    def mode(self) -> list[Any]:
        """Return how the terminal is set, as tcgetattr(3) tells."""
        return termios.tcgetattr(self._fd)

    @property
    def ended(self) -> bool:
        """Whether nobody has the terminal open any more."""
        with self._changed:
            return self._ended

    # What a person does.

    def send(self, keys: str, *, seconds: float = SECONDS) -> None:
        """Press keys: all of them at once, as fast as the terminal takes them."""
        self._write(keys.encode("utf-8", "surrogateescape"), time.monotonic() + seconds)

    def send_words(self, behind: str, text: str) -> None:
        """Type behind a prompt, each key once the one before it is shown: what is read at once could be a paste.

        Blanks come together with the key behind them: alone at the end of a row they do not show.
        """
        self.wait_until(lambda: self.before_cursor().rstrip().endswith(behind.rstrip()), f"no prompt {behind!r}")
        typed = behind
        for keys in re.findall(r"\s*\S", text):
            self.send(keys)
            typed += keys
            self.wait_until(lambda typed=typed: self.before_cursor().endswith(typed), f"{typed!r} is not shown")  # type: ignore[misc]

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the window; the program gets SIGWINCH."""
        with self._changed:
            self.screen.resize(lines, columns)
        self._set_size(columns, lines)

    def hang_up(self) -> None:
        """Close the terminal, as when its window is closed: the program gets SIGHUP, and reads the end of its input."""
        self._stop_reading()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def signal(self, number: int) -> None:
        """Send the program a signal."""
        self._process.send_signal(number)

    def stop(self) -> None:
        """Stop the program (SIGSTOP), and wait until it has stopped; SIGCONT continues it."""
        self.signal(signal.SIGSTOP)
        end = time.monotonic() + SECONDS
        while not self._is_stopped():
            assert time.monotonic() < end, "it does not stop"
            time.sleep(0.001)

    # Waiting.

    def wait_for(self, text: str, *, seconds: float = SECONDS) -> None:
        """Wait until `text` stands on the screen or in what scrolled away, also where the width wrapped it."""
        self.wait_until(lambda: text in self.text() or text in self.unwrapped(), f"{text!r} did not come", seconds)

    def wait_gone(self, text: str, *, seconds: float = SECONDS) -> None:
        """Wait until `text` stands nowhere on the screen; what scrolled away stays where it is."""
        self.wait_until(lambda: text not in "\n".join(self.display()), f"{text!r} did not go", seconds)

    def wait_count(self, text: str, count: int, *, seconds: float = SECONDS) -> None:
        """Wait until `text` came at least `count` times."""
        self.wait_until(lambda: self.unwrapped().count(text) >= count, f"{text!r} did not come {count} times", seconds)

    def questions(self, tool: str) -> int:
        """Return how many questions of `tool` were put so far: an answered one is taken from the screen."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", self.raw.decode("utf-8", "replace"))
        return len(re.findall(rf"(?:─|-){{2}} {tool} asks", text))

    def wait_question(self, tool: str, count: int = 1, *, seconds: float = SECONDS) -> None:
        """Wait until `tool` has asked for the `count`th time."""
        self.wait_until(lambda: self.questions(tool) >= count, f"{tool} did not ask {count} times", seconds)

    def wait_keys(self, *, since: int = -1) -> None:
        """Wait until a question takes keys: it shows them only then; and, if it is said, until it wrote more than so much."""
        self.wait_until(
            lambda: len(self._raw) > since and KEYS_OF_A_QUESTION.search(self.cursor_row()) is not None, "no keys"
        )

    def wait_until(self, there: Callable[[], bool], otherwise: str, seconds: float = SECONDS) -> None:
        """Wait until `there()`; what is never there, or not before the program ended, fails with `otherwise`."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                began = time.monotonic()
                if there():
                    return
                if self._problem is not None:
                    raise AssertionError(self._told("the emulator failed")) from self._problem
                left = end - time.monotonic()
                if self._ended or left <= 0:
                    raise AssertionError(
                        self._told(f"{otherwise} in {seconds} s" if left <= 0 else f"{otherwise}: ended")
                    )
                looked = time.monotonic() - began
                self._changed.wait(min(left, 0.5))
                # While much is written, looking takes a part of the time only: what is drawn meanwhile is looked at together.
                self._changed.wait_for(lambda: self._ended, min(left, 3 * looked))

    def exit_code(self, *, seconds: float = SECONDS) -> int:
        """Wait for the end of the program and return its exit code; of a signal, its negative number."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self._told(f"it did not end in {seconds} s")) from None
        self._take()  # what it wrote last; a child that it left may hold the terminal open
        if self._problem is not None:
            raise AssertionError(self._told("the emulator failed")) from self._problem
        return code

    def close(self) -> None:
        """End the program and what it started in its process group, and close the terminal."""
        if self._process.poll() is None:
            for group in {self.pid, self._foreground()}:
                try:
                    os.killpg(group, signal.SIGKILL)
                except OSError:
                    pass
            self._process.kill()
            self._process.wait(SECONDS)
        self.hang_up()
        for number in (self._wake, self._waker):
            if number >= 0:
                os.close(number)
        self._wake = self._waker = -1

    # How it is done.

    def _is_stopped(self) -> bool:
        with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def _foreground(self) -> int:
        """Return the process group in the foreground, if it is one of this terminal."""
        try:
            (group,) = struct.unpack("i", fcntl.ioctl(self._fd, termios.TIOCGPGRP, b"\0" * 4))
        except (OSError, ValueError):
            return self.pid
        return int(group) if group > 1 else self.pid

    def _row(self, line: Mapping[int, Char]) -> str:
        return "".join(line[x].data for x in range(self.screen.columns)).rstrip(" ")

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _reply(self, text: str) -> None:
        """Answer a question to the terminal, such as where the cursor is."""
        try:
            os.write(self._fd, text.encode())
        except OSError:
            pass

    def _write(self, data: bytes, end: float) -> None:
        while data:
            _, ready, _ = select.select([], [self._fd], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(self._told("the terminal takes no keys"))
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                time.sleep(0.005)

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._fd, self._wake], [], [])
            if self._wake in ready or not self._take():
                break
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self) -> bool:
        """Draw what has been written; return whether more can come."""
        with self._changed:
            while True:
                try:
                    data = os.read(self._fd, 65536)
                except BlockingIOError:
                    return True
                except OSError:  # EIO: the last process that had the terminal open is gone
                    return False
                if not data:
                    return False
                self._raw += data
                try:
                    if self._draws:
                        self._stream.feed(data)
                except Exception as error:  # noqa: BLE001 - told to whoever waits
                    self._problem = error
                self._changed.notify_all()

    def _stop_reading(self) -> None:
        if self._reader.is_alive():
            os.write(self._waker, b"x")
            self._reader.join(SECONDS)

    def _told(self, problem: str) -> str:
        rows = "\n".join(f"  |{row}" for row in self.rows()[-60:])
        return f"{problem}; the screen ({self.screen.columns} columns):\n{rows}\nlast bytes: {self.raw[-400:]!r}"

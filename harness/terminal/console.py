"""Console: all output to terminals and pipes goes through this module, which makes it safe to show."""

from __future__ import annotations

import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.record import Record
from harness.system import poll_for
from harness.terminal.row_text import toned, toned_rows
from harness.terminal.styles import SIXTEEN, Line, Palette, Tone, palette_of
from harness.text.visible import visible, visible_line

if TYPE_CHECKING:
    from harness.log.order import LogRecord
    from harness.redaction.redactor import Redactor
    from harness.redaction.stream import RedactedStream
    from harness.session.config.settings import TerminalSettings
    from harness.terminal.tables import Table
    from harness.terminal.trace import Tracer


def complain(text: str) -> None:
    """Write one line to stderr, safe to show, at most 5,000 characters. Has no effect without stderr."""
    try:
        message, width = f"harness: {visible_line(text, 5_000)}", columns_of(sys.stderr)
        rows = toned_rows(message, Tone.PLAIN, width) if width else [message]
        sys.stderr.write("".join(f"{row}\n" for row in rows))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def own_streams() -> tuple[int, int]:
    """Return private copies of stdin and stdout, and replace the originals.

    Afterwards, other writes to stdout go to stderr, and other reads from stdin return end of file.
    """
    source, target = (os.dup(descriptor) for descriptor in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, target


class Look(Record):
    """The way to draw on a terminal."""

    colour: bool = False
    palette: Palette = SIXTEEN
    """The colours to use if `colour` is true."""
    ascii: bool = False
    """Whether to draw with ASCII only: because the user wants it, or the stream's encoding lacks other signs."""
    repaints: bool = False
    """Whether lines may be overwritten. False for TERM=dumb, for a screen reader, and without a terminal."""
    spoken: bool = False
    """Whether a screen reader reads the output. Then only words are drawn, and the start of each call is announced."""

    @property
    def colours(self) -> Palette | None:
        """The colours to draw with, if any."""
        return self.palette if self.colour else None


def look_of(
    stream: TextIO,
    environment: Mapping[str, str],
    *,
    ascii_only: bool = False,
    screen_reader: bool = False,
    theme: str = "auto",
) -> Look:
    """Return the way to draw on `stream`: with colour unless NO_COLOR is set (https://no-color.org).

    Escapes are used only on a terminal whose TERM supports them.
    """
    capable = stream.isatty() and environment.get("TERM", "") not in ("", "dumb")
    return Look(
        colour=capable and theme != "none" and not environment.get("NO_COLOR"),
        palette=palette_of(theme, environment),
        ascii=ascii_only or not _has_lines(stream),
        repaints=capable and not screen_reader,
        spoken=screen_reader,
    )


def look_from(terminal: TerminalSettings, environment: Mapping[str, str]) -> Look:
    """Return the way to draw on the terminal of this process, as its user configured it."""
    return _look_on(sys.stdout, terminal, environment)


def _look_on(stream: TextIO, terminal: TerminalSettings, environment: Mapping[str, str]) -> Look:
    return look_of(
        stream,
        environment,
        ascii_only=terminal.ascii.value,
        screen_reader=terminal.screen_reader.value,
        theme=terminal.theme.value,
    )


def columns_of(stream: TextIO) -> int:
    """Return the present width of the terminal behind a stream; 0 without one."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 0


def look_here(stream: TextIO, environment: Mapping[str, str]) -> Look:
    """Return the way to draw finished output on `stream`: on a terminal as its user configured it."""
    if not stream.isatty():
        return look_of(stream, environment)

    from harness.session.config.settings import settings_from

    try:
        terminal = settings_from(Namespace(), environment, None).terminal
    except (OSError, UsageError):
        return look_of(stream, environment)  # errors in the settings are reported elsewhere
    return _look_on(stream, terminal, environment)


def _has_lines(stream: TextIO) -> bool:
    try:
        "─…".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


LIVE_SECONDS = 2.0
"""Minimum seconds between two lines shown for a running command, and before the first."""
LIVE_CONTEXT = 8_192
"""Characters of earlier output that are kept to find secrets in later output: a private key has many lines."""

PIECE, PATIENCE_MS = 500, 10_000
"""Characters written at once to a non-blocking pipe, and the maximum wait for room in it, in milliseconds.

Even as escapes, a piece has fewer bytes than a pipe takes at once (PIPE_BUF, pipe(7)).
"""

COUNTDOWN, COUNTDOWN_WIDTH = "again in {} s (Ctrl-C stops)", 40
"""Text of the countdown, and its width in cells. It overwrites itself with blanks, so that it needs no escapes."""


class _Ending(Record):
    """An error that may end the run. It is not shown if the line about the end contains it."""

    message: JsonValue
    line: Line


def passing_seconds(
    seconds: float, monotonic: Callable[[], float], sleep: Callable[[float], None], *, one_by_one: bool
) -> Iterator[int]:
    """Wait for some seconds. Before each sleep, yield the remaining number, rounded up.

    With `one_by_one`, each sleep ends when that number changes; otherwise one sleep lasts to the end.
    """
    end = monotonic() + seconds
    while (remaining := end - monotonic()) > 0:
        whole_seconds = math.ceil(remaining)
        yield whole_seconds
        sleep(remaining - (whole_seconds - 1) if one_by_one else remaining)


class Console:
    """Writes streamed text and trace lines in order, each on a new line.

    A redactor masks secrets in the text of the model and of running commands, even if they arrive in pieces. Trace lines
    show records of the log, which are already redacted. Questions to the user are shown unmasked.
    """

    _is_short = False
    _lists_files = False
    """Whether the lines of calls have their short form, see `call_line`."""

    def __init__(self, stream: TextIO, look: Look, *, redactor: Redactor | None = None) -> None:
        self.look = look
        self._redactor = redactor
        self._text = _stream_of(redactor) if redactor else None
        self._stream = stream
        self._at_line_start = True
        self._in_text = False
        self.broken = False
        """Whether writing failed because the reader of the output is gone."""
        self._ending: _Ending | None = None
        self._live_at = 0.0
        self._printed = ""

    @cached_property
    def _tracer(self) -> Tracer:
        from harness.terminal.trace import Tracer  # late, because most commands show no records

        return Tracer(short=self._is_short, lists_files=self._lists_files)

    def text(self, delta: str) -> None:
        """Write a piece of the model's text as it arrives. With a redactor, words are held back until complete."""
        self._write_text(self._text.feed(delta) if self._text else delta)

    def end_text(self) -> None:
        """Write the text that was held back, and end an open line of streamed text."""
        if self._text:
            self._write_text(self._text.finish())
        self._in_text = False
        if not self._at_line_start:
            self._write("\n")

    def line(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write one or more complete lines."""
        look, width = self.look, self.width
        if width:
            lines = visible(text).split("\n")
            rows = (toned_rows(line, tone, width, look.colours) for line in lines)
            self._finished([row for of_line in rows for row in of_line])
        else:
            self._finished([toned(visible(text), tone, look.colours)])

    @property
    def width(self) -> int:
        """Present width of the terminal in columns; 0 without a terminal."""
        return columns_of(self._stream)

    def table(self, table: Table) -> None:
        """Write a table: drawn on a terminal, and in plain columns otherwise."""
        from harness.terminal.tables import drawn, plain  # late, because most output has no tables

        self._finished(drawn(table, self.look, self.width) if self.width else list(plain(table)))

    def _finished(self, rows: Sequence[str]) -> None:
        """Write rows that are already drawn and safe to show."""
        self.end_text()
        self._write("".join(f"{row}\n" for row in rows))

    def live(self, printed: str) -> None:
        """Show the last line that a running command printed, at most every two seconds, as a sign of progress."""
        now = time.monotonic()
        before, self._printed = self._printed, (self._printed + printed)[-LIVE_CONTEXT:]
        if now < self._live_at or not printed.strip():
            return
        text = self._redactor.redact(before + printed) if self._redactor else printed
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        self._live_at = now + LIVE_SECONDS
        self.line(f"  | {visible_line(last, 100)}", Tone.QUIET)

    def countdown(
        self,
        seconds: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait for some seconds before a request is repeated. On a terminal, a temporary line counts them down.

        An interrupt ends the wait at once: KeyboardInterrupt passes through.
        """
        shows = seconds >= 1 and self._stream.isatty()
        if shows:
            self.end_text()
        try:
            for remaining in passing_seconds(seconds, monotonic, sleep, one_by_one=shows):
                if shows:
                    self._write(f"\r{COUNTDOWN.format(remaining):<{COUNTDOWN_WIDTH}}")
        finally:
            if shows:
                self._write(f"\r{'':{COUNTDOWN_WIDTH}}\r")
                self._at_line_start = True

    def record(self, record: LogRecord) -> None:
        """Write the trace line for a record of the log, if it has one."""
        if record["kind"] == "intent":
            self._live_at = time.monotonic() + LIVE_SECONDS
            self._printed = ""
        ending, self._ending = self._ending, None
        if ending is not None and not (record["kind"] == "session_ended" and record.get("detail") == ending.message):
            self.line(ending.line.text, ending.line.tone)
        line = self._tracer.line(record)
        if line is not None and record["kind"] == "error" and "retry_seconds" not in record:
            self._ending = _Ending(message=record.get("message"), line=line)
        elif line is not None:
            self.line(line.text, line.tone)
            if line.command:
                self.line(f"  {line.command}", line.tone)

    def give_up(self) -> None:
        """Discard all further output, because its reader is gone. The run continues, and is recorded in the log."""
        self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
        self.broken = True

    def _write_text(self, text: str) -> None:
        if text:
            if not self._in_text:
                self._write("\n")
            self._in_text = True
            self._write(visible(text))

    def _write(self, text: str) -> None:
        try:
            self._send(text)
        except (OSError, ValueError):
            self.give_up()
        self._at_line_start = text.endswith("\n")

    def _send(self, text: str) -> None:
        for piece in _writable(self._stream, text):
            self._stream.write(piece)
            self._stream.flush()


class FinishedOutput(Console):
    """Stdout for the finished output of a command. On a terminal, its user's settings apply.

    If writing fails, every method raises OSError, which ends the command: `main` reports it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(sys.stdout, look_here(sys.stdout, environment))

    def _write(self, text: str) -> None:
        self._send(text)
        self._at_line_start = text.endswith("\n")


def _writable(stream: TextIO, text: str) -> Iterator[str]:
    """Yield `text`. For a non-blocking stream, yield it in pieces, each when the stream has room.

    A parent process (Node, some agents) may have made the pipe non-blocking, since that flag belongs to the pipe.
    Without the wait, a full pipe would look like one without a reader. Each wait ends after PATIENCE_MS.
    """
    descriptor = _unwaiting(stream)
    if descriptor is None:
        yield text
        return
    import select

    writable = poll_for(descriptor)
    writable.register(descriptor, select.POLLOUT)
    for start in range(0, len(text), PIECE):
        writable.poll(PATIENCE_MS)
        yield text[start : start + PIECE]


def _unwaiting(stream: TextIO) -> int | None:
    """Return the descriptor of a non-blocking stream, or `None` for other streams."""
    try:
        descriptor = stream.fileno()
        return None if os.get_blocking(descriptor) else descriptor
    except (OSError, ValueError):  # the stream has no descriptor
        return None


def _stream_of(redactor: Redactor) -> RedactedStream:
    from harness.redaction.stream import RedactedStream  # late, because commands without a model do not need it

    return RedactedStream(redactor)

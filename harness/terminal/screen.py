"""The screen of a session. It only grows, but for one line at the end that is written over. Column 1 is the harness's own."""

from __future__ import annotations

import os
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, TextIO

from harness.log.order import LogRecord
from harness.record import replace
from harness.regex import regex
from harness.terminal.activity import BAR, TURNS_A_SECOND, Activity, Ticker, composed, shown_line, spinner
from harness.terminal.console import COUNTDOWN, LIVE_SECONDS, Console, Look, passing_seconds
from harness.terminal.row_text import WRAPPED, Row, Tint, cells, drawn, fitted, narrowed, toned, toned_rows
from harness.terminal.styles import Ink, Tone, signs
from harness.text.amounts import elapsed
from harness.text.visible import visible, visible_line

if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor
    from harness.terminal.markdown_stream import Markdown

ERASE = "\r\x1b[K"
TAKE_BACK = "\r\x1b[{}A\x1b[J"
"""Go up so many rows, and erase from there to the end of the screen (ECMA-48: CUU, ED)."""
_KEY = regex(r"\[[^\[\]\s]{1,5}\]")
"""A key, as the line of keys names it."""
TEXT_SECONDS = 0.01
"""Pieces of text that come within this time are taken in together."""
MOST_PIECES = 1_024
"""Taken in together at most: a key that was pressed is shown before the next ones."""
LOCK_SECONDS = 0.004
"""Between two looks whether what was typed is shown, where another thread is writing."""
PAINT_SECONDS = 0.05
"""Between two looks of the line that is written over, unless a key was pressed."""
STILL_SECONDS = 10.0
"""Seconds between two lines about continuing work, on a terminal without overwriting."""
LEAST_WIDTH, WIDEST_RULE = 8, 120
"""Widths in cells: output fits a terminal as narrow as the first; a rule is at most as wide as the second."""
LEAST_TEXT_WIDTH = 20
"""Minimum width of drawn Markdown (`markdown_stream.LEAST_WIDTH`). On a narrower terminal it is broken again."""


DEFAULT_SIZE = (80, 24)
UNBROKEN = (100_000, 24)
"""Size of a file or a pipe, whose readers want unbroken lines."""


class Notices(Enum):
    """The notification about a waiting question."""

    BELL = "bell"
    OSC9 = "osc9"
    """A notice of the desktop (iTerm2 and kin: OSC 9), where the terminal knows them."""
    OFF = "off"


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return columns and lines of the terminal behind a stream, asked each time: it may be resized (tty_ioctl(4))."""
    if not stream.isatty():
        return UNBROKEN
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return DEFAULT_SIZE
    return (size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1])


def encodable_for(stream: TextIO) -> Callable[[str], str]:
    """Return a function that makes a text encodable by the stream: its own escapes would be wider than counted."""
    encoding = (stream.encoding or "utf-8").lower()  # a text in memory has none, and holds everything
    if encoding.startswith("utf"):
        return lambda text: text
    return lambda text: text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)


class Screen(Console):
    """The output of a session, in order, each thing beginning on a line of its own.

    Every method may be called from any thread. The model's text is Markdown, indented, with a sign in column 1 at its
    first line; all other text in column 1 is the harness's. INVARIANT: outside of one write, the cursor is at the
    beginning of an empty line, or at the end of the overwritable line.
    """

    def __init__(
        self,
        stream: TextIO,
        look: Look,
        *,
        redactor: Redactor | None = None,
        size: Callable[[], tuple[int, int]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        notices: Notices = Notices.BELL,
        way_to_output: str = "",
        way_to_stop: str = "",
    ) -> None:
        """Take the stream and its look, the redactor, a function that returns the terminal's size, and the names of
        the command that shows all output and of the key that stops a turn.
        """
        super().__init__(stream, look, redactor=redactor)
        self._signs = signs(ascii_only=look.ascii)
        self._size = size or (lambda: terminal_size(stream))
        self._monotonic = monotonic
        self._notices = notices
        self._lock = threading.RLock()
        self._columns = DEFAULT_SIZE[0]
        """The width that the text is being fitted to: asked for with every few lines of it."""
        self._pieces: list[str] = []
        self._characters = 0
        self._due = 0.0
        self._activity = Activity(redactor, way_to_output, way_to_stop)
        self._ticker = Ticker(1 / TURNS_A_SECOND, self._tick)
        self._note = ""
        self._typed_numbers = count(1)
        self._typed, self._typed_shown = (0, ""), 0
        """The person's typed text with its number, and the number of the shown one."""
        self._open = False
        """Whether the overwritable line may hold text."""
        self._is_held = True
        """Whether that line stays empty: a question or a prompt has the terminal."""
        self._painted_at = self._still_at = 0.0
        self._painted = ""
        self._signed = False
        """Whether the first line of the text that is open was written."""
        self._passing, self._passing_size = 0, DEFAULT_SIZE
        """Number of temporary rows at the end, and the terminal's size when they were written."""
        self._gone_rows = 0
        """Number of those that have left the screen at the top."""
        self.keeps = 0
        """Number of times at which temporary rows became permanent: they may be out of sight since."""
        self._encodable = encodable_for(stream)

    @property
    def width(self) -> int:
        """Columns of the terminal now."""
        return max(LEAST_WIDTH, self._size()[0])

    @property
    def height(self) -> int:
        """Lines of the terminal now."""
        return max(1, self._size()[1])

    @cached_property
    def _markdown(self) -> Markdown:
        from harness.terminal.markdown_stream import (
            Markdown,  # with rich, which is not needed before the first answer
        )

        look = self.look
        return Markdown(lambda: self._columns, look.colours, ascii_only=look.ascii)

    # What is written for good

    def text(self, delta: str) -> None:
        """Take in a piece of the model's text: each block is written when it is finished, prose and code by the line."""
        # Without the lock, and not each piece by itself: 200,000 of them must cost no more than writing them would.
        pieces = self._pieces
        pieces.append(delta)
        if len(pieces) >= MOST_PIECES or self._monotonic() >= self._due:
            with self._lock:
                self._is_held = False
                self._take_in()

    def end_text(self) -> None:
        """Write the rest of the model's text."""
        with self._lock:
            if not (self._pieces or self._in_text):
                return
            self._take_in()
            rest = self._text.finish() if self._text else ""
            self._columns = self.width
            self._show_text(self._markdown.feed(self._encodable(rest)) + self._markdown.finish())
            self._in_text = self._signed = False
            self._characters = 0

    def line(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write one or more whole lines; what does not fit goes on in an indented one."""
        self._lines([(line, tone) for line in visible(text).split("\n")])

    def rows(self, rows: Sequence[Row]) -> None:
        """Write rows, which are safe to show, in their colours; where there is less room than they were made for, without."""
        with self._lock:
            self.end_text()
            self._print([line for row in rows for line in self._row(row)])

    def unbroken(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write one line that is the terminal's to wrap, so that its path or command can be copied: of our own making alone."""
        with self._lock:
            self.end_text()
            self._print([self._toned(visible_line(text, 5_000), tone)])

    def diff(self, text: str, path: str) -> None:
        """Write the difference of a file of that name."""
        from harness.terminal.diff_drawing import diff_rows  # with lexers, which few lines need

        self.rows(tuple(diff_rows(text, path, self.width)))

    def rule(self, title: str) -> None:
        """Write a line across the terminal with a title in it."""
        self.rows((self._titled(title),))

    def _titled(self, title: str) -> Row:
        if self.look.spoken:
            return Row(text=fitted(visible_line(title, 1_000), self.width))
        sign, width = self._signs.rule, min(self.width, WIDEST_RULE)
        heading = fitted(f"{sign * 2} {visible_line(title, 200)}", width - 3)
        text = f"{heading} {sign * max(0, width - 1 - cells(heading))}"
        rules = Tint(0, 2, Tone.QUIET), Tint(len(heading), len(text), Tone.QUIET)
        return Row(text=text, tints=(*rules, Tint(3, len(heading), Ink.STRONG)))

    def passing(self, rows: Sequence[Row], *, title: str | None = None) -> None:
        """Write rows that `take_back` erases again, below a line across the terminal if a title is given: a question."""
        with self._lock:
            self.end_text()
            size = (self.width, self.height)
            above, scrolled = (
                (self._passing, self._gone_rows) if size == self._passing_size and self._passing else (0, 0)
            )
            above_them = ["", *self._row(self._titled(title))] if title is not None else []
            lines = [*above_them, *(line for row in rows for line in self._row(row))]
            self._print(lines)
            self._passing, self._passing_size = above + len(lines), size
            self._gone_rows = max(scrolled, self._passing - (size[1] - 1))

    def keep(self) -> None:
        """Make all rows permanent, since their place on the screen is no longer known."""
        with self._lock:
            self._passing = 0
            self.keeps += 1

    @property
    def passing_rows(self) -> int:
        """Number of temporary rows at the end."""
        return self._passing

    def take_back(self, to: int = 0) -> bool:
        """Erase the temporary rows after the first `to`, as far as they are on the screen as written; return whether
        all are gone.

        INVARIANT: rows above them are never erased. Other output since, or a changed size, leaves them; and if a row
        took more room than counted, the topmost ones stay.
        """
        with self._lock:
            passing = self._passing
            erases = (
                self.look.repaints and self._passing_size == (self.width, self.height) and (to or not self._gone_rows)
            )
            count = max(0, passing - max(to, self._gone_rows)) if erases else 0
            self._passing = passing - count if to else 0
            self.settle()
            if count:
                self._put(TAKE_BACK.format(count))
                self._open = False
            return passing - count <= to

    def live(self, printed: str) -> None:
        """Show output of a running command: its first lines, then its latest in the overwritable line."""
        with self._lock:
            output = self._activity.output
            if output is None:
                return
            lines = output.feed(printed)
            if self.look.repaints or lines:
                self._print_shown(self._outputs(lines))
            elif self._monotonic() >= self._live_at and output.last:
                self._live_at = self._monotonic() + LIVE_SECONDS
                self._lines([(shown_line(output.last, self.width), Tone.QUIET)])

    def countdown(
        self,
        seconds: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait for some seconds before a request is sent again, with a countdown.

        An interrupt ends it at once: KeyboardInterrupt passes through.
        """
        if seconds >= 1 and not self.look.repaints:
            self.line(COUNTDOWN.format(round(seconds)), Tone.QUIET)
        try:
            for remaining in passing_seconds(seconds, monotonic, sleep, one_by_one=self.look.repaints):
                if seconds >= 1:
                    self.transient(COUNTDOWN.format(remaining))
        finally:
            self.transient("")

    def record(self, record: LogRecord) -> None:
        """Write the line of the trace for a record of the log, if it has one, and show what it says has begun."""
        with self._lock:
            now = self._monotonic()
            if record["kind"] == "model_response":
                self.end_text()
            if record["kind"] == "intent":
                self._live_at = now + LIVE_SECONDS
            unshown = self._activity.take_in(record, now)
            if record["kind"] == "intent" and self.look.spoken and (call := self._activity.command):
                self.line(f"running: {call}", Tone.QUIET)
            self._print(self._outputs(unshown.first))
            if unshown.more:
                self._print(self._rows(f"{BAR}{unshown.more}", Tone.QUIET))
            self._print(self._outputs(unshown.last))
            # What the model said is on the screen already, as it streamed.
            line = self._tracer.line(record)
            if record["kind"] == "model_response" and not self._tracer.is_of_helper(record):
                line = None
            if line is not None:
                self.line(line.text, line.tone)
            if self._activity.goes_on:
                self._still_at = now + STILL_SECONDS
                self._is_held = False
                self._ticker.start()
            else:
                self._ticker.stop()
            self._paint()

    # The line that is written over

    def transient(self, text: str) -> None:
        """Show a line until the next one, `settle`, or an empty one. No effect if lines are not overwritten."""
        with self._lock:
            self._note = visible_line(text, 1_000)
            self._is_held = self._is_held and not text
            self._paint()

    def queued(self, text: str) -> None:
        """Show the person's typed text during work; if lines are not overwritten, only finished ones."""
        before = self._typed[1]
        number, _ = self._typed = (next(self._typed_numbers), visible_line(text, 1_000))
        if threading.current_thread() is threading.main_thread():  # it may be interrupted: `with` leaves no lock behind
            with self._lock:
                self._show_typed(before)
            return
        # Whoever holds the lock (a flood of output takes it again and again) shows it too, at the end of what it does.
        while not self._lock.acquire(timeout=LOCK_SECONDS):
            if self._typed_shown >= number:
                return
        try:
            self._show_typed(before)
        finally:
            self._lock.release()

    def _show_typed(self, before: str) -> None:
        if self.look.repaints:
            self._is_held = self._is_held and not self._typed[1]
            self._paint()
        elif (typed := self._typed[1]).startswith("queued") and typed != before:
            self.line(typed, Tone.QUIET)

    def settle(self) -> None:
        """Finish what is open and leave an empty line: what comes next has the terminal for itself."""
        with self._lock:
            self.end_text()
            self._activity.stop()
            self._ticker.stop()
            self._note = ""
            self._is_held = True
            self._open = self.look.repaints  # what the terminal itself echoed, before it was ours, goes as well
            self._paint()

    def notify(self, title: str) -> None:
        """Call the person, by a bell or a notice with `title`, as they wish."""
        if self._notices is Notices.OFF or not self._stream.isatty():
            return
        with self._lock:
            shows = self._notices is Notices.OSC9 and self.look.repaints
            # OSC 9 ends at BEL; `visible` leaves no control character in the title.
            self._put(f"\x1b]9;{self._encodable(visible_line(title, 100))}\x07" if shows else "\x07")

    def to_clipboard(self, data: bytes) -> bool:
        """Hand `data` to the terminal for its clipboard (OSC 52; xterm, "Control Sequences"); return whether it was sent:
        none is to a terminal that knows no escapes."""
        if not self.look.repaints:
            return False

        with self._lock:
            self._put(f"\x1b]52;c;{b64encode(data).decode()}\x07")
        return True

    # How it is done

    def _take_in(self) -> None:
        """Take in the pieces that came: text that is finished is written."""
        self._columns = self.width
        count = len(self._pieces)
        text = "".join(self._pieces[:count])
        del self._pieces[:count]  # what another thread adds meanwhile stays
        self._characters += len(text)
        self._in_text = self._in_text or bool(text)
        if self._text:
            text = self._text.feed(text)
        self._show_text(self._markdown.feed(self._encodable(text)))
        self._due = self._monotonic() + TEXT_SECONDS

    def _show_text(self, lines: list[str]) -> None:
        if lines and not self._signed:
            self._signed = True
            sign = " " if self.look.spoken else self._signs.answer
            lines = ["", sign + lines[0][1:], *lines[1:]]
        self._print_shown(lines if self._columns >= LEAST_TEXT_WIDTH else list(narrowed(lines, self._columns)))

    def _print_shown(self, lines: list[str]) -> None:
        """Write lines for good, or else, not too often, the line that is written over."""
        if lines:
            self._print(lines)
        elif self._typed_shown < self._typed[0] or self._monotonic() >= self._painted_at + PAINT_SECONDS:
            self._paint()

    def _lines(self, lines: Sequence[tuple[str, Tone]]) -> None:
        with self._lock:
            self.end_text()
            self._print([row for line, tone in lines for row in self._rows(line, tone)])

    def _finished(self, rows: Sequence[str]) -> None:
        with self._lock:
            self.end_text()
            self._print([self._encodable(row) for row in rows])

    def _outputs(self, lines: Sequence[str]) -> list[str]:
        """Return lines of a command's output as they are shown."""
        return [self._toned(shown_line(line, self.width), Tone.QUIET) for line in lines]

    def _rows(self, line: str, tone: Tone) -> list[str]:
        return toned_rows(self._encodable(line), tone, self.width, self.look.colours)

    def _row(self, row: Row) -> list[str]:
        if self.look.ascii:
            blanks = len(row.text) - len(row.text.lstrip(" "))
            if row.text.startswith(WRAPPED, blanks):
                row = replace(row, text=f"{row.text[:blanks]}{self._signs.broken}{row.text[blanks + len(WRAPPED) :]}")
        if self._encodable(row.text) != row.text or cells(row.text) > self.width:
            return self._rows(row.text, row.tone)
        return [drawn(row, self.look.colours)]

    def _toned(self, text: str, tone: Tone) -> str:
        return toned(self._encodable(text), tone, self.look.colours)

    def _print(self, lines: Sequence[str]) -> None:
        """Write lines for good, and the line that is written over below them, in one write."""
        self._passing = 0 if lines else self._passing
        if lines:
            self._put("\n".join((*lines, "")) + self._composed())

    def _paint(self) -> None:
        """Write the one line over, if it is to look otherwise."""
        before = self._painted
        line = self._composed()
        if line != before or not line:
            self._put(_KEY.sub("\x1b[1m\\g<0>\x1b[22m", line) if self._note and self.look.colour else line)

    def _composed(self) -> str:
        """Return the present overwritable line; empty while a question or a prompt has the terminal."""
        now = self._painted_at = self._monotonic()
        if self._is_held or not self.look.repaints:
            self._painted = ""
            return ""
        state, tail = self._activity.words(now, self._characters)
        if self._note:
            state = self._note
        elif state:
            state = f"{spinner(self._signs.spinner, now)} {state}"
        if self._in_text:
            tail = self._markdown.tail
        number, typed = self._typed
        self._painted = composed(self.width, *map(self._one_line, (state, tail, typed)))
        self._typed_shown = number  # a line is written with what was composed for it
        return self._painted

    def _one_line(self, text: str) -> str:
        return self._encodable(visible_line(text.strip(), 1_000)) if text else ""

    def _put(self, text: str) -> None:
        erase = ERASE if self._open else ""
        if not (erase or text):
            return
        # Before the write: an interrupt in the midst of it leaves something that must be erased.
        self._open = self.look.repaints
        try:
            self._stream.write(erase + text)
            self._stream.flush()
        except (OSError, ValueError):
            self.give_up()
        self._open = bool(self._painted) or not (not text or text.endswith(("\n", "\x07")))

    def _tick(self, end_event: threading.Event) -> None:
        """Keep the line moving, from a thread that is there only while something goes on."""
        with self._lock:
            if end_event.is_set():
                return
            if self._pieces:
                self._take_in()
            if self.look.repaints:
                self._paint()
            elif self._activity.output is None and self._monotonic() >= self._still_at:
                self._still_at = self._monotonic() + STILL_SECONDS
                self._still()

    def _still(self) -> None:
        """Say in a line of its own that the model is at it."""
        waited = elapsed(self._activity.seconds(self._monotonic()))
        text = f"the model is {'answering' if self._characters else 'thinking'} ({waited})"
        self._print([self._toned(text, Tone.QUIET)])

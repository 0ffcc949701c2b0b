"""The screen of a session. Output only grows, except for one overwritable line at the end. Column 1 is the harness's own."""

from __future__ import annotations

import os
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cached_property
from io import StringIO
from itertools import count
from typing import TYPE_CHECKING, TextIO

from harness.audit.calls import word
from harness.log.order import LogRecord
from harness.record import replace
from harness.regex import regex
from harness.terminal.activity import (
    AFTER_TURN,
    BAR,
    TURNS_A_SECOND,
    WITH_RESULTS,
    Activity,
    Ticker,
    composed,
    shown_line,
    spinner,
)
from harness.terminal.change_rows import Diffs, UndoNotes, command_row, edit_rows
from harness.terminal.console import COUNTDOWN, LIVE_SECONDS, Console, Look, passing_seconds
from harness.terminal.readings import Readings
from harness.terminal.row_text import (
    WRAPPED,
    Row,
    Tint,
    cells,
    drawn,
    fitted,
    narrowed,
    toned,
    toned_rows,
    without_colours,
)
from harness.terminal.styles import Ink, Line, Tone, signs
from harness.text.amounts import elapsed
from harness.text.visible import visible, visible_line

if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor
    from harness.terminal.markdown_stream import Markdown

ERASE = "\r\x1b[K"
TAKE_BACK = "\r\x1b[{}A\x1b[J"
"""Sequence that moves up by a number of rows, and erases to the end of the screen (ECMA-48: CUU, ED)."""
_REPLACED = regex(rf"[^\n]*\n{re.escape(TAKE_BACK.format(1))}")
"""A row that the next one replaced."""
_KEY = regex(r"\[[^\[\]\s]{1,5}\]")
"""A key in the line of keys."""
TEXT_SECONDS = 0.01
"""Seconds within which pieces of text are processed together."""
MOST_PIECES = 1_024
"""Maximum number of pieces processed together, so that a pressed key is shown soon."""
LOCK_SECONDS = 0.004
"""Seconds between two checks whether another thread, which holds the lock, has shown the typed text."""
PAINT_SECONDS = 0.05
"""Minimum seconds between two drawings of the overwritable line, unless a key was pressed."""
STILL_SECONDS = 10.0
"""Seconds between two lines about continuing work on a terminal without overwriting."""
LEAST_WIDTH, WIDEST_RULE = 8, 120
"""Minimum width of a terminal to which output is fitted, and maximum width of a rule, in cells."""
LEAST_FOR_MORE_ROWS = 12
"""Minimum height of a terminal, in rows, for more than one overwritable row."""
LEAST_TEXT_WIDTH = 20
"""Minimum width of drawn Markdown (`markdown_stream.LEAST_WIDTH`). On a narrower terminal its lines are wrapped again."""


DEFAULT_SIZE = (80, 24)
UNBROKEN = (100_000, 24)
"""Size used for a file or pipe, whose readers expect unbroken lines."""


class Notices(Enum):
    """The notification about a waiting question or the end of a turn."""

    BELL = "bell"
    OSC9 = "osc9"
    """A desktop notification (OSC 9: iTerm2 and similar terminals); a bell on a terminal without escapes."""
    OSC777 = "osc777"
    """A desktop notification (OSC 777: rxvt-unicode, foot, Ghostty, WezTerm); a bell on a terminal without escapes."""
    OFF = "off"


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return the present columns and lines of the terminal of a stream (tty_ioctl(4)). Not cached: it may be resized."""
    if not stream.isatty():
        return UNBROKEN
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return DEFAULT_SIZE
    return (size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1])


def encodable_for(stream: TextIO) -> Callable[[str], str]:
    """Return a function that makes a text encodable for the stream, so that widths are counted with its escapes."""
    encoding = (stream.encoding or "utf-8").lower()  # a stream in memory has no encoding, and accepts all text
    if encoding.startswith("utf"):
        return lambda text: text
    return lambda text: text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)


def no_rows(width: int, height: int) -> Sequence[str]:  # noqa: ARG001 - a default
    """Return no rows."""
    return ()


class Screen(Console):
    """The output of a session, in order. Each item begins on a new line.

    Every method may be called from any thread. The model's text is indented Markdown; its first line has a sign in
    column 1. All other text in column 1 is the harness's. INVARIANT: between two writes, the cursor is at the beginning
    of an empty line, or at the end of the overwritable line.
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
        diffs: Diffs = Diffs.SHORT,
        diff_of: Callable[[LogRecord], str] = lambda _: "",
        replay_folds: bool | None = None,
    ) -> None:
        """Use the stream and its look.

        `redactor` masks secrets. `size` returns the terminal's size. `way_to_output` names the command that shows the
        full output, and `way_to_stop` the key that stops a turn. `diffs` is the extent of the diffs below calls, and
        `diff_of` returns the diff of an edit from its outcome, with masked secrets. `replay_folds` is for a replay of
        old records, in which nothing moves with time: whether several readings in a row become one line there.
        """
        super().__init__(stream, look, redactor=redactor)
        self._signs = signs(ascii_only=look.ascii)
        self._size = size or (lambda: terminal_size(stream))
        self._monotonic = monotonic
        self._notices = notices
        self._way_to_output = way_to_output
        self._lock = threading.RLock()
        self._columns = DEFAULT_SIZE[0]
        """Width for the model's text, updated with each batch of pieces."""
        self._pieces: list[str] = []
        self._characters, self._due = 0, 0.0
        self._is_replay = replay_folds is not None
        self._folds = look.repaints and bool(way_to_output) if replay_folds is None else replay_folds
        """Whether several readings in a row become one line."""
        self._activity = Activity(redactor, way_to_output, way_to_stop, folds=self._folds)
        self._diffs, self._diff_of, self._undo_notes = diffs, diff_of, UndoNotes()
        self._lists_files = diffs is not Diffs.NONE
        self._names_calls = True
        """Whether rows name the commands that show more of a call by its number."""
        self._readings = Readings(way_to_output)
        self._reading_size: tuple[int, int] | None = None
        """The terminal's size when the last row, that of readings, was written. `None` if another row is the last."""
        self._question_stays = False
        """Whether the last question is still on the screen, and the diff in it."""
        self._ticker = Ticker(1 / TURNS_A_SECOND, self._tick)
        self._note = ""
        self._typed_numbers = count(1)
        self._typed, self._typed_shown = (0, ""), 0
        """The typed text with its number, and the number of the text that is shown."""
        self._open = False
        """Whether the overwritable line may hold text."""
        self._is_held = True
        """Whether that line stays empty, because a question or a prompt uses the terminal."""
        self._painted_at = self._still_at = 0.0
        self._painted = ""
        self._rows_above = self._widest_row = 0
        """Number of overwritable rows above the last one. If there are any, the width of the widest of all, in cells."""
        self._standing: Callable[[int, int], Sequence[str]] = no_rows
        self._hints: Sequence[str] = ()
        """Hint about the keys, above the typed text, in forms for ever narrower rows."""
        self._signed = False
        """Whether the first line of the model's current text was written."""
        self._passing, self._passing_size = 0, DEFAULT_SIZE
        """Number of temporary rows at the end, and the terminal's size when they were written."""
        self._gone_rows = 0
        """Number of temporary rows that have scrolled off the top of the screen."""
        self.keeps = 0
        """Number of calls of `keep`. After each, earlier temporary rows may be out of sight."""
        self._encodable = encodable_for(stream)

    @property
    def width(self) -> int:
        """Columns of the terminal now."""
        return max(LEAST_WIDTH, self._size()[0])

    @property
    def height(self) -> int:
        """Lines of the terminal now."""
        return max(1, self._size()[1])

    _is_short = True

    @cached_property
    def _markdown(self) -> Markdown:
        from harness.terminal.markdown_stream import (
            Markdown,  # late, because it loads rich, which is not needed before the first answer
        )

        look = self.look
        return Markdown(lambda: self._columns, look.colours, ascii_only=look.ascii)

    # Permanent output

    def text(self, delta: str) -> None:
        """Add a piece of the model's text. Blocks are written when they are finished, prose and code line by line."""
        # Pieces are collected without the lock, so that 200,000 of them cost no more than writing them.
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
        """Write one or more complete lines. The rest of a long line is indented."""
        self._lines([(line, tone) for line in visible(text).split("\n")])

    def rows(self, rows: Sequence[Row]) -> None:
        """Write rows, which must be safe to show, in their colours. Rows that are too wide now are wrapped without colours."""
        with self._lock:
            self.end_text()
            self._print([line for row in rows for line in self._row(row)])

    def unbroken(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write one line without wrapping it, so that a path or command in it can be copied. Only for the harness's text."""
        with self._lock:
            self.end_text()
            self._print([self._toned(visible_line(text, 5_000), tone)])

    def diff(self, text: str, path: str) -> None:
        """Write a diff of the file at `path`."""
        self.rows(self._diff_rows(text, path))

    def _diff_rows(self, text: str, path: str) -> Sequence[Row]:
        from harness.terminal.diff_drawing import diff_rows  # late, because it loads lexers

        return tuple(diff_rows(text, path, self.width))

    def drawn(self, draw: Callable[[Screen], None], *, names_calls: bool = True) -> list[str]:
        """Return the rows that `draw` would leave on this screen.

        Without `names_calls`, no row names a command with the number of a call.
        """
        stream, size = StringIO(), self._size()
        way_to_output = self._way_to_output if names_calls else ""
        screen = Screen(
            stream,
            replace(self.look, repaints=False),
            redactor=self._redactor,
            size=lambda: size,
            way_to_output=way_to_output,
            diffs=self._diffs,
            diff_of=self._diff_of,
            replay_folds=self._folds,
        )
        screen._names_calls = names_calls
        draw(screen)
        screen.settle()
        text = _REPLACED.sub("", stream.getvalue())
        return text.removesuffix("\n").split("\n") if text else []

    def drawn_rows(self, rows: Sequence[str]) -> None:
        """Write rows that `drawn` has returned."""
        self._finished(rows)

    def rule(self, title: str) -> None:
        """Write a rule across the terminal with a title in it."""
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
        """Write temporary rows, such as a question, which `take_back` erases. With a title, a rule is above them."""
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
        """Make all temporary rows permanent, because their position on the screen is now unknown."""
        with self._lock:
            self._passing, self._reading_size = 0, None
            self._question_stays = True
            self.keeps += 1

    @property
    def passing_rows(self) -> int:
        """Number of temporary rows at the end."""
        return self._passing

    def take_back(self, to: int = 0) -> bool:
        """Erase the temporary rows after the first `to`, as far as possible. Return whether all of them were erased.

        INVARIANT: rows above them are never erased. After other output or a resize, the temporary rows stay. If a row
        took more room than counted, the topmost ones stay.
        """
        with self._lock:
            passing = self._passing
            erases = (
                self.look.repaints and self._passing_size == (self.width, self.height) and (to or not self._gone_rows)
            )
            count = max(0, passing - max(to, self._gone_rows)) if erases else 0
            self._question_stays = self._question_stays or bool(passing and not to and not count)
            self._passing = passing - count if to else 0
            self.settle()
            if count:
                self._put(TAKE_BACK.format(count))
                self._open = False
            return passing - count <= to

    def live(self, printed: str) -> None:
        """Show output of a running command: its first lines permanently, then its latest one in the overwritable line."""
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
        """Wait for some seconds before a request is repeated, with a countdown.

        An interrupt ends the wait at once: KeyboardInterrupt passes through.
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
        """Write the trace line for a record of the log, if it has one, and update the shown activity."""
        with self._lock:
            now = self._monotonic()
            if record["kind"] == "model_response":
                self.end_text()
            if record["kind"] == "intent":
                self._live_at = now + LIVE_SECONDS
            if record["kind"] == "approval_asked":
                self._question_stays = False
            unshown = self._activity.take_in(record, now)
            if record["kind"] == "intent" and self.look.spoken and (call := self._activity.command):
                self.line(f"running: {call}", Tone.QUIET)
            self._print(self._outputs(unshown.first))
            if unshown.more:
                self._print(self._rows(f"{BAR}{unshown.more}", Tone.QUIET))
            self._print(self._outputs(unshown.last))
            # The model's text is already on the screen, because it was streamed.
            line = self._tracer.line(record)
            if record["kind"] == "model_response" and not self._tracer.is_of_helper(record):
                line = None
            if line is not None and unshown.reading:
                self._show_reading(record, unshown.reading, line)
            elif line is not None:
                self._trace(line)
                self.rows(tuple(self._rows_below(record)))
            if self._activity.goes_on and not self._is_replay:
                self._still_at = now + STILL_SECONDS
                self._is_held = False
                self._ticker.start()
            else:
                self._ticker.stop()
            self._paint()

    def _trace(self, line: Line) -> None:
        """Write a line of the trace. Its less important end is drawn quietly, if it is on one row."""
        start = len(line.text) - len(line.quiet)
        if not line.quiet or cells(line.text) > self.width:
            self.line(line.text, line.tone)
        else:
            self.rows((Row(text=line.text, tone=line.tone, tints=(Tint(start, len(line.text), Tone.QUIET),)),))
        if line.command:
            self.unbroken(f"  {line.command}", line.tone)

    def _show_reading(self, outcome: LogRecord, name: str, line: Line) -> None:
        """Write the line of a reading. It replaces that of the readings before it, if no other row came after them."""
        self.end_text()
        size = self.width, self.height
        if self._reading_size == size:
            self._put(TAKE_BACK.format(1))
            self._open = False
        else:
            self._readings.clear()
        text = self._readings.add(outcome, name, line.text, self.width - 1)
        self._print([self._toned(text, line.tone)])
        self._reading_size = size

    def _rows_below(self, record: LogRecord) -> Iterator[Row]:
        """Yield the rows below the line of a call: its changes of files."""
        if record["kind"] != "outcome":
            return
        stays, self._question_stays = self._question_stays, False
        if self._lists_files:
            way = f"/diff {word(record.get('call'))}" if self._names_calls else ""
            if not stays and (diff := self._diff_of(record)):
                rows = self._diff_rows(diff, str(record.get("changed_path")))
                yield from edit_rows(rows, self.width, self._diffs, way)
            if row := command_row(record, self.width, way):
                yield row
        yield from self._undo_notes.rows(record, self.width)

    # The overwritable line

    def transient(self, text: str) -> None:
        """Show a temporary line until another one, an empty one, or `settle`. No effect if lines are not overwritten."""
        with self._lock:
            self._note = visible_line(text, 1_000)
            self._is_held = self._is_held and not text
            self._paint()

    def stand(self, rows_at: Callable[[int, int], Sequence[str]]) -> None:
        """Show rows above the overwritable line while an activity goes on.

        `rows_at` returns the rows, which must be safe to show, for a width and a height.
        """
        with self._lock:
            self._standing = rows_at

    def queued(self, text: str, hints: Sequence[str] = ()) -> None:
        """Show the text that the user types during a turn, and the longest hint about its keys that fits.

        If lines are not overwritten, show only finished lines.
        """
        before, self._hints = self._typed[1], hints
        number, _ = self._typed = (next(self._typed_numbers), visible_line(text, 1_000))
        if threading.current_thread() is threading.main_thread():  # it may be interrupted: `with` leaves no lock behind
            with self._lock:
                self._show_typed(before)
            return
        # Another thread may hold the lock again and again (much output). It then shows the typed text as well.
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
        elif (typed := self._typed[1]).startswith((WITH_RESULTS, AFTER_TURN)) and typed != before:
            self.line(typed, Tone.QUIET)

    def settle(self) -> None:
        """Finish all open output and leave an empty line, so that another user of the terminal can follow."""
        with self._lock:
            self.end_text()
            self._reading_size = None
            self._activity.stop()
            self._ticker.stop()
            self._note = ""
            self._is_held = True
            self._open = self.look.repaints  # also erases text that the terminal itself echoed earlier
            self._paint()

    def notify(self, title: str) -> None:
        """Notify the user by a bell or a notice with `title`, according to their settings."""
        if self._notices is Notices.OFF or not self._stream.isatty():
            return
        with self._lock:
            # The sequences end at BEL; `visible` leaves no control character in the title.
            text = self._encodable(visible_line(title, 100))
            sequences = {Notices.OSC9: f"\x1b]9;{text}\x07", Notices.OSC777: f"\x1b]777;notify;harness;{text}\x07"}
            self._put(sequences.get(self._notices, "\x07") if self.look.repaints else "\x07")

    def to_clipboard(self, data: bytes) -> bool:
        """Send `data` to the terminal's clipboard (OSC 52; xterm, "Control Sequences"). Return whether it was sent.

        False on a terminal without escapes.
        """
        if not self.look.repaints:
            return False

        with self._lock:
            self._put(f"\x1b]52;c;{b64encode(data).decode()}\x07")
        return True

    # Implementation

    def _take_in(self) -> None:
        """Process the collected pieces, and write the finished text."""
        self._columns = self.width
        count = len(self._pieces)
        text = "".join(self._pieces[:count])
        del self._pieces[:count]  # keeps pieces that another thread has added since
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
        """Write lines permanently. Without any, redraw the overwritable line, but not too often."""
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
        """Return lines of a command's output in their form for the screen."""
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
        """Write lines permanently, and the overwritable line below them, in one write."""
        self._passing = 0 if lines else self._passing
        if lines:
            self._reading_size = None
            self._put("\n".join((*lines, "")) + self._composed())

    def _paint(self) -> None:
        """Redraw the overwritable line if it changed."""
        before = self._painted
        line = self._composed()
        if line != before or not line:
            self._put(_KEY.sub("\x1b[1m\\g<0>\x1b[22m", line) if self._note and self.look.colour else line)

    def _composed(self) -> str:
        """Return the present overwritable line; empty while a question or a prompt uses the terminal."""
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
        width, height = self.width, self.height
        rows = [composed(width, *map(self._one_line, (state, tail, typed)))]
        if height >= LEAST_FOR_MORE_ROWS and rows[0] and not self._note:
            hint = [hint for hint in self._hints if cells(hint) < width][:1] if typed else []
            standing = self._standing(width - 1, height) if self._activity.goes_on else ()
            rows = [*map(self._quiet, (*standing, *hint)), *rows]
        self._painted = "\n".join(rows)
        self._typed_shown = number  # the caller writes the composed rows
        return self._painted

    def _quiet(self, row: str) -> str:
        return self._toned(fitted(row, self.width - 1), Tone.QUIET)

    def _one_line(self, text: str) -> str:
        return self._encodable(visible_line(text.strip(), 1_000)) if text else ""

    def _put(self, text: str) -> None:
        erase = self._erase() if self._open else ""
        if not (erase or text):
            return
        # Set before the write, because an interrupted write may leave text that must be erased.
        self._open = self.look.repaints
        try:
            self._stream.write(erase + text)
            self._stream.flush()
        except (OSError, ValueError):
            self.give_up()
        self._open = bool(self._painted) or not (not text or text.endswith(("\n", "\x07")))
        rows = self._painted.split("\n") if text.endswith(self._painted) else [""]
        self._rows_above = len(rows) - 1
        self._widest_row = max(cells(without_colours(row)) for row in rows) if self._rows_above else 0

    def _erase(self) -> str:
        """Return the sequence that erases the overwritable rows.

        INVARIANT: rows above them are never erased. If the terminal may have wrapped them at a resize, only the last one
        is erased.
        """
        above = self._rows_above if self._widest_row <= self.width else 0
        return TAKE_BACK.format(above) if above else ERASE

    def _tick(self, end_event: threading.Event) -> None:
        """Update the overwritable line. Called by the ticker's thread, which runs only during an activity."""
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
        """Write a line that the model is still working."""
        waited = elapsed(self._activity.seconds(self._monotonic()))
        text = f"the model is {'answering' if self._characters else 'thinking'} ({waited})"
        self._print([self._toned(text, Tone.QUIET)])

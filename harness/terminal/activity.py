"""Current activity according to the log: the model is thinking, or a call is running, with its latest output."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.audit.calls import is_typed, word
from harness.log.order import LogRecord
from harness.record import Record
from harness.redaction.stream import RedactedStream
from harness.terminal.readings import is_reading
from harness.terminal.row_text import cells, ending, fitted
from harness.text.amounts import count_of, elapsed, size_of_bytes
from harness.text.visible import visible_line
from harness.tool_kinds import READ_FILE, Does, shipped_that

if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor


class Ticker:
    """Calls a function periodically between `start` and `stop`. Repeated calls of either have no effect."""

    def __init__(self, seconds: float, tick: Callable[[threading.Event], None]) -> None:
        """Call `tick` every `seconds`, with an event that `stop` sets.

        If `stop` is called under a lock, `tick` must check the event under the same lock, because it may have waited for
        it while `stop` was called.
        """
        self._seconds = seconds
        self._tick = tick
        self._end_event: threading.Event | None = None

    def start(self) -> None:
        """Start the thread, unless it is running."""
        if self._end_event is None:
            end_event = self._end_event = threading.Event()
            threading.Thread(target=self._run, args=(end_event,), name="ticker", daemon=True).start()

    def stop(self) -> None:
        """Stop the thread without waiting for its end."""
        if self._end_event is not None:
            self._end_event.set()
            self._end_event = None

    def _run(self, end_event: threading.Event) -> None:
        while not end_event.wait(self._seconds):
            self._tick(end_event)


TURNS_A_SECOND = 5
"""Frames of the spinner, and checks of the ticker, per second. Enough for visible movement with little work."""
WITH_RESULTS, AFTER_TURN = "with the next results", "queued"
"""Descriptions of a line that the user finished during a turn: when the model gets it."""
CHARACTERS_A_TOKEN = 4
"""Estimated number of characters per token. The display marks it as an estimate; only the server knows the number."""


def spinner(signs: str, seconds: float) -> str:
    """Return the spinner sign for this time."""
    return signs[int(seconds * TURNS_A_SECOND) % len(signs)]


def thinking(seconds: float, characters: int, stops: str = "") -> str:
    """Return the elapsed time of the model's reply, the key that stops it, and its approximate number of tokens."""
    tokens = f"~{max(1, characters // CHARACTERS_A_TOKEN):,} tokens" if characters else ""
    return _together(f"{'answering' if characters else 'thinking'} {elapsed(seconds)}", stops, tokens)


def running(tool: str, seconds: float, lines: int, count: int, stops: str = "") -> str:
    """Return the elapsed time of a call, the key that stops it, and the size of its output."""
    printed = f"{count_of(lines, 'line')}  {size_of_bytes(count)}" if count else ""
    return _together(f"{tool} {elapsed(seconds)}", stops, printed)


def _together(*parts: str) -> str:
    return "  ".join(filter(None, parts))


def composed(width: int, state: str, tail: str, typed: str) -> str:
    """Return one line shorter than `width` cells: the activity, the end of the latest output, and the typed text.

    If there is little room, the typed text has priority, because the user is looking at it.
    """
    room = max(0, width - 1)
    if typed:
        typed = ending(typed, room if not state else max(room // 2, min(room, room - cells(state) - 2)))
        room -= cells(typed) + 2
    if room < 4:
        return typed
    state = fitted(state, room)
    tail_room = room - cells(state) - 2
    if tail and tail_room >= 12:
        state = f"{state}  {ending(tail, tail_room)}" if state else ending(tail, tail_room)
    return f"{state}  {typed}" if state and typed else state or typed


FIRST_LINES, LAST_LINES, WHOLE = 4, 5, 12
"""Numbers of output lines per command: first lines shown at once, last lines shown at the end, maximum to show all."""
MOST_IN_A_LINE = 2_000
"""Maximum number of characters used of a line. The terminal shows fewer."""
BAR = "  | "


class RestOfOutput(Record):
    """The part of an output that is shown when the command ends."""

    first: tuple[str, ...]
    """Lines from the beginning that were not shown yet."""
    left_out: int
    """Number of omitted lines between `first` and `last`."""
    last: tuple[str, ...]
    """The last lines, or all others of a short output."""


class CommandOutput:
    """The output of one command so far."""

    def __init__(self, redactor: Redactor | None, *, holds: bool = False) -> None:
        """`redactor` masks secrets; `None` masks none. `holds` keeps the first lines back until `finish`."""
        self._stream = _stream_of(redactor) if redactor else None
        self._holds = holds
        self._first: list[str] = []
        """The first lines that were kept back."""
        self._open = ""
        """The unfinished line, cut to the length that can be shown."""
        self._tail: deque[str] = deque(maxlen=WHOLE - FIRST_LINES)
        self._given_lines = 0
        """Number of finished lines after masking."""
        self.last = ""
        """The last line that is not blank, with masked secrets. The latest part of it if it is unfinished."""
        self._ends_open = False
        self.lines = 0
        self.bytes = 0

    @property
    def shown_lines(self) -> int:
        """Number of first lines that `feed` has returned."""
        return min(self._given_lines, FIRST_LINES)

    def feed(self, printed: str) -> list[str]:
        """Add printed text (from `readable`), and return the new first lines to show permanently."""
        if not printed:
            return []
        self.bytes += len(printed) if printed.isascii() else len(printed.encode("utf-8", "surrogatepass"))
        newlines = printed.count("\n")
        self.lines += newlines + (0 if printed.endswith("\n") else 1) - (1 if self._ends_open else 0)
        self._ends_open = not printed.endswith("\n")
        # The stream holds back text that may be the start of a secret; it comes out with a later call.
        lines = self._take(self._stream.feed(printed) if self._stream else printed)
        if not self._holds:
            return lines
        self._first += lines
        return []

    def finish(self) -> RestOfOutput:
        """Return the rest to show at the end of the output."""
        first = self._first + self._take(self._stream.finish() if self._stream else "")
        if self._open:
            first += self._take("\n")
        last = tuple(self._tail)[0 if self._given_lines <= WHOLE else -LAST_LINES :]
        return RestOfOutput(first=tuple(first), left_out=self._given_lines - self.shown_lines - len(last), last=last)

    def _take(self, text: str) -> list[str]:
        """Add text with masked secrets, and return the first lines that it finished."""
        *lines, rest = text.split("\n")
        self.last = next((line.strip() for line in (rest, *reversed(lines)) if line.strip()), self.last)
        if lines:
            lines[0] = self._open + lines[0]
            self._open = ""
        # An unfinished line is cut to the length that can be shown.
        self._open = (self._open + rest)[: 2 * MOST_IN_A_LINE]
        room = FIRST_LINES - self.shown_lines
        self._given_lines += len(lines)
        self._tail.extend(lines[room:])
        return lines[:room]


def shown_line(line: str, width: int) -> str:
    """Return one line of a command's output for the screen. A cut line ends in dots."""
    line = visible_line(line.expandtabs(8), MOST_IN_A_LINE)
    return BAR + fitted(line, width - len(BAR), " ...") if line else BAR.rstrip()


def _stream_of(redactor: Redactor) -> RedactedStream:
    return RedactedStream(redactor)


COMMANDS = shipped_that(Does.RUNS)
_ENDS_THINKING = frozenset(("model_response", "error", "limit", "session_ended", "user_message"))


class UnshownOutput(Record):
    """The rest of a command's output to show at its end, as text."""

    first: tuple[str, ...] = ()
    more: str = ""
    """A note about the lines between the first and the last ones."""
    last: tuple[str, ...] = ()
    """The last lines, or all others of a short output."""
    reading: str = ""
    """Short description of the call if it was a reading that went well: its output is not shown. Otherwise empty."""


class Activity:
    """The current activity, its start, and its result so far."""

    def __init__(self, redactor: Redactor | None, way: str = "", stops: str = "", *, folds: bool = False) -> None:
        """`redactor` masks secrets in the output of commands.

        `way` names the command that shows the full output, and `stops` the key that stops the activity. `folds` hides
        the output of readings.
        """
        self._folds = folds
        self._redactor = redactor
        self._way = way
        self._stops = stops
        self._since = 0.0
        self._thinks = False
        self._tool = self._call = ""
        """The running tool, and a short description of its call."""
        self._decided: dict[tuple[str, str], str] = {}
        """Short descriptions of calls that have not started, by session and number."""
        self._beside: deque[tuple[str, str, float, bool]] = deque()
        """Other calls that run at the same time, to be shown later: tool, description, start, and whether it is a reading."""
        self._readings: set[tuple[str, str]] = set()
        """Readings that have not ended, by session and number."""
        self._typed = ("", "")
        """Session and number of the last command that the user typed."""
        self._is_reading = False
        """Whether the running call is a reading."""
        self._helpers: set[str] = set()
        """Session names of helpers."""
        self.output: CommandOutput | None = None
        """Output of the running call."""
        self.command = ""
        """Short description of the last started call if it is a command; otherwise empty."""

    @property
    def goes_on(self) -> bool:
        """Whether an activity is running, so that its text changes with time."""
        return self._thinks or self.output is not None

    def take_in(self, record: LogRecord, now: float) -> UnshownOutput:
        """Update the activity from a record. If a call ended, return the rest of its output to show."""
        key = word(record.get("session")), word(record.get("call"))
        if record["kind"] == "session_started" and "parent" in record:
            self._helpers.add(key[0])
        # Parallel helpers are shown only as the calls that started them.
        if self._beside and key[0] in self._helpers:
            return UnshownOutput()
        if self._folds:
            self._note_reading(record, key)
        match record["kind"]:
            case "model_request":
                self.stop()
                self._thinks, self._since = True, now
            case "decision":
                self._decided[key] = visible_line(word(record.get("summary")))
            case "intent":
                self._begin(word(record.get("tool")), self._decided.pop(key, ""), now, reads=key in self._readings)
            case "outcome":
                self._decided.pop(key, None)
                self._readings.discard(key)
                unshown = self._unshown(record)
                self._next()
                return unshown
            case str() as kind if kind in _ENDS_THINKING:
                self.stop()
            case _:
                pass
        return UnshownOutput()

    def _note_reading(self, record: LogRecord, key: tuple[str, str]) -> None:
        """Note a reading when it is decided. The output of a user's command is shown, whatever it is."""
        match record["kind"]:
            case "call_proposed" if is_typed(record):
                self._typed = key
            case "decision" if key != self._typed and key[0] not in self._helpers and is_reading(record):
                self._readings.add(key)
            case _:
                pass

    def _unshown(self, outcome: LogRecord) -> UnshownOutput:
        """Return the rest of the output of the running call, which ended with this outcome."""
        if self._is_reading and outcome.get("status") == "ok":
            return UnshownOutput(reading=self._call or self._tool)
        return UnshownOutput() if self.output is None else _unshown_output(self.output, outcome, self._way)

    def _begin(self, tool: str, call: str, now: float, *, reads: bool) -> None:
        self._thinks = False
        self.command = call if tool in COMMANDS else ""
        self._beside.append((tool, call, now, reads))
        if self.output is None:
            self._next()

    def _next(self) -> None:
        """Show the next of the parallel calls, which end in the order in which they began."""
        if not self._beside:
            return self.stop()
        self._tool, self._call, self._since, self._is_reading = self._beside.popleft()
        self.output = CommandOutput(self._redactor, holds=self._is_reading)
        return None

    def stop(self) -> None:
        """End the current activity."""
        self._thinks, self._is_reading, self.output = False, False, None
        self._beside.clear()

    def seconds(self, now: float) -> float:
        """Return the seconds since the current activity began."""
        return max(0.0, now - self._since)

    def words(self, now: float, characters: int) -> tuple[str, str]:
        """Return the text for the current activity, and its latest output line.

        The latter is the call itself as long as there is little output. `characters` is the length of the model's text
        so far.
        """
        seconds = self.seconds(now)
        if self.output is not None:
            has_output = self.output.shown_lines >= FIRST_LINES
            tool = f"{self._tool} (and {len(self._beside)} more)" if self._beside else self._tool
            words = running(tool, seconds, self.output.lines, self.output.bytes, self._stops)
            return words, self.output.last if has_output else self._call
        return (thinking(seconds, characters, self._stops), "") if self._thinks else ("", "")


def _unshown_output(output: CommandOutput, outcome: LogRecord, way: str) -> UnshownOutput:
    rest = output.finish()
    if not rest.left_out:
        return UnshownOutput(first=rest.first, last=rest.last)
    total = outcome.get("output_bytes")
    count = total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else output.bytes
    at_least = "" if count <= output.bytes else "at least "
    path = _saved(word(outcome.get("content"))) if outcome.get("truncated") is True else ""
    location = f"; all of it: {path}" if path else f"; {way} {word(outcome.get('call'))} shows all" if way else ""
    more = f"... {at_least}{count_of(rest.left_out, 'more line')}, {size_of_bytes(count)} in all{location}"
    return UnshownOutput(first=rest.first, more=visible_line(more, 1_000), last=rest.last)


def _saved(content: str) -> str:
    """Return the path of the full output that a result names (see process/capture.py), or an empty string.

    Also empty if the result names two: then one is in the command's own output, and may be forged.
    """
    for before, after in (("lines omitted; full output: ", f"; read it with {READ_FILE.name}"), ("; saved to ", "]")):
        if content.count(before) == 1:
            path, separator, _ = content.partition(before)[2].partition(after)
            return path if separator else ""
    return ""

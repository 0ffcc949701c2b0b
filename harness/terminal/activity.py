"""Current activity, from the records of the log: the model thinks, or a call runs, with its latest output."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.audit.calls import word
from harness.log.order import LogRecord
from harness.record import Record
from harness.redaction.stream import RedactedStream
from harness.terminal.row_text import cells, ending, fitted
from harness.text.amounts import count_of, elapsed, size_of_bytes
from harness.text.visible import visible_line
from harness.tool_kinds import READ_FILE, Does, shipped_that

if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor


class Ticker:
    """Calls a function again and again between `start` and `stop`; either may be called twice."""

    def __init__(self, seconds: float, tick: Callable[[threading.Event], None]) -> None:
        """`tick` is called every so many seconds with what is set when its time is over: it must look at that under the
        lock that `stop` is called with, since it may have been waiting for that very lock."""
        self._seconds = seconds
        self._tick = tick
        self._end_event: threading.Event | None = None

    def start(self) -> None:
        """Begin, unless begun."""
        if self._end_event is None:
            end_event = self._end_event = threading.Event()
            threading.Thread(target=self._run, args=(end_event,), name="ticker", daemon=True).start()

    def stop(self) -> None:
        """End; the thread ends soon after, and is not waited for."""
        if self._end_event is not None:
            self._end_event.set()
            self._end_event = None

    def _run(self, end_event: threading.Event) -> None:
        while not end_event.wait(self._seconds):
            self._tick(end_event)


TURNS_A_SECOND = 5
"""Frames of the spinner and checks of the ticker per second: visibly moving, and hardly any work."""
CHARACTERS_A_TOKEN = 4
"""An estimate, and marked as one: the server alone knows."""


def spinner(signs: str, seconds: float) -> str:
    """Return the sign of this moment."""
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
    """Return one line shorter than `width` cells: what goes on, the end of what waits, and what the person typed.

    What the person typed comes first where there is little room: they look at it.
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


FIRST_LINES, LAST_LINES, WHOLE = 2, 5, 12
"""Numbers of lines per command: shown as they arrive; shown at the end, where errors are; maximum to show all."""
MOST_IN_A_LINE = 2_000
"""Characters that are looked at of a line; the terminal shows fewer."""
BAR = "  | "


class RestOfOutput(Record):
    """The part of an output that is shown at its end."""

    first: tuple[str, ...]
    """The first lines that were not shown yet."""
    left_out: int
    """Number of lines between these and the last."""
    last: tuple[str, ...]
    """The last lines, or all others of a short output."""


class CommandOutput:
    """The output of one command so far."""

    def __init__(self, redactor: Redactor | None) -> None:
        """`redactor` masks secrets; `None` masks none."""
        self._stream = _stream_of(redactor) if redactor else None
        self._open = ""
        """The line that has not ended yet, as far as it can be shown."""
        self._tail: deque[str] = deque(maxlen=WHOLE - FIRST_LINES)
        self._given_lines = 0
        """Lines that ended, without secrets."""
        self.last = ""
        """The last line that was not blank, without secrets; of a line that goes on, what came last."""
        self._ends_open = False
        self.lines = 0
        self.bytes = 0

    @property
    def shown_lines(self) -> int:
        """Lines that were given out to be shown."""
        return min(self._given_lines, FIRST_LINES)

    def feed(self, printed: str) -> list[str]:
        """Take in what was printed, and return the lines that are shown for good; text as `readable` gives it."""
        if not printed:
            return []
        self.bytes += len(printed) if printed.isascii() else len(printed.encode("utf-8", "surrogatepass"))
        newlines = printed.count("\n")
        self.lines += newlines + (0 if printed.endswith("\n") else 1) - (1 if self._ends_open else 0)
        self._ends_open = not printed.endswith("\n")
        # Of what a stream holds back, the rest of a secret may be to come: it is told with the next words.
        return self._take(self._stream.feed(printed) if self._stream else printed)

    def finish(self) -> RestOfOutput:
        """Return the rest to show at the end of the output."""
        first = self._take(self._stream.finish() if self._stream else "")
        if self._open:
            first += self._take("\n")
        last = tuple(self._tail)[0 if self._given_lines <= WHOLE else -LAST_LINES :]
        return RestOfOutput(first=tuple(first), left_out=self._given_lines - self.shown_lines - len(last), last=last)

    def _take(self, text: str) -> list[str]:
        """Take in text without secrets, and return those of the first lines that ended in it."""
        *lines, rest = text.split("\n")
        self.last = next((line.strip() for line in (rest, *reversed(lines)) if line.strip()), self.last)
        if lines:
            lines[0] = self._open + lines[0]
            self._open = ""
        # A line that does not end is kept as far as it can be shown.
        self._open = (self._open + rest)[: 2 * MOST_IN_A_LINE]
        room = FIRST_LINES - self.shown_lines
        self._given_lines += len(lines)
        self._tail.extend(lines[room:])
        return lines[:room]


def shown_line(line: str, width: int) -> str:
    """Return one line of a command's output for the screen; a cut line says so."""
    line = visible_line(line.expandtabs(8), MOST_IN_A_LINE)
    return BAR + fitted(line, width - len(BAR), " ...") if line else BAR.rstrip()


def _stream_of(redactor: Redactor) -> RedactedStream:
    return RedactedStream(redactor)


COMMANDS = shipped_that(Does.RUNS)
_ENDS_THINKING = frozenset(("model_response", "error", "limit", "session_ended", "user_message"))


class UnshownOutput(Record):
    """The unshown rest of a command's output at its end."""

    first: tuple[str, ...] = ()
    more: str = ""
    """A note about the lines between the first and the last ones."""
    last: tuple[str, ...] = ()
    """The last lines, or all others of a short output."""


class Activity:
    """The current activity, its start, and its result so far."""

    def __init__(self, redactor: Redactor | None, way: str = "", stops: str = "") -> None:
        """`redactor` masks secrets in the output of commands. `way` and `stops` name the command that shows all, and
        the key that stops it.
        """
        self._redactor = redactor
        self._way = way
        self._stops = stops
        self._since = 0.0
        self._thinks = False
        self._tool = self._call = ""
        """The running tool, and its call in a few words."""
        self._decided: dict[tuple[str, str], str] = {}
        """Calls in a few words, by session and number, until they begin."""
        self._beside: deque[tuple[str, str, float]] = deque()
        """Calls that run at the same time and are shown in turn: tool, call, and start."""
        self._helpers: set[str] = set()
        """The sessions of helpers."""
        self.output: CommandOutput | None = None
        """Output of the running call."""
        self.command = ""
        """The command that began last, in a few words; empty where that was none."""

    @property
    def goes_on(self) -> bool:
        """Whether the text changes with time."""
        return self._thinks or self.output is not None

    def take_in(self, record: LogRecord, now: float) -> UnshownOutput:
        """Note what a record says has begun or ended, and return what was still to be shown of what ended."""
        key = word(record.get("session")), word(record.get("call"))
        if record["kind"] == "session_started" and "parent" in record:
            self._helpers.add(key[0])
        # What several do at once is told as the calls that they are had by.
        if self._beside and key[0] in self._helpers:
            return UnshownOutput()
        match record["kind"]:
            case "model_request":
                self.stop()
                self._thinks, self._since = True, now
            case "decision":
                self._decided[key] = visible_line(word(record.get("summary")))
            case "intent":
                self._begin(word(record.get("tool")), self._decided.pop(key, ""), now)
            case "outcome":
                self._decided.pop(key, None)
                unshown = (
                    _unshown_output(self.output, record, self._way) if self.output is not None else UnshownOutput()
                )
                self._next()
                return unshown
            case str() as kind if kind in _ENDS_THINKING:
                self.stop()
            case _:
                pass
        return UnshownOutput()

    def _begin(self, tool: str, call: str, now: float) -> None:
        self._thinks = False
        self.command = call if tool in COMMANDS else ""
        self._beside.append((tool, call, now))
        if self.output is None:
            self._next()

    def _next(self) -> None:
        """Tell of the next call that runs at the same time; calls end in the order in which they began."""
        if not self._beside:
            return self.stop()
        self._tool, self._call, self._since = self._beside.popleft()
        self.output = CommandOutput(self._redactor)
        return None

    def stop(self) -> None:
        """Nothing goes on any more."""
        self._thinks, self.output = False, None
        self._beside.clear()

    def seconds(self, now: float) -> float:
        """Return for how long it has been going on."""
        return max(0.0, now - self._since)

    def words(self, now: float, characters: int) -> tuple[str, str]:
        """Return the current activity, and its latest detail, which at first is the call itself.

        `characters` is the length of the model's text so far.
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
    location = f"; all of it: {path}" if path else f"; {way}" if way else ""
    more = f"... {at_least}{count_of(rest.left_out, 'more line')}, {size_of_bytes(count)} in all{location}"
    return UnshownOutput(first=rest.first, more=visible_line(more, 1_000), last=rest.last)


def _saved(content: str) -> str:
    """Return the path of the full output in a result (see process/capture.py), or an empty string.

    Empty, too, if the result names two: then the command's own output holds one, which may be a lie.
    """
    for before, after in (("lines omitted; full output: ", f"; read it with {READ_FILE.name}"), ("; saved to ", "]")):
        if content.count(before) == 1:
            path, separator, _ = content.partition(before)[2].partition(after)
            return path if separator else ""
    return ""

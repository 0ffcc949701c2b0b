"""What goes on right now, from the records of the log: the model thinks, a call runs, or nothing; knows no screen."""

from __future__ import annotations

from harness.audit.calls import word
from harness.cli.terminal import transient
from harness.cli.terminal.output import FIRST_LINES, Output
from harness.cli.words import counted
from harness.log_order import LogRecord
from harness.record import Record
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor

_ENDS_THINKING = frozenset(("model_response", "error", "limit", "session_ended"))


class Left(Record):
    """What was still to be shown of a command's output when it ended."""

    first: tuple[str, ...] = ()
    more: str = ""
    """What is left out between the first lines and the last, in words."""
    last: tuple[str, ...] = ()
    """The last lines, or all others of a short output."""


class Activity:
    """One thing at a time, since when, and what came of it so far."""

    def __init__(self, redactor: Redactor | None, way: str = "") -> None:
        """Take what masks secrets in the output of commands, and what shows all of one, in words."""
        self._redactor = redactor
        self._way = way
        self._since = 0.0
        self._thinks = False
        self._tool = ""
        self.output: Output | None = None
        """Of the call that runs."""

    @property
    def goes_on(self) -> bool:
        """Whether there is something to be told that changes with time."""
        return self._thinks or self.output is not None

    def take_in(self, record: LogRecord, now: float) -> Left:
        """Note what a record says has begun or ended, and return what was still to be shown of what ended."""
        match record["kind"]:
            case "model_request":
                self.stop()
                self._thinks, self._since = True, now
            case "intent":
                self.stop()
                self._tool, self._since, self.output = word(record.get("tool")), now, Output(self._redactor)
            case "outcome":
                left = _left(self.output, record, self._way) if self.output is not None else Left()
                self.stop()
                return left
            case str() as kind if kind in _ENDS_THINKING:
                self.stop()
            case _:
                pass
        return Left()

    def stop(self) -> None:
        """Nothing goes on any more."""
        self._thinks, self.output = False, None

    def seconds(self, now: float) -> float:
        """Return for how long it has been going on."""
        return max(0.0, now - self._since)

    def words(self, now: float, characters: int) -> tuple[str, str]:
        """Return what goes on, and the last that is known of it; `characters` is how much text the model has sent."""
        seconds = self.seconds(now)
        if self.output is not None:
            shown = self.output.shown >= FIRST_LINES
            words = transient.running(self._tool, seconds, self.output.lines, self.output.bytes)
            return words, self.output.last if shown else ""
        return (transient.thinking(seconds, characters), "") if self._thinks else ("", "")


def _left(output: Output, outcome: LogRecord, way: str) -> Left:
    rest = output.finish()
    if not rest.left_out:
        return Left(first=rest.first, last=rest.last)
    total = outcome.get("output_bytes")
    count = total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else output.bytes
    about = "" if count <= output.bytes else "at least "
    path = _saved(word(outcome.get("content"))) if outcome.get("truncated") is True else ""
    where = f"; all of it: {path}" if path else f"; {way}" if way else ""
    told = f"... {about}{counted(rest.left_out, 'more line')}, {transient.size(count)} in all{where}"
    return Left(first=rest.first, more=visible_line(told, 1_000), last=rest.last)


def _saved(content: str) -> str:
    """Return the path that a result names for its full output (see tools/output.py), or nothing.

    Nothing, too, where it is named twice: then the output of the command does so itself, and one of them may be a lie.
    """
    for before, after in (("lines omitted; full output: ", "; read it with read_file"), ("; saved to ", "]")):
        if content.count(before) == 1:
            path, found, _ = content.partition(before)[2].partition(after)
            return path if found else ""
    return ""

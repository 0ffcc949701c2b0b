"""The output of one command, as it is shown: the first lines as they come, then counts and the last line, and its last
lines when it has ended; pure but for the redactor that it is given."""

from __future__ import annotations

from collections import deque

from harness.cli.terminal.row_text import fitted
from harness.record import Record
from harness.text.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor
    from harness.redaction.stream import RedactedStream

FIRST_LINES, LAST_LINES, WHOLE = 2, 5, 12
"""Of each command: lines that are shown as they come, lines that are shown once it has ended (what failed stands at the
end), and how many there may be for all of them to be shown."""
MOST_IN_A_LINE = 2_000
"""Characters that are looked at of a line; the terminal shows fewer."""
BAR = "  | "


class Rest(Record):
    """What of an output is shown when it has ended."""

    first: tuple[str, ...]
    """Those of its first lines that were not shown yet."""
    left_out: int
    """How many lines stand between these and the last."""
    last: tuple[str, ...]
    """Its last lines, or all others of a short output."""


class Output:
    """What one command printed so far."""

    def __init__(self, redactor: Redactor | None) -> None:
        """Take what masks secrets, if anything does."""
        self._stream = _stream_of(redactor) if redactor else None
        self._open = ""
        """The line that has not ended yet, as far as it can be shown."""
        self._tail: deque[str] = deque(maxlen=WHOLE - FIRST_LINES)
        self._given = 0
        """Lines that ended, without secrets."""
        self.last = ""
        """The last line that was not blank, without secrets; of a line that goes on, what came last."""
        self._ends_open = False
        self.lines = 0
        self.bytes = 0

    @property
    def shown(self) -> int:
        """Lines that were given out to be shown."""
        return min(self._given, FIRST_LINES)

    def feed(self, printed: str) -> list[str]:
        """Take in what was printed, and return the lines that are shown for good; text as `readable` gives it."""
        if not printed:
            return []
        self.bytes += len(printed) if printed.isascii() else len(printed.encode("utf-8", "surrogatepass"))
        ended = printed.count("\n")
        self.lines += ended + (0 if printed.endswith("\n") else 1) - (1 if self._ends_open else 0)
        self._ends_open = not printed.endswith("\n")
        # Of what a stream holds back, the rest of a secret may be to come: it is told with the next words.
        return self._take(self._stream.feed(printed) if self._stream else printed)

    def finish(self) -> Rest:
        """Return what is still to be shown: no more comes."""
        first = self._take(self._stream.finish() if self._stream else "")
        if self._open:
            first += self._take("\n")
        last = tuple(self._tail)[0 if self._given <= WHOLE else -LAST_LINES :]
        return Rest(first=tuple(first), left_out=self._given - self.shown - len(last), last=last)

    def _take(self, given: str) -> list[str]:
        """Take in text without secrets, and return those of the first lines that ended in it."""
        *ended, rest = given.split("\n")
        self.last = next((line.strip() for line in (rest, *reversed(ended)) if line.strip()), self.last)
        if ended:
            ended[0] = self._open + ended[0]
            self._open = ""
        # A line that does not end is kept as far as it can be shown.
        self._open = (self._open + rest)[: 2 * MOST_IN_A_LINE]
        room = FIRST_LINES - self.shown
        self._given += len(ended)
        self._tail.extend(ended[room:])
        return ended[:room]


def shown_line(line: str, width: int) -> str:
    """Return one line of a command's output as it stands on the screen; what does not fit is said to be missing."""
    line = visible_line(line.expandtabs(8), MOST_IN_A_LINE)
    return BAR + fitted(line, width - len(BAR), " ...") if line else BAR.rstrip()


def _stream_of(redactor: Redactor) -> RedactedStream:
    from harness.redaction.stream import RedactedStream

    return RedactedStream(redactor)

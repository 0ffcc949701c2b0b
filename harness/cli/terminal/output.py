"""The output of one running command, as it is shown: the first lines as they come, then counts and the last line; pure but
for the redactor that it is given."""

from __future__ import annotations

from harness.cli.terminal.cells import fitted
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor
    from harness.redaction.stream import RedactedStream

FIRST_LINES = 5
"""Of each command, shown for good: enough to see what it is about."""
MOST_IN_A_LINE = 2_000
"""Characters that are looked at of a line; the terminal shows fewer."""
BAR = "  | "


class Output:
    """What one command printed so far."""

    def __init__(self, redactor: Redactor | None) -> None:
        """Take what masks secrets, if anything does."""
        self._stream = _stream_of(redactor) if redactor else None
        self._rest = ""
        self.last = ""
        """The last line that was not blank, without secrets; of a line that goes on, what came last."""
        self._ends_open = False
        self.shown = 0
        """Lines that were given out whole, or as their beginnings."""
        self.lines = 0
        self.bytes = 0

    def feed(self, printed: str) -> list[str]:
        """Take in what was printed, and return the lines that are shown for good; text as `readable` gives it."""
        if not printed:
            return []
        self.bytes += len(printed) if printed.isascii() else len(printed.encode("utf-8", "surrogatepass"))
        ended = printed.count("\n")
        self.lines += ended + (0 if printed.endswith("\n") else 1) - (1 if self._ends_open else 0)
        self._ends_open = not printed.endswith("\n")
        given = self._stream.feed(printed) if self._stream else printed
        # Of what a stream holds back, the rest of a secret may be to come: it is told with the next words.
        self.last = next((line.strip() for line in reversed(given.split("\n")) if line.strip()), self.last)
        if self.shown >= FIRST_LINES:
            return []
        self._rest += given
        return self._first()

    def finish(self) -> list[str]:
        """Return what is still to be shown of the first lines: no more comes."""
        if self.shown >= FIRST_LINES:
            return []
        self._rest += self._stream.finish() if self._stream else ""
        if self._rest:
            self._rest += "\n"
        return self._first()

    def _first(self) -> list[str]:
        *lines, self._rest = self._rest.split("\n")
        lines = lines[: FIRST_LINES - self.shown]
        self.shown += len(lines)
        # A line that does not end is kept as far as it can be shown.
        self._rest = "" if self.shown >= FIRST_LINES else self._rest[: 2 * MOST_IN_A_LINE]
        return lines


def shown_line(line: str, width: int) -> str:
    """Return one line of a command's output as it stands on the screen; what does not fit is said to be missing."""
    line = visible_line(line.expandtabs(8), MOST_IN_A_LINE)
    return BAR + fitted(line, width - len(BAR), " ...") if line else BAR.rstrip()


def _stream_of(redactor: Redactor) -> RedactedStream:
    from harness.redaction.stream import RedactedStream

    return RedactedStream(redactor)

"""Readings: calls that only look at files, and ran unasked. Those in a row share one line of the trace."""

from __future__ import annotations

from harness.audit.calls import objects_in, word
from harness.log.order import LogRecord
from harness.log.vocabulary import MOST_FACETS
from harness.terminal.row_text import cells, fitted
from harness.text.amounts import size_of_bytes
from harness.tool_kinds import Does, shipped_that

_LOOKS = frozenset("ls cat head tail nl wc grep egrep fgrep rg fd find tree stat file du".split())
"""Programs that look at files. Their output is not shown in the trace; that of other readers, such as git, is."""
_READERS, _RUNNERS = shipped_that(Does.READS), shipped_that(Does.RUNS)


def is_reading(decision: LogRecord) -> bool:
    """Return whether a call only looks at files and runs unasked, by the record of its decision."""
    effects, tool = decision.get("effects"), word(decision.get("tool"))
    if decision.get("decision") != "auto" or not isinstance(effects, dict) or effects.get("write") != []:
        return False
    if tool in _READERS:
        return True
    facets = objects_in(decision.get("facets"))
    programs = [word(facet.get("facet")).partition(" ")[0] for facet in facets if facet.get("kind") == "Command"]
    is_reader = tool in _RUNNERS and effects.get("level") == "reader" and effects.get("network") is False
    return is_reader and 0 < len(facets) < MOST_FACETS and bool(programs) and _LOOKS.issuperset(programs)


class Readings:
    """The readings in a row so far."""

    def __init__(self, way: str) -> None:
        """`way` names the command that shows the full output. If it is empty, no line names a command."""
        self._way = way
        self._names: list[str] = []
        self._calls: list[str] = []
        self._only_files = True

    def clear(self) -> None:
        """Begin a new row."""
        self._names, self._calls, self._only_files = [], [], True

    def add(self, outcome: LogRecord, name: str, line: str, width: int) -> str:
        """Add a reading, and return the text for all in the row, on one line of at most `width` cells.

        `name` is the file or the command, and `line` is the reading's line of the trace.
        """
        is_file = word(outcome.get("tool")) in _READERS
        self._names.append(name)
        self._calls.append(word(outcome.get("call")))
        self._only_files = self._only_files and is_file
        count = len(self._names)
        if count == 1:
            size = outcome.get("output_bytes")
            size_text = "" if is_file or not isinstance(size, int) else f", {size_of_bytes(size)}"
            way = f"{size_text}: {self._way} {self._calls[0]}" if size_text and self._way else size_text
            return fitted(f"{fitted(line, width - cells(way))}{way}", width)
        count_words = f"read {count} files" if self._only_files else f"{count} readings"
        text = f"+ {count_words}: {', '.join(self._names)}"
        way = f"  {self._way} {self._calls[0]}-{self._calls[-1]}" if self._way else ""
        return fitted(f"{fitted(text, width - cells(way))}{way}", width)

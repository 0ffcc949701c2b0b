"""A question about action logs, and its answer in each form: text, `--json`, `--csv`, `--html`.

An `AuditQuestion` has the question's name, the columns of the answer and the class that makes the rows. asking.py does
the rest, so that a new question needs only one record and one class.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from harness.actions import JsonValue
from harness.app.common_flags import log_flags
from harness.log.order import LogRecord
from harness.record import Record
from harness.terminal.styles import Tone
from harness.terminal.tables import Column

if TYPE_CHECKING:
    from harness.app.audit.logs import ChosenLogs

EXIT_CODES = "Exit code: 0, 1 a log does not verify, 2 usage."


class AnswerRow(Record):
    """One row of an answer, for all forms."""

    cells: tuple[str, ...]
    """One cell per column, safe to display."""
    objects: tuple[Mapping[str, JsonValue], ...]
    """The objects that `--json` writes."""
    tone: Tone = Tone.PLAIN
    lines: tuple[tuple[str, Tone], ...] | None = None
    """Lines of text instead of a table row. `None` for a row of a table."""


class Total(Record):
    """The counts at the end of an answer."""

    counts: Mapping[str, JsonValue]
    lines: tuple[str, ...]
    """The counts in words."""
    code: int = 0
    """Exit code of the question, unless a log is broken."""


class AskedLogs(Record):
    """The logs of a question."""

    logs: ChosenLogs
    arguments: Namespace
    environment: Mapping[str, str]
    moment: Callable[[LogRecord], str]
    """Returns the time of a record in the format of the answer."""


class AuditAnswer(Protocol):
    """The answer to a question about certain logs."""

    def rows(self) -> Iterator[AnswerRow]:
        """Yield the rows, in one pass over the logs. Raises LogError."""
        ...

    def total(self) -> Total:
        """Return the counts, after the last row."""
        ...


class AuditQuestion(Record):
    """A question that `harness audit` answers from logs."""

    name: str
    help: str
    columns: tuple[Column, ...]
    answers: Callable[[AskedLogs], AuditAnswer]
    """Creates the answer."""
    notes: str = EXIT_CODES
    """Text of `--help` below the flags."""
    flags: Callable[[ArgumentParser], None] | None = None
    """Adds the flags of this question alone."""


def question_flags(question: AuditQuestion, parser: ArgumentParser) -> None:
    """Add the flags of a question to `parser`: the logs, the form of the answer, and the question's own flags."""
    parser.epilog = question.notes
    log_flags(parser, as_json=False)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="write one JSON object per line")
    form.add_argument("--csv", action="store_true", help="write a table for spreadsheets")
    form.add_argument("--html", action="store_true", help="write a page of HTML with the table")
    if question.flags is not None:
        question.flags(parser)

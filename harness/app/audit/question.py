"""A question to action logs, and its answer in each form: text, `--json`, `--csv`, `--html`.

An `AuditQuestion` names the question, the columns of its answer and the class that makes the rows. asking.py does the rest,
so a new question is one record and one class.
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
    """One row of an answer, in every form."""

    cells: tuple[str, ...]
    """One for each column, safe to show."""
    objects: tuple[Mapping[str, JsonValue], ...]
    """The objects that `--json` writes."""
    tone: Tone = Tone.PLAIN
    lines: tuple[tuple[str, Tone], ...] | None = None
    """The text of an answer without a table; `None` for a row of a table."""


class Total(Record):
    """The end of an answer: its counts."""

    counts: Mapping[str, JsonValue]
    lines: tuple[str, ...]
    """The same in words."""
    code: int = 0
    """Exit code of the question, unless a log is broken."""


class AskedLogs(Record):
    """The logs of a question."""

    logs: ChosenLogs
    arguments: Namespace
    environment: Mapping[str, str]
    moment: Callable[[LogRecord], str]
    """Returns the time of a record as the answer shows it."""


class AuditAnswer(Protocol):
    """The answer to a question about some logs."""

    def rows(self) -> Iterator[AnswerRow]:
        """Yield the rows, in one pass over the logs. Raises LogError."""
        ...

    def total(self) -> Total:
        """Return the counts, after the last row."""
        ...


class AuditQuestion(Record):
    """A question that `harness audit` puts to logs."""

    name: str
    help: str
    columns: tuple[Column, ...]
    answers: Callable[[AskedLogs], AuditAnswer]
    """Begins an answer."""
    notes: str = EXIT_CODES
    """Text of `--help` below the flags."""
    flags: Callable[[ArgumentParser], None] | None = None
    """Adds the flags that only this question has."""


def question_flags(question: AuditQuestion, parser: ArgumentParser) -> None:
    """Give `parser` the flags of a question: the logs, the form of the answer, and its own."""
    parser.epilog = question.notes
    log_flags(parser, as_json=False)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="write one JSON object per line")
    form.add_argument("--csv", action="store_true", help="write a table for spreadsheets")
    form.add_argument("--html", action="store_true", help="write a page of HTML with the table")
    if question.flags is not None:
        question.flags(parser)

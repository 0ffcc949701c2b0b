"""Answer a question about logs as text, JSON, CSV or HTML. All questions share this writer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping

from harness.app.audit.answer_writer import AnswerWriter, to_stdout
from harness.app.audit.csv_cell import csv_row
from harness.app.audit.logs import BROKEN, ChosenLogs, chosen_logs
from harness.app.audit.question import AskedLogs, AuditAnswer, AuditQuestion
from harness.app.pages import page


def ask(question: AuditQuestion, arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Answer a question in the form that the flags select, and return the exit code. Raises HarnessError."""
    logs = chosen_logs(arguments, environment)
    logs.tell_standing()
    is_text = not (arguments.json or arguments.csv or arguments.html)
    with AnswerWriter(environment, as_json=not is_text) as output:
        logs_asked = AskedLogs(logs=logs, arguments=arguments, environment=environment, moment=output.moment)
        answers = question.answers(logs_asked)
        if arguments.csv:
            to_stdout(_csv(question, answers))
        elif arguments.html:
            to_stdout(_page(question, answers))
        else:
            _write(question, answers, logs, output)
        total = answers.total()
    return logs.code if logs.code == BROKEN else total.code


def _write(question: AuditQuestion, answers: AuditAnswer, logs: ChosenLogs, output: AnswerWriter) -> None:
    """Write the answer as text or as JSON, depending on `output`."""
    for answer in answers.rows():
        for item in answer.objects:
            output.row(item)
        if answer.lines is None:
            output.entry(question.columns, answer.cells, answer.tone)
        for text, tone in answer.lines or ():
            output.line(text, tone, width=8_000)
    total = answers.total()
    output.row({"row": "counts", "sessions": logs.sessions, **total.counts})
    for line in total.lines:
        output.line(line)


def _csv(question: AuditQuestion, answers: AuditAnswer) -> Iterator[str]:
    """Yield the rows as CSV, below a header."""
    yield csv_row([column.name or "remarks" for column in question.columns])
    for answer in answers.rows():
        yield csv_row(answer.cells)


def _page(question: AuditQuestion, answers: AuditAnswer) -> Iterator[str]:
    """Yield an HTML page with the answer as a table."""
    return page(
        "harness.app.audit",
        "answer.html",
        title=f"harness audit {question.name}",
        help=question.help,
        columns=[column.name for column in question.columns],
        rows=(answer.cells for answer in answers.rows()),
        total=answers.total,
    )

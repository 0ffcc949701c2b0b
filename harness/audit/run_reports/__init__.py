"""Reports of unattended runs: records in, text out; what is written where is for the command line to say.

facts.py gathers what the log says of a session, result.py is the object of `--output json`; one module a form. All of it is
pure, but html.py, which reads the logs once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.record import Record

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from harness.actions import JsonValue
    from harness.audit.run_reports.facts import RunFacts

    class Report(Protocol):
        """What makes a report of a form."""

        def __call__(self, runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
            """Yield the report on these runs, the model's answers in it only `with_answer`."""
            ...


class ReportedRun(Record):
    """A run that a report is about."""

    name: str
    """What to call it: the task of a batch; else any word. Hostile like all else."""
    facts: RunFacts
    result: Mapping[str, JsonValue]
    """The object of `--output json`."""
    heads: str = ""
    """The file with the noted heads of logs, for the form that verifies the log itself; empty: none is known."""


def _markdown() -> Report:
    from harness.audit.run_reports.markdown import report

    return report


def _junit() -> Report:
    from harness.audit.run_reports.junit import report

    return report


def _sarif() -> Report:
    from harness.audit.run_reports.sarif import report

    return report


def _html() -> Report:
    from harness.audit.run_reports.html import report

    return report


FORMS: Mapping[str, Callable[[], Report]] = {"md": _markdown, "junit": _junit, "sarif": _sarif, "html": _html}
"""The forms of reports, and what loads each."""

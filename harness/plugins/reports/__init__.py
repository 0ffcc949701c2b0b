"""Reports of unattended runs (`run --report FORM:FILE`, `batch --report`): records in, text out.

Read `facts` first: what the log says of one session, gathered as its records come. `result` makes of it the object of
`--output json`, `reported` the words that all reports share, `unquoted` what may be told without the model's words. Each
form of report is one module: `markdown`, `junit`, `sarif`, `html`. A new form is such a
module, with `report(runs, *, with_answer)`, and a row of harness/shipped.py.

Nothing here writes a file, and but for `html`, which shows the whole log, nothing reads one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from harness.shipped import REPORTS

if TYPE_CHECKING:
    from harness.app.run.reported import ReportedRun


class RunReport(Protocol):
    """What makes a report of a form."""

    def __call__(self, runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
        """Yield the report on these runs, the model's answers in it only `with_answer`. Raises LogError."""
        ...


def run_report(form: str) -> RunReport:
    """Return what makes the report of a form of REPORTS."""
    return cast("RunReport", import_module(REPORTS[form]).report)

"""The HTML page of `harness audit report`, made from the logs of these runs.

The page has the model's words beside its calls only on request. Without them it says that they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.app.run.reported import ReportedRun
from harness.app.run.unquoted import record_of
from harness.audit.calls import CALL_KINDS, LoggedCall, logged_calls
from harness.audit.findings import judge_log
from harness.log.heads_file import HeadsFile
from harness.log.order import LogRecord
from harness.log.reader import records
from harness.plugin import ReportForm
from harness.plugins.insight.report import report as page


def report(runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
    """Yield the page. Raises LogError if a log cannot be read."""
    logs = {path: run for run in runs if (path := run.text("log"))}
    heads = HeadsFile(next((run.heads for run in runs if run.heads), ""))
    source = _Logs({path: run.facts.session for path, run in logs.items()}, with_answer=with_answer)
    findings = tuple(judge_log(path, heads) for path in source.paths)
    only = runs[0].facts.session if len(runs) == 1 and source.has_others() else ""
    yield from page(source, findings, title=_title(runs), only=only)


def _title(runs: Sequence[ReportedRun]) -> str:
    return f"What the harness did: {runs[0].name}" if len(runs) == 1 and runs[0].name not in ("", "run") else ""


class _Logs:
    """The sessions of the runs in their logs, read again for each pass."""

    def __init__(self, sessions: dict[str, str], *, with_answer: bool) -> None:
        self._sessions = sessions
        self._with_answer = with_answer

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._sessions)

    def records(self, kinds: Iterable[str] | None = None) -> Iterator[tuple[str, LogRecord]]:
        wanted_kinds = None if kinds is None else frozenset(kinds)
        for path in self.paths:
            for record in self._of(path, wanted_kinds):
                yield path, record

    def calls(self) -> Iterator[LoggedCall]:
        for path in self.paths:
            yield from logged_calls(path, self._of(path, CALL_KINDS))

    def has_others(self) -> bool:
        """Return whether a log has a session that does not belong to these runs."""
        return any(
            record["session"] != session
            for path, session in self._sessions.items()
            for record in records(path, ("session_started",))
        )

    def _of(self, path: str, kinds: frozenset[str] | None) -> Iterator[LogRecord]:
        session = self._sessions[path]
        for record in records(path, kinds):
            if not session or record["session"] == session:
                yield record if self._with_answer else record_of(record)


REPORT = ReportForm(name="html", write=report)

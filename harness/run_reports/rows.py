"""Rows: what facts of a run are made of, values without behaviour; pure. Refusals have a module of their own.

Texts are one line, cut and safe to show, unless a field says otherwise.
"""

from __future__ import annotations

from harness.actions import JsonValue
from harness.audit.calls import Fate, LoggedCall, number, text
from harness.audit.instants import whole
from harness.audit.rows import call_number
from harness.record import Record
from harness.run_reports.refused import line


class Started(Record):
    """What the session began with. Empty or None where the log does not say."""

    time: str = ""
    """RFC 3339, UTC."""
    harness: str = ""
    model: str = ""
    policy: str = ""
    policy_sha256: str = ""
    workspace: str = ""
    """Absolute; as the log has it, uncut and not safe to show."""
    confinement: str = ""
    git_head: str = ""
    """The commit that the workspace was at."""
    dry_run: bool = False
    plan: bool = False
    replay: str = ""
    """The cassette that stood in for the model."""


class CallRow(Record):
    """One call, in short."""

    number: JsonValue
    """A whole number in every log that verifies."""
    tool: str
    summary: str
    decision: str
    """`auto`, `confirm`, `deny`, `block`, `none`; empty where the log does not say."""
    status: str
    """As the outcome says; `unknown`: begun, and no end is known; `open`: it was never begun."""
    seconds: float | None
    exit_code: int | None
    by: str
    rule: str
    file: str
    line: int | None
    note: str
    """Of a call that was invalid or not run: why."""


class Changed(Record):
    """A file that file tools changed: what it was before the first change, and what the last one left."""

    path: str
    before_sha256: str | None
    """None: there was no such file."""
    after_sha256: str | None
    calls: tuple[JsonValue, ...]


class Trouble(Record):
    """An error that the log tells of, and that was not simply tried again."""

    where: str
    message: str
    """In the harness's words, and the provider's."""
    fault: str
    quoted: str
    """The message with what it quotes of a reply."""


def row_of(call: LoggedCall) -> CallRow:
    """Return what is told of a call. Total: its records may hold anything."""
    status = text(call.outcome, "status") or call.fate.value
    milliseconds = number(call.outcome, "duration_ms")
    is_told = call.fate in (Fate.INVALID, Fate.NOT_RUN)
    return CallRow(
        number=call_number(call),
        tool=line(call.tool, 60),
        summary=line(call.summary),
        decision=line(call.decided, 20),
        status=line(status, 20),
        seconds=None if milliseconds is None else milliseconds / 1000,
        exit_code=whole(call.outcome.get("exit_code")),
        by=line(call.by),
        rule=line(text(call.decision, "rule")),
        file=text(call.decision, "file"),
        line=whole(call.decision.get("line")),
        note=line(text(call.outcome, "content"), 300) if is_told else "",
    )

"""Rows: what facts of a run are made of, values without behaviour; pure. Refusals have a module of their own.

Texts are one line, cut and safe to show, unless a field says otherwise.
"""

from __future__ import annotations

import json
import posixpath

from harness.actions import JsonValue
from harness.audit.calls import Fate, LoggedCall, call_number, number, text
from harness.log.reader import whole
from harness.paths import is_within, short_place
from harness.record import Record
from harness.text.visible import visible_line
from harness.tool_kinds import tool_kind

MOST_SUMMARY = 200
_READ = 4_000
"""So many characters of a text are looked at before it is shown cut: escapes can make it longer, never shorter."""


class ReportedRefusal(Record):
    """A refusal. Texts are one line, cut and safe to show; `file`, `touched` and `advice_toml` are not."""

    call: JsonValue
    tool: str
    summary: str
    status: str
    """`denied` or `blocked`."""
    decision: str
    """What the policy said: `confirm` where a person's yes was needed."""
    by: str
    """What decided, with its place, as the log names it."""
    source: str
    """`rule`, `default`, `built_in` ..."""
    rule: str
    file: str
    line: int | None
    layer: str
    reason: str
    part: str
    """The part of the call that decided it."""
    answered_by: str
    """Who was asked: `nobody` in a run without a person. Empty where nobody needed to be."""
    touched: str = ""
    """The one file in the workspace that the call was about, relative to it; empty where it is not plain."""
    advice_toml: str = ""
    """The rule that would allow it: what the harness proposed, never applied by itself."""
    advice_why: str = ""
    """Why no rule would."""

    @property
    def why_no_rule(self) -> str:
        """`advice_why` with the file of what decided named shortly."""
        return self.advice_why.replace(self.by, short_place(self.by)) if self.by else self.advice_why


def refused_of(call: LoggedCall, workspace: str) -> ReportedRefusal:
    """Return what is told of a refused call. Total: its records may hold anything."""
    decision = call.decision
    return ReportedRefusal(
        call=call_number(call),
        tool=line(call.tool, 60),
        summary=line(call.summary),
        status="blocked" if text(call.outcome, "status") == "blocked" else "denied",
        decision=line(call.decided, 20),
        by=line(call.by, 300),
        source=line(text(decision, "source"), 40),
        rule=line(text(decision, "rule")),
        file=text(decision, "file"),
        line=whole(decision.get("line")),
        layer=line(text(decision, "layer"), 40),
        reason=line(text(decision, "reason"), 500),
        part=line(_part(call), MOST_SUMMARY),
        answered_by=line(text(call.answered, "by"), 40),
        touched=_touched(call, workspace),
    )


def line(value: str, width: int = MOST_SUMMARY) -> str:
    """Return one line that is safe to show, cut to `width` characters; of what is very long only the beginning is read."""
    return visible_line(value, width) if len(value) <= _READ else f"{visible_line(value[:_READ], width)} and more"


def _facet(call: LoggedCall) -> tuple[str, str]:
    """Return the deciding part and its kind: the first whose decision and decider are those of the whole."""
    facets = call.decision.get("facets")
    for facet in facets if isinstance(facets, list) else ():
        if isinstance(facet, dict) and all(facet.get(n) == call.decision.get(n) for n in ("decision", "by")):
            return text(facet, "facet"), text(facet, "kind")
    return "", ""


def _part(call: LoggedCall) -> str:
    return _facet(call)[0]


def _touched(call: LoggedCall, workspace: str) -> str:
    """Return the file that a call was about, relative to the workspace: a file tool's argument, or the one path written."""
    if not workspace.startswith("/"):
        return ""
    path = _argument(call)
    if not path:
        effects = call.decision.get("effects")
        written = effects.get("write") if isinstance(effects, dict) else None
        only = written[0] if isinstance(written, list) and len(written) == 1 else None
        path = only if isinstance(only, str) else ""
    if not path:
        return ""
    root = posixpath.normpath(workspace)
    whole_path = posixpath.normpath(posixpath.join(root, path))
    if whole_path == root or not is_within(whole_path, root):
        return ""
    return posixpath.relpath(whole_path, root)


def _argument(call: LoggedCall) -> str:
    """Return the path that a file tool was given; empty for other tools, and for what is none."""
    arguments, kind = text(call.proposed, "arguments"), tool_kind(call.tool)
    if not kind.is_of_files:
        return ""
    try:
        found: JsonValue = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    path = found.get(kind.subject) if isinstance(found, dict) else None
    return path if isinstance(path, str) else ""


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


class ReportedCall(Record):
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


class ReportedFile(Record):
    """A file that file tools changed: what it was before the first change, and what the last one left."""

    path: str
    before_sha256: str | None
    """None: there was no such file."""
    after_sha256: str | None
    calls: tuple[JsonValue, ...]


class ReportedError(Record):
    """An error that the log tells of, and that was not simply tried again."""

    where: str
    message: str
    """In the harness's words, and the provider's."""
    fault: str
    quoted: str
    """The message with what it quotes of a reply."""


def row_of(call: LoggedCall) -> ReportedCall:
    """Return what is told of a call. Total: its records may hold anything."""
    status = text(call.outcome, "status") or call.fate.value
    milliseconds = number(call.outcome, "duration_ms")
    is_told = call.fate in (Fate.INVALID, Fate.NOT_RUN)
    return ReportedCall(
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

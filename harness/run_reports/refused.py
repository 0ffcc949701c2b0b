"""Refused: a call that was denied or blocked, with what decided it and what would allow it; pure, judges nothing."""

from __future__ import annotations

import json
import posixpath

from harness.actions import JsonValue
from harness.audit.calls import LoggedCall, text
from harness.audit.instants import whole
from harness.audit.rows import call_number
from harness.paths import is_within, short_place
from harness.record import Record
from harness.visible import visible_line

MOST_SUMMARY = 200
_READ = 4_000
"""So many characters of a text are looked at before it is shown cut: escapes can make it longer, never shorter."""


class Refused(Record):
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


def refused_of(call: LoggedCall, workspace: str) -> Refused:
    """Return what is told of a refused call. Total: its records may hold anything."""
    decision = call.decision
    return Refused(
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
    arguments = text(call.proposed, "arguments")
    if call.tool not in ("read_file", "write_file", "edit_file"):
        return ""
    try:
        found: JsonValue = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    path = found.get("path") if isinstance(found, dict) else None
    return path if isinstance(path, str) else ""

"""The report as SARIF 2.1.0: one result per refusal, one rule per policy rule that refused.

SARIF: OASIS Standard, 27 March 2020. All harness runs share one SARIF `run`, because GitHub accepts 20 per file, and
shows the first 5,000 results. In messages, `[text](target)` is a link and braces are placeholders (3.11.5, 3.11.6). All
four characters are escaped.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence

from harness import __version__
from harness.actions import JsonValue
from harness.app.run.facts import ReportedCall
from harness.app.run.reported import (
    DIVERGED,
    ReportedRun,
    answered_words,
    place,
)
from harness.paths import is_within, short_place
from harness.plugin import ReportForm
from harness.text.visible import visible, visible_line

MOST_RESULTS = 5_000
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SOURCE_ROOT = "%SRCROOT%"
"""Symbol for the base folder of relative paths. By convention this is the root of the checkout."""
_MARKUP = re.compile(r"[\[\]{}]")
_RESERVED = re.compile(rb"[^A-Za-z0-9._~/-]")


def report(runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
    """Yield the report.

    Of more than MOST_RESULTS refusals, only the first are included, with the number of the others.
    """
    rules = _Rules()
    results: list[JsonValue] = []
    left_out = 0
    for index, run in enumerate(runs):
        left_out += run.facts.refused_left_out
        for call in run.facts.refused:
            if len(results) < MOST_RESULTS:
                results.append(_result(call, run, rules, index if len(runs) > 1 else None))
            else:
                left_out += 1
    invocations = [_invocation(run, with_answer=with_answer) for run in runs]
    if left_out and invocations:
        text = f"{left_out:,} more refusals are not listed here; the logs have them."
        _notify(invocations[0], "warning", text)
    driver: dict[str, JsonValue] = {
        "name": "harness",
        "version": __version__,
        "informationUri": f"pkg:pypi/permission-harness@{__version__}",
        "rules": list(rules.described),
    }
    told_of: dict[str, JsonValue] = {
        "tool": {"driver": driver},
        "invocations": list(invocations),
        "originalUriBaseIds": {_SOURCE_ROOT: {"description": {"text": "The workspace of the run."}}},
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {"resultsLeftOut": left_out},
    }
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [told_of]}, indent=1)
    yield "\n"


class _Rules:
    """The rules that refused calls, each once."""

    def __init__(self) -> None:
        self.described: list[JsonValue] = []
        self._places: dict[tuple[str, str, int | None], int] = {}
        self._ids: list[str] = []

    def of(self, call: ReportedCall) -> tuple[str, int]:
        """Return the ID and the index of the rule that refused the call."""
        name = call.rule or call.source or "unknown"
        key = (name, call.file, call.line)
        if key not in self._places:
            self._places[key] = len(self._ids)
            location = place(call.file, call.line)
            rule_name = f"{name} ({location})" if name in self._ids or not call.rule else name
            identity, plain_name = _message(rule_name, 200), _message(name, 200)
            if identity in self._ids:
                identity = f"{identity} {len(self._ids)}"
            self._ids.append(identity)
            self.described.append(
                {
                    "id": identity,
                    # A name that equals the ID is omitted (3.49.7).
                    **({"name": plain_name} if plain_name != identity else {}),
                    "shortDescription": {"text": _message(call.reason or name, 500)},
                    # GitHub requires these two.
                    "fullDescription": {"text": _message(call.reason or name, 1_000)},
                    "help": {"text": _message(f"Decided by {short_place(call.by) or rule_name}.", 500)},
                    "defaultConfiguration": {"level": "error" if call.status == "blocked" else "warning"},
                    "properties": {"file": call.file, "line": call.line, "layer": call.layer},
                }
            )
        index = self._places[key]
        return self._ids[index], index


def _result(call: ReportedCall, run: ReportedRun, rules: _Rules, invocation: int | None) -> JsonValue:
    identity, index = rules.of(call)
    nobody = answered_words(call.answered_by, call.decision)
    by = short_place(call.by) or identity
    text = f"{call.tool} was {call.status} by {by}: {call.reason}{f' ({nobody})' if nobody else ''}"
    summary = f" Call: {call.summary}" if call.summary else ""
    properties: dict[str, JsonValue] = {
        "call": call.number,
        "decision": call.decision,
        "part": call.part,
        "run": run.name,
    }
    if call.helper is not None:
        properties["helper"] = call.helper
    if call.advice_toml:
        properties["advice"] = call.advice_toml
    if call.advice_why:
        properties["adviceWhy"] = call.advice_why
    result: dict[str, JsonValue] = {
        "ruleId": identity,
        "ruleIndex": index,
        "level": "error" if call.status == "blocked" else "warning",
        "message": {"text": _message(f"{text.rstrip('.')}.{summary}", 1_500)},
        "locations": _locations(call, run),
        # The fingerprint identifies the same refusal of the same call in other runs.
        "partialFingerprints": {"refusal/v1": _fingerprint(call)},
        "properties": properties,
    }
    if invocation is not None:
        result["provenance"] = {"invocationIndex": invocation}
    return result


def _fingerprint(call: ReportedCall) -> str:
    identity = json.dumps([call.tool, call.rule or short_place(call.by), call.part, call.summary])
    return hashlib.sha256(identity.encode("ascii")).hexdigest()


def _locations(call: ReportedCall, run: ReportedRun) -> list[JsonValue]:
    """Return the location of a refusal: the workspace file that the call is about, else the rule in the policy."""
    if call.touched:
        return [_location(_relative(call.touched), None, is_relative=True)]
    if not call.file:
        return []
    workspace = run.facts.started.workspace
    if workspace.startswith("/") and is_within(call.file, workspace) and call.file != workspace:
        return [_location(_relative(call.file[len(workspace.rstrip("/")) + 1 :]), call.line, is_relative=True)]
    uri = f"file://{_quoted(call.file)}" if call.file.startswith("/") else _relative(call.file)
    return [_location(uri, call.line, is_relative=False)]


def _location(uri: str, at: int | None, *, is_relative: bool) -> JsonValue:
    artifact: dict[str, JsonValue] = {"uri": uri}
    if is_relative:
        artifact["uriBaseId"] = _SOURCE_ROOT
    physical: dict[str, JsonValue] = {"artifactLocation": artifact}
    if at is not None and at >= 1:
        physical["region"] = {"startLine": at}
    return {"physicalLocation": physical}


def _relative(path: str) -> str:
    """Return a relative reference (RFC 3986, 4.2) that cannot be read as a scheme or a host."""
    return _quoted(path.lstrip("/")) or "."


def _quoted(path: str) -> str:
    """Return a path in which all but the unreserved characters of RFC 3986 (2.3) and slashes are percent-encoded."""
    encoded = path.encode("utf-8", "surrogatepass")
    return _RESERVED.sub(lambda match: b"%%%02X" % match.group()[0], encoded).decode("ascii")


def _invocation(run: ReportedRun, *, with_answer: bool) -> dict[str, JsonValue]:
    facts = run.facts
    properties: dict[str, JsonValue] = {
        "run": run.name,
        "end": run.text("end") or facts.stop,
        "harness": facts.started.harness,
        "commit": facts.started.git_head,
        "dryRun": facts.started.dry_run,
        "plan": facts.started.plan,
        "session": facts.session,
        "log": run.text("log"),
        "logHead": run.text("head"),
        "records": run.result.get("records"),
        "cost": run.result.get("cost"),
        "calls": dict(facts.counts),
        "filesChanged": [
            {"path": change.path, "before": change.before_sha256, "after": change.after_sha256}
            for change in facts.changed
        ],
    }
    if answer := run.answer(with_answer=with_answer):
        properties["answer"] = visible(answer)
    fields: dict[str, JsonValue] = {"executionSuccessful": run.is_done, "properties": properties}
    code = run.exit_code
    if code is not None:
        fields |= {"exitCode": code, "exitCodeDescription": run.end_words}
    if moment := run.began:
        fields["startTimeUtc"] = moment
    _notify_all(fields, run, with_answer=with_answer)
    return fields


def _notify_all(invocation: dict[str, JsonValue], run: ReportedRun, *, with_answer: bool) -> None:
    for label, text in run.troubles(with_answer=with_answer):
        _notify(invocation, "warning" if label == DIVERGED else "error", f"{label}: {text}")
    if not run.is_done:
        detail = run.detail(with_answer=with_answer)
        _notify(invocation, "error", f"{run.end_words}{f': {detail}' if detail else ''}")
    for left_out in run.left_out:
        _notify(invocation, "warning", left_out)
    if unrecorded := run.unrecorded_changes:
        _notify(invocation, "note", unrecorded)


def _notify(invocation: dict[str, JsonValue], level: str, text: str) -> None:
    notifications = invocation.setdefault("toolExecutionNotifications", [])
    if isinstance(notifications, list):
        notifications.append({"level": level, "message": {"text": _message(text, 2_000)}})


def _message(text: str, width: int) -> str:
    """Return one line without links and placeholders. Never empty."""
    return _MARKUP.sub(lambda match: f"\\x{ord(match.group()):02x}", visible_line(text, width)) or "(nothing)"


REPORT = ReportForm(name="sarif", write=report)

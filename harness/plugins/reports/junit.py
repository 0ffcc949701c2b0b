"""The report as JUnit XML: one suite per run, one case per tool call.

A refused or invalid call is a failure. A hard block, a crash and a call with an unknown end are errors. A call that was
not run is skipped. A call that ran passes, regardless of its command's exit code, which is in `system-out`. The last
case of each suite, `run`, is the run itself. It is an error if the run was not completed.

There is no standard. The elements are those of Jenkins' xunit plugin (junit-10.xsd), which other programs read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.app.run.facts import ReportedCall
from harness.app.run.reported import (
    ReportedRun,
    answered_words,
    place,
)
from harness.paths import short_place
from harness.plugin import ReportForm
from harness.text.visible import visible, visible_line

_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids everywhere, even as references (section 2.2, Char)."""


def report(runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
    """Yield the report in pieces."""
    counts = [_counts(run) for run in runs]
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    total, failures, errors = (sum(row[index] for row in counts) for index in range(3))
    yield f'<testsuites name="harness" tests="{total}" failures="{failures}" errors="{errors}">\n'
    for run, run_counts in zip(runs, counts, strict=True):
        yield from _suite(run, run_counts, with_answer=with_answer)
    yield "</testsuites>\n"


def _counts(run: ReportedRun) -> tuple[int, int, int, int]:
    """Return the number of cases, failures, errors and skipped cases."""
    kinds = [_kind(row.status) for row in run.facts.calls]
    errors = kinds.count("error") + (not run.is_done)
    return len(kinds) + 1, kinds.count("failure"), errors, kinds.count("skipped")


def _kind(status: str) -> str:
    match status:
        case "denied" | "invalid":
            return "failure"
        case "blocked" | "crashed" | "unknown":
            return "error"
        case "not_run" | "open":
            return "skipped"
        case "ok" | "failed" | "timeout" | "interrupted":
            return ""
        case _:
            return "error"  # a status that harness never writes


def _suite(run: ReportedRun, counts: tuple[int, int, int, int], *, with_answer: bool) -> Iterator[str]:
    facts = run.facts
    total, failures, errors, skipped = counts
    name = f"harness: {run.name}" if run.name else "harness"
    attributes = {"name": name, "tests": total, "failures": failures, "errors": errors, "skipped": skipped}
    attributes |= {"time": _seconds(facts.seconds)}
    if moment := run.began:
        attributes["timestamp"] = moment[: len("2024-05-01T10:00:00")]
    yield f"  <testsuite{_attributes(attributes)}>\n"
    yield from _properties(run)
    for row in facts.calls:
        yield _case(row, name)
    yield _run_case(run, name, with_answer=with_answer)
    if answer := run.answer(with_answer=with_answer):
        yield f"    <system-out>The model's answer:\n{_text(answer)}</system-out>\n"
    yield "  </testsuite>\n"


def _properties(run: ReportedRun) -> Iterator[str]:
    facts = run.facts
    values = {
        "end": run.text("end") or facts.stop,
        "exit_code": "" if run.exit_code is None else str(run.exit_code),
        "model": run.text("model") or facts.started.model,
        "policy": facts.started.policy,
        "policy_sha256": facts.started.policy_sha256,
        "cost": run.cost_words,
        "turns": str(facts.turns),
        "input_tokens": str(facts.usage.input_tokens),
        "output_tokens": str(facts.usage.output_tokens),
        "files_changed": str(len(facts.changed) + facts.changed_left_out),
        "dry_run": "true" if facts.started.dry_run else "",
        "plan": "true" if facts.started.plan else "",
        "commit": facts.started.git_head,
        "harness": facts.started.harness,
        "session": facts.session,
        "log": run.text("log"),
        "head": run.text("head"),
    }
    yield "    <properties>\n"
    for name, value in values.items():
        if value:
            yield f"      <property{_attributes({'name': name, 'value': value})}/>\n"
    yield "    </properties>\n"


def _case(row: ReportedCall, suite: str) -> str:
    name = f"{row.name} {row.tool}: {row.summary}" if row.summary else f"{row.name} {row.tool}"
    attributes = {"name": name, "classname": suite, "time": _seconds(row.seconds)}
    inner = _verdict(row)
    start = f"    <testcase{_attributes(attributes)}"
    return f"{start}>{inner}</testcase>\n" if inner else f"{start}/>\n"


def _verdict(row: ReportedCall) -> str:
    kind = _kind(row.status)
    if kind == "skipped":
        return f"<skipped{_attributes({'message': row.note or 'its turn never came'})}/>"
    if kind == "":
        status = row.status if row.exit_code is None else f"{row.status}, exit code {row.exit_code}"
        return "" if row.status == "ok" else f"<system-out>{_text(status)}</system-out>"
    if row.is_refused:
        return _refusal(kind, row)
    message = row.note or {"unknown": "it was begun, and its end is not known"}.get(row.status, row.status)
    return f"<{kind}{_attributes({'type': row.status, 'message': message})}/>"


def _refusal(kind: str, call: ReportedCall) -> str:
    nobody = answered_words(call.answered_by, call.decision)
    lines = [
        f"decision: {call.decision}{f' ({nobody})' if nobody else ''}",
        f"decided by: {short_place(call.by)}",
        f"where: {place(call.file, call.line)}",
        f"layer: {call.layer}",
        f"part: {call.part}",
    ]
    if call.advice_toml:
        lines += ["a rule that would allow it (not applied):", call.advice_toml]
    if call.advice_why:
        lines.append(f"no rule is proposed: {call.advice_why}")
    attributes = {"type": call.rule or call.source or call.status, "message": f"{call.status}: {call.reason}"}
    body = _text("\n".join(lines))
    return f"<{kind}{_attributes(attributes)}>{body}</{kind}>"


def _run_case(run: ReportedRun, suite: str, *, with_answer: bool) -> str:
    facts = run.facts
    attributes = {"name": "run", "classname": suite, "time": _seconds(facts.seconds)}
    text = _text("\n".join(_run_lines(run, with_answer=with_answer)))
    inner = f"<system-out>{text}</system-out>" if text else ""
    if not run.is_done:
        detail = run.detail(with_answer=with_answer)
        message = f"{run.end_words} (exit code {run.exit_code}){f': {detail}' if detail else ''}"
        inner = f"<error{_attributes({'type': run.text('end') or 'run', 'message': message})}/>{inner}"
    start = f"    <testcase{_attributes(attributes)}"
    return f"{start}>{inner}</testcase>\n" if inner else f"{start}/>\n"


def _run_lines(run: ReportedRun, *, with_answer: bool) -> list[str]:
    lines = [f"{label}: {text}" for label, text in run.troubles(with_answer=with_answer)]
    lines += [
        f"changed: {visible_line(change.path, 500)} {change.before_sha256 or 'none'} -> {change.after_sha256 or 'none'}"
        for change in run.facts.changed
    ]
    unrecorded = run.unrecorded_changes
    return lines + ([unrecorded] if unrecorded else []) + run.left_out


def _seconds(value: float | None) -> str:
    return f"{min(max(value or 0.0, 0.0), 1e9):.3f}"


def _attributes(values: object) -> str:
    """Return XML attributes. Each value is on one line and cut."""
    if not isinstance(values, dict):
        return ""
    return "".join(f' {name}="{_escaped(visible_line(str(value), 1_000))}"' for name, value in values.items())


def _text(text: str) -> str:
    return _escaped(visible(text))


def _escaped(text: str) -> str:
    text = _NO_CHARACTER.sub("?", text)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(char, entity)
    return text


REPORT = ReportForm(name="junit", write=report)

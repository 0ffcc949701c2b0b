"""The report as Markdown, for a step summary or a comment. No text of a run can become markup.

INVARIANT: text by the model, a file or a policy is inside `code()` or `fenced()`. In `code()`, every character with a
meaning in Markdown or HTML is a numeric character reference (CommonMark 6.2: these are literal text, never structure).
It is in a <code> element, in which GitHub creates no links for mentions, issues or commits. In `fenced()`, the text is
in a fence that is longer than any fence in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.app.run.facts import MOST_TOML, ReportedCall, RunFacts
from harness.app.run.reported import (
    MOST_ANSWER,
    ReportedRun,
    answered_words,
    cut_words,
    place,
)
from harness.plugin import ReportForm
from harness.text.visible import visible, visible_line

MOST_BYTES = 1_000_000
"""Maximum size of a report in bytes.

GitHub allows 1 MiB (1,048,576 bytes) for a step summary, and drops a larger one.
"""
MOST_ROWS = 200
"""Maximum number of rows of each table of a run."""
MOST_RUNS = 1_000
"""Maximum number of rows of the table of runs."""

_UNSAFE = re.compile(r"[^\w .,/=+()%;'-]|_", re.ASCII)
_WWW = re.compile(r"(?i)(?<=www)\.")
_TICKS = re.compile("`+")


def report(runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
    """Yield the report in blocks, with less than MOST_BYTES in total. A note says if something is omitted.

    INVARIANT: the report can end after any block. Text that is appended there is not inside an element of a block.
    """
    room = MOST_BYTES - 1_000
    for block in _blocks(runs, with_answer=with_answer):
        room -= len(block.encode("utf-8", "backslashreplace"))
        if room < 0:
            yield "\n**The rest of this report is left out: it would be too long. The log has all of it.**\n"
            return
        yield block


def code(text: str, width: int = 200) -> str:
    """Return any text as Markdown, on one line in a <code> element. Empty for an empty text."""
    if not text:
        return ""
    line = visible_line(text, width)
    return f"<code>{_escaped(line)}</code>"


def fenced(text: str, info: str, max_characters: int) -> str:
    """Return a code block that no part of `text` can close.

    Of more than `max_characters`, only the beginning is included, with a note.
    """
    plain = visible(text[:max_characters])
    longest = max((len(run) for run in _TICKS.findall(plain)), default=0)
    fence = "`" * max(3, longest + 1)
    more = cut_words(text, max_characters)
    return f"{fence}{info}\n{plain}\n{fence}\n" + (f"\n{more}.\n" if more else "")


def _escaped(text: str) -> str:
    # `.` stays readable, except where it would make a link (GFM 6.9, extended autolinks).
    return _WWW.sub("&#46;", _UNSAFE.sub(_reference, text))


def _reference(match: re.Match[str]) -> str:
    char = match.group()
    return f"&#{ord(char)};" if char.isascii() else char


def _blocks(runs: Sequence[ReportedRun], *, with_answer: bool) -> Iterator[str]:
    if len(runs) == 1:
        yield from _run_lines(runs[0], "## ", with_answer=with_answer)
        return
    yield from _table_of_runs(runs)
    # Failed runs come first, because the space may not suffice for all.
    for run in sorted(runs, key=lambda reported: reported.is_done):
        yield f"\n### {code(run.name, 80) or 'run'}\n"
        yield from _run_lines(run, "", with_answer=with_answer)


def _table_of_runs(runs: Sequence[ReportedRun]) -> Iterator[str]:
    done = sum(1 for run in runs if run.exit_code == 0)
    yield f"## harness: {done:,} of {len(runs):,} runs done, nothing refused\n"
    yield "\n| run | exit code | end | denied | blocked | files changed | cost |\n|---|---|---|---|---|---|---|\n"
    for run in sorted(runs, key=lambda reported: reported.exit_code == 0)[:MOST_RUNS]:
        facts = run.facts
        cells = [code(run.name, 80), _number(run.exit_code), code(run.end_words, 80), str(facts.denied_count)]
        cells += [str(facts.blocked_count), str(len(facts.changed) + facts.changed_left_out), run.cost_words]
        yield f"| {' | '.join(cells)} |\n"
    if len(runs) > MOST_RUNS:
        yield f"\n{len(runs) - MOST_RUNS:,} more runs are not listed.\n"


def _run_lines(run: ReportedRun, mark: str, *, with_answer: bool) -> Iterator[str]:
    facts = run.facts
    if mark:
        yield f"{mark}harness: {_headline(run)}\n"
    else:
        yield f"\n**{_headline(run)}**\n"
    if facts.started.dry_run:
        yield "\n**Dry run: calls were judged, and none was run.**\n"
    if facts.started.plan:
        yield "\n**Plan mode lay over the policy: only what reads was run.**\n"
    if detail := run.detail(with_answer=with_answer):
        yield f"\n{code(detail, 1_000)}\n"
    yield from _figures(run)
    yield from _refusals(facts)
    yield from _notes(run, with_answer=with_answer)
    yield from _changes(run)
    yield from _log(run)
    if with_answer and run.text("answer"):
        answer = fenced(run.text("answer"), "text", MOST_ANSWER)
        yield f"\n<details><summary>The model's answer, as it wrote it</summary>\n\n{answer}\n</details>\n"


def _headline(run: ReportedRun) -> str:
    facts = run.facts
    refused = f", {facts.denied_count:,} denied" if facts.denied_count else ""
    blocked = f", {facts.blocked_count:,} blocked" if facts.blocked_count else ""
    end = run.end_words
    return f"{end if run.ended_in_own_words else code(end)}{refused}{blocked} (exit code {_number(run.exit_code)})"


def _figures(run: ReportedRun) -> Iterator[str]:
    facts = run.facts
    decisions = ", ".join(f"{count:,} {name}" for name, count in facts.decisions.items() if count and name != "none")
    invalid, not_run = (facts.counts.get(f"status_{name}", 0) for name in ("invalid", "not_run"))
    decisions = f"{decisions}; {invalid:,} not valid".removeprefix("; ") if invalid else decisions
    decisions = f"{decisions}; {not_run:,} not run".removeprefix("; ") if not_run else decisions
    usage = facts.usage
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    rows = {
        "calls": f"{facts.counts.get('calls', 0):,}{f' ({decisions})' if decisions else ''}",
        "turns": f"{facts.turns:,}",
        "tokens": f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out",
        "cost": run.cost_words,
        "helpers": f"{len(facts.helpers.of(facts.session)) or ''}",
        "time": "" if facts.seconds is None else f"{facts.seconds:,.1f} s",
        "model": code(run.text("model") or facts.started.model),
        "policy": f"{code(facts.started.policy)} {code(facts.started.policy_sha256[:12])}".strip(),
        "confinement": code(facts.started.confinement),
        "commit": code(facts.started.git_head[:12]),
        "harness": code(facts.started.harness),
        "replayed from": code(facts.started.replay),
    }
    yield "\n| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows.items() if value)


def _refusals(facts: RunFacts) -> Iterator[str]:
    refused = facts.refused
    if not refused:
        return
    count = facts.denied_count + facts.blocked_count
    yield f"\n### Refused ({count:,})\n"
    yield "\n| call | tool | what | status | rule | where | why |\n|---|---|---|---|---|---|---|\n"
    for call in refused[:MOST_ROWS]:
        yield f"| {' | '.join(_refusal_cells(call))} |\n"
    if len(refused) > MOST_ROWS:
        yield f"\n{len(refused) - MOST_ROWS:,} more refusals are not listed here; the log has them.\n"
    yield from _advice(refused)


def _refusal_cells(refusal: ReportedCall) -> tuple[str, ...]:
    nobody = answered_words(refusal.answered_by, refusal.decision)
    reason = code(refusal.reason, 300) + (f" ({code(nobody, 80)})" if nobody else "")
    rule = code(refusal.rule or refusal.source, 80)
    location = code(place(refusal.file, refusal.line), 80)
    call = code(refusal.name, 40)
    return (
        call,
        code(refusal.tool, 40),
        code(refusal.summary, 200),
        refusal.status,
        rule,
        location,
        reason,
    )


def _advice(refused: Sequence[ReportedCall]) -> Iterator[str]:
    tomls: dict[str, list[ReportedCall]] = {}
    for call in refused:
        if call.advice_toml:
            tomls.setdefault(call.advice_toml, []).append(call)
    if tomls:
        think = "Add one only if you want every later run to do this without being asked."
        yield f"\nRules that would allow refused calls (nothing was applied). {think}\n"
    for toml, ones in [*tomls.items()][:MOST_ROWS]:
        calls = ", ".join(code(call.name, 40) for call in ones[:10]) + (", ..." if len(ones) > 10 else "")
        rule = fenced(toml.rstrip(), "toml", MOST_TOML)
        yield f"\n<details><summary>A rule for call {calls}</summary>\n\n{rule}\n</details>\n"
    if len(tomls) > MOST_ROWS:
        yield f"\n{len(tomls) - MOST_ROWS:,} more rules are not listed.\n"
    whys = [call for call in refused if call.advice_why]
    for index, call in enumerate(whys[:MOST_ROWS]):
        start = "" if index else "\n"
        yield f"{start}- Call {code(call.name, 40)}: no rule is proposed: {code(call.why_no_rule, 300)}\n"
    if len(whys) > MOST_ROWS:
        yield f"\n{len(whys) - MOST_ROWS:,} more calls for which no rule is proposed are not listed.\n"


def _notes(run: ReportedRun, *, with_answer: bool) -> Iterator[str]:
    facts = run.facts
    notes = [f"{label}: {code(text, 700)}" for label, text in run.troubles(with_answer=with_answer)]
    unknown = [call for call in facts.calls if call.status == "unknown"]
    notes += [f"call {code(call.name, 40)} was begun, and its end is not known" for call in unknown[:MOST_ROWS]]
    notes += run.left_out
    if notes:
        yield "\n### Notes\n\n" + "".join(f"- {note}\n" for note in notes)


def _changes(run: ReportedRun) -> Iterator[str]:
    facts = run.facts
    changed = facts.changed
    if changed:
        yield f"\n### Files changed ({len(changed) + facts.changed_left_out:,})\n"
        yield "\n| file | SHA-256 before (its beginning) | after | calls |\n|---|---|---|---|\n"
    for change in changed[:MOST_ROWS]:
        calls = ", ".join(str(call)[:30] for call in change.calls[:10]) + (", ..." if len(change.calls) > 10 else "")
        path = _inside(change.path, facts.started.workspace)
        cells = (code(path, 300), _digest(change.before_sha256), _digest(change.after_sha256), code(calls, 200))
        yield f"| {' | '.join(cells)} |\n"
    if len(changed) > MOST_ROWS:
        yield f"\n{len(changed) - MOST_ROWS:,} more files are not listed here; the log has them.\n"
    if note := run.unrecorded_changes:
        yield f"\n{note}\n"


def _digest(sha256: str | None) -> str:
    return code(sha256[:12], 12) if sha256 else "none"


def _inside(path: str, workspace: str) -> str:
    return path.removeprefix(workspace + "/") if workspace.startswith("/") else path


def _log(run: ReportedRun) -> Iterator[str]:
    records = run.result.get("records")
    count = f", {records:,} records" if type(records) is int else ""
    head = f", head {code(run.text('head'), 80)}" if run.text("head") else ""
    yield f"\nLog: {code(run.text('log'), 500) or 'none'}{count}{head}.\n"


def _number(value: int | None) -> str:
    return "not known" if value is None else str(value)


REPORT = ReportForm(name="md", write=report)

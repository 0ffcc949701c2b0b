"""The line of the trace for an ended call: the call, its result, and the origin of the permission or refusal.

Two forms share their words. The full form, for auditors, names the rule with its file and line. The short form, for the
screen, names only what the user or a rule of theirs decided; `/why` shows the rest.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.audit.calls import answerer, hosts_of, number, sign_of, word
from harness.audit.command_changes import change_counts
from harness.log.order import LogRecord
from harness.log.vocabulary import MODES, SEEN_BY_US, Answer
from harness.paths import short_place
from harness.terminal.change_rows import changed_files
from harness.terminal.styles import Line, Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tool_kinds import Does, shipped_that, tool_kind

_WHY = 200
"""Maximum number of characters shown of the reason for a failure or refusal."""

_WRITERS = shipped_that(Does.WRITES)
_COUNTS = re.compile(r"(?:Edited|Overwrote) .* \((\+\d+) (-\d+)(?: lines)?\)(?:; kept: .*)?")
"""The counts of lines in a result. The last brackets are the tool's; earlier ones may be part of the file name."""
_NEW = re.compile(r"Created .* \((\d[\d,]* lines?), [\d,]+ bytes?\)")
"""The count of lines in the result of a new file."""
MOST_HIDDEN = 3
"""Maximum number of files named that were hidden from a command. The others are counted."""
_LEAST_MS = 1_000
"""Minimum duration of a call that the short form names, in milliseconds."""

_STATUS_TONES: Mapping[str, Tone] = {
    "ok": Tone.GOOD,
    "failed": Tone.WARNING,
    "timeout": Tone.WARNING,
    "interrupted": Tone.WARNING,
    "crashed": Tone.BAD,
    "invalid": Tone.WARNING,
    "denied": Tone.BAD,
    "blocked": Tone.BAD,
    "not_run": Tone.QUIET,
}


def ended_line(
    outcome: LogRecord,
    decision: LogRecord,
    approval: LogRecord,
    *,
    proposal: LogRecord | None = None,
    typed: bool = False,
    short: bool = False,
    lists_files: bool = False,
) -> Line:
    """Return the line for an ended call. `decision` and `approval` are empty if it has none.

    `proposal` describes a call that was not prepared. `typed`: it is a `!command` of the user, not a call of the model.
    `short` chooses the short form. `lists_files`: the row below names the files that a command changed, so the line does
    not count them.
    """
    is_listed = lists_files and bool(changed_files(outcome))
    status = word(outcome.get("status"))
    if status == "not_run" and proposal and not decision.get("summary"):
        call = visible_line(_summary_of(proposal), 100)
        reason = _how_ended(status, outcome, "")
        return Line(tone=Tone.QUIET, text=f"{sign_of(status)} {word(outcome.get('tool'))}  {call}  {reason}")
    summary = word(decision.get("summary")) or word(outcome.get("content"))
    edited = status == "denied" and approval.get("answer") == Answer.EDIT.value
    sign = sign_of("not_run" if edited else status)
    call = f"{sign} {word(outcome.get('tool'))}  {visible_line(summary, 100)}"
    if unseen := _unseen_part(summary, decision):
        call += f"  ({unseen})"
    reason = "" if approval else _reason(decision)
    result = _how_ended(status, outcome, reason, decision=decision, short=short, is_listed=is_listed)
    if edited:
        result = f"replaced by call {word(approval.get('edited_to'))}, as {'you' if short else 'the person'} edited it"
    by = _in_short(decision, approval, typed=typed) if short else ""
    if short:
        parts = [call, result, by]
    else:
        parts = [call, "[typed by the person]" if typed else "", how_decided(decision, approval), result]
    if said_by := word(outcome.get("seen_by")):
        parts.append(f"(seen by {said_by})" if said_by == SEEN_BY_US else f"(as {said_by} says)")
    tone = Tone.QUIET if edited else _STATUS_TONES.get(status, Tone.BAD)
    if tone is Tone.GOOD and _jobs_ended(outcome):
        tone = Tone.WARNING
    if tone is Tone.GOOD and not approval:  # quiet like most calls, so that calls approved by the user are noticeable
        tone = Tone.QUIET
    text = visible_line("  ".join(part for part in parts if part), 700)
    by = visible_line(by, 700)
    return Line(tone=tone, text=text, quiet=by if text.endswith(by) else "", command=_applying(outcome))


def _summary_of(proposal: LogRecord) -> str:
    """Return a short description of a call that was not prepared: its subject, or the first text argument."""
    arguments = word(proposal.get("arguments"))
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return arguments  # the arguments are not valid JSON
    texts = {name: text for name, text in parsed.items() if isinstance(text, str)} if isinstance(parsed, dict) else {}
    subject = tool_kind(word(proposal.get("tool"))).subject
    return texts.get(subject, texts.get("path", next(iter(texts.values()), arguments)))


def how_decided(decision: LogRecord, approval: LogRecord) -> str:
    """Return, in brackets, the origin of the decision on a call: an answer with its time, or a rule.

    Empty if the call was not decided.
    """
    if not decision or decision.get("decision") == "none":
        return ""
    by, as_read = short_place(word(decision.get("by"))), decision.get("default_of")
    if approval:
        words, answer = _words_with(approval), word(approval.get("answer"))
        if answer == Answer.NOBODY.value:
            return f"[nobody {'answered' if words else 'to ask'}: {by}{words}]"
        waited = approval.get("seconds")
        seconds = f"{waited:.1f}" if isinstance(waited, float) else word(waited)
        scope = f" for the {word(approval.get('scope'))}" if approval.get("scope") else ""
        opened = f"{opening}," if (opening := _opened_with(approval)) else ""
        return f"[asked: {answer}{scope}{opened} by {answerer(approval)}{word(approval.get('granted'))}, {seconds} s{words}]"
    if grant := _grant_of(decision):
        return f"[mode {mode}]" if (mode := MODES.get(grant)) else f"[{word(decision.get('reason'))}: {grant}]"
    # A write that does not apply, or changes no file, was judged as the read that it is (Action.default_of).
    note = " as it writes nothing" if as_read and by.startswith("default ") else ""
    return f"[{word(decision.get('decision'))}{note}: {by}]"


def _grant_of(decision: LogRecord) -> str:
    """Return the ID of the grant that allowed a call. Empty if none did."""
    by_grant = decision.get("layer") == "session" and decision.get("decision") == "auto"
    return word(decision.get("rule")) if by_grant else ""


def _in_short(decision: LogRecord, approval: LogRecord, *, typed: bool) -> str:
    """Return, in brackets, the person, the grant, the mode or the rule that decided. Empty for a default that allows."""
    if typed:
        return "[you]"
    if approval:
        return f"[{_answer_in_short(approval)}]"
    if grant := _grant_of(decision):
        return f"[{MODES.get(grant, grant)}]"
    by, _, _ = word(decision.get("by")).partition(" (")
    match decision.get("decision"), decision.get("source"):
        case "deny" | "block", "default":
            return f"[{by}]"
        case "auto" | "deny" | "block", "rule":
            return f"[{word(decision.get('rule')) or by.removeprefix('rule ')}]"
        case "auto" | "deny" | "block", "hook" | "built-in" | "opaque":
            return f"[{by}]"
        case _:
            return ""


def _answer_in_short(approval: LogRecord) -> str:
    """Return the answer to a question in few words. The result of the call tells a yes from a no."""
    words, answer, by = _words_with(approval), word(approval.get("answer")), answerer(approval)
    if answer == Answer.NOBODY.value:
        return f"nobody {'answered' if words else 'to ask'}{words}"
    person = "you" if by == "person" else by
    stops = f", {answer}" if answer in (Answer.STOP.value, Answer.HALT.value) else ""
    scope = f", for the {word(approval.get('scope'))}" if approval.get("scope") else ""
    return f"{person}{stops}{_opened_with(approval)}{scope}{word(approval.get('granted'))}{words}"


def _words_with(approval: LogRecord) -> str:
    """Return the words of an answer, in quotes after a colon. Empty without words."""
    return f': "{word(approval.get("words"))}"' if approval.get("words") else ""


def _opened_with(approval: LogRecord) -> str:
    """Return the openings of an answer, after a comma. Empty without openings."""
    opens = approval.get("opens")
    return f", opened {', '.join(map(word, opens))}" if isinstance(opens, list) else ""


def _unseen_part(summary: str, decision: LogRecord) -> str:
    """Return the first part that was asked about or refused, if the summary of a long call does not contain it."""
    parts = decision.get("facets")
    if not summary.rstrip(")").endswith(("...", "characters")) or not isinstance(parts, list):
        return ""
    asked_facets = [
        word(facet.get("facet")) for facet in parts if isinstance(facet, dict) and facet.get("decision") != "auto"
    ]
    return visible_line(next((part for part in asked_facets if part and part not in summary), ""), 100)


def _reason(decision: LogRecord) -> str:
    """Return the reason of a rule or built-in decision. Empty for a default, whose name is the reason."""
    return "" if decision.get("source") == "default" else visible_line(word(decision.get("reason")), _WHY)


def _how_ended(
    status: str,
    outcome: LogRecord,
    reason: str,
    *,
    decision: LogRecord | None = None,
    short: bool = False,
    is_listed: bool = False,
) -> str:
    """Return the status of a call, with the reason of a refusal or the first line of a failure."""
    took, counts = _took(outcome, short=short), _file_counts(outcome, is_listed=is_listed)
    match status:
        case "ok" | "failed" if outcome.get("exit_code") is not None:
            location = ", at the terminal" if outcome.get("terminal") is True else ""
            rest = f"{counts}{took}{location}{_refused_hosts(outcome)}{_hidden_files(decision)}"
            return f"{_jobs_ended(outcome)}exit {word(outcome['exit_code'])}{rest}"
        case "ok" if name := _background(outcome):
            return f"started in the background as {name}{counts}"
        case "ok":
            return f"ok{_changed(outcome)}{took}{_not_applied(outcome)}"
        case "failed" | "crashed":
            first = word(outcome.get("content")).removeprefix("Error: ").partition("\n")[0]
            return f"{status}{took}: {visible_line(first, _WHY)}" if first else f"{status}{took}"
        case "denied" | "blocked" if reason:
            return f"{status}: {reason}"
        case "not_run":
            return visible_line(f"n{word(outcome.get('content'))[1:]}", _WHY)
        case _:
            return f"{status}{counts}{_not_applied(outcome)}"


def _file_counts(outcome: LogRecord, *, is_listed: bool) -> str:
    """Return the changes of a command in short, after a comma. Empty without known changes."""
    counts = change_counts(outcome.get("changes"), is_listed=is_listed)
    return f", {counts}" if counts else ""


def _not_applied(outcome: LogRecord) -> str:
    """Return a note that the changes of a helper are in a patch. Empty if they are not."""
    return "; nothing is applied, the next line does it" if word(outcome.get("patch_file")) else ""


def _applying(outcome: LogRecord) -> str:
    """Return the command that applies the patch of a helper, safe to show. Empty without a patch."""
    path = word(outcome.get("patch_file"))
    return visible_line(f"git apply {shlex.quote(path)}", 5_000) if path else ""


def _jobs_ended(outcome: LogRecord) -> str:
    """Return a note with the number of background processes that ended with their call. Empty if there were none."""
    count = int(number(_extra(outcome), "jobs_ended") or 0)
    return f"{count_of(count, 'background process', 'background processes')} ended with the call; " if count else ""


def _background(outcome: LogRecord) -> str:
    """Return the name under which a command goes on in the background. Empty if it does not."""
    return visible_line(word(_extra(outcome).get("background")), 40)


def _extra(outcome: LogRecord) -> Mapping[str, JsonValue]:
    """Return the facts of the tool itself about the result of a call."""
    extra = outcome.get("extra")
    return extra if isinstance(extra, dict) else {}


def _refused_hosts(outcome: LogRecord) -> str:
    """Return a note with the first host that was refused to a command, and the number of others. Empty if none was."""
    hosts = hosts_of(outcome, allowed=False)
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    return f"; refused: {visible_line(hosts[0], 100)}{more}" if hosts else ""


def _hidden_files(decision: LogRecord | None) -> str:
    """Return a note with the first files that were hidden from a command, since a rule denies reading them."""
    effects = decision.get("effects") if decision else None
    names = effects.get("left_out") if isinstance(effects, dict) else None
    if not isinstance(names, list) or not names:
        return ""
    more = f" and {len(names) - MOST_HIDDEN} more" if len(names) > MOST_HIDDEN else ""
    first_names = ", ".join(visible_line(word(name), 60) for name in names[:MOST_HIDDEN])
    return f"; left out, since a rule denies reading: {first_names}{more}"


def _changed(outcome: LogRecord) -> str:
    """Return a note with the numbers of added and removed lines, if the tool reports them."""
    if word(outcome.get("tool")) not in _WRITERS:
        return ""
    first_line = word(outcome.get("content")).partition("\n")[0]
    if counts := _COUNTS.fullmatch(first_line):
        return f", {counts[1]}/{counts[2]}"
    new = _NEW.fullmatch(first_line)
    return f", new, {new[1]}" if new else ""


def _took(outcome: LogRecord, *, short: bool) -> str:
    duration = number(outcome, "duration_ms")
    return f", {duration / 1000:.1f} s" if duration is not None and not (short and duration < _LEAST_MS) else ""

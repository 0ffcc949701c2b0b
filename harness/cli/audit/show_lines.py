"""The lines of `harness audit show`: what a timeline says of a call and of every other record."""

from __future__ import annotations

from collections.abc import Iterator

from harness.actions import JsonValue
from harness.audit.calls import Fate, LoggedCall, edited_from, edited_to, text, word
from harness.cli.audit.answer_writer import json_text, short_digest
from harness.cli.trace import Line, Tone, ended_line, event_line, how_decided
from harness.log.order import MOST_FACETS, LogRecord
from harness.paths import short_place
from harness.text.visible import visible, visible_line

_WIDTH = 500
_UNKNOWN = "UNKNOWN: it was begun and its end is not known; it may have run, wholly or in part"


def call_lines(call: LoggedCall, *, full: bool) -> Iterator[Line]:
    """Yield what is said of a call: the line that `run` shows, and below it what the log knows besides."""
    first = _first_line(call)
    yield Line(tone=first.tone, text=f"#{visible_line(call.number, 20)} {first.text}")
    for tone, said in (*_edits(call), *_facets(call, full=full), *_changes(call)):
        yield Line(tone=tone, text=visible_line(said, 5_000 if full else _WIDTH))
    if full:
        yield from _whole_call(call)


def record_lines(record: LogRecord, *, full: bool) -> Iterator[Line]:
    """Yield what is said of a record that is about no call; nothing where another record says the same."""
    event = event_line(record)
    if event is not None:
        yield event
    elif change := _change_words(record):
        yield Line(tone=Tone.WARNING, text=visible_line(change, _WIDTH))
    elif said := _record_words(record):
        title, body = said
        yield Line(tone=Tone.QUIET, text=visible_line(f"{title}{'' if full else body}", _WIDTH))
        if full and body:
            yield from _block(body)
    if full and record["kind"] == "session_started":
        yield from _begun(record)
    if full and record["kind"] == "policy_changed":
        yield from _policy_files(record)


def heading(call: LoggedCall) -> str:
    """Return what is said of the session of a call, where nothing else of the session is shown."""
    about = [text(call.started, name) for name in ("mode", "model")]
    about = [one for one in about if one]
    begun = text(call.started, "time")[:19].replace("T", " ")
    return f"session {call.session} in {text(call.started, 'workspace')} ({', '.join([*about, begun])}), {call.log}"


def _first_line(call: LoggedCall) -> Line:
    match call.fate:
        case Fate.UNKNOWN:
            how = how_decided(call.decision, call.answered)
            said = f"? {call.tool}  {visible_line(call.summary, 100)}  {how}  {_UNKNOWN}"
            return Line(tone=Tone.BAD, text=visible_line(said, 400))
        case Fate.OPEN:
            asked = "asked, no answer recorded; " if call.asked and not call.answered else ""
            said = f". {call.tool}  {visible_line(call.summary, 100)}  {asked}the log ends before it was begun"
            return Line(tone=Tone.WARNING, text=visible_line(said, 400))
        case Fate.RAN | Fate.REFUSED | Fate.INVALID | Fate.NOT_RUN:
            return ended_line(call.outcome, call.decision, call.answered)


def _edits(call: LoggedCall) -> Iterator[tuple[Tone, str]]:
    if (origin := edited_from(call)) is not None:
        yield Tone.WARNING, f"made of call {word(origin)} by who was asked about that one"
    if (place := edited_to(call)) is not None:
        yield Tone.WARNING, f"call {word(place)} was put in its place"


def _facets(call: LoggedCall, *, full: bool) -> Iterator[tuple[Tone, str]]:
    """Yield the parts of a call with what decided each, where that is more than its first line says."""
    facets = call.decision.get("facets")
    parts = [facet for facet in facets if isinstance(facet, dict)] if isinstance(facets, list) else []
    if call.decided == "auto" and not full:
        return
    if len(parts) == 1 and not call.asked and text(parts[0], "by") == call.by and not full:
        return
    for part in parts if parts or not call.asked else [_whole_decision(call)]:
        decision = text(part, "decision")
        tone = Tone.QUIET if decision == "auto" else Tone.WARNING
        yield tone, f"{decision:8} {text(part, 'facet')}  [{short_place(text(part, 'by'))}]"
    total = call.decision.get("facet_count")
    if len(parts) >= MOST_FACETS and isinstance(total, int) and total > len(parts):
        yield Tone.WARNING, f"the log names {len(parts)} of {word(total)} parts"


def _whole_decision(call: LoggedCall) -> dict[str, JsonValue]:
    return {"decision": call.decided, "facet": text(call.decision, "reason"), "by": call.by}


def _changes(call: LoggedCall) -> Iterator[tuple[Tone, str]]:
    changed = text(call.outcome, "changed_path")
    change = call.intent.get("change")
    if changed:
        before, after = (text(call.outcome, name) or None for name in ("before_sha256", "after_sha256"))
        did = "made" if before is None else "changed"
        yield Tone.PLAIN, f"{did} {changed}  {short_digest(before)} -> {short_digest(after)}"
    elif isinstance(change, dict) and call.fate is Fate.UNKNOWN:
        before, after = (text(change, name) or None for name in ("before_sha256", "after_sha256"))
        yield Tone.BAD, f"was to change {text(change, 'path')}  {short_digest(before)} -> {short_digest(after)}"


def _whole_call(call: LoggedCall) -> Iterator[Line]:
    arguments, most = text(call.proposed, "arguments"), call.proposed.get("arguments_characters")
    cut = f" (the log has the first {len(arguments)} of {most} characters)" if isinstance(most, int) else ""
    yield Line(tone=Tone.QUIET, text=f"arguments{cut}:")
    yield from _block(arguments)
    for record, name in ((call.decision, "reason"), (call.answered, "words"), (call.intent, "confinement")):
        if text(record, name):
            yield Line(tone=Tone.QUIET, text=visible_line(f"{name}: {text(record, name)}", 5_000))
    if call.outcome:
        yield Line(tone=Tone.QUIET, text="what the model read:")
        yield from _block(text(call.outcome, "content"))


def _begun(record: LogRecord) -> Iterator[Line]:
    common = ("v", "seq", "time", "mono_ns", "session", "kind", "prev", "system", "policy_files")
    more = {name: value for name, value in record.items() if name not in common}
    for name in sorted(more):
        yield Line(tone=Tone.QUIET, text=visible_line(json_text({name: more[name]})[1:-1], 5_000))
    yield from _policy_files(record)
    yield Line(tone=Tone.QUIET, text="system prompt:")
    yield from _block(text(record, "system"))


def _policy_files(record: LogRecord) -> Iterator[Line]:
    files = record.get("policy_files")
    for one in files if isinstance(files, list) else ():
        if isinstance(one, dict):
            about = "  ".join(word(one.get(name)) for name in ("layer", "path", "sha256"))
            yield Line(tone=Tone.QUIET, text=visible_line(f"policy file: {about}", 5_000))


def _block(body: str) -> Iterator[Line]:
    """Yield a text whole, each of its lines behind a bar: none of them can pass for a line of the timeline."""
    for one in body.split("\n"):
        yield Line(tone=Tone.QUIET, text=f"| {visible(one.expandtabs())}")


def _change_words(record: LogRecord) -> str:
    """Return what is in force from a record on: another policy, another model, a grant; empty for any other record."""
    said = {name: word(value) for name, value in record.items()}

    def get(name: str) -> str:
        return said.get(name, "")

    match record["kind"]:
        case "policy_changed":
            return f"~ policy {get('policy')} ({get('policy_sha256')[:16]}) holds from here on: {get('why')}{_answer(record)}"
        case "model_changed":
            return f"~ model {get('model')} is asked from here on"
        case "grant":
            where = f"[{get('file')}:{get('line')}]"
            return f"~ {get('change')} {get('grant')} for the {get('scope')}: {get('text')}  {where}"
        case _:
            return ""


def _answer(record: LogRecord) -> str:
    """Return what the person answered where that led to a record, or nothing."""
    asked = record.get("asked")
    if not isinstance(asked, dict):
        return ""
    words = f', "{word(asked.get("words"))}"' if asked.get("words") else ""
    return f"; asked: {word(asked.get('question'))}? {word(asked.get('answer'))} by {word(asked.get('by'))}{words}"


def _record_words(record: LogRecord) -> tuple[str, str] | None:
    """Return the line for what the trace of a running session leaves out: its beginning, and a text that may be long."""
    said = {name: word(value) for name, value in record.items()}

    def get(name: str) -> str:
        return said.get(name, "")

    match record["kind"]:
        case "session_started" if record.get("mode") == "undo":
            return f"undo {get('session')} in {get('workspace')}: harness {get('harness')}", ""
        case "restored":
            of = f"call {get('call')} {get('tool')} of session {get('of_session')}"
            return f"{get('result')}  {get('path') or get('command')}  [{of}]  {get('detail')}", ""
        case "session_started":
            title = f"session {get('session')} in {get('workspace')}: harness {get('harness')}, model {get('model')}, "
            return f"{title}policy {get('policy')} ({get('policy_sha256')[:16]})", ""
        case "user_message":
            return "> ", get("text")
        case "history_changed":
            messages = record.get("messages")
            count = len(messages) if isinstance(messages, list) else 0
            where = f"{count} messages for those from {get('start')} to {get('stop')}"
            return f"~ the conversation was changed ({get('why')}): {where}", ""
        case "recovered":
            kept = f"{get('torn_bytes')} torn bytes are kept in {get('kept_in')}"
            calls = record.get("open")
            names = ", ".join(map(word, calls)) if isinstance(calls, list) and calls else "none"
            return f"~ the log was mended after a crash: {kept}; calls without an end: {names}", ""
        case "model_response" if record.get("text"):
            return "< ", get("text")
        case "session_ended":
            return f"session ended: {get('stop')} {get('detail')}", ""
        case _:
            return None

"""The time line of a report: every record in the log's order, folded by session, prompt and turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias

from harness.actions import JsonValue
from harness.app.pages import line, moment, number, value_text
from harness.audit.calls import (
    ABOUT_CALLS,
    STANDING_NAMES,
    UNJUDGED_KIND,
    CallStanding,
    Joiner,
    LoggedCall,
    answerer,
    did_fail,
    rule_of,
    sign_of_call,
    standing_of,
)
from harness.audit.command_changes import change_counts
from harness.log.order import LogRecord
from harness.log.reader import finite, whole_number
from harness.log.schema import problem
from harness.plugins.insight.report.lists import ReportDetail
from harness.plugins.insight.report.spans import Block, PageSpan, block, code, digest, waited
from harness.text.amounts import duration

Event: TypeAlias = Mapping[str, object]
"""One element of the time line for timeline.html: its `kind`, and the variables that the template uses for it."""


class _Level(IntEnum):
    """Levels of nested, foldable sections."""

    SESSION = 1
    PROMPT = 2
    TURN = 3


class _Timeline:
    """Turns records into events, in order. An open section ends when another session, prompt or turn begins."""

    def __init__(self, show: ReportDetail) -> None:
        self.calls = 0
        self._show = show
        self._open: list[_Level] = []
        self._session: tuple[str, str] | None = None
        self._seen_keys: set[tuple[str, str]] = set()
        self._joiner = Joiner("")
        self._log = ""

    def record(self, log: str, record: LogRecord) -> Iterator[Event]:
        """Yield the events of a record. A call's event is yielded at its outcome."""
        if log != self._log:
            yield from self.unended()
            self._log, self._joiner = log, Joiner(log)
        kind, session = str(record["kind"]), str(record["session"])
        yield from self._enter(session, record)
        if ended_call := self._joiner.take(record):
            yield from self._call(ended_call)
        if kind in ABOUT_CALLS:
            return
        if kind == "session_ended":
            for call in self._joiner.rest(session):
                yield from self._call(call)
        if kind in ("user_message", "session_ended"):
            yield from self._close(_Level.PROMPT)
        if kind == "model_request":
            yield from self._close(_Level.TURN)
        yield from self._record(kind, record)
        yield from raw_if_odd(record, self._show.characters)

    def unended(self) -> Iterator[Event]:
        """Yield the events of the log's calls without an outcome."""
        for call in self._joiner.rest():
            yield from self._enter(call.session, {})
            yield from self._call(call)

    def close(self) -> Iterator[Event]:
        """Yield the ends of all open sections."""
        yield from self._close(_Level.SESSION)
        self._session = None

    def _call(self, call: LoggedCall) -> Iterator[Event]:
        self.calls += 1
        yield whole_call(call, self._show)

    def _enter(self, session: str, first: LogRecord) -> Iterator[Event]:
        """Yield the events that open a session, unless it is open already."""
        key = self._log, session
        if key == self._session:
            return
        yield from self._close(_Level.SESSION)
        figures = self._show.figures.sessions.get(key)
        again = key in self._seen_keys
        helper = (
            f"helper {number(figures.helper)} of {line(figures.helper_of, 60)}, "
            if figures and figures.helper_of
            else ""
        )
        description = (
            helper + f"{line(figures.start_fields['mode'], 40)} in {line(figures.start_fields['workspace'], 200)}, "
            if figures
            else ""
        )
        yield {
            "kind": "session",
            "anchor": f"s{figures.place}" if figures and not again else "",
            "place": str(figures.place if figures else "?"),
            "name": f"{line(session, 60)}{' (goes on)' if again else ''}",
            "about": description + (f"{number(figures.calls)} calls" if figures else ""),
            "began": moment(first.get("time")),
        }
        self._seen_keys.add(key)
        self._session = key
        self._open.append(_Level.SESSION)

    def _close(self, level: _Level) -> Iterator[Event]:
        while self._open and self._open[-1] >= level:
            self._open.pop()
            yield {"kind": "close"}

    def _record(self, kind: str, record: LogRecord) -> Iterator[Event]:
        """Yield the events of a record that is not about a call."""
        characters = self._show.characters
        self.calls += kind == UNJUDGED_KIND
        match kind:
            case "model_request":
                self._open.append(_Level.TURN)
                yield {
                    "kind": "turn",
                    "number": line(record.get("turn"), 20),
                    "purpose": f" ({line(record['purpose'], 40)})" if "purpose" in record else "",
                    "messages": line(record.get("messages"), 20),
                    "time": moment(record["time"]),
                }
            case "user_message":
                self._open.append(_Level.PROMPT)
                prompt = value_text(record.get("text"))
                is_long = len(prompt) > 160 or "\n" in prompt
                text = block(prompt, characters) if is_long else None
                yield {"kind": "prompt", "beginning": line(prompt, 160), "text": text}
            case "model_response":
                text = block(record["text"], characters) if record.get("text") else None
                yield {"kind": "reply", "text": text, "words": _reply_words(record)}
            case _:
                is_bad = kind in ("error", "limit", "recovered", "places_changed", UNJUDGED_KIND)
                fields = {name: value for name, value in record.items() if name not in _COMMON}
                yield {
                    "kind": "record",
                    "is_bad": is_bad,
                    "name": line(kind, 60),
                    "time": moment(record["time"]),
                    "fields": [(line(name, 60), *_value(value, characters)) for name, value in fields.items()],
                }


def timeline(records: Iterable[tuple[str, LogRecord]], show: ReportDetail, most_calls: int | None) -> Iterator[Event]:
    """Yield the time line of these records.

    It stops after `most_calls` calls (`None`: no limit), with an event that counts the rest.
    """
    written = _Timeline(show)
    left_out = 0
    for log, record in records:
        if most_calls is not None and written.calls >= most_calls:
            left_out += 1
        else:
            yield from written.record(log, record)
    if not left_out:  # otherwise the outcomes of calls in flight may be among the records left out
        yield from written.unended()
    yield from written.close()
    if left_out:
        rest = max(0, show.figures.calls - written.calls)
        yield {"kind": "cut", "shown": written.calls, "calls": rest, "records": left_out}


_COMMON = frozenset(("v", "seq", "time", "mono_ns", "session", "kind", "prev"))


def _value(value: object, characters: int | None) -> tuple[Block, bool]:
    """Return a value, and whether it is too long for one line."""
    text = value_text(value)
    is_long = len(text) > 120 or "\n" in text
    return block(text, characters) if is_long else Block(line(text, 120), 0), is_long


def _reply_words(record: LogRecord) -> str:
    words = f"{line(record.get('calls'), 20)} calls, {line(record.get('finish_reason'), 40)}, "
    words += f"{line(record.get('input_tokens'), 20)} tokens in, {line(record.get('output_tokens'), 20)} out"
    return words + (f", {line(record['ms'], 20)} ms" if "ms" in record else "")


def whole_call(call: LoggedCall, show: ReportDetail) -> Event:
    """Return the event of one call: its arguments, decision, question, run and result."""
    return {
        "kind": "call",
        "anchor": show.anchor(call),
        "sign": sign_of_call(call),
        "number": line(call.number, 20),
        "tool": line(call.tool, 60),
        "summary": line(call.summary, 160),
        "ending": _ending(standing_of(call), call),
        "edited_from": _edited_from(call),
        "arguments": block(_arguments(call), show.characters),
        "decision": _about_decision(call),
        "facets": _facets(call.decision.get("facets")),
        "question": _question(call),
        "run": _about_run(call),
        "result": _result(call, show),
        "odd": [odd for record in call.records for odd in raw_if_odd(record, show.characters)],
    }


def _question(call: LoggedCall) -> Event | None:
    if not (call.asked or call.answered):
        return None
    words = call.answered.get("words")
    return {
        "answer": line(call.answered.get("answer"), 20) or "none in the log",
        "who": answerer(call.answered) or "nobody that the log tells of",
        "waited": waited(call),
        "words": line(words, 1000) if words else "",
        "shown": [("what was shown, SHA-256", [digest(call.asked.get("shown_sha256"))])],
    }


def _result(call: LoggedCall, show: ReportDetail) -> Block | str:
    if standing_of(call) is CallStanding.UNKNOWN:
        return "unknown"
    return block(call.outcome.get("content"), show.characters) if call.outcome else "not begun"


def raw_if_odd(record: LogRecord, characters: int | None) -> Iterator[Event]:
    """Yield the whole record if it does not fit its kind's schema, since other events may lack some of its fields."""
    reason = problem(record) if record else ""
    if reason:
        yield {"kind": "odd", "why": line(reason, 300), "text": block(dict(record), characters)}


def _ending(standing: CallStanding, call: LoggedCall) -> str:
    parts = [STANDING_NAMES[standing]]
    if call.outcome and (standing in (CallStanding.UNASKED, CallStanding.APPROVED) or did_fail(call)):
        parts.append(line(call.outcome.get("status"), 30))
        milliseconds = whole_number(call.outcome.get("duration_ms"))
        parts += [duration(milliseconds / 1000)] if milliseconds is not None else []
    return ", ".join(parts)


def _edited_from(call: LoggedCall) -> str:
    return (
        f" (edited by a person from call {line(call.proposed['edited_from'], 20)})"
        if "edited_from" in call.proposed
        else ""
    )


def _arguments(call: LoggedCall) -> JsonValue:
    """Return the arguments as logged. Text that the log cut off ends with a note."""
    raw = call.proposed.get("arguments")
    total = whole_number(call.proposed.get("arguments_characters"))
    if total is None or not isinstance(raw, str):
        return raw
    return f"{raw}\n... (the log holds the beginning only, of {number(total)} characters)"


Fact: TypeAlias = "tuple[str, Sequence[PageSpan]]"


def _about_decision(call: LoggedCall) -> list[Fact]:
    decision = call.decision
    if not decision:
        return [("decision", [PageSpan("none in the log", "mark")])]
    rows = [
        ("decision", PageSpan(line(decision.get("decision"), 20), "word")),
        ("by", PageSpan(line(rule_of(call), 400))),
        ("layer", PageSpan(line(decision.get("layer"), 60))),
        ("reason", PageSpan(line(decision.get("reason"), 1000))),
        ("policy", digest(decision.get("policy_sha256")) if "policy_sha256" in decision else PageSpan("")),
    ]
    return _facts_with_text(rows)


def _facts_with_text(facts: Sequence[tuple[str, PageSpan]]) -> list[Fact]:
    """Return the facts whose text is not empty."""
    return [(name, [value]) for name, value in facts if value.text]


def _facets(facets: JsonValue) -> list[tuple[str, str, str, str]]:
    """Return the judged parts of the call: text, kind, decision and decider of each."""
    if not facets:
        return []
    rows = []
    for facet in facets if isinstance(facets, list) else [facets]:
        fields: LogRecord = facet if isinstance(facet, dict) else {"facet": facet}
        part, kind = line(fields.get("facet"), 400), line(fields.get("kind"), 40)
        rows.append((part, kind, line(fields.get("decision"), 20), line(fields.get("by"), 300)))
    return rows


def _about_run(call: LoggedCall) -> list[Fact]:
    intent, outcome = call.intent, call.outcome
    milliseconds = finite(outcome.get("duration_ms"))
    judged_effects, effects = call.decision.get("effects"), intent.get("effects")
    changed = "changed_path" in outcome
    took = duration(milliseconds / 1000) if milliseconds is not None else line(outcome.get("duration_ms"))
    rows = [
        ("held by", PageSpan(line(intent.get("confinement"), 200))),
        ("permitted effects", code(judged_effects or "", 1500)),
        ("of the intent, other ones", code(effects if effects and effects != judged_effects else "", 1500)),
        ("was to change", code("" if outcome else intent.get("change"), 1500)),
        ("folder", PageSpan(line(intent.get("cwd"), 500))),
        ("wanted by another agent", code(call.proposed.get("agent") or "", 1500)),
        ("ended", PageSpan(line(outcome.get("status"), 30))),
        ("says", PageSpan(line(outcome.get("seen_by"), 60))),
        ("exit code", PageSpan(line(outcome.get("exit_code"), 20))),
        ("error", PageSpan(line(outcome.get("error_code"), 60))),
        ("took", PageSpan(took)),
        ("output", PageSpan(f"{line(outcome['output_bytes'], 20)} bytes" if "output_bytes" in outcome else "")),
        ("connections", code(outcome.get("connections", ""), 3000)),
        ("of them in all", PageSpan(line(outcome.get("connection_count"), 20))),
        ("output was cut for the model", PageSpan(line(outcome.get("truncated"), 10))),
        ("patch", code(outcome.get("patch_file", ""), 1000)),
        ("files changed", PageSpan(change_counts(outcome.get("changes")))),
        ("the files", code(outcome.get("changes", ""), 3000)),
        ("changed", code(outcome.get("changed_path", ""), 1000)),
        ("before", digest(outcome.get("before_sha256")) if changed else PageSpan("")),
        ("after", digest(outcome.get("after_sha256")) if changed else PageSpan("")),
    ]
    return _facts_with_text(rows)

"""The time line of a report: every record in the log's order, folded by session, prompt and turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from harness.actions import JsonValue
from harness.audit.calls import (
    ABOUT_CALLS,
    STANDING_NAMES,
    CallStanding,
    Joiner,
    LoggedCall,
    answerer,
    did_fail,
    rule_of,
    sign_of_call,
    standing_of,
)
from harness.log.order import LogRecord
from harness.log.reader import finite, whole
from harness.log.schema import problem
from harness.plugins.insight.report.charts import waited_in_words
from harness.plugins.insight.report.lists import ReportDetail
from harness.plugins.insight.report.markup import block, digest, filled, html, line, moment, number, shown
from harness.text.amounts import duration

SESSION = """\
<details class="session" open$anchor><summary><h3>Session $place: $name</h3> \
<span class="quiet">&mdash; $about, $began</span></summary>
"""
PROMPT = """\
<details class="prompt" open><summary><span class="word">&gt;</span> $beginning</summary>
"""
TURN = """\
<details class="turn" open><summary>turn $number$purpose \
<span class="quiet">&mdash; $messages messages sent, $time</span></summary>
"""
CALL = """\
<details class="call"$anchor><summary>$sign <span class="word">call $number</span> $tool <code>$summary</code> \
$ending</summary>\
<p>Arguments$edited_from:</p>$arguments\
$decision$facets\
$question\
$run$result\
$odd_records</details>
"""
QUESTION = """\
<p>Asked; answer: <span class="word">$answer</span>, by $who, after $waited.$words</p>$shown"""
FACETS = """\
<div class="scroll" tabindex="0" role="region" aria-label="what was judged"><table><thead><tr><th scope="col">part</th>\
<th scope="col">kind</th><th scope="col">decision</th><th scope="col">by</th></tr></thead><tbody>$rows</tbody></table></div>"""
FACET = """\
<tr><td class="what"><code>$part</code></td><td>$kind</td><td>$decision</td><td class="why">$by</td></tr>"""
RECORD = """\
<details$is_open><summary>$name <span class="quiet">&mdash; $time</span></summary><dl class="facts">$fields</dl></details>
"""
CUT = """\
<p class="alarm"><strong>The time line is cut here.</strong> It shows the first $shown calls; $calls calls and $records \
records are left out. Everything above counts and lists all of them. A page made with <code>--full</code> holds them too; \
<code>--session ID</code> makes one of one session.</p>"""


class _Level(IntEnum):
    """What is folded into what."""

    SESSION = 1
    PROMPT = 2
    TURN = 3


class _Timeline:
    """Writes records as they come; what is open is closed when another session, prompt or turn begins."""

    def __init__(self, show: ReportDetail) -> None:
        self.calls = 0
        self._show = show
        self._open: list[_Level] = []
        self._session: tuple[str, str] | None = None
        self._seen: set[tuple[str, str]] = set()
        self._joiner = Joiner("")
        self._log = ""

    def record(self, log: str, record: LogRecord) -> Iterator[str]:
        """Yield what is told of a record; of those about a call, when it ends."""
        if log != self._log:
            yield from self.unended()
            self._log, self._joiner = log, Joiner(log)
        kind, session = str(record["kind"]), str(record["session"])
        yield from self._enter(session, record)
        if ended := self._joiner.take(record):
            yield from self._call(ended)
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
        yield raw_if_odd(record, self._show.characters)

    def unended(self) -> Iterator[str]:
        """Yield the calls of the log that have no end."""
        for call in self._joiner.rest():
            yield from self._enter(call.session, {})
            yield from self._call(call)

    def close(self) -> Iterator[str]:
        """Yield the ends of all that is open."""
        yield from self._close(_Level.SESSION)
        self._session = None

    def _call(self, call: LoggedCall) -> Iterator[str]:
        self.calls += 1
        yield from whole_call(call, self._show)

    def _enter(self, session: str, first: LogRecord) -> Iterator[str]:
        """Open a session, unless it is the one that is open."""
        key = self._log, session
        if key == self._session:
            return
        yield from self._close(_Level.SESSION)
        figures = self._show.figures.sessions.get(key)
        again = key in self._seen
        helper = (
            f"helper {number(figures.helper)} of {line(figures.helper_of, 60)}, "
            if figures and figures.helper_of
            else ""
        )
        about = (
            helper + f"{line(figures.about['mode'], 40)} in {line(figures.about['workspace'], 200)}, "
            if figures
            else ""
        )
        yield html(
            SESSION,
            anchor=f' id="s{figures.place}"' if figures and not again else "",
            place=str(figures.place if figures else "?"),
            name=f"{line(session, 60)}{' (goes on)' if again else ''}",
            about=about + (f"{number(figures.calls)} calls" if figures else ""),
            began=moment(first.get("time")),
        )
        self._seen.add(key)
        self._session = key
        self._open.append(_Level.SESSION)

    def _close(self, level: _Level) -> Iterator[str]:
        while self._open and self._open[-1] >= level:
            yield "</details>\n" if self._open.pop() is _Level.SESSION else "</details>"

    def _record(self, kind: str, record: LogRecord) -> Iterator[str]:
        """Yield what is told of a record that is about no call."""
        characters = self._show.characters
        match kind:
            case "model_request":
                self._open.append(_Level.TURN)
                yield html(
                    TURN,
                    number=line(record.get("turn"), 20),
                    purpose=f" ({line(record['purpose'], 40)})" if "purpose" in record else "",
                    messages=line(record.get("messages"), 20),
                    time=moment(record["time"]),
                )
            case "user_message":
                self._open.append(_Level.PROMPT)
                said = shown(record.get("text"))
                yield html(PROMPT, beginning=line(said, 160))
                if len(said) > 160 or "\n" in said:
                    yield f'<div class="said">{block(said, characters)}</div>'
            case "model_response":
                if record.get("text"):
                    yield f'<div class="said"><span class="word">The model:</span>{block(record["text"], characters)}</div>'
                yield f'<p class="quiet">Reply: {_reply_words(record)}.</p>\n'
            case _:
                is_bad = kind in ("error", "limit", "recovered", "places_changed")
                fields = {name: value for name, value in record.items() if name not in _COMMON}
                yield html(
                    RECORD,
                    is_open=" open" if is_bad else "",
                    name=f"{'! ' if is_bad else ''}{line(kind, 60)}",
                    time=moment(record["time"]),
                    fields="".join(
                        f"<dt>{line(name, 60)}</dt><dd>{_value(value, characters)}</dd>"
                        for name, value in fields.items()
                    ),
                )


def timeline(records: Iterable[tuple[str, LogRecord]], show: ReportDetail, most_calls: int | None) -> Iterator[str]:
    """Yield the time line of these records; after `most_calls` it stops, and says so; None for all."""
    written = _Timeline(show)
    left_out = 0
    for log, record in records:
        if most_calls is not None and written.calls >= most_calls:
            left_out += 1
        else:
            yield from written.record(log, record)
    if not left_out:  # else the ends of the calls in flight were passed over: they would look as if they had none
        yield from written.unended()
    yield from written.close()
    if left_out:
        rest = max(0, show.figures.calls - written.calls)
        yield html(CUT, shown=number(written.calls), calls=number(rest), records=number(left_out))


_COMMON = frozenset(("v", "seq", "time", "mono_ns", "session", "kind", "prev"))


def _value(value: object, characters: int | None) -> str:
    told = shown(value)
    return block(told, characters) if len(told) > 120 or "\n" in told else line(told, 120)


def _reply_words(record: LogRecord) -> str:
    told = f"{line(record.get('calls'), 20)} calls, {line(record.get('finish_reason'), 40)}, "
    told += f"{line(record.get('input_tokens'), 20)} tokens in, {line(record.get('output_tokens'), 20)} out"
    return told + (f", {line(record['ms'], 20)} ms" if "ms" in record else "")


def whole_call(call: LoggedCall, show: ReportDetail) -> Iterator[str]:
    """Yield all about one call, folded: its arguments, decision, question, run and result."""
    anchor = show.anchor(call)
    return filled(
        CALL,
        anchor=f' id="{anchor}"' if anchor else "",
        sign=sign_of_call(call),
        number=line(call.number, 20),
        tool=line(call.tool, 60),
        summary=line(call.summary, 160),
        ending=_ending(standing_of(call), call),
        edited_from=_edited_from(call),
        arguments=block(_arguments(call), show.characters),
        decision=_facts(_about_decision(call)),
        facets=_facets(call.decision.get("facets")),
        question=_question(call),
        run=_facts(_about_run(call)),
        result=_result(call, show),
        odd_records=(raw_if_odd(record, show.characters) for record in call.records),
    )


def _question(call: LoggedCall) -> str:
    if not (call.asked or call.answered):
        return ""
    words = call.answered.get("words")
    return html(
        QUESTION,
        answer=line(call.answered.get("answer"), 20) or "none in the log",
        who=line(answerer(call.answered), 200) or "nobody that the log tells of",
        waited=waited_in_words(call),
        words=f" Words: &ldquo;{line(words, 1000)}&rdquo;" if words else "",
        shown=_facts([("what was shown, SHA-256", digest(call.asked.get("shown_sha256")))]),
    )


def _result(call: LoggedCall, show: ReportDetail) -> str:
    if standing_of(call) is CallStanding.UNKNOWN:
        return (
            '<p class="alarm"><strong>? Unknown.</strong> It was begun and the log has no end of it: '
            "it may have run, wholly or in part.</p>"
        )
    if not call.outcome:
        return '<p class="note">The log ends before this call was begun; it did not run.</p>'
    return f"<p>What the model was told:</p>{block(call.outcome.get('content'), show.characters)}"


def raw_if_odd(record: LogRecord, characters: int | None) -> str:
    """Return the whole record where it is not as its kind should be: what it holds may not have been shown above."""
    why = problem(record) if record else ""
    if not why:
        return ""
    return f'<p class="mark">This record {line(why, 300)}. All of it, as it is logged:</p>{block(dict(record), characters)}'


def _ending(standing: CallStanding, call: LoggedCall) -> str:
    told = [STANDING_NAMES[standing]]
    if call.outcome and (standing in (CallStanding.UNASKED, CallStanding.APPROVED) or did_fail(call)):
        told.append(line(call.outcome.get("status"), 30))
        milliseconds = whole(call.outcome.get("duration_ms"))
        told += [duration(milliseconds / 1000)] if milliseconds is not None else []
    return f'<span class="quiet">&mdash; {", ".join(told)}</span>'


def _edited_from(call: LoggedCall) -> str:
    return (
        f" (edited by a person from call {line(call.proposed['edited_from'], 20)})"
        if "edited_from" in call.proposed
        else ""
    )


def _arguments(call: LoggedCall) -> JsonValue:
    """Return the arguments as they came; of long ones the log itself holds the beginning only, and says so here."""
    raw = call.proposed.get("arguments")
    total = whole(call.proposed.get("arguments_characters"))
    if total is None or not isinstance(raw, str):
        return raw
    return f"{raw}\n... (the log holds the beginning only, of {number(total)} characters)"


def _about_decision(call: LoggedCall) -> list[tuple[str, str]]:
    decision = call.decision
    if not decision:
        return [("decision", '<span class="mark">none in the log</span>')]
    told = [
        ("decision", f'<span class="word">{line(decision.get("decision"), 20)}</span>'),
        ("by", line(rule_of(call), 400)),
        ("layer", line(decision.get("layer"), 60)),
        ("reason", line(decision.get("reason"), 1000)),
        ("policy", digest(decision.get("policy_sha256")) if "policy_sha256" in decision else ""),
    ]
    return [(name, value) for name, value in told if value]


def _facets(facets: JsonValue) -> str:
    """Return the table of what was judged, part by part."""
    if not facets:
        return ""
    rows = []
    for facet in facets if isinstance(facets, list) else [facets]:
        told: LogRecord = facet if isinstance(facet, dict) else {"facet": facet}
        part, kind = line(told.get("facet"), 400), line(told.get("kind"), 40)
        by = line(told.get("by"), 300)
        rows.append(html(FACET, part=part, kind=kind, decision=line(told.get("decision"), 20), by=by))
    return html(FACETS, rows="".join(rows))


def _about_run(call: LoggedCall) -> list[tuple[str, str]]:
    intent, outcome = call.intent, call.outcome
    milliseconds = finite(outcome.get("duration_ms"))
    judged, effects = call.decision.get("effects"), intent.get("effects")
    agent = call.proposed.get("agent")
    change = "" if outcome else line(intent.get("change"), 1500)
    told = [
        ("held by", line(intent.get("confinement"), 200)),
        ("permitted effects", f"<code>{line(judged, 1500)}</code>" if judged else ""),
        ("of the intent, other ones", f"<code>{line(effects, 1500)}</code>" if effects and effects != judged else ""),
        ("was to change", f"<code>{change}</code>" if change else ""),
        ("folder", line(intent.get("cwd"), 500)),
        ("wanted by another agent", f"<code>{line(agent, 1500)}</code>" if agent else ""),
        ("ended", line(outcome.get("status"), 30)),
        ("says", line(outcome.get("seen_by"), 60)),
        ("exit code", line(outcome.get("exit_code"), 20)),
        ("error", line(outcome.get("error_code"), 60)),
        ("took", duration(milliseconds / 1000) if milliseconds is not None else line(outcome.get("duration_ms"))),
        ("output", f"{line(outcome['output_bytes'], 20)} bytes" if "output_bytes" in outcome else ""),
        ("connections", f"<code>{line(outcome['connections'], 3000)}</code>" if "connections" in outcome else ""),
        ("of them in all", line(outcome.get("connection_count"), 20)),
        ("output was cut for the model", line(outcome.get("truncated"), 10)),
        ("patch", f"<code>{line(outcome['patch_file'], 1000)}</code>" if "patch_file" in outcome else ""),
        ("changed", f"<code>{line(outcome['changed_path'], 1000)}</code>" if "changed_path" in outcome else ""),
        ("before", digest(outcome.get("before_sha256")) if "changed_path" in outcome else ""),
        ("after", digest(outcome.get("after_sha256")) if "changed_path" in outcome else ""),
    ]
    return [(name, value) for name, value in told if value]


def _facts(told: list[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in told)
    return f'<dl class="facts">{rows}</dl>' if rows else ""

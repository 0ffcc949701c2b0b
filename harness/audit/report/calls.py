"""Calls of a report as HTML: the rows of its lists and the whole of one call; writes text that report_text made safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.actions import JsonValue
from harness.audit.approvals import LoggedQuestion, questions
from harness.audit.calls import LoggedCall, text
from harness.audit.effects import CallEffects, effects_words
from harness.audit.report.charts import waited_in_words
from harness.audit.report.figures import Figures
from harness.audit.report.text import block, digest, line, moment, number
from harness.audit.standing import NAMES, CallStanding, did_fail, rule_of, sign, standing_of
from harness.log.clocks import in_words
from harness.log.order import LogRecord
from harness.log.reader import finite, whole
from harness.log.schema import problem

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.audit.report.tables import Cells


class Shown:
    """How much of a text is shown, and whether the time line holds every call, so that a list can point into it."""

    def __init__(self, figures: Figures, *, characters: int | None, is_whole: bool) -> None:
        """`characters`: of one text, None for all of it."""
        self.figures = figures
        self.characters = characters
        self.is_whole = is_whole

    def anchor(self, call: LoggedCall) -> str:
        """Return the name of a call's place on the page; empty where it can have none."""
        session = self.figures.sessions.get((call.log, call.session))
        is_plain = call.number.isascii() and call.number.isdigit() and len(call.number) < 12
        return f"s{session.place}c{call.number}" if session is not None and is_plain else ""

    def name(self, call: LoggedCall) -> str:
        """Return `session 1, call 5`, as a link where there is something to point at."""
        session = self.figures.sessions.get((call.log, call.session))
        words = f"session {session.place if session else '?'}, call {line(call.number, 20)}"
        anchor = self.anchor(call)
        return f'<a href="#{anchor}">{words}</a>' if anchor and self.is_whole else words


def unknown_row(call: LoggedCall, show: Shown) -> Cells:
    """Return the row of a call whose end is not known."""
    change = call.intent.get("change")
    begun = moment(call.intent.get("time"))
    return (
        f'<td class="t">{begun}</td>',
        _call_cell(call, show),
        f"<td>{line(call.tool, 60)}</td>",
        _what_cell(call),
        f'<td class="what"><code>{line(change.get("path"), 1000)}</code></td>'
        if isinstance(change, dict)
        else "<td></td>",
        _rule_cell(call),
    )


UNKNOWN_HEADS = ("begun (UTC)", "call", "tool", "what", "was to change", "allowed by")


def refused_row(call: LoggedCall, show: Shown) -> Cells:
    """Return the row of a call that was refused or blocked."""
    return (
        _time_cell(call),
        _call_cell(call, show),
        f"<td>{line(call.tool, 60)}</td>",
        _what_cell(call),
        f'<td class="why">{refused_by(call)}</td>',
        _rule_cell(call),
        f'<td class="why">{line(_reason(call), 400)}</td>',
    )


REFUSED_HEADS = ("time (UTC)", "call", "tool", "what", "who refused", "rule", "reason")


def refused_by(call: LoggedCall) -> str:
    """Return in words who or what refused; HTML."""
    is_blocked = text(call.outcome, "status") == "blocked"
    halted = ' <span class="mark"># the run halted</span>' if is_blocked else ""
    answer = text(call.answered, "answer")
    if answer == "nobody":
        return f"nobody was there to ask{halted}"
    if answer == "edit":
        return f"replaced by an edited call ({line(call.answered.get('edited_to'), 20)}){halted}"
    if call.answered:
        return f"{line(call.answered.get('by'), 60)}, after {waited_in_words(call)}{halted}"
    return f"the policy{halted}"


def asked_rows(calls: Iterable[LoggedCall], show: Shown) -> Iterator[Cells]:
    """Yield the row of each of these calls about which somebody was asked."""
    return (_asked_row(question, show) for question in questions(calls))


def _asked_row(question: LoggedQuestion, show: Shown) -> Cells:
    call = question.call
    burst = ' <span class="mark">! burst</span>' if question.in_burst else ""
    answer = line(call.answered.get("answer"), 20) or "no answer in the log"
    words = line(call.answered.get("words"), 400)
    edited = f"<br>became call {line(call.answered['edited_to'], 20)}" if "edited_to" in call.answered else ""
    return (
        _time_cell(call),
        _call_cell(call, show),
        _what_cell(call),
        _rule_cell(call),
        f'<td><span class="word">{answer}</span>{edited}</td>',
        f"<td>{line(call.answered.get('by'), 60)}</td>",
        f'<td class="t">{waited_in_words(call) if call.answered else ""}{burst}</td>',
        f'<td class="why">{words}</td>',
    )


ASKED_HEADS = ("time (UTC)", "call", "what", "asked by rule", "answer", "who", "after", "words")


def reach_row(reach: CallEffects, show: Shown, *, outside: bool) -> Cells:
    """Return the row of a call that could write, or (`outside`) that left the workspace or could reach the network."""
    call = reach.call
    return (
        _time_cell(call),
        _call_cell(call, show),
        f"<td>{line(call.tool, 60)}</td>",
        _what_cell(call),
        f'<td class="what">{line(effects_words(reach, outside=outside), 2000)}</td>',
        _rule_cell(call),
    )


OUTSIDE_HEADS = ("time (UTC)", "call", "tool", "what", "outside", "allowed by")
COMMAND_HEADS = ("time (UTC)", "call", "tool", "what", "where", "allowed by")


def read_rows(show: Shown) -> Iterator[Cells]:
    """Yield the row of each file or folder that was read, by their names."""
    for path, one in sorted(show.figures.read.items()):
        where = '<span class="mark">! outside</span>' if one.is_outside else "in the workspace"
        yield (
            f'<th scope="row" class="what"><code>{line(path, 1000)}</code></th>',
            f"<td>{where}</td>",
            f'<td class="n">{number(one.calls)}</td>',
            _call_cell(one.first, show),
        )


READ_HEADS = ("file or folder", "where", "calls", "first")


def changed_row(call: LoggedCall, show: Shown) -> Cells:
    """Return the row of a call that changed a file."""
    return (
        f'<th scope="row" class="what"><code>{line(call.outcome.get("changed_path"), 1000)}</code></th>',
        _call_cell(call, show),
        f"<td>{digest(call.outcome.get('before_sha256'))}</td>",
        f"<td>{digest(call.outcome.get('after_sha256'))}</td>",
    )


CHANGED_HEADS = ("file", "call", "SHA-256 before", "SHA-256 after")


def _time_cell(call: LoggedCall) -> str:
    return f'<td class="t">{moment(call.time)}</td>'


def _call_cell(call: LoggedCall, show: Shown) -> str:
    return f'<td class="t">{show.name(call)}</td>'


def _what_cell(call: LoggedCall) -> str:
    return f'<td class="what"><code>{line(call.summary, 400)}</code></td>'


def _rule_cell(call: LoggedCall) -> str:
    return f'<td class="why">{line(rule_of(call), 400)}</td>'


def _reason(call: LoggedCall) -> str:
    words = text(call.answered, "words")
    return f'"{words}"' if words else text(call.decision, "reason")


def whole_call(call: LoggedCall, show: Shown) -> Iterator[str]:
    """Yield all about one call, folded: its arguments, decision, question, run and result."""
    standing = standing_of(call)
    anchor = show.anchor(call)
    named = f' id="{anchor}"' if anchor else ""
    name = f'<span class="word">call {line(call.number, 20)}</span>'
    yield f'<details class="call"{named}><summary>{sign(call)} {name} '
    yield f"{line(call.tool, 60)} <code>{line(call.summary, 160)}</code> {_ending(standing, call)}</summary>"
    yield f"<p>Arguments{_edited_from(call)}:</p>{block(_arguments(call), show.characters)}"
    yield _facts(_about_decision(call))
    yield from _facets(call.decision.get("facets"))
    if call.asked or call.answered:
        yield f'<p>Asked; answer: <span class="word">{line(call.answered.get("answer"), 20) or "none in the log"}</span>'
        yield f", by {line(call.answered.get('by'), 60) or 'nobody that the log tells of'}, after {waited_in_words(call)}."
        words = call.answered.get("words")
        yield f" Words: &ldquo;{line(words, 1000)}&rdquo;</p>" if words else "</p>"
        yield _facts([("what was shown, SHA-256", digest(call.asked.get("shown_sha256")))])
    yield _facts(_about_run(call))
    if standing is CallStanding.UNKNOWN:
        yield '<p class="alarm"><strong>? Unknown.</strong> It was begun and the log has no end of it: '
        yield "it may have run, wholly or in part.</p>"
    elif not call.outcome:
        yield '<p class="note">The log ends before this call was begun; it did not run.</p>'
    else:
        yield f"<p>What the model was told:</p>{block(call.outcome.get('content'), show.characters)}"
    for record in (call.proposed, call.decision, call.asked, call.answered, call.intent, call.outcome):
        yield raw_if_odd(record, show.characters)
    yield "</details>\n"


def raw_if_odd(record: LogRecord, characters: int | None) -> str:
    """Return the whole record where it is not as its kind should be: what it holds may not have been shown above."""
    why = problem(record) if record else ""
    if not why:
        return ""
    return f'<p class="mark">This record {line(why, 300)}. All of it, as it is logged:</p>{block(dict(record), characters)}'


def _ending(standing: CallStanding, call: LoggedCall) -> str:
    told = [NAMES[standing]]
    if call.outcome and (standing in (CallStanding.UNASKED, CallStanding.APPROVED) or did_fail(call)):
        told.append(line(call.outcome.get("status"), 30))
        milliseconds = whole(call.outcome.get("duration_ms"))
        told += [in_words(milliseconds / 1000)] if milliseconds is not None else []
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


def _facets(facets: JsonValue) -> Iterator[str]:
    """Yield the table of what was judged, part by part."""
    if not facets:
        return
    yield '<div class="scroll" tabindex="0" role="region" aria-label="what was judged"><table><thead><tr>'
    yield "".join(f'<th scope="col">{head}</th>' for head in ("part", "kind", "decision", "by"))
    yield "</tr></thead><tbody>"
    for facet in facets if isinstance(facets, list) else [facets]:
        told: LogRecord = facet if isinstance(facet, dict) else {"facet": facet}
        yield f'<tr><td class="what"><code>{line(told.get("facet"), 400)}</code></td><td>{line(told.get("kind"), 40)}</td>'
        yield f'<td>{line(told.get("decision"), 20)}</td><td class="why">{line(told.get("by"), 300)}</td></tr>'
    yield "</tbody></table></div>"


def _about_run(call: LoggedCall) -> list[tuple[str, str]]:
    intent, outcome = call.intent, call.outcome
    milliseconds = finite(outcome.get("duration_ms"))
    judged, effects = call.decision.get("effects"), intent.get("effects")
    change = "" if outcome else line(intent.get("change"), 1500)
    told = [
        ("held by", line(intent.get("confinement"), 200)),
        ("permitted effects", f"<code>{line(judged, 1500)}</code>" if judged else ""),
        ("of the intent, other ones", f"<code>{line(effects, 1500)}</code>" if effects and effects != judged else ""),
        ("was to change", f"<code>{change}</code>" if change else ""),
        ("folder", line(intent.get("cwd"), 500)),
        ("ended", line(outcome.get("status"), 30)),
        ("exit code", line(outcome.get("exit_code"), 20)),
        ("error", line(outcome.get("error_code"), 60)),
        ("took", in_words(milliseconds / 1000) if milliseconds is not None else line(outcome.get("duration_ms"))),
        ("output", f"{line(outcome['output_bytes'], 20)} bytes" if "output_bytes" in outcome else ""),
        ("output was cut for the model", line(outcome.get("truncated"), 10)),
        ("changed", f"<code>{line(outcome['changed_path'], 1000)}</code>" if "changed_path" in outcome else ""),
        ("before", digest(outcome.get("before_sha256")) if "changed_path" in outcome else ""),
        ("after", digest(outcome.get("after_sha256")) if "changed_path" in outcome else ""),
    ]
    return [(name, value) for name, value in told if value]


def _facts(told: list[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in told)
    return f'<dl class="facts">{rows}</dl>' if rows else ""

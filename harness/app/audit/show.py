"""`harness audit show`: a readable timeline of logs, or of the calls that match a filter."""

from __future__ import annotations

import datetime as dt
import re
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.actions import JsonValue, WallsLevel
from harness.app.audit.answer_writer import AnswerWriter, json_text, short_digest
from harness.app.audit.call_changes import change_lines
from harness.app.audit.call_diffs import CallDiffs
from harness.app.audit.logs import ChosenLogs, chosen_logs, latest_log
from harness.app.audit.plugin import UNANSWERED
from harness.audit.calls import (
    Fate,
    Joiner,
    LoggedCall,
    edited_from,
    edited_to,
    hosts_of,
    is_typed,
    objects_in,
    text,
    word,
)
from harness.audit.helper_tree import HelperTree
from harness.errors import UsageError
from harness.log.changed_files import changes_in
from harness.log.clocks import Clocks
from harness.log.order import LogRecord
from harness.log.vocabulary import MOST_FACETS
from harness.paths import short_place
from harness.record import Record
from harness.session.state import State
from harness.terminal.call_line import ended_line, how_decided
from harness.terminal.local_time import local_time, zone
from harness.terminal.row_text import toned_rows
from harness.terminal.styles import Line, Tone
from harness.terminal.tables import LEAST_WIDTH
from harness.terminal.trace import event_line, helper_took, hook_words, logged_walls
from harness.text.amounts import count_of
from harness.text.visible import visible, visible_line
from harness.tool_kinds import Does, tool_kind

_BESIDE_THE_TIME = " " * 10
_WIDTH = 500
_UNKNOWN = "UNKNOWN: it was begun and its end is not known; it may have run, wholly or in part"


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write a timeline and return the exit code. Raises HarnessError."""
    conditions = call_filter(arguments, time.time())
    state = State.of(environment)
    is_chosen = arguments.logs or arguments.all or arguments.session or arguments.cwd
    logs = chosen_logs(arguments, environment) if is_chosen else latest_log(state)
    logs.tell_standing()
    output = AnswerWriter(environment, as_json=arguments.json)
    diffs = CallDiffs(state, environment) if arguments.full else None
    if conditions.is_set:
        _show_calls(logs, conditions, output, diffs, full=arguments.full)
    elif arguments.json:
        for _, record in logs.records():
            output.row(record)
    else:
        for path in logs.paths:
            if len(logs.paths) > 1:
                output.line(f"log {path}", Tone.QUIET, width=5_000)
            _Timeline(output, diffs, full=arguments.full).show(path, logs.records_of(path))
    return logs.code


class _Timeline:
    """Writes lines with the time of day. A new date gets its own line."""

    def __init__(self, output: AnswerWriter, diffs: CallDiffs | None, *, full: bool) -> None:
        self._output = output
        self._diffs = diffs
        self._full = full
        self._date = ""
        self._session = ""
        self._helpers = HelperTree()

    def show(self, path: str, records: Iterable[LogRecord]) -> None:
        """Write the events.

        A call is written at its end, or if it has none, at the end of its session or of the log.
        """
        joiner, clocks = Joiner(path), Clocks()
        for record in records:
            self._helpers.record(record)
            if jump := clocks.jump(record):
                line = Line(tone=Tone.WARNING, text=f"~ {jump.words}")
                self._lines(text(record, "session"), text(record, "time"), [line], record)
            ended_call = joiner.take(record)
            if ended_call is not None:
                self.call(ended_call)
            elif record["kind"] == "session_ended":
                for call in joiner.rest(text(record, "session")):
                    self.call(call)
            self._lines(text(record, "session"), text(record, "time"), _record_lines(record, full=self._full), record)
        for call in joiner.rest():
            self.call(call)

    def call(self, call: LoggedCall) -> None:
        """Write the lines of a call, at the time of its last record."""
        moment = text(call.records[-1], "time") if call.records else ""
        lines = _call_lines(call, full=self._full)
        diff_lines = () if self._diffs is None else self._diffs.lines(call)
        self._lines(call.session, moment, [*lines, *diff_lines])

    def _lines(self, session: str, moment: str, lines: Iterable[Line], record: LogRecord | None = None) -> None:
        moment = local_time(moment, seconds=True) if self._output.at_terminal else moment
        helper = self._helpers.get(session)
        under = "" if helper is None else f"  {helper.title} | "
        session = session if helper is None else helper.parent
        beside = f"{visible_line(moment[11:19], 8):8}  {under}"
        if helper is not None and record is not None and record["kind"] == "session_ended":
            lines = [*lines, Line(tone=Tone.QUIET, text=f"it took {helper_took(helper)}")]
        for line in lines:
            if moment[:10] != self._date:
                self._date = moment[:10]
                self._output.line(f"{self._date} ({zone() if self._output.at_terminal else 'UTC'})", Tone.QUIET)
            if session != self._session:
                if self._session and (record is None or record["kind"] != "session_started"):
                    self._output.line(f"{_BESIDE_THE_TIME}session {session} goes on", Tone.QUIET)
                self._session = session
            # The text was cut and made safe before. Wrapped rows are indented, so that no row looks like a new entry.
            room = self._output.width - len(beside)
            for row in toned_rows(line.text, Tone.PLAIN, room) if room >= LEAST_WIDTH else (line.text,):
                self._output.line(beside + row, line.tone, width=len(beside) + len(row))
                beside = f"{_BESIDE_THE_TIME}{under}"


def _show_calls(
    logs: ChosenLogs, conditions: CallFilter, output: AnswerWriter, diffs: CallDiffs | None, *, full: bool
) -> None:
    """Write only the calls that match the filter. For JSON, write their records, call by call."""
    session, call_count = ("", ""), 0
    timeline = _Timeline(output, diffs, full=full)
    for call in logs.calls():
        if not conditions.takes(call):
            continue
        call_count += 1
        if (call.log, call.session) != session:
            session = call.log, call.session
            output.line(_heading(call, output), Tone.QUIET, width=5_000)
            timeline = _Timeline(output, diffs, full=full)
        timeline.call(call)
        for record in call.records if output.as_json else ():
            output.row(record)
    if not call_count:
        output.line(f"no call fits in {count_of(logs.sessions, 'session')}")


def _call_lines(call: LoggedCall, *, full: bool) -> Iterator[Line]:
    """Yield the lines of a call: the line that `run` shows, and further facts from the log below it."""
    if call.is_unjudged:
        yield from _record_lines(call.outcome, full=full)
        return
    first = _first_line(call)
    yield Line(tone=first.tone, text=f"#{visible_line(call.number, 20)} {first.text}")
    facts = (*_edits(call), *_facets(call, full=full), *_walls(call, full=full), *change_lines(call, full=full))
    for tone, line in (*facts, *_connections(call, full=full)):
        yield Line(tone=tone, text=visible_line(line, 5_000 if full else _WIDTH))
    if full:
        yield from _whole_call(call)


def _record_lines(record: LogRecord, *, full: bool) -> Iterator[Line]:
    """Yield the lines of a record that is not about a call. Yields none if another record has the same facts."""
    event = event_line(record)
    if record["kind"] == "hook_answered":
        yield Line(tone=Tone.QUIET if event is None else event.tone, text=visible_line(_hook(record), _WIDTH))
    elif event is not None:
        yield event
        yield from _places(record, full=full)
    elif change := _change_words(record):
        yield Line(tone=Tone.WARNING, text=visible_line(change, _WIDTH))
    elif title_and_body := _record_words(record):
        title, body = title_and_body
        yield Line(tone=Tone.QUIET, text=visible_line(f"{title}{'' if full else body}", _WIDTH))
        if record["kind"] == "session_started" and (settings := _model_settings(record)):
            yield Line(tone=Tone.QUIET, text=visible_line(f"model settings: {settings}", _WIDTH))
        if full and body:
            yield from _block(body)
    if full and record["kind"] == "session_started":
        yield from _start_lines(record)
    if full and record["kind"] == "policy_changed":
        yield from _policy_files(record)


def _hook(record: LogRecord) -> str:
    """Return the answer and the program of a hook."""
    values = {name: word(value) for name, value in record.items()}
    reason = f": {values['reason']}" if values.get("reason") else ""
    ignored = f"; its {values['ignored']} means nothing" if values.get("ignored") else ""
    digest = short_digest(values["program_sha256"]) if record.get("program_sha256") else "no program"
    return f"~ {hook_words(record)}{reason}{ignored}  [{digest}, {values.get('duration_ms')} ms]"


def _heading(call: LoggedCall, output: AnswerWriter) -> str:
    """Return the heading for the session of a call, since no other line names the session."""
    details = [text(call.started, name) for name in ("mode", "model")]
    details = [detail for detail in details if detail]
    start = output.moment(call.started)
    return f"session {call.session} in {text(call.started, 'workspace')} ({', '.join([*details, start])}), {call.log}"


def _first_line(call: LoggedCall) -> Line:
    match call.fate:
        case Fate.UNKNOWN:
            decision_text = how_decided(call.decision, call.answered)
            line = f"? {call.tool}  {visible_line(call.summary, 100)}  {decision_text}  {_UNKNOWN}"
            return Line(tone=Tone.BAD, text=visible_line(line, 400))
        case Fate.OPEN:
            approval_text = "asked, no answer recorded; " if call.asked and not call.answered else ""
            open_yet = "the log ends before it was begun"
            if (
                approval_text and text(call.started, "mode") == "hook"
            ):  # such an agent does not report a refusal, and its session continues
                approval_text, open_yet = "asked at the agent, which told of no answer yet", ""
                if not text(call.asked, "by"):
                    approval_text = "asked at `harness approve`, no answer yet"
            line = f". {call.tool}  {visible_line(call.summary, 100)}  {approval_text}{open_yet}"
            return Line(tone=Tone.WARNING, text=visible_line(line, 400))
        case Fate.RAN | Fate.REFUSED | Fate.INVALID | Fate.NOT_RUN:
            return ended_line(
                call.outcome, call.decision, call.answered, proposal=call.proposed, typed=is_typed(call.proposed)
            )


def _edits(call: LoggedCall) -> Iterator[tuple[Tone, str]]:
    if (origin := edited_from(call)) is not None:
        yield Tone.WARNING, f"made of call {word(origin)} by who was asked about that one"
    if (place := edited_to(call)) is not None:
        yield Tone.WARNING, f"call {word(place)} was put in its place"


def _facets(call: LoggedCall, *, full: bool) -> Iterator[tuple[Tone, str]]:
    """Yield the facets of a call with the rule that decided each, unless the first line already has all of this."""
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


def _walls(call: LoggedCall, *, full: bool) -> Iterator[tuple[Tone, str]]:
    """Yield a line with what left the walls of a command. With `full`, also with the level of other walls."""
    words = logged_walls(call.intent) if tool_kind(call.tool).does is Does.RUNS else ""
    is_whole = words in (WallsLevel.READER.value, WallsLevel.WORKSPACE.value)
    if words and (full or not is_whole):
        yield Tone.QUIET if is_whole else Tone.WARNING, f"walls: {words}"


def _whole_decision(call: LoggedCall) -> dict[str, JsonValue]:
    return {"decision": call.decided, "facet": text(call.decision, "reason"), "by": call.by}


MOST_HOSTS_SHOWN = 5
"""Maximum number of reached hosts, and of refused hosts, that are shown."""


def _connections(call: LoggedCall, *, full: bool) -> Iterator[tuple[Tone, str]]:
    """Yield a line with the hosts that a command reached, and with those that were refused."""
    parts, tone = [], Tone.QUIET
    for verb, allowed in (("reached", True), ("was refused", False)):
        hosts = hosts_of(call.outcome, allowed=allowed)
        visible_hosts = hosts if full else hosts[:MOST_HOSTS_SHOWN]
        if hosts:
            more = f" and {len(hosts) - len(visible_hosts)} more" if len(hosts) > len(visible_hosts) else ""
            parts.append(f"{verb} {', '.join(visible_hosts)}{more}")
            tone = tone if allowed else Tone.WARNING
    if parts:
        yield tone, "; ".join(parts)


def _whole_call(call: LoggedCall) -> Iterator[Line]:
    arguments, character_count = text(call.proposed, "arguments"), call.proposed.get("arguments_characters")
    cut = (
        f" (the log has the first {len(arguments)} of {character_count} characters)"
        if isinstance(character_count, int)
        else ""
    )
    yield Line(tone=Tone.QUIET, text=f"arguments{cut}:")
    yield from _block(arguments)
    for record, name in ((call.decision, "reason"), (call.answered, "words"), (call.intent, "confinement")):
        if text(record, name):
            yield Line(tone=Tone.QUIET, text=visible_line(f"{name}: {text(record, name)}", 5_000))
    if call.outcome:
        yield Line(tone=Tone.QUIET, text="what the model read:")
        yield from _block(text(call.outcome, "content"))


def _start_lines(record: LogRecord) -> Iterator[Line]:
    common = ("v", "seq", "time", "mono_ns", "session", "kind", "prev", "system", "policy_files")
    more = {name: value for name, value in record.items() if name not in common}
    for name in sorted(more):
        yield Line(tone=Tone.QUIET, text=visible_line(json_text({name: more[name]})[1:-1], 5_000))
    yield from _policy_files(record)
    yield Line(tone=Tone.QUIET, text="system prompt:")
    yield from _block(text(record, "system"))


MOST_PLACES_SHOWN = 20


def _places(record: LogRecord, *, full: bool) -> Iterator[Line]:
    """Yield the protected places of a record, each with its digests before and after."""
    places = objects_in(record.get("places"))
    visible_places = places if full else places[:MOST_PLACES_SHOWN]
    for place in visible_places:
        digests = " -> ".join(_state_words(place.get(name)) for name in ("before", "after"))
        line = f"  {word(place.get('how'))}  {word(place.get('path'))}  {digests}"
        yield Line(tone=Tone.BAD, text=visible_line(line, 5_000 if full else _WIDTH))
    if len(visible_places) < len(places):
        yield Line(tone=Tone.QUIET, text=f"  {len(places) - len(visible_places)} more; --full names them")


def _state_words(state: JsonValue) -> str:
    if not isinstance(state, dict):
        return "nothing"
    digest = state.get("sha256")
    return (
        short_digest(digest)
        if isinstance(digest, str)
        else f"{word(state.get('kind'))} of {word(state.get('size'))} bytes"
    )


def _policy_files(record: LogRecord) -> Iterator[Line]:
    files = record.get("policy_files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict):
            details = "  ".join(word(file.get(name)) for name in ("layer", "path", "sha256"))
            yield Line(tone=Tone.QUIET, text=visible_line(f"policy file: {details}", 5_000))


def _block(body: str) -> Iterator[Line]:
    """Yield a complete text. Each line has a bar in front, so that it cannot look like a line of the timeline."""
    for line in body.split("\n"):
        yield Line(tone=Tone.QUIET, text=f"| {visible(line.expandtabs())}")


def _change_words(record: LogRecord) -> str:
    """Return a line for a record that changes the policy, the model or a grant. Empty for any other record."""
    values = {name: word(value) for name, value in record.items()}

    def get(name: str) -> str:
        return values.get(name, "")

    match record["kind"]:
        case "policy_changed":
            return f"~ policy {get('policy')} ({get('policy_sha256')[:16]}) holds from here on: {get('why')}{_answer(record)}"
        case "hook_answered":
            reason = f": {get('reason')}" if get("reason") else ""
            ignored = f"; its {get('ignored')} means nothing" if get("ignored") else ""
            digest = short_digest(get("program_sha256")) if get("program_sha256") else "no program"
            return f"~ {hook_words(record)}{reason}{ignored}  [{digest}, {get('duration_ms')} ms]"
        case "model_changed":
            settings = _model_settings(record)
            return f"~ model {get('model')} is asked from here on{f': {settings}' if settings else ''}"
        case "session_named":
            return f"~ the session is named {get('name')}"
        case "grant":
            origin = f"[{get('file')}:{get('line')}]"
            return f"~ {get('change')} {get('grant')} for the {get('scope')}: {get('text')}  {origin}"
        case _:
            return ""


def _model_settings(record: LogRecord) -> str:
    """Return the model's profile, call form and explicit settings. Empty if there are none."""
    profile, form, settings = (record.get(name) for name in ("profile", "call_form", "model_settings"))
    parts = [f"profile {word(profile)}"] if profile else []
    parts += [f"calls by {word(form)}"] if form else []
    parts += [json_text(settings)] if isinstance(settings, dict) else []
    return ", ".join(parts)


def _answer(record: LogRecord) -> str:
    """Return the user's answer that a record contains, or an empty string."""
    approval = record.get("asked")
    if not isinstance(approval, dict):
        return ""
    words = f', "{word(approval.get("words"))}"' if approval.get("words") else ""
    return f"; asked: {word(approval.get('question'))}? {word(approval.get('answer'))} by {word(approval.get('by'))}{words}"


def _end_words(record: LogRecord, get: Callable[[str], str]) -> str:
    """Return the line for the end of a session or of a background command. `get` returns a field as a word."""
    if record["kind"] == "session_ended":
        return f"session ended: {get('stop')} {get('detail')}"
    ending = get("ending") if record.get("exit_code") is None else f"exit {get('exit_code')}"
    origin = f"call {get('call')}" + (
        "" if record["session"] == record.get("of_session") else f" of session {get('of_session')}"
    )
    return f"{get('name')}, in the background since {origin}, ended by {get('by')}: {ending}, {get('seconds')} s"


def _record_words(record: LogRecord) -> tuple[str, str] | None:
    """Return the line for a record that the trace of a running session omits: its title, and a text that may be long.

    `None` for any other record.
    """
    values = {name: word(value) for name, value in record.items()}

    def get(name: str) -> str:
        return values.get(name, "")

    match record["kind"]:
        case "session_started" if record.get("mode") == "undo":
            return f"undo {get('session')} in {get('workspace')}: harness {get('harness')}", ""
        case "restored":
            of = f"call {get('call')} {get('tool')} of session {get('of_session')}"
            return f"{get('result')}  {get('path') or get('command')}  [{of}]  {get('detail')}", ""
        case "session_started":
            place = f" in {get('workspace')}" if get("workspace") else ""
            parent = f"of session {get('parent')}, call {get('parent_call')}: " if record.get("parent") else ""
            title = f"{parent}session {get('session')}{place}: harness {get('harness')}, "
            title += f"model {get('model')}, " if get("model") else ""
            return f"{title}policy {get('policy')} ({get('policy_sha256')[:16]})", ""
        case "user_message":
            pictures = record.get("pictures")
            picture_note = f" [{count_of(len(pictures), 'picture')}]" if isinstance(pictures, list) and pictures else ""
            return "> ", get("text") + picture_note
        case "history_changed":
            messages = record.get("messages")
            new = len(messages) if isinstance(messages, list) else 0
            first, stop = record.get("start"), record.get("stop")
            removed_count = stop - first if isinstance(first, int) and isinstance(stop, int) else 0
            change = f"{count_of(new, 'message')} in place of {removed_count}, from number {get('start')} on"
            return f"~ the conversation was changed ({get('why')}): {change}", ""
        case "recovered":
            torn_note = f"{get('torn_bytes')} torn bytes are kept in {get('kept_in')}"
            calls = record.get("open")
            names = ", ".join(map(word, calls)) if isinstance(calls, list) and calls else "none"
            return f"~ the log was mended after a crash: {torn_note}; calls without an end: {names}", ""
        case "model_response" if record.get("text"):
            return "< ", get("text")
        case "session_ended" | "job_ended":
            return _end_words(record, get), ""
        case _:
            return None


class CallFilter(Record):
    """Conditions on a call. An empty condition matches every call."""

    tool: str = ""
    decision: str = ""
    answer: str = ""
    rule: str = ""
    """ID of a rule, or a part of the deciding rule's text (of the call or of one of its facets).

    Examples of such texts: `rule x (file:line)`, a default, a built-in rule.
    """
    path: str = ""
    """A part of a path that the call named or changed. Only paths in the log count."""
    since: str = ""
    """Earliest time of the request for the call. RFC 3339 in UTC, as in the log."""
    until: str = ""
    call: str = ""

    @property
    def is_set(self) -> bool:
        """Whether there is any condition."""
        return any(getattr(self, name) for name in type(self)._fields)

    def takes(self, call: LoggedCall) -> bool:
        """Return whether `call` meets all conditions."""
        return (
            self.tool in ("", call.tool)
            and self.decision in ("", call.decided)
            and (not self.answer or self._has_answer(call))
            and self.call in ("", call.number)
            and (not self.since or call.time >= self.since)
            and (not self.until or call.time <= self.until)
            and (not self.rule or self._has_rule(call))
            and (not self.path or any(self.path in path for path in _named_paths(call)))
        )

    def _has_answer(self, call: LoggedCall) -> bool:
        return bool(call.asked) and (text(call.answered, "answer") or UNANSWERED) == self.answer

    def _has_rule(self, call: LoggedCall) -> bool:
        every = [
            text(call.decision, "rule"),
            call.by,
            *(text(facet, "by") for facet in objects_in(call.decision.get("facets"))),
        ]
        return any(self.rule in part for part in every)


def _named_paths(call: LoggedCall) -> Iterator[str]:
    """Yield the paths of a call in the log: those of its effects and facets, and the path that it changed.

    The log has the first 20 paths and the first 50 facets of a call.
    """
    yield text(call.outcome, "changed_path")
    changes = changes_in(call.outcome, call.log) or {}
    for path in objects_in(changes.get("paths")):
        yield text(path, "path")
    for record in (call.decision, call.intent):
        effects = record.get("effects")
        for name in ("read", "write", "named"):
            paths = effects.get(name) if isinstance(effects, dict) else None
            yield from (path for path in paths if isinstance(path, str)) if isinstance(paths, list) else ()
    change = call.intent.get("change")
    if isinstance(change, dict):
        yield text(change, "path")
    for facet in objects_in(call.decision.get("facets")):
        if text(facet, "kind") == "PathAccess":
            yield text(facet, "facet").partition(" ")[2]


_AGO = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LEAP_SECOND = re.compile(r"([0-9-]{10}[Tt][0-9]{2}:[0-9]{2}:)60(?:\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
_CALL = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def call_filter(arguments: Namespace, now: float) -> CallFilter:
    """Return the conditions of the flags. `now` is in seconds since 1970.

    Raises UsageError for an invalid time, or an invalid call number.
    """
    if arguments.call and not _CALL.fullmatch(arguments.call):
        raise UsageError(f"--call: {visible_line(arguments.call)!r} is not the number of a call (expected 1, 2, 3 ...)")
    since = _moment("--since", arguments.since, now, "T00:00:00.000000Z") if arguments.since else ""
    until = _moment("--until", arguments.until, now, "T23:59:59.999999Z") if arguments.until else ""
    if since and until and since > until:
        raise UsageError(f"--since {since} is after --until {until}")
    return CallFilter(
        tool=arguments.tool or "",
        decision=arguments.decision or "",
        answer=arguments.answer or "",
        rule=arguments.rule or "",
        path=arguments.path or "",
        since=since,
        until=until,
        call=arguments.call or "",
    )


def _moment(flag: str, time_text: str, now: float, of_a_day: str) -> str:
    """Return a time in the log's form. Raises UsageError.

    The input is an RFC 3339 time, a date (completed with `of_a_day`, in UTC), or an age such as 2h.
    """
    ago = _AGO.fullmatch(time_text)
    try:
        if ago:
            moment = dt.datetime.fromtimestamp(now - int(ago[1]) * _SECONDS[ago[2]], dt.UTC)
        elif _DATE.fullmatch(time_text):
            dt.date.fromisoformat(time_text)
            return time_text + of_a_day
        else:
            # RFC 3339 allows the second 60, datetime does not. It counts as the last moment of its minute.
            moment = dt.datetime.fromisoformat(_LEAP_SECOND.sub(r"\g<1>59.999999\g<2>", time_text))
        if moment.tzinfo is not None:  # RFC 3339 requires an offset; without one, the time zone is unknown
            # The format of the log, so that times can be compared as texts. strftime does not pad the year.
            return moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(
        f"{flag}: invalid time {visible_line(time_text)!r}; expected 2026-01-31, 2026-01-31T10:00:00Z, or an age (90m, 2h, 3d)"
    )

"""Convert log records to lines for the user: `run` prints them during its work, `audit show` afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.audit.calls import answerer, is_typed, number, objects_in, word
from harness.audit.helper_tree import Helper, HelperTree
from harness.grant_pattern import pattern_from
from harness.log.order import LogRecord
from harness.log.vocabulary import SUMMARY
from harness.record import replace
from harness.terminal.call_line import ended_line
from harness.terminal.styles import Line, Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line


class Tracer:
    """Converts the records of sessions, in order, to lines: one per call, and others for remarks and problems."""

    def __init__(self, *, short: bool = False, lists_files: bool = False) -> None:
        """Create it. `short` and `lists_files` choose the form of the lines of calls, see `call_line.ended_line`."""
        self._short, self._lists_files = short, lists_files
        self._typed: set[tuple[str, str]] = set()
        self._proposals: dict[tuple[str, str], LogRecord] = {}
        self._decisions: dict[tuple[str, str], LogRecord] = {}
        self._answers: dict[tuple[str, str], LogRecord] = {}
        self._helpers = HelperTree()

    def line(self, record: LogRecord) -> Line | None:
        """Return the line for `record`, or `None` if it has none. Lines of helpers name the helper."""
        helper = self._helpers.record(record)
        if helper is None:
            return self._line(record)
        line = helper_line(record, helper) or self._line(record)
        return None if line is None else replace(line, text=f"  {helper.title}  {line.text}")

    def is_of_helper(self, record: LogRecord) -> bool:
        """Return whether a record belongs to a helper's session whose beginning this tracer has processed."""
        return self._helpers.get(word(record.get("session"))) is not None

    def _line(self, record: LogRecord) -> Line | None:
        kind, key = record["kind"], (word(record.get("session")), word(record.get("call")))
        if kind == "call_proposed":
            self._proposals[key] = record
            if is_typed(record):
                self._typed.add(key)
        elif kind == "decision":
            self._decisions[key] = record
        elif kind == "approval_answered":
            self._answers[key] = record
        elif kind == "grant" and key in self._answers:
            approval = self._answers[key]
            self._answers[key] = {**approval, "granted": f"{word(approval.get('granted'))}, granted {_granted(record)}"}
            return event_line(record)
        elif kind == "outcome":
            typed = key in self._typed
            self._typed.discard(key)
            proposal, decision = self._proposals.pop(key, {}), self._decisions.pop(key, {})
            return ended_line(
                record,
                decision,
                self._answers.pop(key, {}),
                proposal=proposal,
                typed=typed,
                short=self._short,
                lists_files=self._lists_files,
            )
        elif kind == "model_response":
            return _said_line(record)
        else:
            return event_line(record)
        return None


def helper_line(record: LogRecord, helper: Helper) -> Line | None:
    """Return the line for the start or end of a helper's work. `None` for other records."""
    match record["kind"]:
        case "user_message" if record.get("by") is None:
            return Line(tone=Tone.QUIET, text=visible_line(f"> {' '.join(helper.task.split())}", 200))
        case "session_ended":
            tone = Tone.QUIET if helper.stop == "completed" else Tone.WARNING
            return Line(tone=tone, text=visible_line(f"{helper.stop or 'ended'}, {helper_took(helper)}", 200))
        case _:
            return None


def helper_took(helper: Helper) -> str:
    """Return a text about a helper's requests, tokens and cost."""
    usage = helper.usage
    cost = "" if helper.cost is None or not helper.cost else f", {helper.cost:.4f} dollars"
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    return f"{count_of(helper.requests, 'request')}, {tokens}{cost}"


def _granted(grant: LogRecord) -> str:
    """Return a short name of a grant."""
    try:
        return pattern_from(grant).name
    except ValueError:
        return word(grant.get("grant"))  # an invalid record, which the gate never writes


def logged_walls(record: LogRecord) -> str:
    """Return the walls of a call in the words of effects_lines.walls_words, by its decision or intent.

    Empty if the record does not name them. Not yet safe to show.
    """
    effects = record.get("effects")
    if not isinstance(effects, dict) or not isinstance(level := effects.get("level"), str):
        return ""
    opened, missing = effects.get("opened"), effects.get("unheld")
    brackets = f" ({'; '.join(map(str, opened))})" if isinstance(opened, list) and opened else ""
    return f"{level}{brackets}{f', but {missing}' if missing else ''}"


def event_line(record: LogRecord) -> Line | None:
    """Return the line for a record of a special event, such as an error. `None` for other records."""
    describe = _SAID.get(str(record["kind"]))
    return None if describe is None else describe(record)


def _warning(text: str, max_characters: int = 1_000) -> Line | None:
    return Line(tone=Tone.WARNING, text=visible_line(f"~ {text}", max_characters)) if text else None


def _error(record: LogRecord) -> Line | None:
    if "retry_seconds" not in record:
        text = f"! {word(record.get('where'))}: {word(record.get('message'))}"
        return Line(tone=Tone.BAD, text=visible_line(text, 1_000))
    tries = f"try {word(record.get('attempt'))} of {word(record.get('attempts'))} failed"
    return _warning(f"{tries}, again in {_seconds(record)} s: {word(record.get('message'))}", 500)


def _seconds(record: LogRecord) -> str:
    """Return the time before the next try, rounded. A short one keeps a digit, so that it is not 0."""
    seconds = number(record, "retry_seconds") or 0.0
    return f"{seconds:.0f}" if seconds >= 2 else f"{seconds:.1f}"


def _hook_answered(record: LogRecord) -> Line | None:
    silent = record.get("event") == "before-call" or record.get("answer") == "nothing"
    return None if silent else _warning(f"{hook_words(record)}: {word(record.get('reason'))}")


def _tools_changed(record: LogRecord) -> Line | None:
    notes = record.get("notes")
    new = [word(tool.get("name")) for tool in objects_in(record.get("told"))]
    notices = [f"new tools: {', '.join(new)}"] if new else []
    notices += [word(tool) for tool in notes] if isinstance(notes, list) else []
    tools = record.get("tools")
    return _warning("; ".join(notices) or f"tools went; on offer: {len(tools) if isinstance(tools, list) else 0}")


def _server_asked(record: LogRecord) -> Line | None:
    fields = record.get("fields")
    sent_fields = (
        [field for field in fields if isinstance(field, dict) and "value" in field] if isinstance(fields, list) else []
    )
    sent = "; ".join(f"{word(field.get('name'))}: {word(field['value'])}" for field in sent_fields)
    request = f"the server {word(record.get('server'))} asked: {word(record.get('message'))}"
    return _warning(f"{request}  [{word(record.get('answer'))} by {answerer(record)}]{f'  {sent}' if sent else ''}")


def _not_kept(record: LogRecord) -> Line | None:
    if not record.get("not_kept"):
        return None
    revoked = f"{word(record.get('grant'))} is revoked for this session only; it is kept on"
    change = revoked if record.get("change") == "revoked" else "granted for this session only; it could not be kept"
    return _warning(f"{change}: {word(record['not_kept'])}")


def _history_changed(record: LogRecord) -> Line | None:
    compacted = record.get("why") == "compacted"
    return (
        _warning("the older part of the conversation was summarized (the log keeps all of it)") if compacted else None
    )


def _answer_checked(record: LogRecord) -> Line | None:
    fits = record.get("fits") is True
    return None if fits else _warning(f"the answer does not fit: {word(record.get('problem'))}")


def _diverged(record: LogRecord) -> Line | None:
    place = f"request {word(record.get('request'))}, message {word(record.get('message'))}"
    text = f"{word(record.get('recorded'))!r} was recorded, and it is {word(record.get('now'))!r} now"
    return _warning(f"the replay diverges at {place} ({word(record.get('role'))}): {text}")


def _limit(record: LogRecord) -> Line | None:
    return Line(tone=Tone.BAD, text=visible_line(f"! limit: {word(record.get('limit'))}"))


def hook_words(record: LogRecord) -> str:
    """Return a short text about a hook's answer: the hook, the event, the call number (if any) and the answer."""
    of_call = f" of call {word(record['call'])}" if "call" in record else ""
    return f"hook {word(record.get('hook'))} ({word(record.get('event'))}{of_call}): {word(record.get('answer'))}"


MOST_PLACES_NAMED = 5


def _places_changed(record: LogRecord) -> str:
    """Return a text about a command's changes of protected places (the first by name), and the suspended grants."""
    places = record.get("places")
    first_places = (
        [place for place in places if isinstance(place, dict)][:MOST_PLACES_NAMED] if isinstance(places, list) else []
    )
    changes = ", ".join(
        visible_line(f"{word(place.get('path'))} {word(place.get('how'))}", 200) for place in first_places
    )
    count = number(record, "place_count") or 0
    more = f" and {int(count) - len(first_places):,} more" if count > len(first_places) else ""
    grants = record.get("grants")
    asleep = f"; until you answer, {_text_list(grants)} sleeps" if grants else ""
    not_kept = f" ({visible_line(word(record['not_kept']), 200)})" if record.get("not_kept") else ""
    gaps = f"; not looked at: {_text_list(record.get('not_looked_at'))}" if record.get("not_looked_at") else ""
    return visible_line(f"! protected places changed: {changes}{more}{asleep}{not_kept}{gaps}", 1_500)


def _places_answered(record: LogRecord) -> Line:
    """Return the line for the decision about changed protected places."""
    grants = _text_list(record.get("grants"))
    not_restored = objects_in(record.get("not_put_back"))
    problems = "; ".join(
        f"{word(place.get('path'))}: {word(place.get('why'))}" for place in not_restored[:MOST_PLACES_NAMED]
    )
    back = f"put back: {_text_list(record.get('put_back')) or 'nothing'}"
    but = f"; not put back: {problems}" if problems else ""
    awake = f"; {grants} is awake again" if grants else ""
    match record.get("answer"):
        case "keep":
            return Line(tone=Tone.WARNING, text=visible_line(f"~ kept as they are{awake}", 1_000))
        case "put_back":
            text = f"~ {back}{but}{awake}"
        case "revoke":
            text = f"~ {back}{but}; {grants} is revoked"
        case _ if record.get("put_back") or problems:
            text = f"~ nobody is there to ask; {back}{but}"
        case _:
            asleep = f", and {grants} sleeps; /grants answer {grants}" if grants else ""
            text = f"~ nobody answered: all stays as it is{asleep}"
            return Line(tone=Tone.WARNING, text=visible_line(text, 1_000))
    return Line(tone=Tone.BAD if problems else Tone.GOOD, text=visible_line(text, 1_500))


def _text_list(texts: JsonValue) -> str:
    """Return a list of texts in one line: the first ones, and the number of the others."""
    lines = [visible_line(word(text), 200) for text in texts] if isinstance(texts, list) else []
    more = f" and {len(lines) - MOST_PLACES_NAMED:,} more" if len(lines) > MOST_PLACES_NAMED else ""
    return f"{', '.join(lines[:MOST_PLACES_NAMED])}{more}"


_UNJUDGED = {
    "changed": "another call than the one that was allowed",
    "refused": "a call that was refused",
    "unknown": "a call that was never judged",
}


def _ran_unjudged(record: LogRecord) -> Line:
    """Return the line for a call that an agent ran and that was not allowed."""
    number = f" (call {word(record['call'])})" if "call" in record else ""
    reason = _UNJUDGED.get(word(record.get("why")), "a call that was not allowed")
    stopped = "; the session was stopped" if record.get("stops") is True else ""
    ran = f"{word(record.get('tool'))} {word(record.get('arguments'))}"
    text = f"!! {word(record.get('seen_by'))} ran {reason}{number}{stopped}: {ran}  [{word(record.get('status'))}]"
    return Line(tone=Tone.BAD, text=visible_line(text, 1_500))


def _said_line(reply: LogRecord) -> Line | None:
    """Return one line for the model's remark before its calls. `None` without a remark or calls, and for summaries."""
    remark = " ".join(word(reply.get("text")).split())
    if not (remark and reply.get("calls")) or reply.get("purpose") == SUMMARY:
        return None
    return Line(tone=Tone.QUIET, text=visible_line(f"< {remark}", 1_000))


def _job_ended(record: LogRecord) -> Line | None:
    """Return the line for a background command that ended by itself or with the session."""
    if record.get("by") == "session":
        text = f"~ ended with the session: {word(record.get('name'))}"
        return Line(tone=Tone.QUIET, text=visible_line(text, 200))
    if record.get("by") != "itself":
        return None
    code = record.get("exit_code")
    ending = word(record.get("ending")) if code is None else f"exit {word(code)}"
    seconds = record.get("seconds")
    took = f", {seconds:.1f} s" if isinstance(seconds, float) else ""
    return _warning(f"{word(record.get('name'))} ended in the background: {ending}{took}")


_SAID: Mapping[str, Callable[[LogRecord], Line | None]] = {
    "error": _error,
    "job_ended": _job_ended,
    "ran_unjudged": _ran_unjudged,
    "places_changed": lambda record: Line(tone=Tone.BAD, text=_places_changed(record)),
    "places_answered": _places_answered,
    "hook_answered": _hook_answered,
    "tools_changed": _tools_changed,
    "server_asked": _server_asked,
    "grant": _not_kept,
    "history_changed": _history_changed,
    "answer_checked": _answer_checked,
    "diverged": _diverged,
    "limit": _limit,
}

"""Subject and answer of a hook, their JSON forms, and the form that harness ships. Plugins add other forms.

Input:   {"v": 1, "event", "session", "workspace"}, and by event: "call" (judged_json.py) before a call, "call" and
         "result" after it, "about" at the start of a session, "stop" at its end, "answer" and "again" for an answer.
Output:  empty, or {"decision": "confirm" | "deny" | "block", "reason": "...", "note": "..."}; each key is optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.actions import Action, Decision, JsonValue
from harness.log.vocabulary import CheckEvent
from harness.messages import ToolResult
from harness.record import Record
from harness.text.fields import Fields
from harness.text.visible import visible_line

VERSION = 1
ALLOWING = ("allow", "approve", "auto")
"""Decisions by which a hook would allow a call. They have no effect."""
_STRICT = {decision.word: decision for decision in Decision if decision is not Decision.AUTO}
_ANSWER = Fields({"decision?": "text", "reason?": "text", "note?": "text"})


class HookCase(Record):
    """An event that hooks examine, with its call or session. INVARIANT: secrets are masked in all its output."""

    event: CheckEvent
    session: str
    workspace: str
    action: Action | None = None
    """The call. Forms use its kind and its folder; the arguments are in `judged_fields`."""
    judged_fields: Mapping[str, JsonValue] = {}
    """The same call as JSON, with its verdict; see gate/judged_json.py."""
    result: ToolResult | None = None
    """Result of the call, if it ran."""
    text: str = ""
    """The text of the model's answer, or the reason for the end of the session."""
    again: bool = False
    """Whether this is a new answer of the model, after a hook rejected the last one."""
    session_fields: Mapping[str, JsonValue] = {}
    """Facts about a session that begins."""


class SaidByHook(Record):
    """A hook's answer, before its texts are masked, made visible and cut."""

    decision: Decision = Decision.AUTO
    """Decision of the hook. AUTO means no objection."""
    reason: str = ""
    note: str = ""
    ignored: str = ""
    """The decision of the answer if it was one of `ALLOWING`, which has no effect; else empty."""


class NoAnswerError(ValueError):
    """Raised for an invalid answer of a hook, with the reason in words that are safe to show."""


class HookForm(Record):
    """The JSON form of a hook's input and answer."""

    name: str
    """The value of `form` in the configuration."""
    question_of: Callable[[HookCase], dict[str, JsonValue]]
    """Function that returns the input of a hook."""
    answer_in: Callable[[Mapping[str, JsonValue]], SaidByHook]
    """Function that parses the output of a hook. Raises NoAnswerError for another form."""
    workspace_variable: str = ""
    """The variable that names the workspace to hooks that start there. Empty if hooks start in `/`."""
    notes_of: tuple[CheckEvent, ...] = ()
    """Events at which the output may also be plain text, as a note to the model."""


def question_of(case: HookCase) -> dict[str, JsonValue]:
    """Return the input of a hook."""
    fields: dict[str, JsonValue] = {
        "v": VERSION,
        "event": case.event.value,
        "session": case.session,
        "workspace": case.workspace,
    }
    match case.event:
        case CheckEvent.BEFORE_CALL:
            fields["call"] = dict(case.judged_fields)
        case CheckEvent.AFTER_CALL:
            fields |= {"call": dict(case.judged_fields), "result": _result(case.result)}
        case CheckEvent.SESSION_START:
            fields["about"] = dict(case.session_fields)
        case CheckEvent.SESSION_END:
            fields["stop"] = case.text
        case CheckEvent.BEFORE_ANSWER:
            fields |= {"answer": case.text, "again": case.again}
    return fields


def _result(result: ToolResult | None) -> JsonValue:
    if result is None:
        return None
    return {
        "status": result.status.value,
        "content": result.content,
        "exit_code": result.exit_code,
        "duration_ms": result.duration_ms,
        "truncated": result.truncated,
        "changed_path": result.changed_path,
    }


def answer_in(answer: Mapping[str, JsonValue]) -> SaidByHook:
    """Parse an answer. Raises NoAnswerError for another form."""
    problem = _ANSWER.problem(dict(answer))
    if problem:
        raise NoAnswerError(visible_line(problem))
    word, reason, note = (str(answer.get(name, "")) for name in ("decision", "reason", "note"))
    if word in ALLOWING:
        return SaidByHook(reason=reason, note=note, ignored=word)
    if word and word not in _STRICT:
        raise NoAnswerError(f"decision: unknown {visible_line(word, 50)!r} (expected one of {', '.join(_STRICT)})")
    return SaidByHook(decision=_STRICT.get(word, Decision.AUTO), reason=reason, note=note)


HARNESS_FORM = HookForm(name="harness", question_of=question_of, answer_in=answer_in)

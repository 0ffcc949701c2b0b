"""Subject and answer of a hook, their form as JSON, and the form that ships. Plugins bring further forms.

In:   {"v": 1, "event", "session", "workspace"} and, of a call, "call" (judged_json.py), after it "result"; else "answer",
      "again", "stop" or "about".
Out:  nothing, or {"decision": "confirm" | "deny" | "block", "reason": "...", "note": "..."}; each may be left out.
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
"""Words by which a hook would let a call run. They mean nothing."""
_STRICT = {decision.word: decision for decision in Decision if decision is not Decision.AUTO}
_ANSWER = Fields({"decision?": "text", "reason?": "text", "note?": "text"})


class HookCase(Record):
    """One subject for hooks. INVARIANT: secrets are masked in all its output."""

    event: CheckEvent
    session: str
    workspace: str
    action: Action | None = None
    """The call, for its kind and its folder; its arguments are in `judged_fields`."""
    judged_fields: Mapping[str, JsonValue] = {}
    """The same call as JSON, with its verdict; see gate/judged_json.py."""
    result: ToolResult | None = None
    """Result of the call, if it ran."""
    text: str = ""
    """The model's words, for an answer; the reason, for the end of a session."""
    again: bool = False
    """Whether the model answers anew, after a hook had something against its answer."""
    session_fields: Mapping[str, JsonValue] = {}
    """Facts about a session that begins."""


class SaidByHook(Record):
    """A hook's answer; not yet masked, made visible or cut."""

    decision: Decision = Decision.AUTO
    """AUTO: nothing against it."""
    reason: str = ""
    note: str = ""
    ignored: str = ""
    """A word of it that would allow something: it means nothing."""


class NoAnswerError(ValueError):
    """Raised for an invalid answer of a hook, with the reason in words that are safe to show."""


class HookForm(Record):
    """The JSON form of a hook's input and answer."""

    name: str
    """The value of `form` in the configuration."""
    question_of: Callable[[HookCase], dict[str, JsonValue]]
    """Returns the input of a hook."""
    answer_in: Callable[[Mapping[str, JsonValue]], SaidByHook]
    """Returns the decision of an answer. Raises NoAnswerError for an answer of another form."""
    workspace_variable: str = ""
    """The variable that names the workspace to hooks that start there. Empty if hooks start in `/`."""
    notes_of: tuple[CheckEvent, ...] = ()
    """Events at which plain text is a note to the model, and not only an object is an answer."""


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

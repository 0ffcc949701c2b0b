"""Input and output of hooks in the form of Claude Code's (code.claude.com/docs/en/hooks).

Our shipped tools get the names of Claude Code's tools, so that existing hooks recognize them. An answer that allows a
call has no effect. An answer that replaces a call refuses it, since the hook did not accept the original call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.actions import Decision, JsonValue
from harness.checks.hook_form import HookCase, HookForm, NoAnswerError, SaidByHook
from harness.log.vocabulary import CheckEvent
from harness.messages import ResultStatus, ToolResult
from harness.text.fields import kind_of
from harness.text.visible import visible_line
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE

EVENTS: Mapping[CheckEvent, str] = {
    CheckEvent.BEFORE_CALL: "PreToolUse",
    CheckEvent.AFTER_CALL: "PostToolUse",
    CheckEvent.SESSION_START: "SessionStart",
    CheckEvent.SESSION_END: "SessionEnd",
    CheckEvent.BEFORE_ANSWER: "Stop",
}
TOOLS: Mapping[str, str] = {
    BASH.name: "Bash",
    READ_FILE.name: "Read",
    WRITE_FILE.name: "Write",
    EDIT_FILE.name: "Edit",
}
"""Claude Code's name of each shipped tool. Other tools keep their names; MCP tools have the same names in both."""
_PERMISSIONS = {
    "allow": Decision.AUTO,
    "ask": Decision.CONFIRM,
    "defer": Decision.CONFIRM,
    "deny": Decision.DENY,
}
_WORDS = {"approve": Decision.AUTO, "allow": Decision.AUTO, "block": Decision.DENY, "deny": Decision.DENY}
"""Values of the top-level field `decision`, the older form. Its `block` refuses only this call."""


def question_of(case: HookCase) -> dict[str, JsonValue]:
    """Return the input of a hook for an event."""
    cwd = case.workspace if case.action is None or not case.action.cwd else case.action.cwd
    fields: dict[str, JsonValue] = {
        "session_id": case.session,
        "transcript_path": "",
        "cwd": cwd,
        "permission_mode": "default",
        "hook_event_name": EVENTS[case.event],
    }
    match case.event:
        case CheckEvent.BEFORE_CALL:
            fields |= _call(case)
        case CheckEvent.AFTER_CALL:
            fields |= {**_call(case), "tool_response": _response(case.result)}
        case CheckEvent.SESSION_START:
            fields |= {"source": "startup", "model": case.session_fields.get("model", "")}
        case CheckEvent.SESSION_END:
            fields["reason"] = "other"
        case CheckEvent.BEFORE_ANSWER:
            fields |= {"stop_hook_active": case.again, "last_assistant_message": case.text}
    return fields


def _call(case: HookCase) -> dict[str, JsonValue]:
    tool, arguments = str(case.judged_fields.get("tool", "")), case.judged_fields.get("arguments")
    given_arguments = dict(arguments) if isinstance(arguments, dict) else {}
    if tool in TOOLS and tool != BASH.name and "path" in given_arguments:
        given_arguments["file_path"] = os.path.normpath(os.path.join(case.workspace, str(given_arguments.pop("path"))))
    edits = given_arguments.get("edits")
    if tool == EDIT_FILE.name and isinstance(edits, list):  # hooks that inspect the text of an edit must see all edits
        for name in ("old_string", "new_string"):
            given_arguments[name] = "\n".join(str(edit.get(name, "")) for edit in edits if isinstance(edit, dict))
    use = "" if case.action is None else case.action.call.id
    return {"tool_name": TOOLS.get(tool, tool), "tool_input": given_arguments, "tool_use_id": use}


def _response(result: ToolResult | None) -> JsonValue:
    if result is None:
        return None
    return {
        "stdout": result.content,
        "stderr": "",
        "interrupted": result.status is ResultStatus.INTERRUPTED,
        "is_error": result.status is not ResultStatus.OK,
        "exit_code": result.exit_code,
    }


def answer_in(answer: Mapping[str, JsonValue]) -> SaidByHook:
    """Parse an answer; its strictest decision counts. Unknown fields are ignored. Raises NoAnswerError if it is invalid."""
    specific = answer.get("hookSpecificOutput", {})
    if not isinstance(specific, dict):
        raise NoAnswerError(f"hookSpecificOutput must be an object, not {kind_of(specific)}")
    answers = [
        _decision_of(specific, "permissionDecision", _PERMISSIONS, "permissionDecisionReason"),
        _decision_of(answer, "decision", _WORDS, "reason"),
    ]
    if answer.get("continue") is False:
        answers.append(SaidByHook(decision=Decision.BLOCK, reason=_text(answer, "stopReason")))
    if "updatedInput" in specific:
        reason = "it wants another call in the place of this one, which no hook can have here"
        answers.append(SaidByHook(decision=Decision.DENY, reason=reason))
    strictest = max(answers, key=lambda hook_answer: hook_answer.decision)
    ignored = next((hook_answer.ignored for hook_answer in answers if hook_answer.ignored), "")
    return SaidByHook(
        decision=strictest.decision,
        reason=strictest.reason,
        note=_text(specific, "additionalContext"),
        ignored=ignored,
    )


def _decision_of(fields: Mapping[str, JsonValue], key: str, words: Mapping[str, Decision], reason: str) -> SaidByHook:
    word = _text(fields, key)
    if not word:
        return SaidByHook()
    if word not in words:
        raise NoAnswerError(f"{key}: {visible_line(word, 50)!r} is none of {', '.join(words)}")
    decision = words[word]
    allows = decision is Decision.AUTO
    return SaidByHook(decision=decision, reason=_text(fields, reason), ignored=word if allows else "")


def _text(fields: Mapping[str, JsonValue], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NoAnswerError(f"{key} must be a string, not {kind_of(value)}")
    return value


FORM = HookForm(
    name="claude",
    question_of=question_of,
    answer_in=answer_in,
    workspace_variable="CLAUDE_PROJECT_DIR",
    notes_of=(CheckEvent.SESSION_START,),
)

"""What every answer says of a call as JSON: the fields that all questions to the log share; pure."""

from __future__ import annotations

from harness.actions import JsonValue
from harness.audit.calls import LoggedCall, text, word
from harness.log.clocks import whole

_DECISION = ("decision", "source", "rule", "file", "layer", "reason")


def about_call(call: LoggedCall) -> dict[str, JsonValue]:
    """Return which call it is: where it stands in which log, when it was asked for, under whose account, and what it was."""
    return {
        "log": call.log,
        "session": call.session,
        "call": call_number(call),
        "time": call.time,
        "tool": call.tool,
        "summary": call.summary,
        "user": call.user or None,
        "host": text(call.started, "host") or None,
        "task": call.task or None,
    }


def about_decision(call: LoggedCall) -> dict[str, JsonValue]:
    """Return what decided it. What the log does not say is null."""
    fields: dict[str, JsonValue] = {name: text(call.decision, name) or None for name in _DECISION}
    line = call.decision.get("line")
    return {
        **fields,
        "line": line if type(line) is int else None,
        "decided_by": call.by or None,
        "policy_sha256": text(call.decision, "policy_sha256") or None,
    }


def call_number(call: LoggedCall) -> JsonValue:
    """Return the call's number; a text where the log has no number in its place, or one that 63 bits do not hold."""
    number = whole(next((record.get("call") for record in call.records), None))
    return call.number if number is None else number


def edited_from(call: LoggedCall) -> JsonValue:
    """Return the number of the call that a person made this one of; None where they did not."""
    return _scalar(call.proposed.get("edited_from"))


def edited_to(call: LoggedCall) -> JsonValue:
    """Return the number of the call that a person made of this one; None where they did not."""
    return _scalar(call.answered.get("edited_to"))


def _scalar(value: JsonValue) -> JsonValue:
    return value if value is None or type(value) is int else word(value)

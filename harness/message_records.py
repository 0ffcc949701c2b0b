"""The form in which a record holds a message, there and back; pure, and no judge of a conversation."""

from __future__ import annotations

import json

from harness.actions import JsonValue
from harness.log_order import LogRecord
from harness.messages import Message, Role, ToolCall
from harness.redaction.marks import is_redacted


def message_json(message: Message) -> JsonValue:
    """Return a message as a record holds it: what is empty is left out."""
    value: dict[str, JsonValue] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        value["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        value["tool_call_id"] = message.tool_call_id
    if message.echo:
        value["echo"] = message.echo
    return value


def message_of(value: JsonValue) -> Message:
    """Return the message that a record holds. Raises ValueError if it is none."""
    if not isinstance(value, dict):
        raise ValueError("a message is not an object")  # noqa: TRY004 - of what was read, not of an argument
    calls = value.get("tool_calls", [])
    if not isinstance(calls, list):
        raise ValueError("the calls of a message are not a list")  # noqa: TRY004 - of what was read, not of an argument
    return Message(
        role=Role(text_of(value, "role")),
        content=text_of(value, "content"),
        tool_calls=tuple(_call_of(call) for call in calls),
        tool_call_id=None if value.get("tool_call_id") is None else text_of(value, "tool_call_id"),
        echo=echo_of(value.get("echo")),
    )


def _call_of(value: JsonValue) -> ToolCall:
    if not isinstance(value, dict):
        raise ValueError("a call is not an object")  # noqa: TRY004 - of what was read, not of an argument
    return ToolCall(id=text_of(value, "id"), name=text_of(value, "name"), arguments=text_of(value, "arguments"))


def text_of(value: LogRecord, name: str) -> str:
    """Return a text out of a record. Raises ValueError if it is none."""
    text = value.get(name)
    if not isinstance(text, str):
        raise ValueError(f"{name} is not a text")  # noqa: TRY004 - of what was read, not of an argument
    return text


def echo_of(value: JsonValue) -> str:
    """Return what a provider wants back, or nothing where the log does not have it as it came."""
    if not isinstance(value, str) or is_redacted(value):
        return ""
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return ""
    return value

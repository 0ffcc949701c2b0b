"""The format of a cassette: the requests and replies of a run as JSON Lines. This module opens no file.

The first line is a header. Every other line is a request: outlines of the messages added since the previous request,
the offered tools, the failed tries, and the reply or the error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from harness.actions import JsonValue
from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import FinishReason, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry
from harness.models.divergence import SHOWN_CHARACTERS, MessageOutline
from harness.record import Record, field_names
from harness.text.fields import Fields
from harness.text.strict_json import NotJsonError, read_line

VERSION = 1
MAX_CASSETTE_BYTES = 64 * 1024 * 1024
"""Maximum size of a cassette. The whole file is read into memory."""

_COUNT = f"whole from 0 to {2**53}"
_SHOWN = f"text of at most {SHOWN_CHARACTERS} characters"
_HEADER = Fields({"harness": "text", "model": "text", "api": "text", "workspace": "text"})
_REQUEST = {
    "request": _COUNT,
    "kept": _COUNT,
    "messages": "list of message",
    "tools": "list of text",
    "retries": "list of retry",
}
_PARTS = {
    "message": {
        "role": f"one of {' '.join(role.value for role in Role)}",
        "tool": _SHOWN,
        "sha256": "digest",
        "characters": _COUNT,
        "begins": _SHOWN,
        "ends": _SHOWN,
    },
    "retry": {
        "attempt": _COUNT,
        "attempts": _COUNT,
        "wait_seconds": "number from 0 to 1e9",
        "reason": "text",
        "usage": "usage",
    },
    "usage": {
        "input_tokens": _COUNT,
        "output_tokens": _COUNT,
        "cached_tokens": _COUNT,
        "cache_write_tokens?": _COUNT,
        "unreported": _COUNT,
    },
    "response": {
        "text": "text",
        "calls": "list of call",
        "finish_reason": f"one of {' '.join(reason.value for reason in FinishReason)}",
        "usage": "usage",
        "retries": _COUNT,
        "echo": "text",
    },
    "call": {"id": "text", "name": "text", "arguments": "text", "problem?": "text"},
    "error": {
        "cut": "flag",
        "text": "text",
        "fault": f"one of {' '.join(fault.value for fault in ModelFault if fault is not ModelFault.TIME)}",
        "usage": "usage|null",
    },
}
_EXCHANGES = {came: Fields({**_REQUEST, came: came}, _PARTS) for came in ("response", "error")}
_OWN_NAMES = {"tool_calls": "calls", "is_cut": "cut"}
"""Fields of records that have another name in a cassette."""


class MalformedError(ValueError):
    """Raised for an invalid line; the message describes the problem."""


class Header(Record):
    """The first line of a cassette."""

    harness: str
    """Version of harness that recorded the cassette."""
    model: str
    api: str = ""
    """API of the recorded model, for display."""
    workspace: str = ""
    """Absolute path of the recorded workspace. A replay elsewhere replaces this path in the replies. Empty if unknown."""


class Failed(Record):
    """A request that failed for good."""

    is_cut: bool
    text: str
    fault: ModelFault
    usage: Usage | None

    def error(self) -> ModelError:
        """Return a new exception for this error."""
        kind = CutReply if self.is_cut else ModelError
        return kind(self.text, fault=self.fault, usage=self.usage)


class RecordedExchange(Record):
    """A request and its result."""

    kept: int
    """Number of leading messages that are the same as in the previous request."""
    messages: tuple[MessageOutline, ...]
    """Outlines of the other messages."""
    tools: tuple[str, ...]
    retries: tuple[Retry, ...]
    came: ModelResponse | Failed


def line_of(fields: Mapping[str, JsonValue]) -> bytes:
    """Encode `fields` as one line, with its newline."""
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def header_fields(header: Header) -> dict[str, JsonValue]:
    """Return the fields of the first line."""
    return {"cassette": VERSION, **_as_json(header)}


def exchange_fields(number: int, exchange: RecordedExchange) -> dict[str, JsonValue]:
    """Return the fields of request `number`."""
    fields = _as_json(exchange)
    came = fields.pop("came")
    return {"request": number, **fields, "error" if isinstance(exchange.came, Failed) else "response": came}


def _as_json(value: Any) -> Any:
    """Return the JSON form of a value: a record becomes an object of all its fields, an enum becomes its value."""
    match value:
        case ToolCall(problem=""):
            return {"id": value.id, "name": value.name, "arguments": value.arguments}
        case Record():
            return {_OWN_NAMES.get(name, name): _as_json(getattr(value, name)) for name in field_names(type(value))}
        case tuple():
            return [_as_json(item) for item in value]
        case Enum():
            return value.value
        case _:
            return value


def read_header(line: bytes) -> Header:
    """Parse the first line. Raises MalformedError."""
    fields = _parsed(line)
    if not isinstance(fields, dict) or "cassette" not in fields:
        raise MalformedError('not a cassette: the first line must be {"cassette": 1, ...}')
    version = fields.pop("cassette")
    if version is True or version != VERSION:
        raise MalformedError(f"unknown cassette version {json.dumps(version)[:60]}; this harness reads {VERSION}")
    return Header(**_checked(fields, _HEADER))


def read_exchange(line: bytes, number: int, before: int) -> RecordedExchange:
    """Parse the line of request `number`; the previous request had `before` messages. Raises MalformedError."""
    record = _parsed(line)
    came = "error" if isinstance(record, dict) and "error" in record else "response"
    fields = _checked(record, _EXCHANGES[came])
    if fields["request"] != number:
        raise MalformedError(f"request: must be {number}, not {fields['request']}")
    if fields["kept"] > before:
        raise MalformedError(f"kept: must be at most {before}, the messages of the last request, not {fields['kept']}")
    return RecordedExchange(
        kept=fields["kept"],
        messages=tuple(MessageOutline(**outline) for outline in fields["messages"]),
        tools=tuple(fields["tools"]),
        retries=tuple(Retry(**outline | {"usage": Usage(**outline["usage"])}) for outline in fields["retries"]),
        came=_failed(**fields["error"]) if came == "error" else _response(**fields["response"]),
    )


def _response(calls: list[Any], finish_reason: str, usage: dict[str, Any], **fields: Any) -> ModelResponse:
    return ModelResponse(
        tool_calls=tuple(ToolCall(**call) for call in calls),
        finish_reason=FinishReason(finish_reason),
        usage=Usage(**usage),
        **fields,
    )


def _failed(*, cut: bool, fault: str, usage: dict[str, Any] | None, **fields: Any) -> Failed:
    return Failed(is_cut=cut, fault=ModelFault(fault), usage=None if usage is None else Usage(**usage), **fields)


def _parsed(line: bytes) -> JsonValue:
    try:
        return read_line(line)
    except NotJsonError as error:
        raise MalformedError(f"invalid JSON: {error}") from None


def _checked(value: JsonValue, fields: Fields) -> Any:
    if problem := fields.problem(value):
        raise MalformedError(problem)
    return value

"""The form of a cassette: the model's side of a run as JSON Lines, written here and read strictly; pure, it opens nothing.

The first line says what the file is. Every other one is a request: outlines of the messages that are new since the
request before it, the tools that were offered, the tries that failed, and the reply or the error that came back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, assert_never

from harness.actions import JsonValue
from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import FinishReason, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry
from harness.models.divergence import SHOWN_CHARACTERS, Outline
from harness.record import Record

VERSION = 1
MAX_CASSETTE_BYTES = 64 * 1024 * 1024
"""Of a whole file: it is read at once."""
MAX_NAME_CHARACTERS = 1_000
"""Of the names of models, versions and tools."""
MAX_RETRIES = 1_000
"""Of a request; the harness itself tries some hundred times at most."""
_MAX_PATH_CHARACTERS = 4_096  # PATH_MAX of Linux (limits.h)
_MAX_COUNT = 2**53

Fields: TypeAlias = Mapping[str, JsonValue]


class Header(Record):
    """The first line."""

    harness: str
    """The version that recorded it."""
    model: str
    api: str = ""
    workspace: str = ""
    """The folder that was worked in: replayed elsewhere, the replies name that one. Empty: not known."""


class Failed(Record):
    """A request that failed for good."""

    is_cut: bool
    text: str
    fault: ModelFault
    usage: Usage | None

    def error(self) -> ModelError:
        """Return what is raised of it, anew each time."""
        kind = CutReply if self.is_cut else ModelError
        return kind(self.text, fault=self.fault, usage=self.usage)


class Exchange(Record):
    """A request, and what came of it."""

    kept: int
    """How many messages, from the first on, are those of the request before."""
    messages: tuple[Outline, ...]
    """The others."""
    tools: tuple[str, ...]
    retries: tuple[Retry, ...]
    came: ModelResponse | Failed


class MalformedError(ValueError):
    """A line that is none of a cassette; the text says what is wrong with it."""


def line_of(fields: Fields) -> bytes:
    """Return a line, its end included."""
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def header_fields(header: Header) -> dict[str, JsonValue]:
    """Return the first line's fields."""
    return {
        "cassette": VERSION,
        "harness": header.harness,
        "model": header.model,
        "api": header.api,
        "workspace": header.workspace,
    }


def exchange_fields(number: int, exchange: Exchange) -> dict[str, JsonValue]:
    """Return the fields of request `number`."""
    came = exchange.came
    match came:
        case ModelResponse():
            name, value = "response", _response_fields(came)
        case Failed():
            name, value = "error", _error_fields(came)
        case _:
            assert_never(came)
    return {
        "request": number,
        "kept": exchange.kept,
        "messages": [_outline_fields(outline) for outline in exchange.messages],
        "tools": list(exchange.tools),
        "retries": [_retry_fields(retry) for retry in exchange.retries],
        name: value,
    }


def _outline_fields(outline: Outline) -> dict[str, JsonValue]:
    return {
        "role": outline.role,
        "tool": outline.tool,
        "sha256": outline.sha256,
        "characters": outline.characters,
        "begins": outline.begins,
        "ends": outline.ends,
    }


def _usage_fields(usage: Usage) -> dict[str, JsonValue]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "unreported": usage.unreported,
    }


def _retry_fields(retry: Retry) -> dict[str, JsonValue]:
    return {
        "attempt": retry.attempt,
        "attempts": retry.attempts,
        "wait_seconds": retry.wait_seconds,
        "reason": retry.reason,
        "usage": _usage_fields(retry.usage),
    }


def _response_fields(response: ModelResponse) -> dict[str, JsonValue]:
    return {
        "text": response.text,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in response.tool_calls],
        "finish_reason": response.finish_reason.value,
        "usage": _usage_fields(response.usage),
        "retries": response.retries,
        "echo": response.echo,
    }


def _error_fields(failed: Failed) -> dict[str, JsonValue]:
    return {
        "cut": failed.is_cut,
        "text": failed.text,
        "fault": failed.fault.value,
        "usage": None if failed.usage is None else _usage_fields(failed.usage),
    }


def read_header(line: bytes) -> Header:
    """Return the first line. Raises MalformedError."""
    found = _parsed(line)
    if not isinstance(found, dict) or "cassette" not in found:
        raise MalformedError('this is no cassette: its first line is not {"cassette": 1, ...}')
    if found["cassette"] is True or found["cassette"] != VERSION:
        raise MalformedError(f"it is a cassette of version {_shown(found['cassette'])}; this harness reads {VERSION}")
    fields = _object(found, "the first line", ("cassette", "harness", "model", "api", "workspace"))
    return Header(
        harness=_text(fields, "harness", MAX_NAME_CHARACTERS),
        model=_text(fields, "model", MAX_NAME_CHARACTERS),
        api=_text(fields, "api", MAX_NAME_CHARACTERS),
        workspace=_text(fields, "workspace", _MAX_PATH_CHARACTERS),
    )


def read_exchange(line: bytes, number: int, before: int) -> Exchange:
    """Return request `number`, where the one before it had `before` messages. Raises MalformedError."""
    found = _parsed(line)
    came = "error" if isinstance(found, dict) and "error" in found else "response"
    fields = _object(found, "a request", ("request", "kept", "messages", "tools", "retries", came))
    if _count(fields, "request") != number:
        raise MalformedError(f"request {number} is wanted here, not {_shown(fields['request'])}")
    kept = _count(fields, "kept")
    if kept > before:
        raise MalformedError(f"kept: the request before has {before} messages, not {kept}")
    tools, retries = _list(fields, "tools"), _list(fields, "retries")
    if not all(isinstance(name, str) and len(name) <= MAX_NAME_CHARACTERS for name in tools):
        raise MalformedError("tools: names are wanted")
    if len(retries) > MAX_RETRIES:
        raise MalformedError(f"retries: at most {MAX_RETRIES:,} are wanted, not {len(retries):,}")
    return Exchange(
        kept=kept,
        messages=tuple(_outline(value) for value in _list(fields, "messages")),
        tools=tuple(str(name) for name in tools),
        retries=tuple(_retry(value) for value in retries),
        came=_failed(fields[came]) if came == "error" else _response(fields[came]),
    )


def _parsed(line: bytes) -> JsonValue:
    def once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        value = dict(pairs)
        if len(value) != len(pairs):
            raise MalformedError("a key stands twice")
        return value

    def no_number(word: str) -> JsonValue:
        raise MalformedError(f"{word} is no number")

    try:
        value: JsonValue = json.loads(line.decode(), object_pairs_hook=once, parse_constant=no_number)
    except MalformedError:
        raise
    except UnicodeDecodeError as error:
        raise MalformedError(f"it is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"it is no JSON: column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise MalformedError("it is no JSON that can be read: too deep, or a number too long") from None
    return value


def _object(value: JsonValue, what: str, names: Sequence[str]) -> Fields:
    """Return an object with exactly these fields."""
    if not isinstance(value, dict):
        raise MalformedError(f"{what} is no object")
    missing = [name for name in names if name not in value]
    if missing:
        raise MalformedError(f"{what} lacks {missing[0]!r}")
    unknown = [name for name in value if name not in names]
    if unknown:
        raise MalformedError(f"{what} has {_shown(unknown[0])}, which nobody knows")
    return value


def _text(fields: Fields, name: str, most: int = MAX_CASSETTE_BYTES) -> str:
    value = fields[name]
    if not isinstance(value, str) or len(value) > most:
        raise MalformedError(f"{name}: a text of at most {most} characters is wanted")
    return value


def _count(fields: Fields, name: str) -> int:
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_COUNT:
        raise MalformedError(f"{name}: a whole number from 0 to {_MAX_COUNT} is wanted, not {_shown(value)}")
    return value


def _list(fields: Fields, name: str) -> list[JsonValue]:
    value = fields[name]
    if not isinstance(value, list):
        raise MalformedError(f"{name}: a list is wanted")
    return value


def _shown(value: JsonValue) -> str:
    return json.dumps(value)[:60]


def _outline(value: JsonValue) -> Outline:
    fields = _object(value, "a message", ("role", "tool", "sha256", "characters", "begins", "ends"))
    role = _text(fields, "role")
    if role not in {one.value for one in Role}:
        raise MalformedError(f"role: nobody is called {_shown(role)}")
    return Outline(
        role=role,
        tool=_text(fields, "tool", SHOWN_CHARACTERS),
        sha256=_text(fields, "sha256", 64),
        characters=_count(fields, "characters"),
        begins=_text(fields, "begins", SHOWN_CHARACTERS),
        ends=_text(fields, "ends", SHOWN_CHARACTERS),
    )


def _usage(value: JsonValue) -> Usage:
    fields = _object(value, "usage", ("input_tokens", "output_tokens", "cached_tokens", "unreported"))
    return Usage(**{name: _count(fields, name) for name in fields})


def _retry(value: JsonValue) -> Retry:
    fields = _object(value, "a retry", ("attempt", "attempts", "wait_seconds", "reason", "usage"))
    wait = fields["wait_seconds"]
    if not isinstance(wait, int | float) or isinstance(wait, bool) or not (math.isfinite(wait) and 0 <= wait < 1e9):
        raise MalformedError(f"wait_seconds: seconds are wanted, not {_shown(wait)}")
    return Retry(
        attempt=_count(fields, "attempt"),
        attempts=_count(fields, "attempts"),
        wait_seconds=float(wait),
        reason=_text(fields, "reason"),
        usage=_usage(fields["usage"]),
    )


def _response(value: JsonValue) -> ModelResponse:
    fields = _object(value, "response", ("text", "calls", "finish_reason", "usage", "retries", "echo"))
    reasons = {one.value: one for one in FinishReason}
    reason = reasons.get(_text(fields, "finish_reason"))
    if reason is None:
        raise MalformedError(f"finish_reason: nobody knows {_shown(fields['finish_reason'])}")
    return ModelResponse(
        text=_text(fields, "text"),
        tool_calls=tuple(_call(one) for one in _list(fields, "calls")),
        finish_reason=reason,
        usage=_usage(fields["usage"]),
        retries=_count(fields, "retries"),
        echo=_text(fields, "echo"),
    )


def _call(value: JsonValue) -> ToolCall:
    fields = _object(value, "a call", ("id", "name", "arguments"))
    return ToolCall(id=_text(fields, "id"), name=_text(fields, "name"), arguments=_text(fields, "arguments"))


def _failed(value: JsonValue) -> Failed:
    fields = _object(value, "error", ("cut", "text", "fault", "usage"))
    faults = {one.value: one for one in ModelFault}
    fault = faults.get(_text(fields, "fault"))
    if fault is None or fault is ModelFault.TIME:
        raise MalformedError(f"fault: none that can be replayed is {_shown(fields['fault'])}")
    cut = fields["cut"]
    if not isinstance(cut, bool):
        raise MalformedError("cut: true or false is wanted")
    usage = fields["usage"]
    return Failed(is_cut=cut, text=_text(fields, "text"), fault=fault, usage=None if usage is None else _usage(usage))

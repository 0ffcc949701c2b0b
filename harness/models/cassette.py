"""The form of a cassette: the model's side of a run as JSON Lines. Files are opened elsewhere.

The first line says what the file is. Every other one is a request: outlines of the messages that are new since the
request before it, the tools that were offered, the tries that failed, and the reply or the error that came back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, assert_never

from harness.actions import JsonValue
from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import FinishReason, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry
from harness.models.divergence import SHOWN_CHARACTERS, MessageOutline
from harness.record import Record, field_names
from harness.text.strict_json import NotJsonError, read_line

_MAX_COUNT = 2**53


class MalformedError(ValueError):
    """A value of another form; the text says what is wrong with it."""


class JsonForm(Record):
    """How a value of one kind stands in JSON: there and back."""

    write: Callable[[Any], Any]
    read: Callable[[JsonValue, str], Any]
    """Takes what a field holds, and the field's name. Raises MalformedError."""


def as_it_is(value: Any) -> Any:
    """Return `value`."""
    return value


def text(most: int) -> JsonForm:
    """Return the form of texts of at most so many characters."""

    def read(value: JsonValue, name: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise MalformedError(f"{name}: a text of at most {most} characters is wanted")
        return value

    return JsonForm(write=as_it_is, read=read)


def _read_count(value: JsonValue, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_COUNT:
        raise MalformedError(f"{name}: a whole number from 0 to {_MAX_COUNT} is wanted, not {shown(value)}")
    return value


def _read_seconds(value: JsonValue, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not (math.isfinite(value) and 0 <= value < 1e9):
        raise MalformedError(f"{name}: seconds are wanted, not {shown(value)}")
    return float(value)


def _read_bool(value: JsonValue, name: str) -> bool:
    if not isinstance(value, bool):
        raise MalformedError(f"{name}: true or false is wanted")
    return value


COUNT = JsonForm(write=as_it_is, read=_read_count)
SECONDS = JsonForm(write=as_it_is, read=_read_seconds)
FLAG = JsonForm(write=as_it_is, read=_read_bool)


def word(kind: type[Enum], unknown: str, but: Enum | None = None) -> JsonForm:
    """Return the form of an enum's values, without that of `but`; of others is said that they are `unknown`."""
    words = {one.value: one for one in kind if one is not but}

    def read(value: JsonValue, name: str) -> Enum:
        if not isinstance(value, str) or value not in words:
            raise MalformedError(f"{name}: {unknown} {shown(value)}")
        return words[value]

    return JsonForm(write=lambda one: one.value, read=read)


def or_null(form: JsonForm) -> JsonForm:
    """Return the form of what may be None."""
    return JsonForm(
        write=lambda value: None if value is None else form.write(value),
        read=lambda value, name: None if value is None else form.read(value, name),
    )


def list_of(form: JsonForm) -> JsonForm:
    """Return the form of tuples of values of one form."""

    def read(value: JsonValue, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise MalformedError(f"{name}: a list is wanted")
        return tuple(form.read(one, name) for one in value)

    return JsonForm(write=lambda values: [form.write(one) for one in values], read=read)


def record(kind: type[Record], what: str, fields: Mapping[str, JsonForm], **renamed: str) -> JsonForm:
    """Return the form of a record, an object with `fields`; `renamed` are those that the record calls otherwise.

    INVARIANT: each field of the record stands in it. Raises TypeError else.
    """
    attributes = {renamed.get(name, name): name for name in fields}
    if attributes.keys() != set(field_names(kind)):
        raise TypeError(f"{kind.__name__} has other fields: {sorted(attributes.keys() ^ set(field_names(kind)))}")

    def write(value: Record) -> dict[str, JsonValue]:
        return {name: fields[name].write(getattr(value, attribute)) for attribute, name in attributes.items()}

    def read(value: JsonValue, name: str) -> Record:  # noqa: ARG001 - as the others are called
        found = object_with(value, what, tuple(fields))
        return kind(**{attribute: fields[name].read(found[name], name) for attribute, name in attributes.items()})

    return JsonForm(write=write, read=read)


def object_with(value: JsonValue, what: str, names: Sequence[str]) -> Mapping[str, JsonValue]:
    """Return an object with exactly these fields. Raises MalformedError, which calls it `what`."""
    if not isinstance(value, dict):
        raise MalformedError(f"{what} is no object")
    missing = [name for name in names if name not in value]
    if missing:
        raise MalformedError(f"{what} lacks {missing[0]!r}")
    unknown = [name for name in value if name not in names]
    if unknown:
        raise MalformedError(f"{what} has {shown(unknown[0])}, which nobody knows")
    return value


def shown(value: JsonValue) -> str:
    """Return how a value begins, in ASCII."""
    return json.dumps(value)[:60]


VERSION = 1
MAX_CASSETTE_BYTES = 64 * 1024 * 1024
"""Of a whole file: it is read at once."""

Fields: TypeAlias = Mapping[str, JsonValue]


class Header(Record):
    """The first line."""

    harness: str
    """The version that recorded it."""
    model: str
    api: str = ""
    """What the model was asked by, for people."""
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


class RecordedExchange(Record):
    """A request, and what came of it."""

    kept: int
    """How many messages, from the first on, are those of the request before."""
    messages: tuple[MessageOutline, ...]
    """The others."""
    tools: tuple[str, ...]
    retries: tuple[Retry, ...]
    came: ModelResponse | Failed


def line_of(fields: Fields) -> bytes:
    """Return a line, its end included."""
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def header_fields(header: Header) -> dict[str, JsonValue]:
    """Return the first line's fields."""
    return {"cassette": VERSION, **_HEADER.write(header)}


def exchange_fields(number: int, exchange: RecordedExchange) -> dict[str, JsonValue]:
    """Return the fields of request `number`."""
    came = exchange.came
    match came:
        case ModelResponse():
            kind = "response"
        case Failed():
            kind = "error"
        case _:
            assert_never(came)
    asked = {name: form.write(getattr(exchange, name)) for name, form in _REQUEST.items()}
    return {"request": number, **asked, kind: _CAME[kind].write(came)}


def read_header(line: bytes) -> Header:
    """Return the first line. Raises MalformedError."""
    found = _parsed(line)
    if not isinstance(found, dict) or "cassette" not in found:
        raise MalformedError('this is no cassette: its first line is not {"cassette": 1, ...}')
    version = found.pop("cassette")
    if version is True or version != VERSION:
        raise MalformedError(f"it is a cassette of version {shown(version)}; this harness reads {VERSION}")
    header: Header = _HEADER.read(found, "")
    return header


def read_exchange(line: bytes, number: int, before: int) -> RecordedExchange:
    """Return request `number`, where the one before it had `before` messages. Raises MalformedError."""
    found = _parsed(line)
    came = "error" if isinstance(found, dict) and "error" in found else "response"
    fields = object_with(found, "a request", ("request", *_REQUEST, came))
    if COUNT.read(fields["request"], "request") != number:
        raise MalformedError(f"request {number} is wanted here, not {shown(fields['request'])}")
    asked = {name: form.read(fields[name], name) for name, form in _REQUEST.items()}
    if asked["kept"] > before:
        raise MalformedError(f"kept: the request before has {before} messages, not {asked['kept']}")
    return RecordedExchange(**asked, came=_CAME[came].read(fields[came], came))


def _parsed(line: bytes) -> JsonValue:
    try:
        return read_line(line)
    except NotJsonError as error:
        raise MalformedError(f"it is no JSON: {error}") from None


def _read_role(value: JsonValue, name: str) -> str:
    if not isinstance(value, str) or value not in {one.value for one in Role}:
        raise MalformedError(f"{name}: nobody is called {shown(value)}")
    return value


_TEXT, _SHOWN = text(MAX_CASSETTE_BYTES), text(SHOWN_CHARACTERS)
_HEADER = record(Header, "the first line", dict.fromkeys(("harness", "model", "api", "workspace"), _TEXT))
_OUTLINE = record(
    MessageOutline,
    "a message",
    {
        "role": JsonForm(write=as_it_is, read=_read_role),
        "tool": _SHOWN,
        "sha256": text(64),
        "characters": COUNT,
        "begins": _SHOWN,
        "ends": _SHOWN,
    },
)
_USAGE = record(Usage, "usage", dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "unreported"), COUNT))
_RETRY = record(
    Retry,
    "a retry",
    {
        "attempt": COUNT,
        "attempts": COUNT,
        "wait_seconds": SECONDS,
        "reason": _TEXT,
        "usage": _USAGE,
    },
)
_RESPONSE = record(
    ModelResponse,
    "response",
    {
        "text": _TEXT,
        "calls": list_of(record(ToolCall, "a call", dict.fromkeys(("id", "name", "arguments"), _TEXT))),
        "finish_reason": word(FinishReason, "nobody knows"),
        "usage": _USAGE,
        "retries": COUNT,
        "echo": _TEXT,
    },
    calls="tool_calls",
)
_FAILED = record(
    Failed,
    "error",
    {
        "cut": FLAG,
        "text": _TEXT,
        "fault": word(ModelFault, "none that can be replayed is", but=ModelFault.TIME),
        "usage": or_null(_USAGE),
    },
    cut="is_cut",
)
_REQUEST = {
    "kept": COUNT,
    "messages": list_of(_OUTLINE),
    "tools": list_of(_TEXT),
    "retries": list_of(_RETRY),
}
"""What is in the line of a request, beside its number and what came of it."""
_CAME = {"response": _RESPONSE, "error": _FAILED}

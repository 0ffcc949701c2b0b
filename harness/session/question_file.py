"""Question files: a judged call and the grants on offer, so that another process can show the same approval prompt.

The file has a list that holds each record once. Records refer to each other by index, so that shared objects stay
shared. Only the record types listed here can be read from a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from harness import __version__
from harness.actions import (
    Access,
    Act,
    Action,
    Command,
    Decision,
    Effects,
    Enforcement,
    FileChange,
    JsonValue,
    Opaque,
    PathAccess,
    Place,
    ToolArgument,
    ToolBounds,
    ToolUse,
    Unconfined,
)
from harness.grant_pattern import GrantPattern
from harness.messages import ToolCall
from harness.paths import NO_NAMES
from harness.policy.grant_offers import GrantChoice, Offer
from harness.policy.rules import Layer, Origin, Rule
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record, field_names
from harness.tool_kinds import Does, ToolKind


class QuestionError(Exception):
    """Raised for a file without a valid question. The text gives the reason."""


class WaitingQuestion(Record):
    """A call of another agent that waits for the user's approval."""

    agent: str
    """Name of the agent's product."""
    session: str
    """The agent's own ID of its session."""
    workspace: str
    confinement: str
    """Confinement of the call, in words."""
    level: str
    """Confinement of this workspace's commands."""
    writes: tuple[str, ...]
    """Places that the policy lets every allowed command write."""
    asked: float
    """Time of the question, in seconds since 1970."""
    until: float
    """Time at which the call is refused if there is no answer, in seconds since 1970."""
    action: Action
    """The judged call, without its raw arguments and without the tool's request object."""
    verdict: Verdict
    offer: Offer | str
    """The grants on offer, or the reason for none."""


_RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        WaitingQuestion, Action, ToolCall, ToolKind, Command, PathAccess, Opaque, Unconfined, ToolUse, ToolArgument,
        ToolBounds, FileChange, Verdict, FacetVerdict, Rule, Origin, Effects, Offer, GrantChoice, GrantPattern,
    )
}  # fmt: skip
_WORDS: Mapping[str, type[Enum]] = {
    kind.__name__: kind for kind in (Access, Act, Place, Enforcement, Decision, Layer, Source, Does)
}
_LEFT_OUT: Mapping[tuple[type[Record], str], Any] = {
    (ToolCall, "arguments"): "",
    (Action, "arguments"): {},
    (Action, "request"): None,
    (PathAccess, "below"): NO_NAMES,
    (Rule, "matchers"): (),
}
"""Fields that are left out because they may be large and no prompt shows them, with their replacements."""
_OF_RULES = ("id", "decision", "origin", "layer")
"""The fields of a rule that are shown."""


def packed(question: WaitingQuestion) -> bytes:
    """Return a question as bytes."""
    packing = _Packing()
    packing.value(question)
    return json.dumps({"harness": __version__, "records": packing.records}, allow_nan=False).encode()


def unpacked(data: bytes) -> WaitingQuestion:
    """Return the question from the bytes that `packed` returned. Raises QuestionError."""
    try:
        packed_question = json.loads(data)
        if packed_question["harness"] != __version__:
            raise QuestionError("another version of harness asks; restart `harness approve`")
        records: list[Record] = []
        for fields in packed_question["records"]:
            records.append(_record(fields, records))
        question = records[-1]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise QuestionError(f"invalid question file: {error!r}") from None
    if not isinstance(question, WaitingQuestion):
        raise QuestionError("invalid question file")
    return question


class _Packing:
    """Turns records into JSON."""

    def __init__(self) -> None:
        self.records: list[JsonValue] = []
        """Packed records. Each follows the records that it refers to."""
        self._places: dict[int, int] = {}

    def value(self, value: object) -> JsonValue:
        match value:
            case Enum():
                return {"word": [type(value).__name__, value.value]}
            case None | bool() | int() | float() | str():
                return value
            case Record():
                if id(value) not in self._places:
                    packed_record = self._record(value)
                    self._places[id(value)] = len(self.records)
                    self.records.append(packed_record)
                return {"record": self._places[id(value)]}
            case tuple() | list():
                return [self.value(item) for item in value]
            case _:
                raise TypeError(f"no question holds a {type(value).__name__}")

    def _record(self, record: Record) -> JsonValue:
        kind = type(record)
        if _RECORDS.get(kind.__name__) is not kind:
            raise TypeError(f"no question holds a {kind.__name__}")
        return {"kind": kind.__name__, "fields": {name: self.value(getattr(record, name)) for name in _names(kind)}}


def _names(kind: type[Record]) -> Iterable[str]:
    if kind is Rule:
        return _OF_RULES
    return [name for name in field_names(kind) if (kind, name) not in _LEFT_OUT]


def _record(record_fields: Mapping[str, Any], records: list[Record]) -> Record:
    kind = _RECORDS[record_fields["kind"]]
    fields = {name: _value(value, records) for name, value in record_fields["fields"].items()}
    if set(fields) != set(_names(kind)):
        raise ValueError(f"other fields than a {kind.__name__} has")
    return kind(**fields, **{name: value for (of, name), value in _LEFT_OUT.items() if of is kind})


def _value(value: Any, records: list[Record]) -> Any:
    match value:
        case {"word": [name, word]}:
            return _WORDS[name](word)
        case {"record": place}:
            return records[place]
        case list():
            return tuple(_value(item, records) for item in value)
        case dict():
            raise ValueError("an object that is neither word nor record")
        case _:
            return value

"""A question as a file: a judged call and what may be granted for it, whole, so that another process shows the very same.

Records are kept in a list, each once, and named by their place in it: parts that are the same object stay so. Only the records
named here can come out of a file.
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
    """A file that holds no question that could be shown; the text says why."""


class WaitingQuestion(Record):
    """A call that another agent wants to make, and that waits for a person."""

    agent: str
    """Name of the agent, by its maker."""
    session: str
    """The agent's name of its session."""
    workspace: str
    confinement: str
    """Confinement of the call, in words."""
    level: str
    """Confinement of this workspace's commands."""
    writes: tuple[str, ...]
    """Places that every allowed command may write, by the policy."""
    asked: float
    """Time of the question, in seconds since 1970."""
    until: float
    """Time at which it is refused without an answer."""
    action: Action
    """Without its raw arguments, and without what a tool would run."""
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
"""Fields that no question shows, which may be large, and their replacements."""
_OF_RULES = ("id", "decision", "origin", "layer")
"""The fields of a rule that are shown."""


def packed(question: WaitingQuestion) -> bytes:
    """Return a question as bytes."""
    packing = _Packing()
    packing.value(question)
    return json.dumps({"harness": __version__, "records": packing.records}, allow_nan=False).encode()


def unpacked(data: bytes) -> WaitingQuestion:
    """Return the question that `packed` made these bytes of. Raises QuestionError."""
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
        """Each behind those that it holds."""
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

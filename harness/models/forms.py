"""How the values of records stand in JSON, described once for both directions; strict, pure, and no record is known here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from harness.actions import JsonValue
from harness.record import Record, field_names

_MAX_COUNT = 2**53


class MalformedError(ValueError):
    """A value of another form; the text says what is wrong with it."""


class Form(Record):
    """How a value of one kind stands in JSON: there and back."""

    write: Callable[[Any], Any]
    read: Callable[[JsonValue, str], Any]
    """Takes what a field holds, and the field's name. Raises MalformedError."""


def as_it_is(value: Any) -> Any:
    """Return `value`."""
    return value


def text(most: int) -> Form:
    """Return the form of texts of at most so many characters."""

    def read(value: JsonValue, name: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise MalformedError(f"{name}: a text of at most {most} characters is wanted")
        return value

    return Form(write=as_it_is, read=read)


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


COUNT = Form(write=as_it_is, read=_read_count)
SECONDS = Form(write=as_it_is, read=_read_seconds)
FLAG = Form(write=as_it_is, read=_read_bool)


def word(kind: type[Enum], unknown: str, but: Enum | None = None) -> Form:
    """Return the form of an enum's values, without that of `but`; of others is said that they are `unknown`."""
    words = {one.value: one for one in kind if one is not but}

    def read(value: JsonValue, name: str) -> Enum:
        if not isinstance(value, str) or value not in words:
            raise MalformedError(f"{name}: {unknown} {shown(value)}")
        return words[value]

    return Form(write=lambda one: one.value, read=read)


def or_null(form: Form) -> Form:
    """Return the form of what may be None."""
    return Form(
        write=lambda value: None if value is None else form.write(value),
        read=lambda value, name: None if value is None else form.read(value, name),
    )


def list_of(form: Form, most: int | None = None) -> Form:
    """Return the form of tuples of values of one form, at most so many."""

    def read(value: JsonValue, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise MalformedError(f"{name}: a list is wanted")
        if most is not None and len(value) > most:
            raise MalformedError(f"{name}: at most {most:,} are wanted, not {len(value):,}")
        return tuple(form.read(one, name) for one in value)

    return Form(write=lambda values: [form.write(one) for one in values], read=read)


def record(kind: type[Record], what: str, fields: Mapping[str, Form], **renamed: str) -> Form:
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

    return Form(write=write, read=read)


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

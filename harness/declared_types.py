"""Values compared with declared types, so that a wrong type in a call of the library is one sentence.

The sentence names the parameter, what it takes and what came: "limits must be a Limits or None, not a dict". The types
are those of the signature or of the record. A type that only a type checker can see is not compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Any, ClassVar, get_args, get_origin

from harness.record import Record, field_names

_WORDS: Mapping[object, str] = {
    NoneType: "None",
    str: "text",
    bytes: "bytes",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    PathLike: "a path",
    Callable: "a function",
}
_MAKERS: Mapping[str, tuple[str, str]] = {
    "ActionLog": ("ActionLog.open({}) opens one", "../actions.jsonl"),
    "Approver": ("`deny_all` is the one for runs without a person", ""),
    "Endpoint": ("Endpoint(base_url={}) makes one", "http://127.0.0.1:8080/v1"),
    "Model": ("OpenAIChat({}) makes one", "model-name"),
    "Policy": ("load_policy({}) reads one", "ci"),
    "Tool": ("builtin_tools(workspace) returns some", ""),
    "Workspace": ("Workspace({}) makes one", "."),
}
"""Advice by the name of a type: a clause, and the argument in it if the value that came is not text or a path."""
_NUMBERS = {int: (int,), float: (int, float)}


class CheckedRecord(Record):
    """Base of the records that other programs fill. Raises TypeError for a value of a wrong type, too."""

    checked: ClassVar[bool] = True

    def __init__(self, *unnamed: Any, **values: Any) -> None:
        super().__init__(*unnamed, **values)
        if values and (problem := record_problem(self, values)):
            raise TypeError(f"{type(self).__name__}: {problem}")


def check_arguments(function: Callable[..., object], values: Mapping[str, object]) -> None:
    """Raise TypeError unless the arguments of `function` have their declared types. `values` are its `locals()`."""
    for name, declared in _parameters(getattr(function, "__func__", function)).items():
        check_value(name, values[name], declared)


def check_value(name: str, value: object, declared: Any) -> None:
    """Raise TypeError unless `value`, the argument `name`, is of the type `declared`."""
    if problem := _problem(name, value, declared):
        raise TypeError(problem)


def record_problem(record: Record, fields: Iterable[str] | None = None) -> str:
    """Return a sentence about the first of the `fields` (default: all) that has a wrong type, or an empty string."""
    declared = _fields(type(record))
    names = declared if fields is None else [name for name in fields if name in declared]
    return next((problem for name in names if (problem := _problem(name, getattr(record, name), declared[name]))), "")


def type_name(value: object) -> str:
    """Return the type of a value with its article, for a sentence."""
    if value is None:
        return "None"
    return f"the class {value.__name__}" if isinstance(value, type) else _with_article(type(value).__name__)


@cache
def _parameters(function: Callable[..., object]) -> dict[str, Any]:
    names = vars(sys.modules[function.__module__])
    return {name: _evaluated(text, names) for name, text in function.__annotations__.items() if name != "return"}


@cache
def _fields(record: type[Record]) -> dict[str, Any]:
    return {
        name: _evaluated(text, vars(sys.modules[cls.__module__]))
        for cls in reversed(record.__mro__)
        for name, text in vars(cls).get("__annotations__", {}).items()
        if name in field_names(record)
    }


def _evaluated(annotation: str, names: dict[str, Any]) -> Any:
    """Return the type that an annotation of the package names, or `object` if only type checkers see it."""
    try:
        return eval(annotation, names)  # noqa: S307 - the text is code of this package
    except (NameError, AttributeError):
        return object


def _problem(name: str, value: object, declared: Any) -> str:
    if type(value) in _plain_classes(declared):
        return ""
    kinds = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    problems = [_problem_inside(name, value, kind) if _is_of(value, _class_of(kind)) else None for kind in kinds]
    if "" in problems:
        return ""
    inside = next((problem for problem in problems if problem), "")
    return inside or f"{name} must be {_either([_words(kind) for kind in kinds])}, not {_what_came(value, kinds[0])}"


@cache
def _plain_classes(declared: Any) -> frozenset[type]:
    """Return the classes whose objects fit `declared` without a look inside, for speed."""
    kinds = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    return frozenset(kind for kind in kinds if isinstance(kind, type) and not get_args(kind) and not _members(kind))


def _class_of(kind: Any) -> Any:
    origin = get_origin(kind) or kind
    return origin if isinstance(origin, type) else object


def _is_of(value: object, cls: type) -> bool:
    if members := _members(cls):
        return not isinstance(value, type) and all(hasattr(value, member) for member in members)
    if cls in _NUMBERS:
        return isinstance(value, _NUMBERS[cls]) and not isinstance(value, bool)
    if isinstance(value, str | bytes) and issubclass(cls, Iterable):
        return cls in (str, bytes) and isinstance(value, cls)  # text is not a sequence of texts
    return isinstance(value, cls)


def _problem_inside(name: str, value: Any, kind: Any) -> str:
    """Return a sentence about the first part of a value that has a wrong type, or an empty string."""
    cls, args = _class_of(kind), get_args(kind)
    parts: Iterable[tuple[str, object, Any]] = ()
    if issubclass(cls, Mapping) and args:
        parts = ((f"{name}[{key!r}]", item, args[1]) for key, item in value.items())
    elif cls is tuple and args[1:] != (...,):
        parts = ((f"{name}[{place}]", *part) for place, part in enumerate(zip(value, args, strict=False)))
    elif issubclass(cls, Iterable) and args and isinstance(value, Collection):
        parts = ((f"{name}[{place}]", item, args[0]) for place, item in enumerate(value))
    elif members := _members(cls):
        parts = ((f"{name}.{member}", getattr(value, member), declared) for member, declared in members.items())
    return next((problem for part in parts if (problem := _problem(*part))), "")


@cache
def _members(cls: Any) -> dict[str, Any]:
    """Return the members of a protocol with their types; empty for another class."""
    if not getattr(cls, "_is_protocol", False):
        return {}
    return {
        name: _returned(member.fget) if isinstance(member, property) else Callable
        for base in cls.__mro__
        if getattr(base, "_is_protocol", False)
        for name, member in vars(base).items()
        if name == "__call__" or (not name.startswith("_") and (isinstance(member, property) or callable(member)))
    }


def _returned(function: Any) -> Any:
    return _evaluated(function.__annotations__["return"], vars(sys.modules[function.__module__]))


def _words(kind: Any) -> str:
    cls, args = _class_of(kind), get_args(kind)
    if cls in _WORDS:
        return _WORDS[cls]
    if issubclass(cls, Mapping):
        return "a mapping"
    if cls is tuple and args[1:] != (...,):
        return "a tuple"
    if issubclass(cls, Iterable) and args:
        return f"{_with_article(cls.__name__.lower())} of {_plural(args[0])}"
    members = [*_members(cls)]
    if members == ["__call__"]:
        return "a function"
    if members:
        names = [f"`{member}`" for member in members]
        return f"an object with {', '.join(names[:-1])}{' and ' if names[:-1] else ''}{names[-1]}"
    return _with_article(cls.__name__)


def _plural(kind: Any) -> str:
    cls = _class_of(kind)
    if isinstance(kind, UnionType):
        return f"{_either([_class_of(part).__name__ for part in get_args(kind)])} objects"
    if cls is str:
        return "texts"
    return f"{cls.__name__.lower()}s" if _members(cls) else f"{cls.__name__} objects"


def _either(words: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _what_came(value: object, kind: Any) -> str:
    """Return the type of the value that came, with advice on how to make one of the right type."""
    cls, args = _class_of(kind), get_args(kind)
    if isinstance(value, type) and _members(cls):
        return f"{type_name(value)}; pass an object of it"
    element = _class_of(args[0]) if args and issubclass(cls, Iterable) and not issubclass(cls, Mapping) else cls
    clause, example = _MAKERS.get(element.__name__, ("", ""))
    argument = fspath(value) if isinstance(value, str | PathLike) else example
    if not clause and issubclass(element, Enum):
        clause = f"{element.__name__}.{next(iter(element)).name} is one"
    if not clause and issubclass(element, Record):
        clause = f"{element.__name__}({field_names(element)[0]}=...) makes one"
    return type_name(value) + (f": {clause.format(repr(argument))}" if clause else "")


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "aeioAEIO" or name.startswith("Un") else f"a {name}"

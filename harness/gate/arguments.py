"""Arguments of a call: parsing of the raw text into values that fit a tool's schema, and typed access to the values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from harness.actions import JsonValue
from harness.errors import ToolError
from harness.gate.tool import Arguments
from harness.model import ToolSpec
from harness.text.fields import kind_of

MAX_ARGUMENT_CHARACTERS = 12_000_000
"""Maximum length of one call's raw arguments. Allows a 10 MiB file in JSON, and bounds the parsing time."""
MAX_NAME_CHARACTERS = 100
"""Maximum length of a name from the model that messages quote. All names of tools and fields are shorter."""

PATH_SCHEMA: dict[str, JsonValue] = {
    "type": "string",
    "description": "Relative to the workspace folder, or absolute.",
    "minLength": 1,
}
"""Schema of the argument `path`, the same for every tool that has one."""


def quoted_name(name: str) -> str:
    """Return a name from the model in quotes, or only its length if it is too long.

    It is not cut, since a part of a secret would not be masked.
    """
    return repr(name) if len(name) <= MAX_NAME_CHARACTERS else f"<{len(name)} characters>"


def parse_arguments(text: str, spec: ToolSpec) -> dict[str, JsonValue]:
    """Parse the arguments in `text`, which is strict JSON that fits the schema of `spec`.

    `read_as` describes further accepted forms. INVARIANT: each call is parsed only here. The policy, the approval
    prompt, the record and the tool all get this result. Raises ToolError for a duplicate key, NaN, an unknown field, a
    wrong type, NUL, a lone surrogate, or a text that is too long.
    """
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        raise ToolError(
            f"The arguments of {spec.name} are {len(text)} characters long; at most {MAX_ARGUMENT_CHARACTERS} are taken."
        )
    try:
        value = _json_value(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The arguments of {spec.name} are not valid JSON: {error}. Send one JSON object.") from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise ToolError(f"The arguments of {spec.name} must be a JSON object, not {kind_of(value)}.")
    if spec.is_checked:
        value = _read_fields(value, spec.parameters)
    problem = _schema_problem(value, spec.parameters) if spec.is_checked else _unfit_text(value)
    if problem:
        raise ToolError(f"Invalid arguments for {spec.name}: {problem}")
    return value


def _json_value(text: str) -> JsonValue:
    value: JsonValue = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    return value


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def _no_constant(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is not JSON")


def _schema_problem(value: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> str:
    """Return the first problem of an object, or an empty string.

    Checks strictly, and covers the subset of JSON Schema that the tools here use. A valid object is at most as deep as
    its schema.
    """
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise TypeError("a tool's schema needs `properties`")
    for name in value:
        if name not in properties and schema.get("additionalProperties") is not True:
            return f"unknown field {quoted_name(name)}; the fields are {', '.join(properties)}."
    for needed in required:
        if needed not in value:
            return f"{needed} is missing."
    for name, item in value.items():
        problem = _value_problem(item, properties[name]) if name in properties else ""
        if problem:
            return f"{name}: {problem}"
    return ""


_TYPES: Mapping[str, tuple[str, type | tuple[type, ...]]] = {
    "string": ("a string", str),
    "boolean": ("true or false", bool),
    "integer": ("an integer", int),
    "number": ("a number", (int, float)),
    "array": ("a list", list),
    "object": ("an object", dict),
}
"""For each schema type: its name in messages and its Python type. In Python a bool is also an int."""
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


def _is_of(value: JsonValue, kind: str) -> bool:
    return isinstance(value, _TYPES[kind][1]) and not (isinstance(value, bool) and kind != "boolean")


def read_as(value: JsonValue, schema: JsonValue) -> JsonValue:
    """Return `value` converted to the types of `schema`, wherever only one conversion is possible.

    Other values are returned unchanged. Some servers and templates write an integer as 2.0, an omitted optional field
    as null, and any value as a string: `"2"`, `"true"`, `"[1]"`. Other types are never converted to a string, since
    their exact text, blanks included, is lost.
    """
    kind = str(schema.get("type")) if isinstance(schema, dict) else ""
    if not isinstance(schema, dict) or kind not in _TYPES:
        return value
    if isinstance(value, str) and kind != "string":
        value = _read_text(value, kind)
    match value:
        case float() if kind == "integer" and value.is_integer():
            return int(value)
        case list() if kind == "array":
            return [read_as(item, schema.get("items")) for item in value]
        case dict() if kind == "object":
            return _read_fields(value, schema)
        case _:
            return value


def _read_text(text: str, kind: str) -> JsonValue:
    """Parse `text` as JSON, or as `True`, `False` or `None`.

    Return the value if it is null or of type `kind`, else `text`.
    """
    try:
        value = _json_value(_PYTHON_WORDS.get(text, text))
    except (ValueError, RecursionError):
        return text
    fits = value is None or _is_of(value, "number" if kind == "integer" else kind)
    return value if fits else text


def _read_fields(fields: dict[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return fields  # refused as a schema that cannot be checked
    values = {name: read_as(item, properties.get(name)) for name, item in fields.items()}
    return {
        name: value for name, value in values.items() if value is not None or name in required or name not in properties
    }


def _value_problem(value: JsonValue, schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        raise TypeError("a property's schema must be an object")
    kind = str(schema.get("type"))
    if kind not in _TYPES:
        raise TypeError(f"the registry cannot check values of type {kind}")
    if not _is_of(value, kind):
        return f"must be {_TYPES[kind][0]}, not {kind_of(value)}."
    match value:
        case str():
            return _text_problem(value, schema)
        case dict():
            return _schema_problem(value, schema)
        case list():
            return _list_problem(value, schema)
        case bool() | None:
            return ""
        case int() | float():
            return _number_problem(value, schema)
        case _:
            assert_never(value)


def _list_problem(value: Sequence[JsonValue], schema: Mapping[str, JsonValue]) -> str:
    minimum, maximum = schema.get("minItems", 0), schema.get("maxItems")
    if isinstance(minimum, int) and len(value) < minimum:
        return f"must hold at least {minimum}."
    if isinstance(maximum, int) and len(value) > maximum:
        return f"holds {len(value)}; at most {maximum} are taken."
    for number, item in enumerate(value, 1):
        problem = _value_problem(item, schema.get("items"))
        if problem:
            return f"number {number}: {problem}"
    return ""


def _text_problem(value: str, schema: Mapping[str, JsonValue]) -> str:
    if "\0" in value:
        return "contains a NUL character."
    try:
        value.encode()
    except UnicodeEncodeError:
        return "contains a lone surrogate."
    words = schema.get("enum")
    if isinstance(words, list) and value not in words:
        return f"must be one of {', '.join(map(str, words))}."
    minimum, maximum = schema.get("minLength", 0), schema.get("maxLength")
    if isinstance(minimum, int) and len(value) < minimum:
        return "must not be empty."
    if isinstance(maximum, int) and len(value) > maximum:
        return f"is {len(value)} characters long; at most {maximum} are taken."
    return ""


def _unfit_text(value: JsonValue) -> str:
    """Return the problem of the first string or field name with NUL or a lone surrogate, or an empty string.

    Programs differ in how they read such a string.
    """
    problem = next(filter(None, (_text_problem(text, {}) for text in texts_in(value))), "")
    return f"a text {problem}" if problem else ""


def texts_in(value: JsonValue) -> Iterator[str]:
    """Yield every string of a value, names of fields included, in arbitrary order."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as fields:
                waiting += [*fields, *fields.values()]
            case list() as items:
                waiting += items
            case _:
                pass


def _number_problem(value: float, schema: Mapping[str, JsonValue]) -> str:
    if value in (float("inf"), float("-inf")):
        return "is too large a number."  # json.loads reads 1e999 as infinity
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if isinstance(minimum, int | float) and value < minimum:
        return f"must be at least {minimum}."
    if isinstance(maximum, int | float) and value > maximum:
        return f"must be at most {maximum}."
    return ""


def text(arguments: Arguments, name: str, default: str | None = None) -> str:
    """Return a string argument, or `default` if it is missing.

    Raises TypeError for another type or a missing argument without a default: the schema was not checked.
    """
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string")
    return value


def number(arguments: Arguments, name: str, default: float) -> float:
    """Return a numeric argument, or `default` if it is missing. Raises TypeError for another type."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number")
    return value


def whole_number(arguments: Arguments, name: str, default: int) -> int:
    """Return an integer argument, or `default` if it is missing. Raises TypeError for another type."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """Return a boolean argument, or False if it is missing. Raises TypeError for another type."""
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false")
    return value


def objects(arguments: Arguments, name: str) -> list[Arguments]:
    """Return an argument that is a list of objects. Raises TypeError for another type, or if it is missing."""
    value = arguments.get(name)
    if not isinstance(value, list):
        raise TypeError(f"{name} must be a list")
    items: list[Arguments] = [item for item in value if isinstance(item, dict)]
    if len(items) != len(value):
        raise TypeError(f"{name} must be a list of objects")
    return items

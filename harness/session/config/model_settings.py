"""The user's settings for the model's answers: in the file, in a profile, by flags. API keys are refused here.

Each field of `[extra_body]` or `[extra_headers]` counts as a setting: `extra_body.top_k`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, cast

from harness.actions import JsonValue
from harness.errors import UsageError, nearest
from harness.model import ModelSettings
from harness.models.setting_fields import OWN_FIELDS
from harness.regex import regex
from harness.session.config.declared import NO_KEYS, is_key_like
from harness.text.fields import check_of

EXTRA_BODY, EXTRA_HEADERS = EXTRA_TABLES = ("extra_body", "extra_headers")

_TYPES = {
    "max_output_tokens": f"whole from 1 to {10**9}",
    "effort": "line",
    "temperature": "number from 0 to 2",
    "top_p": "number above 0, at most 1",
    "seed": "whole",
    "stop": "list of text",
    "verbosity": "line",
    "service_tier": "line",
}
_CHECKS = {name: check_of(word) for name, word in _TYPES.items()}
MODEL_SETTINGS = (*_TYPES, *EXTRA_TABLES)
"""Names of the settings in the file and in `--set`."""

_HEADER_NAME = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = regex(
    r"(accept|accept-encoding|connection|content-.*|expect|host|te|trailer|transfer-encoding|upgrade|x-stainless-.*)"
)
NOT_SHOWN = "(not shown)"
_CACHE_KEY = "prompt_cache_key"
"""A field that is not a secret, although its name ends in `key`."""


def setting_type_problem(name: str, value: object) -> str:
    """Return the reason why a value is invalid for a setting of any model, or an empty string.

    `name` is one of MODEL_SETTINGS, or a field of its tables: `extra_body.top_k`.
    """
    table, _, field = name.partition(".")
    if not field:
        return f"must be a table: [{name}]" if table in EXTRA_TABLES else _CHECKS[name](value)
    return _body_problem(field, value) if table == EXTRA_BODY else _header_problem(field, value)


def flattened(name: str, value: object) -> dict[str, object]:
    """Return a setting as a mapping of one name to its value. A table becomes one item per field (`TABLE.FIELD`)."""
    if name not in EXTRA_TABLES or not isinstance(value, Mapping):
        return {name: value}
    return {f"{name}.{field}": item for field, item in value.items()}


def unified(name: str) -> str:
    """Return the normal form of a setting's name. Header names are lowercase, since case does not matter in them."""
    return name.lower() if name.startswith(f"{EXTRA_HEADERS}.") else name


def shown_value(name: str, value: JsonValue) -> JsonValue:
    """Return a setting's value for display. For headers it is NOT_SHOWN, since they may contain secrets."""
    return NOT_SHOWN if name.startswith(f"{EXTRA_HEADERS}.") else value


def said_by_flags(effort: str | None, pairs: Iterable[str]) -> dict[str, JsonValue]:
    """Return the settings from `--effort WORD` and each `--set NAME=VALUE`. Raises UsageError.

    A value is parsed as TOML. It is taken as text if it is not valid TOML, or if the setting is a text.
    """
    settings: dict[str, JsonValue] = {}
    for pair in [*([f"effort={effort}"] if effort is not None else []), *pairs]:
        name, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"--set {pair[:50]!r}: must be NAME=VALUE, such as temperature=0.2")
        table, dot, field = name.partition(".")
        if table not in MODEL_SETTINGS or (field and table not in EXTRA_TABLES):
            known_names = [*_TYPES, *(f"{extra}.NAME" for extra in EXTRA_TABLES)]
            raise UsageError(f"--set {name[:50]}: unknown model setting{nearest(name, known_names)}")
        wants_text = table == EXTRA_HEADERS or _TYPES.get(name) == "line"
        value: object = text if wants_text else _toml_value(text)
        if name == "stop" and isinstance(value, str):
            value = [value]
        if table == EXTRA_BODY and dot:
            value = _nested(field, value)
        elif field:
            value = {field: value}
        for key, item in flattened(table, value).items():
            if problem := setting_type_problem(key, item):
                raise UsageError(f"--set {key}: {problem}")
            settings[unified(key)] = joined(settings.get(unified(key)), cast("JsonValue", item))
    return settings


def joined(older: JsonValue, newer: JsonValue) -> JsonValue:
    """Return the newer of two values. Two tables are merged; for fields in both, the newer value counts."""
    if not isinstance(older, dict) or not isinstance(newer, dict):
        return newer
    return {**older, **{name: joined(older.get(name), value) for name, value in newer.items()}}


def _nested(path: str, value: object) -> dict[str, object]:
    """Return `value` nested in tables as the dotted TOML key `path` says. Raises UsageError for an invalid key."""
    try:
        read: Any = tomllib.loads(f"{path} = 0")
    except ValueError:
        read = None
    if read is None or "\n" in path:  # several lines could define several fields
        raise UsageError(f"--set {EXTRA_BODY}.{path[:50]}: invalid field name")
    names: list[str] = []
    while isinstance(read, dict):
        ((name, read),) = read.items()
        names.append(name)
    for name in reversed(names):
        value = {name: value}
    return cast("dict[str, object]", value)


def model_settings(settings: Mapping[str, JsonValue]) -> ModelSettings:
    """Return a ModelSettings from settings by name, each of which `setting_type_problem` has accepted."""
    fields: dict[str, Any] = {}
    for name, value in settings.items():
        table, _, field = name.partition(".")
        if field:
            fields.setdefault(table, {})[field] = value
        else:
            fields[name] = tuple(value) if isinstance(value, list) else value
    return ModelSettings(**fields)


def _toml_value(text: str) -> object:
    try:
        read = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    return read["value"] if read.keys() == {"value"} else text


def _body_problem(field: str, value: object) -> str:
    if not field:
        return "has no name"
    if field in OWN_FIELDS:
        return "is a field that the program writes itself"
    if field in MODEL_SETTINGS:
        return f"is a setting of its own: {field} = ..."
    return _json_problem(value, field)


def _json_problem(value: object, name: str) -> str:
    """Return the reason why a field is not allowed (not JSON, or named like an API key), or an empty string."""
    if name != _CACHE_KEY and is_key_like(name):
        return NO_KEYS
    match value:
        case bool() | int() | str() | None:
            return ""
        case float():
            return "" if isfinite(value) else "must be a finite number"
        case list():
            return next(filter(None, (_json_problem(item, "") for item in value)), "")
        case dict():
            return next(filter(None, (_json_problem(item, str(key)) for key, item in value.items())), "")
        case _:
            return "must be a text, a number, true or false, a list or a table"


def _header_problem(name: str, value: object) -> str:
    if not _HEADER_NAME.fullmatch(name):
        return "is not a valid header name"
    if is_key_like(name):
        return NO_KEYS
    if _OWN_HEADERS.fullmatch(name.lower()):
        return "is a header that the program writes itself"
    if not isinstance(value, str) or not value.strip() or not (value.isascii() and value.isprintable()):
        return "must be a text of printable ASCII characters"
    return ""

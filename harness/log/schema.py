"""The fields of every kind of record: one table, which `verify` checks and which is printed as JSON Schema.

A field's type is a word of `_PLAIN`, a part of `_PARTS`, `list of` one of these, or `one of` some texts; `|null` lets it
be null; a name that ends in `?` may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from harness.actions import JsonValue
from harness.log.order import ANSWERS, DECISIONS, STATUSES
from harness.record import Record

VERSION = 1
"""`v` of every record. Kinds, and fields that may be missing, are added; what is renamed, removed or given another meaning
makes a new version."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Of a record's line, without its newline: none is written that is longer, and none is read into memory."""

_COMMON: Mapping[str, str] = {
    "v": "count",
    "seq": "count",
    "time": "text",
    "mono_ns": "count",
    "session": "text",
    "kind": "text",
    "prev": "digest",
    "masked?": "counts",
}

RECORDS: Mapping[str, Mapping[str, str]] = {
    "session_started": {
        "harness": "text",
        "mode?": "text",
        "workspace?": "text",
        "user?": "text",
        "uid?": "count",
        "host?": "text",
        "pid?": "count",
        "git_head?": "text|null",
        "environment?": "list of text",
        "argv?": "list of text",
        "python?": "text",
        "model?": "text",
        "tools?": "list of text",
        "policy?": "text",
        "policy_sha256?": "digest",
        "policy_files?": "list of policy_file",
        "confinement?": "text",
        "system?": "text",
        "origin?": "origin",
    },
    "user_message": {"text": "text", "by?": "one of harness"},
    "model_request": {"turn": "count", "messages": "count", "purpose?": "text"},
    "model_response": {
        "turn": "count",
        "text": "text",
        "calls": "count",
        "finish_reason": "text",
        "input_tokens": "count",
        "output_tokens": "count",
        "cached_tokens?": "count",
        "unreported?": "count",
        "cost?": "number",
        "retries": "count",
        "ms": "count",
        "client?": "text",
        "echo?": "text",
        "purpose?": "text",
    },
    "call_proposed": {
        "call": "count",
        "turn": "count",
        "step": "count",
        "id": "text",
        "tool": "text",
        "arguments": "text",
        "arguments_sha256": "digest",
        "arguments_characters?": "count",
        "edited_from?": "count",
        "by?": "one of person",
    },
    "decision": {
        "call": "count",
        "tool": "text",
        "arguments_sha256": "digest",
        "decision": f"one of {' '.join(DECISIONS)} none",
        "by": "text",
        "reason": "text",
        "summary?": "text",
        "source?": "text",
        "rule?": "text|null",
        "file?": "text|null",
        "line?": "count|null",
        "layer?": "text",
        "facets?": "list of facet",
        "facet_count?": "count",
        "effects?": "effects",
        "policy_sha256?": "digest",
        "default_of?": "text",
    },
    "approval_asked": {"call": "count", "shown_sha256": "digest"},
    "approval_answered": {
        "call": "count",
        "answer": f"one of {' '.join(ANSWERS)}",
        "by": "text",
        "words": "text",
        "seconds": "number",
        "edited_to?": "count",
        "scope?": "one of session workspace",
    },
    "grant": {
        "grant": "text",
        "change": "one of added kept revoked",
        "scope": "one of session workspace",
        "call?": "count",
        "not_kept?": "text",
        "text": "text",
        "tools": "list of text",
        "argv": "list of text",
        "path": "text",
        "access": "list of text",
        "write": "list of text",
        "network": "flag",
        "folder": "text",
        "file": "text",
        "line": "count",
    },
    "intent": {
        "call": "count",
        "tool": "text",
        "arguments_sha256": "digest",
        "policy_sha256": "digest",
        "preview_sha256": "digest",
        "effects": "effects",
        "confinement": "text",
        "cwd?": "text",
        "timeout_seconds?": "number",
        "change?": "change",
    },
    "outcome": {
        "call": "count",
        "tool": "text",
        "status": f"one of {' '.join(STATUSES)}",
        "content": "text",
        "duration_ms?": "count",
        "output_bytes?": "count",
        "truncated?": "flag",
        "exit_code?": "whole|null",
        "error_code?": "text",
        "changed_path?": "text",
        "before_sha256?": "digest|null",
        "after_sha256?": "digest|null",
    },
    "advice": {"call": "count", "toml?": "text", "why?": "text"},
    "answer_checked": {"fits": "flag", "problem": "text"},
    "diverged": {
        "request": "count",
        "message": "whole",
        "role": "text",
        "tool": "text",
        "recorded": "text",
        "now": "text",
    },
    "policy_changed": {
        "why": "text",
        "policy": "text",
        "policy_sha256": "digest",
        "policy_files": "list of policy_file",
        "asked?": "asked",
    },
    "model_changed": {"model": "text", "api?": "text", "server?": "text"},
    "history_changed": {"why": "text", "start": "count", "stop": "count", "messages": "list of message"},
    "restored": {
        "of_session": "text",
        "call": "count",
        "tool": "text",
        "path?": "text",
        "command?": "text",
        "result": "text",
        "detail": "text",
        "before_sha256?": "digest|null",
        "after_sha256?": "digest",
    },
    "recovered": {"torn_bytes": "count", "torn_sha256": "digest", "kept_in": "text", "open": "list of text"},
    "limit": {"limit": "text", "last_action": "text"},
    "error": {
        "where": "text",
        "message": "text",
        "fault?": "text",
        "attempt?": "count",
        "attempts?": "count",
        "retry_seconds?": "number",
        "input_tokens?": "count",
        "output_tokens?": "count",
        "unreported?": "count",
        "cost?": "number",
    },
    "session_ended": {
        "stop": "text",
        "detail": "text",
        "input_tokens?": "count",
        "output_tokens?": "count",
        "counts?": "counts",
        "exit_code?": "count",
    },
}
"""Kinds and their fields, beside those that all records have."""
OPEN_KINDS = frozenset(("session_started",))
"""Whoever starts a session may say more of it, in fields of any other name."""

_PARTS: Mapping[str, Mapping[str, str]] = {
    "policy_file": {"layer": "text", "path": "text", "sha256": "digest", "trusted": "flag", "text?": "text"},
    "origin": {"session?": "text", "log?": "text", "records?": "count", "head?": "text", "how?": "text"},
    "asked": {
        "question": "text",
        "answer": "one of yes no stop halt nobody",
        "by": "text",
        "words": "text",
        "seconds": "number",
    },
    "facet": {"facet": "text", "kind": "text", "decision": "text", "by": "text"},
    "effects": {
        "network": "flag",
        "unasked": "flag",
        "granted": "list of text",
        "enforcement": "text",
        "read": "list of text|null",
        "read_count?": "count",
        "write": "list of text|null",
        "write_count?": "count",
        "named?": "list of text",
    },
    "change": {
        "path": "text",
        "before_sha256": "digest|null",
        "after_sha256": "digest",
        "before_mode": "count|null",
    },
    "message": {
        "role": "text",
        "content": "text",
        "tool_calls?": "list of tool_call",
        "tool_call_id?": "text",
        "echo?": "text",
    },
    "tool_call": {"id": "text", "name": "text", "arguments": "text"},
}

_Check: TypeAlias = Callable[[JsonValue], str]
"""Says what is wrong with a value, or nothing."""

_DIGEST = re.compile("[0-9a-f]{64}")


class _Fields(Record):
    """A table of fields, made ready."""

    checks: dict[str, _Check]
    required: frozenset[str]
    is_open: bool


_compiled: dict[str, _Fields] = {}


def problem(record: Mapping[str, JsonValue]) -> str:
    """Return what is wrong with the fields of one record, or nothing. Total: a record may hold anything.

    Not looked at: the values of `v`, `seq` and `prev`, which the reader of a whole log knows.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in RECORDS:
        return f"is of the unknown kind {kind[:100]!r}" if isinstance(kind, str) else "is of a kind that is no text"
    if kind not in _compiled:
        _compiled[kind] = _compile({**_COMMON, **RECORDS[kind]}, is_open=kind in OPEN_KINDS)
    return _object_problem(record, _compiled[kind])


def _object_problem(value: Mapping[str, JsonValue], fields: _Fields) -> str:
    if not fields.required <= value.keys():
        return f"lacks the field {min(fields.required - value.keys())}"
    for name, item in value.items():
        check = fields.checks.get(name)
        if check is None:
            if not fields.is_open:
                return f"holds the field {name[:50]!r}, which its kind does not have"
        elif found := check(item):
            return f"holds a {name} that {found}"
    return ""


def _compile(table: Mapping[str, str], *, is_open: bool = False) -> _Fields:
    return _Fields(
        checks={name.removesuffix("?"): _check_for(word) for name, word in table.items()},
        required=frozenset(name for name in table if not name.endswith("?")),
        is_open=is_open,
    )


def _check_for(word: str) -> _Check:
    if word.endswith("|null"):
        inner = _check_for(word.removesuffix("|null"))
        return lambda value: "" if value is None else inner(value)
    if word.startswith("one of "):
        texts = frozenset(word.split()[2:])
        return lambda value: "" if isinstance(value, str) and value in texts else "is none of its words"
    if word.startswith("list of "):
        return _list_check(_check_for(word.removeprefix("list of ")))
    if word in _PARTS:
        fields = _compile(_PARTS[word])
        return lambda value: _object_problem(value, fields) if isinstance(value, dict) else "is not an object"
    return _PLAIN[word].check


def _list_check(inner: _Check) -> _Check:
    def check(value: JsonValue) -> str:
        if not isinstance(value, list):
            return "is not a list"
        return next((found for item in value if (found := inner(item))), "")

    return check


class _Plain(Record):
    """A type that is a word."""

    check: _Check
    schema: Mapping[str, JsonValue]


def _plain(wrong: str, fits: Callable[[JsonValue], bool], **schema: JsonValue) -> _Plain:
    return _Plain(check=lambda value: "" if fits(value) else wrong, schema=schema)


def _is_count(value: JsonValue) -> bool:
    return type(value) is int and value >= 0


# By their exact types: in Python `true` is a whole number as well.
_PLAIN: Mapping[str, _Plain] = {
    "text": _plain("is not a text", lambda value: type(value) is str, type="string"),
    "whole": _plain("is not a whole number", lambda value: type(value) is int, type="integer"),
    "count": _plain("is not a count", _is_count, type="integer", minimum=0),
    "number": _plain("is not a number", lambda value: type(value) in (int, float), type="number"),
    "flag": _plain("is not true or false", lambda value: type(value) is bool, type="boolean"),
    # The lengths too: in some readers `$` also stands before a last line end.
    "digest": _plain(
        "is not the hexadecimal form of a SHA-256",
        lambda value: type(value) is str and _DIGEST.fullmatch(value) is not None,
        type="string", pattern="^[0-9a-f]{64}$", minLength=64, maxLength=64,
    ),
    "counts": _plain(
        "does not hold counts",
        lambda value: isinstance(value, dict) and all(map(_is_count, value.values())),
        type="object", additionalProperties={"type": "integer", "minimum": 0},
    ),
}  # fmt: skip


def json_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (draft 2020-12) of one record: one alternative a kind."""
    kinds = {kind: _kind_schema(kind) for kind in RECORDS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:harness:action-log:{VERSION}",
        "title": "A record of the action log",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
        "$defs": {**kinds, **{part: _object_schema(fields) for part, fields in _PARTS.items()}},
    }


def _kind_schema(kind: str) -> dict[str, JsonValue]:
    schema = _object_schema({**_COMMON, **RECORDS[kind]}, is_open=kind in OPEN_KINDS)
    properties = schema["properties"]
    assert isinstance(properties, dict)  # noqa: S101 - for the type checker
    properties |= {"kind": {"const": kind}, "v": {"const": VERSION}}
    return schema


def _object_schema(table: Mapping[str, str], *, is_open: bool = False) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {name.removesuffix("?"): _schema_of(word) for name, word in table.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in table if not name.endswith("?")],
        "additionalProperties": is_open,
    }


def _schema_of(word: str) -> dict[str, JsonValue]:
    if word.endswith("|null"):
        return {"anyOf": [_schema_of(word.removesuffix("|null")), {"type": "null"}]}
    if word.startswith("one of "):
        return {"enum": list(word.split()[2:])}
    if word.startswith("list of "):
        return {"type": "array", "items": _schema_of(word.removeprefix("list of "))}
    return {"$ref": f"#/$defs/{word}"} if word in _PARTS else dict(_PLAIN[word].schema)

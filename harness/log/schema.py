"""The fields of every kind of record, in one table. `verify` checks it, and `json_schema` converts it to JSON Schema.

text/fields.py defines the notation of types. The types of the log are the keys of `_SCHEMAS` and `_PARTS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.log.vocabulary import (
    ANSWERS,
    DECISIONS,
    HOOK_ANSWERS,
    HOOK_EVENTS,
    PLACES_ANSWERS,
    SERVER_ANSWERS,
    STATUSES,
    UNJUDGED,
)
from harness.text.fields import Fields

VERSION = 1
"""`v` of every record. New kinds and optional fields keep the version; other changes need a new version."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Maximum size of a record's line in bytes, without its newline. Longer lines are never written, nor read completely."""

_COMMON: Mapping[str, str] = {
    "v": "count",
    "seq": "count",
    "time": "text",
    "mono_ns": "count",
    "session": "text",
    "kind": "text",
    "prev": "digest",
    "masked?": "object of count",
}

_KNOWN_EXTRA: Mapping[str, str] = {
    "connections?": "list of connection",
    "connection_count?": "count",
    "patch_file?": "text",
}
"""Extra facts of results that are direct fields of an outcome, because logs had them before `extra` existed."""

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
        "call_form?": "one of text",
        "profile?": "text",
        "model_settings?": "object of json",
        "tools?": "list of text",
        "policy?": "text",
        "policy_sha256?": "digest",
        "policy_files?": "list of policy_file",
        "confinement?": "text",
        "system?": "text",
        "origin?": "origin",
        "agent?": "text",
        "agent_session?": "text",
    },
    "user_message": {"text": "text", "by?": "one of harness", "pictures?": "list of picture"},
    "model_request": {"turn": "count", "messages": "count", "purpose?": "text"},
    "model_response": {
        "turn": "count",
        "text": "text",
        "calls": "count",
        "finish_reason": "text",
        "input_tokens": "count",
        "output_tokens": "count",
        "cached_tokens?": "count",
        "cache_write_tokens?": "count",
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
        "agent?": "agent_call",
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
    "hook_answered": {
        "call?": "count",
        "event": f"one of {' '.join(HOOK_EVENTS)}",
        "hook": "text",
        "program_sha256": "digest|null",
        "answer": f"one of {' '.join(HOOK_ANSWERS)}",
        "reason": "text",
        "duration_ms": "count",
        "note?": "text",
        "failed?": "flag",
        "ignored?": "text",
        "file?": "text",
        "line?": "count",
    },
    "approval_asked": {"call": "count", "shown_sha256": "digest", "by?": "text"},
    "approval_answered": {
        "call": "count",
        "answer": f"one of {' '.join(ANSWERS)}",
        "by": "text",
        "who?": "text",
        "words": "text",
        "seconds": "number",
        "edited_to?": "count",
        "scope?": "one of session workspace",
        "days?": "count",
        "opens?": "list of text",
    },
    "grant": {
        "grant": "text",
        "change": "one of added kept revoked narrowed mode",
        "scope": "one of session workspace",
        "call?": "count",
        "not_kept?": "text",
        "of?": "text",
        "until?": "text",
        "asleep?": "flag",
        "text": "text",
        "tools": "list of text",
        "argv": "list of text",
        "path": "text",
        "access": "list of text",
        "write": "list of text",
        "network": "flag",
        "hosts?": "list of text",
        "folder": "text",
        "program?": "flag",
        "variables?": "list of text",
        "exposes?": "list of text",
        "of_arguments?": "digest",
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
        "terminal?": "flag",
        "error_code?": "text",
        "seen_by?": "text",
        "pictures?": "list of picture",
        **_KNOWN_EXTRA,
        "extra?": "object of json",
        "changed_path?": "text",
        "before_sha256?": "digest|null",
        "after_sha256?": "digest|null",
        "changes?": "file_changes",
    },
    "ran_unjudged": {
        "call?": "count",
        "why": f"one of {' '.join(UNJUDGED)}",
        "tool": "text",
        "arguments": "text",
        "arguments_characters?": "count",
        "id": "text",
        "seen_by": "text",
        "status": f"one of {' '.join(STATUSES)}",
        "content": "text",
        "stops": "flag",
    },
    "job_ended": {
        "of_session": "text",
        "call": "count",
        "name": "text",
        "ending": "text",
        "by": "one of itself model person session",
        "exit_code": "whole|null",
        "seconds": "number",
        "output_bytes": "count",
        "surviving?": "list of text",
        "connections?": "list of connection",
        "connection_count?": "count",
    },
    "server_asked": {
        "call?": "count",
        "server": "text",
        "message": "text",
        "fields": "list of asked_field",
        "answer": f"one of {' '.join(SERVER_ANSWERS)}",
        "by": "text",
        "who?": "text",
    },
    "places_changed": {
        "call": "count",
        "grants": "list of text",
        "places": "list of place",
        "place_count": "count",
        "not_looked_at": "list of text",
        "not_kept?": "text",
    },
    "places_answered": {
        "call?": "count",
        "grants": "list of text",
        "answer": f"one of {' '.join(PLACES_ANSWERS)}",
        "by": "text",
        "seconds": "number",
        "put_back": "list of text",
        "not_put_back": "list of unmoved_place",
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
    "tools_changed": {"tools": "list of text", "told": "list of told_tool", "notes": "list of text"},
    "model_changed": {
        "model": "text",
        "api?": "text",
        "server?": "text",
        "call_form?": "one of text",
        "profile?": "text",
        "model_settings?": "object of json",
    },
    "session_named": {"name": "text"},
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
        "after_sha256?": "digest|null",
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
        "counts?": "object of count",
        "exit_code?": "count",
    },
}
"""Kinds of records and their fields, without the fields that all records have."""
OPEN_KINDS = frozenset(("session_started",))
"""Kinds of record that may have further fields: a program that starts a session may record more about it."""

_PARTS: Mapping[str, Mapping[str, str]] = {
    "policy_file": {
        "layer": "text",
        "path": "text",
        "sha256": "digest",
        "trusted": "flag",
        "text?": "text",
        "extends?": "list of text",
        "root?": "text",
    },
    "origin": {"session?": "text", "log?": "text", "records?": "count", "head?": "text", "how?": "text"},
    "asked": {
        "question": "text",
        "answer": "one of yes no stop halt nobody",
        "by": "text",
        "words": "text",
        "seconds": "number",
    },
    "asked_field": {"name": "text", "value?": "text"},
    "connection": {
        "host": "text",
        "port": "count",
        "allowed": "flag",
        "times": "count",
        "sent": "count",
        "received": "count",
        "address?": "text",
        "why_not?": "text",
    },
    "facet": {"facet": "text", "kind": "text", "decision": "text", "by": "text", "told?": "list of text"},
    "effects": {
        "network": "flag",
        "hosts?": "list of text",
        "unasked": "flag",
        "granted": "list of text",
        "enforcement": "text",
        "read": "list of text|null",
        "read_count?": "count",
        "write": "list of text|null",
        "write_count?": "count",
        "named?": "list of text",
        "sockets?": "flag",
        "needed_socket?": "flag",
        "level?": "text",
        "opened?": "list of text",
        "unheld?": "text",
        "left_out?": "list of text",
    },
    "change": {
        "path": "text",
        "before_sha256": "digest|null",
        "after_sha256": "digest",
        "before_mode": "count|null",
    },
    "file_changes": {
        "added": "count",
        "changed": "count",
        "removed": "count",
        "modes": "count",
        "links": "count",
        "began_ns": "count",
        "ended_ns": "count",
        "paths?": "list of path_change",
        "list_sha256?": "digest",
        "left_out?": "list of left_out_path",
        "problem?": "text",
        "history_changed?": "flag",
        "beside?": "list of text",
    },
    "path_change": {"path": "text", "before": "path_state|null", "after": "path_state|null"},
    "path_state": {
        "kind": "text",
        "mode?": "count",
        "size?": "count",
        "sha256?": "digest",
        "keyed_digest?": "digest",
        "target?": "text",
        "unkept?": "text",
    },
    "left_out_path": {"path": "text", "reason": "text", "size": "count", "is_changed": "flag", "is_removed?": "flag"},
    "place": {
        "path": "text",
        "how": "text",
        "before": "place_state|null",
        "after": "place_state|null",
        "is_kept": "flag",
    },
    "place_state": {"kind": "text", "mode": "count", "size": "count", "sha256": "digest|null"},
    "unmoved_place": {"path": "text", "why": "text"},
    "message": {
        "role": "text",
        "content": "text",
        "tool_calls?": "list of tool_call",
        "tool_call_id?": "text",
        "echo?": "text",
        "pictures?": "list of picture",
    },
    "picture": {"sha256": "digest", "media_type": "text", "width": "count", "height": "count", "size": "count"},
    "told_tool": {"name": "text", "description": "text", "parameters": "text"},
    "agent_call": {"tool": "text", "mode": "text", "subagent": "text", "cwd": "text", "event_sha256": "digest"},
    "tool_call": {"id": "text", "name": "text", "arguments": "text"},
}

_fields: dict[str, Fields] = {}


def problem(record: Mapping[str, JsonValue]) -> str:
    """Return the problem with the fields of one record, or an empty string. A record may contain any values.

    The values of `v`, `seq` and `prev` are not checked here, but by the reader of a whole log.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in RECORDS:
        return f"is of the unknown kind {kind[:100]!r}" if isinstance(kind, str) else "is of a kind that is no text"
    if kind not in _fields:
        _fields[kind] = Fields({**_COMMON, **RECORDS[kind]}, _PARTS, is_open=kind in OPEN_KINDS)
    field_problem = _fields[kind].problem(record)
    return f"does not fit its kind: {field_problem}" if field_problem else ""


def extra_fields(extra: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the extra facts of a result as fields for its outcome record."""
    fields = {name: value for name, value in extra.items() if f"{name}?" in _KNOWN_EXTRA}
    rest = {name: value for name, value in extra.items() if name not in fields}
    return fields | ({"extra": rest} if rest else {})


def extra_problem(extra: Mapping[str, JsonValue]) -> str:
    """Return a description of the first extra fact that is invalid in an outcome, or an empty string."""
    return Fields(_KNOWN_EXTRA, _PARTS, is_open=True).problem(extra)


_SCHEMAS: Mapping[str, Mapping[str, JsonValue]] = {
    "text": {"type": "string"},
    "whole": {"type": "integer"},
    "count": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "json": {},
    # With lengths, because in some readers `$` also matches before a final line end.
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "minLength": 64, "maxLength": 64},
}


def json_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (draft 2020-12) of a record, with one alternative per kind."""
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
    if word.startswith("object of "):
        return {"type": "object", "additionalProperties": _schema_of(word.removeprefix("object of "))}
    return {"$ref": f"#/$defs/{word}"} if word in _PARTS else dict(_SCHEMAS[word])

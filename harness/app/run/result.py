"""The result object, which `--output json` writes for one run, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.app.run.facts import ReportedCall, ReportedError, ReportedFile, RunFacts, line
from harness.audit.helper_tree import Helper

VERSION = 1
"""Value of the field `v`. New fields keep the version. Renaming, removing or redefining a field increases it."""


def result_object(
    facts: RunFacts,
    *,
    answer: str,
    code: int,
    cost: float | None,
    model: str,
    policy: str,
    policy_sha256: str,
    log: str,
    head: str,
    records: int,
    end: str | None = None,
    detail: str | None = None,
) -> dict[str, JsonValue]:
    """Return the result object. Everything except for the arguments comes from the log.

    `code` is the exit code. `cost` is in dollars, or `None` if unknown. `log` is a path. `head` is the digest of the
    log's last line, and `records` the number of its records. `end` and `detail` replace the log's values if the end of
    the run could not be logged.
    """
    return {
        "v": VERSION,
        "answer": answer,
        "end": facts.stop if end is None else end,
        "detail": facts.detail if detail is None else detail,
        "exit_code": int(code),
        "turns": facts.turns,
        "usage": {"input_tokens": facts.usage.input_tokens, "output_tokens": facts.usage.output_tokens},
        "cost": None if cost is None else round(cost, 9),
        "helpers": [_helper(item) for item in facts.helpers.of(facts.session)],
        "decisions": {name: facts.decisions.get(name, 0) for name in ("auto", "confirm", "deny", "block")},
        "calls": facts.counts.get("calls", 0),
        "refused": facts.denied_count,
        "blocked": facts.blocked_count,
        "refusals": [_refusal(item) for item in facts.refused],
        "files_changed": [_change(item) for item in facts.changed],
        "limits": list(facts.limits),
        "errors": [_error(item) for item in facts.errors],
        "left_out": {
            "refusals": facts.refused_left_out,
            "files_changed": facts.changed_left_out,
            "notes": facts.notes_left_out,
            "odd_records": facts.odd,
        },
        "answer_problem": facts.quoted_problem,
        "model": model,
        "policy": {"name": policy, "sha256": policy_sha256},
        "log": log,
        "session": facts.session,
        "records": records,
        "head": head,
        "dry_run": facts.started.dry_run,
        "diverged": [dict(item) for item in facts.diverged],
    }


def _refusal(call: ReportedCall) -> JsonValue:
    advice: dict[str, JsonValue] = {}
    if call.advice_toml:
        advice["toml"] = call.advice_toml
    if call.advice_why:
        advice["why"] = call.advice_why
    return {
        "call": call.number,
        "helper": call.helper,
        "tool": call.tool,
        "summary": call.summary,
        "decision": call.decision,
        "status": call.status,
        "rule": call.rule or None,
        "by": call.by,
        "file": call.file or None,
        "line": call.line,
        "layer": call.layer or None,
        "reason": call.reason,
        "part": call.part,
        "answered_by": call.answered_by or None,
        "advice": advice,
    }


def _change(file: ReportedFile) -> JsonValue:
    return {
        "path": file.path,
        "before_sha256": file.before_sha256,
        "after_sha256": file.after_sha256,
        "calls": list(file.calls),
    }


def _helper(helper: Helper) -> JsonValue:
    return {
        "session": helper.session,
        "task": line(helper.task, 300),
        "end": helper.stop,
        "turns": helper.requests,
        "usage": {"input_tokens": helper.usage.input_tokens, "output_tokens": helper.usage.output_tokens},
        "cost": None if helper.cost is None else round(helper.cost, 9),
        "patch": helper.patch_file or None,
    }


def _error(error: ReportedError) -> JsonValue:
    return {"where": error.location, "message": error.quoted, "fault": error.fault or None}


_TEXT: Mapping[str, JsonValue] = {"type": "string"}
_COUNT: Mapping[str, JsonValue] = {"type": "integer", "minimum": 0}
_DIGEST: Mapping[str, JsonValue] = {"type": "string", "pattern": "^[0-9a-f]{64}$", "minLength": 64, "maxLength": 64}


def _or_null(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


def _object(properties: Mapping[str, object], *, optional: bool = False) -> dict[str, JsonValue]:
    described: dict[str, JsonValue] = {name: _plain(schema) for name, schema in properties.items()}
    required: list[JsonValue] = [] if optional else [*properties]
    return {"type": "object", "properties": described, "required": required, "additionalProperties": False}


def _plain(schema: object) -> JsonValue:
    return dict(schema) if isinstance(schema, Mapping) else None


def _list(items: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"type": "array", "items": dict(items)}


def _described(schema: Mapping[str, JsonValue], description: str) -> dict[str, JsonValue]:
    return {**schema, "description": description}


_CALL: Mapping[str, JsonValue] = {"type": ["integer", "string"], "description": "The number of the call in the log."}
_REFUSAL = {
    "call": _CALL,
    "helper": _described(_or_null(_COUNT), "Whose call it is; null: the run's own."),
    "tool": _TEXT,
    "summary": _described(_TEXT, "One line, cut."),
    "decision": _described(_TEXT, "What the policy said: deny, block, or confirm where nobody was there to say yes."),
    "status": {"enum": ["denied", "blocked"]},
    "rule": _or_null(_TEXT),
    "by": _described(_TEXT, "What decided: a rule, a default or a built-in, with its place."),
    "file": _or_null(_TEXT),
    "line": _or_null(_COUNT),
    "layer": _or_null(_TEXT),
    "reason": _TEXT,
    "part": _described(_TEXT, "The part of the call that decided it."),
    "answered_by": _or_null(_TEXT),
    "advice": _described(
        _object({"toml": _TEXT, "why": _TEXT}, optional=True),
        "toml: a rule that would allow the call, never applied by itself; why: why no rule would.",
    ),
}
_CHANGE = {
    "path": _TEXT,
    "before_sha256": _or_null(_DIGEST),
    "after_sha256": _or_null(_DIGEST),
    "calls": _list(_CALL),
}
_HELPER = {
    "session": _TEXT,
    "task": _TEXT,
    "end": _TEXT,
    "turns": _COUNT,
    "usage": _object({"input_tokens": _COUNT, "output_tokens": _COUNT}),
    "cost": _or_null({"type": "number", "minimum": 0}),
    "patch": _described(_or_null(_TEXT), "Where the changes are kept that it made in a copy; nothing was applied."),
}
_DIVERGED = {
    name: {"type": ["string", "integer"]} for name in ("request", "message", "role", "tool", "recorded", "now")
}

RESULT_SCHEMA: Mapping[str, JsonValue] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": f"urn:harness:result:{VERSION}",
    "title": "The result of one unattended run",
    **_object(
        {
            "v": {"const": VERSION},
            "answer": _described(_TEXT, "The model's last words; the answer where the run was completed."),
            "end": _described(_TEXT, "Why the run ended: completed, blocked, limit ..."),
            "detail": _TEXT,
            "exit_code": {"type": "integer", "minimum": 0, "maximum": 255},
            "turns": _described(_COUNT, "Requests to the model, without those that were tried again."),
            "usage": _object({"input_tokens": _COUNT, "output_tokens": _COUNT}),
            "cost": _described(_or_null({"type": "number", "minimum": 0}), "In dollars; null where it is not known."),
            "helpers": _described(_list(_object(_HELPER)), "They count in turns, usage, cost and calls too."),
            "decisions": _object(dict.fromkeys(("auto", "confirm", "deny", "block"), _COUNT)),
            "calls": _described(_COUNT, "Calls that were proposed."),
            "refused": _described(_COUNT, "Calls that were denied."),
            "blocked": _described(_COUNT, "Calls that were hard blocks."),
            "refusals": _list(_object(_REFUSAL)),
            "files_changed": _described(
                _list(_object(_CHANGE)), "By file tools; what commands changed is not recorded file by file."
            ),
            "limits": _list(_TEXT),
            "errors": _list(_object({"where": _TEXT, "message": _TEXT, "fault": _or_null(_TEXT)})),
            "left_out": _described(
                _object(dict.fromkeys(("refusals", "files_changed", "notes", "odd_records"), _COUNT)),
                "How many of these the lists above do not hold; odd_records could not be understood.",
            ),
            "answer_problem": _described(_TEXT, "Why the answer does not fit the output schema; empty where it does."),
            "model": _TEXT,
            "policy": _object({"name": _TEXT, "sha256": _TEXT}),
            "log": _TEXT,
            "session": _TEXT,
            "records": _COUNT,
            "head": _described(_TEXT, "The SHA-256 of the log's last line."),
            "dry_run": {"type": "boolean"},
            "diverged": _list(_object(_DIVERGED)),
        }
    ),
}
"""JSON Schema (draft 2020-12) of the result object."""

"""OCSF events (Open Cybersecurity Schema Framework): one JSON object per call and line, in ASCII.

A command is Process Activity (1007, Launch), a file tool File System Activity (1001), any other tool API Activity
(6003). The profile `security_control` has the decision and its rule; approvals are `authorizations`; columns without
a place in the framework are in `unmapped`, under the names of row.py. The attributes, their values and the required
ones: github.com/ocsf/ocsf-schema, events/ and profiles/security_control.json.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from harness.actions import JsonValue
from harness.audit.calls import CallStanding, LoggedCall, did_fail, rule_of, standing_of, text
from harness.log.clocks import nanoseconds
from harness.log.reader import whole_number
from harness.plugins.insight.export.row import Cell, Export, encoded, plain, row
from harness.tool_kinds import BASH, Does, tool_kind

SCHEMA_VERSION = "1.6.0"
"""Version of OCSF. It and later versions have all parts that are used here."""
_SHA_256 = 3
_FILE_ACTIVITIES = {"Create": 1, "Read": 2, "Update": 3}

Event: TypeAlias = dict[str, JsonValue]


class _Class(NamedTuple):
    uid: int
    name: str
    category_uid: int
    category_name: str


_PROCESS = _Class(1007, "Process Activity", 1, "System Activity")
_FILE = _Class(1001, "File System Activity", 1, "System Activity")
_API = _Class(6003, "API Activity", 6, "Application Activity")

_MAPPED = frozenset(
    "log session time ended tool summary decision reason policy policy_sha256 status exit_code changed_path before_sha256 "
    "after_sha256 user host harness duration_ms".split()
)
"""Columns with a matching OCSF attribute; the others are written to `unmapped`."""


class _Outcome(NamedTuple):
    """The standing of a call in OCSF terms: IDs and their captions."""

    action: tuple[int, str]
    disposition: tuple[int, str]
    severity: tuple[int, str]
    status: tuple[int, str]


_INFORMATIONAL, _LOW, _MEDIUM, _HIGH, _CRITICAL = (
    (1, "Informational"), (2, "Low"), (3, "Medium"), (4, "High"), (5, "Critical"),
)  # fmt: skip
_ALLOWED, _DENIED, _UNKNOWN = (1, "Allowed"), (2, "Denied"), (0, "Unknown")
_SUCCESS, _FAILURE = (1, "Success"), (2, "Failure")
_OUTCOMES: Mapping[CallStanding, _Outcome] = {
    CallStanding.UNASKED: _Outcome(_ALLOWED, (1, "Allowed"), _INFORMATIONAL, _SUCCESS),
    CallStanding.APPROVED: _Outcome(_ALLOWED, (8, "Approved"), _LOW, _SUCCESS),
    CallStanding.REFUSED: _Outcome(_DENIED, (2, "Blocked"), _MEDIUM, _FAILURE),
    CallStanding.BLOCKED: _Outcome(_DENIED, (2, "Blocked"), _HIGH, _FAILURE),
    CallStanding.NEVER: _Outcome((99, "Not run"), (16, "No Action"), _LOW, _FAILURE),
    CallStanding.UNKNOWN: _Outcome(_ALLOWED, (1, "Allowed"), _HIGH, _UNKNOWN),
    CallStanding.UNACCOUNTED: _Outcome(_UNKNOWN, (99, "Ran without a decision"), _CRITICAL, _UNKNOWN),
}
_UNAUTHORIZED, _REJECTED = (26, "Unauthorized"), (25, "Rejected")


def exported(export: Export) -> Iterator[str]:
    """Yield one event per call, as one line. Raises LogError."""
    for call in export.logs.calls():
        yield encoded(event(call, export))


def event(call: LoggedCall, export: Export) -> Event:
    """Return a call as one event."""
    fields = row(call, export)
    arguments = _arguments(call)
    tool = tool_kind(call.tool)
    runs_command = call.is_unjudged and isinstance((arguments or {}).get("command"), str)  # the name is the agent's
    if runs_command or tool.does is Does.RUNS:
        kind, activity, name, attributes = _PROCESS, 1, "Launch", _process(call, fields, arguments, export)
    elif tool.is_of_files:
        name, attributes = _file(call, fields, arguments, export)
        kind, activity = _FILE, _FILE_ACTIVITIES[name]
    else:
        kind, activity, name, attributes = _API, 99, plain(call.tool) or "unknown", _api(call, fields)
    return {
        "class_uid": kind.uid,
        "class_name": kind.name,
        "category_uid": kind.category_uid,
        "category_name": kind.category_name,
        "activity_id": activity,
        "activity_name": name,
        "type_uid": kind.uid * 100 + activity,
        "type_name": f"{kind.name}: {name}",
        **_times(call, fields, export),
        **_decided(call, fields),
        "metadata": _metadata(call, fields),
        "actor": _actor(fields, export, call),
        "device": {**_host(fields), "type_id": 0, "type": "Unknown"},
        **attributes,
        "unmapped": {key: value for key, value in fields.items() if key not in _MAPPED and value is not None},
    }


def _times(call: LoggedCall, fields: Mapping[str, Cell], export: Export) -> Event:
    start = nanoseconds(fields["time"])
    if start is None:
        export.note("time cannot be read")
        start = nanoseconds(call.started.get("time")) or 0
    times: Event = {"time": start // 1_000_000, "timezone_offset": 0, "start_time": start // 1_000_000}
    end = nanoseconds(fields["ended"])
    if end is not None:
        times["end_time"] = end // 1_000_000
    return times if fields["duration_ms"] is None else times | {"duration": fields["duration_ms"]}


def _decided(call: LoggedCall, fields: Mapping[str, Cell]) -> Event:
    """Return the decision and the result: the profile `security_control` and the status."""
    standing = standing_of(call)
    action, disposition, severity, status = _OUTCOMES[standing]
    if did_fail(call):
        severity, status = max(severity, _LOW), _FAILURE
    if text(call.outcome, "status") == "invalid":
        action, disposition = _DENIED, _REJECTED
    elif standing is CallStanding.REFUSED and call.answered:
        disposition = _UNAUTHORIZED
    elif not call.outcome and not call.intent:
        action, disposition, status = _UNKNOWN, _UNKNOWN, _UNKNOWN
    event: Event = {
        "message": fields["summary"]
        or f"a call of {plain(call.tool) or 'an unknown tool'}{' that was not allowed' if call.is_unjudged else ''}",
        "severity_id": severity[0],
        "severity": severity[1],
        "status_id": status[0],
        "status": status[1],
        "status_code": fields["status"] or fields["fate"],
        "action_id": action[0],
        "action": action[1],
        "disposition_id": disposition[0],
        "disposition": disposition[1],
        "is_alert": standing in (CallStanding.BLOCKED, CallStanding.UNKNOWN, CallStanding.UNACCOUNTED),
    }
    if fields["reason"]:
        event["status_detail"] = fields["reason"]
    policy = _policy(fields)
    if policy:
        event["policy"] = policy
    if fields["rule"]:
        event["firewall_rule"] = {
            "uid": fields["rule"],
            "name": fields["rule"],
            "type": "policy rule",
            "desc": plain(rule_of(call)),
        }
    if fields["asked"]:
        event["authorizations"] = [_authorization(fields, policy)]
    return event


def _policy(fields: Mapping[str, Cell]) -> Event:
    policy: Event = {"name": fields["policy"], "uid": fields["policy_sha256"], "desc": fields["decided_by"]}
    if fields["policy_sha256"]:
        policy["version"] = f"sha256:{str(fields['policy_sha256'])[:12]}"
    filled: Event = {name: value for name, value in policy.items() if value}
    return filled if "name" in filled or "uid" in filled else {}


_ANSWERS = {"yes": "allowed", "no": "denied", "stop": "denied", "halt": "denied", "nobody": "denied", "edit": "denied"}


def _authorization(fields: Mapping[str, Cell], policy: Event) -> Event:
    """Return the answer to a question. Its source and its duration are in `unmapped`."""
    decision = _ANSWERS.get(str(fields["answer"]), "unknown")
    return {"decision": decision, "policy": policy} if policy else {"decision": decision}


def _metadata(call: LoggedCall, fields: Mapping[str, Cell]) -> Event:
    metadata: Event = {
        "version": SCHEMA_VERSION,
        "product": {
            "name": "harness",
            "vendor_name": "permission-harness",
            "version": str(fields["harness"] or "unknown"),
        },
        "profiles": ["host", "security_control"],
        "uid": f"{fields['session']}:{plain(call.number)}",
        "correlation_uid": fields["session"],
        "log_name": posixpath.basename(str(fields["log"])),
        "log_source": fields["log"],
        "log_format": "JSON",
        "log_version": "1",
    }
    sequence, logged = whole_number(call.proposed.get("seq")), nanoseconds(fields["ended"] or fields["time"])
    if sequence is not None:
        metadata["sequence"] = sequence
    if logged is not None:
        metadata["logged_time"] = logged // 1_000_000
    if fields["time"]:
        metadata["original_time"] = fields["time"]
    return metadata


def _actor(fields: Mapping[str, Cell], export: Export, call: LoggedCall) -> Event:
    actor: Event = {"app_name": "harness", "app_uid": fields["session"]}
    uid = export.integer(call.started, "uid")
    user: Event = {"name": fields["user"]} if fields["user"] else {}
    if uid is not None:
        user["uid"] = str(uid)
    return {**actor, "user": user} if user else actor


def _host(fields: Mapping[str, Cell]) -> Event:
    return {"hostname": fields["host"]} if fields["host"] else {"name": "unknown"}


def _process(call: LoggedCall, fields: Mapping[str, Cell], arguments: Event | None, export: Export) -> Event:
    command = (BASH if call.is_unjudged else tool_kind(call.tool)).subject_of(arguments)
    if command is None:
        export.note("a command that cannot be read from its arguments")
        command = str(fields["summary"] or "")
    process: Event = {
        "uid": f"{fields['session']}:{plain(call.number)}",
        "name": plain(call.tool),
        "cmd_line": plain(command),
    }
    folder = export.text(call.intent, "cwd")
    if folder:
        process["working_directory"] = folder
    start = nanoseconds(call.intent.get("time"))
    if start is not None:
        process["created_time"] = start // 1_000_000
    return (
        {"process": process} if fields["exit_code"] is None else {"process": process, "exit_code": fields["exit_code"]}
    )


def _file(call: LoggedCall, fields: Mapping[str, Cell], arguments: Event | None, export: Export) -> tuple[str, Event]:
    """Return the activity and the file attributes.

    The path is the changed one. If the log has no change, it is the path in the call's arguments.
    """
    tool, change = tool_kind(call.tool), export.part(call.intent, "change")
    path = fields["changed_path"] or change.get("path") or tool.subject_of(arguments)
    if not isinstance(path, str) or not path:
        export.note("a file that cannot be read from its arguments")
        path = str(fields["summary"] or "") or "unknown"
    if not path.startswith("/") and fields["workspace"]:
        path = posixpath.join(str(fields["workspace"]), path)
    before = fields["before_sha256"] or change.get("before_sha256")
    changes = bool(fields["after_sha256"] or change.get("after_sha256"))
    activity = "Read" if tool.does is Does.READS else "Create" if tool.creates and changes and not before else "Update"
    attributes: Event = {"file": _file_object(path, before)}
    if fields["after_sha256"]:
        attributes["file_result"] = _file_object(path, fields["after_sha256"])
    return activity, attributes


def _file_object(path: str, sha256: JsonValue) -> Event:
    path = plain(path)
    file: Event = {"name": posixpath.basename(path) or path, "path": path, "type_id": 1, "type": "Regular File"}
    if not isinstance(sha256, str) or not sha256:
        return file
    hashes: list[JsonValue] = [{"algorithm_id": _SHA_256, "algorithm": "SHA-256", "value": plain(sha256)}]
    return file | {"hashes": hashes}


def _api(call: LoggedCall, fields: Mapping[str, Cell]) -> Event:
    return {
        "api": {"operation": plain(call.tool) or "unknown", "request": {"uid": fields["call_id"] or fields["call"]}},
        "src_endpoint": _host(fields),
    }


def _arguments(call: LoggedCall) -> Event | None:
    """Return the arguments. `None` if they are not a JSON object, as in some refused calls."""
    try:
        arguments = json.loads(text(call.proposed, "arguments"))
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None

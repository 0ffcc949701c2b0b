"""The records that begin and end a session in the log."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from harness import __version__
from harness.actions import JsonValue
from harness.gate.gate import Gate
from harness.gate.records import policy_fields
from harness.log.action_log import ActionLog
from harness.messages import StopReason


def session_facts(gate: Gate, facts: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields that describe the place of a session: the workspace of its tools, and then `facts`."""
    workspace = gate.tools.workspace
    return {**({"workspace": workspace} if workspace else {}), **facts}


def record_begin(log: ActionLog, gate: Gate, fields: Mapping[str, JsonValue]) -> None:
    """Record the begin of the log's current session, with `fields`, versions, tools and policy. Raises LogError."""
    log.append(
        "session_started",
        {
            **fields,
            "harness": __version__,
            "python": sys.version.split()[0],
            "tools": [spec.name for spec in gate.tools.offered(gate.policy)],
            **policy_fields(gate.policy),
            **({"dry_run": True} if gate.dry_run else {}),
            "confinement": gate.tools.level,
        },
        sync=True,
    )
    gate.grants.record_kept()


def record_end(
    log: ActionLog, stop: StopReason, detail: str = "", fields: Mapping[str, JsonValue] | None = None
) -> None:
    """Record the end of the current session, with its counts and `fields`. Raises LogError."""
    log.append(
        "session_ended", {"stop": stop.value, "detail": detail, **(fields or {}), "counts": dict(log.counts)}, sync=True
    )

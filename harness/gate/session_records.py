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


def record_begin(log: ActionLog, gate: Gate, fields: Mapping[str, JsonValue], sessions: set[str] | None = None) -> str:
    """Begin a session, record that with `fields`, versions, tools and policy, and return its name.

    `sessions` are those of the caller, which may be open. The name is added before the observers get the first record.
    Raises LogError if it cannot be recorded, or if another session is open that this one does not belong to.
    """
    sessions = set() if sessions is None else sessions
    first_fields: dict[str, JsonValue] = {
        **fields,
        "harness": __version__,
        "python": sys.version.split()[0],
        "tools": [*(spec.name for spec in gate.tools.offered(gate.policy))],
        **policy_fields(gate.policy),
        **({"dry_run": True} if gate.dry_run else {}),
        "confinement": gate.tools.level,
    }
    with log.held():  # so that of two sessions that begin at once, the second finds the first
        if "parent" not in fields:
            log.check_free(sessions)
        session = log.begin_session()
        sessions.add(session)
        log.append("session_started", first_fields, sync=True)
    gate.grants.record_kept()
    return session


def record_end(
    log: ActionLog, stop: StopReason, detail: str = "", fields: Mapping[str, JsonValue] | None = None
) -> None:
    """Record the end of the current session, with its counts and `fields`. Raises LogError."""
    log.append(
        "session_ended", {"stop": stop.value, "detail": detail, **(fields or {}), "counts": dict(log.counts)}, sync=True
    )

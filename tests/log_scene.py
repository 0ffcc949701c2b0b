"""What tests that write an action log without an agent share: the record with which its session begins."""

from __future__ import annotations

from harness.action_log import ActionLog
from harness.log_check import Verification, verify
from harness.policy import Policy


def begun(log: ActionLog, policy: Policy) -> ActionLog:
    """Begin a session under `policy`, and return the log: without one, no call may run."""
    log.append("session_started", {"harness": "test", "policy_sha256": policy.sha256})
    return log


def proved(path: str, head: str | None = None) -> Verification:
    """Return what verifying a log showed of its records; not how many bytes, sessions and policies there were."""
    found = verify(path, head)
    return Verification(
        records=found.records,
        head=found.head,
        broken_line=found.broken_line,
        problem=found.problem,
        torn=found.torn,
        unknown_calls=found.unknown_calls,
        open_sessions=found.open_sessions,
        passed_head=found.passed_head,
    )

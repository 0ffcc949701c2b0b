"""How a call stands before an auditor, in one word: who let it run, or what became of it instead."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from harness.audit.calls import Fate, LoggedCall, sign_of, text
from harness.log.order import RAN

FAILED = frozenset(RAN) - {"ok"}
"""Statuses of a call that ran, and not well."""


class CallStanding(Enum):
    """Who let a call run, or what became of it instead. In the order in which a page tells them."""

    UNASKED = "unasked"
    APPROVED = "approved"
    REFUSED = "refused"
    BLOCKED = "blocked"
    NEVER = "never"
    UNKNOWN = "unknown"
    UNACCOUNTED = "unaccounted"


NAMES = {
    CallStanding.UNASKED: "ran without a human",
    CallStanding.APPROVED: "ran after a yes",
    CallStanding.REFUSED: "refused",
    CallStanding.BLOCKED: "blocked (the run halted)",
    CallStanding.NEVER: "not run (invalid, or its turn never came)",
    CallStanding.UNKNOWN: "unknown: may have run",
    CallStanding.UNACCOUNTED: "ran, and nothing in the log allows it",
}


def standing_of(call: LoggedCall) -> CallStanding:
    """Return how the call stands."""
    fate = call.fate
    match fate:
        case Fate.RAN if text(call.answered, "answer") == "yes":
            return CallStanding.APPROVED
        case Fate.RAN:
            return CallStanding.UNASKED if call.decided == "auto" else CallStanding.UNACCOUNTED
        case Fate.REFUSED:
            return CallStanding.BLOCKED if text(call.outcome, "status") == "blocked" else CallStanding.REFUSED
        case Fate.INVALID | Fate.NOT_RUN | Fate.OPEN:
            return CallStanding.NEVER
        case Fate.UNKNOWN:
            return CallStanding.UNKNOWN
        case _:
            assert_never(fate)


def did_fail(call: LoggedCall) -> bool:
    """Say whether it ran and did not end well."""
    return call.fate is Fate.RAN and text(call.outcome, "status") in FAILED


def rule_of(call: LoggedCall) -> str:
    """Return what decided, with its file and line as far as the log tells: hostile text."""
    by = call.by
    file, line = text(call.decision, "file"), call.decision.get("line")
    if not file or file in by:
        return by
    return f"{by} ({file}:{line})" if line is not None else f"{by} ({file})"


def sign(call: LoggedCall) -> str:
    """Return the sign of a call, as the terminal's time line has it; `??` for one that nothing in the log allows."""
    standing = standing_of(call)
    if standing is CallStanding.UNACCOUNTED:
        return "??"
    if call.outcome:
        return sign_of(text(call.outcome, "status"))
    return "?" if standing is CallStanding.UNKNOWN else "."

"""Standings: how a call of a log stands before an auditor, one word a call; judges nothing anew."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from harness.audit.calls import Fate, LoggedCall, sign_of, text
from harness.log.order import RAN

FAILED = frozenset(RAN) - {"ok"}
"""Statuses of a call that ran, and not well."""


class Standing(Enum):
    """Who let a call run, or what became of it instead. In the order in which a page tells them."""

    UNASKED = "unasked"
    APPROVED = "approved"
    REFUSED = "refused"
    BLOCKED = "blocked"
    NEVER = "never"
    UNKNOWN = "unknown"
    UNACCOUNTED = "unaccounted"


NAMES = {
    Standing.UNASKED: "ran without a human",
    Standing.APPROVED: "ran after a yes",
    Standing.REFUSED: "refused",
    Standing.BLOCKED: "blocked (the run halted)",
    Standing.NEVER: "not run (invalid, or its turn never came)",
    Standing.UNKNOWN: "unknown: may have run",
    Standing.UNACCOUNTED: "ran, and nothing in the log allows it",
}


def standing_of(call: LoggedCall) -> Standing:
    """Return how the call stands."""
    fate = call.fate
    match fate:
        case Fate.RAN if text(call.answered, "answer") == "yes":
            return Standing.APPROVED
        case Fate.RAN:
            return Standing.UNASKED if call.decided == "auto" else Standing.UNACCOUNTED
        case Fate.REFUSED:
            return Standing.BLOCKED if text(call.outcome, "status") == "blocked" else Standing.REFUSED
        case Fate.INVALID | Fate.NOT_RUN | Fate.OPEN:
            return Standing.NEVER
        case Fate.UNKNOWN:
            return Standing.UNKNOWN
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
    if standing is Standing.UNACCOUNTED:
        return "??"
    if call.outcome:
        return sign_of(text(call.outcome, "status"))
    return "?" if standing is Standing.UNKNOWN else "."

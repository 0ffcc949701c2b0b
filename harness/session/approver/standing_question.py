"""An open question outside: the events to wait for, and the reaction to them."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from harness.actions import Action
from harness.gate.approval import Approval
from harness.policy.verdict import Verdict

IN_TIME = "whoever was asked did not answer in time"


class Watched(NamedTuple):
    """The events that a question waits for: descriptors, and the maximum seconds before a check anyway."""

    reads: Sequence[int] = ()
    writes: Sequence[int] = ()
    seconds: float = 0.0


class StandingQuestion(Protocol):
    """One question, asked once. `withdraw` must be called in the end, answered or not; it may be called again."""

    def watched(self) -> Watched:
        """Return the present events to wait for."""
        ...

    def look(self) -> Approval | None:
        """Do what can be done without waiting; return the answer once there is one, NOBODY where there will be none."""
        ...

    def withdraw(self) -> None:
        """Withdraw the question from the approver, and release all resources."""
        ...


AskOutside = Callable[[Action, Verdict], StandingQuestion | str]
"""Puts a question outside; returns the reason if it cannot, or an empty string if that is the usual case."""


def wait_for(question: StandingQuestion, keys: Sequence[int] = (), seconds: float | None = None) -> Sequence[int]:
    """Wait until a question should be looked at, one of `keys` can be read, or `seconds` are over; return the keys that can."""
    watched = question.watched()
    max_seconds = max(0.0, watched.seconds if seconds is None else min(seconds, watched.seconds))
    readable, _, _ = select.select([*keys, *watched.reads], watched.writes, [], max_seconds)
    return [key for key in keys if key in readable]

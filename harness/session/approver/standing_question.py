"""An open question to an outside approver: the events to wait for, and their handling."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from harness.actions import Action
from harness.gate.approval import Approval
from harness.policy.verdict import Verdict

IN_TIME = "whoever was asked did not answer in time"


class Watched(NamedTuple):
    """The events that a question waits for: file descriptors, and the seconds after which to check it anyway."""

    reads: Sequence[int] = ()
    writes: Sequence[int] = ()
    seconds: float = 0.0


class StandingQuestion(Protocol):
    """One open question. `withdraw` must be called at the end, even after an answer, and may be called again."""

    def watched(self) -> Watched:
        """Return the events to wait for now."""
        ...

    def look(self) -> Approval | None:
        """Send and receive without waiting. Return the answer, NOBODY if none can come any more, or `None` if it is open."""
        ...

    def withdraw(self) -> None:
        """Withdraw the question from the approver, and release all resources."""
        ...


AskOutside = Callable[[Action, Verdict], StandingQuestion | str]
"""Asks an outside approver about a call. Returns the open question, or the reason why it cannot ask.

The reason is empty if it need not be shown, since nothing is wrong.
"""


def wait_for(question: StandingQuestion, keys: Sequence[int] = (), seconds: float | None = None) -> Sequence[int]:
    """Wait for an event of a question, for input on one of `keys`, or for `seconds`.

    Return those of `keys` (file descriptors) that can be read.
    """
    watched = question.watched()
    max_seconds = max(0.0, watched.seconds if seconds is None else min(seconds, watched.seconds))
    readable, _, _ = select.select([*keys, *watched.reads], watched.writes, [], max_seconds)
    return [key for key in keys if key in readable]

"""Tokens and dollars that the requests of sessions cost, by the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.audit.calls import number, text, usage_in
from harness.log.order import LogRecord
from harness.messages import Usage
from harness.record import Record


class Spending(Record):
    """Tokens, and their cost."""

    usage: Usage = Usage()
    cost: float | None = 0.0
    """Cost in dollars. `None` if any part is unknown."""

    def __add__(self, other: Spending) -> Spending:
        """Return the sum of both."""
        costs = self.cost, other.cost
        return Spending(
            usage=self.usage + other.usage, cost=None if costs[0] is None or costs[1] is None else costs[0] + costs[1]
        )


def spending_in(records: Iterable[LogRecord], sessions: Collection[str]) -> Spending:
    """Return the sum over the replies and failed requests of `sessions` and of their helpers."""
    total, included = Spending(), set(sessions)
    for record in records:
        session = text(record, "session")
        if record["kind"] == "session_started" and text(record, "parent") in included:
            included.add(session)
        elif session in included and record["kind"] in ("model_response", "error") and "input_tokens" in record:
            total += Spending(usage=usage_in(record), cost=number(record, "cost"))
    return total

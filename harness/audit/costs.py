"""What was asked of models cost, added up from the records of their replies: never a guess; pure."""

from __future__ import annotations

from harness.audit.calls import number
from harness.log_order import LogRecord


class Cost:
    """Dollars, and the replies and failed tries of which the log does not say what they cost."""

    def __init__(self) -> None:
        self.known = 0
        self.unknown = 0
        self._dollars = 0.0

    def take(self, record: LogRecord) -> None:
        """Take in a `model_response` or an `error`; of errors those that used anything count."""
        cost = number(record, "cost")
        if cost is not None and cost >= 0:
            self.add(cost)
        elif record["kind"] == "model_response" or "input_tokens" in record:
            self.unknown += 1

    def add(self, dollars: float, replies: int = 1) -> None:
        """Add what some replies cost."""
        self.known += replies
        self._dollars += dollars

    @property
    def dollars(self) -> float | None:
        """The sum of what is known; None where nothing is."""
        return round(self._dollars, 6) if self.known else None

    @property
    def words(self) -> str:
        """`$0.0123`, and how many replies are not in it; or that it is unknown."""
        if self.dollars is None:
            return "cost unknown"
        rest = f" and {self.unknown} replies of unknown cost" if self.unknown else ""
        return f"${self.dollars:.4f}{rest}"

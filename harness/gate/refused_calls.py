"""The refused calls of a session, and when they end it."""

from __future__ import annotations

from harness.messages import ToolCall

EQUAL_REFUSALS = 3
"""Number of refusals of the same call after which the session ends."""


class RefusedCalls:
    """A count of the refused calls, in all and of each call."""

    def __init__(self) -> None:
        """Begin at 0."""
        self.count = 0
        self._of_call: dict[tuple[str, str], int] = {}

    def add(self, call: ToolCall) -> str:
        """Count a refusal of `call`. Return the reason to end the session if it was the last one allowed, else ""."""
        self.count += 1
        key = (call.name, call.arguments)
        self._of_call[key] = self._of_call.get(key, 0) + 1
        return f"the same call was refused {EQUAL_REFUSALS} times" if self._of_call[key] >= EQUAL_REFUSALS else ""


def refusal_limit(count: int, limit: int | None) -> str:
    """Return the message that `count` refusals reach `limit`. Empty if they do not, or if there is no limit."""
    return "" if limit is None or count < limit else f"{count} calls were refused (refusals = {limit})"

"""Counts of what rules decided and tools did, of bounded size however long the log; counts what it is told, reads nothing."""

from __future__ import annotations

from math import ceil, isfinite

from harness.actions import JsonValue
from harness.audit.calls import number
from harness.log.order import ANSWERS, DECISIONS, STATUSES, LogRecord

_DIGITS = 1_000
_MOST_SECONDS = 1e9


class Waits:
    """How long answers took, to three digits: the space does not grow with how many there are."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """Milliseconds, rounded down to three digits, and how often."""
        self.total = 0

    def add(self, seconds: float, times: int = 1) -> None:
        """Take in an answer; a time that is none (negative, not finite) is left out."""
        if not isfinite(seconds) or not 0 <= seconds < _MOST_SECONDS:
            return
        milliseconds = round(seconds * 1000)
        step = 1
        while milliseconds // step >= _DIGITS:
            step *= 10
        key = milliseconds // step * step
        self.counts[key] = self.counts.get(key, 0) + times
        self.total += times

    def quantile(self, share: float) -> float | None:
        """Return the time, in seconds, that this share of the answers did not exceed (nearest rank); None without any."""
        left = ceil(share * self.total)
        for key in sorted(self.counts):
            left -= self.counts[key]
            if left <= 0:
                return key / 1000
        return None


class RuleCount:
    """What one rule, default, built-in or model decided, and what people answered where it asked."""

    __slots__ = ("answers", "calls", "decisions", "facets", "origin", "quick", "quick_yes", "waits")

    def __init__(self) -> None:
        self.facets = 0
        """Parts of calls that it decided, as far as the log lists them."""
        self.calls = 0
        """Calls whose decision was its."""
        self.decisions = dict.fromkeys(DECISIONS, 0)
        """Of the calls."""
        self.answers = dict.fromkeys(ANSWERS, 0)
        self.quick = 0
        """A person's answers in under a second."""
        self.quick_yes = 0
        """Those of them that were a yes."""
        self.waits = Waits()
        """Of persons' answers."""
        self.origin: dict[str, JsonValue] = dict.fromkeys(("source", "rule", "file", "line", "layer"))
        """Where it stands, as the decisions say; null for what never decided a whole call."""

    def told(self, by: str) -> dict[str, JsonValue]:
        """Return its row; `by` is what the log calls it."""
        count, answers = self.decisions, self.answers
        return {
            "row": "rule",
            "by": by,
            **self.origin,
            "facets": self.facets,
            "calls": self.calls,
            "auto": count["auto"],
            "asked": count["confirm"],
            "denied": count["deny"],
            "blocked": count["block"],
            **answers,
            "unanswered": max(0, count["confirm"] - sum(answers.values())),
            "wait_median": self.waits.quantile(0.5),
            "wait_p90": self.waits.quantile(0.9),
            "quick": self.quick,
            "quick_yes": self.quick_yes,
        }


class ToolCount:
    """What became of the calls of one tool."""

    __slots__ = ("calls", "duration_ms", "output_bytes", "statuses", "unknown")

    def __init__(self) -> None:
        self.calls = 0
        self.statuses = dict.fromkeys(STATUSES, 0)
        self.unknown = 0
        """Begun, and the end is not known."""
        self.duration_ms = 0
        self.output_bytes = 0

    def told(self, tool: str) -> dict[str, JsonValue]:
        """Return its row; `tool` is its name."""
        return {
            "row": "tool",
            "tool": tool,
            "calls": self.calls,
            **self.statuses,
            "unknown": self.unknown,
            "duration_ms": self.duration_ms,
            "output_bytes": self.output_bytes,
        }


TOTALS = (
    "logs", "records", "torn", "left_out", "sessions", "prompts", "turns", "requests", "retries", "errors", "input_tokens",
    "output_tokens", "calls", "undecided", "unknown", "masked", "cut_facets",
)  # fmt: skip
"""Sums over all logs. `torn`: last lines without an end. `left_out`: other lines that are no records. `turns`: replies of the
model in conversations. `requests`: those for summaries too. `undecided`: calls that nothing judged. `masked`: places where a
secret stood. `cut_facets`: calls of which the log lists not every part."""


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

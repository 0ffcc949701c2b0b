"""Statistics of logs: by rule, by tool and in total. Read in one pass, with only the calls in flight in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, isfinite

from harness.actions import JsonValue
from harness.audit.calls import (
    ABOUT_CALLS,
    UNJUDGED_KIND,
    Fate,
    Joiner,
    LoggedCall,
    Who,
    count_in,
    is_typed,
    number,
    text,
)
from harness.log.clocks import NANO, nanoseconds
from harness.log.order import LogRecord
from harness.log.reader import WholeRecords
from harness.log.vocabulary import ANSWERS, DECISIONS, MOST_FACETS, STATUSES

_DIGITS = 1_000
_MOST_SECONDS = 1e9


class Waits:
    """Durations of answers, to three digits, in constant space."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """Number of answers by duration: milliseconds, rounded down to three digits."""
        self.total = 0

    def add(self, seconds: float) -> None:
        """Add the duration of an answer. An invalid one (negative, not finite, too large) is ignored."""
        if not isfinite(seconds) or not 0 <= seconds < _MOST_SECONDS:
            return
        milliseconds = round(seconds * 1000)
        step = 1
        while milliseconds // step >= _DIGITS:
            step *= 10
        key = milliseconds // step * step
        self.counts[key] = self.counts.get(key, 0) + 1
        self.total += 1

    def quantile(self, share: float) -> float | None:
        """Return the seconds that this share of the answers did not exceed (nearest rank). `None` without answers."""
        remaining = ceil(share * self.total)
        for key in sorted(self.counts):
            remaining -= self.counts[key]
            if remaining <= 0:
                return key / 1000
        return None


OTHER_ANSWER, NO_ANSWER = "other", ""
"""Keys for unknown answers, and for questions without one."""


class QuestionCount:
    """Counts of questions by their answer, and the durations of people's answers."""

    __slots__ = ("answers", "in_bursts", "quick", "quick_yes", "waits")

    def __init__(self) -> None:
        self.answers = dict.fromkeys((*ANSWERS, OTHER_ANSWER, NO_ANSWER), 0)
        self.quick = 0
        """Number of answers by people in under a second."""
        self.quick_yes = 0
        """Number of approvals among the quick answers."""
        self.in_bursts = 0
        self.waits = Waits()
        """Durations of people's answers."""

    def take(self, call: LoggedCall, *, in_burst: bool = False) -> None:
        """Count the question about a call.

        The duration is ignored if the person typed the call, since the person knew its text already.
        """
        self.answers[call.answer if call.answer in self.answers else OTHER_ANSWER] += 1
        if call.answered_by is Who.PERSON and call.waited is not None and not is_typed(call.proposed):
            self.waits.add(call.waited)
        self.quick += call.is_quick
        self.quick_yes += call.is_quick and call.answer == "yes"
        self.in_bursts += in_burst

    @property
    def question_count(self) -> int:
        """Number of counted questions."""
        return sum(self.answers.values())

    @property
    def median(self) -> float | None:
        """Median duration of people's answers in seconds (nearest rank). `None` without answers."""
        return self.waits.quantile(0.5)


class RuleCount:
    """Decisions of one rule, default, built-in or model, and people's answers to its questions."""

    __slots__ = ("calls", "decisions", "facets", "origin", "questions")

    def __init__(self) -> None:
        self.facets = 0
        """Number of parts of calls that the rule decided, as far as the log lists them."""
        self.calls = 0
        """Number of whole calls that the rule decided."""
        self.decisions = dict.fromkeys(DECISIONS, 0)
        """Number of these calls, by decision."""
        self.questions = QuestionCount()
        """Answered questions about these calls."""
        self.origin: dict[str, JsonValue] = dict.fromkeys(("source", "rule", "file", "line", "layer"))
        """Place of the rule, from its decisions. Values are `None` if it never decided a whole call."""

    def row(self, by: str) -> dict[str, JsonValue]:
        """Return the row of the rule. `by` is the rule's name in the log."""
        count, questions = self.decisions, self.questions
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
            **{answer: questions.answers[answer] for answer in ANSWERS},
            "unanswered": max(0, count["confirm"] - questions.question_count + questions.answers[NO_ANSWER]),
            "wait_median": questions.median,
            "wait_p90": questions.waits.quantile(0.9),
            "quick": questions.quick,
            "quick_yes": questions.quick_yes,
        }


class ToolCount:
    """Results of the calls of one tool."""

    __slots__ = ("calls", "duration_ms", "output_bytes", "statuses", "unknown")

    def __init__(self) -> None:
        self.calls = 0
        self.statuses = dict.fromkeys(STATUSES, 0)
        self.unknown = 0
        """Number of calls with an intent and without an outcome."""
        self.duration_ms = 0
        self.output_bytes = 0

    def row(self, tool: str) -> dict[str, JsonValue]:
        """Return the row of the tool with the name `tool`."""
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
    "output_tokens", "calls", "undecided", "unknown", "masked", "cut_facets", "unjudged",
)  # fmt: skip
"""Names of the sums over all logs.

`torn`: incomplete last lines. `left_out`: other invalid lines. `turns`: replies of the model in conversations.
`requests`: requests to the model, also for summaries. `undecided`: calls without a verdict. `masked`: masked secrets.
`cut_facets`: calls with only some of their parts in the log. `unjudged`: calls that another agent ran and that were
not allowed.
"""


class Cost:
    """Sum of the known costs in dollars, and the number of replies and failed requests of unknown cost."""

    def __init__(self) -> None:
        self.known_count = 0
        self.unknown = 0
        self._dollars = 0.0

    def take(self, record: LogRecord) -> None:
        """Add a `model_response` or an `error`. An error without a cost and without tokens is ignored."""
        cost = number(record, "cost")
        if cost is not None and cost >= 0:
            self.known_count += 1
            self._dollars += cost
        elif record["kind"] == "model_response" or "input_tokens" in record:
            self.unknown += 1

    @property
    def dollars(self) -> float | None:
        """The sum of the known costs. `None` without any."""
        return round(self._dollars, 6) if self.known_count else None

    @property
    def words(self) -> str:
        """The cost as text: `$0.0123`, followed by the number of replies of unknown cost, or `cost unknown`."""
        if self.dollars is None:
            return "cost unknown"
        rest = f" and {self.unknown} replies of unknown cost" if self.unknown else ""
        return f"${self.dollars:.4f}{rest}"


MOST_ROWS = 10_000
"""Maximum number of rules, and of tools, with their own rows. Further names, found only in odd logs, share one row."""
OTHERS = "(others)"
_LARGEST = 2**63 - 1


class Statistics:
    """Counts that every record increases. One instance counts all logs."""

    def __init__(self) -> None:
        self.rules: dict[str, RuleCount] = {}
        self.tools: dict[str, ToolCount] = {}
        self.totals = dict.fromkeys(TOTALS, 0)
        self.cost = Cost()
        self.wall_seconds = 0.0
        """Sum over all sessions of the time from the first to the last record, in seconds."""
        self._joiner = Joiner("")
        self._spans: dict[str, _Span] = {}

    def enter_log(self, path: str, session: str = "") -> None:
        """Count the records of a log, or of one session in it. Raises LogError if it cannot be read.

        An invalid line is counted as left out. Counting continues after it.
        """
        self.totals["logs"] += 1
        records = WholeRecords(path)
        for _, record in records:
            if not session or record["session"] == session:
                self.enter(record)
        self.totals["left_out"] += records.left_out
        self.totals["torn"] += records.torn
        self.end_log()

    def enter(self, record: LogRecord) -> None:
        """Count one record, whose kind, session and time are texts."""
        self.totals["records"] += 1
        session = str(record["session"])
        span = self._spans.get(session)
        if span is None:
            span = self._spans[session] = _Span()
        span.enter(record)
        masked = record.get("masked")
        if masked and isinstance(masked, dict):
            self.totals["masked"] += sum(count_in(masked, name) for name in masked)
        match record["kind"]:
            case kind if kind in ABOUT_CALLS:
                self._enter_call(record)
            case kind if kind == UNJUDGED_KIND:
                self.totals["unjudged"] += 1
                self._count_call(self._joiner.unjudged(record))
            case "model_response":
                self._use(record)
                self.totals["turns"] += "purpose" not in record
            case "model_request":
                self.totals["requests"] += 1
            case "error":
                self._use(record)
                self.totals["retries" if number(record, "retry_seconds") is not None else "errors"] += 1
            case "user_message":
                self.totals["prompts"] += 1
            case "session_started":
                self.totals["sessions"] += 1
            case _:
                pass

    def _enter_call(self, record: LogRecord) -> None:
        if self._joiner.is_full_for(record):
            self.totals["left_out"] += 1
        elif (call := self._joiner.take(record)) is not None:
            self._count_call(call)

    def end_log(self) -> None:
        """Count the calls without an outcome and the durations of the sessions, at the end of a log."""
        for call in self._joiner.rest():
            self._count_call(call)
        for span in self._spans.values():
            self.wall_seconds += span.seconds
        self._spans.clear()

    def rows(self) -> Iterator[dict[str, JsonValue]]:
        """Yield one row per rule, then one per tool, each with the busiest first, then the total."""
        rules = sorted(self.rules.items(), key=lambda item: (-item[1].calls, -item[1].facets, item[0]))
        yield from (count.row(by) for by, count in rules)
        tools = sorted(self.tools.items(), key=lambda item: (-item[1].calls, item[0]))
        yield from (count.row(tool) for tool, count in tools)
        cost: dict[str, JsonValue] = {"cost": self.cost.dollars, "cost_unknown": self.cost.unknown}
        yield {"row": "total", **self.totals, **cost, "wall_seconds": round(self.wall_seconds, 3)}

    def rule(self, by: str) -> RuleCount:
        """Return the row of the rule with the name `by` in the log."""
        rule_count = self.rules.get(by)
        if rule_count is None:
            by = by if len(self.rules) < MOST_ROWS else OTHERS
            rule_count = self.rules.setdefault(by, RuleCount())
        return rule_count

    def tool(self, name: str) -> ToolCount:
        """Return the row of a tool."""
        tool_count = self.tools.get(name)
        if tool_count is None:
            name = name if len(self.tools) < MOST_ROWS else OTHERS
            tool_count = self.tools.setdefault(name, ToolCount())
        return tool_count

    def _use(self, record: LogRecord) -> None:
        self.cost.take(record)
        self.totals["input_tokens"] += count_in(record, "input_tokens")
        self.totals["output_tokens"] += count_in(record, "output_tokens")

    def _count_call(self, call: LoggedCall) -> None:
        tool, outcome = self.tool(call.tool), call.outcome
        if call.proposed:
            self.totals["calls"] += 1
            tool.calls += 1
        if call.decision:
            self._decide(call)
        if call.fate is Fate.UNKNOWN:
            self.totals["unknown"] += 1
            tool.unknown += 1
        status = text(outcome, "status")
        if status in tool.statuses:
            tool.statuses[status] += 1
        tool.duration_ms += count_in(outcome, "duration_ms")
        tool.output_bytes += count_in(outcome, "output_bytes")

    def _decide(self, call: LoggedCall) -> None:
        record = call.decision
        if call.decided not in DECISIONS:
            self.totals["undecided"] += 1
            return
        rule = self.rule(call.by)
        rule.calls += 1
        rule.decisions[call.decided] += 1
        if call.answered:
            rule.questions.take(call)
        for name, earliest in rule.origin.items():
            value = record.get(name)
            if value != earliest and isinstance(value, str | int) and (earliest is None or str(value) < str(earliest)):
                rule.origin[name] = value
        facets = record.get("facets")
        if not isinstance(facets, list):
            return
        for facet in facets:
            if isinstance(facet, dict):
                by = facet.get("by")
                if isinstance(by, str) and by:
                    self.rule(by).facets += 1
        if len(facets) >= MOST_FACETS and count_in(record, "facet_count") > len(facets):
            self.totals["cut_facets"] += 1


class _Span:
    """The first and last time of a session. From the monotonic clock, or from the dates of records without it."""

    __slots__ = ("dates", "first", "last")

    def __init__(self) -> None:
        self.first: int | None = None
        self.last = 0
        self.dates: tuple[str, str] | None = None

    def enter(self, record: LogRecord) -> None:
        moment = record.get("mono_ns")
        if type(moment) is int and -_LARGEST <= moment <= _LARGEST:
            if self.first is None:
                self.first = self.last = moment
            elif moment > self.last:
                self.last = moment
            elif moment < self.first:
                self.first = moment
        elif self.first is None:
            date = str(record["time"])
            first, last = self.dates or (date, date)
            self.dates = min(first, date), max(last, date)

    @property
    def seconds(self) -> float:
        if self.first is not None:
            return (self.last - self.first) / NANO
        return _seconds_of_dates(*self.dates) if self.dates is not None else 0.0


def _seconds_of_dates(first: str, last: str) -> float:
    """Return the seconds from one date to a later one (RFC 3339). 0 if one of them is invalid."""
    start, stop = nanoseconds(first), nanoseconds(last)
    return 0.0 if start is None or stop is None else max(0, stop - start) / NANO


def statistics_of(logs: Iterable[str], session: str = "") -> Statistics:
    """Return the statistics of these logs, or of one session in them. Raises LogError."""
    statistics = Statistics()
    for path in logs:
        statistics.enter_log(path, session)
    return statistics

"""Run: which limit is reached when, and what a run has cost; a table of counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from log_scene import begun
from rows import all_rows

from harness.limits import STANDARD, Limits
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.loop.run import Run, Session
from harness.messages import StopReason, ToolCall, Usage
from harness.model import Prices
from harness.policy.loader import load_policy

PRICES = Prices(input=2.0, output=10.0)
CACHED = Prices(input=2.0, output=10.0, cached_input=0.5)
WRITTEN = Prices(input=2.0, output=10.0, cached_input=0.5, cache_write=2.5)


@all_rows(
    ("prices", "usage", "dollars"),
    [
        pytest.param(PRICES, Usage(), 0.0, id="nothing costs nothing"),
        pytest.param(PRICES, Usage(input_tokens=1_000_000, output_tokens=500_000), 7.0, id="in and out"),
        pytest.param(PRICES, Usage(input_tokens=1_000_000, cached_tokens=400_000), 2.0, id="no price for the cache"),
        pytest.param(CACHED, Usage(input_tokens=1_000_000, cached_tokens=400_000), 1.4, id="a price for the cache"),
        pytest.param(CACHED, Usage(input_tokens=10, cached_tokens=400_000), 0.000005, id="more cached than there were"),
        pytest.param(
            CACHED, Usage(input_tokens=1_000_000, cache_write_tokens=400_000), 2.0, id="no price for what it takes"
        ),
        pytest.param(
            WRITTEN,
            Usage(input_tokens=1_000_000, cached_tokens=500_000, cache_write_tokens=400_000),
            1.45,
            id="all three",
        ),
        pytest.param(WRITTEN, Usage(input_tokens=10, cache_write_tokens=400_000), 0.000025, id="more than there were"),
        pytest.param(PRICES, Usage(input_tokens=5, unreported=1), None, id="one reply that reported nothing"),
    ],
)
def test_cost_follows_from_tokens_and_prices(prices: Prices, usage: Usage, dollars: float | None) -> None:
    assert prices.cost(usage) == (None if dollars is None else pytest.approx(dollars))


NO_LOG = cast(ActionLog, None)
"""Of a run that records nothing."""


def run_of(
    limits: Limits, prices: Prices | None = None, clock: Callable[[], float] = lambda: 0.0, log: ActionLog = NO_LOG
) -> Run:
    return Run(Session("s", "i"), limits, log, prices=prices, monotonic=clock)


REACHED: dict[str, tuple[Limits, dict[str, object], str]] = {
    "nothing": (STANDARD, {}, ""),
    "turns": (Limits(max_turns=2), {"turns": 2}, "2 requests were made (turns = 2)"),
    "one turn": (Limits(max_turns=1), {"turns": 1}, "1 request was made (turns = 1)"),
    "tries again count as requests": (
        Limits(max_turns=5),
        {"turns": 2, "retries": 3},
        "5 requests were made (turns = 5)",
    ),
    "one below": (Limits(max_turns=5), {"turns": 2, "retries": 2}, ""),
    "tokens": (
        Limits(max_tokens=10),
        {"usage": Usage(input_tokens=6, output_tokens=4)},
        "10 tokens were used (tokens = 10)",
    ),
    "tokens that are not reported": (
        Limits(max_tokens=10),
        {"usage": Usage(unreported=1)},
        "the provider did not report how many tokens it used (tokens = 10)",
    ),
    "not reported, and no limit on them": (STANDARD, {"usage": Usage(unreported=1)}, ""),
    "cost": (
        Limits(max_cost=0.5),
        {"usage": Usage(output_tokens=50_000)},
        "0.5000 dollars were spent (cost = 0.5)",
    ),
    "cost below": (Limits(max_cost=0.5), {"usage": Usage(output_tokens=49_999)}, ""),
    "cost that is not known": (
        Limits(max_cost=0.5),
        {"usage": Usage(unreported=1)},
        "what the run has cost is not known (cost = 0.5)",
    ),
}


@all_rows(("limits", "counters", "expected"), REACHED.values(), ids=REACHED)
def test_a_limit_is_reached(limits: Limits, counters: dict[str, object], expected: str) -> None:
    run = run_of(limits, PRICES)
    for name, value in counters.items():
        setattr(run, name, value)
    assert run.limit_reached() == expected


def test_a_cost_without_prices_is_not_known() -> None:
    run = run_of(Limits(max_cost=1.0))
    assert (run.cost, run.limit_reached()) == (None, "what the run has cost is not known (cost = 1)")


def test_time_runs_from_the_start_and_the_rest_is_never_negative() -> None:
    now = [100.0]
    run = run_of(Limits(max_seconds=10.0), clock=lambda: now[0])
    now[0] = 107.5
    assert (run.limit_reached(), run.seconds_left) == ("", 2.5)
    now[0] = 120.0
    assert (run.limit_reached(), run.seconds_left) == ("20 seconds have passed (seconds = 10)", 0.0)
    assert run_of(STANDARD).seconds_left is None


def test_refusals_and_misunderstood_calls() -> None:
    run = run_of(Limits(max_refusals=3, max_bad_calls=2))
    one, two = ToolCall(id="1", name="t", arguments="{}"), ToolCall(id="2", name="u", arguments="{}")
    assert [run.refused(one), run.refused(two), run.refused(one)] == ["", "", "3 calls were refused (refusals = 3)"]
    assert run.refused(one) == "the same call was refused 3 times"
    assert [run.misunderstood(), run.misunderstood()] == [
        "",
        "2 calls in a row could not be understood (bad_calls = 2)",
    ]


def test_a_limit_is_recorded_with_the_last_action(tmp_path: Path) -> None:
    log = begun(ActionLog.open(str(tmp_path / "log.jsonl")), load_policy("ci"))
    run = run_of(STANDARD, PRICES, log=log)
    run.last_action = "bash: ls"
    run.usage = Usage(output_tokens=100)
    run.stop_at_limit("it is enough")
    assert run.end is not None
    result = run.end
    assert result.stop is StopReason.LIMIT
    assert result.cost == pytest.approx(0.001)
    assert result.detail.startswith("a limit was reached: it is enough. Last action: bash: ls. ")
    _, record = read_log(log.path)
    assert (record["kind"], record["limit"], record["last_action"]) == ("limit", "it is enough", "bash: ls")

"""What the requests of sessions cost, by records of a log."""

from __future__ import annotations

import pytest

from harness.audit.spending import Spending, spending_in
from harness.messages import Usage


def reply(session: str, tokens: int, **more: object) -> dict[str, object]:
    return {"kind": "model_response", "session": session, "input_tokens": tokens, "output_tokens": 1, **more}


STARTS = [
    {"kind": "session_started", "session": "a"},
    {"kind": "session_started", "session": "helper", "parent": "a"},
    {"kind": "session_started", "session": "its helper", "parent": "helper"},
    {"kind": "session_started", "session": "b"},
]


@pytest.mark.parametrize(
    ("records", "sessions", "tokens", "cost"),
    [
        pytest.param([reply("a", 10, cost=0.5), reply("b", 5, cost=9.0)], {"a"}, 10, 0.5, id="of others nothing"),
        pytest.param([reply("a", 10, cost=0.5), reply("b", 5, cost=9.0)], {"a", "b"}, 15, 9.5, id="two sessions"),
        pytest.param(
            [reply("a", 1, cost=1.0), reply("helper", 2, cost=1.0), reply("its helper", 4, cost=1.0)],
            {"a"}, 7, 3.0, id="helpers",
        ),
        pytest.param([reply("a", 1, cost=1.0), reply("a", 2)], {"a"}, 3, None, id="one of unknown cost"),
        pytest.param(
            [{**reply("a", 3, cost=1.0), "kind": "error"}, {"kind": "error", "session": "a"}],
            {"a"}, 3, 1.0, id="a failed request counts, another error does not",
        ),
        pytest.param([{**reply("a", 3), "kind": "session_ended"}], {"a"}, 0, 0.0, id="the sum at the end is no request"),
    ],
)  # fmt: skip
def test_spending_is_the_sum_over_sessions_and_their_helpers(
    records: list[dict[str, object]], sessions: set[str], tokens: int, cost: float | None
) -> None:
    spent = spending_in([*STARTS, *records], sessions)  # type: ignore[list-item]
    assert (spent.usage.input_tokens, spent.cost) == (tokens, cost)


def test_sum_with_an_unknown_cost_is_unknown() -> None:
    parts = Spending(usage=Usage(input_tokens=1), cost=None), Spending(usage=Usage(input_tokens=2), cost=1.0)
    assert sum(parts, Spending()) == Spending(usage=Usage(input_tokens=3), cost=None)

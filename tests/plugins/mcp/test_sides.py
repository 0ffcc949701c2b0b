"""The requests of one side of a proxy that have no answer yet."""

from __future__ import annotations

from harness.plugins.mcp.sides import MOST_CANCELLED, MOST_OPEN, OpenRequests


def test_an_id_is_open_until_it_is_answered_also_where_it_was_cancelled() -> None:
    opened = OpenRequests()
    assert (opened.add("1", "ping"), opened.add("2", "roots/list")) == ("", "")
    assert "still open" in opened.add("1", "ping")
    assert (opened.cancel("1"), opened.cancel("3")) == ("ping", None)
    assert "still open" in opened.add("1", "ping"), "an answer may come still"
    assert opened.pop_all() == [("2", "roots/list")], "nobody waits for what was cancelled"
    assert (opened.get("1"), opened.pop("1"), opened.pop("1")) == ("ping", "ping", None)
    assert opened.add("1", "ping") == ""


def test_open_requests_are_bounded_and_cancelled_ones_dropped_first() -> None:
    opened = OpenRequests()
    assert {opened.add(str(number), "ping") for number in range(MOST_OPEN)} == {""}
    assert str(MOST_OPEN) in opened.add("more", "ping")
    for number in range(MOST_CANCELLED + 1):
        opened.cancel(str(number))
    assert (opened.get("0"), opened.get("1"), opened.add("more", "ping")) == (None, "ping", "")

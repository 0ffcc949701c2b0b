"""The second wall stands alone: what the gate takes for a reader, wrongly even, has no effect.

What is tried, where, and how effects are seen: second_wall.py and the modules that it names. About one attempt in
twenty is made; `HARNESS_FULL=1 pytest tests/sandbox/test_second_wall.py` makes them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import second_wall
from rows import all_rows
from second_wall_attempts import LEFT_OUT, Kind, own, rows
from sizes import proof_size

from harness.sandbox import enforces, missing, probe

LEAST_OF_THE_TABLE = 550
LEAST_OWN = 300
LEAST_WITH_EFFECT = 500
"""Attempts that do something where nothing stops them: 700 and more where node, docker and their like are installed."""
EVERY = proof_size("SECOND_WALL", 20, full=1)
"""One attempt in so many is made."""


@pytest.fixture
def report() -> dict[str, Any]:
    """What became of every attempt: unconfined, as a reader, as a writer by Landlock alone, and in namespaces."""
    if not enforces(probe()):
        pytest.skip(f"THE SECOND WALL WAS NOT TRIED, this machine has none: {'; '.join(missing(probe()))}")
    if why := second_wall.missing():
        pytest.skip(f"THE SECOND WALL WAS NOT TRIED, there is no place where that is safe: {why}")
    found = second_wall.run_outside(second_wall.PASSES, every=EVERY)
    for name in second_wall.PASSES:
        one = found[name]
        print(f"{name}: {one['attempts']} attempts, {len(one['effects'])} with an effect, {one['seconds']} s")
    print(f"left out: {found['reader']['left_out']}; stubs: {found['stubs']}")
    return found


def told(effects: list[dict[str, Any]]) -> str:
    """Return effects one a line."""
    return "\n".join(f"{one['origin']}: {one['command']!r}: {one['effects']}" for one in effects)


def no_attempt_has_an_effect_that_its_walls_do_not_allow(report: dict[str, Any]) -> None:
    passes = [name for name in second_wall.PASSES if name != "control"]
    if not report["workspace"]["has_namespaces"]:
        print("NOT TRIED: the workspace level, since this machine gives no namespaces")
        passes.remove("workspace")
    holes = [effect for name in passes for effect in report[name]["effects"]]
    assert holes == [], f"HOLES:\n{told(holes)}"


def nothing_is_open_to_a_reader_by_design(report: dict[str, Any]) -> None:
    assert report["reader"]["known"] == []


def what_is_open_to_a_writer_by_design_is_really_open(report: dict[str, Any]) -> None:
    open_without_walls = {one["command"] for one in report["control"]["effects"]}
    marked = {one.command for one in own() if one.open_to_writer is not None} & open_without_walls
    known = {one["command"] for one in report["writer"]["known"] if one["origin"] == "own"}
    assert marked - known == set(), "these are closed now: take their marks off"


def many_attempts_have_an_effect_where_nothing_stops_them(report: dict[str, Any]) -> None:
    assert len(report["control"]["effects"]) >= LEAST_WITH_EFFECT // EVERY


def every_kind_of_effect_is_seen_where_nothing_stops_it(report: dict[str, Any]) -> None:
    seen = {kind for one in report["control"]["effects"] for kind in one["kinds"]}
    # What a command leaves running is ended with the call, walls or none.
    assert {kind.name for kind in Kind if kind is not Kind.RUNNING} - seen == set()


def the_whole_table_and_more_is_tried(report: dict[str, Any]) -> None:
    attempts = {one.command for one in second_wall.chosen(every=EVERY)}
    for name in second_wall.PASSES:
        one = report[name]
        assert (one["not_run"], set(one["left_out"])) == ([], set(LEFT_OUT) & attempts)
        assert one["attempts"] == len(second_wall.chosen(every=EVERY)) - len(one["left_out"])
    assert (len(rows()) >= LEAST_OF_THE_TABLE, len(own()) >= LEAST_OWN) == (True, True)
    assert len(attempts) >= (LEAST_OF_THE_TABLE + LEAST_OWN) / EVERY


CHECKS = (
    no_attempt_has_an_effect_that_its_walls_do_not_allow,
    nothing_is_open_to_a_reader_by_design,
    what_is_open_to_a_writer_by_design_is_really_open,
    many_attempts_have_an_effect_where_nothing_stops_them,
    every_kind_of_effect_is_seen_where_nothing_stops_it,
    the_whole_table_and_more_is_tried,
)


@all_rows("check", {check.__name__: check for check in CHECKS})
def test_second_wall_passes_its_attempts_alone(check: Callable[[dict[str, Any]], None], report: dict[str, Any]) -> None:
    """One test, so that the attempts are made once however many processes share the tests."""
    check(report)

"""Hostile rows that run unasked in the workspace walls: no effect beyond the walls, at each level of this machine.

The rows, the levels and the effects are those of held_rows.py. About one row in sixty is run here; `bench/hostile.py` and
`HARNESS_FULL=1 pytest tests/sandbox/test_held_rows.py` run them all.
"""

from __future__ import annotations

from typing import Any

import held_rows
import pytest
import second_wall
from rows import all_rows
from sizes import proof_size

from harness.sandbox import enforces, missing, probe

EVERY = proof_size("HELD_ROWS", 60, full=1)
"""One row in so many is run."""
LEAST_HARMFUL = 100
"""Rows of the whole table with effects beyond the walls where nothing holds them."""


@pytest.fixture(scope="module")
def reports() -> dict[str, Any]:
    """Return the reports of all passes in the mode `walls`, and of the best level under the policy `workspace`."""
    if not enforces(probe()):
        pytest.skip(f"NO HOSTILE ROW WAS RUN, this machine has no walls: {'; '.join(missing(probe()))}")
    if reason := second_wall.missing():
        pytest.skip(f"NO HOSTILE ROW WAS RUN, there is no place where that is safe: {reason}")
    passes = [*((name, "walls") for name in held_rows.PASSES), (held_rows.LEVELS[0], "workspace")]
    return held_rows.run_outside(passes, every=EVERY)


@all_rows("title", [*(f"{level} walls" for level in held_rows.LEVELS), f"{held_rows.LEVELS[0]} workspace"])
def test_no_row_has_effects_beyond_its_walls(title: str, reports: dict[str, Any]) -> None:
    level = title.split(maxsplit=1)[0]
    if level == held_rows.LEVELS[0] and level not in reports[title]["level"]:
        pytest.skip("commands get no namespaces of their own on this machine")
    assert reports[title]["beyond"] == []


def test_rows_have_effects_without_walls(reports: dict[str, Any]) -> None:
    assert len(reports["control walls"]["beyond"]) >= LEAST_HARMFUL // EVERY


def test_many_rows_run_at_every_level(reports: dict[str, Any]) -> None:
    assert all(report["run"] >= report["attempts"] // 3 for report in reports.values())

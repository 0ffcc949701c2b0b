"""Questions in the ten recorded tasks, counted by bench/questions.py with the real gate and the shipped policy."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from places import ROOT

WAYS = ("ask", "edits", "grants", "walls", "opened")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """Return the count of each task, by way."""
    output = tmp_path_factory.mktemp("questions") / "counts.jsonl"
    script = Path(ROOT, "bench", "questions.py")
    subprocess.run([sys.executable, str(script), "--json", str(output)], check=True, capture_output=True, text=True)
    ways: dict[str, list[Mapping[str, object]]] = {}
    for line in output.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        ways.setdefault(row["way"], []).append(row)
    return ways


def numbers(rows: Sequence[Mapping[str, object]]) -> list[int]:
    return [len(asked) for row in rows if isinstance(asked := row["asked"], list)]


def test_every_way_counts_every_task(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    assert {way: len(tasks) for way, tasks in rows.items()} == dict.fromkeys(WAYS, 10)


def test_each_way_asks_less_than_the_one_before(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    medians = [statistics.median(numbers(rows[way])) for way in WAYS]
    assert medians == sorted(medians, reverse=True)


def test_widest_grants_leave_few_questions(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    assert statistics.median(numbers(rows["grants"])) <= 3


def test_walls_leave_one_question_in_most_tasks(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    questions = numbers(rows["walls"])
    assert (statistics.median(questions) <= 1, max(questions) <= 3) == (True, True)


def test_commit_is_asked_in_walls_since_it_cannot_be_undone(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    asked = [call for row in rows["walls"] if isinstance(calls := row["asked"], list) for call in calls]
    assert (
        sum("git commit" in call["text"] for call in asked)
        == sum(call["about"] == "git commit" for call in asked)
        == 10
    )

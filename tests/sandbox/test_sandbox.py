"""Walls against attacks: each succeeds where there are none, and fails behind them, for root or for an ordinary user.

`HARNESS_FULL=1 pytest tests/sandbox` makes every attempt as both.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from rows import all_rows
from sandbox_attacks import ATTACKS, READER, REMAINING, Attack
from sandbox_scene import LANDLOCK_ALONE, ROOT, USERS, Harness, Scene, Scenes, harness_of, needs_walls, whose_turn

pytestmark = needs_walls

REFUSALS = re.compile(
    "Permission denied|not permitted|Invalid cross-device link|Function not implemented|must be superuser|out of pty",
    re.IGNORECASE,
)
"""How programs tell EACCES, EPERM, EXDEV (Landlock's, for a link or a move) and ENOSYS."""


@pytest.fixture(scope="module", params=USERS)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    yield from harness_of(request.param, LANDLOCK_ALONE)


@pytest.fixture(scope="module")
def scenes(harness: Harness) -> Iterator[Scenes]:
    made = Scenes(harness)
    yield made
    made.close()


def walls_of(scene: Scene, kind: str) -> dict[str, object]:
    return scene.reader if kind == READER else scene.writer


@all_rows("attack", {attack.name: attack for attack in ATTACKS})
def test_an_attack_succeeds_without_walls(attack: Attack, harness: Harness, scenes: Scenes) -> None:
    if attack.root_only and harness.uid != ROOT:
        pytest.skip("an ordinary user cannot do it without walls either")
    if not attack.root_only and not whose_turn(attack.name, harness):
        pytest.skip("the other user's turn")
    done = scenes.unchanged().run(attack.command, None)
    assert (done.code, done.output) == (0, done.output)


@all_rows(("attack", "kind"), {f"{kind}: {a.name}": (a, kind) for a in ATTACKS for kind in a.stopped_by})
def test_attack_fails_behind_walls_and_leaves_no_trace(
    attack: Attack, kind: str, harness: Harness, scenes: Scenes
) -> None:
    if not whose_turn(f"{attack.name} of a {kind}", harness):
        pytest.skip("the other user's turn")
    guarded = ("O", "H", "S", "W", "T") if kind == READER else ("O", "H", "S")
    scene = scenes.unchanged()
    before = scene.look(*guarded)
    done = scene.run(attack.command, walls_of(scene, kind))
    assert done.code not in (0, None), done.output
    assert done.code == -signal.SIGSYS or REFUSALS.search(done.output)
    assert scene.look(*guarded) == before


@all_rows(("attack", "kind"), {f"{kind}: {a.name}": (a, kind) for a in REMAINING for kind in a.stopped_by})
def test_documented_limit_of_the_walls_is_unchanged(attack: Attack, kind: str, scenes: Scenes) -> None:
    scene = scenes.unchanged()
    done = scene.run(attack.command, walls_of(scene, kind))
    assert done.code == 0, done.output

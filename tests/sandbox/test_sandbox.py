"""Walls against attacks: each succeeds where there are none, and fails behind them, for root and for an ordinary user."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from rows import all_rows
from sandbox_attacks import ATTACKS, READER, REMAINING, Attack
from sandbox_scene import ROOT, USERS, Harness, Scene, harness_of, needs_walls, scene_of

pytestmark = needs_walls

REFUSALS = re.compile(
    "Permission denied|not permitted|Invalid cross-device link|Function not implemented|must be superuser|out of pty",
    re.IGNORECASE,
)
"""How programs tell EACCES, EPERM, EXDEV (Landlock's, for a link or a move) and ENOSYS."""


@pytest.fixture(scope="module", params=USERS)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    yield from harness_of(request.param)


@pytest.fixture
def scene(harness: Harness) -> Iterator[Scene]:
    yield from scene_of(harness)


def walls_of(scene: Scene, kind: str) -> dict[str, object]:
    return scene.reader if kind == READER else scene.writer


def skip_what_needs_another_user(attack: Attack, scene: Scene) -> None:
    if attack.root_only and scene.harness.uid != ROOT:
        pytest.skip("an ordinary user cannot do it without walls either")


@all_rows("attack", [pytest.param(attack, id=attack.name) for attack in ATTACKS], anew={"scene": scene_of})
def test_an_attack_succeeds_without_walls(attack: Attack, scene: Scene) -> None:
    skip_what_needs_another_user(attack, scene)
    done = scene.run(attack.command, None)
    assert (done.code, done.output) == (0, done.output)


@all_rows(
    ("attack", "kind"),
    [pytest.param(a, kind, id=f"{kind}: {a.name}") for a in ATTACKS for kind in a.stopped_by],
    anew={"scene": scene_of},
)
def test_an_attack_fails_behind_walls_and_leaves_nothing(attack: Attack, kind: str, scene: Scene) -> None:
    guarded = ("O", "H", "S", "W", "T") if kind == READER else ("O", "H", "S")
    before = scene.look(*guarded)
    done = scene.run(attack.command, walls_of(scene, kind))
    assert done.code not in (0, None), done.output
    assert done.code == -signal.SIGSYS or REFUSALS.search(done.output)
    assert scene.look(*guarded) == before


@all_rows(
    ("attack", "kind"),
    [pytest.param(a, kind, id=f"{kind}: {a.name}") for a in REMAINING for kind in a.stopped_by],
    anew={"scene": scene_of},
)
def test_what_stays_possible_is_known(attack: Attack, kind: str, scene: Scene) -> None:
    done = scene.run(attack.command, walls_of(scene, kind))
    assert done.code == 0, done.output

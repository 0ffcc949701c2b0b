"""Two tables of command lines against whole policies: what must not run unasked, and what should not be asked about.

The rows are in hostile_commands.txt and harmless_commands.txt beside this file; each is judged as the bash tool judges
it, in a small repository that holds secrets, links and files with names that look like options.
"""

from __future__ import annotations

import pytest
from judged_world import Row, World, harmless, hostile, made, made_with_secrets
from rows import all_rows

from harness.policy.rules import Decision

MOST_ASKED = 0.02
"""Of the harmless rows, the share that may still ask."""
HOSTILE, HARMLESS = hostile(), harmless()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made(tmp_path_factory.mktemp("home").resolve())


@pytest.fixture(scope="module")
def world_of_secrets(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made_with_secrets(tmp_path_factory.mktemp("secret-home").resolve())


@all_rows("row", HOSTILE, ids=[f"{row.line}: {row.command[:50]!r}" for row in HOSTILE])
def test_a_hostile_command_is_never_judged_laxer_than_its_row(row: Row, world_of_secrets: World) -> None:
    verdict = world_of_secrets.judge(row)
    assert verdict.decision >= row.decision, f"{row.command!r} is {verdict.decision.word}"


@all_rows("row", HARMLESS, ids=[f"{row.line}: {row.command[:50]!r}" for row in HARMLESS])
def test_a_harmless_command_runs_unasked_unless_its_row_says_that_it_asks(row: Row, world: World) -> None:
    verdict = world.judge(row)
    assert (verdict.decision, verdict.deciding.reason if verdict.decision is not row.decision else "") == (
        row.decision,
        "",
    )


def test_few_harmless_commands_ask() -> None:
    asked = [row for row in HARMLESS if row.decision is not Decision.AUTO]
    assert len(asked) / len(HARMLESS) <= MOST_ASKED


def test_the_tables_are_as_large_as_they_are_meant_to_be() -> None:
    assert (len(HARMLESS) >= 120, len(HOSTILE) >= 200, len(HARMLESS) + len(HOSTILE) >= 400) == (True, True, True)

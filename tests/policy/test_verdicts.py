"""Two tables of command lines against whole policies: what must not run unasked, and what should not be asked about.

The rows are in hostile_commands.txt and harmless_commands.txt beside this file; each is judged as the bash tool judges
it, in a small repository that holds secrets, links and files with names that look like options.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_world import Row, World, harmless, hostile, made, made_with_secrets
from rows import all_rows

from harness.actions import Decision

MOST_ASKED = 0.05
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
def test_harmless_command_runs_unasked_unless_listed_as_asked(row: Row, world: World) -> None:
    verdict = world.judge(row)
    assert (verdict.decision, verdict.deciding.reason if verdict.decision is not row.decision else "") == (
        row.decision,
        "",
    )


def test_few_harmless_commands_ask() -> None:
    asked = [row for row in HARMLESS if row.decision is not Decision.AUTO]
    assert len(asked) / len(HARMLESS) <= MOST_ASKED


STEERED = [
    # A command that only looks, and a file by which a project makes it run other code.
    ("cargo --version", "rust-toolchain.toml"),
    ("cargo --version", "../rust-toolchain"),
    ("rustc --version", "rust-toolchain"),
    ("cargo tree", ".cargo/config.toml"),
    ("cd src && cargo metadata --no-deps", ".cargo/config"),
    ("mvn -v", ".mvn/jvm.config"),
    ("cd src/deep && mvn -v", "src/.mvn/jvm.config"),
    ("npm ls", ".npmrc"),
    ("npm --prefix src pkg get name", "src/.npmrc"),
    ("go list ./...", ".hg/hgrc"),
    ("yamllint .", ".yamllint"),
    ("hadolint Dockerfile", ".hadolint.yaml"),
    ("python3 -m pip list", "pip.py"),
    ("python3 -m pip list", "pip/__init__.py"),
    ("python3 -m site", "site.py"),
    ("python3 -m site", "os.py"),
]


@all_rows("command, file", STEERED)
def test_file_that_steers_a_program_makes_it_ask(
    command: str, file: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = made(tmp_path_factory.mktemp("steered-home").resolve())
    row = Row("default", Decision.AUTO, command, 0)
    before = world.judge(row).decision
    path = Path(world.workspace.root, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    assert (before, world.judge(row).decision) == (Decision.AUTO, Decision.CONFIRM)


def test_link_to_a_secret_in_a_folder_above_is_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = made(tmp_path_factory.mktemp("linked-home").resolve())
    Path(world.workspace.root, "Cargo.toml").symlink_to(".env")
    assert world.judge(Row("default", Decision.DENY, "cd src && cargo tree", 0)).decision is Decision.DENY


def test_tables_have_their_minimum_size() -> None:
    assert (len(HARMLESS) >= 400, len(HOSTILE) >= 200, len(HARMLESS) + len(HOSTILE) >= 1200) == (True, True, True)


@all_rows(
    "policy, command, expected",
    [
        # Whether it is asked, and what it gets: a Unix socket, the network.
        ("default", "docker ps", (Decision.CONFIRM, True, False)),
        ("default", "systemctl status nginx", (Decision.CONFIRM, True, False)),
        ("default", "ip addr", (Decision.CONFIRM, False, True)),
        ("open", "docker ps", (Decision.AUTO, True, False)),
        ("default", "ls", (Decision.AUTO, False, False)),
        ("default", "docker --version", (Decision.AUTO, False, False)),
    ],
)
def test_command_gets_its_needed_socket_without_write_access(
    policy: str, command: str, expected: tuple[Decision, bool, bool], world: World
) -> None:
    verdict = world.judge(Row(policy, expected[0], command, 0))
    assert (verdict.decision, verdict.effects.sockets, verdict.effects.network) == expected
    assert (verdict.effects.write, verdict.effects.granted) == ((), ())


@all_rows(
    "policy, command, decision",
    [
        ("open", "python3 - <<'E'\nprint(1)\nE", Decision.AUTO),
        ("open", "env = <<E link\nlink\nE", Decision.CONFIRM),  # it runs link
        ("open", "xargs <<E\nlink\nE", Decision.CONFIRM),
        ("open", "perl <<'E'\nprint 1\nE", Decision.AUTO),
        ("open", "python3 - <<'E'\nopen('.env')\nE", Decision.DENY),
        ("open", "bash <<'E'\nf() { ls; }\nf\nE", Decision.CONFIRM),
        ("default", "python3 - <<'E'\nprint(1)\nE", Decision.CONFIRM),
    ],
)
def test_text_for_an_interpreter_is_judged_as_a_file_would_be(
    policy: str, command: str, decision: Decision, world: World
) -> None:
    assert world.judge(Row(policy, decision, command, 0)).decision is decision

"""Two tables of command lines against whole policies: what must not run unasked, and what should not be asked about.

The rows are in hostile_commands.txt and harmless_commands.txt beside this file; each is judged as the bash tool judges
it, in a small repository that holds secrets, links and files with names that look like options.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rows import all_rows

from harness.actions import Action
from harness.cli.policy.policies import load_named
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.rules import Decision
from harness.policy.verdict import Verdict, evaluate
from harness.shell.facets import read_commands

HERE = Path(__file__).parent
MOST_ASKED = 0.02
"""Of the harmless rows, the share that may still ask."""

OPEN = b"""
version = 1
name = "open"
[tools]
default = "auto"
readers = true
[[rule]]
id = "push"
decision = "deny"
argv = ["git", "push"]
reason = "no"
[[rule]]
id = "deploy"
decision = "deny"
argv = ["deploy"]
reason = "no"
[[rule]]
id = "secrets"
decision = "deny"
path = [".env", "/secrets/"]
reason = "no"
[[rule]]
id = "locks"
decision = "deny"
access = ["write"]
path = ["*.lock"]
reason = "no"
[[rule]]
id = "rm"
decision = "confirm"
argv = ["rm"]
flags = ["-r", "-R", "--recursive"]
[[rule]]
id = "sudo"
decision = "block"
argv = ["sudo"]
reason = "no"
"""


class Row(NamedTuple):
    """One line of a table."""

    policy: str
    decision: Decision
    command: str
    line: int


def _lines(name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate((HERE / name).read_text().split("\n"), 1):
        if line and not line.startswith("# "):
            yield number, line


def hostile() -> list[Row]:
    rows = []
    for number, line in _lines("hostile_commands.txt"):
        policy, word, command = line.split(" ", 2)
        rows.append(Row(policy, Decision[word.upper()], command.replace("\u23ce", "\n"), number))
    return rows


def harmless() -> list[Row]:
    rows = []
    for number, line in _lines("harmless_commands.txt"):
        command, mark, _ = line.partition(" ## ask")
        rows.append(Row("default", Decision.CONFIRM if mark else Decision.AUTO, command, number))
    return rows


HOSTILE, HARMLESS = hostile(), harmless()


class World(NamedTuple):
    """A repository to judge in, and the policies by name."""

    workspace: Workspace
    policies: dict[str, Policy]

    def judge(self, row: Row) -> Verdict:
        facets = read_commands(row.command, self.workspace)
        action = Action(
            call=ToolCall(id="c", name="bash", arguments="{}"),
            tool="bash",
            arguments={},
            facets=facets,
            summary=row.command,
            preview=row.command,
            request=None,
            text=row.command,
        )
        return evaluate(self.policies[row.policy], action)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A repository as there are many; it has a `.env`."""
    return made(tmp_path_factory.mktemp("home").resolve())


@pytest.fixture(scope="module")
def world_of_secrets(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same with more secrets in it, all tracked by git, and a file whose name `sort *` would take for an option."""
    world = made(tmp_path_factory.mktemp("secret-home").resolve())
    for name in ("server.pem", "config/.env.local", "secrets/key", "--output=x"):
        Path(world.workspace.root, name).write_text("one\n")
    run_git(world.workspace.root, "add -A")
    return world


def made(home: Path) -> World:
    root = home / "work" / "repo"
    for folder in ("src/deep", "tests", "docs", "config", ".github", "secrets", "links"):
        (root / folder).mkdir(parents=True)
    (home / "work" / "other").mkdir()
    (home / "work" / "other" / "file").write_text("outside\n")
    for name in (
        "README.md", "notes.txt", "data.csv", "package.json", "pyproject.toml", "archive.tar", "archive.tar.gz",
        "archive.zip", "data.bin", "data.csv.gz", "src/app.py", "src/util.py", "src/deep/mod.py", "tests/test_app.py",
        "docs/a file.md", ".env", ".env.example",
    ):  # fmt: skip
        (root / name).write_text("one\n")
    for link, target in (
        ("link-to-env", ".env"),
        ("links/here", ".."),
        ("links/out", "../../other"),
        ("links/z.zip", "../../other/file"),
        ("../other/in", "../repo/notes.txt"),
        ("links/up", "../secrets"),
        ("secrets/out", "../notes.txt"),
    ):
        (root / link).symlink_to(target)
    for words in ("init -q -b main .", "add README.md src tests docs"):
        run_git(str(root), words)
    policies = {"default": load_named("default"), "open": parse_policy(OPEN, "open.toml")}
    return World(Workspace(str(root), str(home)), policies)


def run_git(folder: str, words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words.split()], cwd=folder, env=environment, check=True)


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

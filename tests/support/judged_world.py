"""The tables of command lines that are held against whole policies, and the repository that they are judged in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from places import ROOT

from harness.actions import Action, Decision, Enforcement
from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.policy.loader import load_policy, parse_policy
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict, evaluate

TABLES = Path(ROOT, "tests", "policy")

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


def table_lines(name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate((TABLES / name).read_text().split("\n"), 1):
        if line and not line.startswith("# "):
            yield number, line


def hostile() -> list[Row]:
    rows = []
    for number, line in table_lines("hostile_commands.txt"):
        policy, word, command = line.split(" ", 2)
        rows.append(Row(policy, Decision[word.upper()], command.replace("\u23ce", "\n"), number))
    return rows


def harmless() -> list[Row]:
    rows = []
    for number, line in table_lines("harmless_commands.txt"):
        command, mark, _ = line.partition(" ## ask")
        rows.append(Row("default", Decision.CONFIRM if mark else Decision.AUTO, command, number))
    return rows


class World(NamedTuple):
    """A repository to judge in, and the policies by name."""

    workspace: Workspace
    policies: dict[str, Policy]

    def action(self, command: str) -> Action:
        return action_for("bash", command, self.workspace)

    def judge(self, row: Row) -> Verdict:
        return evaluate(self.policies[row.policy], self.action(row.command))


def made(home: Path) -> World:
    """Return a repository as there are many; it has a `.env`."""
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
    policies = {"default": load_policy("default"), "open": parse_policy(OPEN, "open.toml")}
    return World(Workspace(str(root), str(home)), policies)


def run_git(folder: str, words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words.split()], cwd=folder, env=environment, check=True)


def made_with_secrets(home: Path) -> World:
    """Return the same with more secrets in it, all tracked by git, and a file whose name `sort *` would take for an option."""
    world = made(home)
    for name in ("server.pem", "config/.env.local", "secrets/key", "--output=x"):
        Path(world.workspace.root, name).write_text("one\n")
    run_git(world.workspace.root, "add -A")
    return world


def level(verdict: Verdict) -> str:
    """Return the decision, or for a call that runs the walls that it runs in."""
    effects = verdict.effects
    if verdict.decision is not Decision.AUTO:
        return verdict.decision.word
    if effects.write == () and not effects.reaches and not effects.granted:
        return "reader"
    is_held = verdict.in_walls and effects.enforcement is Enforcement.REQUIRED and not effects.sockets
    return "workspace" if is_held and not effects.reaches and set(effects.granted) <= {"."} else "opened"

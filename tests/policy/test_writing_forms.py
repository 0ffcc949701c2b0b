"""What the gate lets a command do, it can do: every form of writing_forms.txt, free and confined to its own verdict."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rows import all_rows
from sandbox_scene import needs_walls
from sizes import spread

from harness import ToolRegistry, Workspace
from harness.actions import Command, Enforcement, PathAccess
from harness.messages import ToolCall
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate
from harness.record import replace
from harness.tools.bash import BashTool
from harness.tools.command_runner import CommandRunner
from policies import AUTO

pytestmark = needs_walls

ALWAYS = frozenset(
    "bash mv ln link cp install rm unlink rmdir mkdir touch chmod truncate tee dd shred mkfifo split sort uniq shuf sed gzip "
    "gunzip tar find timeout nice env".split()
)
"""Programs that are in every image of Debian and Ubuntu, so that a short PATH does not skip everything."""
PATH = "/usr/local/bin:/usr/bin:/bin"
SCENE = """
mkdir d e ../o
for file in a b d/x d/y ../o/a; do echo "${file##*/}" > "$file"; done
ln -s d/x lx; ln -s d ld; ln -s ../workspace/a ../o/l
"""
HOLDS_TIMES = (".tar", ".tgz", ".zip")
"""Two archives of the same files are not the same bytes, and no two repositories are: what is in `.git` counts by its names."""
ANYTHING = parse_policy(AUTO.encode(), "table.toml")


class Form(NamedTuple):
    """One line of the table."""

    programs: tuple[str, ...]
    command: str
    before: str


def forms() -> Iterator[Form]:
    programs: tuple[str, ...] = ()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "writing_forms.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("= "):
                programs = tuple(line[2:].split())
            elif line and not line.startswith("#"):
                command, _, before = line.partition(" ;; ")
                yield Form(programs, command, before)


class Trial:
    """A workspace of its own, in which one command runs."""

    def __init__(self, folder: Path, scene: Path, before: str) -> None:
        self.folder = folder
        shutil.copytree(scene, folder, symlinks=True)
        workspace = folder / "workspace"
        environment = {"PATH": PATH, "HOME": str(folder / "home"), "LANG": "C.UTF-8"}
        if before:
            subprocess.run(["bash", "-ec", before], cwd=workspace, env=environment, check=True)
        place = Workspace(str(workspace), home=str(folder / "home"))
        self.tool = BashTool(place, CommandRunner(place, environment=environment))

    def run(self, command: str, *, confined: bool) -> tuple[int | None, dict[str, tuple[object, ...]], str]:
        """Return the exit code, what lies there afterwards, and what was printed."""
        call = ToolCall(id="c1", name="bash", arguments=json.dumps({"command": command}))
        action = ToolRegistry((self.tool,)).prepare(call)
        gaps = [
            part
            for part in action.facets
            if not isinstance(part, PathAccess) and not (isinstance(part, Command) and not part.gap)
        ]
        assert gaps == [], "no model covers this"
        effects = evaluate(ANYTHING, action).effects
        if not confined:
            effects = replace(effects, enforcement=Enforcement.OFF)
        output = self.tool.run(action, effects)
        return output.exit_code, self.left(), output.content

    def left(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for folder, folders, files in os.walk(self.folder):
            for path in (os.path.join(folder, name) for name in (*folders, *files)):
                found[os.path.relpath(path, self.folder)] = _seen(path)
        return {name: () if "/.git/" in name else seen for name, seen in found.items() if "/objects/" not in name}


def _seen(path: str) -> tuple[object, ...]:
    facts = os.lstat(path)
    match stat.S_IFMT(facts.st_mode):
        case stat.S_IFLNK:
            return ("link", os.readlink(path))
        case stat.S_IFREG if path.endswith(HOLDS_TIMES):
            return (facts.st_mode,)
        case stat.S_IFREG:
            with open(path, "rb") as file:
                return (facts.st_mode, facts.st_nlink, file.read())
        case _:
            return (facts.st_mode,)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each trial has a copy of."""
    folder = tmp_path_factory.mktemp("scene")
    (folder / "workspace").mkdir()
    subprocess.run(["bash", "-ec", SCENE], cwd=folder / "workspace", check=True)
    return folder


TRIED = spread("FORMS", list(forms()), 60)


@all_rows("form", [pytest.param(form, id=f"{form.command} ;; {form.before}") for form in TRIED])
def test_covered_command_works_the_same_within_its_walls(form: Form, scene: Path, tmp_path: Path) -> None:
    missing = [program for program in form.programs if shutil.which(program, path=PATH) is None]
    assert ALWAYS.isdisjoint(missing)
    if missing:
        pytest.skip(f"NOT RUN: there is no {' and no '.join(missing)} here")
    free, confined = (Trial(tmp_path / name, scene, form.before) for name in ("free", "confined"))
    code, left, printed = free.run(form.command, confined=False)
    assert code == 0, printed
    told = confined.run(form.command, confined=True)
    assert told[:2] == (code, left), told[2]


NOT_TRIED = frozenset(
    # They reach other machines; no command traces another; what they write is not the same twice.
    "curl wget strace ltrace ss journalctl hyperfine script openssl mktemp time".split()
    # They need what tests do not have: other users, a configuration, packages.
    + "chown chgrp terraform tofu dpkg pip ruff".split()
)


def test_each_writing_program_has_a_line() -> None:
    tried = {program for form in forms() for program in form.programs} | NOT_TRIED
    assert sorted(set(_writers()) - tried) == []


def _writers() -> Iterator[str]:
    """Yield the programs that write what they name, as the tables of the models tell it."""
    for file in (Path(__file__).parent.parent / "programs").glob("*.txt"):
        for row in file.read_text("utf-8").splitlines():
            line, _, does = row.rpartition(" -> ")
            if does.startswith("writes"):
                yield shlex.split(line)[0].rpartition("/")[2]

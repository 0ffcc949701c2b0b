"""A denied file is hidden from a command by each of its names (hard links), as real processes in real walls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from grant_scene import Scene, bash
from rows import all_rows
from sandbox_scene import needs_walls

from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.record import replace
from harness.sandbox import Machine, hides_where_it_may_write, probe

pytestmark = needs_walls

RULE = '[[rule]]\nid = "secrets"\ndecision = "{}"\naccess = ["read"]\npath = [".env", "/certs/"]\nreason = "Secrets."\n'
POLICY = f'version = 1\n[tools]\ndefault = "confirm"\n{RULE}'
READ_ALL = """
import os
for folder, _, names in os.walk("."):
    for name in names:
        try:
            print("READ", os.path.join(folder, name)[2:], open(os.path.join(folder, name)).read().strip())
        except OSError as error:
            print("REFUSED", os.path.join(folder, name)[2:])
"""
BACKENDS = {"namespaces": "", "bubblewrap": "turned off by the test"}


def machine_of(backend: str) -> Machine:
    machine = replace(probe(), no_namespaces=BACKENDS[backend]) if BACKENDS[backend] else probe()
    if not hides_where_it_may_write(machine):
        pytest.skip("NOT TESTED HERE: this machine has no such walls")
    return machine


def results(folder: Path, machine: Machine, *commands: str, decision: str = "deny") -> list[str]:
    """Return the results of commands to which a person says yes."""
    yes = Approval(answer=Answer.YES, by="script")
    policy = POLICY.format(decision).encode()
    scene = Scene(folder, bash(*commands), approver=lambda _: lambda *_: yes, policy=policy, machine=machine)
    scene.agent.run("go")
    scene.close()
    return [str(record["content"]) for record in scene.records("outcome")]


def furnish(root: Path) -> None:
    """Make two denied files and one that is not, each with other names elsewhere in the workspace."""
    for name, target in (("notes.txt", ".env"), ("node_modules/x/e", ".env"), ("key", "certs/key"), ("same", "plain")):
        for path in (root / name, root / target):
            path.parent.mkdir(parents=True, exist_ok=True)
        (root / target).write_text(f"content of {target}")
        (root / name).unlink(missing_ok=True)
        (root / name).hardlink_to(root / target)
    (root / "node_modules/x/e").unlink()
    (root / "node_modules/x/e").hardlink_to(root / ".env")
    (root / "x.py").write_text(READ_ALL)


@all_rows("backend", [*BACKENDS])
def test_denied_file_is_read_by_none_of_its_names(backend: str, tmp_path: Path) -> None:
    machine = machine_of(backend)
    furnish(tmp_path / "w")
    (printed,) = results(tmp_path, machine, "python3 x.py")
    assert "READ same content of plain" in printed
    assert "content of .env" not in printed
    assert "content of certs" not in printed
    assert {"REFUSED notes.txt", "REFUSED node_modules/x/e", "REFUSED key"} <= set(printed.splitlines())


def test_reader_from_which_a_file_is_left_out_reads_it_by_no_other_name(tmp_path: Path) -> None:
    furnish(tmp_path / "w")
    (printed,) = results(tmp_path, probe(), "grep -r content .")
    assert "./same:content of plain" in printed
    assert "content of .env" not in printed
    assert "content of certs" not in printed


@all_rows("backend", [*BACKENDS])
def test_link_that_an_earlier_call_made_is_hidden_from_the_next(backend: str, tmp_path: Path) -> None:
    machine = machine_of(backend)
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".env").write_text("content of .env")
    (tmp_path / "w" / "x.py").write_text(READ_ALL)
    commands = ("python3 x.py", "ln .env notes.txt && cat .env", "python3 x.py")
    first, linked, last = results(tmp_path, machine, *commands, decision="confirm")
    assert os.path.samefile(tmp_path / "w" / ".env", tmp_path / "w" / "notes.txt"), linked
    assert "content of .env" in linked
    assert "content of .env" not in first
    assert "content of .env" not in last
    assert "REFUSED notes.txt" in last


def test_replacement_of_a_hidden_file_is_explained(tmp_path: Path) -> None:
    machine = machine_of("namespaces")
    furnish(tmp_path / "w")
    (tmp_path / "w" / "x.py").write_text("import os; os.replace('same', 'notes.txt')")
    (printed,) = results(tmp_path, machine, "python3 x.py")
    assert f"[confined: {tmp_path}/w/notes.txt: hidden by the policy; " in printed

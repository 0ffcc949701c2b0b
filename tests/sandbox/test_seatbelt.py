"""Seatbelt: the text of its profile, and the trial that decides whether it is used.

No Mac was at hand. Stand-ins for sandbox-exec (tests/support/sandbox_exec.py) hold, lie or fail.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from places import ROOT

from harness.process.start import Launch, start
from harness.record import replace
from harness.sandbox import Machine, Unenforceable, Walls, describe, enforces, hides_where_it_may_write, prepare
from harness.sandbox.bubblewrap import find
from harness.sandbox.seatbelt import PROGRAM, prefix, profile
from harness.sandbox.seatbelt_trial import proved, with_seatbelt

NO_WALLS = Machine(landlock=0, seccomp="", bubblewrap="", no_namespaces="none", reasons=("no walls",))


def program(folder: Path, kind: str) -> str:
    """Return the path of a stand-in for sandbox-exec, which notes each of its starts in `starts`."""
    path = folder / f"sandbox-exec-{kind}"
    script = f"{ROOT}/tests/support/sandbox_exec.py"
    path.write_text(f'#!/bin/sh\necho x >> {folder}/starts\nexec {sys.executable} -I -S {script} {kind} "$@"\n')
    path.chmod(0o755)
    return str(path)


def starts(folder: Path) -> int:
    path = folder / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path.resolve() / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".env").write_text("KEY=value\n")
    return work


def rules(walls: Walls) -> list[str]:
    return profile(walls).splitlines()


def test_a_profile_denies_what_no_rule_names(work: Path) -> None:
    reader = rules(Walls(write=(), network=False))
    assert reader[:2] == ["(version 1)", "(deny default)"]
    assert not [rule for rule in reader if rule.startswith(("(allow file-write*", "(allow network"))]
    assert not [rule for rule in reader if rule == "(allow mach-lookup)" or rule.startswith("(allow default")]


def test_a_profile_has_what_is_forbidden_after_what_is_allowed(work: Path) -> None:
    """The last rule that matches decides."""
    walls = Walls(
        write=(str(work),), network=False, hide=(f"{work}/.env",), keep=(f"{work}/.git/hooks",), unix_sockets=False
    )
    text = rules(walls)
    above = " ".join(f'(literal "{folder}")' for folder in (f"{work}/.git", work, *work.parents))
    expected = [
        f'(allow file-write* (subpath "{work}"))',
        f'(deny file-write* (subpath "{work}/.git/hooks"))',
        f'(deny file-read-data file-read-xattr file-write* file-link (subpath "{work}/.env"))',
        f"(deny file-write-unlink {above})",
    ]
    assert text[-4:] == expected


def test_a_profile_opens_the_network_and_sockets_each_by_itself(work: Path) -> None:
    base = Walls(write=(str(work),), network=False, unix_sockets=False)
    none, network = rules(base), rules(replace(base, network=True))
    sockets = rules(replace(base, unix_sockets=True, hide=("/s",)))
    assert not [rule for rule in none if "network" in rule]
    assert "(allow network* system-socket)" in network
    assert network.index("(deny network-outbound (remote unix-socket))") > network.index(
        "(allow network* system-socket)"
    )
    assert sockets[-2:] == [
        "(allow network* (local unix-socket) (remote unix-socket))",
        '(deny network* (subpath "/s"))',
    ]


def test_a_profile_quotes_names_and_refuses_what_it_cannot_name(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / 'a"b\\c é'
    folder.mkdir()
    (rule,) = (rule for rule in rules(Walls(write=(str(folder),), network=False)) if "é" in rule)
    assert rule == f'(allow file-write* (subpath "{tmp_path.resolve()}/a\\"b\\\\c é"))'
    link = tmp_path / "link"
    link.symlink_to(folder)
    for walls in (
        Walls(write=(), network=False, hide=("/a\nb",)),
        Walls(write=(str(link),), network=False),
        Walls(write=(), network=False, own_network=True),
        Walls(write=(), network=False, own_tmp=True),
        Walls(write=(), network=False, meets_servers=True),
    ):
        with pytest.raises(Unenforceable):
            profile(walls)


def test_walls_that_hold_are_used_and_tried_once(tmp_path: Path, work: Path) -> None:
    if not find():
        pytest.skip("NOT TESTED HERE: the stand-in that holds needs bubblewrap")
    holds = program(tmp_path, "holds")
    machine = with_seatbelt(NO_WALLS, str(tmp_path), holds, owner_matters=False)
    assert (machine.reasons, machine.seatbelt, describe(machine)) == ((), holds, "Seatbelt")
    assert enforces(machine)
    assert hides_where_it_may_write(machine)
    count = starts(tmp_path)
    assert with_seatbelt(NO_WALLS, str(tmp_path), holds, owner_matters=False) == machine
    assert starts(tmp_path) == count
    assert proved(str(tmp_path), holds, "another version", owner_matters=False).failures == ()
    assert starts(tmp_path) > count
    walls = Walls(write=(str(work),), network=False, hide=(f"{work}/.env",))
    with prepare(walls, machine) as confinement:
        assert confinement.prefix == prefix(walls, holds)
        reading, writing = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        launch = Launch(
            argv=("bash", "-c", "cat .env || echo kept; echo x > new; echo x > ../outside || echo kept"),
            executable="/bin/bash",
            cwd=str(work),
            environment={"PATH": "/bin:/usr/bin"},
            confine=confinement.enter,
            prefix=confinement.prefix,
        )
        start(launch, nothing, writing, nothing).wait()
        os.close(writing)
        os.close(nothing)
        with open(reading) as file:
            assert file.read() == "kept\nkept\n"
    assert (work / "new").exists()
    assert not (tmp_path / "outside").exists()


def test_walls_that_lie_are_not_believed(tmp_path: Path) -> None:
    lies = program(tmp_path, "lies")
    failures = proved(str(tmp_path), lies, "1", owner_matters=False).failures
    assert "a command that may write can read a hidden file" in failures
    assert "a command that only reads can write the workspace" in failures
    assert "a command that only reads can connect to this machine" in failures
    machine = with_seatbelt(NO_WALLS, str(tmp_path), lies, owner_matters=False)
    assert not enforces(machine)
    assert machine.reasons[0] == "no walls"
    assert machine.reasons[1].startswith("Seatbelt is not used: a command that may write")


def test_walls_that_fail_are_not_used(tmp_path: Path) -> None:
    fails = program(tmp_path, "fails")
    (failure,) = proved(str(tmp_path), fails, "1", owner_matters=False).failures
    assert failure.endswith("sandbox-exec-fails ended with 71: sandbox-exec: sandbox_apply: Operation not permitted")
    (missing,) = proved(str(tmp_path), str(tmp_path / "none"), "1", owner_matters=False).failures
    assert missing.startswith("nothing could be tried")


def test_a_program_of_another_user_is_not_even_tried(tmp_path: Path) -> None:
    lies = program(tmp_path, "lies")
    os.chmod(lies, 0o777)
    assert proved(str(tmp_path), lies, "1").failures == (f"{lies} is not a program of root",)
    assert starts(tmp_path) == 0
    if not os.path.exists(PROGRAM):
        assert not enforces(with_seatbelt(NO_WALLS, str(tmp_path)))


def test_a_result_of_another_program_or_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    """Each case makes the trial anew, which fails here."""
    fails = program(tmp_path, "fails")
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures
    (kept,) = tmp_path.glob("walls-*.json")
    kept.write_text('{"failures": []}')
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures == ()  # forged
    kept.chmod(0o666)
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures
    kept.write_text('{"failures": []}')
    kept.rename(tmp_path / "elsewhere")
    kept.symlink_to(tmp_path / "elsewhere")
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures
    kept.unlink()
    kept.write_text('{"failures": []}')
    with open(fails, "a") as file:
        file.write("# another program\n")
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures


@pytest.mark.parametrize("content", ["", "{}", '{"failures": "none"}', "[]", json.dumps({"failures": None})])
def test_a_torn_result_is_not_believed(tmp_path: Path, content: str) -> None:
    fails = program(tmp_path, "fails")
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures
    (kept,) = tmp_path.glob("walls-*.json")
    kept.write_text(content)
    assert proved(str(tmp_path), fails, "1", owner_matters=False).failures
    assert json.loads(kept.read_text())["failures"]

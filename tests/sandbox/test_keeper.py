"""The keeper, when the harness does not need it any more."""

from __future__ import annotations

import subprocess
import sys

import pytest
from places import ROOT

from harness.sandbox import probe, why_no_namespaces

LEAVES = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from harness.process import hardening, procfs
from harness.process.start import Launch
from harness.sandbox import Walls, keeper_here, prepare, probe
from harness.record import replace

assert hardening.adopt_orphans()
machine = probe()
keeper = keeper_here(machine)
inherited = os.open(os.devnull, os.O_RDWR)
with prepare(Walls(write=("/tmp",), network=False), machine) as confinement:
    launch = Launch(argv=("/bin/true",), executable="/bin/true", cwd="/", environment={})
    program = confinement.starter.start(launch, (inherited, inherited, inherited))
    assert program.status() == (True, 0)
    number, first = keeper.parents
    os.kill(number, signal.SIGSTOP)
    assert program.wait() == 0
    keeper.leave()
    os.kill(number, signal.SIGCONT)
    os.waitpid(number, 0)
    print("left:", sorted(procfs.children(os.getpid()) - {first}))
"""


@pytest.mark.skipif(bool(why_no_namespaces(probe())), reason="this machine gives commands no namespaces")
def test_a_keeper_that_leaves_has_reaped_the_ended_command() -> None:
    """Else an init that reaps nothing, as in containers, would keep the command and its namespaces forever."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVES, str(ROOT)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("left: []\n", 0), done.stderr


STAYS = "import sys; sys.path.insert(0, sys.argv[1]); from harness.sandbox.keeper import keeper; keeper().why_not()"


def test_keeper_leaves_no_open_socket_at_the_end_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", STAYS, str(ROOT)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)

"""The keeper, when the harness does not need it any more."""

from __future__ import annotations

import subprocess
import sys

import pytest
from places import ROOT

from harness.sandbox import probe, why_no_namespaces

ENDS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from harness.process import procfs
from harness.process.start import Launch
from harness.sandbox import Walls, keeper_here, prepare, probe
from harness.record import replace

machine = replace(probe(), in_session=True)
keeper = keeper_here(machine)
inherited = os.open(os.devnull, os.O_RDWR)
with prepare(Walls(write=("/tmp",), network=False), machine) as confinement:
    argv = ("/bin/sh", "-c", "setsid sleep 4321 &")
    launch = Launch(argv=argv, executable="/bin/sh", cwd="/", environment={})
    program = confinement.starter.start(launch, (inherited, inherited, inherited))
    assert program.wait() == 0
    number, first = keeper.parents
    running = procfs.family([procfs.process(number)])
    assert first == os.getpid() or len(running) > 2, running
    keeper.end()
    now = [procfs.process(process.pid) for process in running]
    print("left:", [process.name for process in now if process is not None and not process.has_ended])
"""


@pytest.mark.skipif(bool(why_no_namespaces(probe())), reason="this machine gives commands no namespaces")
def test_all_processes_of_a_keeper_have_ended_with_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS, str(ROOT)], capture_output=True, text=True, timeout=120, check=False
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

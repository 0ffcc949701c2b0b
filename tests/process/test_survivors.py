"""What a command leaves that is hard to find: a sibling, hidden, another's, in masses; and the latch before its first step."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from places import shell_word
from process_scene import (
    ENOUGH,
    PATH,
    PATIENT,
    alive,
    as_nobody,
    launch,
    no_new_privileges,
    readable_copy,
    run,
    sleep_token,
    wait_until,
)
from rows import all_rows

from harness.process import hardening
from harness.process.capture import Capture
from harness.process.command import run_group
from harness.process.ended import CommandEnding
from harness.process.start import Latch, StartedProgram, start
from harness.process.survivors import Survivors, send
from harness.record import replace
from harness.sandbox import Walls, prepare, probe, why_no_namespaces

token = pytest.fixture(sleep_token)
readable = pytest.fixture(readable_copy)
SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine, -1)
"""clone(2), in the tables of the kernel."""


# The latch


def held_by(latch: Latch, command: str) -> StartedProgram:
    held = launch(command)
    held = replace(held, environment={**held.environment, **latch.variables}, descriptors=latch.descriptors)
    return start(held, subprocess.DEVNULL, subprocess.DEVNULL)


def test_command_does_not_run_before_the_latch_is_lifted(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with Latch() as latch:
        process = held_by(latch, f"touch {shell_word(ran)}")
        time.sleep(0.2)  # a busy machine can only hide that it ran
        before = ran.exists()
        latch.lift()
        status = process.wait()

    assert (before, status, ran.exists()) == (False, 0, True)


def test_command_never_runs_if_the_latch_is_not_lifted(tmp_path: Path) -> None:
    """As when the harness is killed: the kernel closes what it held."""
    ran = tmp_path / "ran"
    with Latch() as latch:
        process = held_by(latch, f"touch {shell_word(ran)}")

    assert (process.wait(), ran.exists()) == (126, False)


def test_latch_is_invisible_to_the_command() -> None:
    ended, text = run(
        'echo "$?:$LINENO:$0:$-:${BASH_ENV-none}:${REPLY-none}"; echo /proc/self/fd/*; '
        "env | grep -c BASH_ENV; nosuch; bash -c 'echo ${BASH_ENV-none}'"
    )

    state, descriptors, found, error, inner = text.splitlines()
    assert state == "0:1:bash:hBc:none:none"
    assert descriptors in ("/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3", "/proc/self/fd/*")
    assert (found, error, inner) == ("0", "bash: line 1: nosuch: command not found", "none")
    assert ended.ending is CommandEnding.EXITED


# No descendant


SIBLING = """
import ctypes, os, signal, sys, time
number = ctypes.CDLL(None).syscall(int(sys.argv[1]), 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)  # CLONE_PARENT
if number == 0:
    os.setsid()
    os.closerange(0, 3)
    os.execve("/bin/sleep", ["sleep", sys.argv[2]], {})
sys.exit(number < 0)
"""


@pytest.mark.skipif(SYS_CLONE < 0, reason="CLONE_PARENT WAS NOT TRIED, the number of clone(2) is not known here")
@all_rows("confine", [None, no_new_privileges], ids=["unconfined", "confined"], anew={"token": sleep_token})
def test_process_started_as_a_sibling_is_ended(token: str, confine: Callable[[], None] | None) -> None:
    command = f"exec \"$PYTHON\" -S -c '{SIBLING}' {SYS_CLONE} {token}"
    ended, text = run(command, confine=confine)

    assert (text, ended.status, ended.surviving) == ("", 0, ())
    assert len(ended.terminated) == 1
    assert alive(token) == []


@pytest.mark.skipif(SYS_CLONE < 0, reason="CLONE_PARENT WAS NOT TRIED, the number of clone(2) is not known here")
@pytest.mark.skipif(bool(why_no_namespaces(probe())), reason="this machine gives commands no namespaces")
def test_process_started_as_a_sibling_in_namespaces_is_ended(token: str, tmp_path: Path) -> None:
    command = f"exec \"$PYTHON\" -S -c '{SIBLING}' {SYS_CLONE} {token}"
    output = Capture(30_000)
    with prepare(Walls(write=(str(tmp_path),), network=False), probe()) as confinement:
        command_in_walls = replace(launch(command), starter=confinement.starter)
        ended = run_group(command_in_walls, seconds=ENOUGH, output=output, pace=PATIENT)

    assert (output.readable().text, ended.status, ended.surviving) == ("", 0, ())
    assert len(ended.terminated) == 1
    assert alive(token) == []


def test_ended_first_process_is_ignored_and_its_leftovers_found(token: str) -> None:
    """It is reaped by whoever started it, after all else."""
    hardening.adopt_orphans()
    survivors = Survivors(confined=False)
    with subprocess.Popen(
        ["/bin/sh", "-c", f"sleep {token} &"], stdin=subprocess.DEVNULL, start_new_session=True
    ) as one:
        survivors.started(one.pid, bounded=False)
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        before = {child.pid for child in survivors._new()}
        survivors.leader_ended()
        after = {child.pid for child in survivors._new()}
        left = survivors.remaining()
        send(left, signal.SIGKILL)
        assert wait_until(lambda: survivors.remaining() == [])
        survivors.close()

    assert before - after == {one.pid}
    assert ({child.pid for child in left}, len(left)) == (after, 1)
    assert (one.returncode, alive(token)) == (0, [])


# Hidden, or another's


HIDING = """
import ctypes, os, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 3)
time.sleep(1000)
"""


SCENE = """
import sys
from harness.process.capture import Capture
from harness.process.command import Pace, run_group
from harness.process.start import Launch
argv = ("bash", "--noprofile", "--norc", "-c", "--", sys.argv[1])
environment = dict(zip(("PATH", "CODE"), sys.argv[3:]))
ended = run_group(
    Launch(argv=argv, executable="/bin/bash", cwd="/", environment=environment),
    seconds=100,
    output=Capture(30_000),
    pace=Pace(gone_seconds=100, kill_seconds=float(sys.argv[2])),
)
print(ended.status, len(ended.terminated), len(ended.surviving))
"""


def harness_of_nobody(
    folder: Path, command: str, *words: str, before: str = "", kill_seconds: float = 100.0
) -> list[int]:
    """Run a command line in a harness of an ordinary user; return its status, and how much was ended and left."""
    program = as_nobody("/usr/bin/env", "python3", "-c", SCENE, command, str(kill_seconds), *words)
    scene = ["unshare", "-m", "bash", "-c", f'{before}\nexec "$@"', "bash", *program]
    done = subprocess.run(scene, cwd=folder, env={"PATH": PATH}, capture_output=True, text=True, check=False)
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"A PROCESS THAT HIDES WAS NOT TRIED: {done.stderr.strip()}")
    assert done.stderr == ""
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount /proc and become an ordinary user")
def test_a_daemon_that_hides_from_proc_is_ended(readable: Path) -> None:
    hide = "mount -t proc -o hidepid=2 proc /proc || exit"
    # What it prints ends when the daemon is one, and those between have gone.
    found = harness_of_nobody(readable, ': "$(python3 -S -c "$CODE")"', PATH, HIDING, before=hide)

    assert found == [0, 1, 0]


def lifting(folder: Path) -> str:
    """Return words by which an ordinary user's command becomes root's."""
    lifted = folder / "lifted"
    shutil.copy(shutil.which("setpriv") or "", lifted)
    lifted.chmod(0o4755)
    return f"{lifted} --reuid=0 --regid=0 --clear-groups"


LIFTED = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to make a set-user-ID program and become an ordinary user"
)
HIDDEN = pytest.mark.parametrize("hidden", [False, True], ids=["seen", "hidden"])
NO_LIFT = "WHAT MAY NOT BE KILLED WAS NOT TRIED, set-user-ID programs do not run in the folder of the tests"


@LIFTED
@HIDDEN
def test_process_that_cannot_be_killed_is_named(readable: Path, token: str, *, hidden: bool) -> None:
    command = f"{lifting(readable)} setsid -f sleep {token} > /dev/null 2>&1"
    hide = "mount -t proc -o hidepid=2 proc /proc || exit" if hidden else ""
    status, terminated, surviving = harness_of_nobody(readable, command, PATH, before=hide, kill_seconds=0.5)

    if status != 0:
        pytest.skip(NO_LIFT)
    assert (terminated, surviving) == (0, 1)


@LIFTED
def test_process_that_cannot_be_killed_yet_is_tried_again(readable: Path, token: str) -> None:
    """It becomes the ordinary user's after a while, and is ended then."""
    later = f"sleep 1; exec {' '.join(as_nobody('sleep', token))}"
    command = f"{lifting(readable)} setsid -f bash -c '{later}' > /dev/null 2>&1"
    status, terminated, surviving = harness_of_nobody(readable, command, PATH)

    if status != 0:
        pytest.skip(NO_LIFT)
    assert (terminated > 0, surviving) == (True, 0)


# In masses, and what gets in the way of reading


def test_ended_processes_are_reaped_while_the_command_runs() -> None:
    """The command looks itself, for a minute at least."""
    ended, text = run(
        "read -ra before < /proc/$PPID/task/$PPID/children\n"
        "for i in {1..200}; do (true &); done\n"
        "for i in {1..600}; do\n"
        "  read -ra children < /proc/$PPID/task/$PPID/children\n"
        "  [ $((${#children[@]} - ${#before[@]})) -gt 50 ] || exit 0\n"
        "  sleep 0.1\n"
        "done\n"
        "echo ${#children[@]}; exit 1",
    )

    assert (ended.ending, ended.status, text) == (CommandEnding.EXITED, 0, "")


STEALING = """
import os, time
end = time.monotonic() + 0.4
def steal():
    pipe = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    while time.monotonic() < end:
        try: os.read(pipe, 4096)
        except BlockingIOError: pass
for _ in range(2):
    if os.fork() == 0:
        steal()
        os._exit(0)
while time.monotonic() < end - 0.02: os.write(1, b"x")
time.sleep(1000)
"""


def test_command_reading_its_output_cannot_delay_its_timeout() -> None:
    """One try in four did."""
    for _ in range(2):
        ended, _ = run(f"exec \"$PYTHON\" -S -c '{STEALING}'", seconds=0.7)

        assert ended.ending is CommandEnding.TIMED_OUT

"""Commands run as the harness runs them, and what is alive of them: what the tests of processes share."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from places import ROOT, shell_word

from harness.process import procfs
from harness.process.capture import Capture
from harness.process.command import Pace, run_group
from harness.process.ended import Ended
from harness.process.guard import guard
from harness.process.start import Launch
from harness.record import replace

PATH = "/usr/local/bin:/usr/bin:/bin"
NOBODY = 65534
ENOUGH = 120.0
"""Seconds that nothing here takes, however busy the machine is: what waits for that long will wait for ever."""
PATIENT = Pace(grace_seconds=0.2, gone_seconds=ENOUGH, term_seconds=0.05, kill_seconds=ENOUGH)
UNTIL_SLEEP = 'until read -r name < /proc/$!/comm && [ "$name" = sleep ]; do :; done'
"""Bash: wait until what was just started in the background has become the program `sleep`."""


def launch(command: str) -> Launch:
    return Launch(
        argv=("bash", "--noprofile", "--norc", "-c", "--", command),
        executable="/bin/bash",
        cwd="/",
        environment={"PATH": PATH, "PYTHON": sys.executable},
    )


def run(
    command: str, *, seconds: float = ENOUGH, confine: Callable[[], None] | None = None, pace: Pace = PATIENT
) -> tuple[Ended, str]:
    """Return how the command ended, and what it printed."""
    output = Capture(30_000)
    ended = run_group(replace(launch(command), confine=confine), seconds=seconds, output=output, pace=pace)
    return ended, output.readable().text


def until_there(path: Path) -> str:
    """Return words of bash that wait for a file."""
    return f"until [ -e {shell_word(path)} ]; do sleep 0.01; done"


def new_children(before: set[int]) -> set[int]:
    """Return the children since `before` but the guard, and the keepers of programs of earlier tests, which end later."""
    children = procfs.children(os.getpid()) - before - {guard()._pid}
    return {child for child in children if getattr(procfs.process(child), "name", "harness-keeper") != "harness-keeper"}


def alive(token: str) -> list[int]:
    """Return the processes, ended ones left out, on whose command line `token` stands."""
    found = []
    for number in procfs.numbers():
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = file.read()
        except OSError:
            continue
        if token.encode() in words and number != os.getpid():
            found.append(number)
    return found


def sleep_token() -> Iterator[str]:
    """Yield a number that a sleep of this test, and of no other, sleeps for. A fixture."""
    number = f"1000.{random.randrange(10**9):09}"
    yield number
    for survivor in alive(number):
        os.kill(survivor, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float = ENOUGH) -> bool:
    """Say whether a condition comes to hold."""
    deadline, pause = time.monotonic() + seconds, 0.0005
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    return holds


def readable_copy() -> Iterator[Path]:
    """Yield a folder with a copy of the package that an ordinary user may read. A fixture.

    Not below the folder of the tests: each run of pytest that begins closes that to other users, and to those of this run.
    """
    with tempfile.TemporaryDirectory(prefix="readable-", dir="/tmp") as folder:
        subprocess.run(["cp", "-r", f"{ROOT}/harness", f"{folder}/harness"], check=True)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield Path(folder)


def as_nobody(*words: str) -> list[str]:
    """Return a command line by which root runs another as an ordinary user."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]


def no_new_privileges() -> None:
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS

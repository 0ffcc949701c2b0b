"""A stand-in for the harness, run as the user that is named: takes commands as lines of JSON, runs each behind its walls.

Started by the tests in test_sandbox*.py as `python sandbox_runner.py UID`; imports everything before it gives up root, since
the interpreter itself may lie where only root can read.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

from harness.process.start import Launch, StartedProgram, start
from harness.record import replace
from harness.sandbox import Confinement, Unhidden, Walls, describe, prepare, probe, tried

PR_SET_DUMPABLE = 4


def become(uid: int) -> None:
    """Turn into an ordinary user for good, as visible to its own processes as any program is."""
    if uid != os.getuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run one command, behind walls or without any, and return how it ended."""
    if request["walls"] is None:
        return ended(start_program(request, None), [])
    if request["walls"] == "abilities":
        output = describe(tried(probe()))
        return {"code": 0, "output": output, "error": "", "gaps": [], "prefix": [], "kept": False}
    machine = replace(probe(), **request["machine"])
    walls: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in request["walls"].items()
    }
    try:
        confinement = prepare(Walls(**walls), machine, unhidden=Unhidden(request["unhidden"]))
    except OSError as error:
        return {
            "code": None,
            "output": str(error),
            "error": type(error).__name__,
            "gaps": [],
            "prefix": [],
            "kept": False,
        }
    with confinement:
        return ended(start_program(request, confinement), [*confinement.gaps]) | {
            "prefix": [*confinement.prefix],
            "kept": confinement.starter is not None,
        }


def start_program(request: dict[str, Any], confinement: Confinement | None) -> tuple[StartedProgram, int]:
    """Start the command of a request, and return it with the reading end of its output."""
    launch = Launch(
        argv=("bash", "--noprofile", "--norc", "-c", request["command"]),
        executable="/bin/bash",
        cwd=request["cwd"],
        environment=request["environment"] | {"HARNESS": str(os.getpid())},
    )
    if confinement is not None:
        launch = replace(
            launch,
            confine=confinement.enter,
            starter=confinement.starter,
            prefix=confinement.prefix,
            descriptors=confinement.descriptors,
        )
    reading, writing = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return start(launch, nothing, writing), reading
    finally:
        os.close(writing)
        os.close(nothing)


def ended(started: tuple[StartedProgram, int], gaps: list[str]) -> dict[str, Any]:
    """Return how a command ended. One that takes five minutes is killed."""
    process, reading = started
    output = b""
    deadline = time.monotonic() + 300
    while (left := deadline - time.monotonic()) > 0 and select.select([reading], [], [], left)[0]:
        block = os.read(reading, 65_536)
        if not block:
            break
        output += block
    else:
        os.killpg(process.pid, signal.SIGKILL)
        output = b"timed out"
    os.close(reading)
    code = process.wait()
    return {
        "code": code,
        "output": output.decode(errors="replace"),
        "gaps": gaps,
        "error": "",
        "prefix": [],
        "kept": False,
    }


if __name__ == "__main__":
    become(int(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()

"""A stand-in for the harness, run as the user that is named: takes commands as lines of JSON, runs each behind its walls.

Started by the tests in test_sandbox*.py as `python sandbox_runner.py UID`; imports everything before it gives up root, since
the interpreter itself may lie where only root can read.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

from harness.record import replace
from harness.sandbox import Confinement, Unhidden, Walls, prepare, probe

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
        return ended(start(request, None), [])
    machine = replace(probe(), **request["machine"])
    walls: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in request["walls"].items()
    }
    try:
        confinement = prepare(Walls(**walls), machine, unhidden=Unhidden(request["unhidden"]))
    except OSError as error:
        return {"code": None, "output": str(error), "error": type(error).__name__, "gaps": [], "prefix": []}
    with confinement:
        found: list[subprocess.Popen[bytes]] = []
        thread = threading.Thread(target=lambda: found.append(start(request, confinement)))
        thread.start()
        thread.join()
        if not found:
            return {"code": None, "output": "not started", "error": "none", "gaps": [], "prefix": []}
        return ended(found[0], [*confinement.gaps]) | {"prefix": [*confinement.prefix]}


def start(request: dict[str, Any], confinement: Confinement | None) -> subprocess.Popen[bytes]:
    if confinement is not None:
        confinement.enter()
    return subprocess.Popen(
        [*(confinement.prefix if confinement else ()), "bash", "--noprofile", "--norc", "-c", request["command"]],
        cwd=request["cwd"],
        env=request["environment"] | {"HARNESS": str(os.getpid())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=confinement.descriptors if confinement else (),
    )


def ended(process: subprocess.Popen[bytes], gaps: list[str]) -> dict[str, Any]:
    try:
        output, _ = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = b"timed out"
    return {"code": process.wait(), "output": output.decode(errors="replace"), "gaps": gaps, "error": "", "prefix": []}


if __name__ == "__main__":
    become(int(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()

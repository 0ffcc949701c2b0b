"""Walls: kernel confinement of one command. `Walls` describes them, `prepare` builds them, `enter` confines a thread.

Read `walls` first, then `confinement`, which builds them by three means: `landlock` (files, ports, signals),
`seccomp` (system calls; their numbers are in `system_calls`) and, to hide something in a writable folder,
`bubblewrap`. `machine` measures the abilities of this machine. `kernel` makes the system calls.

The caller starts a command from a thread that entered the walls, and starts only that command from it. Nothing here
judges a command or starts one.
"""

from __future__ import annotations

from harness.sandbox.confinement import Confinement, Unhidden, prepare
from harness.sandbox.machine import Machine, describe, enforces, hides_where_it_may_write, missing, probe
from harness.sandbox.walls import Unenforceable, Walls

__all__ = [
    "Confinement",
    "Machine",
    "Unenforceable",
    "Unhidden",
    "Walls",
    "describe",
    "enforces",
    "hides_where_it_may_write",
    "missing",
    "prepare",
    "probe",
]

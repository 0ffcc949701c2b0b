"""The kernel's wall around one command: `Walls` say what it may touch, `prepare` builds them, `enter` goes behind them.

Read `walls` first, then `confinement`, which puts them up by three means: `landlock` (files, ports, signals), `seccomp`
(system calls; their numbers are in `system_calls`) and, where something must be hidden in a folder that may be written,
`bubblewrap`. `machine` measures what this machine can do. `kernel` makes the system calls.

Whoever starts a command does so from a thread that entered, and from which only it starts. Nothing here judges a command or
starts one.
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

"""Walls: kernel confinement of one command. `Walls` describes them, `prepare` builds them for one command.

Read `walls` first, then `confinement`, which chooses between three means:

- `keeper` and `keeper_process`: a process that holds `namespaces` and starts a command in a fresh `view` of the disk;
- `bubblewrap`, a program that does the same where we may not;
- `landlock` (files, ports, signals) alone. It confines readers everywhere.

All use `seccomp` (system calls; their numbers are in `system_calls`). macOS has `seatbelt` in their place, where
`seatbelt_trial` has shown that it holds. `layers` names the paths that a view or bubblewrap
mounts, `mounts` and `kernel` make the system calls. `machine` measures the abilities of this machine, `trial` those of
the keeper.

A command starts from a thread that entered the walls and starts only that, or by the `starter` of its confinement.
Nothing here judges a command.
"""

from __future__ import annotations

from harness.sandbox.confinement import Confinement, Unhidden, prepare
from harness.sandbox.machine import (
    Machine,
    describe,
    enforces,
    hides_where_it_may_write,
    keeper_here,
    known_no_namespaces,
    missing,
    probe,
    tried,
    why_no_namespaces,
)
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
    "keeper_here",
    "known_no_namespaces",
    "missing",
    "prepare",
    "probe",
    "tried",
    "why_no_namespaces",
]

"""The kernel's wall around one command: `Walls` say what it may touch, `prepare` builds them, `enter` goes behind them.

Judges nothing and starts no command: whoever starts one does it from a thread that entered, and from which only it starts.
"""

from __future__ import annotations

from harness.sandbox.confinement import Confinement, Unhidden, prepare
from harness.sandbox.probe import Machine, describe, enforces, missing, probe
from harness.sandbox.walls import Unenforceable, Walls

__all__ = [
    "Confinement",
    "Machine",
    "Unenforceable",
    "Unhidden",
    "Walls",
    "describe",
    "enforces",
    "missing",
    "prepare",
    "probe",
]

"""The end of a program that the harness ran."""

from __future__ import annotations

from enum import Enum

from harness.record import Record


class CommandEnding(Enum):
    """The way in which a program ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    """The status is lost: other code in this process waited for the child."""


class Ended(Record):
    """The end of a run."""

    ending: CommandEnding
    status: int | None
    """The exit code, or the signal's number. `None` if it is unknown or harness ended the program."""
    seconds: float
    terminated: tuple[str, ...] = ()
    """Names of the processes that still ran when the program had ended, and that were then ended."""
    surviving: tuple[str, ...] = ()
    """Names of the processes that could not be killed: those of another user, or inside the kernel."""

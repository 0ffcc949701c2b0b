"""Exit codes, and the table from stop reasons to exit codes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from harness.messages import StopReason


class Exit(IntEnum):
    """The exit codes of the program."""

    DONE = 0
    INTERNAL = 1
    USAGE = 2
    BLOCKED = 3
    LIMIT = 4
    NO_ANSWER = 5
    MODEL = 6
    REFUSED = 7
    LOG = 8
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


def is_soft(code: int) -> bool:
    """Return whether a code means that the work was done. If a requested file cannot be written, 1 replaces such a code."""
    return code in (Exit.DONE, Exit.REFUSED)


def exit_code(stop: StopReason, *, refusals: int, allow_refusals: bool, terminated: bool) -> Exit:
    """Return the exit code for a run that ended with `stop`.

    `refusals` is the number of refused calls. `terminated` says that the interrupt was a SIGTERM or SIGHUP.
    """
    from harness.messages import StopReason  # imported here, since `--version` needs only the codes

    match stop:
        case StopReason.COMPLETED:
            return Exit.REFUSED if refusals and not allow_refusals else Exit.DONE
        case StopReason.BLOCKED:
            return Exit.BLOCKED
        case StopReason.LIMIT:
            return Exit.LIMIT
        case StopReason.LENGTH | StopReason.CONTENT_FILTER | StopReason.CUT | StopReason.NO_ANSWER | StopReason.UNFIT:
            return Exit.NO_ANSWER
        case StopReason.MODEL_ERROR:
            return Exit.MODEL
        case StopReason.LOG_ERROR:
            return Exit.LOG
        case StopReason.GATE_ERROR | StopReason.WORKSPACE_LOST | StopReason.INTERNAL_ERROR:
            return Exit.INTERNAL
        case StopReason.INTERRUPTED:
            return Exit.TERMINATED if terminated else Exit.INTERRUPTED
        case StopReason.TERMINAL_CLOSED:
            return Exit.TERMINATED
        case _:
            assert_never(stop)

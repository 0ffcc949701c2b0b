"""Checks of the flags of `harness batch` that belong to a queue."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from harness.errors import UsageError

_OF_A_QUEUE = {"wait": "--wait", "budget": "--budget", "key": "--key"}
_AT_THE_END = {"report": "--report", "report_answer": "--report-answer"}
_OF_WORKERS = {"jobs": "--jobs", "base_url": "--base-url"}


def checked_queue_flags(arguments: Namespace) -> None:
    """Raise UsageError for flags of `harness batch` that need a queue if there is none, or that conflict with one."""

    def set_flags(names: Mapping[str, str]) -> str:
        return ", ".join(flag for name, flag in names.items() if getattr(arguments, name))

    if not arguments.queue:
        if flags := set_flags(_OF_A_QUEUE):
            raise UsageError(f"{flags}: this is for a batch in a queue; name one with --queue URL")
    elif flags := set_flags(_OF_WORKERS):
        raise UsageError(f"{flags}: workers do the tasks; give this to `harness worker`")
    elif not arguments.wait and (flags := set_flags(_AT_THE_END)):
        raise UsageError(f"{flags}: tasks have results only at their end; add --wait")

"""File names in a results folder. `harness batch` writes the folder; the questions about logs read it."""

from __future__ import annotations

import re

from harness.regex import regex

TASK, ATTEMPTS, LOG = "task.json", "attempts", "log.jsonl"
"""Names in the folder of a task: the task, and a folder for each attempt at it, with its log."""
_SUMMARY = regex(r"summary(-[0-9]+-of-[0-9]+)?\.jsonl?", re.ASCII)


def summary_name(shard: tuple[int, int] | None) -> str:
    """Return the name, without its ending, of a batch's summary of all its tasks. Each shard writes its own summary."""
    return "summary" if shard is None else "summary-{}-of-{}".format(*shard)


def is_summary(name: str) -> bool:
    """Return whether a file of this name in a results folder is a summary. No task has such a name."""
    return bool(_SUMMARY.fullmatch(name))


def task_of(log: str) -> str:
    """Return the task from the path of its log (`results/TASK/attempts/1/log.jsonl`). Empty for any other log."""
    match log.split("/"):
        case [*_, task, folder, number, name] if (folder, name) == (ATTEMPTS, LOG) and number.isdecimal():
            return task
        case _:
            return ""

"""Commands of the plugin `fleet`: `harness batch`, `harness worker` and `harness queue`."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from harness.app.common_flags import (
    decision_flags,
    filled,
    json_flag,
    number,
    outcome_flags,
    positive_integer,
    work_flags,
)
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def shard(text: str) -> tuple[int, int]:
    """Parse the number of a part and the number of parts: 2 and 8 for `2/8`. Raises ArgumentTypeError."""
    part, _, parts = text.partition("/")
    number_of_part, number_of_parts = positive_integer(part), positive_integer(parts)
    if number_of_part > number_of_parts:
        raise ArgumentTypeError(f"{text!r}: part {number_of_part} of only {number_of_parts}")
    return number_of_part, number_of_parts


def key_name(text: str) -> str:
    """Return the name of an API key, by which a queue is chosen.

    Raises ArgumentTypeError, for example for the key itself.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,23}", text):
        raise ArgumentTypeError("not a name of a key (up to 24 of a-z, 0-9, - and _); never give the key itself")
    return text


def pace(text: str) -> tuple[int, float]:
    """Parse a count and a number of seconds: 10 and 60.0 for `10/60`. Raises ArgumentTypeError."""
    count, _, seconds = text.partition("/")
    return positive_integer(count), number(seconds)


def _batch_flags(parser: ArgumentParser) -> None:
    parser.epilog = 'A task: {"id": "parse-1", "prompt": "Make the test pass.", "cwd": "/srv/repo"}'
    parser.add_argument("tasks", metavar="TASKS", help="the file of tasks, one JSON object per line")
    parser.add_argument(
        "--out", type=filled, metavar="DIR", required=True, help="the folder, or s3:// URL, for the results"
    )
    parser.add_argument(
        "-j", "--jobs", type=positive_integer, metavar="N", help="tasks to run in parallel (default: number of CPUs)"
    )
    parser.add_argument("--shard", type=shard, metavar="I/N", help="the part of the tasks to run: I of N")
    parser.add_argument(
        "--from", dest="source", choices=("swebench",), help="the benchmark whose instances TASKS holds"
    )
    parser.add_argument(
        "--repos", type=filled, metavar="PREFIX", help="the place of their repositories (default: https://github.com/)"
    )
    parser.add_argument(
        "--queue", type=filled, metavar="URL", help="a queue to put the tasks into, for `harness worker`"
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait until the tasks of --queue have ended, then check and report"
    )
    parser.add_argument(
        "--budget", type=number, metavar="DOLLARS", help="cost from which no further task of --queue starts"
    )
    _key_flag(parser)
    work_flags(parser)
    outcome_flags(parser)


def _queue_flag(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--queue", type=filled, required=True, metavar="URL", help="sqlite:///FILE, or postgresql://USER@HOST/NAME"
    )
    _key_flag(parser)


def _key_flag(parser: ArgumentParser) -> None:
    parser.add_argument("--key", type=key_name, metavar="NAME", help="the queue of workers that hold this API key")


def _worker_flags(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Ctrl-C or SIGTERM: the first lets running tasks end, the second returns them, the third kills them."
    )
    _queue_flag(parser)
    parser.add_argument(
        "-j", "--jobs", type=positive_integer, metavar="N", help="tasks to run in parallel (default: number of CPUs)"
    )
    parser.add_argument("--drain", action="store_true", help="end when no task is left")
    parser.add_argument("--for", dest="up_for", type=number, metavar="S", help="seconds after which no task is taken")
    parser.add_argument(
        "--folder",
        type=filled,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder in which tasks may name places",
    )
    parser.add_argument(
        "--out", type=filled, metavar="PREFIX", help="the only folder or URL for results; required for folders"
    )
    parser.add_argument(
        "--lease",
        type=number,
        metavar="S",
        help="seconds without a heartbeat before tasks are reassigned (default: 60)",
    )
    parser.set_defaults(cwd=None)
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but problems")
    work_flags(parser, names_folder=False)
    decision_flags(parser)


def _status_flags(parser: ArgumentParser) -> None:
    _queue_flag(parser)
    parser.add_argument("batch", nargs="?", metavar="BATCH", help="one batch (default: all)")
    parser.add_argument("-w", "--watch", action="store_true", help="draw it again every 2 seconds")
    json_flag(parser, "write one JSON object")


def _limit_flags(parser: ArgumentParser) -> None:
    _queue_flag(parser)
    parser.add_argument("--at-once", type=positive_integer, metavar="N", help="tasks that run at once")
    parser.add_argument(
        "--per-group", type=positive_integer, metavar="N", help="tasks of each group, or else of each repository"
    )
    parser.add_argument("--starts", type=pace, metavar="N/S", help="starts within S seconds: 10/60")


def _task_flags(parser: ArgumentParser) -> None:
    _queue_flag(parser)
    parser.add_argument("batch", metavar="BATCH", help="the batch; `harness queue status` lists them")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks of the batch (default: all)")


_QUEUE = later("harness.plugins.fleet.queue.queue_command", "queue_command")
PLUGIN = Plugin(
    name="fleet",
    commands=(
        CliCommand(
            name="batch",
            help="Run many tasks, each in a folder of its own. A second start runs the remaining tasks.",
            add_flags=_batch_flags,
            run=later("harness.plugins.fleet.batch.batch_command", "batch_command"),
        ),
        CliCommand(
            name="worker",
            help="Run the tasks of a queue that are meant for this version, this policy and these settings.",
            add_flags=_worker_flags,
            run=later("harness.plugins.fleet.queue.worker_command", "worker_command"),
        ),
        CliCommand(
            name="queue status",
            help="Show the content of a queue: batches, ends of tasks, longest running tasks, workers.",
            add_flags=_status_flags,
            run=_QUEUE,
        ),
        CliCommand(
            name="queue cancel",
            help="Remove waiting tasks, and end running ones.",
            add_flags=_task_flags,
            run=_QUEUE,
        ),
        CliCommand(
            name="queue retry",
            help="Run tasks again that failed, were cancelled or given up.",
            add_flags=_task_flags,
            run=_QUEUE,
        ),
        CliCommand(
            name="queue limit",
            help="Set the limits for all tasks of a queue together. A limit that is not given is removed.",
            add_flags=_limit_flags,
            run=_QUEUE,
        ),
    ),
)

"""The flags of `harness worker` and `harness queue`, and those of `harness batch` for a queue."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from harness.app.flag_values import filled, number, whole
from harness.errors import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping


def add_fleet_flags(parser: ArgumentParser, action: str) -> None:
    """Add the flags of `harness worker`; those of `harness queue ACTION` where there is an action."""
    parser.add_argument(
        "--queue", type=filled, required=True, metavar="URL", help="sqlite:///FILE, or postgresql://USER@HOST/NAME"
    )
    _key_flag(parser)
    (_queue_flags(parser, action) if action else _worker_flags(parser))


def add_queued_batch_flags(parser: ArgumentParser) -> None:
    """Add what `harness batch` takes for a queue."""
    parser.add_argument("--queue", type=filled, metavar="URL", help="put them into a queue for `harness worker`")
    parser.add_argument("--wait", action="store_true", help="with --queue: wait for the end, check and report")
    parser.add_argument(
        "--budget", type=number, metavar="DOLLARS", help="with --queue: start nothing once so much was spent"
    )
    _key_flag(parser)


def _worker_flags(parser: ArgumentParser) -> None:
    parser.description = "Do the tasks of a queue that are meant for this version, this policy and these settings."
    parser.epilog = (
        "A first Ctrl-C or SIGTERM lets what runs come to its end, a second gives it back, a third kills it."
    )
    parser.add_argument("-j", "--jobs", type=whole, metavar="N", help="so many at once (else as many as processors)")
    parser.add_argument("--drain", action="store_true", help="end when nothing is left to do")
    parser.add_argument(
        "--for", dest="up_for", type=number, metavar="S", help="take nothing more after so many seconds"
    )
    parser.add_argument(
        "--folder",
        type=filled,
        action="append",
        default=[],
        metavar="DIR",
        help="tasks may name places below this folder",
    )
    parser.add_argument(
        "--out", type=filled, metavar="PREFIX", help="results go below this folder or URL alone; needed for folders"
    )
    parser.add_argument(
        "--lease",
        type=number,
        metavar="S",
        help="taken for lost when silent for so long, and its tasks done elsewhere (60)",
    )
    parser.set_defaults(cwd=None)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but what is wrong")


def _queue_flags(parser: ArgumentParser, action: str) -> None:
    match action:
        case "status":
            parser.description = "Show what a queue holds: batches, how tasks ended, what runs longest, workers."
            parser.add_argument("batch", nargs="?", metavar="BATCH", help="of this batch alone")
            parser.add_argument("-w", "--watch", action="store_true", help="draw it again every 2 seconds")
            parser.add_argument("--json", action="store_true", help="as one object")
        case "limit":
            parser.description = (
                "Set what holds for all tasks of a queue together. A limit that is not given is lifted."
            )
            parser.add_argument("--at-once", type=whole, metavar="N", help="tasks that run at once")
            parser.add_argument("--per-group", type=whole, metavar="N", help="of each group, else of each repository")
            parser.add_argument("--starts", type=pace, metavar="N/S", help="starts in so many seconds: 10/60")
        case _:
            does = "Take tasks out" if action == "cancel" else "Have tasks done again"
            which = (
                "that wait, and end those that run" if action == "cancel" else "that failed, were cancelled or given up"
            )
            parser.description = f"{does} {which}."
            parser.add_argument("batch", metavar="BATCH", help="the batch; `harness queue status` lists them")
            parser.add_argument("tasks", nargs="*", metavar="TASK", help="these tasks alone")


def _key_flag(parser: ArgumentParser) -> None:
    parser.add_argument("--key", type=key_name, metavar="NAME", help="the queue of the workers that hold this API key")


_OF_A_QUEUE = {"wait": "--wait", "budget": "--budget", "key": "--key"}
_AT_THE_END = {"report": "--report", "report_answer": "--report-answer"}
_OF_WORKERS = {"jobs": "--jobs", "base_url": "--base-url"}


def checked_queue_flags(arguments: Namespace) -> None:
    """Raise UsageError for flags of `harness batch` that make no sense with a queue, or without one."""

    def given(names: Mapping[str, str]) -> str:
        return ", ".join(flag for name, flag in names.items() if getattr(arguments, name))

    if not arguments.queue:
        if told := given(_OF_A_QUEUE):
            raise UsageError(f"{told}: this is for a batch in a queue; name one with --queue URL")
    elif told := given(_OF_WORKERS):
        raise UsageError(f"{told}: workers do the tasks; give this to `harness worker`")
    elif not arguments.wait and (told := given(_AT_THE_END)):
        raise UsageError(f"{told}: what came of the tasks is known at their end; add --wait")


def key_name(text: str) -> str:
    """Return the name of an API key, which a queue is called by: never the key itself."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,23}", text):
        raise ArgumentTypeError("a name of the key, not the key: up to 24 of a-z, 0-9, - and _")
    return text


def pace(text: str) -> tuple[int, float]:
    """Return a count and seconds out of `10/60`."""
    count, _, seconds = text.partition("/")
    return whole(count), number(seconds)

"""The flags of runs that nobody watches: `harness run` and `harness batch`; reads nothing."""

from __future__ import annotations

from harness.cli.flag_values import filled, report, shard, whole
from harness.cli.session_flags import session_flags, work_flags

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import ArgumentParser

_RUN_EPILOG = """\
exit codes: 0 done, 1 internal error, 2 usage or policy, 3 hard block, 4 limit, 5 no usable answer, 6 provider
failed, 7 done but calls were refused, 8 the log cannot be written, 130/143 interrupted, 141 stdout was closed"""


def run_flags(parser: ArgumentParser) -> None:
    """Add the flags of `harness run`."""
    parser.description = "Run one prompt; never asks, never reads the terminal."
    parser.epilog = _RUN_EPILOG
    parser.add_argument("prompt", nargs="?", help="what to do; - reads it from stdin")
    parser.add_argument("--prompt-file", type=filled, metavar="FILE", help="read it from a file, {{variables}} and all")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="the value of a {{variable}}")
    parser.add_argument("--no-stdin", action="store_true", help="attach nothing from stdin to the prompt")
    parser.add_argument("--resume", type=filled, metavar="ID", help="go on with a session: how its name begins")
    session_flags(parser)
    parser.add_argument(
        "--done-marker", type=filled, metavar="TEXT", help="end when a command that succeeds prints this line first"
    )
    parser.add_argument(
        "--output-schema", type=filled, metavar="FILE", help="the answer must be JSON that fits this JSON Schema"
    )
    parser.add_argument("--output", choices=("text", "json", "jsonl"), default="text", help="form of stdout")
    _outcome_flags(parser)
    parser.add_argument("--record", type=filled, metavar="FILE", help="keep the model's side of the run as a cassette")
    parser.add_argument("--replay", type=filled, metavar="FILE", help="ask a cassette in the place of a model")
    parser.add_argument("--task", type=filled, metavar="FILE", help="the task of a batch, as JSON; needs --out")
    parser.add_argument("--out", type=filled, metavar="DIR", help="with --task: the folder of what comes of it")


def batch_flags(parser: ArgumentParser) -> None:
    """Add the flags of `harness batch`."""
    parser.description = "Run many tasks, each in a folder of its own; a second start does what is not done yet."
    parser.epilog = 'A task: {"id": "parse-1", "prompt": "Make the test pass.", "cwd": "/srv/repo"}'
    parser.add_argument("tasks", metavar="TASKS", help="the file of tasks, one JSON object a line")
    parser.add_argument("--out", type=filled, metavar="DIR", required=True, help="the folder of what comes of them")
    parser.add_argument("-j", "--jobs", type=whole, metavar="N", help="so many at once (else one a processor)")
    parser.add_argument("--shard", type=shard, metavar="I/N", help="the I-th of N parts of the tasks alone")
    work_flags(parser)
    _outcome_flags(parser)


def _outcome_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="judge and record every call, and run none")
    parser.add_argument("--plan", action="store_true", help="put plan mode over the policy: nothing is changed")
    parser.add_argument("--allow-refusals", action="store_true", help="exit 0 although calls were refused")
    parser.add_argument(
        "--report", type=report, action="append", default=[], metavar="FORM:FILE", help="md, junit, sarif or html"
    )
    parser.add_argument("--report-answer", action="store_true", help="the model's answer in the reports too, fenced")
    parser.add_argument("-q", "--quiet", action="store_true", help="no trace on stderr")

"""The command `harness run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import EXIT_CODES, filled, outcome_flags, session_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _run_flags(parser: ArgumentParser) -> None:
    parser.epilog = EXIT_CODES
    parser.add_argument("prompt", nargs="?", help="the prompt; - reads it from stdin")
    parser.add_argument(
        "--prompt-file", type=filled, metavar="FILE", help="a file with the prompt, which may have {{variables}}"
    )
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="the value of a {{variable}}")
    parser.add_argument("--no-stdin", action="store_true", help="attach nothing from stdin to the prompt")
    parser.add_argument("--resume", type=filled, metavar="ID", help="the session to resume: its ID or the beginning")
    session_flags(parser)
    parser.add_argument(
        "--done-marker",
        type=filled,
        metavar="TEXT",
        help="a line that ends the run when a successful command prints it first",
    )
    parser.add_argument(
        "--output-schema", type=filled, metavar="FILE", help="a JSON Schema; the answer must be JSON that fits it"
    )
    parser.add_argument(
        "--output", choices=("text", "json", "jsonl"), default="text", help="form of stdout (default: text)"
    )
    outcome_flags(parser)
    parser.add_argument(
        "--ask", action="store_true", help="ask the approver of the configuration (default: `harness approve`)"
    )
    parser.add_argument(
        "--record", type=filled, metavar="FILE", help="a cassette to write: the model's side of the run"
    )
    parser.add_argument("--replay", type=filled, metavar="FILE", help="a cassette to ask in place of a model")
    parser.add_argument("--task", type=filled, metavar="FILE", help="one task of a batch, as JSON; needs --out")
    parser.add_argument("--out", type=filled, metavar="DIR", help="folder for the results of --task")


PLUGIN = Plugin(
    name="run",
    commands=(
        CliCommand(
            name="run",
            help="Run one prompt. It never reads the terminal, and asks for approvals only with --ask.",
            add_flags=_run_flags,
            run=later("harness.app.run.run_command", "run_command"),
            holds_session=True,
        ),
    ),
)

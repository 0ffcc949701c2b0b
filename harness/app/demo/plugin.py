"""The command `harness demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import terminal_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _demo_flags(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="fix", help="the scenario (default: fix)")
    parser.add_argument("--answers", metavar="y,y,n", help="answers to the questions, in order")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder")
    terminal_flags(parser)


PLUGIN = Plugin(
    name="demo",
    commands=(
        CliCommand(
            name="demo",
            help="Play a bundled scenario with a scripted model.",
            add_flags=_demo_flags,
            run=later("harness.app.demo.demo_command", "demo_command"),
        ),
    ),
)

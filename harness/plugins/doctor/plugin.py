"""The plugin of doctor, with the command `harness doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import filled, json_flag, model_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _doctor_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 commands can be confined; 2 they cannot, and policies that require it do not run."
    json_flag(parser, "write one JSON object, with every attempt")
    model_flags(parser, optional_name=True)
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="workspace for --model (default: the current folder)")


PLUGIN = Plugin(
    name="doctor",
    commands=(
        CliCommand(
            name="doctor",
            help="Show what this machine can enforce, by trying it in a temporary folder.",
            add_flags=_doctor_flags,
            run=later("harness.plugins.doctor.doctor_command", "doctor_command"),
        ),
    ),
)

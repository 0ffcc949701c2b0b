"""The commands `harness config` and `harness models`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import filled, folder_flag, json_flag, model_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _show_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--origin", action="store_true", help="show where each setting comes from")
    json_flag(parser, "write one JSON object, origins included")
    model_flags(parser)
    folder_flag(parser)


def _list_flags(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit code: 0; 2 usage; 6 the provider gave no list, and the models that are known without it are shown."
    )
    json_flag(parser, "write one JSON object, with the origin of each figure")
    model_flags(parser)
    folder_flag(parser)


def _update_flags(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=filled, metavar="FILE", help="the table, which replaces the previous one")


_CONFIG = later("harness.app.config.config_command", "config_command")
_MODELS = later("harness.app.config.models_command", "models_command")
PLUGIN = Plugin(
    name="config",
    commands=(
        CliCommand(
            name="config show",
            help="Show the settings in force, as TOML. Sends nothing and shows no key.",
            add_flags=_show_flags,
            run=_CONFIG,
            is_light=True,
        ),
        CliCommand(
            name="config path",
            help="Print the path of the user's configuration file, whether or not it exists.",
            run=_CONFIG,
            is_light=True,
        ),
        CliCommand(
            name="models list",
            help="List the models that the provider offers, with limits and prices; `-` marks an unknown value.",
            add_flags=_list_flags,
            run=_MODELS,
        ),
        CliCommand(
            name="models update",
            help="Check a table of prices and context lengths (TOML, with date and source), and keep it as yours.",
            add_flags=_update_flags,
            run=_MODELS,
        ),
    ),
)

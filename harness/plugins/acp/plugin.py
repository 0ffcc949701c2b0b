"""The plugin for the Agent Client Protocol, which adds the command `harness serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import work_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _serve_flags(parser: ArgumentParser) -> None:
    parser.usage = "harness serve --stdio [OPTION ...]"
    parser.epilog = "Exit code: 0 the client closed its side, 2 usage, 8 a log cannot be written, 130/143 interrupted."
    parser.add_argument(
        "--stdio", action="store_true", help="speak JSON lines on stdin and stdout (required: the only transport)"
    )
    parser.add_argument(
        "--records", action="store_true", help="send each record of the log to the client, as _harness/record"
    )
    work_flags(parser, names_folder=False)


PLUGIN = Plugin(
    name="acp",
    commands=(
        CliCommand(
            name="serve",
            help="Let an editor or a program drive sessions by the Agent Client Protocol (agentclientprotocol.com).",
            add_flags=_serve_flags,
            run=later("harness.plugins.acp.serve_command", "serve_command"),
        ),
    ),
)

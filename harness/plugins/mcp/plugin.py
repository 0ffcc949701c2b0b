"""The plugin for MCP: the commands `harness mcp`."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from harness.app.common_flags import filled, folder_flag, json_flag, policy_flag
from harness.plugin import CliCommand, Plugin, later
from harness.tool_kinds import SERVER_NAME

if TYPE_CHECKING:
    from argparse import ArgumentParser


def server_name(text: str) -> str:
    """Return `text` if it is a valid name of an MCP server, which is a part of tool names. Raises ArgumentTypeError."""
    if not re.fullmatch(SERVER_NAME, text):
        raise ArgumentTypeError(
            f"{text!r} is not a server name (up to 32 of A-Z, a-z, 0-9, - and _; no _ at an end, no two in a row)"
        )
    return text


def _proxy_flags(parser: ArgumentParser) -> None:
    parser.usage = "harness mcp proxy --name NAME [--policy FILE] [--log FILE] -- COMMAND ..."
    parser.epilog = "Exit code: the server's; 1 internal error, 2 usage or policy, 8 the log cannot be written."
    parser.add_argument("--name", type=server_name, required=True, help="the server's name in policies and logs")
    _decision_flags(parser)
    parser.add_argument("server", nargs="+", metavar="COMMAND", help="the command that starts the server, after --")
    parser.set_defaults(cwd=None, add_dir=[], copied_from=None)


def _serve_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 the client left; 1 internal error, 2 usage or policy, 8 the log cannot be written."
    folder_flag(parser)
    _decision_flags(parser)
    parser.add_argument(
        "--no-forms",
        action="store_true",
        help="do not ask by forms of the client, since the client may answer them itself",
    )
    parser.add_argument(
        "--permission-prompt",
        action="store_true",
        help="offer the tool `approve`, for --permission-prompt-tool of Claude Code",
    )
    parser.set_defaults(add_dir=[], copied_from=None)


def _decision_flags(parser: ArgumentParser) -> None:
    policy_flag(parser, "a policy file or the name of a shipped policy")
    parser.add_argument("--log", type=filled, metavar="FILE", help="the action log (default: in the state folder)")


def _list_flags(parser: ArgumentParser) -> None:
    json_flag(parser, "write one JSON object per server and tool")


def _check_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 all servers listed their tools, 1 some did not, or listed others than are `pinned`."
    parser.add_argument(
        "name", nargs="?", type=server_name, metavar="NAME", help="one server, with details (default: all, a line each)"
    )


def _login_flags(parser: ArgumentParser) -> None:
    parser.add_argument("name", type=server_name, metavar="NAME", help="the server's name")


def _pin_flags(parser: ArgumentParser) -> None:
    parser.add_argument("name", type=server_name, metavar="NAME", help="the server's name")
    parser.add_argument("tool", nargs="?", type=filled, metavar="TOOL", help="one tool (default: all)")


def _new_pin_flags(parser: ArgumentParser) -> None:
    _pin_flags(parser)
    parser.add_argument(
        "--yes", type=filled, metavar="DIGEST", help="pin, without a question, the tool whose sha256 this is now"
    )


_LOGIN = "harness.plugins.mcp.commands.login_command"
_PIN = later("harness.plugins.mcp.commands.pin_command", "pin_command")
PLUGIN = Plugin(
    name="mcp",
    commands=(
        CliCommand(
            name="mcp proxy",
            help="Stand in front of an MCP server (stdio): judge, ask about and log each call of its tools.",
            add_flags=_proxy_flags,
            run=later("harness.plugins.mcp.commands.proxy_command", "proxy_command"),
        ),
        CliCommand(
            name="mcp serve",
            help="Offer harness's tools to an MCP client (stdio); each call is judged, asked about, confined and logged.",
            add_flags=_serve_flags,
            run=later("harness.plugins.mcp.commands.serve_command", "serve_command"),
        ),
        CliCommand(
            name="mcp list",
            help="List configured MCP servers and the pinned, new and changed tools of each.",
            add_flags=_list_flags,
            run=later("harness.plugins.mcp.commands.list_command", "list_command"),
            is_light=True,
        ),
        CliCommand(
            name="mcp check",
            help="Start configured MCP servers, count their tools, and end them; with NAME, print its tools.",
            add_flags=_check_flags,
            run=later("harness.plugins.mcp.commands.check_command", "check_command"),
        ),
        CliCommand(
            name="mcp pin",
            help="Show what an MCP server says of its tools now, and ask whether to pin it.",
            add_flags=_new_pin_flags,
            run=_PIN,
        ),
        CliCommand(
            name="mcp login",
            help="Log in at an MCP server at a URL, in a browser (OAuth 2.1), and keep the tokens.",
            add_flags=_login_flags,
            run=later(_LOGIN, "login_command"),
        ),
        CliCommand(
            name="mcp logout",
            help="Forget the login at an MCP server.",
            add_flags=_login_flags,
            run=later(_LOGIN, "logout_command"),
            is_light=True,
        ),
        CliCommand(
            name="mcp unpin",
            help="Remove the pins of an MCP server's tools, after asking.",
            add_flags=_pin_flags,
            run=_PIN,
        ),
    ),
)

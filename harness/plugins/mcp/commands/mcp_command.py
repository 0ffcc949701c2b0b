"""`harness mcp`: which of its actions is meant; each has a module of its own."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping


def mcp_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness mcp ACTION` asks and return the exit code. Raises HarnessError."""
    match arguments.action:
        case "proxy":
            from harness.plugins.mcp.commands.proxy_command import proxy_command

            return proxy_command(arguments, environment)
        case "serve":
            from harness.plugins.mcp.commands.serve_command import serve_command

            return serve_command(arguments, environment)
        case "list":
            from harness.plugins.mcp.commands.list_command import list_command

            return list_command(arguments, environment)
        case "check":
            from harness.plugins.mcp.commands.check_command import check_command

            return check_command(arguments, environment)
        case _:
            from harness.plugins.mcp.commands.pin_command import pin_command

            return pin_command(arguments, environment)

"""`harness mcp`: what persons have seen of the tools of MCP servers. The proxy has a module of its own."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.state import State
from harness.mcp.pins import PinFile, ToolPin, servers_in
from harness.text.visible import visible_line


def mcp_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness mcp ACTION` asks and return the exit code. Raises HarnessError."""
    match arguments.action:
        case "proxy":
            from harness.cli.mcp.proxy_command import proxy_command

            return proxy_command(arguments, environment)
        case "serve":
            from harness.cli.mcp.serve_command import serve_command

            return serve_command(arguments, environment)
        case "list":
            return _list(State.of(environment), as_json=arguments.json)
        case _:
            from harness.cli.mcp.pin_command import pin_command

            return pin_command(arguments, environment)


def _list(state: State, *, as_json: bool) -> int:
    lines = [line for name in servers_in(state.mcp) for line in _lines(PinFile(state.mcp, name), as_json=as_json)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not lines and not as_json:
        sys.stdout.write("no tool of any MCP server is known here; `harness mcp proxy` gets to know them\n")
    return Exit.DONE


def _lines(pins: PinFile, *, as_json: bool) -> Iterator[str]:
    for tool, one in sorted(pins.read().items()):
        now = one.listed or one.pinned
        digest = "" if now is None else now.sha256
        if as_json:
            fields: dict[str, JsonValue] = {"server": pins.server, "tool": tool, "is": standing(one), "sha256": digest}
            yield json.dumps(fields)
        else:
            yield visible_line(f"{pins.server}  {tool}  {standing(one)}  {digest[:12]}", 300)


def standing(one: ToolPin) -> str:
    """Return in a word how a tool stands."""
    if one.pinned is None:
        return "new"
    return "pinned" if one.listed is None else "changed"

"""`harness mcp list`: lists the configured servers, and the known tools of each with their pins."""

from __future__ import annotations

import json
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.plugins.mcp.pins import PinFile, ToolPin, pins_folder, servers_in
from harness.plugins.mcp.server_declaration import KEY, ServerDeclaration, shown_command
from harness.redaction.redactor import Redactor
from harness.session.config.settings import settings_from
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.extensions.extensions_here import ExtensionsHere, extensions_here
from harness.session.state import State, current_folder
from harness.terminal.console import complain
from harness.text.visible import visible_line


def list_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Print the servers and tools, and notes on left-out servers on stderr. Return 0. Raises UsageError."""
    state = State.of(environment)
    configuration, redact = configured(arguments, environment), masking(state, environment).redact
    lines = []
    servers = configuration.extensions.in_section(KEY)
    for name in sorted({*servers, *servers_in(pins_folder(state))}):
        declaration = servers.get(name)
        command = None
        if declaration is not None:
            origin, command = configuration.extensions.of(KEY, name), shown_command(declaration, redact)
            lines.append(redact(_declared(declaration, origin, as_json=arguments.json)))
        lines += _lines(PinFile(pins_folder(state), name), command, as_json=arguments.json)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not lines and not arguments.json:
        sys.stdout.write(
            "no MCP server is configured, and no tool of one is known; `harness mcp proxy` gets to know them\n"
        )
    for note in configuration.notes:
        complain(note)
    return Exit.DONE


def configured(arguments: Namespace, environment: Mapping[str, str], *, starts: bool = False) -> ExtensionsHere:
    """Return the extensions that are configured in the current folder. `starts` if a server is started with that folder.

    Raises UsageError.
    """
    folder = os.path.realpath(current_folder())
    tables = settings_from(arguments, environment, folder if starts else None).file.extensions
    return extensions_here(tables, State.of(environment), folder, environment)


def masking(state: State, environment: Mapping[str, str], secrets: Sequence[str] = ()) -> Redactor:
    """Return a redactor of the environment's secrets and of `secrets`. `.mcp.json` may put variables into a command line."""
    folders = current_folder(), environment.get("HOME", "")
    return redactor_for(state, environment, (*secrets_of(environment), *secrets), unless=folders, tell=complain)


def _declared(declaration: ServerDeclaration, origin: str, *, as_json: bool) -> str:
    if as_json:
        fields: dict[str, JsonValue] = (
            {"command": list(declaration.command)} if declaration.command else {"url": declaration.url}
        )
        return json.dumps({"server": declaration.name, "origin": origin, **fields})
    return visible_line(f"{declaration.name}  {way_to(declaration)}  ({origin})", 1_000)


def way_to(declaration: ServerDeclaration) -> str:
    """Return a server's command line or address as text."""
    return f"starts: {shlex.join(declaration.command)}" if declaration.command else f"at {declaration.url}"


def _lines(pins: PinFile, command: str | None, *, as_json: bool) -> Iterator[str]:
    """Yield a line for each tool. `command` is the server's configured command line; `None` if it is not configured."""
    elsewhere = "  (no such server is configured here)" if command is None else ""
    for tool, pin in sorted(pins.read().items()):
        now, state = pin.listed or pin.pinned, standing(pin, command)
        digest = "" if now is None else now.sha256
        if as_json:
            fields: dict[str, JsonValue] = {"server": pins.server, "tool": tool, "is": state, "sha256": digest}
            yield json.dumps({**fields, "configured": command is not None})
        else:
            yield visible_line(f"{pins.server}  {tool}  {state}  {digest[:12]}{elsewhere}", 300)


def standing(pin: ToolPin, command: str | None) -> str:
    """Return the state of a tool: `new`, `pinned` or `changed`. A pin under another command line does not count."""
    if pin.pinned is None or command not in (None, pin.pinned.command):
        return "new"
    return "pinned" if pin.listed is None else "changed"

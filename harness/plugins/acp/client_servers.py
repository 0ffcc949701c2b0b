"""The MCP servers that a client declares for a session, added to those of the user's own configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TypeAlias

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from harness.actions import JsonValue
from harness.record import replace
from harness.session.session_place import SessionPlace
from harness.session.shipped_plugins import part_of, section_of
from harness.text.visible import visible_line

ClientServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
SECTION = "mcp.servers"
MOST_NAME = 200
CLIENT = "the client"


def with_client_servers(place: SessionPlace, servers: Sequence[ClientServer]) -> tuple[SessionPlace, list[str]]:
    """Return `place` with the client's servers, each of which asks before it starts, and notes about those left out.

    A server of the user's configuration takes precedence over one of the same name. Values of the client are sent as they
    are: no variable of the user is put into them.
    """
    entries, notes = dict(place.extensions.in_section(SECTION)), list[str]()
    form = section_of(SECTION).project_file
    for server in servers:
        name = visible_line(server.name, MOST_NAME)
        fields = _entry(server)
        if form is None or not can_serve():
            problem = "pip install 'permission-harness[mcp]'"
        elif fields is None:
            problem = "its transport is not spoken here; stdio and http are"
        elif server.name in entries:
            problem = "one of that name is declared already, and that is used"
        else:
            try:
                entries[server.name] = replace(form.read(server.name, fields, {}), asks=True)
            except ValueError as error:
                problem = str(error)
            else:
                continue
        notes.append(f"the client's MCP server {name} is left out: {problem}")
    origins = {**{(SECTION, name): CLIENT for name in entries}, **place.extensions.origins}
    for secret in part_of(SECTION).secrets(tuple(entries.values()), place.environment):
        place.redactor.learn(secret)
    sections = {**place.extensions.sections, SECTION: entries} if entries else place.extensions.sections
    return replace(place, extensions=replace(place.extensions, sections=sections, origins=origins)), notes


def can_serve() -> bool:
    """Return whether servers of a client can be used: the SDK is installed."""
    return find_spec("mcp") is not None


def _entry(server: ClientServer) -> Mapping[str, JsonValue] | None:
    """Return the server as an entry of `.mcp.json`. `None` for a transport that is not supported."""
    match server:
        case McpServerStdio():
            variables: dict[str, JsonValue] = {variable.name: variable.value for variable in server.env}
            return {"command": server.command, "args": list(server.args), "env": variables}
        case HttpMcpServer():
            headers: dict[str, JsonValue] = {header.name: header.value for header in server.headers}
            return {"type": "http", "url": server.url, "headers": headers}
        case SseMcpServer() | AcpMcpServer():
            return None

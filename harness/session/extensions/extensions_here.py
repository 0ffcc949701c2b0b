"""What holds in one workspace: what the user's own file declares, and what the workspace's files do that the user trusts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.record import Record, replace
from harness.session.config.extension_tables import SERVERS, ExtensionTable, project_tables
from harness.session.extensions.extensions import Extensions, extensions_in
from harness.session.extensions.project_trust import ProjectFile, trusted_files
from harness.session.state import PROJECT_SERVERS, State
from harness.text.visible import visible_line


class ExtensionsHere(Record):
    """What there is, and what a person is told of what is left out."""

    extensions: Extensions
    notes: tuple[str, ...] = ()


def extensions_here(
    own: Sequence[ExtensionTable], state: State, workspace: str, environment: Mapping[str, str]
) -> ExtensionsHere:
    """Return what `own` (the tables of the user's file) and the trusted files of `workspace` declare; asks nothing.

    Of a server of `.mcp.json` that has the name of another, and of one whose variables are not set, a note says that it is
    left out. Raises UsageError, whose text names file, line and key, for tables that are not understood.
    """
    trusted = trusted_files(state, workspace)
    tables, notes = list(own), list(trusted.notes)
    for file in trusted.files:
        if file.name != PROJECT_SERVERS:
            tables += project_tables(file.data, file.name)
    found = extensions_in(tables)
    for file in trusted.files:
        if file.name == PROJECT_SERVERS:
            found, left_out = _with_servers(found, file, environment)
            notes += left_out
    return ExtensionsHere(extensions=found, notes=tuple(notes))


def _with_servers(found: Extensions, file: ProjectFile, environment: Mapping[str, str]) -> tuple[Extensions, list[str]]:
    """Return `found` with the servers of `.mcp.json`, and why some of them are left out."""
    from harness.plugins.mcp.mcp_json import declaration_of, line_of, servers_in

    servers, origins, notes = dict(found.servers), dict(found.origins), []
    for name, table in servers_in(file.data).items():
        origin, shown = f"{file.name}:{line_of(name, file.data)}", visible_line(name, 100)
        if name in servers:
            notes.append(
                f"{origin}: the server {shown} is left out: {origins[SERVERS, name]} declares one of that name"
            )
            continue
        try:
            servers[name] = declaration_of(name, table, environment)
        except ValueError as error:
            notes.append(f"{origin}: the server {shown} is left out: {error}")
            continue
        origins[SERVERS, name] = origin
    return replace(found, servers=servers, origins=origins), notes

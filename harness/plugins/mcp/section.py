"""The table `[mcp.servers.NAME]` of the configuration, and the part of a session that runs these servers.

This is not in plugin.py, since sessions with such a table import this module and need no flags of commands.
"""

from __future__ import annotations

from harness.plugin import EntryFile, SessionPart, SettingsSection, later

_HERE = "harness.plugins.mcp"
SECTION = SettingsSection(
    key="mcp.servers",
    noun="server",
    read=later(f"{_HERE}.server_declaration", "declared"),
    words=later(f"{_HERE}.server_declaration", "declared_words"),
    project_file=EntryFile(
        name=".mcp.json",
        entries=later(f"{_HERE}.mcp_json", "servers_in"),
        line_of=later(f"{_HERE}.mcp_json", "line_of"),
        read=later(f"{_HERE}.mcp_json", "declaration_of"),
        words=later(f"{_HERE}.mcp_json", "entry_words"),
    ),
    judged_call=later(f"{_HERE}.explained_call", "explained_call"),
)
PART = SessionPart(
    section=SECTION.key,
    secrets=later(f"{_HERE}.server_declaration", "secrets_of"),
    make=later(f"{_HERE}.session_servers", "SessionServers"),
)

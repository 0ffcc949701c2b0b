"""What a configuration adds to a session: read whole, or refused with file, line and key."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.errors import UsageError
from harness.session.config.config_file import parse_config
from harness.session.config.extension_tables import TOOL, project_tables
from harness.session.extensions.extensions import Extensions, extensions_in

SERVERS = "mcp.servers"
ALL = """\
model = "m"

[[tool]]
name = "lint"
description = "Checks one file."
argv = ["ruff", "check", "{path}"]
reads = ["{path}"]
[tool.arguments.path]
type = "string"

[[tool]]
name = "free"
description = "Free space."
argv = ["df"]

[mcp.servers.files]
command = ["server-files", "."]
write = ["."]

[mcp.servers.far]
url = "https://mcp.example.org/mcp"

[approver]
command = ["notify"]
"""


def extensions(text: str) -> Extensions:
    return extensions_in(parse_config(text.encode(), "c.toml").extensions)


def test_each_is_known_by_its_name_and_its_place() -> None:
    found = extensions(ALL)
    assert list(found.tools) == ["lint", "free"]
    assert list(found.in_section(SERVERS)) == ["files", "far"]
    assert found.approver is not None
    assert found.approver.command == ("notify",)
    assert [found.of(TOOL, "lint"), found.of(TOOL, "free")] == ["c.toml:3", "c.toml:11"]
    assert [found.of(SERVERS, "files"), found.of(SERVERS, "far")] == ["c.toml:16", "c.toml:20"]
    assert extensions("") == Extensions()


TOOL_LINES = '[[tool]]\nname = "a"\ndescription = "d"\nargv = ["a"]\n'


@all_rows(
    ("text", "said"),
    [
        ("tool = 1\n", "c.toml:1: tool: must be tables: [[tool]]"),
        ("[tool]\nname = 'a'\n", "c.toml:1: tool: must be tables: [[tool]]"),
        ("tool = [1]\n", "c.toml:1: tool: must be tables"),
        ("[[tol]]\n", "c.toml:1: tol: unknown key"),
        ("[mcp]\nservr = 1\n", "c.toml:2: [mcp] servr: unknown key"),
        ("mcp = 1\n", "c.toml:1: mcp: must be tables: [mcp.servers.NAME]"),
        ("[mcp.servers]\nx = 1\n", "c.toml:2: mcp.servers.x: must be a table"),
        ("approver = 'command'\n", "c.toml:1: approver: must be a table"),
        (TOOL_LINES + "network = 1\n", "c.toml:5: [[tool]] network: must be true or false"),
        (TOOL_LINES + "netwrk = true\n", "c.toml:5: [[tool]] has the unknown field 'netwrk'; did you mean network?"),
        (TOOL_LINES + "\n" + TOOL_LINES, "c.toml:6: [[tool]] 'a' is declared already in c.toml:1"),
        ("[mcp.servers.a__b]\ncommand = ['x']\n", "c.toml:1: [mcp.servers.a__b] 'a__b' cannot be the name of a server"),
        ("[mcp.servers.x]\ncommand = ['x']\nseconds = 0\n", "c.toml:3: [mcp.servers.x] seconds: must be a number"),
        ("[approver]\ncommand = ['x']\nsocket = '/x'\n", "c.toml:2: [approver] command"),
    ],
)
def test_invalid_table_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        extensions(text)
    assert said in str(caught.value)


@all_rows(
    ("text", "said"),
    [
        ('[approver]\ncommand = ["yes"]\n', "p.toml:1: approver: unknown table"),
        ('model = "m"\n', "p.toml:1: model: unknown table"),
        ("[terminal]\nvi = true\n", "p.toml:1: terminal: unknown table"),
        ("[[[", "p.toml: is not TOML"),
    ],
)
def test_project_may_add_only_tools_servers_and_hooks(text: str, said: str) -> None:
    assert [table.kind for table in project_tables(TOOL_LINES.encode(), "p.toml")] == [TOOL]
    with pytest.raises(UsageError) as caught:
        project_tables(text.encode(), "p.toml")
    assert said in str(caught.value)

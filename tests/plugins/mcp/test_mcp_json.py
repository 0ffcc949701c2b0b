"""`.mcp.json`: what each entry declares, with the person's variables put in, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rows import all_rows

from harness.plugins.mcp.mcp_json import declaration_of, servers_in, variables_of
from harness.plugins.mcp.server_declaration import ServerDeclaration

ENVIRONMENT = {"TOKEN": "s3cret", "DIR": "/d", "EMPTY": ""}


def declaration(table: dict[str, Any]) -> ServerDeclaration:
    (entry,) = servers_in(json.dumps({"mcpServers": {"srv": table}}).encode()).values()
    return declaration_of("srv", entry, ENVIRONMENT)


DECLARED = [
    ({"command": "npx", "args": ["-y", "${DIR}/x"]}, {"command": ("npx", "-y", "/d/x")}),
    ({"type": "stdio", "command": "a"}, {"command": ("a",)}),
    ({"command": "a", "env": {"B": "x${TOKEN}y", "C": "${NO:-else}${EMPTY:-e}${EMPTY}"}},
        {"command": ("a",), "variables": (("B", "xs3crety"), ("C", "elsee"))}),
    ({"command": "a", "args": ["$TOKEN", "${}", "${1}", "${TOKEN"]}, {"command": ("a", "$TOKEN", "${}", "${1}", "${TOKEN")}),
    ({"command": "a", "write": ["."], "network": True, "seconds": 5},
        {"command": ("a",), "write": (".",), "network": True, "seconds": 5}),
    ({"type": "http", "url": "https://e.org${DIR}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        {"url": "https://e.org/d", "headers": (("Authorization", "Bearer s3cret"),)}),
    ({"command": "a", "headersHelper": "evil", "timeout": 5, "alwaysLoad": True}, {"command": ("a",)}),
]  # fmt: skip


@all_rows(("table", "fields"), DECLARED)
def test_an_entry_declares_a_server(table: dict[str, Any], fields: dict[str, Any]) -> None:
    assert declaration(table) == ServerDeclaration(name="srv", **fields)


REFUSED = [
    ({}, "one of command and url must be there"),
    ({"command": "a", "url": "https://e.org"}, "one of command and url must be there"),
    ({"command": "${NONE}"}, "the variable NONE is not set"),
    ({"command": "a", "env": {"A=B": "x"}}, "env: 'A=B' is not a valid name"),
    ({"command": "a", "env": {"A": "x\0"}}, "has a character that is not allowed"),
    ({"command": "a\ud800"}, "has a character that is not allowed"),
    ({"command": "a", "headers": {"A": "x"}}, "headers: not allowed"),
    ({"url": "https://e.org", "env": {"A": "x"}}, "env: not allowed"),
    ({"url": "https://e.org", "headers": {"A": "x\r\nB: y"}}, "has a character that is not allowed"),
    ({"url": "https://e.org", "headers": {"A:": "x"}}, "headers: 'A:' is not a valid name"),
    ({"url": "http://e.org"}, "must begin with https://"),
    ({"type": "sse", "url": "https://e.org"}, "type: sse is not spoken here"),
]


@all_rows(("table", "why"), REFUSED)
def test_an_entry_that_is_none_is_refused(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError) as caught:
        declaration(table)
    assert why in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_the_variables_that_go_in_are_named() -> None:
    table: Any = {
        "command": "${A}",
        "args": ["${B:-x}${A}"],
        "env": {"${C}": "${D}"},
        "url": "${E}",
        "headers": {"X": "${F}"},
    }
    assert variables_of(table) == ("A", "B", "E", "D", "F")

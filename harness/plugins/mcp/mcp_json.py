"""The servers that a project declares in `.mcp.json`, in the format of other agents.

    {"mcpServers": {NAME: {"command": "npx", "args": ["-y", "a-server"], "env": {"KEY": "${TOKEN}"}}}}

or with `url` and `headers` instead of `command`, `args` and `env`. `${NAME}` is replaced by an environment variable of
the user, and `${NAME:-else}` by `else` if the variable is not set. `write`, `network`, `seconds`, `start_seconds` and
`pinned` have the same meaning as in config.toml. All other keys belong to other agents and are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.mcp.server_declaration import ServerDeclaration, declared, server_words
from harness.record import replace
from harness.regex import regex
from harness.text.fields import Fields
from harness.text.strict_json import NotJsonError, read_one
from harness.text.visible import visible_line

SERVERS = "mcpServers"
MOST_SERVERS = 100
_OURS = ("write", "network", "seconds", "start_seconds", "pinned")
_KINDS = ("stdio", "http", "streamable-http")
_FIELDS = Fields(
    {
        "type?": "text",
        "command?": "filled",
        "args?": "list of text",
        "env?": "object of text",
        "url?": "filled",
        "headers?": "object of text",
    },
    is_open=True,
)
_VARIABLE = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_HALF = regex(r"[\ud800-\udfff]")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


def servers_in(data: bytes) -> Mapping[str, Mapping[str, JsonValue]]:
    """Return the unchanged table of each server in the file, by name. Raises ValueError."""
    try:
        value = read_one(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: byte {error.start}") from None
    except NotJsonError as error:
        raise ValueError(f"is not valid JSON: {error}") from None
    servers = value.get(SERVERS, {}) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f'must be {{"{SERVERS}": {{NAME: {{"command": ...}}}}}}')  # noqa: TRY004
    if len(servers) > MOST_SERVERS:
        raise ValueError(f"declares more than {MOST_SERVERS} servers")
    tables = {}
    for name, table in servers.items():
        if problem := _FIELDS.problem(table):
            raise ValueError(f"{_quoted(name)}: {problem}")
        if isinstance(table, dict):
            tables[name] = table
    return tables


def line_of(name: str, data: bytes) -> int:
    """Return the line number of a server's name after SERVERS. Inexact if the names are written with escapes."""
    words = (json.dumps(word, ensure_ascii=False).encode("utf-8", "surrogatepass") for word in (SERVERS, name))
    at = 0
    for word in words:
        at = max(data.find(word, at), at)
    return data.count(b"\n", 0, at) + 1


def declaration_of(name: str, table: Mapping[str, JsonValue], environment: Mapping[str, str]) -> ServerDeclaration:
    """Return the declaration for an entry of `servers_in`, with variables replaced from `environment`.

    Raises ValueError.
    """
    kind = table.get("type", "stdio" if "command" in table else "http")
    if kind not in _KINDS:
        raise ValueError(f"type: {visible_line(str(kind), 50)} is not spoken here; {', '.join(_KINDS)} are")
    ours: dict[str, object] = {key: table[key] for key in _OURS if key in table}
    if "command" in table:
        ours["command"] = [_put_in(word, environment) for word in (table["command"], *_items(table.get("args")))]
    if "url" in table:
        ours["url"] = _put_in(table["url"], environment)
    declaration = declared(name, ours)
    allowed_key, refused_key = ("env", "headers") if declaration.command else ("headers", "env")
    if table.get(refused_key):
        raise ValueError(
            f"{refused_key}: not allowed for a server with a {'command' if declaration.command else 'url'}"
        )
    pairs = tuple((key, _put_in(value, environment)) for key, value in _pairs(table.get(allowed_key)))
    shape = _NAME if declaration.command else _HEADER
    for key, value in pairs:
        if not shape.fullmatch(key):
            raise ValueError(f"{allowed_key}: {_quoted(key)} is not a valid name")
        if "\0" in value or (declaration.url and not value.isprintable()):
            raise ValueError(f"{allowed_key}: {_quoted(key)} has a character that is not allowed")
    return replace(declaration, **({"variables": pairs} if declaration.command else {"headers": pairs}))


def entry_words(name: str, table: Mapping[str, JsonValue]) -> str:
    """Return a line for the prompt about trust: the program or address of an entry of `servers_in`, and its variables."""
    return server_words(name, table, [table.get("command"), *_items(table.get("args"))], variables_of(table))


def variables_of(table: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the names of the environment variables that an entry of `servers_in` uses, in order of appearance."""
    texts = [
        table.get("command"), *_items(table.get("args")), table.get("url"),
        *(value for key in ("env", "headers") for _, value in _pairs(table.get(key))),
    ]  # fmt: skip
    names = (match.group(1) for text in texts if isinstance(text, str) for match in _VARIABLE.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name))


def _put_in(text: JsonValue, environment: Mapping[str, str]) -> str:
    """Return a text with its variables replaced. Raises ValueError for an unset variable, and for lone surrogates."""

    def value(match: re.Match[str]) -> str:
        name, otherwise = match.groups()
        variable = environment.get(name)
        if variable is None and otherwise is None:
            raise ValueError(f"{_quoted(str(text))}: the variable {name} is not set")
        return variable or otherwise or ""

    if _HALF.search(str(text)):
        raise ValueError(f"{_quoted(str(text))} has a character that is not allowed")
    return _VARIABLE.sub(value, str(text))


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _pairs(value: JsonValue) -> list[tuple[str, JsonValue]]:
    return list(value.items()) if isinstance(value, dict) else []


def _quoted(text: str) -> str:
    return visible_line(repr(text), 100)

"""The declaration of an MCP server in a configuration: its command or address, and its permissions.

[mcp.servers.NAME]
command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]     # or url = "https://..."
env = ["GITHUB_TOKEN"]          # variables passed on, by name
bearer = "VARIABLE"             # of url: the variable that holds the token
client = "ID"                   # of url: the client that is registered for logins, if it cannot register itself
client_secret = "VARIABLE"      # of url: the variable that holds the secret of that client
client_key = "~/keys/mcp.pem"   # of url: its private key, in place of a secret
issuer = "https://..."          # of url: the authorization server at which that client logs in by itself
write = ["."]                   # with command: paths it may write, in addition to its own temporary folder
network = true                  # with command: whether it may use the network
seconds = 60                    # time limit of a call
start_seconds = 30              # time limit until it has listed its tools
pinned = "SHA-256"              # digest of its complete list, which then counts as seen
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from harness.actions import ToolBounds
from harness.record import Record
from harness.session.extensions.started_words import command_words, permission_words, variable_words
from harness.text.fields import Check, Fields
from harness.text.visible import visible_line
from harness.tool_kinds import SERVER_NAME

KEY = "mcp.servers"
"""Header of the configuration tables, without the name of the server."""
DEFAULT_SECONDS = 60.0
START_SECONDS = 30.0
_FIELDS = {
    "command?": "list of word",
    "url?": "url",
    "env?": "list of variable",
    "bearer?": "variable",
    "client?": "filled",
    "client_secret?": "variable",
    "client_key?": "file",
    "issuer?": "url",
    "write?": "list of place",
    "network?": "flag",
    "seconds?": "number above 0, at most 86400",
    "start_seconds?": "number above 0, at most 3600",
    "pinned?": "digest",
}
_OF_COMMAND = ("write", "network", "env")
_OF_URL = ("bearer", "client", "client_secret", "client_key", "issuer")
_VARIABLE = "[A-Za-z_][A-Za-z0-9_]*"


class ServerDeclaration(Record):
    """One server: a command to start, or a URL."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    """Names of environment variables that the server gets in addition to the usual ones."""
    variables: tuple[tuple[str, str], ...] = ()
    """Further variables with values, from `.mcp.json`. They override those of `env`."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers for each request to the URL, from `.mcp.json`."""
    bearer: str = ""
    """Name of the environment variable with the token."""
    client: str = ""
    """ID of the registered client for logins, or the URL of its metadata. Empty: harness registers itself."""
    client_secret: str = ""
    """Name of the environment variable with the secret of that client."""
    client_key: str = ""
    """File with the private key of that client (PEM)."""
    issuer: str = ""
    """Authorization server at which the client logs in by itself. Empty: a user logs in."""
    write: tuple[str, ...] = ()
    """Folders and files that the server may write, named as in `Effects.granted`."""
    network: bool = False
    seconds: float = DEFAULT_SECONDS
    """Maximum duration of a call, in seconds."""
    start_seconds: float = START_SECONDS
    """Maximum seconds to connect and list the tools. A server that is installed at its start takes long."""
    asks: bool = False
    """Whether each session asks before it starts the server, since a client declared it."""
    pinned: str = ""
    """Digest of the complete list of tools. Empty: the user has to review each tool."""

    @property
    def words(self) -> tuple[str, ...]:
        """The command line, or the URL. Pins include it in addition to a tool's description."""
        return self.command or (self.url,)

    def secrets(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the possible secrets sent to the server: its token, and the values in its declaration."""
        values = [value for _, value in (*self.variables, *self.headers)]
        words = [value.rpartition(" ")[2] for _, value in self.headers]  # `Bearer ...`
        variables = [environment.get(name, "") for name in (self.bearer, self.client_secret)]
        return tuple(value for value in (*variables, *values, *words) if value)

    @property
    def is_here(self) -> bool:
        """Whether the server has a URL of this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def takes_login(self) -> bool:
        """Whether the user may log in at the server: it has a URL, and no token and no login of its own."""
        names = [name.lower() for name, _ in self.headers]
        return bool(self.url) and not self.bearer and not self.issuer and "authorization" not in names

    @property
    def bounds(self) -> ToolBounds | None:
        """Bounds of the server's effects. `None` for a server at a URL, whose bounds are unknown."""
        return ToolBounds(write=self.write, network=self.network) if self.command else None


def shown_command(declaration: ServerDeclaration, redact: Callable[[str], str]) -> str:
    """Return the command line or URL of a server for people and pins, with secrets masked."""
    return visible_line(redact(shlex.join(declaration.words)), 10_000)


def declared_words(name: str, table: Mapping[str, Any]) -> str:
    """Return a line for the prompt about trust: the program or address of an unchecked table, and its variables."""
    variables = [*_list(table.get("env")), table.get("bearer"), table.get("client_secret")]
    return server_words(name, table, _list(table.get("command")), variables)


def server_words(name: str, table: Mapping[str, Any], command: Sequence[object], variables: Sequence[object]) -> str:
    """Return the line of `declared_words` for a command line and the names of the server's environment variables."""
    url = table.get("url")
    does = f"is reached at {url}" if url else f"starts: {command_words(command)}"
    return f"MCP server {name} {does}{variable_words(variables)}{permission_words(table)}"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def secrets_of(servers: Iterable[ServerDeclaration], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the possible secrets sent to servers."""
    return tuple(secret for server in servers for secret in server.secrets(environment))


def declared(name: str, table: Mapping[str, object]) -> ServerDeclaration:
    """Return the server that a table declares. Raises ValueError with the key and the problem."""
    if not re.fullmatch(SERVER_NAME, name):
        raise ValueError(
            f"{name[:50]!r} cannot be the name of a server: take letters, digits, - and single _, 32 at most"
        )
    fields = _fields().read(table)
    if ("command" in table) == ("url" in table):
        raise ValueError("one of command and url must be there, and not both")
    kind, refused_keys = ("url", _OF_COMMAND) if "url" in table else ("command", _OF_URL)
    if wrong := next((key for key in refused_keys if key in table), ""):
        raise ValueError(f"{wrong}: not allowed for a server with a {kind}")
    if problem := _login_problem(table):
        raise ValueError(problem)
    return ServerDeclaration(**{"name": name, **fields})


def _login_problem(table: Mapping[str, object]) -> str:
    """Return the problem of the keys of a client that logs in by itself, or an empty string."""
    if "issuer" not in table:
        return (
            "client_key: needs `issuer`, the server at which the client logs in by itself"
            if "client_key" in table
            else ""
        )
    if "bearer" in table:
        return "issuer: not allowed together with bearer"
    if "client" not in table or ("client_secret" in table) == ("client_key" in table):
        return "issuer: needs `client`, and one of client_secret and client_key"
    return ""


@cache
def _fields() -> Fields:
    checks: dict[str, Check] = {
        "word": _word,
        "url": _url,
        "variable": _variable,
        "place": _place,
        "file": _file,
        "list of word": _command,
    }
    return Fields(_FIELDS, checks)


def _text(check: Callable[[str], str]) -> Check:
    return lambda value: check(value) if isinstance(value, str) else "must be a string"


def _word_problem(word: str) -> str:
    return "must not hold a NUL character" if "\0" in word else ""


def _url_problem(url: str) -> str:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "must be of plain ASCII, without blanks"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it raises for what is no port
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "must begin with https:// or http:// and name a host"
    if parts.username is not None or parts.password is not None:
        return "must hold no name and no password: put a token into a variable, and name that as `bearer`"
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        return "must begin with https:// where it is not on this machine"
    return ""


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address means this machine."""
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(\.[0-9]{1,3}){3}", host))


def _place_problem(place: str) -> str:
    from harness.policy.effects import place_problem

    return place_problem(place)


_word = _text(_word_problem)
_url = _text(_url_problem)
_file = _text(lambda path: "" if re.match(r"~?/[^\0]+\Z", path) else "must be a path that begins with / or ~/")
_variable = _text(lambda name: "" if re.fullmatch(_VARIABLE, name) else "must be the name of a variable")
_place = _text(_place_problem)


def _command(value: object) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        return 'must be a list of strings, such as ["npx", "-y", "a-server"]'
    if not value[0].strip():
        return "its first word must name a program"
    return next((problem for word in value if (problem := _word_problem(word))), "")

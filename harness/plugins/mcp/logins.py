"""Logins: the tokens with which the user logged in at servers at a URL (OAuth 2.1). One private file per server.

A login counts only for the exact URL that it was made for. So a project that declares a server by the same name at
another address does not get its tokens. An unreadable file counts as no login, which refuses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.record import Record, field_names
from harness.safe_files import (
    MAY_USE,
    is_locked_within,
    make_private,
    open_private,
    remove_if_there,
    replace_file,
    sync_names,
)
from harness.text.fields import Fields
from harness.text.strict_json import NotJsonError, read_line

ENDING = ".login"
LOCK_SECONDS = 20.0
"""Seconds to wait while another process renews the tokens."""
MOST_BYTES = 1024 * 1024
_SECRETS = ("access_token", "refresh_token", "client_secret")
_FIELDS = Fields(
    {
        "url": "filled",
        "tokens": "object",
        "client": "object",
        "authorization": "object",
        "resource": "object",
        "issuer": "text",
        "expires": "number",
        "scope": "text",
    },
    {"object": lambda value: "" if isinstance(value, dict) else "must be an object"},
)


class StoredLogin(Record):
    """A login at one server. The objects have the fields of the protocol's messages."""

    url: str
    tokens: Mapping[str, JsonValue] = {}
    client: Mapping[str, JsonValue] = {}
    """The registration of harness at the authorization server."""
    authorization: Mapping[str, JsonValue] = {}
    """Metadata of the authorization server (RFC 8414). Empty if it has none."""
    resource: Mapping[str, JsonValue] = {}
    """Metadata of the protected resource (RFC 9728). Empty if the server has none."""
    issuer: str = ""
    """URL of the authorization server, as the MCP server names it. Empty if it names none."""
    expires: float = 0.0
    """Time when the access token expires, in seconds since the epoch. 0 if that is unknown."""
    scope: str = ""
    """The scope that the server demanded after the login, for the next one."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The tokens, and the secret of the registration."""
        values = [part.get(key) for part in (self.tokens, self.client) for key in _SECRETS]
        return tuple(value for value in values if isinstance(value, str) and value)


class LoginFile:
    """The login at one server. Several processes can use the file at the same time."""

    def __init__(self, folder: str, server: str, url: str) -> None:
        """Use the file of a server in `folder`, which need not exist yet. `url` is the server's present URL."""
        self._folder = folder
        self._path = os.path.join(folder, f"{server}{ENDING}")
        self._url = url

    def read(self) -> StoredLogin | None:
        """Return the login for the URL. `None` if there is none, or if the file is not private or invalid."""
        try:
            descriptor = open_private(self._path, os.O_RDONLY, closed=MAY_USE)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        try:
            value = read_line(data)
        except NotJsonError:
            return None
        if len(data) > MOST_BYTES or not isinstance(value, dict) or _FIELDS.problem(value):
            return None
        return StoredLogin(**value) if value["url"] == self._url else None  # type: ignore[arg-type]

    def write(self, login: StoredLogin) -> None:
        """Replace the login. Raises OSError."""
        make_private(self._folder)
        fields = {name: getattr(login, name) for name in field_names(StoredLogin)}
        replace_file(self._path, (json.dumps(fields).encode("ascii"), b"\n"))
        sync_names(self._folder)

    def forget(self) -> bool:
        """Remove the file, for whichever URL it is. Return whether there was one."""
        was_there = os.path.lexists(self._path)
        remove_if_there(self._path)
        return was_there

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from renewing the tokens during the block. Raises UsageError and OSError."""
        make_private(self._folder)
        lock = open_private(f"{self._path}.lock", os.O_RDWR | os.O_CREAT)
        try:
            if not is_locked_within(lock, LOCK_SECONDS):
                raise UsageError(f"another process has held {self._path}.lock for {LOCK_SECONDS:g} seconds")
            yield
        finally:
            os.close(lock)

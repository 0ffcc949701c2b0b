"""One server of the configuration: its state, its list of tools and its errors. Several threads read and write it."""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable
from enum import Enum

from harness.plugins.mcp.server_declaration import ServerDeclaration
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.plugins.mcp.tool_description import ToolDescription
from harness.process.capture import readable
from harness.record import Record
from harness.text.visible import visible_line

MOST_ERROR_BYTES = 16_384
"""Number of bytes kept from the end of a server's stderr."""
MOST_LAST = 300
"""Maximum number of characters of the last line of stderr in a message."""
MOST_NOTES = 50
"""Maximum number of notes kept per server, so that a faulty server cannot fill a screen."""


class Standing(Enum):
    """The state of a server."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    """The server could not be started, or did not answer."""
    ENDED = "ended"


class ServerReport(Record):
    """The state of a server, for people."""

    name: str
    standing: Standing
    reason: str
    """Reason for its failure or end, safe to show."""
    held_by: str
    """Description of the walls that confine the server."""
    tools: tuple[ToolDescription, ...]
    """Listed tools that may be used."""
    digest: str
    """Digest of the complete list, as in `pinned`."""
    notes: tuple[str, ...]
    noise: int
    """Number of output lines that were not messages."""
    errors: str
    """End of the server's stderr, safe to show."""


class ConfiguredServer:
    """One server."""

    def __init__(
        self, declaration: ServerDeclaration, catalog: ToolCatalog, redact: Callable[[str], str] = str
    ) -> None:
        """Create the server. `catalog` has its tools, and `redact` masks secrets in its texts."""
        self.redact = redact
        self.declaration = declaration
        self.name = declaration.name
        self.catalog = catalog
        self.standing = Standing.STARTING
        self.held_by = ""
        self.is_walled = False
        self.noise = 0
        self.unfit: dict[str, str] = {}
        """Tools with invalid schemas, which cannot be offered: the reasons, by name."""
        self.exit_code: int | None = None
        """Exit code of the process, if it ended by itself."""
        self.settled = threading.Event()
        """Set as soon as the server is ready or has failed."""
        self.is_listed = threading.Event()
        """Set while the list of tools is up to date, or the server has ended."""
        self.is_begun_again = False
        """Whether the server ended by itself and is started again, which happens once."""
        self._reason = ""
        self._errors = bytearray()
        self._notes: list[str] = []
        self._told_count = 0
        self._lock = allocate_lock()

    def ready(self) -> None:
        """Set the state to READY, after the tools were listed."""
        self.standing = Standing.READY
        self.is_listed.set()
        self.settled.set()

    @property
    def login_words(self) -> str:
        """Reason for a refused login, with the command or the variable that may mend it."""
        declaration = self.declaration
        if declaration.takes_login:
            return f"the server wants a login: harness mcp login {self.name}"
        if declaration.issuer:
            return (
                f"the server refuses the token that the client {declaration.client} got from {declaration.issuer} (401)"
            )
        place = f"the variable {declaration.bearer}" if declaration.bearer else "its `headers`"
        return f"the server refuses the token in {place} (401)"

    @property
    def rights_words(self) -> str:
        """Reason for a call that the server refused, since the login has too few rights."""
        if self.declaration.takes_login:
            return f"{self.login_words}, with more rights than the last one gave"
        return f"the client {self.declaration.client} lacks rights that the server wants"

    def begin_again(self, reason: str) -> bool:
        """Note that the server ended by itself and is started again. Return False if it was before, or never was ready.

        Until it has listed its tools again, none of them can be called.
        """
        if self.is_begun_again or self.standing is not Standing.READY:
            return False
        self.is_begun_again = True
        self.catalog.changed()
        self.note(f"ended, and is started again, once: {reason}")
        return True

    def over(self, reason: str) -> None:
        """Set the state to ENDED, or to FAILED if the server never was ready. Only the first reason is kept."""
        if self.standing in (Standing.FAILED, Standing.ENDED):
            return
        was_ready = self.standing is Standing.READY
        self._reason = visible_line(self.redact(reason), 1_000)
        self.standing = Standing.ENDED if was_ready else Standing.FAILED
        self.catalog.forget()
        event = "ended, and its tools are gone" if was_ready else "is left out"
        self.note(f"{event}: {self._reason}")
        self.is_listed.set()
        self.settled.set()

    def note(self, text: str) -> None:
        """Store a note for people."""
        with self._lock:
            if len(self._notes) < MOST_NOTES:
                last = "; what follows of this kind is not told" if len(self._notes) == MOST_NOTES - 1 else ""
                self._notes.append(f"MCP server {self.name}: {visible_line(self.redact(text), 2_000)}{last}")

    def news(self) -> list[str]:
        """Return the notes that were not returned before."""
        with self._lock:
            news, self._told_count = self._notes[self._told_count :], len(self._notes)
            return news

    def take_errors(self, block: bytes) -> None:
        """Store output from the server's stderr."""
        with self._lock:
            self._errors += block
            del self._errors[:-MOST_ERROR_BYTES]

    @property
    def errors(self) -> str:
        """End of the server's stderr, safe to show."""
        with self._lock:
            errors = bytes(self._errors)
        if len(errors) == MOST_ERROR_BYTES:
            errors = errors.partition(b"\n")[2]  # in a line that was cut, a part of a secret would not be masked
        return self.redact(readable(errors))

    @property
    def last_words(self) -> str:
        """Last line of stderr, at most MOST_LAST characters."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        return visible_line(lines[-1], MOST_LAST) if lines else ""

    @property
    def reason(self) -> str:
        """Reason why the server cannot be used, safe to show. Empty if it can."""
        return self._reason

    def report(self) -> ServerReport:
        """Return the report for people. Raises UsageError if the file of pins is invalid."""
        return ServerReport(
            name=self.name,
            standing=self.standing,
            reason=self._reason,
            held_by=self.held_by,
            tools=self.catalog.offered(),
            digest=self.catalog.digest,
            notes=tuple(self._notes),
            noise=self.noise,
            errors=self.errors,
        )

"""One server of the configuration: its state, its list and its errors. Read and written by several threads."""

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
"""Maximum number of bytes kept of a server's stderr: its end."""
MOST_LAST = 300
"""Characters of the last line of that."""
MOST_NOTES = 50
"""Maximum number of notes kept per server, so that endless nonsense cannot fill a screen."""


class Standing(Enum):
    """The state of a server."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    """It could not be started, or did not answer."""
    ENDED = "ended"


class ServerReport(Record):
    """The state of a server, for people."""

    name: str
    standing: Standing
    reason: str
    """Reason of its failure or end, safe to show."""
    held_by: str
    """The walls that confine it, in words."""
    tools: tuple[ToolDescription, ...]
    """Tools that it offers and that may be used."""
    digest: str
    """Digest of its whole list: the value for `pinned`."""
    notes: tuple[str, ...]
    noise: int
    """Lines of its output that were no messages."""
    errors: str
    """The end of what it wrote to stderr, safe to show."""


class ConfiguredServer:
    """One server."""

    def __init__(
        self, declaration: ServerDeclaration, catalog: ToolCatalog, redact: Callable[[str], str] = str
    ) -> None:
        """Create the server from its declaration, the catalog of its tools, and a function that masks secrets in its
        texts.
        """
        self.redact = redact
        self.declaration = declaration
        self.name = declaration.name
        self.catalog = catalog
        self.standing = Standing.STARTING
        self.held_by = ""
        self.is_walled = False
        self.noise = 0
        self.unfit: dict[str, str] = {}
        """Reasons by tool name for tools that cannot be offered: their schemas are invalid."""
        self.exit_code: int | None = None
        """Exit code of a process that ended by itself."""
        self.settled = threading.Event()
        """Whether it has been decided that it can, or cannot, be used."""
        self.is_listed = threading.Event()
        """Whether its list was read since it last said that it changed."""
        self._reason = ""
        self._errors = bytearray()
        self._notes: list[str] = []
        self._told_count = 0
        self._lock = allocate_lock()

    def ready(self) -> None:
        """Note that its tools have been listed."""
        self.standing = Standing.READY
        self.is_listed.set()
        self.settled.set()

    def over(self, reason: str) -> None:
        """Note that it cannot be used any more, or never could; the first reason counts."""
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
        """Keep a note for people."""
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
        """Take in what it wrote to its stderr."""
        with self._lock:
            self._errors += block
            del self._errors[:-MOST_ERROR_BYTES]

    @property
    def errors(self) -> str:
        """The end of what it wrote to stderr, safe to show."""
        with self._lock:
            errors = bytes(self._errors)
        if len(errors) == MOST_ERROR_BYTES:
            errors = errors.partition(b"\n")[2]  # of a line that was cut half a secret would not be masked
        return self.redact(readable(errors))

    @property
    def last_words(self) -> str:
        """The last line of that, bounded."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        return visible_line(lines[-1], MOST_LAST) if lines else ""

    @property
    def reason(self) -> str:
        """Reason that it cannot be used, safe to show."""
        return self._reason

    def report(self) -> ServerReport:
        """Return the report for people. Raises UsageError for pins that are not understood."""
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

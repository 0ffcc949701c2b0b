"""A configured server that runs as a process or at a URL. Its end also ends all processes that it started."""

from __future__ import annotations

import os
from _thread import allocate_lock

from harness.errors import UsageError
from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.plugins.mcp.server_walls import ServerStarter
from harness.process.piped_process import PipedProcess
from harness.process.temporary import TemporaryFolder

GRACE_SECONDS = 1.0
"""Seconds that a server gets to exit after the end of its input, and again after SIGTERM."""
_BLOCK_BYTES = 1 << 16
_MOST_BLOCKS = 16
"""Maximum number of blocks of 64 KiB to read from stderr at the end: together as much as a pipe can hold."""


class StartedServer:
    """One server. Any thread may end it, and more than once."""

    def __init__(
        self, server: ConfiguredServer, hurry: int = -1, process: PipedProcess | None = None, errors: int = -1
    ) -> None:
        """Make a started server. `process` is `None` for a server at a URL.

        `errors` is the file descriptor to read its stderr from. As soon as the file descriptor `hurry` is readable, the
        server gets no more time to exit.
        """
        self.server = server
        self._process = process
        self.errors = errors
        self._lock = allocate_lock()
        self._hurry = hurry

    @property
    def process(self) -> PipedProcess:
        """The server's process. Raises UsageError if it was ended."""
        if self._process is None:
            raise UsageError("the server has ended")
        return self._process

    @property
    def is_process(self) -> bool:
        """Whether the server is a process that was not ended."""
        return self._process is not None

    def reap(self) -> None:
        """Reap ended orphans of the server."""
        if self._lock.acquire(blocking=False):  # otherwise another thread ends the server
            try:
                if self._process is not None:
                    self._process.reap()
            finally:
                self._lock.release()

    def end(self) -> None:
        """End the server, with all processes that it started."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            process.close_input()
            self.server.exit_code = process.end(at_once=False, hurry=self._hurry, grace=GRACE_SECONDS)
            self._take_last()
            process.close()
            os.close(self.errors)

    def _take_last(self) -> None:
        """Read the rest of its stderr from the pipe."""
        os.set_blocking(self.errors, False)
        try:
            for _ in range(_MOST_BLOCKS):
                self.server.take_errors(os.read(self.errors, _BLOCK_BYTES))
        except OSError:
            pass  # an orphan that could not be ended keeps the pipe open


def started(server: ConfiguredServer, starter: ServerStarter, temporary: TemporaryFolder, hurry: int) -> StartedServer:
    """Start the process of a server. A server at a URL has none. Raises UsageError if the start fails."""
    server.held_by = starter.held_by(server.declaration)
    if not server.declaration.command:
        return StartedServer(server)
    server.is_walled = starter.confines
    reading, writing = os.pipe()
    try:
        process = starter.start(server.declaration, temporary, writing)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return StartedServer(server, hurry, process, reading)

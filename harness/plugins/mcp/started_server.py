"""A server of the configuration whose process runs, or that is at a URL: its end leaves nothing behind."""

from __future__ import annotations

import os
from _thread import allocate_lock

from harness.errors import UsageError
from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.plugins.mcp.server_walls import ServerStarter
from harness.process.piped_process import PipedProcess
from harness.process.temporary import TemporaryFolder

GRACE_SECONDS = 1.0
"""Seconds that a server has to end by itself at the end of its input, and again after SIGTERM."""
_BLOCK_BYTES = 1 << 16
_MOST_BLOCKS = 16
"""Maximum number of blocks of 64 KiB each: as much as a pipe holds."""


class StartedServer:
    """One server. It may be ended by any thread, and more than once."""

    def __init__(
        self, server: ConfiguredServer, hurry: int = -1, process: PipedProcess | None = None, errors: int = -1
    ) -> None:
        """Take its process, where it has one, and where its stderr is read from. It gets no grace any more when the
        descriptor `hurry` can be read from."""
        self.server = server
        self._process = process
        self.errors = errors
        self._lock = allocate_lock()
        self._hurry = hurry

    @property
    def process(self) -> PipedProcess:
        """Its process. Raises UsageError where it has none any more."""
        if self._process is None:
            raise UsageError("the server has ended")
        return self._process

    @property
    def is_process(self) -> bool:
        """Whether it is a process, which was not ended yet."""
        return self._process is not None

    def reap(self) -> None:
        """Take notice of the ends of what it started and left behind."""
        if self._lock.acquire(blocking=False):  # else it is being ended
            try:
                if self._process is not None:
                    self._process.reap()
            finally:
                self._lock.release()

    def end(self) -> None:
        """End it, with all that it started."""
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
            pass  # what it left running, and could not be ended, holds the pipe


def started(server: ConfiguredServer, starter: ServerStarter, temporary: TemporaryFolder, hurry: int) -> StartedServer:
    """Start a server's process; of one at a URL there is none. Raises UsageError where that is not possible."""
    server.held_by = starter.held_by(server.declaration)
    if not server.declaration.command:
        return StartedServer(server)
    server.is_walled = starter.confines
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        process = starter.start(server.declaration, temporary, writing)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return StartedServer(server, hurry, process, reading)

"""Stdout of a run: the answer, one JSON object, or the log's records as they are written.

INVARIANT: this module does not raise for a lost reader, a full disk or a full pipe. In the first two cases it calls
`on_broken` once, which ends the run. For a full pipe it waits until the run is asked to stop.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import assert_never

from harness.app.run.workflow_commands import CommandFence, escape_json, is_file
from harness.log.order import LogRecord
from harness.system import poll_for
from harness.text.visible import visible

PIECE_BYTES = 4096
"""Maximum number of bytes per write. A pipe that poll(2) reports as writable accepts this many (PIPE_BUF, pipe(7))."""
WAIT_MS = 200
"""Milliseconds between checks for a stop request while the pipe is full."""
PATIENCE = 25
"""Number of such waits without progress after a stop request: 5 s."""

# the same encoding as in the action log, byte for byte
_encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class OutputForm(Enum):
    """The form of stdout."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class Reader(Enum):
    """State of the reader of stdout."""

    THERE = "there"
    GONE = "gone"
    """The reader closed the pipe (EPIPE)."""
    FAILED = "failed"
    """The write failed: a full disk (ENOSPC), an I/O error."""
    STALLED = "stalled"
    """The pipe stayed full until after a stop request."""


class RunOutput:
    """Stdout in one of three forms.

    It writes to the file descriptor, not to Python's buffers, so that no data is left at the end.
    """

    def __init__(
        self,
        form: str,
        on_broken: Callable[[], None],
        *,
        fence: CommandFence | None = None,
        asked_to_stop: Callable[[], bool] = lambda: False,
        patience: int = PATIENCE,
        descriptor: int = 1,
    ) -> None:
        """Create it. `on_broken` is called once, when the reader is gone or a write fails.

        A `fence` means that a GitHub Actions runner may read stdout. Then the answer is fenced, and JSON is written
        without commands. `asked_to_stop` is called while the pipe is full. After it returns true, at most `patience`
        waits of 0.2 s pass without progress.
        """
        self._form = OutputForm(form)
        self._on_broken = on_broken
        self._fence = fence
        self._asked_to_stop = asked_to_stop
        self._patience = patience
        self._descriptor = descriptor
        self._pending = bytearray()
        self._reader = Reader.THERE
        self._writable = poll_for(descriptor)
        self._writable.register(descriptor, select.POLLOUT)
        self._hung_up = poll_for(descriptor)
        self._hung_up.register(descriptor, 0)  # POLLERR, POLLHUP and POLLNVAL are always reported (poll(2))
        self.error_text = ""
        """Message for the user if stdout could not be written. Empty if its reader just closed it."""

    @property
    def takes_commands(self) -> bool:
        """Whether commands for the runner may follow the answer. Stdout must be fenced text, and not a file."""
        fenced = self._form is OutputForm.TEXT and self._fence is not None
        return fenced and self._reader is Reader.THERE and not is_file(self._descriptor)

    def record(self, record: LogRecord) -> None:
        """Write a record of the log, if that is the form. An observer."""
        if not self.is_broken() and self._form is OutputForm.JSONL:
            self._write_json(_encode(record))

    def finish(self, summary: Mapping[str, object], answer: str) -> None:
        """Write the end of the output: the answer, or the JSON object `summary`."""
        match self._form:
            case OutputForm.TEXT:
                if answer:
                    self._write_answer(answer)
            case OutputForm.JSON:
                self._write_json(json.dumps(summary, indent=2))
            case OutputForm.JSONL:
                self._drain()
            case _:
                assert_never(self._form)

    def commands(self, lines: str) -> None:
        """Write complete lines with commands for the runner. Allowed only if `takes_commands`."""
        self._write(lines.encode("utf-8", "backslashreplace"))

    def is_broken(self) -> bool:
        """Return whether stdout is lost, because a write failed or the reader closed it."""
        if self._reader is Reader.THERE and self._hung_up.poll(0):
            self._lose(Reader.GONE)
        return self._reader is not Reader.THERE

    def _write_answer(self, answer: str) -> None:
        if os.isatty(self._descriptor):
            answer = _marked(answer)
        text = f"{answer}\n" if self._fence is None else self._fence.around(answer)
        # characters that the locale's encoding lacks are escaped
        self._write(text.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "backslashreplace"))

    def _write_json(self, text: str) -> None:
        if self._fence is not None:
            text = escape_json(text)
        self._write(f"{text}\n".encode("ascii"))

    def _write(self, data: bytes) -> None:
        # Kept until it is written. A line cut by an interrupt is completed before the next one begins.
        self._pending += data
        self._drain()

    def _drain(self) -> None:
        while self._pending and self._reader is Reader.THERE:
            if not self._wait():
                self._lose(Reader.STALLED)
                return
            try:
                count = os.write(self._descriptor, self._pending[:PIECE_BYTES])
            except BlockingIOError:  # another writer was faster, and another program made the pipe non-blocking
                continue
            except BrokenPipeError:
                self._lose(Reader.GONE)
            except OSError as error:
                self.error_text = f"stdout cannot be written: {error.strerror}"
                self._lose(Reader.FAILED)
            else:
                del self._pending[:count]

    def _wait(self) -> bool:
        """Wait until a write can proceed or would fail. Return False if the wait ended because of a stop request."""
        patience = self._patience
        while not self._writable.poll(WAIT_MS):
            patience -= self._asked_to_stop()
            if patience <= 0:
                self.error_text = "stdout is not read; what was to be written there is not complete"
                return False
        return True

    def _lose(self, reader: Reader) -> None:
        """Redirect stdout to /dev/null, so that no later write waits or fails. This includes Python's flush at exit."""
        self._reader = reader
        self._pending.clear()
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, self._descriptor)
        os.close(null)
        self._on_broken()


def _marked(text: str) -> str:
    """Return the answer for a terminal. It is indented, so that no line looks like a line of the trace."""
    return "\n".join(f"  {line}" if line else "" for line in visible(text).split("\n"))

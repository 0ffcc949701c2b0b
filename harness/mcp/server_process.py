"""The server: started as its client would have started it, in a group of its own, and ended with all that it started."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.process.guard import MARK_VARIABLE
from harness.process.hardening import adopt_orphans
from harness.process.survivors import Survivors, send

if TYPE_CHECKING:
    from subprocess import Popen

GRACE_SECONDS = 2.0
"""Between the end of its input and SIGTERM, and between that and SIGKILL (MCP, lifecycle: shutdown)."""
SETTLE_SECONDS = 0.2
"""How long what it started has to end by itself when it has ended."""
_STEP_SECONDS = 0.01


class ServerProcess:
    """One server, with a pipe to it and one from it; its stderr is ours. To be made in the main thread, and ended by `end`."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it. Raises UsageError where that is not possible."""
        import subprocess

        adopt_orphans()
        self._survivors = Survivors(confined=False)
        variables = {**environment, MARK_VARIABLE: f"{self._survivors.mark:x}"}
        try:
            self._process: Popen[bytes] = subprocess.Popen(
                list(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=variables,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._survivors.close()
            raise UsageError(f"the server cannot be started: {words[0]}: {error}") from None
        self._survivors.started(self._process.pid, bounded=False)
        self.exit = os.pidfd_open(self._process.pid)
        """Can be read from when it has ended."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a process without its pipes")
        self.input = self._process.stdin.fileno()
        self.output = self._process.stdout.fileno()

    def close_input(self) -> None:
        """Let it read the end of its input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def reap(self) -> None:
        """Take notice of the ends of what it started and left behind."""
        self._survivors.reap()

    def close(self) -> None:
        """Let go of what is left of it, when it was ended and its output was read."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        os.close(self.exit)

    def has_ended(self, seconds: float, hurry: int | None = None) -> bool:
        """Wait for its end, so long at most, and until `hurry` can be read from; say whether it has come."""
        waiting = select.poll()
        for descriptor in (self.exit, *(() if hurry is None else (hurry,))):
            waiting.register(descriptor, select.POLLIN)
        return self.exit in {descriptor for descriptor, _ in waiting.poll(int(seconds * 1000))}

    def end(self, *, at_once: bool, hurry: int | None = None) -> int | None:
        """Wait for its end, and bring it about: by SIGTERM after GRACE_SECONDS, or `at_once`, and then by SIGKILL.

        There is no grace any more when the descriptor `hurry` can be read from. Leaves nothing behind of what it started.
        Returns its exit code, 128 and the signal's number where it was a signal; None where it was ended from here.
        """
        ended_itself = self.has_ended(0 if at_once else GRACE_SECONDS, hurry)
        for number in () if ended_itself else (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if self.has_ended(GRACE_SECONDS):
                break
        self._end_rest()
        if not self.has_ended(0):  # inside the kernel, say: it cannot be killed
            return None
        code = self._process.wait()
        return (code if code >= 0 else 128 - code) if ended_itself else None

    def _end_rest(self) -> None:
        """End what it left running. INVARIANT: it is not reaped before, so that its number names no other group."""
        for numbers, seconds in (
            ((), SETTLE_SECONDS),
            ((signal.SIGTERM, signal.SIGCONT), GRACE_SECONDS),
            ((signal.SIGKILL,), GRACE_SECONDS),
        ):
            left = self._survivors.left()
            if left and numbers:
                send(left, *numbers)
            deadline = time.monotonic() + seconds
            while (left := self._survivors.left()) and time.monotonic() < deadline:
                if signal.SIGKILL in numbers:
                    send(left, signal.SIGKILL)
                time.sleep(_STEP_SECONDS)
            if not left:
                break
        self._survivors.close()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except OSError:
            pass

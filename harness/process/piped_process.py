"""A program with pipes: started in a group of its own, and ended with all that it started; walled where its launch is."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.process.guard import MARK_VARIABLE
from harness.process.hardening import adopt_orphans
from harness.process.start import Latch, Launch, NotConfinedError, becoming, find_bash, start
from harness.process.survivors import Survivors, send
from harness.record import replace

if TYPE_CHECKING:
    from subprocess import Popen

GRACE_SECONDS = 2.0
"""Between the end of its input and SIGTERM, and between that and SIGKILL."""
SETTLE_SECONDS = 0.2
"""Seconds for its own processes to end by themselves after its end."""
STDERR = 2
"""That of this process."""
_STEP_SECONDS = 0.01


class PipedProcess:
    """One program, with a pipe to it and one from it. To be ended by `end`."""

    def __init__(self, launch: Launch, noun: str, *, is_bound: bool = False, errors: int = STDERR) -> None:
        """Start it; its stderr is `errors`. Raises UsageError, about `noun`, if that is not possible.

        With `is_bound` it begins once it is bound and marked as commands are, so that none of its processes can be lost.
        """
        adopt_orphans()
        self._survivors = Survivors(confined=launch.confine is not None or bool(launch.prefix))
        pipes: list[int] = []
        try:
            for _ in range(2):
                pipes += os.pipe2(os.O_CLOEXEC)
            reads, self.input, self.output, writes = pipes
            with Latch() if is_bound else nullcontext() as latch:
                process = start(self._marked(launch, latch), reads, writes, errors)
                self._process: Popen[bytes] = process
                self._survivors.started(process.pid, bounded=is_bound)
                if latch is not None:
                    latch.lift()
            self.exit = os.pidfd_open(process.pid)
            """Can be read from when it has ended."""
        except (OSError, ValueError) as error:
            self._survivors.close()
            for descriptor in pipes:
                os.close(descriptor)
            reason = error.strerror if isinstance(error, NotConfinedError) else error
            problem = "cannot be confined" if isinstance(error, NotConfinedError) else "cannot be started"
            raise UsageError(f"{noun} {problem}: {launch.argv[0]}: {reason}") from None
        os.close(reads)
        os.close(writes)
        self._input_open = True

    def _marked(self, launch: Launch, latch: Latch | None) -> Launch:
        """Return the launch of a program that can be known; with a latch, of a bash that waits and becomes that program."""
        variables = {**launch.environment, MARK_VARIABLE: f"{self._survivors.mark:x}"}
        if latch is None:
            return replace(launch, environment=variables)
        bash = find_bash(())
        if not bash:
            raise FileNotFoundError("bash, which starts confined programs, was not found")
        return replace(
            launch,
            argv=becoming(launch.argv),
            executable=bash,
            environment={**variables, **latch.variables},
            descriptors=(*launch.descriptors, *latch.descriptors),
        )

    def close_input(self) -> None:
        """Let it read the end of its input."""
        if self._input_open:
            self._input_open = False
            os.close(self.input)

    def reap(self) -> None:
        """Take notice of the ends of what it started and left behind."""
        self._survivors.reap()

    def close(self) -> None:
        """Let go of what is left of it, when it was ended and its output was read."""
        self.close_input()
        os.close(self.output)
        os.close(self.exit)

    def has_ended(self, seconds: float, hurry: int | None = None) -> bool:
        """Wait for its end, so long at most, and until `hurry` can be read from; say whether it has come."""
        waiting = select.poll()
        for descriptor in (self.exit, *(() if hurry is None else (hurry,))):
            waiting.register(descriptor, select.POLLIN)
        return self.exit in {descriptor for descriptor, _ in waiting.poll(int(seconds * 1000))}

    def end(self, *, at_once: bool, hurry: int | None = None, grace: float = GRACE_SECONDS) -> int | None:
        """Wait for its end, and cause it: by SIGTERM after `grace` seconds, or `at_once`, and then by SIGKILL.

        The grace ends as soon as the descriptor `hurry` is readable. All its processes end. Returns its exit code, or
        128 and the signal's number; `None` if it was ended from here.
        """
        ended_itself = self.has_ended(0 if at_once else grace, hurry)
        for number in () if ended_itself else (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if self.has_ended(grace):
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
            remaining = self._survivors.remaining()
            if remaining and numbers:
                send(remaining, *numbers)
            deadline = time.monotonic() + seconds
            while (remaining := self._survivors.remaining()) and time.monotonic() < deadline:
                if signal.SIGKILL in numbers:
                    send(remaining, signal.SIGKILL)
                time.sleep(_STEP_SECONDS)
            if not remaining:
                break
        self._survivors.close()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except OSError:
            pass

"""A program with pipes: started in its own process group, and ended with all its descendants.

It runs inside walls if its launch has them.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import nullcontext

from harness.errors import UsageError
from harness.process.group import survivors_of
from harness.process.guard import MARK_VARIABLE
from harness.process.hardening import adopt_orphans
from harness.process.start import Latch, Launch, NotConfinedError, StartedProgram, becoming, find_bash, start
from harness.process.survivors import send
from harness.record import replace
from harness.system import exit_descriptor

GRACE_SECONDS = 2.0
"""Seconds between the end of the program's input and SIGTERM, and between SIGTERM and SIGKILL."""
SETTLE_SECONDS = 0.2
"""Seconds that descendants of the program get to exit after it has exited."""
STDERR = 2
"""The stderr of this process."""
_STEP_SECONDS = 0.01


class PipedProcess:
    """One program, with a pipe to its stdin and one from its stdout. Call `end` to end it."""

    def __init__(self, launch: Launch, noun: str, *, is_bound: bool = False, errors: int = STDERR) -> None:
        """Start the program with the stderr `errors`. Raises UsageError, naming `noun`, if it cannot be started.

        With `is_bound` the program waits until its limits and mark are set like those of commands, so that none of its
        processes can be missed.
        """
        adopt_orphans()
        self._survivors = survivors_of(launch)
        pipes: list[int] = []
        try:
            for _ in range(2):
                pipes += os.pipe()
            reads, self.input, self.output, writes = pipes
            with Latch() if is_bound else nullcontext() as latch:
                process = start(self._marked(launch, latch), reads, writes, errors)
                self._process: StartedProgram = process
                self._survivors.started(process.pid, bounded=is_bound)
                if latch is not None:
                    latch.lift()
            self.exit = exit_descriptor(process.pid)
            """Descriptor that becomes readable when the program has ended."""
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
        """Return the launch with the mark in its environment.

        With a latch it starts a bash that waits and then becomes the program.
        """
        variables = {**launch.environment, MARK_VARIABLE: f"{self._survivors.mark:x}"}
        if latch is None:
            return replace(launch, environment=variables)
        bash = find_bash(())
        if not bash:
            raise FileNotFoundError("bash, which starts the program, was not found")
        return replace(
            launch,
            argv=becoming(launch.argv),
            executable=bash,
            environment={**variables, **latch.variables},
            descriptors=(*launch.descriptors, *latch.descriptors),
        )

    def close_input(self) -> None:
        """Close the program's input, so that it reads its end."""
        if self._input_open:
            self._input_open = False
            os.close(self.input)

    def reap(self) -> None:
        """Reap the ended processes that the program started and abandoned."""
        self._survivors.reap()

    def close(self) -> None:
        """Close the remaining descriptors, after the program was ended and its output was read."""
        self.close_input()
        os.close(self.output)
        os.close(self.exit)

    def has_ended(self, seconds: float, hurry: int | None = None) -> bool:
        """Wait at most `seconds` for the program's end, or until `hurry` is readable. Return whether it has ended."""
        waiting = select.poll()
        for descriptor in (self.exit, *(() if hurry is None else (hurry,))):
            waiting.register(descriptor, select.POLLIN)
        return self.exit in {descriptor for descriptor, _ in waiting.poll(int(seconds * 1000))}

    def end(self, *, at_once: bool, hurry: int | None = None, grace: float = GRACE_SECONDS) -> int | None:
        """Wait for the program's end. Send SIGTERM after `grace` seconds, or `at_once`, and SIGKILL after as many more.

        The wait ends early once the descriptor `hurry` is readable. All descendants are ended too. Returns the exit
        code, or 128 plus the number of the signal that killed the program. `None` if it did not end by itself.
        """
        ended_itself = self.has_ended(0 if at_once else grace, hurry)
        for number in () if ended_itself else (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if self.has_ended(grace):
                break
        self._end_rest()
        if not self.has_ended(0):  # it cannot be killed, for example inside the kernel
            return None
        code = self._process.wait()
        return (code if code >= 0 else 128 - code) if ended_itself else None

    def _end_rest(self) -> None:
        """End the remaining processes.

        INVARIANT: the program is reaped only after this, so that its number cannot become that of another group.
        """
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

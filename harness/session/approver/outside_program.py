"""Questions to an approver program. It gets the question on its stdin and writes the answer to its stdout.

The program is started for each question, and ended with all its descendants. Its answer counts only if it exits with
code 0.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from harness.gate.approval import Approval, nobody
from harness.process.piped_process import PipedProcess
from harness.process.start import Launch
from harness.session.approver.outside_question import MOST_ANSWER_BYTES, AnswerError, OutsideQuestion, approval_from
from harness.session.approver.standing_question import IN_TIME, Watched

_BLOCK = 65_536


class AskedProgram:
    """A question to a program. Implements StandingQuestion."""

    def __init__(
        self,
        question: OutsideQuestion,
        words: Sequence[str],
        environment: Mapping[str, str],
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the program. It runs in the root folder, so that relative names do not refer to the workspace.

        Raises UsageError if it cannot be started.
        """
        self._question = question
        self._unsent = question.line
        self._came = b""
        self._is_open = True
        self._monotonic = monotonic
        self._end = monotonic() + seconds
        launch = Launch(argv=words, executable=words[0], cwd="/", environment=environment)
        self._process: PipedProcess | None = PipedProcess(launch, "the approver's program", errors=subprocess.DEVNULL)
        for descriptor in (self._process.input, self._process.output):
            os.set_blocking(descriptor, False)

    def watched(self) -> Watched:
        """See StandingQuestion."""
        process = self._process
        if process is None:
            return Watched()
        return Watched(
            reads=(process.output, process.exit) if self._is_open else (process.exit,),
            writes=(process.input,) if self._unsent else (),
            seconds=self._end - self._monotonic(),
        )

    def look(self) -> Approval | None:
        """See StandingQuestion."""
        process = self._process
        if process is None:
            return nobody(IN_TIME)
        self._send(process)
        has_ended = process.has_ended(0)
        self._read(process)
        if len(self._came) > MOST_ANSWER_BYTES:
            return nobody("the approver's program wrote more than an answer")
        if not has_ended:
            return nobody(IN_TIME) if self._monotonic() >= self._end else None
        code = self._finished()
        if code != 0:
            return nobody(f"the approver's program ended with exit code {code}")
        try:
            return approval_from(self._came, self._question)
        except AnswerError as error:
            return nobody(f"from the approver's program: {error}")

    def withdraw(self) -> None:
        """See StandingQuestion."""
        self._finished()

    def _finished(self) -> int | None:
        """End the program and its descendants. Return its exit code, or `None` if it did not exit by itself."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.close_input()
        code = process.end(at_once=True)
        process.close()
        return code

    def _send(self, process: PipedProcess) -> None:
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[os.write(process.input, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # it closed its stdin; its answer still counts
            self._unsent = b""
        if not self._unsent:
            process.close_input()

    def _read(self, process: PipedProcess) -> None:
        while self._is_open and len(self._came) <= MOST_ANSWER_BYTES:
            try:
                piece = os.read(process.output, _BLOCK)
            except BlockingIOError:
                return
            self._came += piece
            self._is_open = bool(piece)

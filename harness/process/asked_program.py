"""Run of a program that reads a question from stdin and writes an answer to stdout, in bounded memory and time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from harness.process.command import STANDARD_PACE, Pace, run_group
from harness.process.ended import Ended
from harness.process.start import Launch, becoming, find_bash
from harness.record import Record
from harness.system import memory_file


class KeptBytes:
    """The first bytes of a stream, and the total number of its bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.total = 0
        self._data = bytearray()

    def add(self, block: bytes) -> None:
        """Add the next bytes."""
        self.total += len(block)
        if len(self._data) < self._max_bytes:
            self._data += block[: self._max_bytes - len(self._data)]

    @property
    def data(self) -> bytes:
        """The kept bytes."""
        return bytes(self._data)

    @property
    def is_cut(self) -> bool:
        """Whether the stream had more bytes than were kept."""
        return self.total > len(self._data)


class ProgramAnswer(Record):
    """Exit and output of a program."""

    end: Ended
    output: bytes
    errors: bytes
    """The beginning of its stderr."""
    is_cut: bool
    """Whether the program printed more than `output` has."""


def ask_program(  # noqa: PLR0913 - the facts of a run, all passed by name
    argv: Sequence[str],
    question: bytes,
    *,
    environment: Mapping[str, str],
    folder: str,
    seconds: float,
    most_bytes: int,
    stops: Callable[[], int] | None = None,
    pace: Pace = STANDARD_PACE,
    confine: Callable[[], None] | None = None,
) -> ProgramAnswer:
    """Run the program `argv[0]` in `folder`, with `question` on its stdin.

    `confine` puts the program behind walls (Launch.confine); `None` means no walls. All its processes are ended. The
    first `most_bytes` of its output are kept. Raises the errors of `run_group`.
    """
    bash = find_bash(environment.get("PATH", os.defpath).split(":"))
    if not bash:
        raise FileNotFoundError("no bash was found to start it with")
    output, errors = KeptBytes(most_bytes), KeptBytes(most_bytes)
    # A file in memory, so that a program that never reads cannot block the harness.
    question_file = memory_file("question")
    try:
        _fill(question_file, question)
        launch = Launch(
            argv=becoming(argv),
            executable=bash,
            cwd=folder,
            environment=environment,
            input=question_file,
            confine=confine,
        )
        end = run_group(launch, seconds=seconds, output=output, errors=errors, stops=stops, pace=pace)
    finally:
        os.close(question_file)
    return ProgramAnswer(end=end, output=output.data, errors=errors.data, is_cut=output.is_cut)


def _fill(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
    os.lseek(descriptor, 0, os.SEEK_SET)

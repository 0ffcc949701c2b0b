"""A program with a pipe to it and one from it: what is said where it cannot be started."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.errors import UsageError
from harness.process.piped_process import PipedProcess
from harness.process.start import Launch


def no_walls() -> None:
    raise OSError(1, "no walls")


@all_rows(
    ("noun", "confined", "told"),
    [
        ("the server", False, "the server cannot be started: /no/such/program: [Errno 2] No such file or directory"),
        ("the approver's program", False, "the approver's program cannot be started: /no/such/program: [Errno 2]"),
        ("the server", True, "the server cannot be confined: /no/such/program: no walls"),
        ("the approver's program", True, "the approver's program cannot be confined: /no/such/program: no walls"),
    ],
)
def test_error_of_a_failed_start_names_the_program(noun: str, confined: bool, told: str) -> None:
    program = "/no/such/program"
    launch = Launch(
        argv=(program,), executable=program, cwd="/", environment={}, confine=no_walls if confined else None
    )
    with pytest.raises(UsageError) as raised:
        PipedProcess(launch, noun)
    assert str(raised.value).startswith(told)

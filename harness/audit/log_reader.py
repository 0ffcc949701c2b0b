"""An action log, read by another program."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.audit.calls import LoggedCall, logged_calls
from harness.declared_types import check_arguments
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import Verification, verify


class LogReader:
    """One log file. It may be read any number of times, also while it is written.

    The texts in a log come from models, files and processes. Pass them through `visible` before you print them.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the file. Nothing is read yet."""
        check_arguments(LogReader.__init__, locals())
        self.path = os.fspath(path)

    def records(self) -> Iterator[LogRecord]:
        """Yield the records in order. Raises LogError for a file or a line that cannot be read."""
        return read_log(self.path)

    def calls(self) -> Iterator[LoggedCall]:
        """Yield each call with its decision, answer and outcome, once it has ended. Open calls come last.

        Raises LogError.
        """
        return logged_calls(self.path, self.records())

    def questions(self) -> Iterator[LoggedCall]:
        """Yield the calls about which an approver was asked: see `asked`, `answer`, `answered_by` and `waited`.

        Raises LogError.
        """
        return (call for call in self.calls() if call.asked)

    def verify(self, head: str | None = None) -> Verification:
        """Check the chain, the fields and the order of all records. `problem` is empty for a sound log.

        With `head`, the hash that was noted when the log ended, a missing end is found too (`passed_head`). Raises
        LogError if the file cannot be read.
        """
        check_arguments(LogReader.verify, locals())
        return verify(self.path, head)

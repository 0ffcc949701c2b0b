"""Notes the head of a log that is being written, while it is: an observer of its records; it changes no log."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.cli.state import State
from harness.cli.streams import complain
from harness.errors import LogError

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.action_log import ActionLog

NOTE_RECORDS = 256
"""A head is noted at least once in so many records."""
NOTE_SECONDS = 60.0
"""And once in so many seconds, while records come."""


class HeadNotes:
    """Notes the head of a log that is being written: an observer of its records, so that a kill leaves a recent head.

    What cannot be noted is left out: a run does not fail for it before its end, when `State.record_head` raises. Where that
    is so at the first record, it is told.
    """

    def __init__(
        self,
        state: State,
        log: ActionLog,
        *,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = complain,
    ) -> None:
        """`clock` gives seconds, and is never set back."""
        self._state = state
        self._log = log
        self._clock = clock
        self._tell: Callable[[str], None] | None = tell
        self._next_count = 0
        """The first record is noted at once."""
        self._next_at = 0.0

    def record(self, record: object) -> None:  # noqa: ARG002 - an observer's one argument; the log knows more
        """Note the head if it is time to."""
        if self._log.count < self._next_count and self._clock() < self._next_at:
            return
        self._next_count = self._log.count + NOTE_RECORDS
        self._next_at = self._clock() + NOTE_SECONDS
        try:
            self._state.record_head(self._log, closed=False)
        except LogError as error:
            if self._tell is not None:
                self._tell(str(error))
        self._tell = None

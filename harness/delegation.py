"""What a helper is asked, and what it gave: the words between the tool `delegate` and whoever runs helpers."""

from __future__ import annotations

from enum import Enum

from harness.actions import JsonValue
from harness.messages import RunResult
from harness.record import Record


class HelperPolicy(Enum):
    """What decides on the calls of a helper."""

    READ_ONLY = "read-only"
    """The policy of whoever asks, held to reading."""
    SAME = "same"
    """The policy of whoever asks; the helper works in a copy of its own."""


class DelegatedTask(Record):
    """What a helper is asked. Text of a model."""

    task: str
    tools: tuple[str, ...] = ()
    """Names of the tools that it shall have; none: all that helpers can have."""
    policy: HelperPolicy = HelperPolicy.READ_ONLY


class HelperChanges(Record):
    """What a helper changed in its copy."""

    patch: str = ""
    """As a patch; or the beginning of it."""
    patch_file: str = ""
    """Where the whole patch is kept; empty where nothing was changed."""
    notes: tuple[str, ...] = ()
    """What else there is to know: what no patch holds."""

    @property
    def extra(self) -> dict[str, JsonValue]:
        """The facts that the log keeps: the place of the patch."""
        return {"patch_file": self.patch_file} if self.patch_file else {}


class DelegatedResult(Record):
    """What a helper came to."""

    helper: int
    """Its number in the session of whoever asked, from 1."""
    ended: RunResult
    """Its last words, and what it took. Text of a model."""
    changes: HelperChanges = HelperChanges()

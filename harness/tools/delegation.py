"""Task and result of a helper, as exchanged between the tool `delegate` and the runner of helpers."""

from __future__ import annotations

from enum import Enum

from harness.actions import JsonValue
from harness.messages import RunResult
from harness.record import Record


class HelperPolicy(Enum):
    """The policy for the calls of a helper."""

    READ_ONLY = "read-only"
    """The caller's policy, restricted to reading."""
    SAME = "same"
    """The caller's policy; the helper works in a copy of its own."""


class DelegatedTask(Record):
    """The task of a helper. Text of a model."""

    task: str
    tools: tuple[str, ...] = ()
    """Names of the tools that it shall have; none: all that helpers can have."""
    policy: HelperPolicy = HelperPolicy.READ_ONLY


class HelperChanges(Record):
    """A helper's changes in its copy."""

    patch: str = ""
    """The changes as a patch, or its beginning."""
    patch_file: str = ""
    """Path of the whole patch. Empty without changes."""
    notes: tuple[str, ...] = ()
    """Further notes, about changes that a patch cannot hold."""

    @property
    def extra(self) -> dict[str, JsonValue]:
        """The facts that the log keeps: the place of the patch."""
        return {"patch_file": self.patch_file} if self.patch_file else {}


class DelegatedResult(Record):
    """Result of a helper."""

    helper: int
    """Number of the helper in the caller's session, from 1."""
    ended: RunResult
    """Last words and usage of the helper. Text of a model."""
    changes: HelperChanges = HelperChanges()

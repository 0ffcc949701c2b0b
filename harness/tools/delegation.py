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
    """The caller's policy. The helper works in a separate copy of the repository."""


class DelegatedTask(Record):
    """The task of a helper. The text comes from a model."""

    task: str
    tools: tuple[str, ...] = ()
    """Names of the tools that the helper gets. If empty, all tools that helpers can have."""
    policy: HelperPolicy = HelperPolicy.READ_ONLY


class HelperChanges(Record):
    """The changes that a helper made in its copy."""

    patch: str = ""
    """The changes as a patch, or its beginning."""
    patch_file: str = ""
    """Path of the whole patch. Empty without changes."""
    notes: tuple[str, ...] = ()
    """Notes on changes that a patch cannot contain."""

    @property
    def extra(self) -> dict[str, JsonValue]:
        """Fields for the log: the path of the patch, if there is one."""
        return {"patch_file": self.patch_file} if self.patch_file else {}


class DelegatedResult(Record):
    """Result of a helper."""

    helper: int
    """Number of the helper in the caller's session, from 1."""
    ended: RunResult
    """Answer, stop reason and usage of the helper. The text comes from a model."""
    changes: HelperChanges = HelperChanges()

"""Grants that a person keeps for a workspace: a file of their own state folder, read strictly or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.policy.rules import Origin
from harness.policy.session_grants import (
    Grant,
    GrantPattern,
    GrantScope,
    kept_id,
    pattern_fields,
    pattern_from,
    pattern_problem,
)
from harness.record import Record
from harness.safe_files import append_line, open_private

_NOTHING = GrantPattern(tools=())
_GRANT_BEGINS = b'{"access": '
"""So does a line that grants, its keys being sorted, and none that revokes."""


class KeptForWorkspace(Record):
    """What is kept of one workspace."""

    grants: tuple[Grant, ...] = ()
    problem: str = ""
    """Why the file counts for nothing: then there are no grants."""


class KeptGrants:
    """The file of one workspace, one line a grant or the end of one; lines are only ever added, so that ids stay."""

    def __init__(self, folder: str, name: str, workspace: str) -> None:
        """Take the folder of all such files, the name of this one without its ending, and the workspace (links followed)."""
        self.path = os.path.join(folder, f"{name}.jsonl")
        self._workspace = workspace

    def read(self) -> KeptForWorkspace:
        """Return what is granted and not revoked. A file that is not wholly understood counts for nothing."""
        try:
            lines = self._lines()
        except FileNotFoundError:
            return KeptForWorkspace()
        except (OSError, ValueError) as error:
            return KeptForWorkspace(problem=f"{self.path}: {_said(error)}; no grant of it counts")
        grants: dict[str, Grant] = {}
        for number, line in enumerate(lines, start=1):
            try:
                self._take(grants, number, line)
            except (ValueError, RecursionError) as error:
                return KeptForWorkspace(problem=f"{self.path}:{number}: not understood: {error}; no grant of it counts")
        return KeptForWorkspace(grants=tuple(grants.values()))

    def keep(self, pattern: GrantPattern) -> Origin | str:
        """Add a grant, on disk when this returns; return where it stands, or why it cannot be kept."""
        fields = {"workspace": self._workspace, **pattern_fields(pattern)}
        try:
            return Origin(file=self.path, line=self._append(fields))
        except (OSError, ValueError) as error:
            return f"{self.path}: {_said(error)}"

    def revoke(self, identity: str) -> bool:
        """Note the end of a grant; say whether that is on disk."""
        try:
            self._append({"workspace": self._workspace, "revoked": identity})
        except (OSError, ValueError):
            return False
        return True

    def _lines(self) -> list[str]:
        with open(open_private(self.path, os.O_RDONLY), "rb") as file:
            data = file.read()
        if data and not data.endswith(b"\n"):
            raise ValueError("its last line is torn")
        return data.decode("utf-8").split("\n")[:-1]

    def _take(self, grants: dict[str, Grant], number: int, line: str) -> None:
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.get("workspace") != self._workspace:
            raise ValueError("it is of another workspace")
        if fields.keys() == {"workspace", "revoked"}:
            grants.pop(str(fields["revoked"]), None)
            return
        if fields.keys() != {"workspace", *pattern_fields(_NOTHING)}:
            raise ValueError("it has other fields than a grant")
        pattern = pattern_from(fields)
        if problem := pattern_problem(pattern):
            raise ValueError(problem)
        identity = kept_id(pattern)
        origin = Origin(file=self.path, line=number)
        grants[identity] = Grant(id=identity, scope=GrantScope.WORKSPACE, pattern=pattern, origin=origin)

    def _append(self, fields: Mapping[str, JsonValue]) -> int:
        """Add one line; return its number. Raises OSError, and ValueError for a file that counts for nothing.

        A grant that a crash cut short at the end of the file is cut off first: nobody was told that it is kept.
        """
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _cut_off_torn_grant(descriptor)
            if problem := self.read().problem:
                raise ValueError(problem)
            number = len(self._lines()) + 1
            append_line(descriptor, json.dumps(dict(fields), sort_keys=True).encode() + b"\n", alone=True)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return number


def _cut_off_torn_grant(descriptor: int) -> None:
    """INVARIANT: a torn line that may have revoked a grant stays, and with it no grant counts."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    torn = data[data.rfind(b"\n") + 1 :]
    if torn.startswith(_GRANT_BEGINS):
        os.ftruncate(descriptor, len(data) - len(torn))


def _said(error: OSError | ValueError) -> str:
    """Return what went wrong in words: of an OSError without number and path, which stand before it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

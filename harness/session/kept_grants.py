"""Grants that the user keeps for a workspace, in a file in their state folder. One invalid line invalidates the file."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.grant_pattern import GrantPattern, GrantScope, pattern_fields, pattern_from
from harness.policy.rules import Origin
from harness.policy.session_grants import Grant, kept_id, pattern_problem
from harness.record import Record, replace
from harness.safe_files import append_line, make_private, open_private

if TYPE_CHECKING:
    from harness.place_changes import PlaceChange

_NOTHING = GrantPattern(tools=())
MOST_PLACES = 10_000
"""Maximum number of changed places noted for one sleeping grant. More than are ever compared."""
_GRANT_BEGINS = b'{"access": '
"""Beginning of every line with a grant, since keys are sorted. Lines that revoke a grant begin differently."""


class KeptForWorkspace(Record):
    """The kept grants of one workspace."""

    grants: tuple[Grant, ...] = ()
    problem: str = ""
    """Reason to ignore the file, and so all its grants."""


class KeptGrants:
    """The grants file of one workspace. Each line adds, revokes or suspends a grant; lines are only ever appended."""

    def __init__(self, folder: str, name: str, workspace: str, *, now: Callable[[], float] = time.time) -> None:
        """Name the file. `folder` holds all such files, `name` has no extension, `workspace` has its links followed.

        `now` is a clock, in seconds since 1970.
        """
        self.path = os.path.join(folder, f"{name}.jsonl")
        self._workspace = workspace
        self._now = now

    def read(self) -> KeptForWorkspace:
        """Return the grants that are neither revoked nor expired. A file with an invalid line is ignored as a whole."""
        now = _as_text(self._now())
        saved = self._read()
        return replace(saved, grants=tuple(grant for grant in saved.grants if not grant.until or now < grant.until))

    def _read(self) -> KeptForWorkspace:
        """Return the grants that are not revoked, expired or not."""
        try:
            lines = self._lines()
        except FileNotFoundError:
            return KeptForWorkspace()
        except (OSError, ValueError) as error:
            return KeptForWorkspace(problem=f"{self.path}: {_error_text(error)}; no grant of it counts")
        grants: dict[str, Grant] = {}
        for number, line in enumerate(lines, start=1):
            try:
                self._take(grants, number, line)
            except (ValueError, RecursionError) as error:
                return KeptForWorkspace(problem=f"{self.path}:{number}: not understood: {error}; no grant of it counts")
        return KeptForWorkspace(grants=tuple(grants.values()))

    def keep(self, pattern: GrantPattern, days: int | None = None) -> Grant | str:
        """Add a grant for `days` (`None`: until revoked). Return it once it is on disk, or the reason for a failure."""
        return self.keep_until(pattern, "" if days is None else _as_text(self._now() + days * 86_400))

    def keep_until(self, pattern: GrantPattern, until: str) -> Grant | str:
        """Add a grant like `keep`. `until` is its end in the form of `Grant.until`."""
        fields = {"workspace": self._workspace, **pattern_fields(pattern)}
        if until:
            fields["until"] = until
        line = self._append(fields)
        if isinstance(line, str):
            return line
        new_grant = _kept_grant(pattern, Origin(file=self.path, line=line), until)
        return next(
            (grant for grant in self._read().grants if grant.id == new_grant.id), new_grant
        )  # read back, since it may be asleep

    def revoke(self, identity: str) -> str:
        """Revoke a grant. Return the reason for a failure to write that, or an empty string."""
        return self._note({"revoked": identity})

    def sleep(self, identity: str, changes: Sequence[PlaceChange]) -> str:
        """Suspend a grant because of `changes`, or resume it if they are empty. Return the same as `revoke`."""
        from harness.place_changes import change_fields

        return self._note({"asleep": identity, "places": [change_fields(change) for change in changes[:MOST_PLACES]]})

    def _note(self, fields: Mapping[str, JsonValue]) -> str:
        line = self._append({"workspace": self._workspace, **fields})
        return line if isinstance(line, str) else ""

    def _lines(self) -> list[str]:
        with open(open_private(self.path, os.O_RDONLY), "rb") as file:
            data = file.read()
        if data and not data.endswith(b"\n"):
            raise ValueError("the last line is incomplete")
        return data.decode("utf-8").split("\n")[:-1]

    def _take(self, grants: dict[str, Grant], number: int, line: str) -> None:
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.get("workspace") != self._workspace:
            raise ValueError("the line belongs to another workspace")
        if fields.keys() == {"workspace", "revoked"}:
            grants.pop(str(fields["revoked"]), None)
            return
        if fields.keys() == {"workspace", "asleep", "places"}:
            _put_to_sleep(grants, fields["asleep"], fields["places"])
            return
        until = fields.pop("until", "")
        if not fields.keys() >= {"workspace", *pattern_fields(_NOTHING)}:
            raise ValueError("unknown or missing fields")
        pattern = pattern_from(fields)
        if fields.keys() != {"workspace", *pattern_fields(pattern)}:
            raise ValueError("unknown or missing fields")
        if problem := pattern_problem(pattern):
            raise ValueError(problem)
        if until and _as_text(_as_seconds(until)) != until:
            raise ValueError("until: must be a time such as 2026-11-30T12:00:00Z")
        grant = _kept_grant(pattern, Origin(file=self.path, line=number), until)
        # INVARIANT: a suspended grant stays suspended when it is granted again, until its changes are reviewed.
        grants[grant.id] = replace(grant, changed=grants[grant.id].changed) if grant.id in grants else grant

    def _append(self, fields: Mapping[str, JsonValue]) -> int | str:
        """Append one line. Return its number, or the reason for a failure, such as an invalid file.

        An incomplete grant at the end of the file (after a crash) is removed first, since it was never confirmed.
        """
        try:
            return self._written(fields)
        except (OSError, ValueError) as error:
            return f"{self.path}: {_error_text(error)}"

    def _written(self, fields: Mapping[str, JsonValue]) -> int:
        make_private(os.path.dirname(self.path))
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


def _put_to_sleep(grants: dict[str, Grant], identity: object, places: object) -> None:
    """Mark a grant as suspended because of `places`, or as active if there are none. Raises ValueError."""
    if not isinstance(places, list):
        raise ValueError("places is a list")  # noqa: TRY004
    from harness.place_changes import change_from

    changed = tuple(map(change_from, places))
    grant = grants.get(str(identity))
    if grant is not None:
        grants[grant.id] = replace(grant, changed=changed)


def _cut_off_torn_grant(descriptor: int) -> None:
    """Cut off an incomplete last line if it is a grant.

    INVARIANT: an incomplete line that may have revoked a grant stays, and makes the whole file invalid.
    """
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    torn = data[data.rfind(b"\n") + 1 :]
    if torn.startswith(_GRANT_BEGINS):
        os.ftruncate(descriptor, len(data) - len(torn))


def _kept_grant(pattern: GrantPattern, origin: Origin, until: str) -> Grant:
    return Grant(id=kept_id(pattern), scope=GrantScope.WORKSPACE, pattern=pattern, origin=origin, until=until)


_TIME = "%Y-%m-%dT%H:%M:%SZ"


def _as_text(seconds: float) -> str:
    return time.strftime(_TIME, time.gmtime(seconds))


def _as_seconds(text: object) -> float:
    import calendar  # loads `locale`

    return calendar.timegm(time.strptime(str(text), _TIME))


def _error_text(error: OSError | ValueError) -> str:
    """Return the text of an error. For an OSError, number and path are left out, since the caller adds the path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

"""Changes of a tree by one command: for each path its state before and after (`TreeChanges`)."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, cast

from harness.actions import JsonValue
from harness.record import Record


class PathKind(Enum):
    """The kind of a path."""

    NONE = "none"
    """The path does not exist."""
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"
    """A socket, pipe or device."""


def kind_of(mode: int) -> PathKind:
    """Return the kind of a path with this `st_mode`."""
    kinds = {stat.S_IFREG: PathKind.FILE, stat.S_IFDIR: PathKind.FOLDER, stat.S_IFLNK: PathKind.LINK}
    return kinds.get(stat.S_IFMT(mode), PathKind.SPECIAL)


class PathState(Record):
    """State of a path at one moment."""

    kind: PathKind
    mode: int = 0
    """Permission bits, set-id bits included. 0 for links and missing paths."""
    size: int = 0
    """Size of a file in bytes."""
    sha256: str | None = None
    """SHA-256 of a file's content. `None` if it is unknown or must not be recorded."""
    keyed_digest: str | None = None
    """HMAC of the content of a file that a rule denies to read. A plain digest would reveal a short secret."""
    target: str | None = None
    """Text of a link."""
    unkept: str = ""
    """Reason why the content was not kept. Empty if it can be restored."""

    @property
    def is_comparable(self) -> bool:
        """Whether an equal state means an equal content."""
        match self.kind:
            case PathKind.FILE:
                return self.sha256 is not None or self.keyed_digest is not None
            case PathKind.SPECIAL:
                return False
            case PathKind.NONE | PathKind.FOLDER | PathKind.LINK:
                return True

    def has_content_of(self, other: PathState) -> bool:
        """Return whether both states have the same kind and content. Permission bits may differ."""
        return (
            self.kind is other.kind
            and self.is_comparable
            and (self.sha256, self.keyed_digest, self.target) == (other.sha256, other.keyed_digest, other.target)
        )

    def is_same(self, other: PathState) -> bool:
        """Return whether both states are certainly the same: kind, content and permission bits."""
        return self.has_content_of(other) and self.mode == other.mode

    def fields(self) -> dict[str, JsonValue] | None:
        """Return the state in the form of logs: fields with their default are omitted. `None` for a missing path."""
        if self.kind is PathKind.NONE:
            return None
        fields: dict[str, JsonValue] = {"kind": self.kind.value}
        for name in _STATE_FIELDS:
            if value := getattr(self, name):
                fields[name] = value
        return fields

    @classmethod
    def from_fields(cls, fields: JsonValue) -> PathState:
        """Return the state of `fields`. Raises ValueError for fields that `PathState.fields` cannot have returned."""
        if fields is None:
            return ABSENT
        if not isinstance(fields, dict):
            raise ValueError("the state of a path must be an object or null")  # noqa: TRY004
        values = dict(fields)
        kind = PathKind(values.pop("kind", None))
        if kind is PathKind.NONE or not values.keys() <= _STATE_FIELDS.keys():
            raise ValueError("the state of a path has an unknown field or kind")
        for name, value in values.items():
            if type(value) is not _STATE_FIELDS[name] or (name in _DIGESTS and not _is_digest(value)):
                raise ValueError(f"the state of a path has an invalid {name}")
        if kind is PathKind.LINK and not values.get("target"):
            raise ValueError("the state of a link has no target")
        return cls(kind=kind, **cast("dict[str, Any]", values))


_STATE_FIELDS = {"mode": int, "size": int, "sha256": str, "keyed_digest": str, "target": str, "unkept": str}
_DIGESTS = ("sha256", "keyed_digest")
ABSENT = PathState(kind=PathKind.NONE)
"""State of a path that does not exist."""


def _is_digest(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef")


WORKSPACE = "."
"""Path of the workspace itself, whose permission bits alone can change."""


class PathChange(Record):
    """A changed path."""

    path: str
    """Path relative to the workspace, as `os.fsdecode` returns it, or `WORKSPACE`."""
    before: PathState
    after: PathState

    @property
    def is_mode_alone(self) -> bool:
        """Whether only the permission bits changed."""
        return self.before.kind is self.after.kind and self.before.has_content_of(self.after)

    def fields(self) -> dict[str, JsonValue]:
        """Return the change in the form of logs."""
        return {"path": self.path, "before": self.before.fields(), "after": self.after.fields()}

    @classmethod
    def from_fields(cls, fields: JsonValue) -> PathChange:
        """Return the change of `fields`. Raises ValueError for fields that `PathChange.fields` cannot have returned."""
        if not isinstance(fields, dict) or fields.keys() != {"path", "before", "after"}:
            raise ValueError("a change must have a path, a state before and a state after")
        return cls(
            path=_plain_path(fields["path"]),
            before=PathState.from_fields(fields["before"]),
            after=PathState.from_fields(fields["after"]),
        )


def _plain_path(value: JsonValue) -> str:
    """Return a path relative to the workspace. Raises ValueError if it is not plain."""
    if value == WORKSPACE:
        return WORKSPACE
    if not isinstance(value, str) or "\0" in value or not {"", ".", ".."}.isdisjoint(value.split("/")):
        raise ValueError("a change must have a plain path relative to the workspace")
    return value


class LeftOut(Record):
    """A path whose content is not watched, so that its changes cannot be undone."""

    path: str
    """Path relative to the workspace."""
    reason: str
    size: int = 0
    """Size of a file in bytes. 0 for folders."""
    is_changed: bool = False
    """Whether the file, or the list of names in the folder, changed during the command."""
    is_removed: bool = False
    """Whether the command removed the file or folder."""

    def fields(self) -> dict[str, JsonValue]:
        """Return the path in the form of logs."""
        removed: dict[str, JsonValue] = {"is_removed": True} if self.is_removed else {}
        return {"path": self.path, "reason": self.reason, "size": self.size, "is_changed": self.is_changed, **removed}

    @classmethod
    def from_fields(cls, fields: JsonValue) -> LeftOut:
        """Return the path of `fields`. Raises ValueError for fields that `LeftOut.fields` cannot have returned."""
        match fields:
            case {"path": path, "reason": str(reason), "size": int(size), "is_changed": bool(is_changed), **rest}:
                is_removed = rest.get("is_removed") is True
                return cls(
                    path=_plain_path(path), reason=reason, size=size, is_changed=is_changed, is_removed=is_removed
                )
            case _:
                raise ValueError("a path that was left out must have a path, a reason, a size and is_changed")


class TreeCounts(Record):
    """Numbers of changed paths. A folder counts only if nothing below it changed."""

    added: int
    changed: int
    """Number of paths with another content, kind or mode."""
    removed: int
    modes: int
    """Number of paths, among the changed ones, with only another mode."""
    links: int
    """Number of paths, among all, that are or were links."""


class TreeChanges(Record):
    """The changes of a tree between two looks."""

    changes: tuple[PathChange, ...] = ()
    """Sorted by path."""
    left_out: tuple[LeftOut, ...] = ()
    """Paths that are not watched: the changed ones first."""
    problem: str = ""
    """Reason why the changes are unknown. Empty if both looks were possible."""
    began_ns: int = 0
    """Begin of the first look, in nanoseconds since 1970."""
    ended_ns: int = 0
    """End of the second look, in nanoseconds since 1970."""
    beside: tuple[str, ...] = ()
    """Names of the background commands that could write at the same time."""

    def counts(self) -> TreeCounts:
        """Return the numbers of added, changed and removed paths."""
        parents = {change.path.rpartition("/")[0] for change in self.changes}
        numbers = {"added": 0, "changed": 0, "removed": 0, "modes": 0, "links": 0}
        for change in self.changes:
            kinds = (change.before.kind, change.after.kind)
            if PathKind.FOLDER in kinds and change.path in parents and PathKind.NONE in kinds:
                continue
            numbers["links"] += PathKind.LINK in kinds
            if change.before.kind is PathKind.NONE:
                numbers["added"] += 1
            elif change.after.kind is PathKind.NONE:
                numbers["removed"] += 1
            else:
                numbers["changed"] += 1
                numbers["modes"] += change.is_mode_alone
        return TreeCounts(**numbers)

    def fields(self) -> dict[str, JsonValue]:
        """Return the changes in the form of logs and files."""
        return {
            "changes": [change.fields() for change in self.changes],
            "left_out": [place.fields() for place in self.left_out],
            "problem": self.problem,
            "began_ns": self.began_ns,
            "ended_ns": self.ended_ns,
        }

    @classmethod
    def from_fields(cls, fields: JsonValue) -> TreeChanges:
        """Return the changes of `fields`. Raises ValueError for fields that `TreeChanges.fields` cannot have returned."""
        match fields:
            case {
                "changes": list(changes),
                "left_out": list(left_out),
                "problem": str(problem),
                "began_ns": int(began),
                "ended_ns": int(ended),
            }:
                return cls(
                    changes=tuple(map(PathChange.from_fields, changes)),
                    left_out=tuple(map(LeftOut.from_fields, left_out)),
                    problem=problem,
                    began_ns=began,
                    ended_ns=ended,
                )
            case _:
                raise ValueError("changes of a tree must have changes, left_out, problem, began_ns and ended_ns")


def sorted_changes(changes: Mapping[str, tuple[PathState, PathState]]) -> Iterable[PathChange]:
    """Yield the changes of `changes` (path: before, after), sorted by path; equal states are skipped."""
    for path in sorted(changes):
        before, after = changes[path]
        if not before.is_same(after):
            yield PathChange(path=path, before=before, after=after)

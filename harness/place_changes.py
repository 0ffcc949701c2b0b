"""Changes to protected places. A protected place is a file that other programs run or read later."""

from __future__ import annotations

from enum import Enum

from harness.actions import JsonValue
from harness.record import Record


class PlaceKind(Enum):
    """The kind of a place."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "neither file, folder nor link"
    UNSEEN = "what cannot be looked at"
    """A folder that could be examined before and cannot be now. Files created in it are unknown."""


class PlaceState(Record):
    """State of a place at one moment."""

    kind: PlaceKind
    mode: int
    """Permission bits, set-id bits included."""
    size: int
    sha256: str | None
    """Digest of the content, or of a link's target. `None` if it was not read: too large, unreadable, or a folder."""


class PlaceChange(Record):
    """A changed protected place."""

    path: str
    """Path relative to the workspace. `.` is the workspace itself."""
    before: PlaceState | None
    """State before. `None` if it did not exist."""
    after: PlaceState | None
    is_kept: bool
    """Whether the place can be restored. Either a copy of the earlier content exists, or the place did not exist."""
    diff: tuple[str, ...] = ()
    """Lines, safe to display. Empty if there are no texts to compare."""

    @property
    def description(self) -> str:
        """The change in a few words."""
        before, after = self.before, self.after
        if before is None:
            return "created" if after is None or after.kind is not PlaceKind.LINK else "created, a link"
        if after is None:
            return "removed"
        if after.kind is PlaceKind.UNSEEN:
            return "cannot be looked at any more"
        if before.kind is not after.kind:
            return f"replaced by a {after.kind.value}" if after.kind is not PlaceKind.OTHER else "replaced"
        if before.kind is not PlaceKind.FOLDER and (before.sha256 is None or before.sha256 != after.sha256):
            return "changed"
        return "made executable" if after.mode & ~before.mode & 0o111 else "given other permissions"

    @property
    def sizes(self) -> str:
        """The sizes before and after, for content that cannot be shown as text."""
        before, after = ("nothing" if state is None else f"{state.size:,} bytes" for state in (self.before, self.after))
        return f"{before} before, {after} now"


class PlacesFound(Record):
    """Result of a check of the protected places, after a command."""

    changes: tuple[PlaceChange, ...]
    entry_points: tuple[PlaceChange, ...] = ()
    """Changed entry points of builds and tests. A granted program may change them.

    Other commands then need approval until the user has seen the change.
    """
    gaps: tuple[str, ...]
    """Descriptions of the parts that were not examined. Empty if all were."""


class PlaceReturn(Record):
    """Result of restoring a place."""

    change: PlaceChange
    problem: str
    """Reason for a failure. Empty if the place was restored."""


def change_fields(change: PlaceChange) -> dict[str, JsonValue]:
    """Return a change in the form of logs and files, without its diff."""
    return {
        "path": change.path,
        "how": change.description,
        "before": _state_fields(change.before),
        "after": _state_fields(change.after),
        "is_kept": change.is_kept,
    }


def _state_fields(state: PlaceState | None) -> JsonValue:
    if state is None:
        return None
    return {"kind": state.kind.value, "mode": state.mode, "size": state.size, "sha256": state.sha256}


def change_from(fields: JsonValue) -> PlaceChange:
    """Return the change of `fields`. Raises ValueError for fields that `change_fields` cannot have returned."""
    if not isinstance(fields, dict):
        raise ValueError("a place must be an object")  # noqa: TRY004
    path, is_kept = fields.get("path"), fields.get("is_kept")
    parts = path.split("/") if isinstance(path, str) else [""]
    if (path != "." and not {"", ".", ".."}.isdisjoint(parts)) or "\0" in str(path) or not isinstance(is_kept, bool):
        raise ValueError("a place must have a plain path in the workspace, and is_kept, which is true or false")
    change = PlaceChange(
        path=str(path),
        before=_state_from(fields.get("before")),
        after=_state_from(fields.get("after")),
        is_kept=is_kept,
    )
    if change_fields(change) != fields:
        raise ValueError("a place has unknown or invalid fields")
    return change


def _state_from(fields: JsonValue) -> PlaceState | None:
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise ValueError("the state of a place must be an object or null")  # noqa: TRY004
    mode, size, sha256 = (fields.get(name) for name in ("mode", "size", "sha256"))
    if not isinstance(mode, int) or not isinstance(size, int) or not (sha256 is None or isinstance(sha256, str)):
        raise ValueError("the state of a place must have mode, size and sha256")
    return PlaceState(kind=PlaceKind(fields.get("kind")), mode=mode, size=size, sha256=sha256)

"""What became of a protected place: a file that other programs run or obey later, as it stood before a command and after."""

from __future__ import annotations

from enum import Enum

from harness.actions import JsonValue
from harness.record import Record


class PlaceKind(Enum):
    """What stands at a place."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "neither file, folder nor link"
    UNSEEN = "what cannot be looked at"
    """A folder that was looked at before, and cannot be now: what was made in it is not known."""


class PlaceState(Record):
    """What stood at a place at one moment."""

    kind: PlaceKind
    mode: int
    """Permission bits, set-id bits included."""
    size: int
    sha256: str | None
    """Of the content, or of what a link says; None where that was not read: too large, not readable, or a folder."""


class PlaceChange(Record):
    """A protected place that is not what it was."""

    path: str
    """Seen from the workspace; `.` is that itself."""
    before: PlaceState | None
    """None: there was nothing."""
    after: PlaceState | None
    is_kept: bool
    """Whether there is a copy of what stood there, or nothing stood there: then it can be put back."""
    diff: tuple[str, ...] = ()
    """Lines, safe to show; empty where there is no text to compare."""

    @property
    def how(self) -> str:
        """What happened to it, in a few words."""
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
        """How large it was and is, for what has no text that could be shown."""
        before, after = ("nothing" if one is None else f"{one.size:,} bytes" for one in (self.before, self.after))
        return f"{before} before, {after} now"


class PlacesFound(Record):
    """What a look at the protected places came to, after a command."""

    changes: tuple[PlaceChange, ...]
    entry_points: tuple[PlaceChange, ...] = ()
    """What builds and tests obey: a granted program may change it, and other commands are asked about until that is seen."""
    gaps: tuple[str, ...]
    """What was not looked at, in words; empty where all of it was."""


class PlaceReturn(Record):
    """What became of a place that was to be put back."""

    change: PlaceChange
    problem: str
    """Why it stays as it is; empty where it is what it was."""


def change_fields(change: PlaceChange) -> dict[str, JsonValue]:
    """Return a change as logs and files hold it: without what is shown of it."""
    return {
        "path": change.path,
        "how": change.how,
        "before": _state_fields(change.before),
        "after": _state_fields(change.after),
        "is_kept": change.is_kept,
    }


def _state_fields(state: PlaceState | None) -> JsonValue:
    if state is None:
        return None
    return {"kind": state.kind.value, "mode": state.mode, "size": state.size, "sha256": state.sha256}


def change_from(fields: JsonValue) -> PlaceChange:
    """Return the change that `fields` hold. Raises ValueError for what `change_fields` never returned."""
    if not isinstance(fields, dict):
        raise ValueError("a place is an object")  # noqa: TRY004
    path, is_kept = fields.get("path"), fields.get("is_kept")
    parts = path.split("/") if isinstance(path, str) else [""]
    if (path != "." and not {"", ".", ".."}.isdisjoint(parts)) or "\0" in str(path) or not isinstance(is_kept, bool):
        raise ValueError("a place has a plain path in the workspace, and is_kept, which is true or false")
    change = PlaceChange(
        path=str(path),
        before=_state_from(fields.get("before")),
        after=_state_from(fields.get("after")),
        is_kept=is_kept,
    )
    if change_fields(change) != fields:
        raise ValueError("a place has other fields than it was written with")
    return change


def _state_from(fields: JsonValue) -> PlaceState | None:
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise ValueError("what stood at a place is an object, or null")  # noqa: TRY004
    mode, size, sha256 = (fields.get(name) for name in ("mode", "size", "sha256"))
    if not isinstance(mode, int) or not isinstance(size, int) or not (sha256 is None or isinstance(sha256, str)):
        raise ValueError("what stood at a place has mode, size and sha256")
    return PlaceState(kind=PlaceKind(fields.get("kind")), mode=mode, size=size, sha256=sha256)

"""Plan to take back the changes of chosen calls (`UndoPlan`): a list of steps, each for one path.

A plan reverses recorded changes. It never makes a tree equal to an earlier one: only recorded paths are in it, and only
if they still are as the call left them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from harness.actions import JsonValue
from harness.files.path_states import UNREADABLE, open_below, state_below
from harness.files.tree_changes import PathChange, PathKind, PathState, TreeChanges
from harness.record import Record
from harness.system import O_PATH

_DATABASE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Endings of the files beside a database that belong to it (sqlite.org/tempfiles.html)."""
UNREAD_BETWEEN = "its content was unknown"
"""Begins the reason to leave a path that could not be read between two calls."""
_OPEN = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CallChanges(Record):
    """The recorded changes of one call."""

    call: int
    changes: TreeChanges


class UndoStep(Record):
    """The undo of all chosen changes of one path."""

    path: str
    present: PathState
    """State that the path must have right before the step."""
    goal: PathState
    """State from before the chosen calls."""
    call: int
    """The newest chosen call that changed the path."""

    @property
    def is_mode_alone(self) -> bool:
        """Whether only the permission bits change."""
        present, goal = self.present, self.goal
        is_closed = present.unkept == UNREADABLE and present.size == goal.size
        return present.kind is goal.kind and (present.has_content_of(goal) or is_closed)

    def fields(self) -> dict[str, JsonValue]:
        """Return the step in the form of a journal."""
        return {
            "path": self.path,
            "present": self.present.fields(),
            "goal": self.goal.fields(),
            "call": self.call,
        }

    @classmethod
    def from_fields(cls, fields: JsonValue) -> UndoStep:
        """Return the step of `fields`. Raises ValueError for fields that `UndoStep.fields` cannot have returned."""
        match fields:
            case {"path": path, "present": present, "goal": goal, "call": int(call)}:
                change = PathChange.from_fields({"path": path, "before": goal, "after": present})
                return cls(path=change.path, present=change.after, goal=change.before, call=call)
            case _:
                raise ValueError("a step must have a path, present, goal and a call")


class Untouched(Record):
    """A path that undo does not touch."""

    path: str
    """Path relative to the workspace. Empty for a whole call."""
    reason: str
    call: int


class UndoPlan(Record):
    """The steps of an undo, and the paths that it will not touch."""

    steps: tuple[UndoStep, ...]
    """Sorted by path."""
    done: tuple[str, ...] = ()
    """Paths that already are as they were before the chosen calls."""
    leaves: tuple[Untouched, ...] = ()
    """Paths that somebody else changed. `anyway` of `plan_undo` takes them back too."""
    cannot: tuple[Untouched, ...] = ()
    """Paths and calls with unknown changes, or without an earlier content."""

    @property
    def restores(self) -> tuple[UndoStep, ...]:
        """The steps that make or change a path."""
        return tuple(step for step in self.steps if step.goal.kind is not PathKind.NONE)

    @property
    def removes(self) -> tuple[UndoStep, ...]:
        """The steps that remove a path which a chosen call added."""
        return tuple(step for step in self.steps if step.goal.kind is PathKind.NONE)


class _Chain(NamedTuple):
    """All recorded changes of one path from the oldest chosen one on."""

    links: Sequence[tuple[CallChanges, PathChange]]
    chosen: Collection[int]

    @property
    def newest(self) -> tuple[CallChanges, PathChange]:
        """The newest chosen change."""
        return [link for link in self.links if link[0].call in self.chosen][-1]

    def break_reason(self) -> str:
        """Return the reason why the chosen changes do not join, or an empty string."""
        previous: tuple[CallChanges, PathChange] | None = None
        for call, change in self.links:
            if call.call not in self.chosen:
                return f"changed by call {call.call}"
            if (
                previous is not None
                and not _overlap(previous[0], call)
                and not previous[1].after.is_same(change.before)
            ):
                is_known = previous[1].after.is_comparable and change.before.is_comparable
                verb = "changed" if is_known else UNREAD_BETWEEN
                return f"{verb} between call {previous[0].call} and call {call.call}"
            previous = (call, change)
        return ""


def _overlap(call: CallChanges, other: CallChanges) -> bool:
    """Return whether two calls ran at the same time, so that both recorded the same changes."""
    return call.changes.began_ns < other.changes.ended_ns and other.changes.began_ns < call.changes.ended_ns


def plan_undo(
    root: str,
    calls: Sequence[CallChanges],
    chosen: Collection[int],
    has_content: Callable[[str], bool],
    *,
    anyway: Collection[str] = (),
) -> UndoPlan:
    """Return the plan to take back the calls with the numbers `chosen`. Changes no file.

    `root` is the absolute, resolved workspace. `calls` are all calls with recorded changes, oldest first.
    `has_content` returns whether a content with this SHA-256 can be restored. Paths in `anyway` are taken back even if
    somebody else changed them. Raises OSError if `root` cannot be opened.
    """
    planning = _Planning(chosen, has_content, anyway)
    for call in calls:
        if call.call in chosen:
            planning.add_gaps(call)
    descriptor = os.open(root, _OPEN)
    try:
        for path, chain in sorted(_chains(calls, chosen).items()):
            planning.add(descriptor, path, chain)
        while planning.drop_torn_databases() or planning.drop_homeless(descriptor) or planning.drop_full(descriptor):
            pass
    finally:
        os.close(descriptor)
    return planning.plan()


def _chains(calls: Sequence[CallChanges], chosen: Collection[int]) -> dict[str, _Chain]:
    """Return the changes of each path that a chosen call changed."""
    paths = {change.path for call in calls if call.call in chosen for change in call.changes.changes}
    links: dict[str, list[tuple[CallChanges, PathChange]]] = {path: [] for path in paths}
    for call in calls:
        for change in call.changes.changes:
            if change.path in links:
                links[change.path].append((call, change))
    return {path: _Chain(_from_oldest(rows, chosen), chosen) for path, rows in links.items()}


def _from_oldest(
    rows: Sequence[tuple[CallChanges, PathChange]], chosen: Collection[int]
) -> list[tuple[CallChanges, PathChange]]:
    """Return the changes from the oldest chosen one on, and the earlier ones of calls that ran at the same time."""
    first = next(number for number, (call, _) in enumerate(rows) if call.call in chosen)
    return [row for row in rows[:first] if _overlap(row[0], rows[first][0])] + list(rows[first:])


class _Planning:
    """A plan that is being made."""

    def __init__(self, chosen: Collection[int], has_content: Callable[[str], bool], anyway: Collection[str]) -> None:
        self._chosen = chosen
        self._has_content = has_content
        self._anyway = frozenset(anyway)
        self._steps: dict[str, UndoStep] = {}
        self._done: list[str] = []
        self._leaves: list[Untouched] = []
        self._cannot: list[Untouched] = []

    def plan(self) -> UndoPlan:
        """Return the plan."""
        return UndoPlan(
            steps=tuple(self._steps[path] for path in sorted(self._steps)),
            done=tuple(self._done),
            leaves=tuple(sorted(self._leaves, key=lambda place: place.path)),
            cannot=tuple(self._cannot),
        )

    def add_gaps(self, call: CallChanges) -> None:
        """Add the changes of a call that are unknown."""
        if call.changes.problem:
            self._cannot.append(Untouched(path="", reason=call.changes.problem, call=call.call))
        if call.changes.beside:
            names = ", ".join(call.changes.beside)
            reason = (
                f"{names} ran in the background: its changes between calls are not recorded, and some here may be its"
            )
            self._cannot.append(Untouched(path="", reason=reason, call=call.call))
        for place in call.changes.left_out:
            if place.is_changed:
                self._cannot.append(Untouched(path=place.path, reason=place.reason, call=call.call))

    def add(self, root: int, path: str, chain: _Chain) -> None:
        """Add a step for a path, or the reason why there is none."""
        call, newest = chain.newest
        oldest = next(change for call, change in chain.links if call.call in self._chosen)
        number, goal = call.call, oldest.before
        try:
            present = state_below(root, path)
        except OSError as error:
            self._leaves.append(Untouched(path=path, reason=error.strerror or str(error), call=number))
            return
        if present.is_same(goal):
            self._done.append(path)
            return
        reason = chain.break_reason()
        if not reason and not _is_as_left(present, newest.after):
            verb = "removed" if present.kind is PathKind.NONE else "changed"
            reason = f"{verb} after call {number}"
        step = UndoStep(path=path, present=present, goal=goal, call=number)
        if (problem := self._problem(step, newest.after)) or (reason and path not in self._anyway):
            places = self._cannot if problem else self._leaves
            places.append(Untouched(path=path, reason=problem or reason, call=number))
            return
        self._steps[path] = step

    def _problem(self, step: UndoStep, after: PathState) -> str:
        """Return the reason why a step is impossible, or an empty string."""
        present, goal = step.present, step.goal
        for state in (present, goal):
            if state.kind is PathKind.SPECIAL:
                return "special file"
        if step.is_mode_alone:
            return ""
        if present.kind is PathKind.FILE and not present.is_comparable:
            return present.unkept
        if PathKind.FILE in (after.kind, goal.kind) and (after.keyed_digest or goal.keyed_digest):
            return after.unkept or goal.unkept
        if goal.kind is PathKind.FILE and goal.unkept:
            return goal.unkept
        if goal.kind is PathKind.FILE and not (goal.sha256 and self._has_content(goal.sha256)):
            return "its earlier content is no longer kept"
        return ""

    def _leave(self, path: str, reason: str) -> None:
        step = self._steps.pop(path)
        self._leaves.append(Untouched(path=path, reason=reason, call=step.call))

    def drop_torn_databases(self) -> bool:
        """Drop the steps of databases of which a file cannot be taken back. Return whether steps were dropped."""
        torn = {_database(place.path): place.path for place in (*self._leaves, *self._cannot) if place.path}
        paths = [
            path for path in self._steps if _database(path) in torn and _is_of_database(path, torn[_database(path)])
        ]
        for path in paths:
            self._leave(path, f"belongs to {torn[_database(path)]}")
        return bool(paths)

    def drop_homeless(self, root: int) -> bool:
        """Drop the steps that make a path in a folder which does not exist. Return whether steps were dropped."""
        count = len(self._steps)
        folders: dict[str, bool] = {"": True}
        for path in sorted(self._steps):
            if self._steps[path].goal.kind is not PathKind.NONE and not self._will_be_folder(
                root, path.rpartition("/")[0], folders
            ):
                self._leave(path, "its folder no longer exists")
        return len(self._steps) < count

    def _will_be_folder(self, root: int, path: str, folders: dict[str, bool]) -> bool:
        if path not in folders:
            step = self._steps.get(path)
            if step is not None:
                folders[path] = step.goal.kind is PathKind.FOLDER
            else:
                is_above = self._will_be_folder(root, path.rpartition("/")[0], folders)
                folders[path] = is_above and _kind_below(root, path) is PathKind.FOLDER
        return folders[path]

    def drop_full(self, root: int) -> bool:
        """Drop the steps that remove a folder with other files in it. Return whether steps were dropped."""
        count = len(self._steps)
        for path in sorted(self._steps, reverse=True):
            step = self._steps[path]
            if step.present.kind is PathKind.FOLDER and step.goal.kind is not PathKind.FOLDER:
                rest = next((name for name in _names_below(root, path) if not self._removes(f"{path}/{name}")), None)
                if rest is not None:
                    self._leave(path, f"holds {rest}")
        return len(self._steps) < count

    def _removes(self, path: str) -> bool:
        step = self._steps.get(path)
        return step is not None and step.goal.kind is PathKind.NONE


def _is_as_left(present: PathState, after: PathState) -> bool:
    is_closed = present.unkept == UNREADABLE and after.unkept.startswith(UNREADABLE)
    return present.is_same(after) or (is_closed and (present.mode, present.size) == (after.mode, after.size))


def _database(path: str) -> str:
    for suffix in _DATABASE_SUFFIXES:
        if path.endswith(suffix):
            return path.removesuffix(suffix)
    return path


def _is_of_database(path: str, other: str) -> bool:
    return path != other and _database(path) == _database(other)


def _kind_below(root: int, path: str) -> PathKind:
    try:
        return state_below(root, path).kind
    except OSError:
        return PathKind.NONE


def _names_below(root: int, path: str) -> Iterator[str]:
    """Yield the names in a folder below `root`; none if it cannot be listed."""
    try:
        folder = open_below(root, path)
        try:
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            yield from sorted(os.listdir(readable))
        finally:
            os.close(readable)
    except OSError:
        return

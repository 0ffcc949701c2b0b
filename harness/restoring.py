"""Put files back to what they were before calls changed them; only where they still are what the call left."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import assert_never

from harness.actions import Access, PathAccess, Place
from harness.before_images import BeforeImages
from harness.errors import ErrorCode, ToolError
from harness.record import Record
from harness.tools.atomic import TornError
from harness.tools.files import Present, read_in, read_whole
from harness.tools.opening import open_folder
from harness.tools.replacing import change_to, put, sha256
from harness.undo import Ending, Standing, Step, Undoable, Unrestorable, standing
from harness.visible import visible_line
from harness.workspace import Workspace

_NOTHING: Mapping[str, str | None] = {}
_JUST_NOW = "it was changed just now; not touched"


class Result(Enum):
    """What became of a change that was to be undone."""

    RESTORED = "restored"
    REMOVED = "removed"
    """The call had made the file."""
    ALREADY = "already undone"
    REFUSED = "refused"


class Outcome(Record):
    """A change that was to be undone, and what became of it."""

    step: Undoable
    result: Result
    detail: str = ""
    """Why it was refused, or what else there is to say; safe to show."""


class Ready(Record):
    """A file that is what the call left, with what it is to be."""

    step: Undoable
    path: PathAccess
    present: Present
    before: bytes | None
    """What is to be there; None: no file."""


def restore(step: Undoable, workspace: Workspace, images: BeforeImages) -> Outcome:
    """Undo one change, and say what became of it.

    `workspace` is the folder that the session worked in. The bytes come back, a file that the call had made is removed,
    its folders stay. Permission bits stay as they are: the call kept them, so that others are someone else's doing. What
    is there now is kept among the images before.
    """
    ready = examine(step, workspace, images)
    return ready if isinstance(ready, Outcome) else carry_out(ready, images)


class Rehearsal:
    """Says what `restore` would come to for several steps after one another, and changes nothing."""

    def __init__(self, workspace: Workspace, images: BeforeImages) -> None:
        self._workspace = workspace
        self._images = images
        self._pretended: dict[str, str | None] = {}

    def __call__(self, step: Undoable) -> Outcome:
        """Return the outcome that undoing `step` now would have."""
        ready = examine(step, self._workspace, self._images, self._pretended)
        if isinstance(ready, Outcome):
            return ready
        self._pretended[step.path] = step.before_sha256
        return Outcome(step=step, result=Result.REMOVED if ready.before is None else Result.RESTORED)


def unwind(
    steps: Iterable[Step], undo_one: Callable[[Undoable], Outcome], *, all_of_them: bool
) -> Iterator[Outcome | Unrestorable]:
    """Undo one step after another, the newest first, and yield what became of each.

    INVARIANT: where a change of a file cannot be undone, earlier changes of that file are not touched either.
    Without `all_of_them` the first change that is not undone already is the last.
    """
    stuck: dict[str, int] = {}
    for step in steps:
        if isinstance(step, Unrestorable):
            yield step
            if step.is_command:
                continue
            stuck.setdefault(step.what, step.call)
        else:
            outcome = undo_one(step) if step.path not in stuck else _kept(step, stuck[step.path])
            yield outcome
            if outcome.result is Result.ALREADY:
                continue
            if outcome.result is Result.REFUSED:
                stuck.setdefault(step.path, step.call)
        if not all_of_them:
            return


def _kept(step: Undoable, call: int) -> Outcome:
    return _refused(step, f"not touched, since call {call} could not be undone")


def examine(
    step: Undoable, workspace: Workspace, images: BeforeImages, pretended: Mapping[str, str | None] = _NOTHING
) -> Ready | Outcome:
    """Return what would have to be done, or the outcome where that is nothing; changes nothing.

    `pretended` are the digests that files would have by now, by path: for a rehearsal of several steps.
    """
    try:
        path = _located(step, workspace)
        present = read_whole(path)
        before = None if step.before_sha256 is None else images.get(step.before_sha256)
    except ToolError as error:
        return _refused(step, str(error))
    except OSError as error:
        return _refused(step, f"what it was before cannot be read: {error.strerror or error}")
    digest = pretended.get(step.path, None if present is None else sha256(present.data))
    match standing(step, digest):
        case Standing.UNDONE:
            return Outcome(step=step, result=Result.ALREADY)
        case Standing.CHANGED:
            return _refused(step, _what_else(step, digest, images))
        case Standing.AS_LEFT:
            if before is None and step.before_sha256 is not None:
                return _refused(step, "what it was before is not kept any more; not touched")
            if present is None:
                return _refused(step, _JUST_NOW)
            if not present.mode & 0o222:
                return _refused(step, "it is read-only now; not touched")
            if step.before_sha256 is None and step.ending is Ending.UNKNOWN:
                return _refused(
                    step, "the call that was to make it was cut short: it may be someone else's; not removed"
                )
            return Ready(step=step, path=path, present=present, before=before)
        case other:
            assert_never(other)


def carry_out(ready: Ready, images: BeforeImages) -> Outcome:
    """Do it, and say what became of it. The file is looked at again right before it is replaced or removed."""
    step = ready.step
    try:
        if ready.before is None:
            images.keep(ready.present.data)
            return _remove(ready)
        change = change_to(ready.path, ready.present, ready.before, before=b"", after=b"")  # nobody is shown it
        note = put(change, images).strip("[]")
    except ToolError as error:
        return _refused(step, _JUST_NOW if error.code is ErrorCode.STALE else str(error))
    except TornError as error:
        return _refused(step, f"{error} It was: {images.path_of(sha256(ready.present.data))}")
    except OSError as error:
        return _refused(step, f"{error.strerror or error}; not touched")
    now, then = ready.present.mode & 0o777, step.before_mode
    mode = f"its permissions are {now:04o} since, and stay so" if then is not None and now != then else ""
    return Outcome(step=step, result=Result.RESTORED, detail="; ".join(text for text in (note, mode) if text))


def _remove(ready: Ready) -> Outcome:
    """Remove a file that the call had made. Raises OSError or ToolError; then it is still there."""
    folder_path, name = os.path.split(ready.path.real)
    folder = open_folder(folder_path)
    try:
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            fcntl.flock(readable, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the tools hold it while they write
            if read_in(folder, name, ready.path) != ready.present.data:
                return _refused(ready.step, _JUST_NOW)
            os.unlink(name, dir_fd=folder)
            os.fsync(readable)
        except BlockingIOError:
            return _refused(ready.step, "another program is writing in its folder; not touched")
        finally:
            os.close(readable)
    finally:
        os.close(folder)
    return Outcome(step=ready.step, result=Result.REMOVED)


def _located(step: Undoable, workspace: Workspace) -> PathAccess:
    """Return the path of the log, which was resolved. Raises ToolError if it leads elsewhere by now.

    INVARIANT: what is opened is that path with no link followed; that it is looked at here makes a better message.
    """
    real = os.path.realpath(step.path)
    if real != step.path:
        raise ToolError(f"a link is in the way now, which leads to {visible_line(real, 300)}; not touched")
    below = step.path.removeprefix(workspace.root.rstrip("/") + "/")
    return PathAccess(written=below, real=step.path, names=(below,), access=Access.WRITE, place=Place.OUTSIDE)


def _what_else(step: Undoable, digest: str | None, images: BeforeImages) -> str:
    if digest is None:
        return "it is gone; not made again"
    if step.ending is Ending.UNKNOWN:
        told = "it is neither what it was before the call, which was cut short, nor what the call was to leave; not touched"
        kept = step.before_sha256
        return (
            f"{told}; what it was is kept in {images.path_of(kept)}" if kept is not None and images.get(kept) else told
        )
    return "it was changed since; not touched"


def _refused(step: Undoable, why: str) -> Outcome:
    return Outcome(step=step, result=Result.REFUSED, detail=visible_line(why, 500))

"""Undo the file changes in a session's log: find the changes that can be undone, and restore the files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias, assert_never

from harness.actions import Access, Enforcement, JsonValue, PathAccess, Place
from harness.digest import digest_of
from harness.errors import ErrorCode, ToolError
from harness.files.atomic import TornError
from harness.files.before_images import BeforeImages
from harness.files.file_changes import change_to, put
from harness.files.folders import open_folder
from harness.files.judged_files import Present, read_in, read_whole
from harness.files.recorded_changes import changes_from
from harness.files.tree_changes import TreeChanges
from harness.files.workspace import Workspace
from harness.log.changed_files import changes_in
from harness.log.order import LogRecord
from harness.log.vocabulary import CUT_SHORT
from harness.record import Record, replace
from harness.redaction.marks import is_redacted
from harness.text.visible import visible_line
from harness.tool_kinds import Does, tool_kind

UndonePath: TypeAlias = tuple[int, str]
"""A call and a path that an undo took back: absolute for an edit, relative to the workspace for a command."""


class Ending(Enum):
    """The end of a call according to the log."""

    DONE = "done"
    UNKNOWN = "unknown"
    """The call was cut short: only the content shows whether the file was written."""


class Undoable(Record):
    """A change of one file by one call."""

    call: int
    tool: str
    path: str
    """Absolute path, resolved when the call was judged. Not yet checked against the disk."""
    before_sha256: str | None
    """Digest before the change. `None` if the file did not exist."""
    after_sha256: str
    before_mode: int | None
    """Permission bits before the change, without set-id bits. `None` if the file did not exist."""
    ending: Ending
    earlier: frozenset[str | None]
    """Digests of the file before this call, and before each earlier call of the session that changed it."""


class Unrestorable(Record):
    """A call that may have made a change that cannot be undone."""

    call: int
    tool: str
    subject: str
    """The command or the path from the log. Hostile text."""
    reason: str
    is_command: bool
    """Whether the call ran a command, whose changes are unknown. Otherwise it changed a file that cannot be restored."""


class CommandStep(Record):
    """The changes of files by one command."""

    call: int
    tool: str
    subject: str
    """The command from the log. Hostile text."""
    changes: TreeChanges
    history_changed: bool
    """Whether the command changed HEAD, a branch, a tag or the stash of the repository, which undo never touches."""


def without_changes(step: CommandStep, reason: str) -> Unrestorable:
    """Return the note for a command whose changes cannot be undone at all."""
    return Unrestorable(call=step.call, tool=step.tool, subject=step.subject, reason=reason, is_command=True)


Step: TypeAlias = Undoable | CommandStep | Unrestorable


class FileStanding(Enum):
    """State of a file relative to a change that is to be undone."""

    AS_LEFT = "as left"
    """The file has the content that the call left."""
    UNDONE = "undone"
    """The file has its content from before the call, or from before an earlier call."""
    CHANGED = "changed"
    """The file has another content: it was changed after the call."""


def standing(step: Undoable, sha256: str | None) -> FileStanding:
    """Return the state of a file with this digest (`None`: it does not exist) relative to the change."""
    if sha256 == step.after_sha256:
        return FileStanding.AS_LEFT
    return FileStanding.UNDONE if sha256 in step.earlier else FileStanding.CHANGED


def changes_to_undo(
    records: Iterable[LogRecord], session: str, undone: Collection[UndonePath] = (), *, log: str
) -> tuple[Step, ...]:
    """Return the changes of a session, newest first, and the calls with unknown changes.

    `records` come from the verified log at the path `log`. Records of other sessions are skipped, as are the changes in
    `undone`. A record that does not make sense becomes an Unrestorable. Raises no exception.
    """
    decisions: dict[int, LogRecord] = {}
    intents: dict[int, LogRecord] = {}
    outcomes: dict[int, LogRecord] = {}
    kinds = {"decision": decisions, "intent": intents, "outcome": outcomes}
    for record in records:
        call = record.get("call")
        if record["session"] == session and record["kind"] in kinds and isinstance(call, int):
            kinds[str(record["kind"])][call] = record
    steps: list[Step] = []
    earlier: dict[str, frozenset[str | None]] = {}
    for call, intent in intents.items():
        step = _step(call, intent, outcomes.get(call), decisions.get(call, {}), earlier, log)
        if isinstance(step, Undoable):
            earlier[step.path] = step.earlier
        step = _without_undone(step, undone)
        if step is not None:
            steps.append(step)
    return tuple(reversed(steps))


def _without_undone(step: Step | None, undone: Collection[UndonePath]) -> Step | None:
    """Return a step without the changes in `undone`. `None` if no others are left."""
    match step:
        case Undoable() if (step.call, step.path) in undone:
            return None
        case CommandStep(call=call, changes=changes):
            rest = tuple(change for change in changes.changes if (call, change.path) not in undone)
            is_left = rest or step.history_changed or any(place.is_changed for place in changes.left_out)
            return replace(step, changes=replace(changes, changes=rest)) if is_left else None
        case _:
            return step


def _step(
    call: int,
    intent: LogRecord,
    outcome: LogRecord | None,
    decision: LogRecord,
    earlier: Mapping[str, frozenset[str | None]],
    log: str,
) -> Step | None:
    tool, change = str(intent.get("tool")), intent.get("change")
    changed = None if outcome is None else outcome.get("changed_path")
    if change is None:
        if changed is not None:
            return _file(call, tool, changed, "the log does not say what the file was before")
        if not tool_kind(tool).is_of_files:
            return _command(call, tool, intent, outcome, decision, log)
        return _unforeseen(call, tool, intent, outcome)
    ending = _ending(outcome)
    if ending is None:
        return None
    if not isinstance(change, dict):
        return _file(call, tool, changed, "the log's record of the change is invalid")
    return _change(call, tool, change, outcome, ending, earlier)


def _ending(outcome: LogRecord | None) -> Ending | None:
    """Return the end of a call that was to change a file; `None` if it did not change it."""
    if outcome is None:
        return Ending.UNKNOWN
    if outcome.get("changed_path") is not None:
        return Ending.DONE
    return Ending.UNKNOWN if outcome.get("status") in CUT_SHORT else None


def _change(
    call: int,
    tool: str,
    change: Mapping[str, JsonValue],
    outcome: LogRecord | None,
    ending: Ending,
    earlier: Mapping[str, frozenset[str | None]],
) -> Step:
    path, mode = change.get("path"), change.get("before_mode")
    before, after = change.get("before_sha256"), change.get("after_sha256")
    if not isinstance(path, str) or not _is_plain(path):
        return _file(call, tool, path, "the log does not hold a plain absolute path")
    if is_redacted(path):
        return _file(call, tool, path, "a secret in its path was masked in the log")
    if not isinstance(after, str) or not _is_digest(after) or not (before is None or _is_digest(before)):
        return _file(call, tool, path, "the log does not hold the digests of the file")
    if (mode is None) != (before is None) or not (mode is None or _is_mode(mode)):
        return _file(call, tool, path, "the log does not hold the permissions of the file")
    reported = () if outcome is None or ending is Ending.UNKNOWN else tuple(outcome.get(name) for name in _TOLD)
    if reported and outcome is not None and outcome.get("seen_by") and _is_digest(reported[2]):
        after = str(reported[2])  # another program made the change: the intent contains only a prediction
        if before is not None and _is_digest(reported[1]):
            before = reported[1]  # another call may have changed the file after this one was judged
    if reported and reported != (path, before, after):
        return _file(call, tool, path, "the log has different data on the change before and after the call")
    return Undoable(
        call=call,
        tool=tool,
        path=path,
        before_sha256=None if before is None else str(before),
        after_sha256=after,
        before_mode=mode & 0o777 if isinstance(mode, int) else None,
        ending=ending,
        earlier=earlier.get(path, frozenset()) | {None if before is None else str(before)},
    )


_TOLD = ("changed_path", "before_sha256", "after_sha256")


def _file(call: int, tool: str, path: JsonValue, reason: str) -> Unrestorable:
    return Unrestorable(call=call, tool=tool, subject=str(path), reason=reason, is_command=False)


def _unforeseen(call: int, tool: str, intent: LogRecord, outcome: LogRecord | None) -> Unrestorable | None:
    """Return the note for a call by another program, whose new content was unknown beforehand.

    `None` for other calls: our own tools always state the old and the new content.
    """
    is_elsewhere = tool_kind(tool).does is Does.WRITES and str(intent.get("confinement")).startswith("none")
    if not is_elsewhere or (outcome is not None and outcome.get("status") not in ("ok", *CUT_SHORT)):
        return None
    effects = intent.get("effects")
    written = effects.get("write") if isinstance(effects, dict) else None
    paths = ", ".join(map(str, written)) if isinstance(written, list) else ""
    return _file(call, tool, paths, "another program changed the file, and its earlier content was not recorded")


def _command(
    call: int, tool: str, intent: LogRecord, outcome: LogRecord | None, decision: LogRecord, log: str
) -> Step | None:
    """Return the changes of a call that was permitted to write. `None` if it could only read."""
    effects = intent.get("effects", decision.get("effects"))
    reads_only = isinstance(effects, dict) and effects.get("write") == [] and not effects.get("granted")
    # For an unconfined run that the user permitted, the effects are only the known ones.
    if reads_only and isinstance(effects, dict) and effects.get("enforcement") != Enforcement.OFF.value:
        return None
    subject = "a command" if tool_kind(tool).does is Does.RUNS else "this tool"
    summary, reason = str(decision.get("summary")), f"the changes by {subject} are not recorded"
    recorded = None if outcome is None else changes_in(outcome, log)
    if recorded is not None:
        try:
            changes = changes_from(recorded)
            if not changes.problem:
                history_changed = recorded.get("history_changed") is True
                return CommandStep(
                    call=call, tool=tool, subject=summary, changes=changes, history_changed=history_changed
                )
            reason = f"the changes by {subject} are not known: {changes.problem}"
        except ValueError as error:
            reason = f"the record of the changes by {subject} is not usable: {error}"
    return Unrestorable(call=call, tool=tool, subject=summary, reason=reason, is_command=True)


def _is_plain(path: str) -> bool:
    """Return whether a path is absolute and normalized: without empty parts, `.`, `..` and NUL."""
    parts = path.split("/")
    return len(parts) > 1 and parts[0] == "" and "\0" not in path and not {"", ".", ".."} & set(parts[1:])


def _is_digest(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef")


def _is_mode(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 0o7777


_NOTHING: Mapping[str, str | None] = {}
_JUST_NOW = "the file was changed just now; not touched"


class Result(Enum):
    """Result of undoing a change."""

    RESTORED = "restored"
    REMOVED = "removed"
    """The file was removed, because the call had created it."""
    ALREADY = "already undone"
    REFUSED = "refused"


class StepOutcome(Record):
    """A change to undo, and the result."""

    step: Undoable
    result: Result
    detail: str = ""
    """Reason for a refusal, or a further note; safe to show."""


class Ready(Record):
    """A file that still has the content that the call left, with the content to restore."""

    step: Undoable
    path: PathAccess
    present: Present
    before: bytes | None
    """Content to restore; `None` removes the file."""


def restore(step: Undoable, workspace: Workspace, images: BeforeImages) -> StepOutcome:
    """Undo one change, and return the result.

    `workspace` is the folder of the session. The old content is restored; a file that the call created is removed, but
    not its folders. Permission bits are not restored: the call kept them, so another program must have changed them.
    The present content is first stored in `images`.
    """
    ready = examine(step, workspace, images)
    return ready if isinstance(ready, StepOutcome) else _carry_out(ready, images)


class Rehearsal:
    """Predicts the results of `restore` for several steps in a row, without changing a file."""

    def __init__(self, workspace: Workspace, images: BeforeImages) -> None:
        self._workspace = workspace
        self._images = images
        self._pretended: dict[str, str | None] = {}

    def __call__(self, step: Undoable) -> StepOutcome:
        """Return the outcome of undoing `step` after the earlier steps."""
        ready = examine(step, self._workspace, self._images, self._pretended)
        if isinstance(ready, StepOutcome):
            return ready
        self._pretended[step.path] = step.before_sha256
        return StepOutcome(step=step, result=Result.REMOVED if ready.before is None else Result.RESTORED)


def unwind(
    steps: Iterable[Undoable | Unrestorable], undo_one: Callable[[Undoable], StepOutcome], *, all_of_them: bool
) -> Iterator[StepOutcome | Unrestorable]:
    """Undo one step after another, newest first, and yield the result of each.

    INVARIANT: if a change of a file cannot be undone, earlier changes of that file are not undone either. Without
    `all_of_them`, only the newest change that is not yet undone is tried.
    """
    stuck: dict[str, int] = {}
    for step in steps:
        if isinstance(step, Unrestorable):
            yield step
            if step.is_command:
                continue
            stuck.setdefault(step.subject, step.call)
        else:
            outcome = undo_one(step) if step.path not in stuck else _untouched(step, stuck[step.path])
            yield outcome
            if outcome.result is Result.ALREADY:
                continue
            if outcome.result is Result.REFUSED:
                stuck.setdefault(step.path, step.call)
        if not all_of_them:
            return


def _untouched(step: Undoable, call: int) -> StepOutcome:
    return _refused(step, f"not touched, since call {call} could not be undone")


def examine(
    step: Undoable, workspace: Workspace, images: BeforeImages, pretended: Mapping[str, str | None] = _NOTHING
) -> Ready | StepOutcome:
    """Return the file and the content to restore, or the outcome if no change is needed or possible. Changes no file.

    `pretended` are the digests that files would have after the earlier steps of a rehearsal, by path.
    """
    try:
        path = _located(step, workspace)
        present = read_whole(path)
        before = None if step.before_sha256 is None else images.get(step.before_sha256)
    except ToolError as error:
        return _refused(step, str(error))
    except OSError as error:
        return _refused(step, f"the earlier content cannot be read: {error.strerror or error}")
    digest = pretended.get(step.path, None if present is None else digest_of(present.data))
    match standing(step, digest):
        case FileStanding.UNDONE:
            return StepOutcome(step=step, result=Result.ALREADY)
        case FileStanding.CHANGED:
            return _refused(step, _what_else(step, digest, images))
        case FileStanding.AS_LEFT:
            if before is None and step.before_sha256 is not None:
                return _refused(step, "the earlier content is no longer saved; not touched")
            if present is None:
                return _refused(step, _JUST_NOW)
            if not present.mode & 0o222:
                return _refused(step, "the file is read-only now; not touched")
            if step.before_sha256 is None and step.ending is Ending.UNKNOWN:
                return _refused(
                    step, "the call was cut short, so another program may have created the file; not removed"
                )
            return Ready(step=step, path=path, present=present, before=before)
        case other:
            assert_never(other)


def _carry_out(ready: Ready, images: BeforeImages) -> StepOutcome:
    """Restore the file, and return the result. It is checked again right before it is replaced or removed."""
    step = ready.step
    try:
        if ready.before is None:
            images.keep(ready.present.data)
            return _remove(ready)
        change = change_to(ready.path, ready.present, ready.before, before=b"", after=b"")  # its diff is never shown
        note = put(change, images).strip("[]")
    except ToolError as error:
        return _refused(step, _JUST_NOW if error.code is ErrorCode.STALE else str(error))
    except TornError as error:
        return _refused(step, f"{error} It was: {images.path_of(digest_of(ready.present.data))}")
    except OSError as error:
        return _refused(step, f"{error.strerror or error}; not touched")
    now, then = ready.present.mode & 0o777, step.before_mode
    mode = f"its permissions were changed to {now:04o}, and are kept" if then is not None and now != then else ""
    return StepOutcome(step=step, result=Result.RESTORED, detail="; ".join(text for text in (note, mode) if text))


def _remove(ready: Ready) -> StepOutcome:
    """Remove a file that the call created. Raises OSError or ToolError; then the file still exists."""
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
            return _refused(ready.step, "another program is writing in the folder; not touched")
        finally:
            os.close(readable)
    finally:
        os.close(folder)
    return StepOutcome(step=ready.step, result=Result.REMOVED)


def _located(step: Undoable, workspace: Workspace) -> PathAccess:
    """Return the resolved path from the log. Raises ToolError if a link is on it now.

    INVARIANT: this path is later opened without following links. The check here only gives a better message.
    """
    real = os.path.realpath(step.path)
    if real != step.path:
        raise ToolError(f"a link is in the way now, which leads to {visible_line(real, 300)}; not touched")
    below = step.path.removeprefix(workspace.root.rstrip("/") + "/")
    return PathAccess(written=below, real=step.path, names=(below,), access=Access.WRITE, place=Place.OUTSIDE)


def _what_else(step: Undoable, digest: str | None, images: BeforeImages) -> str:
    if digest is None:
        return "the file is gone; not restored"
    if step.ending is Ending.UNKNOWN:
        message = "the content is neither that before the call, which was cut short, nor that after it; not touched"
        saved_digest = step.before_sha256
        return (
            f"{message}; the earlier content is saved in {images.path_of(saved_digest)}"
            if saved_digest is not None and images.get(saved_digest)
            else message
        )
    return "the file was changed since; not touched"


def _refused(step: Undoable, reason: str) -> StepOutcome:
    return StepOutcome(step=step, result=Result.REFUSED, detail=visible_line(reason, 500))

"""The files that calls changed, path by path, and the commands whose changes were not recorded."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Protocol, TypedDict

from harness.actions import JsonValue
from harness.audit.call_effects import CallEffects, effects_of
from harness.audit.calls import LoggedCall, Who, about_call, about_decision, call_number, edited_from, text, word
from harness.files.tree_changes import PathChange, PathKind
from harness.files.undo import CommandStep, Ending, Undoable, Unrestorable, changes_to_undo
from harness.log.order import LogRecord
from harness.record import Record

MOST_BYTES = 64_000_000
"""Maximum size, in bytes, of a file that is read. Longer files are not compared."""
_PIECE_BYTES = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileOnDisk(Record):
    """State of a path."""

    sha256: str | None = None
    """Digest. `None` if the file does not exist, or was not read."""
    problem: str = ""
    """Reason why it was not read. Empty if it was."""


def file_on_disk(path: str) -> FileOnDisk:
    """Return the state of an absolute path.

    A link as the last part of the path is not followed. Only regular files are opened, since opening a device can have
    effects (open(2)). Never raises: an error is returned as `problem`.
    """
    if not path.startswith("/"):
        return FileOnDisk(problem="not an absolute path")
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return FileOnDisk(problem="not a regular file")
        descriptor = os.open(path, _PIECE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return FileOnDisk()
    except OSError as error:
        return FileOnDisk(problem=error.strerror or "it cannot be opened")
    except ValueError:
        return FileOnDisk(problem="no file has such a name")
    try:
        return _digest(descriptor)
    except OSError as error:
        return FileOnDisk(problem=error.strerror or "it cannot be read")
    finally:
        os.close(descriptor)


def _digest(descriptor: int) -> FileOnDisk:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return FileOnDisk(problem="not a regular file")
    digest, read = hashlib.sha256(), 0
    while read <= MOST_BYTES and status.st_size <= MOST_BYTES:
        data = os.read(descriptor, 1 << 20)
        if not data:
            return FileOnDisk(sha256=digest.hexdigest())
        digest.update(data)
        read += len(data)
    return FileOnDisk(problem=f"larger than {MOST_BYTES // 1_000_000} MB")


class OnDisk(Enum):
    """State of a file relative to its last logged change."""

    AS_LEFT = "as left"
    """The file has the content that the last call wrote."""
    AS_BEFORE = "as before"
    """The file has its content from before one of these calls: an undo or a person restored it."""
    CHANGED = "changed since"
    GONE = "gone"
    NOT_LOOKED_AT = "not looked at"


class Image(Enum):
    """Whether the content from before a change is still stored."""

    KEPT = "kept"
    MISSING = "missing"
    NONE = "none"
    """The file did not exist before."""


class LoggedChange(Record):
    """A certain or possible change of one file by one call."""

    path: str
    time: str
    place: tuple[str, str]
    """Session, and number of the call as written in the log."""
    before_sha256: str | None
    after_sha256: str | None
    sure: bool
    """Whether the log confirms the change. If not, only the file itself shows whether the change happened."""
    image: Image
    why_not: str
    """Reason why it cannot be undone. Empty if it can."""
    undone: bool
    """Whether a record says that an undo restored the file."""
    permitted_by: str
    """`policy`, or the approver: `person`, `script` or a name. `unknown` if the log lacks it."""
    by_person: bool
    """Whether a person approved the call."""
    fields: Mapping[str, JsonValue]
    """The call's fields for JSON."""
    removed: bool = False
    """Whether the call removed the file."""

    @property
    def created(self) -> bool | None:
        """Whether the call created the file. `None` if the log lacks the state before."""
        return None if self.after_sha256 is None else self.before_sha256 is None


class WritingCommand(Record):
    """A call that could write but whose writes were not recorded."""

    summary: str
    reach: CallEffects
    """Permitted effects of the call."""

    @property
    def fields(self) -> dict[str, JsonValue]:
        """Its fields for JSON."""
        return self.reach.fields("command")


class ChangedFile(Record):
    """A path with its changes in order, and its current state on disk."""

    path: str
    changes: tuple[LoggedChange, ...]
    on_disk: OnDisk
    problem: str
    """Reason why it was not read. Empty if it was."""

    @property
    def hosts(self) -> list[str]:
        """The machines on which the file was changed, as far as the logs name them."""
        return sorted({host for change in self.changes if isinstance(host := change.fields.get("host"), str)})

    def rows(self, host: str) -> Iterator[dict[str, JsonValue]]:
        """Yield rows for JSON: the file, then each change. `host` is the machine whose disk was read."""
        yield {
            "row": "file",
            "path": self.path,
            "changes": len(self.changes),
            "hosts": list[JsonValue](self.hosts),
            "on_disk": _snake(self.on_disk),
            "not_looked_at": self.problem or None,
            "looked_at_on": host,
        }
        for change in self.changes:
            yield {
                **change.fields,
                "row": "change",
                "path": change.path,
                "changed_at": change.time,
                "before_sha256": change.before_sha256,
                "after_sha256": change.after_sha256,
                "created": change.created,
                "removed": change.removed,
                "sure": change.sure,
                "permitted_by": change.permitted_by,
                "before_image": _snake(change.image),
                "undoable": not change.why_not,
                "why_not_undoable": change.why_not or None,
                "undone": change.undone,
            }


class IsKept(Protocol):
    """Tells whether the content with a digest is stored."""

    def __call__(self, sha256: str, workspace: str) -> bool:
        """Return whether the content of a file in `workspace` is stored and still has this digest."""
        ...


class FoundChanges(Record):
    """The changes of some logs."""

    changes: tuple[LoggedChange, ...]
    commands: tuple[WritingCommand, ...]


def found_changes(
    calls: Iterable[LoggedCall], *, is_kept: IsKept, undone: Iterable[tuple[str, str, str]]
) -> FoundChanges:
    """Return the changes of these calls, in their order.

    `undone` has the session, call and path of each restored change. Keeps one entry in memory per change, and no records.
    """
    put_back = frozenset(undone)
    changes: list[LoggedChange] = []
    commands: list[WritingCommand] = []
    for call in calls:
        root = text(call.started, "workspace")
        for step in changes_to_undo(_plain_records(call), call.session, log=call.log):
            match step:
                case CommandStep():
                    changes += _changes_of_command(call, step, root, is_kept, put_back)
                case Unrestorable(is_command=True):
                    if (reach := effects_of(call)) is not None:
                        commands.append(WritingCommand(summary=call.summary, reach=reach))
                case _:
                    path = step.path if isinstance(step, Undoable) else step.subject
                    undone_here = (call.session, call.number, path) in put_back
                    changes.append(_change(call, step, partial(is_kept, workspace=root), undone_here))
    return FoundChanges(changes=tuple(changes), commands=tuple(commands))


def changed_files(changes: Iterable[LoggedChange], file_on_disk: Callable[[str], FileOnDisk]) -> Iterator[ChangedFile]:
    """Yield the changes of each path. Paths are sorted by name, the changes of a path by time.

    The changes of one session stay in the order of the log, even if its clock went back.
    """
    by_path: dict[str, list[tuple[str, LoggedChange]]] = {}
    latest: dict[str, str] = {}
    for change in changes:
        session = change.place[0]
        latest[session] = max(latest.get(session, ""), change.time)
        by_path.setdefault(change.path, []).append((latest[session], change))
    for path in sorted(by_path):
        ordered = tuple(change for _, change in sorted(by_path[path], key=lambda pair: pair[0]))
        file = file_on_disk(path)
        yield ChangedFile(path=path, changes=ordered, on_disk=_on_disk(ordered, file), problem=file.problem)


def undone_paths(records: Iterable[LogRecord]) -> Iterator[tuple[str, str, str]]:
    """Yield session, call and absolute path of each change that an undo in these records took back."""
    for record in records:
        if record["kind"] == "restored" and text(record, "result") in ("restored", "removed"):
            yield text(record, "of_session"), word(record.get("call")), text(record, "path")


def _changes_of_command(
    call: LoggedCall,
    step: CommandStep,
    root: str,
    is_kept: IsKept,
    undone: Collection[tuple[str, str, str]],
) -> Iterator[LoggedChange]:
    """Yield the changes of files by a command. A folder is left out if a file in it changed too."""
    parents = {change.path.rpartition("/")[0] for change in step.changes.changes}
    for change in step.changes.changes:
        if PathKind.FOLDER in (change.before.kind, change.after.kind) and change.path in parents:
            continue
        path = os.path.join(root, change.path)
        yield _change_of_command(call, change, path, (call.session, call.number, path) in undone, is_kept, root)
    for place in step.changes.left_out:
        if place.is_changed:
            unwatched = Unrestorable(
                call=step.call,
                tool=step.tool,
                subject=os.path.join(root, place.path),
                reason=f"left out: {place.reason}",
                is_command=False,
            )
            yield _change(call, unwatched, partial(is_kept, workspace=root), undone=False)


def _change_of_command(
    call: LoggedCall, change: PathChange, path: str, undone: bool, is_kept: IsKept, root: str
) -> LoggedChange:
    before, after = change.before, change.after
    image = Image.NONE
    if before.kind is PathKind.FILE:
        image = Image.KEPT if before.sha256 is not None and is_kept(before.sha256, root) else Image.MISSING
    why_not = (before.unkept or "the earlier content is not saved") if image is Image.MISSING else ""
    return LoggedChange(
        path=path,
        before_sha256=before.sha256,
        after_sha256=after.sha256,
        sure=True,
        image=image,
        why_not=why_not,
        undone=undone,
        removed=after.kind is PathKind.NONE,
        **_call_fields(call),
    )


def _change(
    call: LoggedCall, step: Undoable | Unrestorable, is_kept: Callable[[str], bool], undone: bool
) -> LoggedChange:
    match step:
        case Undoable():
            image = Image.NONE
            if step.before_sha256 is not None:
                image = Image.KEPT if is_kept(step.before_sha256) else Image.MISSING
            return LoggedChange(
                path=step.path,
                before_sha256=step.before_sha256,
                after_sha256=step.after_sha256,
                sure=step.ending is Ending.DONE,
                image=image,
                why_not="the earlier content is not saved" if image is Image.MISSING else "",
                undone=undone,
                **_call_fields(call),
            )
        case Unrestorable():
            before, after = (text(call.outcome, name) or None for name in ("before_sha256", "after_sha256"))
            return LoggedChange(
                path=step.subject,
                before_sha256=before,
                after_sha256=after,
                sure=text(call.outcome, "changed_path") != "" or "changes" in call.outcome,
                image=Image.MISSING,
                why_not=step.reason,
                undone=undone,
                **_call_fields(call),
            )


class _CallFields(TypedDict):
    """The fields of a change that are the same for all changes of a call."""

    time: str
    place: tuple[str, str]
    permitted_by: str
    by_person: bool
    fields: Mapping[str, JsonValue]


def _call_fields(call: LoggedCall) -> _CallFields:
    return {
        "time": text(call.outcome or call.intent, "time"),
        "place": (call.session, call.number),
        "permitted_by": "policy" if call.decided == "auto" else text(call.answered, "by") or "unknown",
        "by_person": call.decided != "auto" and call.answered_by is Who.PERSON,
        "fields": {**about_call(call), **about_decision(call), "edited_from": edited_from(call)},
    }


def _on_disk(changes: tuple[LoggedChange, ...], file: FileOnDisk) -> OnDisk:
    if file.problem:
        return OnDisk.NOT_LOOKED_AT
    last = changes[-1]
    if last.removed and file.sha256 is None:
        return OnDisk.AS_LEFT
    if file.sha256 is not None and file.sha256 == last.after_sha256:
        return OnDisk.AS_LEFT
    hashed_changes = [change for change in changes if change.after_sha256 is not None]
    if file.sha256 is not None and file.sha256 in {change.before_sha256 for change in hashed_changes}:
        return OnDisk.AS_BEFORE
    if file.sha256 is not None:
        return OnDisk.CHANGED
    put_back = any(change.undone or not change.sure for change in hashed_changes if change.before_sha256 is None)
    return OnDisk.AS_BEFORE if put_back else OnDisk.GONE


def _plain_records(call: LoggedCall) -> list[LogRecord]:
    """Return the fields of a call that `changes_to_undo` reads, with nested values as texts.

    Other fields are dropped, since a forged log could nest them to any depth. `changes` is checked where it is read.
    """
    number = call_number(call)
    plain: list[LogRecord] = []
    for kind, record in (("decision", call.decision), ("intent", call.intent), ("outcome", call.outcome)):
        if record:
            fields = {
                name: value if name == "changes" else _plain(value) for name, value in record.items() if name in _READ
            }
            plain.append(
                {**fields, "kind": kind, "session": call.session, "call": number if number != call.number else 0}
            )
    return plain


_READ = ("tool", "summary", "change", "effects", "changed_path", "before_sha256", "after_sha256", "status", "changes")


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: inner if name in ("write", "granted") else _scalar(inner) for name, inner in value.items()}
    return _scalar(value)


def _scalar(value: JsonValue) -> JsonValue:
    return word(value) if isinstance(value, dict | list) else value


def _snake(value: OnDisk | Image) -> str:
    return str(value.value).replace(" ", "_")

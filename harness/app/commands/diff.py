"""/diff: the changes of this conversation to files, from the first content to the present one, or those of one call."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.actions import Access
from harness.app.commands.conversation import Conversation
from harness.app.commands.turns import PastSession
from harness.app.edit_diffs import MOST_LINES
from harness.app.kept_contents import kept_contents
from harness.digest import digest_of
from harness.errors import ToolError, UsageError
from harness.files.diffs import Diff, compare
from harness.files.judged_files import read_whole
from harness.files.session_undo import HISTORY, KeptContents
from harness.files.tree_changes import PathChange, PathKind
from harness.files.undo import CommandStep, Step, Undoable, Unrestorable, changes_to_undo
from harness.log.reader import read_log
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.record import Record, replace
from harness.terminal.styles import Tone
from harness.text.visible import visible_line
from harness.tool_kinds import Does, shipped_that

_KINDS = ("session_started", "decision", "intent", "outcome")
_USAGE = "usage: /diff [CALL], or /diff --stat"


class Changed(Record):
    """A file that the conversation changed or may have changed."""

    path: str
    before_sha256: str | None
    """Digest of the content before the first change. `None` if the file did not exist, or if it is not known."""
    is_new: bool
    """Whether the file did not exist before the first change."""
    calls: tuple[int, ...]
    """Numbers of the calls of the present session that changed it."""
    unkept: str = ""
    """Reason why the earlier content is not saved."""


def diff(conversation: Conversation, rest: str) -> None:
    """Show the changes. With `--stat`, only count lines. With a number, show what that call of this session changed.

    Raises UsageError and LogError.
    """
    stores = kept_contents(conversation.place.state, conversation.place.workspace.root)
    if rest.isascii() and rest.isdigit():
        _show_call(conversation, int(rest), stores)
        return
    if rest not in ("", "--stat"):
        raise UsageError(_USAGE)
    present = conversation.session.identity
    changes = [(part.session == present, step) for part in reversed(conversation.turns.parts) for step in _steps(part)]
    files = changed_files(
        [
            change if is_present else replace(change, calls=())
            for is_present, step in changes
            for change in changes_of(step, conversation)
        ]
    )
    for file in files:
        _show(conversation, file, stores, stat=rest == "--stat")
    if not files:
        tools = " or ".join(shipped_that(Does.WRITES))
        conversation.say(f"this conversation changed no file by {tools} or a command", Tone.QUIET)
    for is_present, step in reversed(changes):
        _tell_unknown(conversation, step, _numbered(step.call) if is_present else "")


def _steps(part: PastSession) -> tuple[Step, ...]:
    """Return the changes of a session, newest first."""
    records = (record for record in read_log(part.log) if record["session"] == part.session)
    return changes_to_undo([record for record in records if record["kind"] in _KINDS], part.session, log=part.log)


def changes_of(step: Step, conversation: Conversation) -> Iterator[Changed]:
    """Yield the files that a step changed."""
    match step:
        case Undoable():
            is_new = step.before_sha256 is None
            yield Changed(path=step.path, before_sha256=step.before_sha256, is_new=is_new, calls=(step.call,))
        case CommandStep():
            for change in reversed(_files_of(step)):
                before = change.before
                yield Changed(
                    path=os.path.join(conversation.place.workspace.root, change.path),
                    before_sha256=before.sha256,
                    is_new=before.kind is PathKind.NONE,
                    calls=(step.call,),
                    unkept=before.unkept
                    or ("" if before.kind in (PathKind.NONE, PathKind.FILE) else before.kind.value),
                )
        case Unrestorable():
            pass


def _files_of(step: CommandStep) -> list[PathChange]:
    """Return the changes of a command without those of folders."""
    return [change for change in step.changes.changes if PathKind.FOLDER not in (change.before.kind, change.after.kind)]


def _folders_of(step: CommandStep) -> list[PathChange]:
    """Return the changes of folders, without folders in which another path changed."""
    parents = {change.path.rpartition("/")[0] for change in step.changes.changes}
    folders = [change for change in step.changes.changes if PathKind.FOLDER in (change.before.kind, change.after.kind)]
    return [change for change in folders if change.path not in parents]


def changed_files(changes: list[Changed]) -> list[Changed]:
    """Return the files of `changes` (newest first) in the order of their first changes. Pure."""
    files: dict[str, Changed] = {}
    for change in reversed(changes):
        first = files.get(change.path, change)
        calls = (*first.calls, *change.calls) if change.path in files else change.calls
        files[change.path] = Changed(
            path=change.path,
            before_sha256=first.before_sha256,
            is_new=first.is_new,
            calls=tuple(dict.fromkeys(calls)),
            unkept=first.unkept,
        )
    return list(files.values())


def _numbered(*calls: int) -> str:
    """Return the numbers of calls, to follow a name. Empty without calls."""
    return f"  [call {', '.join(map(str, calls))}]" if calls else ""


def _tell_unknown(conversation: Conversation, step: Step, calls: str) -> None:
    """Tell the changes of a step that cannot be shown. `calls` follows their names."""
    reasons: list[tuple[str, str]] = []
    match step:
        case Unrestorable():
            status = "not known" if step.is_command else "not shown"
            reasons = [(f"{status}: {visible_line(step.subject, 300)}", step.reason)]
        case CommandStep():
            subject = visible_line(step.subject, 300)
            reasons = [(f"not shown: {subject}", HISTORY)] if step.history_changed else []
            left_out = [place for place in step.changes.left_out if place.is_changed]
            reasons += [(f"not shown: {visible_line(place.path, 300)}", place.reason) for place in left_out]
            for change in _folders_of(step):
                is_new, is_gone = (state.kind is PathKind.NONE for state in (change.before, change.after))
                word = "new" if is_new else "removed" if is_gone else "changed"
                conversation.say_line(f"{change.path}{calls}: {word} folder")
        case Undoable():
            pass
    for text, reason in reasons:
        conversation.say_line(f"{text}{calls}: {reason}", Tone.WARNING)


def _show_call(conversation: Conversation, number: int, stores: KeptContents) -> None:
    """Show the changes of one call of the present session, with the contents before and after it."""
    part = conversation.turns.parts[-1]
    step = next((step for step in _steps(part) if step.call == number), None)
    if step is None:
        conversation.say(f"call {number} of this session changed no file", Tone.QUIET)
        return
    if isinstance(step, Undoable):
        before, after = _bytes(stores, step.before_sha256), _content_of(conversation, step, stores)
        _show_diff(conversation, step.path, _numbered(number), before, after, stat=False)
    elif isinstance(step, CommandStep):
        for change in _files_of(step):
            contents = []
            for state in (change.before, change.after):
                is_content = state.kind in (PathKind.NONE, PathKind.FILE) and not state.unkept
                contents.append(_bytes(stores, state.sha256) if is_content else None)
            path = os.path.join(conversation.place.workspace.root, change.path)
            _show_diff(conversation, path, _numbered(number), *contents, stat=False)
        if not step.changes.changes:
            conversation.say(f"call {number} changed no file", Tone.QUIET)
    _tell_unknown(conversation, step, _numbered(number))


def _content_of(conversation: Conversation, step: Undoable, stores: KeptContents) -> bytes | None:
    """Return the content that an edit left, from the stores or the file itself. `None` if it is not known."""
    content = _bytes(stores, step.after_sha256)
    if content is None:
        try:
            content = content_now(conversation, step.path)
        except (OSError, ToolError):
            return None
    return content if content is not None and digest_of(content) == step.after_sha256 else None


def _bytes(stores: KeptContents, sha256: str | None) -> bytes | None:
    return b"" if sha256 is None else stores.get(sha256)


def _show(conversation: Conversation, file: Changed, stores: KeptContents, *, stat: bool) -> None:
    name = _name(conversation, file.path)
    calls = _numbered(*file.calls)
    before = None if file.unkept else _bytes(stores, file.before_sha256)
    if before is None:
        reason = f": {visible_line(file.unkept, 200)}" if file.unkept else ""
        conversation.say_line(f"{name}{calls}: the earlier content is not saved{reason}", Tone.WARNING)
        return
    try:
        now = content_now(conversation, file.path)
    except (OSError, ToolError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        conversation.say_line(f"{name}{calls}: cannot be read now: {problem}", Tone.WARNING)
        return
    if (now or b"") == before and (now is None) is file.is_new:
        conversation.say_line(f"{name}{calls}: it is again what it was", Tone.QUIET)
        return
    state = "removed" if now is None else "new" if file.is_new else "changed"
    _show_diff(conversation, file.path, f"{calls}: {state}", before, now or b"", stat=stat)


def _show_diff(
    conversation: Conversation, path: str, state: str, before: bytes | None, after: bytes | None, *, stat: bool
) -> None:
    """Show the diff of two contents. `None` is a content that is not known."""
    name = _name(conversation, path)
    if before is None or after is None:
        conversation.say_line(f"{name}{state}: its contents are not saved", Tone.WARNING)
        return
    if b"\0" in before + after:
        conversation.say_line(f"{name}{state}, binary: {len(before):,} bytes then, {len(after):,} now")
        return
    diff: Diff = compare(before, after)
    conversation.say_line(f"{name}{state}, +{diff.added} -{diff.removed} lines")
    if not stat:
        conversation.screen.diff(conversation.masked(diff.text(MOST_LINES)), name)


def _name(conversation: Conversation, path: str) -> str:
    return path.removeprefix(f"{conversation.place.workspace.root.rstrip('/')}/")


def content_now(conversation: Conversation, path: str) -> bytes | None:
    """Return the present content of a file. `None` if it is missing.

    Raises OSError and ToolError, also if the path is a link or a device.
    """
    resolved = conversation.place.workspace.resolve(path, Access.READ)
    if resolved.real != os.path.normpath(path):
        raise ToolError("a link leads elsewhere now")
    present = read_whole(resolved)
    return None if present is None else present.data


COMMANDS = (
    SlashCommand(
        name="/diff",
        arguments="[CALL | --stat]",
        summary="changes of files by this conversation, or by one call",
        group=HelpGroup.WORK,
        run=diff,
        effect=Effect.SHOWS,
    ),
)

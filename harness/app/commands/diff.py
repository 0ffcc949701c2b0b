"""/diff: the changes of this conversation to files, from the first content to the present one."""

from __future__ import annotations

import os

from harness.actions import Access
from harness.app.commands.conversation import Conversation
from harness.app.commands.turns import PastSession
from harness.errors import ToolError, UsageError
from harness.files.before_images import BeforeImages
from harness.files.diffs import Diff, compare
from harness.files.judged_files import read_whole
from harness.files.undo import Undoable, Unrestorable, changes_to_undo
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.record import Record
from harness.terminal.styles import Tone
from harness.text.visible import visible_line
from harness.tool_kinds import Does, shipped_that

MOST_LINES = 500
"""Maximum number of lines shown of one file's diff. Further lines are counted."""
_KINDS = ("decision", "intent", "outcome")


class Changed(Record):
    """A file that the session changed or may have changed."""

    path: str
    before_sha256: str | None
    """Digest of the content before the session's first change. `None` if the file did not exist."""
    calls: tuple[int, ...]


def diff(conversation: Conversation, rest: str) -> None:
    """Show the changes. With `--stat`, only count lines. Raises UsageError and LogError."""
    if rest not in ("", "--stat"):
        raise UsageError("usage: /diff, or /diff --stat")
    steps = [
        step for part in reversed(conversation.turns.parts) for step in changes_to_undo(_records(part), part.session)
    ]
    files = changed_files([step for step in steps if isinstance(step, Undoable)])
    images = BeforeImages(conversation.place.state.before_images)
    for file in files:
        _show(conversation, file, images, stat=rest == "--stat")
    if not files:
        conversation.say(f"this conversation changed no file by {' or '.join(shipped_that(Does.WRITES))}", Tone.QUIET)
    for step in reversed(steps):
        if isinstance(step, Unrestorable):
            _tell_unknown(conversation, step)


def _records(part: PastSession) -> list[LogRecord]:
    session_records = (record for record in read_log(part.log) if record["session"] == part.session)
    return [record for record in session_records if record["kind"] in _KINDS]


def changed_files(steps: list[Undoable]) -> list[Changed]:
    """Return the files of `steps` (newest first) in the order of their first changes. Pure."""
    files: dict[str, Changed] = {}
    for step in reversed(steps):
        file = files.get(step.path)
        calls = (*file.calls, step.call) if file else (step.call,)
        before = file.before_sha256 if file else step.before_sha256
        files[step.path] = Changed(path=step.path, before_sha256=before, calls=calls)
    return list(files.values())


def _tell_unknown(conversation: Conversation, step: Unrestorable) -> None:
    status = "not known" if step.is_command else "not shown"
    conversation.say_line(
        f"{status}: {visible_line(step.subject, 300)}  [call {step.call}]: {step.reason}", Tone.WARNING
    )


def _show(conversation: Conversation, file: Changed, images: BeforeImages, *, stat: bool) -> None:
    root = conversation.place.workspace.root
    name = file.path.removeprefix(f"{root.rstrip('/')}/")
    calls = f"[call {', '.join(map(str, file.calls))}]"
    before = b"" if file.before_sha256 is None else images.get(file.before_sha256)
    if before is None:
        conversation.say_line(f"{name}  {calls}: the earlier content is not saved", Tone.WARNING)
        return
    try:
        now = content_now(conversation, file.path)
    except (OSError, ToolError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        conversation.say_line(f"{name}  {calls}: cannot be read now: {problem}", Tone.WARNING)
        return
    if now == before and (now is not None) is (file.before_sha256 is not None):
        conversation.say_line(f"{name}  {calls}: it is again what it was", Tone.QUIET)
        return
    state = "removed" if now is None else "new" if file.before_sha256 is None else "changed"
    if b"\0" in before or (now is not None and b"\0" in now):
        conversation.say_line(f"{name}  {calls}: {state}, binary: {len(before):,} bytes then, {len(now or b''):,} now")
        return
    diff: Diff = compare(before, now or b"")
    conversation.say_line(f"{name}  {calls}: {state}, +{diff.added} -{diff.removed} lines")
    if not stat:
        conversation.screen.diff(conversation.masked(diff.text(MOST_LINES)), name)


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
        arguments="[--stat]",
        summary="what this conversation changed in files",
        group=HelpGroup.WORK,
        run=diff,
        effect=Effect.SHOWS,
    ),
)

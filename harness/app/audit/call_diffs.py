"""The diffs of the files that a call changed, for `audit show --full`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from harness.app.audit.call_changes import changes_of
from harness.app.kept_contents import kept_contents
from harness.audit.calls import LoggedCall, text
from harness.digest import digest_of
from harness.files.diffs import compare
from harness.files.session_undo import KeptContents
from harness.files.tree_changes import ABSENT, PathChange, PathKind, PathState
from harness.record import Record
from harness.redaction.redactor import Redactor
from harness.safe_files import read_small
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.state import State
from harness.terminal.styles import Line, Tone
from harness.text.visible import visible, visible_line

_MOST_BYTES = 64_000_000
"""Maximum size of a present file that is read."""
_TONES = {"+": Tone.GOOD, "-": Tone.BAD}


class _Side(Record):
    """A file before or after a change."""

    content: bytes | None
    """`None` if it is not known."""
    problem: str = ""
    """Reason why the content is not known."""


class CallDiffs:
    """Diffs of calls. The contents are those that the state folder of this machine keeps."""

    def __init__(self, state: State, environment: Mapping[str, str]) -> None:
        """Use the contents in `state`. `environment` has secrets that are masked."""
        self._state = state
        self._environment = environment
        self._stores: dict[str, KeptContents] = {}
        self._redactors: dict[str, Redactor] = {}

    def lines(self, call: LoggedCall) -> Iterator[Line]:
        """Yield the diff of each file that the call changed, or the reason why a file has none."""
        root = text(call.started, "workspace")
        changes = [change for change in _changes_of(call) if _is_of_file(change)]
        if changes and (not os.path.isabs(root) or "\0" in root):
            yield Line(tone=Tone.WARNING, text="no diff: the log does not name the workspace")
            return
        for change in changes:
            yield from self._diff(change, root)

    def _diff(self, change: PathChange, root: str) -> Iterator[Line]:
        redactor = self._redactor(root)
        name = visible_line(redactor.redact(change.path.removeprefix(f"{root.rstrip('/')}/")), 1_000)
        before, after = self._side(change.before, root), self._after(change, root)
        problems = [f"{word} {side.problem}" for word, side in (("before", before), ("after", after)) if side.problem]
        if before.content is None or after.content is None:
            problem = visible_line(f"no diff of {name}: {'; '.join(problems)}", 2_000)
            yield Line(tone=Tone.WARNING, text=problem)
            return
        if b"\0" in before.content + after.content:
            sizes = f"{len(before.content):,} bytes before, {len(after.content):,} after"
            yield Line(tone=Tone.PLAIN, text=f"diff of {name}: binary, {sizes}")
            return
        diff = compare(before.content, after.content)
        yield Line(tone=Tone.PLAIN, text=f"diff of {name}: +{diff.added} -{diff.removed} lines")
        for line in redactor.redact(diff.text()).split("\n"):
            # The bar keeps a line of a file from looking like a line of the timeline.
            yield Line(tone=_TONES.get(line[:1], Tone.QUIET), text=f"| {visible(line.expandtabs())}")

    def _side(self, state: PathState, root: str) -> _Side:
        """Return one side of a change, by the state of the path."""
        if state.kind is PathKind.NONE:
            return _Side(content=b"")
        if state.kind is not PathKind.FILE:
            return _Side(content=None, problem=f"it is a {state.kind.value}")
        if state.unkept or state.sha256 is None:
            return _Side(content=None, problem=f"its content was not kept ({state.unkept or 'no digest'})")
        content = self._contents(root).get(state.sha256)
        return _Side(content=content, problem="" if content is not None else "its content is no longer kept here")

    def _after(self, change: PathChange, root: str) -> _Side:
        """Return the side after a change: a kept content, or the present file if it is the one that the call left."""
        side, digest = self._side(change.after, root), change.after.sha256
        if side.content is not None or digest is None or change.after.kind is not PathKind.FILE:
            return side
        try:
            content = read_small(os.path.join(root, change.path), _MOST_BYTES)
        except ValueError:
            return side  # a path with NUL
        return _Side(content=content) if content is not None and digest_of(content) == digest else side

    def _contents(self, root: str) -> KeptContents:
        if root not in self._stores:
            self._stores[root] = kept_contents(self._state, root)
        return self._stores[root]

    def _redactor(self, root: str) -> Redactor:
        if root not in self._redactors:
            readable = root, self._environment.get("HOME", "")
            self._redactors[root] = redactor_for(
                self._state, self._environment, secrets_of(self._environment), unless=readable
            )
        return self._redactors[root]


def _is_of_file(change: PathChange) -> bool:
    """Return whether the content of a file changed, or whether a file was made or removed."""
    return PathKind.FILE in (change.before.kind, change.after.kind) and not change.is_mode_alone


def _changes_of(call: LoggedCall) -> Iterator[PathChange]:
    """Yield the changes of an edit or a command. None for a record that is not valid: another line tells of it."""
    if path := text(call.outcome, "changed_path"):
        try:
            before, after = (_state(call, name) for name in ("before_sha256", "after_sha256"))
        except ValueError:
            return
        yield PathChange(path=path, before=before, after=after)
    try:
        changes = changes_of(call)
    except ValueError:
        return
    yield from () if changes is None else changes.changes


def _state(call: LoggedCall, name: str) -> PathState:
    """Return a state of a file that an edit changed. Raises ValueError for an invalid digest."""
    digest = call.outcome.get(name)
    return ABSENT if digest is None else PathState.from_fields({"kind": PathKind.FILE.value, "sha256": digest})

"""Undo of chosen calls in the order newest first: edits of files and commands together (`SessionUndo`).

Without a command among the chosen calls, each edit is undone by itself (files/undo.py). With one, the edits inside the
workspace and the commands form one plan (files/tree_undo.py), because they may have changed the same files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from harness.files.before_images import BeforeImages
from harness.files.segments import SegmentStore
from harness.files.tree_changes import ABSENT, PathChange, PathKind, PathState, TreeChanges
from harness.files.tree_undo import CallChanges, UndoPlan, plan_undo
from harness.files.undo import (
    CommandStep,
    Ending,
    Rehearsal,
    Result,
    Step,
    StepOutcome,
    Undoable,
    Unrestorable,
    restore,
    unwind,
)
from harness.files.undo_run import UndoResult, apply_undo, resume_undo
from harness.files.workspace import Workspace
from harness.paths import is_within
from harness.record import Record, replace
from harness.safe_files import make_private

HISTORY = "git history cannot be undone"
_CUT_SHORT = "the call was cut short, so another program may have created the file; not removed"


class PathOutcome(Record):
    """The result for one path that a command changed."""

    call: int
    tool: str
    path: str
    """Absolute path."""
    result: Result
    detail: str
    """Reason for a refusal. Empty for the other results."""
    before_sha256: str | None
    after_sha256: str | None


Ended = StepOutcome | PathOutcome | Unrestorable


def has_effect(outcome: Ended) -> bool:
    """Return whether a result is a restored or removed file."""
    return not isinstance(outcome, Unrestorable) and outcome.result in (Result.RESTORED, Result.REMOVED)


class LoggedStep(Record):
    """A step of one session."""

    session: str
    step: Step


class KeptContents(Record):
    """The stores of earlier contents, and the folder for the journal of an undo."""

    images: BeforeImages
    store: SegmentStore
    journals: str

    def has(self, sha256: str) -> bool:
        """Return whether one of the stores has the content with this digest."""
        return self.store.has(sha256) or self.images.get(sha256) is not None

    def get(self, sha256: str) -> bytes | None:
        """Return the content with this digest, or `None`."""
        content = self.store.get(sha256)
        return self.images.get(sha256) if content is None else content

    def new_journal(self) -> str:
        """Return the path of a new journal, in a folder for its owner only. Raises OSError."""
        make_private(self.journals)
        return os.path.join(self.journals, f"{os.urandom(8).hex()}.undo")


class SessionUndo:
    """The undo of chosen calls of one or more sessions that worked in the same workspace."""

    def __init__(
        self,
        steps: Sequence[LoggedStep],
        chosen: Collection[tuple[str, int]],
        workspace: Workspace,
        stores: KeptContents,
        *,
        all_of_them: bool,
    ) -> None:
        """Prepare the undo. `steps` are all changes of the sessions, newest first.

        `chosen` are the calls to undo, as session and number. Without `all_of_them`, only the newest of them that is
        not undone yet.
        """
        self._workspace = workspace
        self._stores = stores
        self._all_of_them = all_of_them
        self._in_tree = [each for each in reversed(steps) if self._is_in_tree(each.step)]
        """The steps inside the workspace, oldest first. In a plan, their numbers here identify their calls."""
        self._chosen = [each for each in steps if (each.session, each.step.call) in chosen]
        self._has_commands = any(isinstance(each.step, CommandStep) for each in self._chosen)
        if self._has_commands and not all_of_them:
            self._chosen = self._newest()

    def foreseen(self) -> list[tuple[str, Ended]]:
        """Return the session and the planned result of each step, newest first. Changes no file. Raises OSError."""
        rehearsal = Rehearsal(self._workspace, self._stores.images)
        if not self._has_commands:
            return list(self._unwound(rehearsal))
        plan = self._plan(self._chosen)
        return list(self._outcomes(plan, {}, self._apart(rehearsal)))

    def carry_out(self) -> Iterator[tuple[str, Ended]]:
        """Undo the calls, and yield the session and the result of each step, newest first. Raises OSError."""
        undo_one = partial(restore, workspace=self._workspace, images=self._stores.images)
        if not self._has_commands:
            yield from self._unwound(undo_one)
            return
        plan = self._plan(self._chosen)
        refused: dict[str, str] = {}
        if plan.steps:
            stores = self._stores
            result = apply_undo(self._workspace.root, plan, stores.store, stores.new_journal(), content_of=stores.get)
            refused = {place.path: place.reason for place in result.untouched}
        yield from self._outcomes(plan, refused, self._apart(undo_one))

    def _unwound(self, undo_one: Rehearsal | partial[StepOutcome]) -> Iterator[tuple[str, Ended]]:
        """Yield the results of edits alone, one after the other."""
        sessions = {id(each.step): each.session for each in self._chosen}
        steps = [each.step for each in self._chosen if not isinstance(each.step, CommandStep)]
        for outcome in unwind(steps, undo_one, all_of_them=self._all_of_them):
            yield sessions[id(outcome.step if isinstance(outcome, StepOutcome) else outcome)], outcome

    def _newest(self) -> list[LoggedStep]:
        """Return the newest chosen step that is not undone yet, after the commands with unknown changes before it."""
        steps: list[LoggedStep] = []
        for each in self._chosen:
            steps.append(each)
            if isinstance(each.step, Unrestorable):
                if not each.step.is_command:
                    break
                continue
            plan = self._plan([each])
            if plan.steps or plan.leaves or plan.cannot or not self._is_in_tree(each.step):
                break
        return steps

    def _is_in_tree(self, step: Step) -> bool:
        root = self._workspace.root
        return isinstance(step, CommandStep) or (isinstance(step, Undoable) and is_within(step.path, root))

    def _plan(self, chosen: Sequence[LoggedStep]) -> UndoPlan:
        """Return the plan for the chosen steps in the workspace."""
        calls = list(self._calls())
        places = {id(each) for each in chosen}
        numbers = {number for number, each in enumerate(self._in_tree) if id(each) in places}
        return plan_undo(self._workspace.root, calls, numbers, self._stores.has)

    def _calls(self) -> Iterator[CallChanges]:
        """Yield the changes of each step in the workspace, oldest first."""
        modes = self._modes_of_new_files()
        for number, each in enumerate(self._in_tree):
            if isinstance(each.step, CommandStep):
                yield CallChanges(call=number, changes=each.step.changes)
            elif isinstance(each.step, Undoable):
                change = self._change_of(each.step, modes.get(number))
                yield CallChanges(call=number, changes=TreeChanges(changes=(change,)))

    def _change_of(self, step: Undoable, new_mode: int | None) -> PathChange:
        before, mode = ABSENT, new_mode
        if step.before_sha256 is not None:
            mode = step.before_mode
            before = PathState(kind=PathKind.FILE, mode=mode or 0, sha256=step.before_sha256)
        elif step.ending is Ending.UNKNOWN:
            before = PathState(kind=PathKind.FILE, unkept=_CUT_SHORT)
        after = PathState(kind=PathKind.FILE, mode=mode or 0, sha256=step.after_sha256)
        return PathChange(path=self._relative(step), before=before, after=after)

    def _modes_of_new_files(self) -> dict[int, int]:
        """Return the permission bits of each file that an edit created, by the number of the edit.

        The log does not have them: they are those before the next command that changed the file, or the present ones.
        """
        modes: dict[str, int] = {}
        new: dict[int, int] = {}
        for number, each in reversed(list(enumerate(self._in_tree))):
            if isinstance(each.step, CommandStep):
                modes |= {change.path: change.before.mode for change in each.step.changes.changes}
            elif isinstance(each.step, Undoable):
                path = self._relative(each.step)
                if each.step.before_sha256 is None:
                    new[number] = modes.get(path, _mode_now(each.step.path))
                elif each.step.before_mode is not None:
                    modes[path] = each.step.before_mode
        return new

    def _relative(self, step: Undoable) -> str:
        return step.path.removeprefix(self._workspace.root.rstrip("/") + "/")

    def _apart(self, undo_one: Rehearsal | partial[StepOutcome]) -> Mapping[int, StepOutcome]:
        """Undo the chosen edits outside the workspace. Return the results by the identity of the step."""
        steps = [
            each.step for each in self._chosen if isinstance(each.step, Undoable) and not self._is_in_tree(each.step)
        ]
        outcomes = unwind(steps, undo_one, all_of_them=True)
        return {id(outcome.step): outcome for outcome in outcomes if isinstance(outcome, StepOutcome)}

    def _outcomes(
        self, plan: UndoPlan, refused: Mapping[str, str], apart: Mapping[int, StepOutcome]
    ) -> Iterator[tuple[str, Ended]]:
        """Yield the results of a plan for each chosen call. `refused` has the reasons of steps that failed."""
        reasons = {place.path: self._in_words(place.reason) for place in plan.leaves} | dict(refused)
        impossible = {place.path: place.reason for place in plan.cannot if place.path}
        for each in self._chosen:
            match each.step:
                case Unrestorable():
                    yield each.session, each.step
                case Undoable() if not self._is_in_tree(each.step):
                    yield each.session, apart[id(each.step)]
                case Undoable():
                    path = self._relative(each.step)
                    reason = impossible.get(path, reasons.get(path, ""))
                    result = _result(path, plan, reason, removes=each.step.before_sha256 is None)
                    yield each.session, StepOutcome(step=each.step, result=result, detail=reason)
                case CommandStep():
                    for outcome in _of_command(each.step, plan, reasons, impossible, self._workspace.root):
                        yield each.session, outcome

    def _in_words(self, reason: str) -> str:
        """Return a reason of the plan with the numbers that the log gives the calls."""

        def number(match: re.Match[str]) -> str:
            return f"call {self._in_tree[int(match[1])].step.call}"

        return re.sub(r"call ([0-9]+)", number, reason)


def _of_command(
    step: CommandStep, plan: UndoPlan, reasons: Mapping[str, str], impossible: Mapping[str, str], root: str
) -> Iterator[PathOutcome | Unrestorable]:
    parts = Unrestorable(call=step.call, tool=step.tool, subject=step.subject, reason=HISTORY, is_command=True)
    if step.history_changed:
        yield parts
    for place in step.changes.left_out:
        if place.is_changed:
            yield replace(parts, subject=place.path, reason=f"left out: {place.reason}")
    for change in step.changes.changes:
        path = change.path
        if path in impossible:
            yield replace(parts, subject=path, reason=impossible[path])
            continue
        reason = reasons.get(path, "")
        yield PathOutcome(
            call=step.call,
            tool=step.tool,
            path=os.path.join(root, path),
            result=_result(path, plan, reason, removes=change.before.kind is PathKind.NONE),
            detail=reason,
            before_sha256=change.before.sha256,
            after_sha256=change.after.sha256,
        )


def _result(path: str, plan: UndoPlan, reason: str, *, removes: bool) -> Result:
    if reason:
        return Result.REFUSED
    if path in plan.done:
        return Result.ALREADY
    return Result.REMOVED if removes else Result.RESTORED


def _mode_now(path: str) -> int:
    try:
        return os.lstat(path).st_mode & 0o7777
    except OSError:
        return 0


def finish_killed_undos(stores: KeptContents) -> list[UndoResult]:
    """Finish the undos that were killed midway. Return their results. Ignores journals that cannot be used."""
    results = []
    names = sorted(os.listdir(stores.journals)) if os.path.isdir(stores.journals) else []
    for name in names:
        try:
            results.append(resume_undo(os.path.join(stores.journals, name), stores.store, content_of=stores.get))
        except (OSError, ValueError):
            continue  # another process works on it, or it was never complete
    return results

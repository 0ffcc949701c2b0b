"""`harness run --task FILE --out DIR`: runs one task in a work folder.

A second start of a finished task changes nothing.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from harness.actions import JsonValue
from harness.audit.findings import Soundness, judge_log
from harness.errors import LogError, UsageError
from harness.log.heads_file import HeadsFile
from harness.plugins.fleet.batch.sources import work_folder_of
from harness.plugins.fleet.batch.task import Task, checked_flags, of_task, read_task, settings_of
from harness.plugins.fleet.batch.task_folder import (
    Finished,
    HeldElsewhere,
    Lease,
    TaskFolder,
    changed_patch,
    finished_task,
)
from harness.process.lifeline import is_of_a_batch, watch_lifeline
from harness.session.exits import Exit, is_soft
from harness.session.own_folders import output_path, workspace_folders
from harness.session.signals import bounded_by_signals
from harness.session.state import State
from harness.session.work_folders.changes import Changes, take_changes
from harness.session.work_folders.work_folder import WorkFolder, is_kept, keep
from harness.session.work_folders.worktree import remove_work_folder
from harness.terminal.console import complain

if TYPE_CHECKING:
    from harness.app.run.run_end import RunEnd

    RunOnce: TypeAlias = Callable[[Namespace, Mapping[str, str], Callable[[], str]], RunEnd]

HELD = 75
"""Exit code for the batch if another process runs the task (EX_TEMPFAIL, sysexits(3))."""


def run_task(arguments: Namespace, environment: Mapping[str, str], run_once: RunOnce) -> int:
    """Run one task with `run_once`, or report its end if it is finished. Return the exit code of its run.

    Raises HarnessError for errors before the run. It is a UsageError if another process runs the task, if the folder
    belongs to another task, or if the task was done under other settings.
    """
    checked_flags(arguments)
    task = read_task(arguments.task)
    flags = of_task(arguments, task)
    settings = settings_of(flags, task)
    # A source of a task is not in a local folder yet, so that only the added folders can contain harmful links.
    folders = workspace_folders(flags)[0 if task.source is None else 1 :]
    folder = TaskFolder(output_path(arguments.out, folders, shown_as="--out"))
    output_path(folder.log(0), folders, shown_as="--out")
    folder.make()
    try:
        with Lease(folder.path) as lease:
            watch_lifeline(environment)
            folder.claim(task)
            done = finished_task(folder, task, settings)
            attempt = _Attempt(folder, lease, task, flags, settings, environment, run_once)
            if done is None:
                return attempt.run()
            _check_done(folder, done, _heads(environment))
            attempt.forget_all_but_kept()  # a killed process may have left a work folder
            return _told_again(done, flags)
    except HeldElsewhere:
        if is_of_a_batch(environment):
            return HELD
        raise
    except OSError as error:
        raise UsageError(f"the folder of the task cannot be used: {folder.path}: {error}") from None


def _check_done(folder: TaskFolder, done: Finished, heads: HeadsFile) -> None:
    """Raise LogError if the log, the result or a patch of a finished task was changed.

    The task is not run again, since a new attempt would hide the damage from the user.
    """
    reason = done.damage or changed_patch(folder, done.work)
    noted_head = heads.of_path(done.log)
    if noted_head is not None and noted_head.removed and not os.path.lexists(done.log):
        complain(f"done already; its log was removed on purpose: {noted_head.removed}")
    else:
        reason = reason or done.log_damage
        findings = judge_log(done.log, heads)
        if (
            findings.unfit
            or findings.soundness is Soundness.OPEN
            or findings.verification.head != done.work.get("head")
        ):
            reason = f"{done.log}: {findings.unfit or findings.reason}"
    if reason:
        raise LogError(
            f"the task is done, and what it left is not what was written: {reason}. It is not run again: move its folder "
            "away to have it done anew"
        )


def _told_again(done: Finished, flags: Namespace) -> int:
    if not flags.quiet:
        complain(
            f"done already, in attempt {done.work.get('attempt')}: exit code {int(done.code)}; nothing was run, and its answer "
            "is in its result.json"
        )
    if flags.report:
        complain("the reports of a task are written when it is run: none was written now")
    return done.code


class _Attempt:
    """One attempt at a task, while the lease is held."""

    def __init__(
        self,
        folder: TaskFolder,
        lease: Lease,
        task: Task,
        flags: Namespace,
        settings: Mapping[str, JsonValue],
        environment: Mapping[str, str],
        run_once: RunOnce,
    ) -> None:
        self._folder = folder
        self._lease = lease
        self._task = task
        self._flags = flags
        self._settings = settings
        self._environment = environment
        self._run_once = run_once
        self._changes: Changes | None = None
        """Changes of the run. `None` until they are collected, and if the task's folder was moved or removed."""

    def run(self) -> int:
        """Make the work folder, run in it, save the changes, write the result, and remove the folder.

        Return the exit code. Raises HarnessError.
        """
        self.forget_all_but_kept()
        heads = _heads(self._environment)
        number = self._folder.new_attempt(lambda log: heads.of_path(log) is not None)
        attempt = self._folder.attempt(number)
        # In a batch, the folders of all tasks are in `out`. A copy of the source must not include them.
        out = os.path.dirname(self._folder.path) if is_of_a_batch(self._environment) else self._folder.path
        try:
            tell = _ignore if self._flags.quiet else complain
            work_folder = work_folder_of(self._task, attempt, self._flags.cwd, out, self._environment, tell)
            self._folder.forget_result()
            if not self._flags.quiet:
                for note in work_folder.notes:
                    complain(note)
            flags = copy(self._flags)
            flags.cwd, flags.log, flags.task, flags.out = work_folder.workspace, self._folder.log(number), None, None
            flags.copied_from = self._flags.cwd if self._task.source is None else work_folder.repository or None
            end = self._run_once(flags, self._environment, partial(self._settle, work_folder, attempt))
        except BaseException:
            if os.path.lexists(self._folder.log(number)):
                complain(f"what the run changed is left in {attempt}, until the task is started again")
            else:
                _complain(remove_work_folder(attempt, self._environment))
            raise
        if self._changes is None:
            _complain(self._settle(work_folder, attempt))
        return self._keep(work_folder, number, end.code, end.summary)

    def _settle(self, work_folder: WorkFolder, attempt: str) -> str:
        """Collect the changes. Return the problem, such as a missing patch or task folder, or an empty string."""
        self._changes = self._take_changes(work_folder, attempt) if self._lease.holds() else None
        if self._changes is None or not self._lease.holds():
            self._changes = None
            return f"{self._folder.path} was moved, removed or replaced while the task was run: no result is written"
        return self._changes.lost[0] if self._changes.patch is None and self._changes.lost else ""

    def forget_all_but_kept(self) -> None:
        """Remove the work folders of all attempts, including killed ones, except those for which `is_kept` is true.

        Removes none if the locked folder is no longer at its path, since another process may use the new folder there.
        """
        for number in self._folder.attempts():
            attempt = self._folder.attempt(number)
            if self._lease.holds() and not is_kept(attempt):
                _complain(remove_work_folder(attempt, self._environment))

    def _keep(self, work_folder: WorkFolder, number: int, code: Exit, summary: Mapping[str, JsonValue]) -> int:
        attempt = self._folder.attempt(number)
        changes = self._changes
        if changes is None or not self._lease.holds():
            return Exit.INTERNAL if is_soft(code) else code
        if changes.lost:
            keep(attempt)
            complain(
                f"the folder is kept, since no patch holds all of it: {work_folder.root}: {'; '.join(changes.lost)}"
            )
        work = self._work(work_folder, number, changes, code, summary)
        try:
            self._folder.write_result({**summary, "exit_code": int(code)}, work)
        except OSError as error:
            keep(attempt)
            complain(f"the result cannot be written: {error}; what was changed is left in {work_folder.root}")
            return Exit.INTERNAL if is_soft(code) else code
        # Remove the folders last: until the result is written, only they hold the changes. This includes earlier attempts,
        # in which a git process that survived a kill may have written files.
        if not changes.lost or is_kept(attempt):
            self.forget_all_but_kept()
        return code

    def _take_changes(self, work_folder: WorkFolder, attempt: str) -> Changes:
        try:
            with bounded_by_signals():
                return take_changes(work_folder, attempt, self._folder.path, self._environment)
        except KeyboardInterrupt:
            return Changes(lost=("no patch could be made: it was interrupted",))

    def _work(
        self, work_folder: WorkFolder, number: int, changes: Changes, code: Exit, summary: Mapping[str, JsonValue]
    ) -> dict[str, JsonValue]:
        """Return the notes about the work, such as its settings, source and changes."""
        return {
            "v": 1,
            "id": self._task.id,
            "task_sha256": self._task.sha256,
            "attempt": number,
            "exit_code": int(code),
            "settings": dict(self._settings),
            "kind": work_folder.kind,
            "source": work_folder.source,
            "base": work_folder.base,
            "notes": list(work_folder.notes),
            "changes": changes.patch.as_json if changes.patch else None,
            "ignored": changes.ignored.as_json if changes.ignored else None,
            "kept": work_folder.root if changes.lost else None,
            "lost": list(changes.lost),
            "head": summary.get("head"),
        }


def _heads(environment: Mapping[str, str]) -> HeadsFile:
    return HeadsFile(State.of(environment).heads)


def _ignore(_: str) -> None:
    pass


def _complain(problem: str) -> None:
    if problem:
        complain(problem)

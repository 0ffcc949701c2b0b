"""`harness run --task FILE --out DIR`: one task in a fresh folder, run to its end once; a second start changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from copy import copy

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.state import State
from harness.cli.tasks.fresh import Fresh, forget, fresh_folder, is_kept, keep
from harness.cli.tasks.lease import Lease
from harness.cli.tasks.leash import watch_leash
from harness.cli.tasks.settings import checked_flags, of_task, told
from harness.cli.tasks.task import Task, read_task
from harness.cli.tasks.task_folder import Finished, TaskFolder
from harness.errors import LogError, UsageError
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace

    from harness.cli.tasks.changes import Changes


def run_task(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do one task, or say how it ended where that is done, and return the exit code of its run.

    Raises HarnessError for what fails before the run begins: UsageError too where another process is at it, where the
    folder belongs to another task, and where it was done under other settings.
    """
    checked_flags(arguments)
    task = read_task(arguments.task)
    flags = of_task(arguments, task)
    settings = told(flags, task)
    folder = TaskFolder(arguments.out)
    folder.make()
    try:
        with Lease(folder.path):
            watch_leash(environment)
            folder.claim(task)
            done = folder.finished(task, settings)
            if done is not None:
                return _told_again(done, flags, environment)
            return _Attempt(folder, task, flags, settings, environment).run()
    except OSError as error:
        raise UsageError(f"the folder of the task cannot be used: {folder.path}: {error}") from None


def _told_again(done: Finished, flags: Namespace, environment: Mapping[str, str]) -> int:
    """Say how a task ended, once its log was verified, and return the exit code.

    Raises LogError where the log is not what was written: that a person must look at, and it is not hidden by a new attempt.
    """
    from harness.heads import HeadsFile
    from harness.log_findings import Soundness, judged

    heads = HeadsFile(State.of(environment).heads)
    known = heads.of_path(done.log)
    if known is not None and known.removed and not os.path.lexists(done.log):
        _say(f"done already; its log was removed on purpose: {known.removed}")
    else:
        findings = judged(done.log, heads)
        if findings.unfit or findings.soundness is Soundness.OPEN or findings.found.head != done.result.get("head"):
            why = findings.unfit or findings.why
            raise LogError(
                f"the task is done, and its log is not what was written: {done.log}: {why}. It is not run again: move its "
                "folder away to have it done anew"
            )
    if not flags.quiet:
        _say(f"done already, in attempt {done.work.get('attempt')}: exit code {int(done.code)}; nothing was run")
    if flags.report:
        _say("the reports of a task are written when it is run: none was written now")
    return _written_again(done, flags, environment)


def _written_again(done: Finished, flags: Namespace, environment: Mapping[str, str]) -> int:
    """Write the result or the answer, as the run did, and return the exit code; 141 in the place of success if nobody reads."""
    from harness.cli.output import Output

    fence = None
    if environment.get("GITHUB_ACTIONS") == "true":
        from harness.cli.workflow_commands import Fence

        fence = Fence()
    output = Output(flags.output, _nothing, fence=fence)
    output.finish(done.result, str(done.result.get("answer") or ""))
    if output.why:
        _say(output.why)
    return Exit.BROKEN_PIPE if output.is_broken() else done.code


def _nothing() -> None:
    pass


class _Attempt:
    """One attempt at a task; the lease is held."""

    def __init__(
        self,
        folder: TaskFolder,
        task: Task,
        flags: Namespace,
        settings: Mapping[str, JsonValue],
        environment: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._task = task
        self._flags = flags
        self._settings = settings
        self._environment = environment

    def run(self) -> int:
        """Make the fresh folder, run in it, keep what was changed, remove it, write the result. Raises HarnessError."""
        self._forget_earlier()
        number = self._folder.new_attempt()
        attempt = self._folder.attempt(number)
        try:
            fresh = fresh_folder(attempt, self._flags.cwd, self._task.revision, self._environment)
            if not self._flags.quiet:
                for note in fresh.notes:
                    _say(note)
            from harness.cli.run import run_once

            flags = copy(self._flags)
            flags.cwd, flags.log, flags.task, flags.out = fresh.workspace, self._folder.log(number), None, None
            end = run_once(flags, self._environment)
        except BaseException:
            if os.path.lexists(self._folder.log(number)):
                _say(f"what the run changed is left in {attempt}, until the task is started again")
            else:
                _complain(forget(attempt, self._environment))
            raise
        return self._keep(fresh, number, end.code, end.summary)

    def _forget_earlier(self) -> None:
        """Remove the fresh folders of attempts that were killed. Those that were kept on purpose stay."""
        for number in self._folder.attempts():
            attempt = self._folder.attempt(number)
            if not is_kept(attempt):
                _complain(forget(attempt, self._environment))

    def _keep(self, fresh: Fresh, number: int, code: Exit, summary: Mapping[str, JsonValue]) -> int:
        from harness.cli.tasks.changes import take_changes

        attempt = self._folder.attempt(number)
        changes = take_changes(fresh, attempt, self._folder.path, self._environment)
        kept = bool(changes.lost)
        if kept:
            keep(attempt)
            _say(f"the folder is kept, since no patch holds all of it: {fresh.root}: {'; '.join(changes.lost)}")
        result: dict[str, JsonValue] = {**summary, "exit_code": int(code)}
        work = self._work(fresh, number, changes, summary)
        try:
            self._folder.write_result(result, work)
        except OSError as error:
            keep(attempt)
            _say(f"the result cannot be written: {error}; what was changed is left in {fresh.root}")
            code = Exit.INTERNAL if code in (Exit.DONE, Exit.REFUSED) else code
        else:
            # Last: until the result is there, the folder is all there is of the changes. Of earlier attempts too, where a
            # git that was left alone by a kill may have made something since.
            if not kept or is_kept(attempt):
                self._forget_earlier()
        return code

    def _work(
        self, fresh: Fresh, number: int, changes: Changes, summary: Mapping[str, JsonValue]
    ) -> dict[str, JsonValue]:
        """Return what was worked on, and what became of it."""
        return {
            "v": 1,
            "id": self._task.id,
            "task_sha256": self._task.sha256,
            "attempt": number,
            "settings": dict(self._settings),
            "kind": fresh.kind,
            "source": fresh.source,
            "base": fresh.base,
            "notes": list(fresh.notes),
            "changes": changes.patch.as_json if changes.patch else None,
            "ignored": changes.ignored.as_json if changes.ignored else None,
            "kept": fresh.root if changes.lost else None,
            "lost": list(changes.lost),
            "head": summary.get("head"),
        }


def _complain(problem: str) -> None:
    if problem:
        _say(problem)


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"harness: {visible_line(text, 5_000)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody reads; the result says it too

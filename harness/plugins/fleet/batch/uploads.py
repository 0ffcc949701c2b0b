"""Transfers for a batch with results at a URL. The batch works in a local folder.

Finished tasks at the URL are downloaded before the batch, and tasks that end are uploaded.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Self

from harness.digest import digest_of
from harness.errors import LogError, UsageError
from harness.plugins.fleet.batch.growing_log import GrowingLog
from harness.plugins.fleet.batch.results import INPUTS, Results
from harness.plugins.fleet.batch.store import ResultsError
from harness.plugins.fleet.batch.task import Task
from harness.plugins.fleet.batch.task_folder import FINISHED, TaskFolder, is_held
from harness.safe_files import read_regular
from harness.session.state import State
from harness.text.amounts import count_of

REPORTS = "reports"
LOOK_SECONDS = 1.0
"""Seconds between two checks for finished tasks."""
HEAD_SECONDS = 30.0
"""Seconds between two uploads of the heads of growing logs."""
AFTER_FAILURE_SECONDS = 30.0
"""Seconds to pause uploads after a failure of the store. They are repeated later, at the latest at the end."""
AT_ONCE = 8
"""Number of tasks that are transferred in parallel before the batch."""
_IN_A_ROW = 3
"""Number of consecutive failures after which the uploads at the end of a batch stop."""


def working_folder(out: str, state: State) -> str:
    """Return the local work folder of a batch with results at the URL `out`.

    It is next to the state folder, not inside it, since tasks may not write in the state folder.
    """
    return os.path.join(os.path.dirname(state.state), "harness-batches", digest_of(out.rstrip("/").encode())[:16])


class Uploads:
    """Downloads and uploads the results of a batch. In a `with` block, a thread uploads the tasks that end."""

    def __init__(
        self,
        results: Results,
        folder: str,
        tasks: Sequence[Task],
        *,
        look_seconds: float = LOOK_SECONDS,
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        """Use the place of results, the work folder of the batch, and its tasks.

        Raises UsageError for a reserved task name.
        """
        self._results = results
        self._folder = folder
        self._names = frozenset(task.id for task in tasks)
        if reserved := sorted(self._names & {INPUTS, REPORTS}):
            raise UsageError(
                f"with a URL in --out no task may be called {reserved[0]!r}: the batch writes a folder of that name"
            )
        self._look_seconds = look_seconds
        self._head_seconds = head_seconds
        self._settled: dict[str, tuple[int, int]] = {}
        """Inode and modification time of each result that was uploaded or downloaded, by task."""
        self._logs: dict[str, GrowingLog] = {}
        self._heads_at = self._again_at = 0.0
        self._end_event = Event()
        self._thread = Thread(target=self._watch, name="uploads", daemon=True)

    def bring(self) -> None:
        """Upload results that an earlier start left on this machine, and download finished tasks. Raises UsageError."""
        names = self._results.tasks() & self._names

        def settle_task(name: str) -> str:
            try:
                self._settle(name)
                if name in names:
                    self._fetch(name)
            except ResultsError as error:
                return f"{name}: {error}"
            return ""

        with ThreadPoolExecutor(AT_ONCE) as threads:
            problems = [problem for problem in threads.map(settle_task, sorted(names | self._local_tasks())) if problem]
        if problems:
            more = f" (and {count_of(len(problems) - 1, 'more task')} likewise)" if len(problems) > 1 else ""
            raise UsageError(f"nothing was run: {problems[0]}{more}")
        self._results.write_small(
            f"{INPUTS}/.written", b""
        )  # fails early, hours before the first result, if not writable

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._end_event.set()
        self._thread.join()

    def finish(self, reports: Iterable[str], *, is_ended: Callable[[], bool]) -> tuple[str, ...]:
        """Upload the remaining results, logs without a result, summaries, and the report files. Return the problems.

        Stops early if the store fails repeatedly or `is_ended` returns true. The rest then stays in the local folder.
        """
        problems, failed = list[str](), 0
        names = sorted(self._local_tasks())
        for number, name in enumerate(names):
            if failed == _IN_A_ROW or is_ended():
                problems.append(f"{count_of(len(names) - number, 'task')} not looked at any more")
                break
            try:
                self._settle(name)
                failed = 0
            except ResultsError as error:
                problems.append(f"{name}: {error}")
                failed += 1
        else:
            problems += self.put_others(reports)
        if problems:
            problems.append(f"what was not uploaded lies in {self._folder}: start the batch again to upload it")
        return tuple(problems)

    def put_others(self, reports: Iterable[str]) -> list[str]:
        """Upload the files of the batch itself, such as summaries, then the reports. Return the problems."""
        files = {name: os.path.join(self._folder, name) for name in sorted(os.listdir(self._folder))}
        files |= {f"{REPORTS}/{re.sub('[^A-Za-z0-9._-]', '_', os.path.basename(path))}": path for path in reports}
        problems = []
        for name, path in files.items():
            if os.path.isfile(path):
                try:
                    self._results.write_small(name, read_regular(path))
                except (ResultsError, OSError) as error:
                    problems.append(f"{name}: {error}")
        return problems

    def _watch(self) -> None:
        while not self._end_event.wait(self._look_seconds):
            if time.monotonic() < self._again_at:
                continue
            try:
                self._look()
            except ResultsError:
                # The upload is repeated later. `finish` reports failures at the end.
                self._again_at = time.monotonic() + AFTER_FAILURE_SECONDS

    def _look(self) -> None:
        """Upload the results of finished tasks, and the heads of growing logs. Raises ResultsError."""
        is_time_for_heads = time.monotonic() >= self._heads_at
        if is_time_for_heads:
            self._heads_at = time.monotonic() + self._head_seconds
        for name in sorted(self._local_tasks()):
            if self._end_event.is_set():
                return
            folder = TaskFolder(os.path.join(self._folder, name))
            result = _identity(folder.result)
            if result is None:
                if is_time_for_heads:
                    self._put_head(name, folder)
            elif result != self._settled.get(name) and not is_held(folder.path):
                try:
                    self._settle(name)
                except ResultsError:
                    if _identity(folder.result) == result:  # otherwise the task is being run again
                        raise

    def _settle(self, name: str) -> None:
        """Upload the logs of a task's other attempts, then the finished attempt, and publish it.

        Raises ResultsError.
        """
        folder = TaskFolder(os.path.join(self._folder, name))
        result = _identity(folder.result)
        if result is not None and result == self._settled.get(name):
            return
        attempt = (folder.read_work() or {}).get("attempt") if result is not None else None
        for number in folder.attempts():
            if number != attempt and os.path.lexists(folder.log(number)):
                self._results.put_log(folder.path, name, number)
        if result is not None and type(attempt) is int:
            self._results.put(folder.path, name, attempt)
            self._publish(name, attempt)
            self._settled[name] = result

    def _publish(self, name: str, attempt: int) -> None:
        """Publish an attempt. It replaces an earlier one that did not finish the task. Raises ResultsError."""
        published = self._results.published(name)
        if published is None or published == attempt:
            self._results.publish(name, attempt)
        elif published < attempt:
            is_done = (self._results.work(name) or {}).get("exit_code") in FINISHED
            self._results.publish(name, attempt, instead_of=None if is_done else published)

    def _fetch(self, name: str) -> None:
        """Fetch the files of a task. Raises ResultsError."""
        if self._results.published(name) is None:
            complete = [number for number in self._results.attempts(name) if self._results.is_complete(name, number)]
            if complete:  # an earlier start ended after the upload and before the publication
                self._results.publish(name, complete[-1])
        folder = TaskFolder(os.path.join(self._folder, name))
        if self._results.fetch(name, folder.path) is not None and (result := _identity(folder.result)) is not None:
            self._settled[name] = result

    def _put_head(self, name: str, folder: TaskFolder) -> None:
        """Upload the head of the last attempt's log if the log has grown. Raises ResultsError."""
        number = max(folder.attempts(), default=0)
        path = folder.log(number)
        log = self._logs.get(name)
        if log is None or log.path != path:
            log = self._logs[name] = GrowingLog(path)
        try:
            head = log.look()
        except LogError:
            return  # the process that runs the task reports the error
        if head is not None:
            self._results.put_head(name, number, head.note(path))

    def _local_tasks(self) -> frozenset[str]:
        """Return the tasks that have a folder here."""
        try:
            return self._names.intersection(os.listdir(self._folder))
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise ResultsError(f"{self._folder} cannot be read: {error.strerror}") from None


def _identity(path: str) -> tuple[int, int] | None:
    """Return inode and modification time (ns) of a file. `None` if it does not exist."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns

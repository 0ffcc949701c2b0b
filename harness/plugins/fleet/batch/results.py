"""Place of a batch's results: a folder or a URL. The layout is that of a local batch, so that all readers can use it.

All files of an attempt are under `TASK/attempts/N/`. The log is written first and the result last. The files of the
published attempt are also under `TASK/`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from harness.actions import JsonValue
from harness.audit.batch_results import ATTEMPTS, LOG, TASK
from harness.digest import digest_of
from harness.errors import LogError, UsageError
from harness.plugins.fleet.batch.growing_log import LogHead, head_of
from harness.plugins.fleet.batch.store import (
    PAUSES,
    Pieces,
    ResultsError,
    Store,
    digest_of_pieces,
    pieces_of_file,
    store_at,
)
from harness.plugins.fleet.batch.task_folder import RESULT, STDERR, WORK, TaskFolder, changed_patch, object_in
from harness.safe_files import read_regular, remove_if_there, replace_file, sync_path
from harness.session.work_folders.changes import CHANGES, IGNORED

INPUTS, HEAD = "inputs", "head.json"
"""Names: the folder of the tasks' input files, which are named by digest; the file in an attempt's folder with the
last known head of its log.
"""
SMALL_BYTES = 64 << 20
"""Maximum size of a result, summary or note, in bytes."""
_INPUT = re.compile(r"([0-9a-f]{64})\.[a-z0-9]{1,16}")
_PART = re.compile(r"[A-Za-z0-9._-]{1,200}")


class AttemptTaken(ResultsError):
    """Raised if different files exist under the number of an attempt, or as the result of a task.

    The existing files are not changed.
    """


class Results:
    """One place of results. Every method raises ResultsError if the store fails.

    The files of an attempt are never overwritten or removed, since they are evidence. The exception is an incomplete
    file of an interrupted upload, which is the beginning of the file and is written again.
    """

    def __init__(self, store: Store) -> None:
        """Use the files in `store`; see `at`."""
        self._store = store

    @classmethod
    def at(cls, out: str, *, pauses: Sequence[float] = PAUSES) -> Self:
        """Return the results at a folder or a URL, without reading or writing yet.

        `pauses` are the seconds before each retry of a temporary failure. Raises UsageError for an invalid URL, one
        with credentials, or one that needs a missing package.
        """
        return cls(store_at(out, pauses=pauses))

    @property
    def address(self) -> str:
        """Address of the place, for messages."""
        return self._store.address

    def tasks(self) -> frozenset[str]:
        """Return the names at the top of the place: the tasks, and the other files."""
        return frozenset(self._store.names(""))

    def attempts(self, task: str) -> tuple[int, ...]:
        """Return the numbers of the attempts that have at least one file here."""
        names = self._store.names(f"{task}/{ATTEMPTS}")
        return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 10))

    def is_complete(self, task: str, attempt: int) -> bool:
        """Return whether all files of an attempt are here."""
        return self._result_of(task, attempt) is not None

    def published(self, task: str) -> int | None:
        """Return the number of the published attempt, which is the task's result. `None` if there is none."""
        if self._store.size(f"{task}/{RESULT}") is None:
            return None
        return _attempt_in(self.work(task))

    def work(self, task: str) -> Mapping[str, JsonValue] | None:
        """Return the notes about the work of the published attempt (see `TaskFolder.read_work`); `None` without one."""
        return object_in(self.read_small(f"{task}/{WORK}"))

    def put(self, local_folder: str, task: str, attempt: int) -> None:
        """Upload a finished attempt from the local folder of a task (see TaskFolder), under the same number.

        A repeated upload changes nothing. Raises AttemptTaken if another attempt has that number here, and ResultsError
        if the attempt in the local folder is missing or was changed.
        """
        local = TaskFolder(local_folder)
        result, work = _local_result(local), local.read_work() or {}
        if result is None or _attempt_in(work) != attempt or digest_of(result) != work.get("result_sha256"):
            raise ResultsError(f"{local.path} does not hold the result of attempt {attempt}")
        if changed := changed_patch(local, work):
            raise ResultsError(changed)
        if (head := _head(local.log(attempt))) is None or head.head != work.get("head"):
            raise ResultsError(f"{local.log(attempt)} does not end as it did when the result was written")
        files = {LOG: local.log(attempt), CHANGES: "", IGNORED: "", WORK: local.work}
        for key, name in (("changes", CHANGES), ("ignored", IGNORED)):
            files[name] = os.path.join(local.path, name) if work.get(key) else ""
        stored = self._result_of(task, attempt)
        if stored is not None:
            self._compare(task, attempt, stored == result, files)
            return
        self.put_log(local_folder, task, attempt)
        for name, path in {STDERR: local.stderr, **files}.items():
            if name != LOG and path and os.path.lexists(path):
                self._put_file(_of(task, attempt, name), path)
        self._put(_of(task, attempt, RESULT), lambda: (result,), len(result))

    def put_log(self, local_folder: str, task: str, attempt: int) -> None:
        """Upload the log of an attempt, finished or not, with its head and the task.

        A partial upload of the log is completed. Raises AttemptTaken if another log, or another task, is here.
        """
        local = TaskFolder(local_folder)
        path = local.log(attempt)
        self._put_file(f"{task}/{TASK}", local.task)
        self._put_file(_of(task, attempt, LOG), path)
        if (head := _head(path)) is not None:
            self.put_head(task, attempt, head.note(path))

    def put_head(self, task: str, attempt: int, note: bytes) -> None:
        """Write the head of an attempt's log (see `LogHead.note`), unless the stored head has as many records."""
        name = _of(task, attempt, HEAD)
        if _records(self.read_small(name)) < _records(note):
            self._store.replace(name, lambda: (note,))

    def head(self, task: str, attempt: int) -> Mapping[str, JsonValue] | None:
        """Return the stored head of an attempt's log, in the form of `LogHead.note`. `None` if there is none."""
        return object_in(self.read_small(_of(task, attempt, HEAD)))

    def publish(self, task: str, attempt: int, *, instead_of: int | None = None) -> None:
        """Publish a complete attempt as the task's result. Publishing it again changes nothing.

        The result of the attempt `instead_of` is replaced. Raises AttemptTaken if another attempt is published.
        """
        result = self._result_of(task, attempt)
        if result is None:
            raise ResultsError(f"{self.address}: attempt {attempt} of {task} is not complete")
        stored = self.read_small(f"{task}/{RESULT}")
        if stored == result:
            return
        if stored is not None:
            if instead_of is None or stored != self._result_of(task, instead_of):
                raise AttemptTaken(f"{self.address}: {task} has another result than that of attempt {attempt}")
            # Remove the result first: without it, readers ignore the other files.
            self._store.remove(f"{task}/{RESULT}")
        for name in (STDERR, CHANGES, IGNORED, WORK):
            if self._store.size(_of(task, attempt, name)) is None:
                self._store.remove(f"{task}/{name}")
            else:
                self._store.replace(f"{task}/{name}", self._pieces(_of(task, attempt, name)))
        if not self._store.create(f"{task}/{RESULT}", lambda: (result,)) and (
            self.read_small(f"{task}/{RESULT}") != result
        ):
            raise AttemptTaken(f"{self.address}: {task} got another result at the same time")

    def fetch(self, task: str, into: str) -> int | None:
        """Download the published result and the logs of all attempts into the local folder of a task.

        Return the number of the published attempt, or `None` if there is none. Existing local logs are not changed.
        Raises ResultsError, and keeps the local result, if that is another result that is not stored here.
        """
        local = TaskFolder(into)
        try:
            self._fetch_attempts(task, local)
            return self._fetch_published(task, local)
        except OSError as error:
            raise ResultsError(f"{local.path} cannot be written: {error.strerror or error}") from None

    def put_input(self, path: str, name: str) -> None:
        """Upload an input file of tasks under its digest: `SHA256.ext`.

        A complete file of that name is not replaced.
        """
        digest = _input_digest(name)
        if digest_of_pieces(pieces_of_file(path)()) != digest:
            raise ResultsError(f"{path} does not have the digest {digest}")
        target = f"{INPUTS}/{name}"
        # A file whose digest differs from its name is the rest of an interrupted upload.
        if not self._store.create(target, pieces_of_file(path)) and self._digest(target) != digest:
            self._store.replace(target, pieces_of_file(path))

    def get_input(self, name: str, into: str) -> str:
        """Download an input file into a local folder, and return its path. Raises ResultsError for a wrong digest."""
        digest, path = _input_digest(name), os.path.join(into, name)
        try:
            if os.path.lexists(path) and digest_of_pieces(pieces_of_file(path)()) == digest:
                return path
            os.makedirs(into, mode=0o700, exist_ok=True)
            replace_file(path, self._of_digest(f"{INPUTS}/{name}", digest))
            sync_path(into)
        except OSError as error:
            raise ResultsError(f"{path} cannot be written: {error.strerror or error}") from None
        return path

    def read_small(self, path: str) -> bytes | None:
        """Return the content of a small file, such as a summary. `None` if it does not exist."""
        size = self._store.size(_checked(path))
        if size is None:
            return None
        if size > SMALL_BYTES:
            raise ResultsError(f"{self.address}/{path} is too long: {size} bytes")
        return b"".join(self._store.read(path))

    def write_small(self, path: str, data: bytes) -> None:
        """Write or replace a small file, such as a summary."""
        self._store.replace(_checked(path), lambda: (data,))

    def _put_file(self, name: str, path: str) -> None:
        try:
            size = os.stat(path).st_size
        except OSError as error:
            raise ResultsError(f"{path} cannot be read: {error.strerror}") from None
        self._put(name, pieces_of_file(path), size)

    def _put(self, name: str, pieces: Pieces, size: int) -> None:
        """Write a file, or complete a partial upload of it. Raises AttemptTaken if a different file exists."""
        if self._store.create(name, pieces):
            return
        stored_digest, there_size = self._digest(name), self._store.size(name)
        if stored_digest != digest_of_pieces(pieces(), there_size):
            raise AttemptTaken(f"{self.address}/{name} is there already, and is another")
        if there_size != size:
            self._store.replace(name, pieces)

    def _compare(self, task: str, attempt: int, is_same: bool, files: Mapping[str, str]) -> None:
        """Raise AttemptTaken if the files of a complete attempt differ from the local `files`."""
        for name, path in files.items():
            target = _of(task, attempt, name)
            size = self._store.size(target)
            if path:
                is_same = (
                    is_same and size is not None and self._digest(target) == digest_of_pieces(pieces_of_file(path)())
                )
            else:
                is_same = is_same and size is None
        if not is_same:
            raise AttemptTaken(f"{self.address}: attempt {attempt} of {task} is there already, and is another")

    def _fetch_attempts(self, task: str, local: TaskFolder) -> None:
        """Download the task, the heads of all attempts, and the logs that are missing locally. Raises OSError."""
        os.makedirs(local.path, mode=0o700, exist_ok=True)
        if not os.path.lexists(local.task):
            self._bring(f"{task}/{TASK}", local.task)
        for number in self.attempts(task):
            os.makedirs(local.attempt(number), mode=0o700, exist_ok=True)
            if not os.path.lexists(local.log(number)):
                self._bring(_of(task, number, LOG), local.log(number))
            self._bring(_of(task, number, HEAD), os.path.join(local.attempt(number), HEAD))

    def _fetch_published(self, task: str, local: TaskFolder) -> int | None:
        """Download the published files, the result last. Return the number of the attempt. Raises OSError."""
        result = self.read_small(f"{task}/{RESULT}")
        if result is None:
            return None
        work = self.work(task) or {}
        published = _attempt_in(work)
        if published is None or digest_of(result) != work.get("result_sha256"):
            raise ResultsError(f"{self.address}/{task}/{RESULT} is not what was written")
        mine = _local_result(local)
        if mine == result:
            return published
        if mine is not None and mine != self._result_of(task, _attempt_in(local.read_work())):
            raise ResultsError(
                f"{local.result} is another result than the one at {self.address}, and is not kept there"
            )
        if (head := _head(local.log(published))) is None or head.head != work.get("head"):
            raise ResultsError(f"{local.log(published)} is not the log of attempt {published} at {self.address}")
        for name in (RESULT, WORK, CHANGES, IGNORED):
            remove_if_there(os.path.join(local.path, name))
        for name in (STDERR, CHANGES, IGNORED, WORK):
            self._bring(f"{task}/{name}", os.path.join(local.path, name))
        if changed := changed_patch(local, work):
            raise ResultsError(f"{changed} at {self.address}")
        replace_file(local.result, (result,))
        sync_path(local.path)
        return published

    def _result_of(self, task: str, attempt: int | None) -> bytes | None:
        """Return the result of a complete attempt. `None` if it is missing or its upload was interrupted."""
        result = None if attempt is None else self.read_small(_of(task, attempt, RESULT))
        work = None if result is None else object_in(self.read_small(_of(task, attempt or 0, WORK)))
        return result if result is not None and digest_of(result) == (work or {}).get("result_sha256") else None

    def _bring(self, name: str, path: str) -> None:
        """Download a file, if it exists. Raises OSError."""
        if self._store.size(name) is not None:
            replace_file(path, self._store.read(name))

    def _of_digest(self, name: str, digest: str) -> Iterable[bytes]:
        """Yield the content of a file. At the end, raises ResultsError if its digest differs from `digest`."""
        hasher = hashlib.sha256()
        for piece in self._store.read(name):
            hasher.update(piece)
            yield piece
        if hasher.hexdigest() != digest:
            raise ResultsError(f"{self.address}/{name} does not have the digest that its name says")

    def _digest(self, name: str) -> str:
        return digest_of_pieces(self._store.read(name))

    def _pieces(self, name: str) -> Pieces:
        return lambda: self._store.read(name)


def _of(task: str, attempt: int, name: str) -> str:
    return f"{task}/{ATTEMPTS}/{attempt}/{name}"


def _attempt_in(work: Mapping[str, JsonValue] | None) -> int | None:
    number = (work or {}).get("attempt")
    return number if type(number) is int else None


def _records(note: bytes | None) -> int:
    number = (object_in(note) or {}).get("records")
    return number if type(number) is int else -1


def _local_result(local: TaskFolder) -> bytes | None:
    try:
        return read_regular(local.result)
    except OSError:
        return None


def _head(log: str) -> LogHead | None:
    try:
        return head_of(log)
    except LogError as error:
        raise ResultsError(str(error)) from None


def _input_digest(name: str) -> str:
    match = _INPUT.fullmatch(name)
    if match is None:
        raise UsageError(f"an input is called by its digest, as in SHA256.bundle, and not {name!r}")
    return match[1]


def _checked(path: str) -> str:
    if not all(_PART.fullmatch(part) and part not in (".", "..") for part in path.split("/")):
        raise UsageError(f"no file of results is called {path!r}")
    return path

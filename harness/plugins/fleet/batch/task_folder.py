"""The folder of one task: the lock of its process, the task file, the attempts and the result."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

from harness.actions import JsonValue
from harness.audit.batch_results import ATTEMPTS, LOG, TASK
from harness.digest import digest_of
from harness.errors import LogError, UsageError
from harness.log.reader import last_line, open_log
from harness.plugins.fleet.batch.task import Task, task_of
from harness.record import Record
from harness.safe_files import is_locked_within, read_regular, remove_if_there, replace_file, sync_path
from harness.session.exits import Exit
from harness.session.work_folders.changes import CHANGES, IGNORED
from harness.session.work_folders.work_folder import TREE, is_kept
from harness.text.amounts import count_of
from harness.text.visible import visible_line

LOCK, RESULT, WORK, STDERR = "lock", "result.json", "work.json", "stderr.txt"
LOCK_SECONDS = 0.5
"""Seconds to wait for a lock. A process that only checks the lock holds it for a moment."""


class HeldElsewhere(UsageError):
    """Raised if another process runs the task."""


class Lease:
    """The locks of a task's folder, held during the `with` block. The kernel releases them even after a crash.

    INVARIANT: the harness never removes the lock file, since two processes could then each lock a file of that name.
    Other programs may remove it. Therefore the folder is also locked, if its file system supports that (flock(2); NFS
    does not).
    """

    def __init__(self, folder: str, *, seconds: float = LOCK_SECONDS) -> None:
        """Acquire the lease of the task in `folder`. Wait up to `seconds` for each lock.

        Raises OSError, and HeldElsewhere with the process that holds the lease.
        """
        self._seconds = seconds
        self._path = os.path.join(folder, LOCK)
        self._descriptors: list[int] = []
        try:
            self._lock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o600)
            self._lock(self._file, folder)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            self._close()
            raise

    def _lock(self, descriptor: int, folder: str) -> None:
        self._descriptors.append(descriptor)
        try:
            is_locked = is_locked_within(descriptor, self._seconds)
        except OSError:
            is_locked = True  # the file system cannot lock this one; the other lock decides
        if not is_locked:
            raise HeldElsewhere(f"the task in {folder} is being run by process {holder(folder)}")

    def holds(self) -> bool:
        """Return whether the locked folder is still at its path. It may have been moved, removed or replaced."""
        try:
            return os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._file))
        except OSError:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lease."""
        self._close()

    def _close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def is_held(folder: str) -> bool:
    """Return whether a process holds the lease of the task in `folder`."""
    for path in (folder, os.path.join(folder, LOCK)):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass  # the file system cannot lock this one, so it is not held; the other lock decides
        finally:
            os.close(descriptor)
    return False


def holder(folder: str) -> str:
    """Return the ID of the process that holds the lease, or held it last, for a message."""
    content = (_content(os.path.join(folder, LOCK)) or b"").decode("ascii", "replace").strip()
    return content if content.isdigit() else "that is not known"


class TaskFolder:
    """The files of one task below one folder."""

    def __init__(self, path: str) -> None:
        """Use the folder at `path`, which need not exist yet. Links in the path are resolved, as git does."""
        self.path = os.path.realpath(path)
        self.task = os.path.join(self.path, TASK)
        self.result = os.path.join(self.path, RESULT)
        self.work = os.path.join(self.path, WORK)
        self.stderr = os.path.join(self.path, STDERR)
        self._attempts = os.path.join(self.path, ATTEMPTS)

    def make(self) -> None:
        """Make the folder, with mode 0700. Raises UsageError."""
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the folder of the task cannot be made: {self.path}: {error.strerror}") from None

    def claim(self, task: Task) -> None:
        """Store the task in the folder. Raises UsageError if the folder belongs to another task."""
        stored = _content(self.task)
        if stored is None and not os.path.lexists(self.task):
            _write(self.task, f"{task.text}\n".encode())
            return
        stored_task = task_of(stored or b"", self.task)
        if stored_task.sha256 != task.sha256:
            keys = [
                key
                for key in {**stored_task.file_fields, **task.file_fields}
                if stored_task.file_fields.get(key) != task.file_fields.get(key)
            ]
            raise UsageError(
                f"{self.path} belongs to another task ({', '.join(sorted(keys))} differ): name another folder with --out"
            )

    def attempts(self) -> tuple[int, ...]:
        """Return the numbers of all attempts, in ascending order."""
        try:
            names = os.listdir(self._attempts)
        except OSError:
            return ()
        return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 10))

    def attempt(self, number: int) -> str:
        """Return the folder of an attempt."""
        return os.path.join(self._attempts, str(number))

    def new_attempt(self, is_known: Callable[[str], bool]) -> int:
        """Make the folder of a new attempt, and return its number. Raises UsageError.

        `is_known` returns whether a log was ever written at a path. Numbers of known logs are skipped, even if the
        folder was moved or removed, so that a new log never gets the name of an earlier one.
        """
        number = max(self.attempts(), default=0) + 1
        while is_known(self.log(number)):
            number += 1
        try:
            os.makedirs(self._attempts, mode=0o700, exist_ok=True)
            os.mkdir(self.attempt(number), 0o700)
        except OSError as error:
            raise UsageError(f"{self.attempt(number)} cannot be made: {error.strerror}") from None
        return number

    def forget_result(self) -> None:
        """Remove the result of an earlier attempt, but not its log. Raises OSError."""
        # Remove the result first: without it, readers ignore the other files.
        for name in (RESULT, WORK, CHANGES, IGNORED):
            remove_if_there(os.path.join(self.path, name))

    def log(self, number: int) -> str:
        """Return the path of the action log of an attempt."""
        return os.path.join(self.attempt(number), LOG)

    def write_result(self, result: Mapping[str, JsonValue], work: Mapping[str, JsonValue]) -> None:
        """Write the notes about the work, then the result, and sync both to disk. Raises OSError.

        INVARIANT: the result is the last file that an attempt writes, and the first that the next attempt removes. The
        notes about the work hold its digest, and are written before it.
        """
        data = (json.dumps(result, indent=2) + "\n").encode()
        _write(self.work, (json.dumps({**work, "result_sha256": digest_of(data)}, indent=2) + "\n").encode())
        _write(self.result, data)

    def read_result(self) -> dict[str, JsonValue] | None:
        """Return the result in the folder, from whichever attempt wrote it last. `None` without one."""
        return object_in(_content(self.result))

    def read_work(self) -> dict[str, JsonValue] | None:
        """Return the notes about the work of the last attempt with a result. `None` without any."""
        return object_in(_content(self.work))


def _content(path: str) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def object_in(data: bytes | None) -> dict[str, JsonValue] | None:
    """Parse `data` as a JSON object. Return `None` if it is not one."""
    try:
        value = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _write(path: str, data: bytes) -> None:
    """Write a file atomically, even if the power fails: write a temporary file, then rename it. Raises OSError."""
    replace_file(path, (data,))
    sync_path(os.path.dirname(path))


FINISHED = frozenset((Exit.DONE, Exit.BLOCKED, Exit.LIMIT, Exit.NO_ANSWER, Exit.REFUSED))
"""Exit codes of a finished task. A task with another exit code is tried again."""


class Finished(Record):
    """The stored end of a finished task."""

    code: Exit
    result: Mapping[str, JsonValue]
    work: Mapping[str, JsonValue]
    log: str
    damage: str
    """Problem with the result or a patch, such as a changed file, according to a quick check. Empty without one."""
    log_damage: str
    """Problem with the log, which may have been removed on purpose. Empty without one."""
    is_clean: bool
    """Whether the work folder was removed, or kept on purpose."""


def finished_task(folder: TaskFolder, task: Task, settings: Mapping[str, JsonValue]) -> Finished | None:
    """Return the stored end of a task; `None` if it is unfinished. Reads only the last line of its log.

    Raises UsageError if the task was done under other settings than `settings`.
    """
    data, work = _content(folder.result), folder.read_work()
    result = object_in(data)
    if data is None or result is None or work is None or work.get("task_sha256") != task.sha256:
        return None
    number, code = work.get("attempt"), _end_in(work)
    if type(number) is not int or code is None:
        return None
    if difference := _differing(work, settings):
        raise UsageError(
            f"{folder.path}: the task was done with {difference}; name another folder with --out, or remove it"
        )
    damage = "" if digest_of(data) == work.get("result_sha256") else f"{folder.result} was changed"
    return Finished(
        code=code,
        result=result,
        work=work,
        log=folder.log(number),
        damage=damage or _patch_damage(folder, work),
        log_damage=_log_damage(work, folder.log(number)),
        is_clean=is_kept(folder.attempt(number)) or not os.path.lexists(os.path.join(folder.attempt(number), TREE)),
    )


def refuse_other_settings(folders: Iterable[tuple[TaskFolder, Task, Mapping[str, JsonValue]]]) -> None:
    """Raise UsageError if a task was done under other settings than the requested ones.

    All results in a folder must have the same settings. Each of the tasks has a result.
    """
    first, count = "", 0
    for folder, task, settings in folders:
        work = folder.read_work() or {}
        if work.get("task_sha256") == task.sha256 and _end_in(work) is not None:
            difference = _differing(work, settings)
            count += bool(difference)
            first = first or (f"{task.id} was done with {difference}" if difference else "")
    if first:
        more = f", and {count_of(count - 1, 'more task')} likewise" if count > 1 else ""
        raise UsageError(
            f"the folder of --out holds what was done under other settings: {first}{more}. Nothing was run: name another "
            "folder with --out"
        )


def changed_patch(folder: TaskFolder, work: Mapping[str, JsonValue]) -> str:
    """Return the problem of the first patch that was changed since it was written, or an empty string.

    Reads the patches completely.
    """
    for path, patch in _patches(folder, work):
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
        if digest != patch.get("sha256"):
            return f"{path} was changed"
    return ""


def _patch_damage(folder: TaskFolder, work: Mapping[str, JsonValue]) -> str:
    for path, patch in _patches(folder, work):
        if _size(path) != patch.get("bytes"):
            return f"{path} is not as long as it was"
    return ""


def _patches(folder: TaskFolder, work: Mapping[str, JsonValue]) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    for key, name in (("changes", CHANGES), ("ignored", IGNORED)):
        patch = work.get(key)
        if isinstance(patch, Mapping):
            yield os.path.join(folder.path, name), patch


def _log_damage(work: Mapping[str, JsonValue], path: str) -> str:
    """Return a problem if the log does not end with the noted head and exit code, or an empty string.

    Reads only the last line.
    """
    try:
        with open_log(path) as file:
            line = last_line(file.fileno(), os.fstat(file.fileno()).st_size)
    except (LogError, OSError) as error:
        return f"{path} cannot be read: {error}"
    if line is None or digest_of(line) != work.get("head"):
        return f"{path} does not end as it did"
    exit_code = (object_in(line) or {}).get("exit_code")
    return (
        ""
        if exit_code == work.get("exit_code")
        else f"{path} tells of exit code {visible_line(json.dumps(exit_code), 50)}"
    )


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return -1


def _end_in(work: Mapping[str, JsonValue]) -> Exit | None:
    """Return the noted exit code. `None` if a task with this exit code is not finished."""
    code = work.get("exit_code")
    return Exit(code) if type(code) is int and code in FINISHED else None


def _differing(work: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> str:
    """Return the first setting that differs between a finished run and `now`, in words, or an empty string."""
    then = work.get("settings")
    recorded = then if isinstance(then, dict) else {}
    key = next((key for key in sorted({**recorded, **now}) if recorded.get(key) != now.get(key)), "")
    if not key:
        return ""
    old, new = (visible_line(json.dumps(settings.get(key)), 200) for settings in (recorded, now))
    return f"{key} {old}, and {new} is asked for now"

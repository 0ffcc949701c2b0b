"""The folder of one task: what was asked, an attempt after the other, the result; it knows the names, and runs nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.tasks.changes import CHANGES, IGNORED
from harness.cli.tasks.fresh import ATTEMPTS, TASK
from harness.cli.tasks.task import MAX_TASK_BYTES, Task, task_of
from harness.durable import remove_if_there, sync_path, write_new
from harness.errors import UsageError
from harness.record import Record
from harness.small_files import read_small
from harness.visible import visible_line

RESULT, WORK, LOG, STDERR = "result.json", "work.json", "log.jsonl", "stderr.txt"
MAX_RESULT_BYTES = 64_000_000
FINISHED = frozenset((Exit.DONE, Exit.BLOCKED, Exit.LIMIT, Exit.NO_ANSWER, Exit.REFUSED))
"""The exit codes of a task that is done with: run again it would come to the same. The others are tried again."""


class Finished(Record):
    """A task that is done with."""

    code: Exit
    result: Mapping[str, JsonValue]
    work: Mapping[str, JsonValue]
    log: str


class TaskFolder:
    """The files of one task below one folder."""

    def __init__(self, path: str) -> None:
        """Take the folder, which need not be there yet."""
        self.path = os.path.abspath(path)
        self.task = os.path.join(self.path, TASK)
        self.result = os.path.join(self.path, RESULT)
        self.work = os.path.join(self.path, WORK)
        self.stderr = os.path.join(self.path, STDERR)
        self._attempts = os.path.join(self.path, ATTEMPTS)

    def make(self) -> None:
        """Make the folder, for its owner alone. Raises UsageError."""
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the folder of the task cannot be made: {self.path}: {error.strerror}") from None

    def claim(self, task: Task) -> None:
        """Note what is asked here, or see that it was the same before. Raises UsageError where it was another task."""
        held = read_small(self.task, MAX_TASK_BYTES)
        if held is None and not os.path.lexists(self.task):
            _write(self.task, f"{task.text}\n".encode())
            return
        there = task_of(held or b"", self.task)
        if there.sha256 != task.sha256:
            keys = [key for key in {**there.given, **task.given} if there.given.get(key) != task.given.get(key)]
            raise UsageError(
                f"{self.path} belongs to another task ({', '.join(sorted(keys))} differ): name another folder with --out"
            )

    def attempts(self) -> tuple[int, ...]:
        """Return the numbers of all attempts so far."""
        try:
            names = os.listdir(self._attempts)
        except OSError:
            return ()
        return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit()))

    def attempt(self, number: int) -> str:
        """Return the folder of an attempt."""
        return os.path.join(self._attempts, str(number))

    def new_attempt(self) -> int:
        """Make the folder of one more attempt; what an earlier one came to goes, but for its log. Raises UsageError."""
        number = max(self.attempts(), default=0) + 1
        try:
            # The result first: without it, the others are nobody's.
            for name in (RESULT, WORK, CHANGES, IGNORED):
                remove_if_there(os.path.join(self.path, name))
            os.makedirs(self._attempts, mode=0o700, exist_ok=True)
            os.mkdir(self.attempt(number), 0o700)
        except OSError as error:
            raise UsageError(f"{self.attempt(number)} cannot be made: {error.strerror}") from None
        return number

    def log(self, number: int) -> str:
        """Return the path of the action log of an attempt."""
        return os.path.join(self.attempt(number), LOG)

    def write_result(self, result: Mapping[str, JsonValue], work: Mapping[str, JsonValue]) -> None:
        """Write what was done with the folder, then the result, whole and on disk when this returns. Raises OSError.

        INVARIANT: the result is the last file of an attempt that is written, and the first that goes at the next one.
        """
        _write(self.work, (json.dumps(work, indent=2) + "\n").encode())
        _write(self.result, (json.dumps(result, indent=2) + "\n").encode())

    def read_result(self) -> dict[str, JsonValue] | None:
        """Return the result as it stands there, of whatever attempt; None where it is none."""
        return _read(self.result)

    def read_work(self) -> dict[str, JsonValue] | None:
        """Return what is noted of the fresh folder of the last attempt that came to its end; None where nothing is."""
        return _read(self.work)

    def finished(self, task: Task, settings: Mapping[str, JsonValue]) -> Finished | None:
        """Return how the task ended, where it is done with; else None. Its log is not looked at.

        Raises UsageError where it was done under other settings: the result is not what is asked for now.
        """
        result, work = _read(self.result), _read(self.work)
        if result is None or work is None or work.get("task_sha256") != task.sha256:
            return None
        code, number, head = result.get("exit_code"), work.get("attempt"), result.get("head")
        if type(code) is not int or code not in FINISHED or type(number) is not int or head != work.get("head"):
            return None
        if work.get("settings") != settings:
            told = _differing(work.get("settings"), settings)
            raise UsageError(f"{self.path}: {told}; name another folder with --out, or remove it")
        return Finished(code=Exit(code), result=result, work=work, log=self.log(number))


def ends_in_head(done: Finished) -> bool:
    """Say whether the log of a finished task ends in the head that its result names; what is before is not looked at."""
    import hashlib

    from harness.errors import LogError
    from harness.log_lines import last_line, opened

    try:
        with opened(done.log) as file:
            line = last_line(file.fileno(), os.fstat(file.fileno()).st_size)
    except (LogError, OSError):
        return False
    return line is not None and hashlib.sha256(line).hexdigest() == done.result.get("head")


def _differing(then: JsonValue, now: Mapping[str, JsonValue]) -> str:
    """Say in which setting a finished run was another."""
    held = then if isinstance(then, dict) else {}
    key = next(key for key in sorted({**held, **now}) if held.get(key) != now.get(key))
    old, new = (visible_line(json.dumps(one.get(key)), 200) for one in (held, now))
    return f"the task was done with {key} {old}, and {new} is asked for now"


def _read(path: str) -> dict[str, JsonValue] | None:
    try:
        found = json.loads(read_small(path, MAX_RESULT_BYTES) or b"")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: str, data: bytes) -> None:
    """Write a file beside its place and move it there: whole or not at all, also when the power fails. Raises OSError."""
    made = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        write_new(made, data)
        os.replace(made, path)
    except BaseException:
        remove_if_there(made)
        raise
    sync_path(os.path.dirname(path))

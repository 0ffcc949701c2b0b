"""Whether a task is done with, as its folder says, and whether what it left is what was written; it changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.tasks.changes import CHANGES, IGNORED
from harness.cli.tasks.fresh_folder import TREE, is_kept
from harness.cli.tasks.task import Task
from harness.cli.tasks.task_folder import MAX_RESULT_BYTES, TaskFolder, object_in, sha256_of
from harness.cli.text_lines import counted
from harness.errors import UsageError
from harness.record import Record
from harness.safe_files import read_small
from harness.text.visible import visible_line

FINISHED = frozenset((Exit.DONE, Exit.BLOCKED, Exit.LIMIT, Exit.NO_ANSWER, Exit.REFUSED))
"""The exit codes of a task that is done with: run again it would come to the same. The others are tried again."""


class Finished(Record):
    """A task that is done with, as its folder says."""

    code: Exit
    result: Mapping[str, JsonValue]
    work: Mapping[str, JsonValue]
    log: str
    damage: str
    """Which of its files is not what was written, as far as that can be seen without reading much; else nothing."""
    log_damage: str
    """The same of its log, which may be gone on purpose."""
    is_clean: bool
    """Whether the fresh folder is gone, or kept on purpose."""


def finished(folder: TaskFolder, task: Task, settings: Mapping[str, JsonValue]) -> Finished | None:
    """Return how the task ended, where it is done with; else None. Of its log, the last line is looked at.

    Raises UsageError where it was done under other settings: the result is not what is asked for now.
    """
    data, work = read_small(folder.result, MAX_RESULT_BYTES), folder.read_work()
    result = object_in(data)
    if data is None or result is None or work is None or work.get("task_sha256") != task.sha256:
        return None
    number, code = work.get("attempt"), _end_in(work)
    if type(number) is not int or code is None:
        return None
    if told := _differing(work, settings):
        raise UsageError(f"{folder.path}: the task was done with {told}; name another folder with --out, or remove it")
    damage = "" if sha256_of(data) == work.get("result_sha256") else f"{folder.result} was changed"
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
    """Raise UsageError where tasks were done under other settings than those asked for: one folder, one set of results.

    Each has a result of whatever attempt.
    """
    first, count = "", 0
    for folder, task, settings in folders:
        work = folder.read_work() or {}
        if work.get("task_sha256") == task.sha256 and _end_in(work) is not None:
            told = _differing(work, settings)
            count += bool(told)
            first = first or (f"{task.id} was done with {told}" if told else "")
    if first:
        more = f", and {counted(count - 1, 'more task')} likewise" if count > 1 else ""
        raise UsageError(
            f"the folder of --out holds what was done under other settings: {first}{more}. Nothing was run: name another "
            "folder with --out"
        )


def changed_patch(folder: TaskFolder, work: Mapping[str, JsonValue]) -> str:
    """Say which patch holds something else than what was written, or nothing. Reads them whole."""
    import hashlib

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
    """Say why a log does not end as it did, in the head and with the exit code that were noted; what is before is not read."""
    from harness.errors import LogError
    from harness.log.reader import last_line, opened

    try:
        with opened(path) as file:
            line = last_line(file.fileno(), os.fstat(file.fileno()).st_size)
    except (LogError, OSError) as error:
        return f"{path} cannot be read: {error}"
    if line is None or sha256_of(line) != work.get("head"):
        return f"{path} does not end as it did"
    told = (object_in(line) or {}).get("exit_code")
    return "" if told == work.get("exit_code") else f"{path} tells of exit code {visible_line(json.dumps(told), 50)}"


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return -1


def _end_in(work: Mapping[str, JsonValue]) -> Exit | None:
    """Return the exit code that is noted, where a task with it is done with."""
    code = work.get("exit_code")
    return Exit(code) if type(code) is int and code in FINISHED else None


def _differing(work: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> str:
    """Say in which setting a finished run was another, or nothing."""
    then = work.get("settings")
    held = then if isinstance(then, dict) else {}
    key = next((key for key in sorted({**held, **now}) if held.get(key) != now.get(key)), "")
    if not key:
        return ""
    old, new = (visible_line(json.dumps(one.get(key)), 200) for one in (held, now))
    return f"{key} {old}, and {new} is asked for now"

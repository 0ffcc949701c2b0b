"""SWE-bench: its instances become tasks, and what the tasks changed becomes the predictions that its evaluation reads.

The form is that of SWE-bench, Lite, Verified, Multilingual and SWE-bench-extra alike: the fields that are read here are the
same in all of them. The answers beside them (`patch`, `test_patch`, `hints_text`) go into no task.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.errors import UsageError
from harness.plugins.fleet.batch.outcome import TaskOutcome
from harness.plugins.fleet.batch.task import Task, task_of
from harness.plugins.fleet.batch.task_folder import FINISHED, TaskFolder
from harness.record import Record
from harness.safe_files import read_regular, replace_file, sync_path
from harness.session.work_folders.changes import CHANGES
from harness.text.amounts import count_of
from harness.text.fields import Fields
from harness.text.strict_json import NotJsonError, read_line, read_one

REPOS = "https://github.com/"
"""Default prefix of an instance's `repo`."""
PROMPT = """\
The current folder holds the repository {repo}. Resolve the issue below: change the code so that it does what the issue asks \
for. Leave the changes in the files of this folder. Tests that are not there yet will be run on them.

The issue:

{statement}
"""
MAX_NAMED = 20
"""Maximum number of tasks or files named in one message; the others are counted."""


class Prediction(Record):
    """The changes of a task, in the evaluation's form."""

    model: str
    patch: str
    left_out: tuple[str, ...] = ()
    """The files that are in the task's patch and not in this one, each with the reason."""


def read_instances(path: str, repos: str = REPOS) -> tuple[Task, ...]:
    """Return a task for each SWE-bench instance in a file of JSON lines, or of one JSON array, in their order.

    `repos` is the prefix of the instances' `owner/name`: a URL, or a folder on this machine. Raises UsageError, with
    file and line (or index in the array), for an invalid instance, a duplicate id, and a file without instances.
    """
    prefix = _prefix(repos)
    tasks: dict[str, Task] = {}
    for location, instance in _objects(path):
        task = _task(location, instance, prefix)
        if task.id in tasks:
            raise UsageError(f"{location}: two instances are called {task.id!r}; each has a folder of that name")
        tasks[task.id] = task
    if not tasks:
        raise UsageError(f"{path}: no instances; expected one JSON object on each line")
    return tuple(tasks.values())


def predictions_name(shard: tuple[int, int] | None) -> str:
    """Return the name of the file of predictions in the folder of a batch; each shard has its own."""
    return "preds.json" if shard is None else "preds-{}-of-{}.json".format(*shard)


def is_predictions(name: str) -> bool:
    """Say whether a file of this name in a folder of results holds predictions."""
    return bool(re.fullmatch(r"preds(-[0-9]+-of-[0-9]+)?\.json", name, re.ASCII))


def write_predictions(
    out: str, outcomes: Sequence[TaskOutcome], *, shard: tuple[int, int] | None, tell: Callable[[str], None]
) -> tuple[str, ...]:
    """Write the predictions of a batch into its folder `out`: one object, with an entry for each task that is done.

    `tell` is given a line for each reason why tasks are left out, and for each task of which a file is left out. Return what
    went wrong with the writing, in words.
    """
    name = predictions_name(shard)
    missing: dict[str, list[str]] = {}
    try:
        replace_file(os.path.join(out, name), _entries(out, outcomes, missing, name, tell))
        sync_path(out)
    except OSError as error:
        return (f"{name} cannot be written: {error}",)
    for reason, tasks in missing.items():
        tell(f"{name} is without {count_of(len(tasks), 'task')} ({reason}): {_first_names(tasks)}")
    return ()


def prediction_of(folder: TaskFolder) -> Prediction | str:
    """Return the prediction of a task that is done, or why there is none. Nothing is taken that is not what was written."""
    work, result = folder.read_work(), folder.read_result()
    if work is None or result is None:
        return "no result"
    changes = work.get("changes")
    if not isinstance(changes, dict):
        return "no patch holds what was changed"
    try:
        data = read_regular(os.path.join(folder.path, CHANGES))
    except OSError as error:
        return f"the patch cannot be read: {error.strerror}"
    if digest_of(data) != changes.get("sha256"):
        return "the patch was changed"
    patch, left_out = text_patch(data)
    return Prediction(model=str(result.get("model") or "unknown"), patch=patch, left_out=left_out)


def text_patch(patch: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the part of a git patch that a JSON string can hold and every step of the evaluation can apply.

    Also return the files that are left out, each with the reason: binary ones, since the evaluation falls back to patch(1),
    which knows no binary patches, and those whose lines are not UTF-8.
    """
    texts, left_out = [], []
    for part in _files_of(patch):
        header, *lines = part.split(b"\n")
        names = header.removeprefix(_HEADER)  # `a/NAME b/NAME`, of equal length
        first_name = names[: (len(names) - 1) // 2]
        name = os.fsdecode(first_name.removeprefix(b"a/"))
        if b"GIT binary patch" in lines:  # a line of text has a sign in front
            left_out.append(f"{name} is binary")
            continue
        try:
            texts.append(part.decode())
        except UnicodeDecodeError:
            left_out.append(f"{name} is not UTF-8")
    return "".join(texts), tuple(left_out)


_HEADER = b"diff --git "
_INSTANCE = Fields(
    {"instance_id": "filled", "repo": "repo", "base_commit": "commit", "problem_statement": "filled"},
    {
        "repo": lambda value: _fits(value, r"(?!\.{1,2}/)[\w.-]+/(?!\.{1,2}$)[\w.-]+", "OWNER/NAME"),
        "commit": lambda value: _fits(value, r"[0-9a-f]{40}|[0-9a-f]{64}", "a full commit: 40 hexadecimal digits"),
    },
    is_open=True,
)


def _fits(value: Any, form: str, expected: str) -> str:
    return "" if isinstance(value, str) and re.fullmatch(form, value, re.ASCII) else f"must be {expected}"


def _prefix(repos: str) -> str:
    prefix = os.path.abspath(repos) if os.path.isdir(repos) else repos
    return prefix if prefix.endswith(("/", ":")) else f"{prefix}/"


def _objects(path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield each value of the file, and its place."""
    try:
        data = read_regular(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if data.startswith(b"PAR1"):
        raise UsageError(
            f"{path}: it is a Parquet file, and JSON lines are wanted; with pandas: "
            'pandas.read_parquet(FILE).to_json(OTHER, orient="records", lines=True)'
        )
    if data.lstrip().startswith(b"["):
        for number, instance in enumerate(_array(path, data), start=1):
            yield f"{path}: instance {number}", instance
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                yield f"{path}:{number}", read_line(line)
            except NotJsonError as error:
                raise UsageError(f"{path}:{number}: it is not JSON: {error}") from None


def _array(path: str, data: bytes) -> list[JsonValue]:
    try:
        value = read_one(data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except NotJsonError as error:
        raise UsageError(f"{path}: it is not JSON: {error}") from None
    return value if isinstance(value, list) else []  # it begins with a bracket


def _task(location: str, instance: Any, prefix: str) -> Task:
    if problem := _INSTANCE.problem(instance):
        raise UsageError(f"{location}: {problem}")
    task: dict[str, JsonValue] = {
        "id": instance["instance_id"],
        "prompt": PROMPT.format(repo=instance["repo"], statement=instance["problem_statement"]),
        "repo": prefix + instance["repo"],
        "commit": instance["base_commit"],
    }
    return task_of(json.dumps(task).encode(), location)


def _entries(
    out: str, outcomes: Sequence[TaskOutcome], missing: dict[str, list[str]], name: str, tell: Callable[[str], None]
) -> Iterator[bytes]:
    """Yield the file of predictions in pieces, so that one patch at a time is in memory.

    Note in `missing` which tasks are left out, by the reason.
    """
    yield b"{"
    between = "\n"
    for outcome in outcomes:
        folder = TaskFolder(os.path.join(out, outcome.id))
        prediction = prediction_of(folder) if outcome.code in FINISHED else _why_not_done(outcome.code)
        if isinstance(prediction, str):
            missing.setdefault(prediction, []).append(outcome.id)
            continue
        if prediction.left_out:
            count = count_of(len(prediction.left_out), "file")
            tell(f"{outcome.id}: {name} is without {count} of its patch: {_first_names(prediction.left_out)}")
        entry = {"instance_id": outcome.id, "model_name_or_path": prediction.model, "model_patch": prediction.patch}
        yield f"{between}{json.dumps(outcome.id)}: {json.dumps(entry)}".encode()
        between = ",\n"
    yield b"\n}\n"


def _why_not_done(code: int | None) -> str:
    return "not done" if code is None else f"exit code {int(code)}"


def _files_of(patch: bytes) -> Iterator[bytes]:
    """Yield the part of each file. A line of its content begins with a sign, or holds no space: it is never a header."""
    begins = [match.start() for match in re.finditer(rb"^" + _HEADER, patch, re.MULTILINE)]
    for begin, end in pairwise([*begins, len(patch)]):
        yield patch[begin:end]


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"

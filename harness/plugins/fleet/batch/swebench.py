"""SWE-bench: turns its instances into tasks, and the patches of the tasks into predictions for its evaluation.

SWE-bench, Lite, Verified, Multilingual and SWE-bench-extra all have the fields that are read here. The fields with
answers (`patch`, `test_patch`, `hints_text`) are not passed to any task.
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
"""Default prefix for the `repo` of an instance."""
PROMPT = """\
The current folder holds the repository {repo}. Resolve the issue below: change the code so that it does what the issue asks \
for. Leave the changes in the files of this folder. Tests that are not there yet will be run on them.

The issue:

{statement}
"""
MAX_NAMED = 20
"""Maximum number of tasks or files named in one message. The others are counted."""


class Prediction(Record):
    """The changes of a task, in the evaluation's form."""

    model: str
    patch: str
    left_out: tuple[str, ...] = ()
    """The files of the task's patch that `patch` leaves out, each with the reason."""


def read_instances(path: str, repos: str = REPOS) -> tuple[Task, ...]:
    """Return a task for each SWE-bench instance of a file, in order. The file has JSON lines or one JSON array.

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
    """Return the name of the predictions file in the folder of a batch. Each shard has its own file."""
    return "preds.json" if shard is None else "preds-{}-of-{}.json".format(*shard)


def is_predictions(name: str) -> bool:
    """Return whether `name` is the name of a predictions file."""
    return bool(re.fullmatch(r"preds(-[0-9]+-of-[0-9]+)?\.json", name, re.ASCII))


def write_predictions(
    out: str, outcomes: Sequence[TaskOutcome], *, shard: tuple[int, int] | None, tell: Callable[[str], None]
) -> tuple[str, ...]:
    """Write the predictions of a batch into its folder `out`: one JSON object with an entry for each finished task.

    `tell` gets a message for each reason for which tasks are left out, and for each task with left-out files. Return
    the problems with the writing.
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
    """Return the prediction of a finished task, or the reason why there is none, such as a patch that was changed."""
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
    """Return a git patch without files that the evaluation cannot use, and these files, each with the reason.

    Binary files are left out, since the evaluation may fall back to patch(1), which cannot apply binary patches. Files
    that are not UTF-8 are left out, since a JSON string cannot hold them.
    """
    texts, left_out = [], []
    for part in _files_of(patch):
        header, *lines = part.split(b"\n")
        names = header.removeprefix(_HEADER)  # `a/NAME b/NAME`, of equal length
        first_name = names[: (len(names) - 1) // 2]
        name = os.fsdecode(first_name.removeprefix(b"a/"))
        if b"GIT binary patch" in lines:  # a line of a text file begins with a sign
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
    """Yield the location and the JSON value of each instance in the file."""
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
    """Yield the predictions file in pieces, so that only one patch at a time is in memory.

    Adds the left-out tasks to `missing`, by reason.
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
    """Yield the part of each file in a patch.

    A line of content is never mistaken for a header: it begins with a sign, or contains no space.
    """
    begins = [match.start() for match in re.finditer(rb"^" + _HEADER, patch, re.MULTILINE)]
    for begin, end in pairwise([*begins, len(patch)]):
        yield patch[begin:end]


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"

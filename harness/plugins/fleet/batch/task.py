"""Strict parsing of task files, which hold one JSON object or one per line, and the flags for the run of a task."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from argparse import Namespace
from collections.abc import Mapping
from copy import copy
from typing import Any

from harness.actions import JsonValue
from harness.audit.batch_results import is_summary
from harness.digest import digest_of
from harness.errors import UsageError
from harness.record import Record, field_names
from harness.session.words.template import fill
from harness.session.work_folders.transport import address_problem
from harness.text.fields import Fields, check_of
from harness.text.strict_json import NotJsonError, read_line
from harness.text.visible import visible_line

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SOURCES = ("repo", "bundle", "archive")
_KEYS = {"file_sha256": "sha256"}
"""Fields with another name in a task file, by their name in `Task`: there, `sha256` is the digest of the task."""


class Task(Record):
    """One task: its prompt, and the settings that it requests."""

    id: str
    prompt: str
    """The prompt. With `var`, a template in which {{variables}} are replaced."""
    cwd: str | None = None
    """Repository or folder to work on, relative to the current folder. With a source: the folder inside the source."""
    revision: str | None = None
    """Commit of the repository (default: HEAD)."""
    repo: str | None = None
    """Address of a repository to fetch (see transport.address_problem). This and the next two are sources."""
    bundle: str | None = None
    """Path of a file from `git bundle`, relative to the current folder."""
    archive: str | None = None
    """Path of a tar file, relative to the current folder."""
    commit: str | None = None
    """Full ID of the commit of `repo` or `bundle` to work on."""
    file_sha256: str | None = None
    """Digest of the bundle or the archive. Called `sha256` in the task file."""
    priority: int | None = None
    """Priority in a queue: lower numbers first. A batch on one machine ignores it and the next field."""
    group: str | None = None
    """Name of a group of tasks in a queue. The tasks of a group share a limit."""
    policy: str | None = None
    policy_sha256: str | None = None
    model: str | None = None
    max_turns: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    var: Mapping[str, str] | None = None

    @property
    def source(self) -> str | None:
        """Name of the field with the task's source: one of SOURCES. `None` if the task works on a folder."""
        return next((name for name in SOURCES if getattr(self, name) is not None), None)

    @property
    def file_fields(self) -> dict[str, JsonValue]:
        """The fields of the task as in a task file, without those that are not set."""
        fields: dict[str, JsonValue] = {_KEYS.get(name, name): getattr(self, name) for name in field_names(Task)}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def text(self) -> str:
        """The task as one line of canonical JSON: equal for equal tasks."""
        return json.dumps(self.file_fields, sort_keys=True, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """Digest of `text`, which identifies the task."""
        return digest_of(self.text.encode())


def read_task(path: str) -> Task:
    """Return the task in a file. Raises UsageError, with file and key, for an invalid task."""
    data = _read(path)
    if not data:
        raise UsageError(f"{path}: it is empty; a task is one JSON object")
    return task_of(data, path)


def read_tasks(path: str) -> tuple[Task, ...]:
    """Return the tasks of a file, one on each line, in order. Empty lines are skipped.

    Raises UsageError, with file and line, for the first invalid line, for a duplicate name, and for a file without
    tasks.
    """
    tasks: dict[str, Task] = {}
    for number, line in enumerate(_read(path).split(b"\n"), start=1):
        if not line.strip():
            continue
        task = task_of(line, f"{path}:{number}")
        if task.id in tasks:
            raise UsageError(f"{path}:{number}: two tasks are called {task.id!r}; each has a folder of that name")
        tasks[task.id] = task
    if not tasks:
        raise UsageError(f"{path}: no tasks; expected one JSON object on each line")
    return tuple(tasks.values())


def in_shard(name: str, shard: tuple[int, int] | None) -> bool:
    """Return whether a task belongs to `shard`, (I, N) for the I-th of N shards. Always true without a shard.

    The shard follows from a digest of the task's name alone, so that all machines agree.
    """
    if shard is None:
        return True

    part, parts = shard
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % parts == part - 1


def task_of(line: bytes, location: str) -> Task:
    """Parse the JSON of a task. Raises UsageError with a message that begins with `location`."""
    try:
        fields: Any = read_line(line)  # all fields are checked below
    except NotJsonError as error:
        raise UsageError(f"{location}: it is not JSON: {error}") from None
    if problem := _TASK.problem(fields) or _source_problem(fields):
        raise UsageError(f"{location}: {problem}")
    return Task(**{name: fields[key] for name in field_names(Task) if (key := _KEYS.get(name, name)) in fields})


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path}: it is neither a file nor a pipe")
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _id_problem(value: JsonValue) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value) or value in (".", ".."):
        return "must be 1 to 64 of the characters A-Z a-z 0-9 . _ - (it names a folder)"
    return f"{value!r} is the name of a file that a batch writes" if is_summary(value) else ""


def _text_problem(value: Any) -> str:
    return check_of("filled")(value) or ("holds a NUL character" if "\0" in value else _surrogate_problem(value))


def _var_problem(value: Any) -> str:
    return check_of("object of text")(value) or _surrogate_problem("".join((*value, *value.values())))


def _repo_problem(value: Any) -> str:
    return _text_problem(value) or address_problem(value)


def _commit_problem(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", value):
        return ""
    return "must be the full ID of a commit: 40 or 64 hexadecimal digits in lower case"


_GOES_WITH = {"commit": ("repo", "bundle"), "sha256": ("bundle", "archive")}


def _source_problem(fields: Mapping[str, Any]) -> str:
    """Return the first conflict between fields of a task, or an empty string. Each field is valid by itself."""
    sources = [name for name in SOURCES if name in fields]
    if len(sources) > 1:
        return f"{sources[1]}: {sources[0]} stands there too; a task names one thing to work on"
    for key, owners in _GOES_WITH.items():
        if key in fields and not set(owners) & set(sources):
            more = "; `revision` names a commit of the repository in cwd" if key == "commit" and not sources else ""
            return f"{key}: it goes with {' or '.join(owners)}{more}"
        if sources and sources[0] in owners and key not in fields:
            return f"{sources[0]}: it needs {key} beside it"
    if not sources:
        return ""
    if "revision" in fields:
        return f"revision: it does not go with {sources[0]}"
    cwd = fields.get("cwd", "")
    if cwd.startswith("/") or ".." in cwd.split("/"):
        return f"cwd: with {sources[0]} it is a folder in it: a relative path without `..`"
    return ""


def _surrogate_problem(text: str) -> str:
    return "holds a lone surrogate, which is no character" if re.search("[\ud800-\udfff]", text) else ""


_TASK = Fields(
    {
        "id": "id",
        "prompt": "text",
        "cwd?": "text",
        "revision?": "text",
        "repo?": "repo",
        "bundle?": "text",
        "archive?": "text",
        "commit?": "commit",
        "sha256?": "digest",
        "priority?": "whole from 0 to 2147483647",
        "group?": "text",
        "policy?": "text",
        "policy_sha256?": "digest",
        "model?": "text",
        "max_turns?": "whole above 0, at most 1e12",
        "max_seconds?": "number above 0, at most 1e12",
        "max_tokens?": "whole above 0, at most 1e12",
        "max_cost?": "number above 0, at most 1e12",
        "var?": "var",
    },
    {"id": _id_problem, "text": _text_problem, "var": _var_problem, "repo": _repo_problem, "commit": _commit_problem},
)


DEFAULT_POLICY = "readonly"
"""Policy that applies if the command line names none."""
LIMITS = ("max_turns", "max_seconds", "max_tokens", "max_cost")
_TOLD = (
    "policy", "policy_sha256", "provider", "model", "calls", "effort", "set", "system", "no_instructions", "add_dir",
    "tools", *LIMITS, "output_schema", "allow_refusals", "dry_run", "plan", "replay",
)  # fmt: skip
"""Flags that affect the result of a run. They are stored with it."""
_NOT_WITH_A_TASK = {
    "prompt": "a prompt", "prompt_file": "--prompt-file", "var": "--var", "resume": "--resume", "log": "--log",
    "ask": "--ask",
}  # fmt: skip


def checked_flags(arguments: Namespace) -> None:
    """Raise UsageError for flags of `harness run` that conflict with --task, and if only one of --task and --out is set."""
    if arguments.task is None or arguments.out is None:
        raise UsageError("--task FILE and --out DIR belong together: the task, and the folder for its results")
    flags = [name for flag, name in _NOT_WITH_A_TASK.items() if getattr(arguments, flag, None)]
    if flags:
        raise UsageError(
            f"--task says what is to be done, and its folder holds the log: {', '.join(flags)} cannot be given"
        )


def of_task(arguments: Namespace, task: Task) -> Namespace:
    """Return the flags for the run of a task, without workspace and log. Raises UsageError.

    The model and the folder of the task take precedence over the command line. The lower of two limits applies. A task
    cannot choose its policy: if it names one, it is refused under any other policy, including the default.
    """
    flags = copy(arguments)
    flags.prompt, flags.no_stdin = task.prompt, True
    if task.var:
        flags.prompt = fill(task.prompt, task.var, name=f"the prompt of task {task.id}", all_used=True)
    if task.policy is not None and [task.policy] != (flags.policy or [DEFAULT_POLICY]):
        holding = " and ".join(flags.policy or [f"{DEFAULT_POLICY} (the default)"])
        raise UsageError(
            f"task {task.id} is meant for the policy {visible_line(task.policy or '', 200)}, and "
            f"{visible_line(holding, 200)} holds: a task does not change the policy; "
            "name it with --policy"
        )
    if None not in (task.policy_sha256, flags.policy_sha256) and task.policy_sha256 != flags.policy_sha256:
        raise UsageError(f"task {task.id} is meant for another content of the policy than --policy-sha256 says")
    flags.policy_sha256 = flags.policy_sha256 or task.policy_sha256
    flags.model = task.model or flags.model
    flags.cwd = (task.cwd if task.source is None else None) or flags.cwd or os.getcwd()
    for name in LIMITS:
        limits = [limit for limit in (getattr(task, name), getattr(flags, name)) if limit is not None]
        setattr(flags, name, min(limits, default=None))
    return flags


def settings_of(flags: Namespace, task: Task) -> dict[str, JsonValue]:
    """Return the settings of a task's run for its folder, without those that are not set.

    The address of the model is not one of them.
    """
    settings: dict[str, JsonValue] = {name: getattr(flags, name, None) for name in _TOLD}
    if settings["policy"] is not None:
        settings["policy"] = " and ".join(flags.policy)
    settings["cwd"] = os.path.realpath(flags.cwd) if task.source is None else None
    settings["revision"] = task.revision
    return {name: value for name, value in settings.items() if value not in (None, False, [])}

"""Under which settings a task is run: those of the command line, and what the task says, which loosens none of them."""

from __future__ import annotations

import os
from copy import copy

from harness.actions import JsonValue
from harness.cli.tasks.task import Task
from harness.errors import UsageError
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace

DEFAULT_POLICY = "readonly"
"""What holds where the command line names none."""
_LIMITS = ("max_turns", "max_seconds", "max_tokens", "max_cost")
_TOLD = (
    "policy", "policy_sha256", "provider", "model", "system", "no_instructions", "add_dir", *_LIMITS,
    "output_schema", "allow_refusals", "dry_run", "plan", "replay",
)  # fmt: skip
"""The flags that decide what a run comes to."""
_NOT_WITH_A_TASK = {
    "prompt": "a prompt", "prompt_file": "--prompt-file", "var": "--var", "resume": "--resume", "log": "--log",
}  # fmt: skip


def checked_flags(arguments: Namespace) -> None:
    """Raise UsageError for flags of `harness run` that make no sense beside --task, and for one of --task and --out alone."""
    if arguments.task is None or arguments.out is None:
        raise UsageError(
            "--task FILE and --out DIR belong together: what is to be done, and where what comes of it goes"
        )
    given = [name for flag, name in _NOT_WITH_A_TASK.items() if getattr(arguments, flag, None)]
    if given:
        raise UsageError(
            f"--task says what is to be done, and its folder holds the log: {', '.join(given)} cannot be given"
        )


def of_task(arguments: Namespace, task: Task) -> Namespace:
    """Return the flags of the run that does the task, without its workspace and log.

    The task's own model and folder count before the command line's. A task does not choose its policy: it may say which one
    it is meant for, and is refused under any other, the default too. Of two limits the lower holds. Raises UsageError.
    """
    flags = copy(arguments)
    flags.prompt, flags.no_stdin = task.prompt, True
    if task.var:
        from harness.template import fill

        flags.prompt = fill(task.prompt, task.var, name=f"the prompt of task {task.id}", all_used=True)
    if task.policy not in (None, flags.policy or DEFAULT_POLICY):
        raise UsageError(
            f"task {task.id} is meant for the policy {visible_line(task.policy or '', 200)}, and "
            f"{visible_line(flags.policy or f'{DEFAULT_POLICY} (the default)', 200)} holds: a task does not change the policy; "
            "name it with --policy"
        )
    if None not in (task.policy_sha256, flags.policy_sha256) and task.policy_sha256 != flags.policy_sha256:
        raise UsageError(f"task {task.id} is meant for another content of the policy than --policy-sha256 says")
    flags.policy_sha256 = flags.policy_sha256 or task.policy_sha256
    flags.model = task.model or flags.model
    flags.cwd = task.cwd or flags.cwd or os.getcwd()
    for name in _LIMITS:
        limits = [limit for limit in (getattr(task, name), getattr(flags, name)) if limit is not None]
        setattr(flags, name, min(limits, default=None))
    return flags


def settings_of(flags: Namespace, task: Task) -> dict[str, JsonValue]:
    """Return the settings of a task's run as its folder keeps them: only what was said. Where the model is asked is none."""
    settings: dict[str, JsonValue] = {name: getattr(flags, name, None) for name in _TOLD}
    settings["cwd"] = os.path.realpath(flags.cwd)
    settings["revision"] = task.revision
    return {name: value for name, value in settings.items() if value not in (None, False, [])}

"""The process that does one task of a batch: it ends soon after the batch does, however the batch ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.cli.batch.git import VARIABLE, Lifeline
from harness.cli.batch.task_folder import TaskFolder
from harness.record import Record

if TYPE_CHECKING:
    from argparse import Namespace
    from subprocess import Popen

MAX_TOLD_BYTES = 4_000
"""Of the end of what a process wrote to stderr, so much is looked at for its last line."""
_CODE = "import sys; sys.path.append(sys.argv.pop(1)); from harness.cli.main import program; program()"
# 40 tasks must not write 40 summaries of one step: the batch tells GitHub of all of them at once.
_NOT_PASSED = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
_VALUES = (
    "policy", "policy_sha256", "provider", "model", "base_url", "api", "system", "cwd", "max_turns", "max_seconds",
    "max_tokens", "max_cost",
)  # fmt: skip
_SWITCHES = ("no_instructions", "dry_run", "plan", "allow_refusals", "quiet")


class Worker(Record):
    """A process that does a task."""

    process: Popen[bytes]
    folder: TaskFolder
    began: float
    """time.monotonic()."""

    def ask_to_end(self) -> None:
        """Send SIGTERM: the run ends with a whole log."""
        try:
            self.process.send_signal(signal.SIGTERM)
        except OSError:
            pass  # it has ended

    def kill(self) -> None:
        """Send SIGKILL to its group: a git that it waits for ends with it."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended


def start_worker(
    folder: TaskFolder, arguments: Namespace, environment: Mapping[str, str], lifeline: Lifeline
) -> Worker:
    """Start `harness run --task ... --out ...` for the task in a folder. Raises OSError.

    What it says on stderr is added to a file in the folder; its stdout goes nowhere. It is in a process group of its own:
    Ctrl-C at the terminal is for the batch, which passes it on.
    """
    import subprocess

    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    errors = os.open(folder.stderr, flags, 0o600)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    try:
        process = subprocess.Popen(
            # -P: no module of the current folder is taken for one of ours.
            [sys.executable, "-P", "-c", _CODE, package, *_words(folder, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={
                **{key: value for key, value in environment.items() if key not in _NOT_PASSED},
                VARIABLE: str(lifeline.reading),
            },
            pass_fds=(lifeline.reading,),
            process_group=0,
        )
    finally:
        os.close(errors)
    return Worker(process=process, folder=folder, began=time.monotonic())


def last_words(folder: TaskFolder) -> str:
    """Return the last line that the process of a task wrote to stderr; nothing where it wrote none."""
    try:
        with open(folder.stderr, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_TOLD_BYTES))
            lines = file.read(MAX_TOLD_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _words(folder: TaskFolder, arguments: Namespace) -> list[str]:
    """Return the command line. Values stand behind `=`: one that begins with a dash is no flag."""
    words = ["run", f"--task={folder.task}", f"--out={folder.path}"]
    for name in _VALUES:
        value = getattr(arguments, name, None)
        if value is not None:
            words.append(f"--{name.replace('_', '-')}={value}")
    words += [f"--add-dir={folder}" for folder in arguments.add_dir]
    return [*words, *(f"--{name.replace('_', '-')}" for name in _SWITCHES if getattr(arguments, name, False))]

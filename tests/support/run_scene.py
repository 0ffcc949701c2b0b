"""What the tests of `harness run` share: flags, small disks, waiting, and what is left of a run."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from process_scene import wait_until as holds

from harness.models.scripted import Reply, call, say
from policies import AUTO

if TYPE_CHECKING:
    from program import Program


def bash(command: str) -> Reply:
    """Return a reply with one call."""
    return Reply(calls=(call("bash", command=command),))


TOUCH, DONE = bash("touch made"), say("All done.")


def written(path: Path, text: str) -> str:
    """Write a file, its folder made, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def flags_of(program: Program, url: str, rules: str = AUTO) -> tuple[str, ...]:
    """Return the flags that every run has, with a policy beside the workspace."""
    policy = written(program.home / "policy.toml", rules)
    return ("--base-url", url, "--model", "scripted", "--policy", policy, "--output", "json")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Make a file system of 64 kB, and take it away again; a test that cannot have one is skipped."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def wait_until(is_there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait for something while the program runs."""
    until = time.monotonic() + 120
    while not is_there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


def left_in(folder: Path) -> list[str]:
    """Return the processes that stay in `folder` however long one waits: the guard ends when it sees that its run has."""
    holds(lambda: not processes_in(folder))
    return processes_in(folder)


def processes_in(folder: Path) -> list[str]:
    """Return the command lines of the processes whose current folder is `folder`."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if os.readlink(f"/proc/{entry.name}/cwd") == str(folder):
                    found.append(Path(f"/proc/{entry.name}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # gone meanwhile, or not ours
    return found

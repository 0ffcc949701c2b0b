"""git as the tests run it: with no configuration but the repository's own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path


def run_git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return what came of a git command; of names that are no UTF-8, as os.fsdecode has them."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CEILING_DIRECTORIES": tempfile.gettempdir(),  # a repository around it is none of the test
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C.UTF-8",
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(
        ["git", *words],
        check=False,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))

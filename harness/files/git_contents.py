"""Read contents from the objects of repositories, with git in an empty repository of our own (`GitContents`).

INVARIANT: no configuration, hook, attribute or replacement of a repository is in force, and nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Collection, Iterator
from typing import IO

from harness.process.environment import OFFLINE_VARIABLES
from harness.safe_files import make_private, replace_file
from harness.system import memory_file

_SECONDS = 120.0
"""Time limit for one reading."""
_FILES = {
    "HEAD": b"ref: refs/heads/none\n",
    "config": b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
}


class GitContents:
    """Reads contents by their object ids (SHA-1) from the object folders of repositories."""

    def __init__(self, program: str, folder: str) -> None:
        """Use the git `program`, and an absolute `folder` for the empty repository. It is created at the first reading."""
        self._program = program
        self._folder = folder

    def read(self, ids: Collection[bytes], objects: Collection[str], max_bytes: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield id and content of each object that one of the folders `objects` holds.

        Missing, damaged and larger objects are skipped, and all the remaining ones if git fails.
        """
        import subprocess

        if not ids:
            return
        # A file in memory, so that git can print before it has read all ids.
        question = memory_file("ids")
        try:
            with open(os.dup(question), "wb") as file:
                file.writelines(object_id.hex().encode() + b"\n" for object_id in ids)
            os.lseek(question, 0, os.SEEK_SET)
            self._create()
            process = subprocess.Popen(
                [self._program, f"--git-dir={self._folder}", "cat-file", "--batch", "--buffer"],
                cwd="/",
                env=_environment(objects),
                stdin=question,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return
        finally:
            os.close(question)
        late = threading.Timer(_SECONDS, process.kill)
        late.daemon = True
        late.start()
        try:
            if process.stdout is not None:
                yield from _answers(process.stdout, max_bytes)
        finally:
            late.cancel()
            process.kill()
            process.communicate()

    def _create(self) -> None:
        """Create the empty repository. Raises OSError."""
        for name in ("objects", "refs"):
            make_private(os.path.join(self._folder, name))
        for name, data in _FILES.items():
            path = os.path.join(self._folder, name)
            if not os.path.lexists(path):
                replace_file(path, (data,))


def _environment(objects: Collection[str]) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, objects)),
        **OFFLINE_VARIABLES,
    }


def _quoted(path: str) -> str:
    """Return a path as git reads it from a list of paths (git(1)): in double quotes, since it may hold a colon."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _answers(stream: IO[bytes], max_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield id and content of each object in the output of `git cat-file --batch`."""
    while line := stream.readline():
        words = line.split()
        if len(words) != 3:
            continue  # `<id> missing`
        size = int(words[2])
        if size > max_bytes:
            remaining = size + 1
            while remaining and (data := stream.read(min(remaining, 1_000_000))):
                remaining -= len(data)
            continue
        data = stream.read(size)
        if len(data) != size or stream.read(1) != b"\n":
            return
        object_id = hashlib.sha1(b"blob %d\0" % size + data, usedforsecurity=False).digest()
        if object_id.hex().encode() == words[0]:
            yield object_id, data

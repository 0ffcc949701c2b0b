"""A finished attempt in the local folder of a task; and stores of results that fail in ways of their own."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any, ClassVar, Self

from forged_logs import a_session, head_of, lines_of, write
from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem

from harness.actions import JsonValue
from harness.plugins.fleet.batch.task import Task
from harness.plugins.fleet.batch.task_folder import TaskFolder

TASK = Task(id="t", prompt="Do it.")


def attempt_log(folder: Path, number: int = 1, *, calls: int = 2, whole: bool = True) -> Path:
    """Write the task, and the log of an attempt; without `whole` the session has no end."""
    local = TaskFolder(str(folder))
    local.make()
    local.claim(TASK)
    lines = lines_of(a_session(calls))
    return write(Path(local.log(number)), lines if whole else lines[:-2])


def finished(folder: Path, number: int = 1, *, calls: int = 2, answer: str = "done", patch: str = "a patch\n") -> Path:
    """Make a finished attempt as `harness run --task` leaves it. Return the folder of the task."""
    log = attempt_log(folder, number, calls=calls)
    local = TaskFolder(str(folder))
    Path(local.stderr).write_text("harness: done\n")
    data = patch.encode()
    (folder / "changes.patch").write_bytes(data)
    changes: dict[str, JsonValue] = {"file": "changes.patch", "files": 1, "bytes": len(data)}
    changes["sha256"] = hashlib.sha256(data).hexdigest()
    work: dict[str, JsonValue] = {
        "v": 1,
        "id": TASK.id,
        "task_sha256": TASK.sha256,
        "attempt": number,
        "exit_code": 0,
        "settings": {},
        "changes": changes,
        "ignored": None,
        "head": head_of(log.read_bytes().splitlines()),
    }
    local.write_result({"answer": answer, "exit_code": 0}, work)
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by its path from there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remembered(prefix: str) -> dict[str, bytes]:
    """Return every file below a `memory://` URL (also of the stores below), by its path from there."""
    found = {path: file.getvalue() for path, file in MemoryFileSystem.store.items()}
    return {path.removeprefix(f"/{prefix}/"): data for path, data in found.items() if path.startswith(f"/{prefix}/")}


def head_in(note: bytes) -> tuple[int, str, bool]:
    """Return records, head and whether the log was closed, as a head.json says."""
    found = json.loads(note)
    return found["records"], found["head"], found["closed"]


class Failing(MemoryFileSystem):  # type: ignore[misc] # fsspec has no types
    """A store in memory that fails as the test says: `failing` maps a part of `PATH MODE` to the errors of the next opens."""

    protocol = "failing"
    store: ClassVar[dict[str, Any]] = MemoryFileSystem.store
    failing: ClassVar[dict[str, list[Exception]]] = {}
    torn: ClassVar[dict[str, int]] = {}
    """After how many bytes the write of a path is cut off with an error, by a part of the path; once."""
    opened: ClassVar[list[tuple[str, str]]] = []
    """Every path that was opened to be written, and how."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("failing://").strip("/")

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            self.opened.append((path, mode))
            for part, errors in self.failing.items():
                if part in f"{path} {mode}" and errors:
                    raise errors.pop(0)
        file = super()._open(path, mode, **options)
        for part, size in list(self.torn.items()) if mode != "rb" else ():
            if part in path:
                del self.torn[part]
                return _Torn(file, size)
        return file


class _Torn:
    def __init__(self, file: Any, size: int) -> None:
        self._file = file
        self._left = size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, data: bytes) -> int:
        self._file.write(data[: self._left])
        raise OSError(errno.ECONNRESET, "Connection reset by peer")


def register() -> None:
    """Have fsspec know the store, and begin anew."""
    register_implementation("failing", Failing, clobber=True)
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    Failing.failing.clear()
    Failing.torn.clear()
    Failing.opened.clear()

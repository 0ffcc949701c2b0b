"""Journal of one undo (`UndoJournal`): its steps and its progress on disk, so that a killed undo can be finished.

The file holds one JSON value a line: first the workspace, the mark and the steps, then one note for each risky action,
written before the action. A last line that is cut short is ignored: its action was not begun.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from typing import Self

from harness.actions import JsonValue
from harness.files.tree_undo import UndoStep
from harness.safe_files import NEW_FILE, name_beside, read_regular, remove_if_there, sync_names, write_whole

_VERSION = 1
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


class UndoJournal:
    """The journal of one undo. Its file is locked until it is closed or finished."""

    def __init__(self, path: str, descriptor: int, root: str, mark: str, steps: Sequence[UndoStep]) -> None:
        self.path = path
        self.root = root
        self.mark = mark
        """Random part of the names of temporary files."""
        self.steps = tuple(steps)
        self.ready: set[int] = set()
        """Steps (by number) with a complete temporary file that is about to take its name."""
        self.made_folders: set[int] = set()
        """Steps that make a folder, or are about to."""
        self.opened: dict[str, int] = {}
        """Permission bits of paths before they were opened for the undo."""
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: str, root: str, steps: Sequence[UndoStep]) -> Self:
        """Create the journal at the absolute `path`, in a folder that exists. It is on disk when this returns.

        Raises OSError.
        """
        mark = os.urandom(6).hex()
        head = {"version": _VERSION, "root": root, "mark": mark, "steps": [step.fields() for step in steps]}
        temporary = name_beside(path)
        descriptor = os.open(temporary, NEW_FILE, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            write_whole(descriptor, _encode(head).encode() + b"\n")
            os.fsync(descriptor)
            os.rename(temporary, path)
        except BaseException:
            os.close(descriptor)
            remove_if_there(temporary)
            raise
        sync_names(os.path.dirname(path))
        return cls(path, descriptor, root, mark, steps)

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the journal of an undo that was killed.

        Raises BlockingIOError if the undo still runs, OSError, and ValueError for an invalid journal.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            head, *lines = read_regular(path).split(b"\n")
            journal = cls(path, descriptor, *_head_from(json.loads(head)))
            for line in lines[:-1]:  # after the last newline: nothing, or a line that was cut short
                journal._add(_note_from(line))
            if lines and lines[-1]:
                write_whole(descriptor, b"\n")
        except BaseException:
            os.close(descriptor)
            raise
        return journal

    def _add(self, note: object) -> None:
        match note:
            case ["ready", int(number)]:
                self.ready.add(number)
            case ["made", int(number)]:
                self.made_folders.add(number)
            case ["opened", str(path), int(mode)]:
                self.opened.setdefault(path, mode)
            case _:
                pass  # a line that was cut short by a kill

    def note_ready(self, number: int) -> None:
        """Note that the temporary file of a step is complete. Raises OSError."""
        self._write(["ready", number])

    def note_made(self, number: int) -> None:
        """Note that the folder of a step is about to be made. Raises OSError."""
        self._write(["made", number])

    def note_opened(self, path: str, mode: int) -> None:
        """Note the permission bits of a path that is about to be opened. Raises OSError."""
        self._write(["opened", path, mode])

    def _write(self, note: list[str | int]) -> None:
        write_whole(self._descriptor, _encode(note).encode() + b"\n")
        self._add(note)

    def close(self) -> None:
        """Close the file. The undo can be resumed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def finish(self) -> None:
        """Remove the journal. Raises OSError."""
        os.unlink(self.path)
        self.close()


def _head_from(head: JsonValue) -> tuple[str, str, list[UndoStep]]:
    """Return the workspace, the mark and the steps of a journal's first line. Raises ValueError."""
    match head:
        case {"version": int(version), "root": str(root), "mark": str(mark), "steps": list(steps)} if (
            version == _VERSION
        ):
            return root, mark, [UndoStep.from_fields(fields) for fields in steps]
        case _:
            raise ValueError("invalid journal of an undo")


def _note_from(line: bytes) -> JsonValue:
    """Return a note, or `None` for a line that was cut short by an earlier kill."""
    try:
        note: JsonValue = json.loads(line)
    except ValueError:
        return None
    return note

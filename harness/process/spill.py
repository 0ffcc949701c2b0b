"""Full outputs kept in files, bounded for a call and for a session; a disk that is full harms no command."""

from __future__ import annotations

import os
from _thread import allocate_lock

CALL_BYTES = 64 << 20
SESSION_BYTES = 512 << 20
_MIB = 1 << 20


class OutputFolder:
    """The folder of a session's full outputs. Nothing else should be kept in it: the oldest files are removed."""

    def __init__(self, folder: str, *, call_bytes: int = CALL_BYTES, session_bytes: int = SESSION_BYTES) -> None:
        """Take the folder, made (mode 0700) when the first file is kept; bounds in bytes."""
        self.folder = folder
        self.call_bytes = call_bytes
        self._session_bytes = session_bytes
        self._lock = allocate_lock()

    def spill(self) -> Spill:
        """Return a file for one output, not yet made."""
        return Spill(self, os.path.join(self.folder, f"output-{os.urandom(6).hex()}.txt"))

    def make(self) -> None:
        """Make the folder. Raises OSError."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def trim(self, newest: str) -> None:
        """Remove the oldest files until the session's bound holds; never `newest`."""
        with self._lock:
            try:
                with os.scandir(self.folder) as entries:
                    files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
            except OSError:
                return
            size = sum(status.st_size for status, _ in files)
            for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
                if size <= self._session_bytes:
                    return
                if path != newest:
                    _remove(path)
                    size -= status.st_size


class Spill:
    """One output, byte for byte as far as it fits."""

    def __init__(self, outputs: OutputFolder, path: str) -> None:
        self.path = path
        self.size = 0
        """Bytes that the file holds."""
        self.failure = ""
        """Why there is no file, or no whole one; empty: none of that."""
        self._outputs = outputs
        self._room = outputs.call_bytes
        self._file = -1

    def add(self, block: bytes) -> None:
        """Append; what does not fit any more is left out."""
        if self.failure or not block:
            return
        try:
            if self._file < 0:
                self._outputs.make()
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self.path, flags, 0o600)
            room = self._room - self.size
            self._write(memoryview(block)[:room])
        except OSError as error:
            self._fail(f"the full output could not be saved: {error.strerror or error}")
            return
        if len(block) > room:
            self.failure = f"spill cut at {self._room // _MIB} MiB"

    def close(self) -> None:
        """Close the file, and remove older ones if the session has too many."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._outputs.trim(self.path)

    def _write(self, block: memoryview) -> None:
        while block:
            written = os.write(self._file, block)
            self.size += written
            block = block[written:]

    def _fail(self, reason: str) -> None:
        """Keep no half of an output that would pass for the whole."""
        self.failure = reason
        self.size = 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            _remove(self.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass

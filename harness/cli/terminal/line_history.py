"""The lines that a person typed before, in a private file that several programs may add to. It holds no secret.

One JSON string a line (RFC 8259), so that an entry of many lines is one line of the file, and one that was cut short by
a crash is passed over. A file that others may write is not used: what they put there could be sent with one key.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.history import History

from harness.safe_files import MAY_USE, append_line, open_private, remove_if_there, write_new

if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor

MOST_ENTRIES = 10_000
"""Kept in the file: some years of prompts."""
MOST_BYTES = 2_000_000
"""Of the file: read behind the first prompt in some 20 ms."""
LONGEST_ENTRY = 100_000
"""Characters; a longer entry is kept as long as the program runs."""
TRIMMED_SHARE = 0.75
"""How much of the most is left when the file is trimmed, so that it is not trimmed for every line."""
LOCK_SECONDS = 0.5
"""How long a line that was sent waits for another program that writes its own."""
_AT_ONCE = 500
"""Entries that are read before the keys get their turn again."""


class KeptHistory(History):
    """Lines of earlier programs, read bit by bit behind the first prompt, and those of this one."""

    def __init__(self, path: str, redactor: Redactor | None) -> None:
        """Take where they are kept, and what finds secrets. Nothing is opened before the first prompt is on the screen."""
        super().__init__()
        self._file = HistoryFile(path)
        self._redactor = redactor
        self._earlier: list[str] = []
        """Of the file, the newest first."""
        self._own: list[str] = []
        """Of this program, the oldest first."""
        self._source: Iterator[str] | None = None

    @property
    def problem(self) -> str:
        """Why lines are not kept beyond this program; empty where they are, or where it is not known yet."""
        return self._file.problem

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield every entry, the newest first; between some hundred of them the keys get their turn."""
        for text in reversed(self._own[:]):
            yield text
        place = 0
        while place < len(self._earlier) or self._read_more():
            yield self._earlier[place]
            place += 1
            if place % _AT_ONCE == 0:
                await _Turn()

    def _read_more(self) -> bool:
        if self._source is None:
            self._source = self._file.entries(before=tuple(self._own))
        text = next(self._source, None)
        if text is not None:
            self._earlier.append(text)
        return text is not None

    def load_history_strings(self) -> Iterable[str]:
        """Return every entry, the newest first."""
        while self._read_more():
            pass
        return [*reversed(self._own), *self._earlier]

    def get_strings(self) -> list[str]:
        """Return what was read so far, the oldest first."""
        return [*reversed(self._earlier), *self._own]

    def append_string(self, string: str) -> None:
        """Keep a line, unless it is blank or begins with a blank, is the last one again, or holds a secret."""
        last = self._own[-1] if self._own else self._earlier[0] if self._earlier else None
        if not string.strip() or string[0].isspace() or string == last or self._is_secret(string):
            return
        self._own.append(string)
        self.store_string(string)

    def store_string(self, string: str) -> None:
        """Write a line to the file; where that fails it is kept as long as the program runs."""
        if len(string) <= LONGEST_ENTRY:
            self._file.append(string)

    def _is_secret(self, text: str) -> bool:
        return self._redactor is not None and self._redactor.redact(text) != text


class _Turn:
    """What gives the event loop one turn when it is awaited."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class HistoryFile:
    """The file itself: added to and trimmed under a lock, never taken from others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = 0
        self.problem = ""
        """Why it cannot be used, its path first; empty while it can."""

    def entries(self, *, before: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield the newest entries, the newest first, equal ones in a row once; nothing where the file cannot be used.

        `before` are those that this program wrote there meanwhile: they are passed over.
        """
        descriptor = self._open(os.O_RDONLY)
        if descriptor is None:
            return
        try:
            lines = _newest_lines(descriptor)
        except OSError as error:
            self._failed(error)
            return
        finally:
            os.close(descriptor)
        own = list(before)
        last = None
        self._count = len(lines)
        for line in reversed(lines):
            text = _entry(line)
            if own and text == own[-1]:
                own.pop()
            elif text is not None and text != last:
                yield text
                last = text

    def append(self, text: str) -> None:
        """Add an entry, and trim the file when it has grown too long. What cannot be written is not; see `problem`."""
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            descriptor = self._locked()
            if descriptor is None:
                return
            try:
                append_line(descriptor, json.dumps(text).encode("ascii") + b"\n", alone=True)
                self._count += 1
                if os.fstat(descriptor).st_size > MOST_BYTES or self._count > MOST_ENTRIES:
                    self._trim(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.problem = f"{self._path}: {error.strerror or error}"

    def _trim(self, descriptor: int) -> None:
        """Put a shorter file in the place of the one that is locked.

        INVARIANT: whoever waited for the lock of the old file sees that it is not the one of this name any more.
        """
        lines = _newest_lines(descriptor)[-int(MOST_ENTRIES * TRIMMED_SHARE) :]
        total = 0
        for place in range(len(lines) - 1, -1, -1):
            total += len(lines[place]) + 1
            if total > MOST_BYTES * TRIMMED_SHARE:
                lines = lines[place + 1 :]
                break
        new = f"{self._path}.new"
        remove_if_there(new)
        write_new(new, b"".join(line + b"\n" for line in lines))
        os.replace(new, self._path)
        self._count = len(lines)

    def _locked(self) -> int | None:
        """Return the open file, locked for this program alone; None where it cannot be had soon."""
        end = time.monotonic() + LOCK_SECONDS
        while True:
            descriptor = self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT)
            if descriptor is None:
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(descriptor, self._path):
                    return descriptor
            except BlockingIOError:
                time.sleep(0.01)
            os.close(descriptor)
            if time.monotonic() > end:
                self.problem = f"{self._path}: another program holds it"
                return None

    def _open(self, flags: int) -> int | None:
        """Return the file, made private; None, and `problem` says why, for one that is missing or not to be used."""
        try:
            descriptor = open_private(self._path, flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._failed(error)
            return None
        self.problem = ""
        if os.fstat(descriptor).st_mode & MAY_USE:
            os.fchmod(descriptor, 0o600)
        return descriptor


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _newest_lines(descriptor: int) -> list[bytes]:
    """Return the last lines of a file, at most MOST_ENTRIES of MOST_BYTES together, however long it is."""
    size = os.fstat(descriptor).st_size
    start = max(size - MOST_BYTES, 0)
    data = os.pread(descriptor, MOST_BYTES, start)
    if start:
        data = data.partition(b"\n")[2]  # where a line was cut
    return [line for line in data.split(b"\n") if line][-MOST_ENTRIES:]


def _entry(line: bytes) -> str | None:
    """Return the entry of a line, or None for what is none."""
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) and text.strip() and len(text) <= LONGEST_ENTRY else None

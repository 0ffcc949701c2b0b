"""The lines that a person typed before, in a private file that several programs may add to. It holds no secret.

One JSON string a line (RFC 8259), so that an entry of many lines is one line of the file, and one that was cut short by
a crash is passed over. A file that others may write is not used: what they put there could be sent with one key.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from itertools import groupby

from prompt_toolkit.history import History

from harness.redaction.redactor import Redactor
from harness.safe_files import MAY_USE, append_line, is_locked_within, open_private, replace_file

MOST_ENTRIES = 10_000
"""Read of the file: some years of prompts."""
MOST_BYTES = 2_000_000
"""Maximum size of the file, in bytes; a longer one is cut to its newest three quarters."""
LONGEST_ENTRY = 100_000
"""Characters; a longer entry is kept as long as the program runs."""
LOCK_SECONDS = 0.5
"""Seconds that a sent line waits for another program's write."""


class KeptHistory(History):
    """The lines of earlier programs, read behind the first prompt, and those of this one."""

    def __init__(self, path: str, redactor: Redactor | None) -> None:
        """Take the file, and the redactor that finds secrets. Nothing is opened before the first prompt is on the
        screen.
        """
        super().__init__()
        self._path = path
        self._redactor = redactor
        self.problem = ""
        """Reason why lines are not kept after this program. Empty if they are, or if that is not known yet."""

    def append_string(self, string: str) -> None:
        """Keep a line, unless it is blank or begins with a blank, is the last one again, or holds a secret."""
        is_secret = self._redactor is not None and self._redactor.redact(string) != string
        if string.strip() and not string[0].isspace() and string not in self.get_strings()[-1:] and not is_secret:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """Return the newest entries of the file, the newest first, equal ones in a row once.

        Where the file cannot be used these are the lines of this program.
        """
        try:
            descriptor = self._open(os.O_RDONLY)
            try:
                lines = _end_of(descriptor, MOST_BYTES).splitlines()
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._failed(error)
            return self.get_strings()[::-1]
        return [text for text, _ in groupby(filter(None, map(_entry, lines[: -MOST_ENTRIES - 1 : -1])))]

    def store_string(self, string: str) -> None:
        """Add a line to the file; where that fails, which `problem` says, it is kept as long as the program runs."""
        if len(string) > LONGEST_ENTRY:
            return
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            descriptor = self._locked()
            try:
                append_line(descriptor, json.dumps(string).encode("ascii") + b"\n", alone=True)
                if os.fstat(descriptor).st_size > MOST_BYTES:
                    replace_file(self._path, [_end_of(descriptor, MOST_BYTES * 3 // 4)])
            finally:
                os.close(descriptor)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.problem = f"{self._path}: {error.strerror or error}"

    def _locked(self) -> int:
        """Return the open file, locked for this program alone. Raises OSError.

        INVARIANT: after a wait for the lock, a replaced file is detected by its name.
        """
        while True:
            descriptor = self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT)
            if not is_locked_within(descriptor, LOCK_SECONDS):
                os.close(descriptor)
                raise OSError(errno.EAGAIN, "another program holds it")
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)

    def _open(self, flags: int) -> int:
        """Return the file, made private. Raises OSError for one that is missing or not to be used."""
        descriptor = open_private(self._path, flags)
        self.problem = ""
        if os.fstat(descriptor).st_mode & MAY_USE:
            os.fchmod(descriptor, 0o600)
        return descriptor


def _end_of(descriptor: int, max_bytes: int) -> bytes:
    """Return the whole lines at the end of a file, at most so many bytes of them, however long it is."""
    start = max(os.fstat(descriptor).st_size - max_bytes, 0)
    data = os.pread(descriptor, max_bytes, start)
    return data.partition(b"\n")[2] if start else data


def _entry(line: bytes) -> str | None:
    """Return the entry of a line, or None for what is none."""
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) and text.strip() and len(text) <= LONGEST_ENTRY else None

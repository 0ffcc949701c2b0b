"""History of the lines that the user typed, in a private file to which several processes may append. Without secrets.

Each line of the file is a JSON string (RFC 8259), so that an entry may have several lines. An entry that a crash cut
short is skipped. A file that other users may write is not used, because their text could be sent with one key.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from itertools import groupby

from prompt_toolkit.history import History

from harness.redaction.redactor import Redactor
from harness.safe_files import MAY_USE, append_line, is_locked_within, make_private, open_private, replace_file

MOST_ENTRIES = 10_000
"""Maximum number of entries read from the file: prompts of several years."""
MOST_BYTES = 2_000_000
"""Maximum size of the file, in bytes; a longer one is cut to its newest three quarters."""
LONGEST_ENTRY = 100_000
"""Maximum length of a stored entry, in characters. A longer one is kept in memory only."""
LOCK_SECONDS = 0.5
"""Maximum seconds that storing a line waits for another process's lock."""


class KeptHistory(History):
    """The lines from the file, loaded after the first prompt is shown, and the lines of this process."""

    def __init__(self, path: str, redactor: Redactor | None) -> None:
        """Use the file at `path`, which is not opened before the first prompt is shown. `redactor` finds secrets."""
        super().__init__()
        self._path = path
        self._redactor = redactor
        self.problem = ""
        """Reason why lines are not stored in the file. Empty if they are, or before the first access."""

    def append_string(self, string: str) -> None:
        """Add a line, unless it is blank, begins with a blank, repeats the last one, or contains a secret."""
        is_secret = self._redactor is not None and self._redactor.redact(string) != string
        if string.strip() and not string[0].isspace() and string not in self.get_strings()[-1:] and not is_secret:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """Return the newest entries of the file, newest first, without consecutive duplicates.

        If the file cannot be used, return the lines of this process.
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
        """Append a line to the file. If that fails, set `problem`; the line is then kept in memory only."""
        if len(string) > LONGEST_ENTRY:
            return
        try:
            make_private(os.path.dirname(self._path))
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
        """Return a descriptor of the file, locked exclusively. Raises OSError.

        INVARIANT: if another process replaced the file during the wait for the lock, the new file is opened instead.
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
        """Return a descriptor of the file, after setting a private mode. Raises OSError if it is missing or unsafe."""
        descriptor = open_private(self._path, flags)
        self.problem = ""
        if os.fstat(descriptor).st_mode & MAY_USE:
            os.fchmod(descriptor, 0o600)
        return descriptor


def _end_of(descriptor: int, max_bytes: int) -> bytes:
    """Return the complete lines within the last `max_bytes` of a file."""
    start = max(os.fstat(descriptor).st_size - max_bytes, 0)
    data = os.pread(descriptor, max_bytes, start)
    return data.partition(b"\n")[2] if start else data


def _entry(line: bytes) -> str | None:
    """Return the entry in a line of the file. `None` if it is invalid, blank or too long."""
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) and text.strip() and len(text) <= LONGEST_ENTRY else None

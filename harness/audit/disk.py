"""What a file on disk is now, by its digest; opens regular files to read them, and changes nothing."""

from __future__ import annotations

import hashlib
import os
import stat

from harness.record import Record

MOST_BYTES = 64_000_000
"""Longer files are not looked at."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Look(Record):
    """What was found under a path."""

    sha256: str | None = None
    """None: there is no file, or it was not looked at."""
    problem: str = ""
    """Why it was not looked at; empty where it was."""


def look(path: str) -> Look:
    """Return what lies under an absolute path. Links are not followed in its last part, and nothing but a regular file is
    opened: to open a device can have effects (open(2)). Raises nothing: whatever is in the way is a `problem`."""
    if not path.startswith("/"):
        return Look(problem="it is no absolute path")
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return Look(problem="it is no regular file")
        descriptor = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return Look()
    except OSError as error:
        return Look(problem=error.strerror or "it cannot be opened")
    except ValueError:
        return Look(problem="no file has such a name")
    try:
        return _digest(descriptor)
    except OSError as error:
        return Look(problem=error.strerror or "it cannot be read")
    finally:
        os.close(descriptor)


def _digest(descriptor: int) -> Look:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return Look(problem="it is no regular file")
    digest, read = hashlib.sha256(), 0
    while read <= MOST_BYTES and status.st_size <= MOST_BYTES:
        data = os.read(descriptor, 1 << 20)
        if not data:
            return Look(sha256=digest.hexdigest())
        digest.update(data)
        read += len(data)
    return Look(problem=f"it is longer than {MOST_BYTES // 1_000_000} MB")

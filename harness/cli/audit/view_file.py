"""The file that a view of logs is written to: whole or not at all, private, and never in the place of a record."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Sequence

from harness.action_log import parse_line
from harness.cli.state import State
from harness.errors import UsageError
from harness.paths import is_within

STDOUT = "-"


def write_view(pieces: Iterable[str], output: str, *, logs: Sequence[str], state: State) -> None:
    """Write text to the file `output` (mode 0600, UTF-8), or to stdout; `logs` are those that it is about.

    The file appears under its name when all of it is on the disk; what stood there before stays until then. Lone
    surrogates become escapes.

    Raises UsageError if it must not or cannot be written, OSError if stdout cannot.
    """
    if output == STDOUT:
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
        return
    target = os.path.realpath(output)
    _check_harmless(target, logs, state)
    part = f"{target}.{os.getpid()}.part"
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    try:
        _write(descriptor, pieces)
        os.rename(part, target)
    except BaseException as error:
        _remove(part)
        if isinstance(error, OSError):
            raise UsageError(f"{output} cannot be written: {error.strerror}") from None
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it has its name already, or the disk is gone


def _write(descriptor: int, pieces: Iterable[str]) -> None:
    with open(descriptor, "wb") as file:
        file.writelines(piece.encode("utf-8", "backslashreplace") for piece in pieces)
        file.flush()
        os.fsync(descriptor)


def _check_harmless(target: str, logs: Sequence[str], state: State) -> None:
    """Raise UsageError where writing there would destroy a log, or something else that the harness relies on."""
    if any(is_within(target, folder) for folder in state.guarded):
        raise UsageError(f"{target} lies among the harness's own files; choose another place")
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{target} is not a regular file; {STDOUT} writes to stdout")
    if any(_is_same(target, log) for log in logs) or _is_log(target):
        raise UsageError(f"{target} is an action log, which is never written over")


def _is_same(target: str, log: str) -> bool:
    try:
        return os.path.samefile(target, log)
    except OSError:
        return False


def _is_log(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return parse_line(file.readline(1 << 24).removesuffix(b"\n")) is not None
    except OSError:
        return False

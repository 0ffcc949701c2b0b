"""The modes of the harness's own files: what a command changed is set right, and said; it reads no content.

A command that may write its workspace can change mode, owner and times of any file of its user: neither Landlock nor a
filter of system calls knows which file is meant. It cannot write these, so their content counts nevertheless.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from harness.cli.state import State
from harness.cli.streams import complain
from harness.paths import is_within
from harness.private_files import MAY_USE, MAY_WRITE


def set_right(state: State) -> None:
    """Close own files and folders that others may write, open those that are closed to their owner, and tell of it.

    What is missing, or somebody else's, is left: whoever needs it says so.
    """
    for path, shut in _own(state):
        try:
            problem = _set_right(path, shut, reads=is_within(path, state.config))
        except OSError:
            continue
        if problem:
            complain(f"{path} {problem}: set right")


def _own(state: State) -> Iterator[tuple[str, int]]:
    """Yield what is the harness's own, with the bits of its mode that must not be set; a folder before what is in it."""
    yield state.config, stat.S_IWOTH  # the person's too: shut only as far as no start goes on without it
    for path in (state.config_file, state.user_policy, state.state, state.heads, state.trust):
        yield path, MAY_WRITE
    for path in (state.redaction_key, state.history):
        yield path, MAY_USE
    for folder in (state.before_images, state.outputs, state.sessions, state.grants):
        yield folder, MAY_WRITE
    for folder in (state.sessions, state.grants):
        for path in _in(folder):
            yield path, MAY_WRITE


def _in(folder: str) -> Iterator[str]:
    try:
        yield from (os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return


def _set_right(path: str, shut: int, *, reads: bool) -> str:
    """Set one of them right; return what was wrong with it, or nothing. What is only read need not be writable.

    A file that root gave away is taken back where its folder is root's: a person's own are left to them. Raises OSError.
    """
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return ""
        this, own = f"/proc/self/fd/{descriptor}", os.geteuid()
        problem = ""
        if status.st_uid != own:
            if own != 0 or os.stat(os.path.dirname(path)).st_uid != 0:
                return ""
            os.chown(this, 0, -1)
            problem = f"belonged to user {status.st_uid}"
        mode = stat.S_IMODE(status.st_mode)
        opened = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
        needs = opened & ~stat.S_IWUSR if reads else opened
        wanted = (mode if mode & needs == needs else mode | opened) & ~shut
        if wanted != mode:
            os.chmod(this, wanted)
            problem = f"had the mode {mode:04o}"
        return problem
    finally:
        os.close(descriptor)

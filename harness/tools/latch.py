"""The latch: keeps a bash just started from its command until the harness has bound it; starts and binds nothing itself.

A non-interactive bash first carries out the file that BASH_ENV names, whatever its options (bash(1), INVOCATION). There it
waits for one byte. So nothing of a command runs before it has its limits and its mark, at no cost: bash needs as long to
load. The command finds the variable unset and the descriptors closed.

INVARIANT: where the byte never comes, since the harness was killed, bash reads the end of the pipe and ends: no command.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Self

_TEXT = "read -rn1 -u {pipe} && exec {pipe}<&- {text}<&- && unset BASH_ENV REPLY || exit 126\n: bash\n"
"""The last line makes of `$_` what it is without it."""
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class Latch:
    """Holds one bash. Close it once it is lifted, or nothing was started."""

    def __init__(self) -> None:
        """Make it, closed. Raises OSError."""
        waiting, self._lifting = os.pipe2(os.O_CLOEXEC)
        self._waiting = self._text = -1
        try:
            self._waiting = _above_streams(waiting)
            # A file, not another pipe: a process forked from the harness meanwhile could keep that one's end from coming.
            self._text = _above_streams(os.memfd_create("latch", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
            os.write(self._text, _TEXT.format(pipe=self._waiting, text=self._text).encode())
            fcntl.fcntl(self._text, fcntl.F_ADD_SEALS, _SEALS)
        except BaseException:
            self.close()
            raise

    @property
    def variables(self) -> Mapping[str, str]:
        """What has to stand in the environment of bash."""
        return {"BASH_ENV": f"/proc/self/fd/{self._text}"}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What bash has to inherit."""
        return (self._waiting, self._text)

    def lift(self) -> None:
        """Let the command begin."""
        os.write(self._lifting, b"\n")

    def close(self) -> None:
        """Close the descriptors; a bash that still waits ends."""
        for descriptor in (self._waiting, self._lifting, self._text):
            if descriptor >= 0:
                os.close(descriptor)
        self._waiting = self._lifting = self._text = -1

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def _above_streams(descriptor: int) -> int:
    """Return the descriptor, or in its place one above 2: those below are the command's streams. Raises OSError."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)

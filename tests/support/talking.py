"""The program at a pseudo-terminal that a test talks to, with `expect` and `send` of pexpect; started as Program.start does."""

from __future__ import annotations

import os
import pty
import signal
import termios
from pathlib import Path
from typing import TYPE_CHECKING

from pexpect.fdpexpect import fdspawn
from program import Program
from screen_scene import started_at

if TYPE_CHECKING:
    _Spawn = fdspawn[str]
else:
    _Spawn = fdspawn


class Talking(_Spawn):
    """A program that runs, and the other end of its terminal."""

    def __init__(
        self, program: Program, *words: str, cwd: Path | None = None, dimensions: tuple[int, int] = (24, 80)
    ) -> None:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, dimensions)
        self.process = started_at(program.command(*words), theirs, cwd or program.workspace, program.environment)
        os.close(theirs)
        super().__init__(ours, encoding="utf-8", timeout=300)

    def exit_code(self) -> int:
        """Hang up, and return the exit code of the program, which has come to its end."""
        self.close()
        return self.process.wait(300)

    def end(self) -> None:
        """End the program, however far it is."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.child_fd >= 0:
            self.close()

"""Commands that a GitHub Actions runner reads from a job's output: their form, and protection against forged ones.

The runner reads stdout and stderr line by line. `::name key=value::data` is a command at the start of a line, after
blanks. The older `##[name key=value]data` is a command anywhere in a line (actions/runner, ActionCommand.cs).
`::stop-commands::TOKEN` disables both until `::TOKEN::`. There is one such flag per step, for both streams and all
programs of the step (ActionCommandManager.cs), so that the end of one fence ends all others. INVARIANT: every possible
command in foreign text is escaped, also inside a fence. This program fences at most one of the two streams.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Mapping
from typing import TextIO

_NO = frozenset(("", "false", "0"))
_LINE_ENDS = "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Line ends. The runner's are CR and LF. An additional one in this list is harmless, a missing one is not."""


def is_job(environment: Mapping[str, str]) -> bool:
    """Return whether a CI runner reads this process's output, by $GITHUB_ACTIONS.

    GitHub sets `true`. Any other value except for empty, `false` and `0` counts too, because the guard is harmless
    without a runner.
    """
    return environment.get("GITHUB_ACTIONS", "").strip().lower() not in _NO


def escape_data(text: str) -> str:
    """Return `text` escaped as the data of a command (the toolkit's core/src/command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return `text` escaped as a property value of a command (the toolkit's core/src/command.ts)."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command(name: str, data: str, properties: Mapping[str, str]) -> str:
    """Return the line of a command, without the line end."""
    property_text = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items() if value)
    return f"::{name}{' ' if property_text else ''}{property_text}::{escape_data(data)}"


def escape_json(line: str) -> str:
    """Return equivalent JSON without commands.

    `##[` can occur only inside strings, and no line of the JSON begins with `::`.
    """
    return line.replace("##[", "#\\u0023[")


class CommandFence:
    """Puts a text between `stop-commands` and its token, so that no line of the text is a command.

    If two programs of one step write fences at the same time, each ends the other's. Therefore LineGuard also escapes
    the text itself. The fence helps with runner commands that are unknown here. If the process is killed inside a
    fence, commands stay disabled until the end of the step.
    """

    def around(self, text: str) -> str:
        """Return `text` in a fence, as complete lines. An unfinished line before it is ended first."""
        token = os.urandom(20).hex()
        safe = LineGuard().safe(text)
        return f"\n::stop-commands::{token}\n{safe}{'' if safe.endswith(chr(10)) else chr(10)}::{token}::\n"


class LineGuard:
    """Escapes text that arrives in pieces, so that no part of it is a command for a runner."""

    def __init__(self) -> None:
        self._blank = True
        """Whether the line has no letter or digit yet.

        This covers more cases than the runner's test for blanks, whose comparison ignores some characters.
        """
        self._before = ""

    @property
    def at_line_start(self) -> bool:
        """Whether the present line is empty so far."""
        return not self._before

    def safe(self, text: str) -> str:
        """Return `text`, with an initial `::` of a line as `:\\u003a` and `##[` as `##\\u005b`.

        Inside JSON, both mean the same.
        """
        if "::" not in text and "##[" not in text and text[:1] not in (":", "#", "["):
            self._pass(text)
            return text
        safe_characters = []
        for char in text:
            if char in _LINE_ENDS:
                self._blank, self._before = True, ""
                safe_characters.append(char)
                continue
            if char == ":" and self._blank and self._before.endswith(":"):
                safe_characters.append("\\u003a")
                self._blank = False
            elif char == "[" and self._before == "##":
                safe_characters.append("\\u005b")
            else:
                safe_characters.append(char)
            self._blank = self._blank and not char.isalnum()
            self._before = (self._before + char)[-2:]
        return "".join(safe_characters)

    def _pass(self, text: str) -> None:
        """Update the state for a text that cannot contain or complete a command."""
        end = max(text.rfind(char) for char in _LINE_ENDS)
        line = text[end + 1 :]
        self._blank = (end >= 0 or self._blank) and not any(char.isalnum() for char in line)
        self._before = ((self._before if end < 0 else "") + line)[-2:]


class Guarded(io.TextIOWrapper):
    """A standard stream without commands, for every kind of output: the trace, an error, a traceback."""

    def __init__(self, stream: TextIO) -> None:
        """Create it on the buffer of `stream`, which stays open as long as this object."""
        super().__init__(
            stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True, write_through=True
        )
        self._stream = stream
        self._guard = LineGuard()

    def write(self, text: str) -> int:
        """Write the escaped `text`. Return its original length."""
        super().write(self._guard.safe(text))
        return len(text)

    def write_command(self, line: str) -> None:
        """Write a command of this program on its own line. Raises OSError or ValueError if it cannot be written."""
        super().write(f"{'' if self._guard.at_line_start else chr(10)}{line}\n")
        self._guard.safe("\n")
        self.flush()


def guard_streams(only_stderr: bool) -> None:
    """Guard stderr. Guard stdout too, unless `only_stderr` or it is a regular file, which no runner reads.

    Text of a log or a policy that a command prints (`harness audit show`) is as untrusted as an answer.
    """
    if not isinstance(sys.stderr, Guarded):
        sys.stderr = Guarded(sys.stderr)
    if not only_stderr and not isinstance(sys.stdout, Guarded) and not is_file(sys.stdout.fileno()):
        sys.stdout = Guarded(sys.stdout)


def is_file(descriptor: int) -> bool:
    """Return whether a file descriptor is a regular file."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False

"""Commands that a GitHub Actions runner reads from a job's output: their form, and the defence against forged ones.

The runner reads stdout and stderr line by line. `::name key=value::data` is a command at the start of a line, after
blanks; the older `##[name key=value]data` is one anywhere in a line (actions/runner, ActionCommand.cs).
`::stop-commands::TOKEN` stops both until `::TOKEN::`. There is one stop flag per step, for both of its streams and
all of its programs (ActionCommandManager.cs): the end of any fence lifts every other. INVARIANT: foreign text has an
escape in every possible command, in a fence too; and this program fences one of the two streams at most.
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
"""Line ends. The runner's are CR and LF; an additional one is harmless, a missing one is not."""


def is_job(environment: Mapping[str, str]) -> bool:
    """Return whether a runner reads this process's output, by $GITHUB_ACTIONS.

    Its own word is `true`; any other that is no "no" counts too. Without a runner, a guard costs nothing.
    """
    return environment.get("GITHUB_ACTIONS", "").strip().lower() not in _NO


def escape_data(text: str) -> str:
    """Return `text` as the data of a command (the toolkit's core/src/command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return `text` as the value of a command's property (the toolkit's core/src/command.ts)."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command(name: str, data: str, properties: Mapping[str, str]) -> str:
    """Return the line of a command, without its end."""
    property_text = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items() if value)
    return f"::{name}{' ' if property_text else ''}{property_text}::{escape_data(data)}"


def escape_json(line: str) -> str:
    """Return equivalent JSON without commands: `##[` occurs in strings only, and no line of it begins with `::`."""
    return line.replace("##[", "#\\u0023[")


class CommandFence:
    """Puts a text between `stop-commands` and its token, so that no line of the text is a command.

    Two programs of one step that write a fence at the same time lift each other's, in one pipe or in two; so the text
    is made safe by itself too (LineGuard), and the fence is for runners with commands unknown here. A process that
    dies within leaves commands stopped until the end of its step.
    """

    def around(self, text: str) -> str:
        """Return `text`, whole lines, in a fence of its own; an open line before it is ended first."""
        token = os.urandom(20).hex()
        safe = LineGuard().safe(text)
        return f"\n::stop-commands::{token}\n{safe}{'' if safe.endswith(chr(10)) else chr(10)}::{token}::\n"


class LineGuard:
    """Makes text safe that comes in pieces: what a runner could take for a command gets an escape in it."""

    def __init__(self) -> None:
        self._blank = True
        """Whether the line has no letter or digit yet. Wider than the runner's blanks: its comparison skips characters."""
        self._before = ""

    @property
    def at_line_start(self) -> bool:
        """Whether the line is empty so far."""
        return not self._before

    def safe(self, text: str) -> str:
        """Return `text`, with `::` that begins a line as `:\\u003a` and `##[` as `##\\u005b`: the same within JSON."""
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
        """Note a text without possible commands, whatever precedes it."""
        end = max(text.rfind(char) for char in _LINE_ENDS)
        line = text[end + 1 :]
        self._blank = (end >= 0 or self._blank) and not any(char.isalnum() for char in line)
        self._before = ((self._before if end < 0 else "") + line)[-2:]


class Guarded(io.TextIOWrapper):
    """A standard stream on which no line is a command, whatever writes to it: the trace, an error, a traceback."""

    def __init__(self, stream: TextIO) -> None:
        """Write to the bytes below `stream`, which stays open as long as this is."""
        super().__init__(
            stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True, write_through=True
        )
        self._stream = stream
        self._guard = LineGuard()

    def write(self, text: str) -> int:
        """Write `text`, made safe; return how many characters it had."""
        super().write(self._guard.safe(text))
        return len(text)

    def write_command(self, line: str) -> None:
        """Write a command of our own on a line of its own. Raises OSError or ValueError where it cannot be written."""
        super().write(f"{'' if self._guard.at_line_start else chr(10)}{line}\n")
        self._guard.safe("\n")
        self.flush()


def guard_streams(only_stderr: bool) -> None:
    """Put a guard before stderr, and before stdout too unless `only_stderr` or it is a regular file, which no runner reads.

    Text of a log or a policy that a command prints (`harness audit show`) is as untrusted as an answer.
    """
    if not isinstance(sys.stderr, Guarded):
        sys.stderr = Guarded(sys.stderr)
    if not only_stderr and not isinstance(sys.stdout, Guarded) and not is_file(sys.stdout.fileno()):
        sys.stdout = Guarded(sys.stdout)


def is_file(descriptor: int) -> bool:
    """Say whether a descriptor is a regular file."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False

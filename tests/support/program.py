"""The real program in a process of its own, with a workspace, state and configuration of its own."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from forked import Forked, can_fork
from responses_server import ServerOfBothApis

from harness.models.loopback import ScriptServer
from harness.models.scripted import ModelScript, Player

LogRecord = dict[str, object]


class Done(NamedTuple):
    """A finished process."""

    code: int
    out: str
    err: str


class Program:
    """The installed program, run in a workspace, with state and configuration folders of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.state = folder / "state"
        for made in (self.home, self.workspace, self.state):
            made.mkdir()
        self.players: list[Player] = []
        self._servers = ExitStack()
        self.python = sys.executable
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.state),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "LANG": "C.UTF-8",
            "CI": "1",  # else a question of an agent would wait for the person who runs the tests
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",  # the test terminal answers no questions about its cursor
        }

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of the program."""
        return [self.python, "-m", "harness", *arguments]

    def serve(self, script: ModelScript, *, fragment: int = 7) -> str:
        """Serve `script` until the test is over, and return the base URL."""
        self.players.append(Player(script))
        return self.serving(ServerOfBothApis(self.players[-1], fragment=fragment))

    def serving(self, server: ScriptServer) -> str:
        """Have a server run until the test is over, and return the base URL."""
        return self._servers.enter_context(server).base_url

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        """Start the program without waiting for it."""
        given: dict[str, Any] = {
            "cwd": self.workspace,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        command = self.command(*arguments)
        if can_fork(given["env"], given):
            return Forked(command[2:], **given)
        return subprocess.Popen(command, **given)

    def run(self, *arguments: str, **options: object) -> Done:
        """Run the program to its end (at most five minutes)."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"the program hung: {out!r} {err!r}") from None
        return Done(process.returncode, (out or b"").decode(), (err or b"").decode())

    def said(self, *arguments: str) -> str:
        """Run the program, which must exit with 0, and return what it wrote."""
        ended = self.run(*arguments)
        assert ended.code == 0, (arguments, ended)
        return ended.out

    def at_terminal(self, *arguments: str, columns: int = 80, **environment: str) -> tuple[int | None, str]:
        """Run the program with a terminal of so many columns as stdout and stderr; return its exit code and what it wrote."""
        outer, inner = os.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**self.environment, "TERM": "xterm-256color", **environment}
        process = self.start(*arguments, stdout=inner, stderr=inner, env=env)
        os.close(inner)
        seen = b""
        try:
            while data := os.read(outer, 65_536):
                seen += data
        except OSError:  # Linux reports the closed other side as an error
            pass
        process.communicate(timeout=120)
        os.close(outer)
        return process.returncode, seen.decode().replace("\r\n", "\n")

    def logs(self) -> list[Path]:
        """Return every action log of this test."""
        return sorted(self.state.glob("harness/sessions/**/*.jsonl"))

    def records(self) -> list[LogRecord]:
        """Return the records of the only log."""
        (path,) = self.logs()
        return [json.loads(line) for line in path.read_text().splitlines()]

    def close(self) -> None:
        """Stop the servers."""
        self._servers.close()


def made_program(tmp_path: Path) -> Iterator[Program]:
    """Make the program of a test, with everything it touches below tmp_path."""
    made = Program(tmp_path)
    yield made
    made.close()

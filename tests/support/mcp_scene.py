"""What the tests of the MCP proxy share: a scripted server behind the real program, lines to it and from it, its log."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from process_scene import wait_until
from run_scene import written

from harness.plugins.mcp.pins import PinFile
from harness.plugins.mcp.tool_description import ToolDescription, described

if TYPE_CHECKING:
    from program import LogRecord, Program

SERVER = str(Path(__file__).with_name("scripted_server.py"))
HANG_SECONDS = 120.0
"""After which a line that does not come is a failure."""
AUTO = 'version = 1\n[tools]\ndefault = "confirm"\n"mcp__srv__*" = "auto"\n'

Json = dict[str, Any]


def tool(name: str, description: str = "Does it.", **further: Any) -> Json:
    """Return a tool as a server lists it."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **further}


def call(number: int | str, name: str, **arguments: Any) -> Json:
    """Return a call of a tool."""
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def request(number: int | str, method: str, **params: Any) -> Json:
    """Return a request of another method."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def line_of(message: object) -> str:
    """Return a message as a line."""
    return json.dumps(message) + "\n"


class McpScene:
    """One server, and the proxy before it."""

    def __init__(self, program: Program, *, policy: str = AUTO, pinned: Sequence[Json] = (), **script: Any) -> None:
        """Write script and policy; `pinned` are tools that a person has seen. Starts nothing."""
        self.program = program
        self.seen_file = program.home / "seen"
        self.seen_file.touch()
        self.script = written(program.home / "script.json", "{}")
        self.policy = written(program.home / "policy.toml", policy)
        self.words = [sys.executable, SERVER, self.script]
        self.says(**script)
        for one in pinned:
            self.pins.pin(self.described(one))
        self.process: subprocess.Popen[bytes] | None = None
        self._read = b""

    def says(self, **script: Any) -> None:
        """Change what the server does when it is started."""
        written(Path(self.script), json.dumps({"seen": str(self.seen_file), **script}))

    @property
    def pins(self) -> PinFile:
        """What persons have seen of its tools."""
        return PinFile(str(self.program.state / "harness" / "mcp"), "srv")

    def described(self, definition: Json) -> ToolDescription:
        """Return what the proxy makes of a tool."""
        found = described(definition, self.words, shlex.join(self.words))
        assert isinstance(found, ToolDescription), found
        return found

    def start(self, *flags: str, **options: Any) -> Self:
        """Start the proxy."""
        given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        arguments = ("mcp", "proxy", "--name", "srv", "--policy", self.policy, *flags, "--", *self.words)
        self.process = self.program.start(*arguments, **given)
        return self

    def write(self, line: bytes | str | Json) -> None:
        """Send the proxy a line, as the client."""
        assert self.process is not None
        assert self.process.stdin is not None
        line = line_of(line) if isinstance(line, dict) else line
        self.process.stdin.write(line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line)
        self.process.stdin.flush()

    def read_line(self) -> bytes:
        """Return the next line that the client gets; nothing at the end."""
        assert self.process is not None
        assert self.process.stdout is not None
        descriptor, end = self.process.stdout.fileno(), time.monotonic() + HANG_SECONDS
        while b"\n" not in self._read:
            assert time.monotonic() < end, "no line came"
            if select.select([descriptor], [], [], 1.0)[0]:
                block = os.read(descriptor, 65_536)
                if not block:
                    return b""
                self._read += block
        line, _, self._read = self._read.partition(b"\n")
        return line + b"\n"

    def read(self) -> Json:
        """Return the next message that the client gets."""
        line = self.read_line()
        assert line, self.process and self.process.communicate()
        return dict(json.loads(line))

    def ask(self, message: Json) -> Json:
        """Send a request, and return the next message."""
        self.write(message)
        return self.read()

    def said(self, message: Json) -> str:
        """Send a call, and return the text of its result."""
        result = self.ask(message)["result"]
        return str(result["content"][0]["text"])

    def seen(self) -> list[Json]:
        """Return what the server got."""
        return [json.loads(line) for line in self.seen_file.read_text().splitlines()]

    def calls_seen(self) -> list[str]:
        """Return the names of the tools whose calls the server got."""
        return [one["params"]["name"] for one in self.seen() if one.get("method") == "tools/call"]

    def until_seen(self, count: int) -> None:
        """Wait until the server got so many calls."""
        assert wait_until(lambda: len(self.calls_seen()) >= count, HANG_SECONDS)

    def end(self) -> int:
        """Close the client's side; return the exit code."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.code()

    def code(self) -> int:
        """Wait for the end, and return the exit code."""
        assert self.process is not None
        return self.process.wait(HANG_SECONDS)

    def verified(self) -> list[LogRecord]:
        """Return the records of the only log, which verifies."""
        (path,) = self.program.logs()
        done = self.program.run("audit", "verify", str(path))
        assert done.code == 0, done
        return self.program.records()

    def outcomes(self) -> list[tuple[str, str]]:
        """Return tool and status of each call, of a log that verifies."""
        return [(str(one["tool"]), str(one["status"])) for one in self.verified() if one["kind"] == "outcome"]

    def notes(self) -> list[str]:
        """Return what the log says was not passed on."""
        return [str(one["message"]) for one in self.program.records() if one["kind"] == "error"]

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for stream in () if self.process is None else (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # what was not written yet

"""What the tests of the MCP client share: servers of a configuration in a workspace, called as the gate calls their tools."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from mcp_scene import SERVER, tool
from process_scene import wait_until

from harness.actions import Action, Effects, JsonValue
from harness.files.workspace import Workspace
from harness.gate.approval import Approver, deny_all
from harness.gate.registry import ToolRegistry
from harness.gate.tool import Tool, ToolOutput
from harness.limits import Limits
from harness.messages import ToolCall
from harness.plugins.mcp.configured_server import ServerReport
from harness.plugins.mcp.mcp_servers import McpServers, unrecorded
from harness.plugins.mcp.pins import PinFile
from harness.plugins.mcp.server_declaration import declared
from harness.plugins.mcp.server_walls import ServerStarter, server_machine
from harness.plugins.mcp.tool_description import ToolDescription
from harness.policy.loader import parse_policy
from harness.process.capture import OutputFolder
from harness.tools.command_walls import CommandWalls

HERE = Path(__file__).parent
SDK_SERVER = str(HERE / "sdk_server.py")
HANG_SECONDS = 120.0
"""After which what does not come is a failure."""
NOTHING = Effects(read=None, write=None, network=False, unasked=False)
POLICY = 'version = 1\nname = "of the tests"\n[tools]\ndefault = "confirm"\n'
ECHO = tool("echo")


class ClientScene:
    """Servers by their names: a table of the configuration each."""

    def __init__(
        self,
        folder: Path,
        servers: Mapping[str, Mapping[str, object]],
        *,
        approver: Approver = deny_all,
        policy: str = POLICY,
        limits: Limits = Limits(),  # noqa: B008
        variables: Mapping[str, str] = {},
        record: Callable[[Mapping[str, JsonValue]], None] = unrecorded,
    ) -> None:
        self.root = folder / "workspace"
        self.root.mkdir(parents=True, exist_ok=True)
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.pins = str(folder / "pins")
        self.outputs = folder / "outputs"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **variables}
        workspace = Workspace(str(self.root), str(self.home), outputs=str(self.outputs))
        self.policy = parse_policy(policy.encode(), "table.toml")
        starter = ServerStarter(workspace, CommandWalls(workspace, machine=server_machine()), self.policy, environment)
        self.servers = McpServers(
            [declared(name, table) for name, table in servers.items()],
            starter,
            workspace,
            pins=self.pins,
            redact=str,
            approver=approver,
            record=record,
            limits=limits,
            outputs=OutputFolder(str(self.outputs)),
        )

    def start(self) -> Self:
        """Start them, and wait until it is known how each stands."""
        self.servers.start()
        assert self.servers.wait(HANG_SECONDS)
        return self

    def offered(self) -> list[Tool]:
        """Return the tools, as if nobody had asked for them."""
        self.servers._offered = None
        return list(self.servers.tools() or ())

    def names(self) -> list[str]:
        """Return their names."""
        return [one.spec.name for one in self.offered()]

    def tool(self, name: str) -> Tool:
        """Return one tool by its whole name."""
        return next(one for one in self.offered() if one.spec.name == name)

    def prepared(self, name: str, **arguments: Any) -> Action:
        """Return the action of a call."""
        call = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
        return ToolRegistry([self.tool(name)]).prepare(call)

    def output(self, name: str, **arguments: Any) -> ToolOutput:
        """Call a tool as a gate would that was told yes."""
        return self.tool(name).run(self.prepared(name, **arguments), NOTHING)

    def report(self, name: str) -> ServerReport:
        """Return how a server stands."""
        return next(one for one in self.servers.reports() if one.name == name)

    def seen(self, server: str) -> PinFile:
        """Return what persons have seen of a server."""
        return PinFile(self.pins, server)

    def pin(self, tool: str, server: str = "srv") -> ToolDescription:
        """Keep that a person saw a tool as it is listed, and return that."""
        self.names()
        listed = self.seen(server).read()[tool].listed
        assert listed is not None
        self.seen(server).pin(listed)
        return listed

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        assert wait_until(lambda: bool(holds()), HANG_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.servers.close()


def scripted(folder: Path, name: str = "script", **script: Any) -> dict[str, object]:
    """Return the table of a server of plain JSON lines that does what its script says."""
    folder.mkdir(parents=True, exist_ok=True)
    seen = folder / f"{name}.seen"
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"seen": str(seen), "tools": [[ECHO]], **script}))
    seen.touch()
    return {"command": [sys.executable, SERVER, str(path)], "write": [str(seen)]}


def seen_by(folder: Path, name: str = "script") -> list[dict[str, Any]]:
    """Return the messages that such a server got."""
    return [json.loads(line) for line in (folder / f"{name}.seen").read_text().splitlines()]


def code(text: str, *further: str, **table: object) -> dict[str, object]:
    """Return the table of a server that is a few lines of Python."""
    return {"command": [sys.executable, "-c", text, *further], **table}


def by_sdk(**table: object) -> dict[str, object]:
    """Return the table of the server by the SDK, over its standard streams."""
    return {"command": [sys.executable, SDK_SERVER, "stdio"], **table}


class HttpServer:
    """The server by the SDK at a URL."""

    def __init__(self, token: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words: Sequence[str] = [sys.executable, SDK_SERVER, "http", str(self.port), *([token] if token else [])]
        self._process = subprocess.Popen(words)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> Self:
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self
        raise AssertionError("the server does not listen")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def confines() -> bool:
    """Say whether this machine can confine anything."""
    return shutil.which("true") is not None and CommandWalls(Workspace("/tmp", None)).confines

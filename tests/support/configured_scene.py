"""What the tests of configured MCP servers share: a server in the user's configuration, and a run of a scripted model."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from run_scene import written

from harness.models.scripted import Reply, call, replies, say
from harness.plugins.mcp.pins import PinFile
from harness.plugins.mcp.tool_description import ToolDescription, described

if TYPE_CHECKING:
    from program import Done, LogRecord, Program

POLICY = 'version = 1\n[tools]\ndefault = "confirm"\n"mcp__srv__*" = "auto"\n'


class ConfiguredScene:
    """One server in the user's configuration, and what a model does with it."""

    def __init__(self, program: Program, words: Sequence[str], policy: str = POLICY, **declared: Any) -> None:
        """Write configuration and policy; `declared` are further keys of the server's table, such as `url` without words."""
        self.program = program
        self.words = tuple(words) or (str(declared["url"]),)
        self.policy = written(program.home / "policy.toml", policy)
        table = {**({"command": list(words)} if words else {}), **declared}
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
        written(config, f"[mcp.servers.srv]\n{lines}")

    @property
    def pins(self) -> PinFile:
        """What a person has seen of its tools."""
        return PinFile(str(self.program.state / "harness" / "mcp"), "srv")

    def saw(self, definition: dict[str, Any]) -> None:
        """Keep that a person saw a tool."""
        found = described(definition, self.words, shlex.join(self.words))
        assert isinstance(found, ToolDescription), found
        self.pins.pin(found)

    def saw_all(self) -> None:
        """Keep that a person saw every tool that it listed when it was tried."""
        for one in self.pins.read().values():
            if one.listed is not None:
                self.pins.pin(one.listed)

    def run(self, *tools: str, **arguments: Any) -> Done:
        """Run a model that calls these tools one after the other."""
        calls = [Reply(calls=(call(name, **arguments),)) for name in tools]
        url = self.program.serve(replies(*calls, say("All done.")))
        return self.program.run("run", "go", "--base-url", url, "--model", "scripted", "--policy", self.policy)

    @property
    def offered(self) -> list[str]:
        """The names of the tools from outside that the model was offered first."""
        tools: Any = self.program.players[-1].requests[0].get("tools", [])
        names = [str(one["function"]["name"]) for one in tools]
        return [name for name in names if name.startswith("mcp__")]

    @property
    def log(self) -> list[LogRecord]:
        """The records of the newest log, which verifies."""
        path = self.program.logs()[-1]
        done = self.program.run("audit", "verify", str(path))
        assert done.code == 0, done
        return [json.loads(line) for line in path.read_text().splitlines()]

    def results(self) -> list[tuple[str, str]]:
        """Return status and text of each call."""
        return [(str(one["status"]), str(one["content"])) for one in self.log if one["kind"] == "outcome"]

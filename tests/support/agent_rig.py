"""An installed agent, played: a home with one hook of ours, a workspace, a scripted model, and what the hook was told."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from places import ROOT

from harness.messages import ToolCall
from harness.plugins.agents.commands.agent_run import AgentRun, run_agent
from harness.plugins.agents.commands.agent_starts import AGENT_STARTS, PlayedPlace
from harness.plugins.agents.commands.played_model import PlayedModel, PlayedScene
from harness.plugins.agents.toml_hooks import Hook, as_toml

FOLDER = os.environ.get("HARNESS_AGENTS", "")
"""Where `tests/plugins/agents/real/install_agents.py` put the agents."""
SCRIPTS = Path(ROOT, "tests", "plugins", "agents", "real")
PROMPT = "Play the scene."
INNER_PROMPT = "Play the inner scene."
SECONDS = 300
AFTER = {
    "claude": ("PostToolUse", "PostToolUseFailure", "SessionEnd"),
    "codex": ("PostToolUse", "SessionEnd"),
    "gemini": ("AfterTool", "SessionEnd"),
    "qwen": ("PostToolUse", "PostToolUseFailure", "SessionEnd"),
    "copilot": ("permissionRequest", "postToolUse", "postToolUseFailure", "sessionEnd"),
    "opencode": ("tool.execute.after",),
    "pi": ("tool_result", "session_shutdown"),
    "kimi": ("PostToolUse", "PostToolUseFailure", "SessionEnd"),
    "droid": ("PostToolUse", "SessionEnd"),
    "cline": ("afterTool",),
}
BEFORE = {
    "claude": "PreToolUse",
    "codex": "PreToolUse",
    "gemini": "BeforeTool",
    "qwen": "PreToolUse",
    "copilot": "preToolUse",
    "opencode": "tool.execute.before",
    "pi": "tool_call",
    "kimi": "PreToolUse",
    "droid": "PreToolUse",
    "cline": "beforeTool",
}
"""What each agent calls the event before a tool."""
_PLUGIN = """\
import { spawnSync } from "node:child_process";
const [python, script] = SCRIPT;
const tell = (event, told) => {
  const done = spawnSync(python, [script, event], { input: JSON.stringify(told) });
  if (done.status !== 0) throw new Error(String(done.stderr) || "no answer");
};
export const Recording = async ({ directory, worktree }) => ({
  "tool.execute.before": async (input, output) =>
    tell("tool.execute.before", { ...input, args: output.args, directory, worktree }),
  "tool.execute.after": async (input, output) =>
    tell("tool.execute.after", { ...input, output, directory, worktree }),
});
"""
_EXTENSION = """\
import { spawnSync } from "node:child_process";
const [python, script] = SCRIPT;
export default (pi) => {
  for (const name of EVENTS)
    pi.on(name, async (event, { cwd, sessionManager }) => {
      const input = JSON.stringify({ ...event, cwd, sessionId: sessionManager.getSessionId() });
      const done = spawnSync(python, [script, name], { input });
      if (done.status !== 0) throw new Error(String(done.stderr) || "no answer");
    });
};
"""
_CLINE = """\
import { spawnSync } from "node:child_process";
const [python, script] = SCRIPT;
let sessionId = "";
const tell = (type, { snapshot, toolCall, input, result }) => {
  const subagent = snapshot.parentAgentId ? snapshot.agentId : "";
  const { toolName, toolCallId } = toolCall;
  const event = { type, sessionId, cwd: process.cwd(), subagent, toolName, toolCallId, input, result };
  const done = spawnSync(python, [script, type], { input: JSON.stringify(event) });
  if (done.status !== 0) throw new Error(String(done.stderr) || "no answer");
};
export default {
  name: "recording",
  manifest: { capabilities: ["hooks"] },
  setup: (_, { session }) => { sessionId = session.sessionId; },
  hooks: {
    beforeTool: (call) => {
      try {
        tell("beforeTool", call);
      } catch (error) {
        return { skip: true, reason: String(error) };
      }
    },
    afterTool: (call) => tell("afterTool", call),
  },
};
"""


class Told(NamedTuple):
    """One event, as it came."""

    event: str
    """As the hook was installed for it."""
    text: str

    @property
    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self.text)
        return fields


class Played(NamedTuple):
    """What came of a scene."""

    run: AgentRun
    results: Mapping[str, str]
    """What the model read of each call, by its id: the number of its scene, its step, its place there."""
    told: Sequence[Told]
    workspace: Path
    home: Path


class AgentRig:
    """Plays scenes to one agent, each in a home and a workspace of its own."""

    def __init__(
        self,
        agent: str,
        folder: Path,
        *,
        records: bool = True,
        seconds: int = 60,
        python: str = sys.executable,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """Take the agent and a new folder.

        Its hook records, unless `records` is false: then there is none. The agent waits for it for `seconds`, `python`
        runs it, and `keys` stand in its entry in the settings.
        """
        self.agent = agent
        self.seconds = seconds
        self._python = python
        self._keys = keys or {}
        self._records = records
        self.folder = folder
        self.variables: Mapping[str, str] = {}
        """Further variables that the agent finds."""
        self.program = folder / "python" / "bin" / "python"
        self.start = AGENT_STARTS[agent]
        self._program = os.path.join(FOLDER, "node_modules", ".bin", self.start.program)
        self.home = folder / "home"
        self.workspace = folder / "w"
        self._hook = folder / "hook"
        for made in (self.home, self.workspace, self._hook):
            made.mkdir(parents=True)
        _make_python(self.program)
        (self.workspace / "sub").mkdir()
        (self.workspace / "f.txt").write_text("alpha\nbeta\ngamma\n")
        subprocess.run(["git", "init", "-q", "."], cwd=self.workspace, check=True)
        shutil.copy(SCRIPTS / "recording_hook.py", self._hook)
        if records:
            _SETTINGS[agent](self)

    @property
    def environment(self) -> dict[str, str]:
        """All that the agent, and what a person starts beside it, finds in the environment."""
        return {
            "HOME": str(self.home),
            "PATH": f"{FOLDER}/node_modules/.bin:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "USER": "u",
            "TERM": "xterm-256color",
            **self.variables,
        }

    def harness(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run our program as the person would, in the workspace."""
        return subprocess.run(
            [str(self.program), "-I", "-m", "harness", *words],
            env=self.environment,
            cwd=self.workspace,
            capture_output=True,
            text=True,
            check=False,
        )

    def start_by(self, command: str) -> None:
        """Start the agent by this command line, which gets the agent's arguments."""
        self._program = str(self.folder / "start")
        Path(self._program).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        Path(self._program).chmod(0o700)

    def play(
        self,
        steps: Sequence[Sequence[ToolCall]],
        inner: Sequence[Sequence[ToolCall]] = (),
        answers: Mapping[str, Mapping[str, object]] | None = None,
        more: Sequence[str] = (),
        prompt: str = PROMPT,
    ) -> Played:
        """Play these calls, and `inner` to a subagent; the hook answers an event as `answers` have it."""
        (self._hook / "answer.json").write_text(json.dumps(answers or {}))
        scenes = [
            PlayedScene(prompt=prompt, steps=_fixed(steps)),
            PlayedScene(prompt=INNER_PROMPT, steps=_fixed(inner)),
        ]
        with PlayedModel(scenes) as model:
            run = run_agent(
                self.start,
                PlayedPlace(home=str(self.home), workspace=str(self.workspace), origin=model.origin),
                prompt,
                program=self._program,
                seconds=SECONDS,
                more=(*(_MORE.get(self.agent, ()) if self._records else ()), *more),
                environment=self.environment,
            )
        log = self._hook / "told.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        told = [Told(*json.loads(line)) for line in lines]
        return Played(run, model.results(), told, self.workspace, self.home)

    def write(self, path: str, value: object) -> None:
        """Write a file of the home, as JSON unless it is text."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))

    @property
    def hook(self) -> list[str]:
        """The command that the hook is, without its argument."""
        return [self._python, "-S", str(self._hook / "recording_hook.py")]

    def hooks(self, **more: object) -> dict[str, object]:
        """Return what Claude Code, and those that took over its form, want in their settings."""
        command = shlex.join(self.hook)
        return {
            event: [
                {"matcher": "*", "hooks": [{"type": "command", "command": f"{command} {event}", **more, **self._keys}]}
            ]
            for event in (BEFORE[self.agent], *AFTER[self.agent])
        }


def _make_python(program: Path) -> None:
    """Make a Python of its own that finds our package: what an installed hook starts, and a test may break."""
    packages = program.parent.parent.joinpath(
        "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages"
    )
    for made in (program.parent, packages):
        made.mkdir(parents=True)
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    program.symlink_to(base)
    program.parent.parent.joinpath("pyvenv.cfg").write_text(f"home = {base.parent}\n")
    packages.joinpath("ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")


def _fixed(steps: Sequence[Sequence[ToolCall]]) -> tuple[tuple[ToolCall, ...], ...]:
    return tuple(tuple(step) for step in steps)


SERVER = {"command": sys.executable, "args": [str(SCRIPTS / "mcp_server.py")]}
"""The MCP server `place` with its tool `echo`."""


def _claude(rig: AgentRig) -> None:
    rig.write(".claude/settings.json", {"hooks": rig.hooks(timeout=rig.seconds)})


def _codex(rig: AgentRig) -> None:
    rig.write(".codex/hooks.json", {"hooks": rig.hooks(timeout=rig.seconds)})


def _gemini(rig: AgentRig) -> None:
    rig.write(
        ".gemini/settings.json", {"hooks": rig.hooks(timeout=rig.seconds * 1000), "mcpServers": {"place": SERVER}}
    )


def _qwen(rig: AgentRig) -> None:
    rig.write(".qwen/settings.json", {"hooks": rig.hooks(timeout=rig.seconds), "mcpServers": {"place": SERVER}})


def _copilot(rig: AgentRig) -> None:
    command = " ".join(rig.hook)
    events = (BEFORE["copilot"], *AFTER["copilot"])
    hooks = {event: [{"type": "command", "bash": f"{command} {event}", "timeoutSec": rig.seconds}] for event in events}
    rig.write(".copilot/hooks/recording.json", {"version": 1, "hooks": hooks})


def _opencode(rig: AgentRig) -> None:
    python, _, script = rig.hook
    rig.write(".config/opencode/plugin/recording.js", _PLUGIN.replace("SCRIPT", json.dumps([python, script])))
    server = {"type": "local", "command": [SERVER["command"], *SERVER["args"]]}
    rig.write(".config/opencode/opencode.json", {"mcp": {"place": server}})


def _pi(rig: AgentRig) -> None:
    python, _, script = rig.hook
    text = _EXTENSION.replace("SCRIPT", json.dumps([python, script]))
    rig.write(".pi/agent/extensions/recording.js", text.replace("EVENTS", json.dumps([BEFORE["pi"], *AFTER["pi"]])))
    rig.write(".pi/agent/mcp.json", {"mcpServers": {"place": {**SERVER, "exposure": "direct"}}})


def _kimi(rig: AgentRig) -> None:
    command = shlex.join(rig.hook)
    events = (BEFORE["kimi"], *AFTER["kimi"])
    hooks: list[Hook] = [{"event": event, "command": f"{command} {event}", "timeout": rig.seconds} for event in events]
    rig.write(".kimi-code/config.toml", as_toml(hooks))
    rig.write(".kimi-code/mcp.json", {"mcpServers": {"place": SERVER}})


def _droid(rig: AgentRig) -> None:
    rig.write(".factory/settings.json", {"hooks": rig.hooks(timeout=rig.seconds)})
    rig.write(".factory/mcp.json", {"mcpServers": {"place": {"type": "stdio", **SERVER}}})


def _cline(rig: AgentRig) -> None:
    python, _, script = rig.hook
    rig.write(".cline/plugins/recording.js", _CLINE.replace("SCRIPT", json.dumps([python, script])))
    rig.write(".cline/data/settings/cline_mcp_settings.json", {"mcpServers": {"place": SERVER}})


_SETTINGS: Mapping[str, Callable[[AgentRig], None]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "copilot": _copilot,
    "opencode": _opencode,
    "pi": _pi,
    "kimi": _kimi,
    "droid": _droid,
    "cline": _cline,
}
_MORE: Mapping[str, Sequence[str]] = {
    "claude": ("--mcp-config", json.dumps({"mcpServers": {"place": SERVER}})),
    "codex": (
        "--dangerously-bypass-hook-trust",
        *("-c", f"mcp_servers.place.command={json.dumps(SERVER['command'])}"),
        *("-c", f"mcp_servers.place.args={json.dumps(SERVER['args'])}"),
    ),
    "copilot": ("--additional-mcp-config", json.dumps({"mcpServers": {"place": {"tools": ["*"], **SERVER}}})),
}

"""Tasks of a coding agent as logs, made by the harness itself: the calls of tasks/*.txt, in the order of the file.

A line is `bash COMMAND` (the sign for return is a line end), `read PATH`, `edit PATH` or `write PATH`; `has PATH...` names the
files that are there at first. Files are read and written; commands are judged and recorded, and not run: a machine has
neither every tool chain nor the time. The person says yes to everything.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from audit_runs import Call, Scripted
from log_scene import unsynced

from harness.actions import Action, Effects, JsonValue
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.gate.tool import Tool, ToolOutput
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.vocabulary import Answer
from harness.loop.agent import Agent
from harness.messages import ToolCall
from harness.policy.policy import Policy
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE
from harness.tools import builtin_tools

FOLDER = Path(__file__).parent / "tasks"
_TOOLS = {"bash": BASH.name, "read": READ_FILE.name, "edit": EDIT_FILE.name, "write": WRITE_FILE.name}


class Task(NamedTuple):
    """What a person asked for, the files that were there, and the calls: a tool, and a command or a path."""

    name: str
    prompt: str
    files: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]


def tasks() -> Iterator[Task]:
    """Yield the tasks, by name."""
    for path in sorted(FOLDER.glob("*.txt")):
        prompt, *lines = path.read_text().splitlines()
        words = [line.partition(" ")[::2] for line in lines]
        files = tuple(name for word, rest in words if word == "has" for name in rest.split())
        calls = tuple((_TOOLS[word], rest.replace("\u23ce", "\n")) for word, rest in words if word != "has")
        yield Task(path.stem, prompt.removeprefix("# "), files, calls)


def record(task: Task, log: Path, workspace: Path, policy: Policy) -> str:
    """Write a session of the task to the end of the log, and return its name. The workspace is made, with its files."""
    for name in task.files:
        place = workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("line 1\nline 2\n")
    subprocess.run(["git", "init", "-q", "-b", "main", str(workspace)], check=True)
    bash, *others = builtin_tools(Workspace(str(workspace), str(workspace.parent)), environment={})
    opened = ActionLog.open(str(log), sync=unsynced)
    agent = Agent(
        model=_Recorded(task.calls, workspace),
        tools=(_Unrun(bash), *others),
        policy=policy,
        approver=lambda action, verdict: Approval(answer=Answer.YES, by="person"),
        log=opened,
        limits=Limits(max_turns=len(task.calls) + 1),
        facts={"workspace": str(workspace), "mode": "run"},
        monotonic=lambda: 0.0,
    )
    agent.run(task.prompt)
    opened.close()
    return opened.session


class _Unrun:
    """The tool for commands: all of it but the commands."""

    def __init__(self, bash: Tool) -> None:
        self.spec = bash.spec
        self._bash = bash

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        return self._bash.prepare(call, arguments)

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        return ToolOutput(content="[exit code 0, 0.1 s]", exit_code=0, printed="")


class _Recorded(Scripted):
    """Scripted, with edits that fit the files as they are."""

    def __init__(self, calls: Iterable[tuple[str, str]], workspace: Path) -> None:
        super().__init__(Call(tool, what) for tool, what in calls)
        self._workspace = workspace

    def arguments(self, call: Call, number: int) -> dict[str, str]:
        if call.tool != EDIT_FILE.name:
            return super().arguments(call, number)
        first = (self._workspace / call.what).read_text().splitlines()[0]
        return {"path": call.what, "old_string": first, "new_string": f"line 1, changed by call {number}"}

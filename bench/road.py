"""The road of a call, counted by a profiler hook: the frames from the loop to a tool's body, and what is entered on the way.

    python bench/road.py

Counts depend on no clock and no load. `cat a.txt | head -2` alone, then three commands in one reply, by the default policy.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from types import FrameType

import harness
from harness import ActionLog, Agent, Limits, RunResult, ToolCall, Workspace, builtin_tools, deny_all, load_policy
from harness.messages import FinishReason, ModelResponse, Usage

HOME = os.path.dirname(os.path.abspath(harness.__file__))
POLICY = os.path.join(os.path.dirname(HOME), "policies", "default.toml")
COUNTED = {"ToolRegistry.prepare": "prepared", "parse": "parsed", "evaluate": "judged", "walls_for": "walled"}
"""Functions whose calls are counted."""


class Replies:
    """A model that gives one reply with these commands, and is done."""

    name = "replies"

    def __init__(self, commands: Sequence[str]) -> None:
        calls = [
            ToolCall(id=f"c{number}", name="bash", arguments=json.dumps({"command": command}))
            for number, command in enumerate(commands)
        ]
        self._replies = [_reply("", calls), _reply("done", [])]

    def complete(self, *_asked: object, **_how: object) -> ModelResponse:
        """Return the next reply."""
        return self._replies.pop(0)


def _reply(text: str, calls: Sequence[ToolCall]) -> ModelResponse:
    return ModelResponse(text=text, tool_calls=tuple(calls), finish_reason=FinishReason.DONE, usage=Usage())


class Road:
    """What the profiler saw of one run."""

    def __init__(self, commands: Sequence[str]) -> None:
        self.entered: set[tuple[str, int, str]] = set()
        self.counts: Counter[str] = Counter()
        self.frames: list[str] = []
        """From the loop's `run` to the tool's body, of the first call."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.txt"), "w", encoding="utf-8") as file:
                file.write("1\n2\n3\n")
            agent = Agent(
                model=Replies(commands),
                tools=builtin_tools(Workspace(folder)),
                policy=load_policy(POLICY),
                approver=deny_all,
                log=ActionLog.open(os.path.join(folder, "log.jsonl")),
                limits=Limits(),
            )
            self.result = self._run(agent)

    def _run(self, agent: Agent) -> RunResult:
        sys.setprofile(self._note)
        try:
            return agent.run("go")
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HOME):
            return
        key = (code.co_filename, code.co_firstlineno, code.co_qualname)
        self.entered.add(key)
        self.counts[code.co_qualname] += code.co_qualname in COUNTED
        if code.co_qualname in ("BashTool.run", "BashTool.run_for") and not self.frames:
            self.frames = list(reversed(_frames(frame)))


def _frames(frame: FrameType | None) -> list[str]:
    found = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(HOME):
            found.append(f"{os.path.relpath(code.co_filename, HOME)}: {code.co_qualname}")
        frame = frame.f_back
    return found


def main() -> int:
    """Say it. A first run imports what is imported late."""
    Road(["true"])
    one, three = Road(["cat a.txt | head -2"]), Road(["ls", "cat a.txt", "cat a.txt | head -2"])
    print(f"frames from the loop to the tool's body: {len(one.frames)}")
    for frame in one.frames:
        print(f"  {frame}")
    files = {file for file, _, _ in one.entered}
    print(f"`cat a.txt | head -2` enters {len(one.entered)} functions in {len(files)} files")
    counts = ", ".join(f"{word} {three.counts[name]} times" for name, word in COUNTED.items())
    print(f"a reply of three commands: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure what the gate adds to a call of another agent: the hook before it and after it, and `harness exec` around it.

Usage: python bench/hook.py [--quick]. The floors are a Python that does nothing, and `bash -c true`, taken in turn with the
rest. What is told is the least processor time of many runs, which hardly depends on what the machine does besides, and the
median of the time that passed. Always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

HARNESS = [os.path.join(os.path.dirname(sys.executable), "harness")]
if not os.path.exists(HARNESS[0]):
    HARNESS = [sys.executable, "-m", "harness"]
ROUNDS, QUICK_ROUNDS = 40, 8


class Cost(NamedTuple):
    """What a process cost, in milliseconds, and what it left behind."""

    wall: float
    processor: float
    code: int
    out: bytes


class Agent:
    """A workspace, an agent that asks about calls in it, and what its processes cost."""

    def __init__(self, scratch: str) -> None:
        self.workspace = os.path.join(scratch, "workspace")
        os.mkdir(self.workspace)
        subprocess.run(["git", "init", "-q", self.workspace], check=True)
        with open(os.path.join(self.workspace, "text.txt"), "w", encoding="utf-8") as file:
            file.write("alpha\n")
        self.environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {
            "HOME": f"{scratch}/home",
            "XDG_STATE_HOME": f"{scratch}/state",
            "XDG_CONFIG_HOME": f"{scratch}/config",
            "CLAUDE_PROJECT_DIR": self.workspace,
            "CLAUDE_CODE_SESSION_ATTENDED": "1",
            # As installed: all of it compiled beforehand, which a tree that is worked in is not.
            "PYTHONPYCACHEPREFIX": f"{scratch}/bytecode",
        }
        self._calls = 0

    def event(self, name: str, tool: str, **arguments: str) -> bytes:
        """Return an event as Claude Code sends it; one after a call is about the call before it."""
        self._calls += name == "PreToolUse"
        fields = {
            "session_id": "bench",
            "cwd": self.workspace,
            "hook_event_name": name,
            "permission_mode": "default",
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": f"call_{self._calls}",
        }
        return json.dumps(fields).encode()

    def run(self, command: Sequence[str], data: bytes = b"") -> Cost:
        """Run a command with `data` as its input, which fits into a pipe."""
        reads, writes = os.pipe()
        out, into = os.pipe()
        os.write(writes, data)
        os.close(writes)
        actions = [
            (os.POSIX_SPAWN_DUP2, reads, 0),
            (os.POSIX_SPAWN_DUP2, into, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        begun = time.perf_counter()
        pid = os.posix_spawn(command[0], [*command], self.environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - begun
        os.close(into)
        left = os.read(out, 1 << 16)
        os.close(reads)
        os.close(out)
        return Cost(wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000, os.waitstatus_to_exitcode(status), left)

    def hook(self, data: bytes) -> Cost:
        return self.run([*HARNESS, "hook", "claude"], data)

    def shell(self, command: str) -> Cost:
        return self.hook(self.event("PreToolUse", "Bash", command=command))

    def read(self) -> Cost:
        return self.hook(self.event("PreToolUse", "Read", file_path=f"{self.workspace}/text.txt"))

    def after(self) -> Cost:
        """Ask about a call, and measure what is told of its outcome."""
        self.read()
        return self.hook(self.event("PostToolUse", "Read", file_path=f"{self.workspace}/text.txt"))

    def exec(self, command: str) -> Cost:
        """Ask about a command, and measure its run by the ticket."""
        said = json.loads(self.shell(command).out)["hookSpecificOutput"]
        return self.run(shlex.split(said["updatedInput"]["command"]))


def main(arguments: Sequence[str]) -> int:
    """Say it."""
    rounds = QUICK_ROUNDS if "--quick" in arguments else ROUNDS
    # In the home folder, where the state of a person lies: walls name each neighbour of what they hide, of which /tmp has many.
    with tempfile.TemporaryDirectory(prefix=".harness-bench-", dir=os.path.expanduser("~")) as scratch:
        agent = Agent(scratch)
        measured: dict[str, tuple[Callable[[], Cost], int]] = {
            "python -c pass": (lambda: agent.run([sys.executable, "-c", "pass"]), 0),
            "hook, a command that may run": (lambda: agent.shell("ls"), 0),
            "hook, a command that is refused": (lambda: agent.shell("cat .env"), 0),
            "hook, a file that may be read": (agent.read, 0),
            "hook, after a call": (agent.after, 0),
            "bash -c true": (lambda: agent.run(["/bin/bash", "-c", "true"]), 0),
            "exec, of `true`": (lambda: agent.exec("true"), 0),
            "hook, a command that writes": (lambda: agent.shell("touch made"), 0),
            "exec, of `touch made`": (lambda: agent.exec("touch made"), 0),
        }
        os.chdir(agent.workspace)
        costs: dict[str, list[Cost]] = {name: [] for name in measured}
        for number in range(rounds + 1):
            for name, (run, code) in measured.items():
                cost = run()
                if cost.code != code:
                    print(f"{name}: ended with {cost.code}, not with {code}: its time means nothing")
                    return 0
                if number:  # the first one compiles
                    costs[name].append(cost)
    floor = min(cost.processor for cost in costs["python -c pass"])
    print(f"{'':34}{'processor ms, least':>20}{'of the floor':>14}{'passed ms, median':>19}")
    for name, found in costs.items():
        least, passed = min(cost.processor for cost in found), statistics.median(cost.wall for cost in found)
        print(f"{name:34}{least:20.1f}{least / floor:13.1f}x{passed:19.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

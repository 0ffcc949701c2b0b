"""Measure what the gate adds to a call of another agent: the hook before it and after it, and `harness exec` around it.

Usage: python bench/hook.py [--quick]. Each row is measured with a resident process and without one. Its processor time is
that of the started process and of the resident, whose own is known to ten milliseconds: so each row is run ten times in a
row, and the least mean of these tens counts. The floors are a Python that does nothing, `bash -c true`, and a hook of ten
lines with `jq`. Always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import harness
from harness.plugins.agents.resident_client import surroundings

HARNESS = [sys.executable, "-I", "-S", os.path.join(os.path.dirname(harness.__file__), "__main__.py")]
"""As `harness hook install` writes it."""
BATCHES, QUICK_BATCHES, BATCH = 6, 2, 10
JQ = """
command=$(jq -r '.tool_input.command // empty') || exit 2
case $command in
  *.env*)
    echo "the command names .env" >&2
    exit 2 ;;
esac
"""
"""A hook as people write it."""


class Cost(NamedTuple):
    """What a process cost, in milliseconds, and what it left behind."""

    wall: float
    processor: float
    code: int
    out: bytes


class Agent:
    """A workspace, an agent that asks about calls in it, and what its processes cost."""

    def __init__(self, scratch: str, *, resident: bool) -> None:
        self.workspace = os.path.join(scratch, "workspace")
        self.scratch = scratch
        os.makedirs(self.workspace)
        subprocess.run(["git", "init", "-q", self.workspace], check=True)
        with open(os.path.join(self.workspace, "text.txt"), "w", encoding="utf-8") as file:
            file.write("alpha\n")
        self.environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {
            "HOME": f"{scratch}/home",
            "XDG_STATE_HOME": f"{scratch}/state",
            "XDG_CONFIG_HOME": f"{scratch}/config",
            "CLAUDE_PROJECT_DIR": self.workspace,
            "CLAUDE_CODE_SESSION_ATTENDED": "1",
            # No socket has a path as long as the other.
            "XDG_RUNTIME_DIR": scratch if resident else f"{scratch}/{'long' * 50}",
        }
        self._calls = 0
        self._resident = 0

    def begin(self) -> None:
        """Have the resident started, and wait until it answers."""
        while not self._resident:
            self.shell("true")
            for name in filter(str.isdigit, os.listdir("/proc")):
                with suppress(OSError), open(f"/proc/{name}/cmdline", encoding="utf-8") as file:
                    if f"\0resident\0{self.scratch}/" in file.read():
                        self._resident = int(name)
        while not os.listdir(f"{self.scratch}/harness"):
            time.sleep(0.01)

    def end(self) -> None:
        """End the resident."""
        if self._resident:
            os.kill(self._resident, 15)

    def resident_time(self) -> float:
        """Return the processor time of the resident and of all its processes, in milliseconds."""
        if not self._resident:
            return 0.0
        with open(f"/proc/{self._resident}/task/{self._resident}/children", encoding="utf-8") as file:
            children = file.read().split()
        return sum(map(_ticks, [str(self._resident), *children])) * 1000 / os.sysconf("SC_CLK_TCK")

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
        """Measure what is told of the outcome of a call."""
        return self.hook(self.event("PostToolUse", "Read", file_path=f"{self.workspace}/text.txt"))

    def asked(self, command: str) -> list[str]:
        """Ask about a command, and return the words that run it by its ticket."""
        said = json.loads(self.shell(command).out)["hookSpecificOutput"]
        return shlex.split(said["updatedInput"]["command"])


def _ticks(pid: str) -> int:
    """Return the processor time of a process and of those that it waited for, in ticks of the clock."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
    except OSError:  # it has ended since
        return 0


class Row(NamedTuple):
    """What is run: `prepare` makes what each run takes, outside of what is measured."""

    run: Callable[[Sequence[str]], Cost]
    code: int = 0
    prepare: Callable[[], Sequence[str]] = lambda: ()


def rows_of(agent: Agent) -> dict[str, Row]:
    """Return what is measured with an agent."""
    return {
        "hook, a command that may run": Row(lambda _: agent.shell("ls")),
        "hook, a file that may be read": Row(lambda _: agent.read()),
        "hook, after a call": Row(lambda _: agent.after()),
        "exec, of `true`": Row(agent.run, prepare=lambda: agent.asked("true")),
        "hook, a command that is refused": Row(lambda _: agent.shell("cat .env")),
        "hook, a command that writes": Row(lambda _: agent.shell("touch made")),
        "exec, of `touch made`": Row(agent.run, prepare=lambda: agent.asked("touch made")),
    }


CALL = ("hook, a command that may run", "exec, of `true`", "hook, after a call")
"""The rows of one shell call."""


class Measured(NamedTuple):
    """The processor time and the time that passed, of one row, in milliseconds."""

    processor: float
    wall: float


def measure(agent: Agent, row: Row) -> Measured | None:
    """Run a row ten times. `None` if it ended otherwise than it should."""
    given = [row.prepare() for _ in range(BATCH)]
    begun = agent.resident_time()
    costs = [row.run(words) for words in given]
    resident = (agent.resident_time() - begun) / BATCH
    if any(cost.code != row.code for cost in costs):
        return None
    return Measured(
        statistics.mean(cost.processor for cost in costs) + resident, statistics.median(cost.wall for cost in costs)
    )


def main(arguments: Sequence[str]) -> int:
    """Say it."""
    if surroundings("self") is None:
        print("these processes are confined, or without namespaces: no resident serves them, and nothing is compared")
        return 0
    batches = QUICK_BATCHES if "--quick" in arguments else BATCHES
    # In the home folder, where the state of a person lies: walls name each neighbour of what they hide, of which /tmp has many.
    with tempfile.TemporaryDirectory(prefix=".hb-", dir=os.path.expanduser("~")) as scratch:
        plain, served = Agent(f"{scratch}/p", resident=False), Agent(f"{scratch}/r", resident=True)
        jq = ["/bin/sh", "-c", JQ]
        floors = {
            "python -c pass": Row(lambda _: plain.run([sys.executable, "-c", "pass"])),
            "bash -c true": Row(lambda _: plain.run(["/bin/bash", "-c", "true"])),
        }
        if shutil.which("jq"):
            floors["a hook of jq"] = Row(lambda _: plain.run(jq, plain.event("PreToolUse", "Bash", command="ls")))
        roads = {"": (plain, floors), "alone: ": (plain, rows_of(plain)), "resident: ": (served, rows_of(served))}
        found: dict[str, list[Measured]] = {}
        served.begin()
        try:
            for batch in range(batches + 1):
                for road, (agent, rows) in roads.items():
                    os.chdir(agent.workspace)
                    for name, row in rows.items():
                        measured = measure(agent, row)
                        if measured is None:
                            print(f"{road}{name}: ended with another code: its time means nothing")
                            return 0
                        if batch:  # the first one compiles
                            found.setdefault(road + name, []).append(measured)
        finally:
            served.end()
            os.chdir("/")
    print(f"{'':44}{'processor ms':>14}{'passed ms':>12}")
    least = {name: Measured(min(m.processor for m in all_), min(m.wall for m in all_)) for name, all_ in found.items()}
    for road in ("alone: ", "resident: "):
        parts = [least[road + name] for name in CALL]
        least[f"{road}a shell call"] = Measured(sum(m.processor for m in parts), sum(m.wall for m in parts))
    for name, measured in least.items():
        print(f"{name:44}{measured.processor:14.1f}{measured.wall:12.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Measure `harness run` whole: start to exit against a bare program of the openai SDK, many runs at once, and memory.

Usage: python bench/run.py [--quick]. Servers run in a process of their own. Prints a table; always exits 0.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
HARNESS = [os.path.join(os.path.dirname(sys.executable), "harness")]
if not os.path.exists(HARNESS[0]):
    HARNESS = [sys.executable, "-m", "harness"]
AT_ONCE = 20

POLICY = """\
version = 1
[tools]
bash = "confirm"
[[rule]]
id = "bench"
decision = "auto"
argv = [["true", "head"], "..."]
flags = ["-c"]
"""

TYPED = """\
import json, sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=openai.Timeout(900, connect=30))
for body in json.load(open(sys.argv[2])):
    for chunk in client.chat.completions.create(**body):
        pass
"""
"""What anybody would write: the SDK's own streaming."""

UNREAD = """\
import json, sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=openai.Timeout(900, connect=30))
for body in json.load(open(sys.argv[2])):
    options = {"headers": {"X-Stainless-Raw-Response": "stream"}}
    named = {"content": json.dumps(body).encode()}
    answer = client.post("/chat/completions", cast_to=object, options=options, **named)
    for piece in answer.iter_bytes():
        pass
    answer.close()
"""
"""The least that can be done with the SDK: bytes there, bytes back, nothing of its types and nothing parsed."""


class Cost(NamedTuple):
    """What a process cost, the children that it waited for included."""

    wall: float
    cpu: float
    """Seconds of user and system time."""
    peak: float
    """Most resident memory at once, in MB, of the largest process among them."""


class Started(NamedTuple):
    """A process that runs."""

    pid: int
    when: float

    @classmethod
    def of(cls, command: list[str], environment: Mapping[str, str]) -> Started:
        when = time.perf_counter()
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        return cls(os.posix_spawn(command[0], command, environment, file_actions=nowhere), when)

    def end(self) -> Cost:
        """Wait for it. Raises SystemExit where it failed: its time would mean nothing."""
        _, status, usage = os.wait4(self.pid, 0)
        wall = time.perf_counter() - self.when
        if status:
            raise SystemExit(f"a run exited with {os.waitstatus_to_exitcode(status)}")
        return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


class Bench:
    """A workspace, a policy, and the command lines of what is measured."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self.workspace = os.path.join(scratch, "workspace")
        os.mkdir(self.workspace)
        self.policy = _written(os.path.join(scratch, "policy.toml"), POLICY)
        _written(os.path.join(self.workspace, "text.txt"), "0123456789abcdef " * 400)
        self.environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment |= {"XDG_STATE_HOME": f"{scratch}/state", "XDG_CONFIG_HOME": f"{scratch}/config"}
        # As installed: all of it compiled beforehand, which a tree that is worked in is not.
        self.environment["PYTHONPYCACHEPREFIX"] = f"{scratch}/bytecode"

    def run(self, url: str, *flags: str) -> list[str]:
        words = ["run", "go", "--base-url", url, "--policy", self.policy, "--cwd", self.workspace, *flags]
        return [*HARNESS, *words]

    def bare(self, program: str, url: str) -> list[str]:
        return [sys.executable, "-c", program, url, self.requests]

    @property
    def requests(self) -> str:
        """The file of the two requests that a run with one call makes."""
        return os.path.join(self.scratch, "requests.json")

    def keep_requests(self) -> None:
        """Make a run whose requests are kept, so that the bare programs can send the very same ones."""
        done = subprocess.run(
            [sys.executable, os.path.abspath(__file__), "--requests", self.requests, *self.run("URL", "-q")],
            env=self.environment, check=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit("the run whose requests were to be kept failed")


def _written(path: str, text: str) -> str:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def keep_requests(path: str, command: Sequence[str]) -> None:
    """Write what `command` asks of a scripted server. In a process of its own, so that the bench stays small."""
    from harness.models.loopback import ScriptServer
    from harness.models.scripted import Player, Reply, call, replies, say

    player = Player(replies(Reply(calls=(call("bash", command="true"),)), say("done")))
    with ScriptServer(player) as server:
        subprocess.run([server.base_url if word == "URL" else word for word in command], check=True)
    _written(path, json.dumps(player.requests))


@contextmanager
def server(calls: int, command: str) -> Iterator[str]:
    """Yield the base URL of a bench server in a process of its own; each connection plays from the start."""
    process = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "server.py"), str(calls), command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    port = process.stdout.readline().strip()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def row(name: str, value: str, goal: str = "") -> None:
    """Print one line of the table."""
    print(f"{name:46} {value:>46}   {goal}", flush=True)


def _spread(values: Sequence[float], unit: float, name: str) -> str:
    low, *_, high = statistics.quantiles(values, n=10, method="inclusive") if len(values) > 1 else (values[0],) * 2
    return f"{statistics.median(values) * unit:.0f} {name} ({low * unit:.0f} to {high * unit:.0f})"


# --- one run against a bare program --------------------------------------------------------------------------------


def start_to_exit(bench: Bench, runs: int) -> None:
    """A run with one auto call against programs that import openai and make the same two requests, in turn."""
    costs: dict[str, list[Cost]] = {"run": [], "run -q": [], "typed": [], "unread": []}
    with server(1, "true") as url:
        commands = {
            "run": bench.run(url),
            "run -q": bench.run(url, "-q"),
            "typed": bench.bare(TYPED, url),
            "unread": bench.bare(UNREAD, url),
        }
        for turn in range(runs + 1):
            for name, command in commands.items():
                cost = Started.of(command, bench.environment).end()
                if turn:  # the first of each fills the caches of the system
                    costs[name].append(cost)
    for name, told in (("run", "a run, start to exit"), ("run -q", "a run with -q"),
                       ("typed", "bare, the SDK's own streaming"), ("unread", "bare, bytes there and back")):  # fmt: skip
        walls, cpus = [cost.wall for cost in costs[name]], [cost.cpu for cost in costs[name]]
        row(told, f"{_spread(walls, 1e3, 'ms')}, CPU {statistics.median(cpus) * 1e3:.0f} ms")
    for name, goal in (("typed", "<= 1.3"), ("unread", "")):
        row(f"a run against bare, {name}", _ratios(costs["run"], costs[name]), goal)


def _ratios(ours: Sequence[Cost], floor: Sequence[Cost]) -> str:
    """Return the ratio of the medians, and the median of the ratios of neighbours, which drift cannot touch."""
    wall = statistics.median(cost.wall for cost in ours) / statistics.median(cost.wall for cost in floor)
    cpu = statistics.median(cost.cpu for cost in ours) / statistics.median(cost.cpu for cost in floor)
    beside = statistics.median(mine.wall / other.wall for mine, other in zip(ours, floor, strict=True))
    return f"time {wall:.2f}, pair by pair {beside:.2f}, CPU {cpu:.2f}"


# --- many runs at once ---------------------------------------------------------------------------------------------


def at_once(bench: Bench, rounds: int) -> None:
    """The CPU of runs that are all started at one moment against that of as many in a row; and so of bare programs.

    The bare programs are what the machine itself adds, whose cores share caches and clock.
    """
    with server(1, "true") as url:
        for told, command, goal in (
            ("runs", bench.run(url, "-q"), "<= 1.2"),
            ("bare programs", bench.bare(TYPED, url), ""),
        ):
            one, once = [], []
            for _ in range(rounds):
                one.append(_costs(command, bench.environment, together=1))
                once.append(_costs(command, bench.environment, together=AT_ONCE))
            for name, costs in (("in a row", one), ("at once", once)):
                walls, cpus = [cost.wall for cost in costs], [cost.cpu for cost in costs]
                shown = f"CPU {statistics.median(cpus):.2f} s, time {statistics.median(walls):.2f} s"
                row(f"{AT_ONCE} {told} {name}", shown)
            ratios = [both.cpu / alone.cpu for both, alone in zip(once, one, strict=True)]
            row(f"{told}: the CPU at once against in a row", f"{statistics.median(ratios):.2f}", goal)


def _costs(command: list[str], environment: Mapping[str, str], *, together: int) -> Cost:
    """Return the costs of AT_ONCE processes, of which so many run together."""
    began = time.perf_counter()
    costs = []
    for _ in range(AT_ONCE // together):
        started = [Started.of(command, environment) for _ in range(together)]
        costs += [process.end() for process in started]
    wall = time.perf_counter() - began
    return Cost(wall, sum(cost.cpu for cost in costs), max(cost.peak for cost in costs))


# --- memory --------------------------------------------------------------------------------------------------------


def memory(bench: Bench, sizes: Sequence[int]) -> None:
    """The peak of runs of so many calls whose results have 4 kB each, and of the bare program."""
    for calls in sizes:
        with server(calls, "head -c 4000 text.txt") as url:
            cost = Started.of(bench.run(url, "-q", "--max-turns", str(calls + 1)), bench.environment).end()
        row(f"peak memory of a run with {calls} calls", f"{cost.peak:.0f} MB", "< 90 MB")
    with server(1, "true") as url:
        cost = Started.of(bench.bare(TYPED, url), bench.environment).end()
    row("peak memory of the bare program", f"{cost.peak:.0f} MB")
    # A process counts what it was before it became another program: ours must be the smaller one.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row("(this process)", f"{own:.0f} MB")


def main() -> None:
    """Measure everything."""
    if sys.argv[1:2] == ["--requests"]:
        keep_requests(sys.argv[2], sys.argv[3:])
        return
    quick = "--quick" in sys.argv[1:]
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cpus, bytecode ready")
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as scratch:
        bench = Bench(scratch)
        bench.keep_requests()
        start_to_exit(bench, 5 if quick else 21)
        at_once(bench, 1 if quick else 3)
        memory(bench, (1, 20) if quick else (1, 20, 200))


if __name__ == "__main__":
    main()

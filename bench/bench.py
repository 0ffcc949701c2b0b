"""Measure the harness against floors taken in the same run; ratios are what counts, times depend on the machine.

Usage: python bench/bench.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

HERE = os.path.dirname(os.path.abspath(__file__))
HARNESS = [sys.executable, "-m", "harness"]
SCRIPT = os.path.join(os.path.dirname(sys.executable), "harness")
if os.path.exists(SCRIPT):
    HARNESS = [SCRIPT]
FOUR_KB = "head -c 4000 text.txt"

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


@contextmanager
def serving(script: str, *words: str) -> Iterator[tuple[str, IO[str]]]:
    """Run a script of this folder that serves until its stdin closes, in a process of its own.

    Yield the first line that it prints, and the file of what it prints after that.
    """
    process = subprocess.Popen(
        [sys.executable, os.path.join(HERE, script), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip(), process.stdout
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@contextmanager
def server(calls: int, command: str) -> Iterator[str]:
    """Yield the base URL of a bench server."""
    with serving("server.py", str(calls), command) as (port, _):
        yield f"http://127.0.0.1:{port}/v1"


def wall(command: Sequence[str], environment: dict[str, str] | None = None) -> float:
    """Return the seconds that a process takes, start to exit."""
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
    return time.perf_counter() - started


def interleaved(commands: dict[str, Sequence[str]], runs: int) -> dict[str, float]:
    """Return the median seconds of each command, run in turn so that drift hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        wall(command)
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(wall(command))
    return {name: statistics.median(values) for name, values in times.items()}


def row(name: str, value: str, floor: str, ratio: float | None, goal: str) -> None:
    """Print one line of the table."""
    shown = f"{ratio:6.2f}" if ratio is not None else "      "
    print(f"{name:44} {value:>12} {floor:>12} {shown}   {goal}")


def start_up(runs: int) -> None:
    """--version and policy explain against the bare interpreter."""
    times = interleaved(
        {
            "pass": [sys.executable, "-c", "pass"],
            "version": [*HARNESS, "--version"],
            "explain": [*HARNESS, "policy", "explain", "--tool", "bash", "git status"],
        },
        runs,
    )
    for name in ("version", "explain"):
        ratio = times[name] / times["pass"]
        row(f"start: {name}", f"{times[name] * 1e3:.1f} ms", f"{times['pass'] * 1e3:.1f} ms", ratio, "<= 4")


class Stamps:
    """When each reply came: the time per call, by its place."""

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def mark(self) -> None:
        self.times.append(time.perf_counter())

    def per_call(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]


def harness_loop(calls: int, command: str, folder: str) -> tuple[list[float], int, int]:
    """Return seconds per call, bytes of log, and bytes of results in it, for one run with `calls` calls."""
    from harness import ActionLog, Agent, Limits, Workspace, builtin_tools, deny_all, load_policy
    from harness.log.order import LogRecord
    from harness.models.endpoint import Endpoint
    from harness.models.openai_chat import OpenAIChat

    path = f"{folder}-log-{calls}-{time.monotonic_ns()}.jsonl"
    log = ActionLog.open(path)
    stamps, results = Stamps(), [0]

    def watch(record: LogRecord) -> None:
        if record["kind"] == "model_response":
            stamps.mark()
        elif record["kind"] == "outcome":
            results[0] += len(str(record["content"]))

    log.observers.append(watch)
    with server(calls, command) as url:
        model = OpenAIChat("bench", Endpoint(base_url=url, api_key="none"))
        model.warm_up()
        stamps.times = [time.perf_counter()]
        agent = Agent(
            model=model, tools=builtin_tools(Workspace(folder)), policy=load_policy(os.path.join(folder, "policy.toml")),
            approver=deny_all, log=log, limits=Limits(max_turns=calls + 1),
        )  # fmt: skip
        agent.run("go")
    log.close()
    return stamps.per_call(), os.path.getsize(path), results[0]


def bare_loop(calls: int, command: str, folder: str) -> list[float]:
    """Do the same with the SDK's generic request and subprocess: every message encoded once, nothing judged or logged."""
    import openai

    with server(calls, command) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        stamps = Stamps()
        messages = [json.dumps({"role": "user", "content": "go"}).encode()]
        while True:
            body = b'{"model":"m","messages":[' + b",".join(messages) + b"]}"
            reply = _post(client, body)
            stamps.mark()
            message = reply["choices"][0]["message"]
            messages.append(json.dumps(message).encode())
            if not message.get("tool_calls"):
                return stamps.per_call()
            for call in message["tool_calls"]:
                line = json.loads(call["function"]["arguments"])["command"]
                done = subprocess.run(
                    ["bash", "-c", line], capture_output=True, stdin=subprocess.DEVNULL, check=False, cwd=folder
                )
                text = (done.stdout + done.stderr).decode()
                messages.append(json.dumps({"role": "tool", "tool_call_id": call["id"], "content": text}).encode())


def _post(client: object, body: bytes) -> dict[str, list[dict[str, dict[str, list[dict[str, dict[str, str]]]]]]]:
    import inspect

    post = client.post  # type: ignore[attr-defined]
    name = "content" if "content" in inspect.signature(post).parameters else "body"
    return post("/chat/completions", cast_to=object, **{name: body})  # type: ignore[no-any-return]


def per_call(sizes: Sequence[int], folder: str) -> None:
    """Time per auto tool call, in a workspace of its own, against the bare loop."""
    for calls in sizes:
        rounds = max(1, 20 // calls)
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(rounds):
            ours += [statistics.mean(harness_loop(calls, "true", folder)[0][1:])]
            bare += [statistics.mean(bare_loop(calls, "true", folder)[1:])]
        mine, floor = statistics.median(ours), statistics.median(bare)
        row(f"per call, {calls} calls", f"{mine * 1e3:.2f} ms", f"{floor * 1e3:.2f} ms", mine / floor, "<= 2")


def flatness(folder: str, calls: int) -> None:
    """The last call against the fifth, with results of 4 KB."""
    for name, times in (
        ("harness", harness_loop(calls, FOUR_KB, folder)[0]),
        ("bare loop", bare_loop(calls, FOUR_KB, folder)),
    ):
        early, late = statistics.median(times[3:13]), statistics.median(times[-11:-1])
        row(
            f"call {calls} against call 5, {name}",
            f"{late * 1e3:.2f} ms",
            f"{early * 1e3:.2f} ms",
            late / early,
            "<= 2",
        )


def log_bytes(folder: str) -> None:
    """Bytes written per call beyond the result's own text."""
    _, few, few_results = harness_loop(10, FOUR_KB, folder)
    _, many, many_results = harness_loop(30, FOUR_KB, folder)
    extra = ((many - many_results) - (few - few_results)) / 20
    row("log bytes per call beyond the result", f"{extra:.0f} B", "", None, "<= 4096")


def decisions(folder: str) -> None:
    """One decision on a command of two parts, under 10 and 200 rules."""
    from harness import Workspace, evaluate
    from harness.messages import ToolCall
    from harness.policy.loader import parse_policy
    from harness.tools.bash import BashTool

    line = "git log --oneline -5 src/a.py | head -3"
    action = BashTool(Workspace(folder)).prepare(ToolCall(id="1", name="bash", arguments="{}"), {"command": line})
    for count in (10, 200):
        rules = "".join(_rule(number) for number in range(count))
        policy = parse_policy(f'version = 1\n[tools]\nbash = "confirm"\n{rules}'.encode(), "bench.toml")
        evaluate(policy, action)
        times = []
        for _ in range(200):
            started = time.perf_counter()
            evaluate(policy, action)
            times.append(time.perf_counter() - started)
        median = statistics.median(times) * 1e3
        row(f"one decision, {count} rules", f"{median:.3f} ms", "", None, "< 1 ms at 200")


LONG = {
    "operands": "cat " + " ".join(f"src/file{number}.py" for number in range(590)),
    "commands": " && ".join(f"grep -n needle{number} a{number}.py" for number in range(312)),
    "quotes": "echo " + "'a b' \"c d\" e\\\\ f " * 515,
}


def reading(folder: str) -> None:
    """Reading a command line and judging it, from text to verdict, under the shipped default policy."""
    from harness import Workspace, evaluate, load_policy
    from harness.messages import ToolCall
    from harness.shell.facets import read_commands
    from harness.tools.bash import BashTool

    policy = load_policy(os.path.join(os.path.dirname(HERE), "policies", "default.toml"))
    tool = BashTool(Workspace(folder))
    lines = {
        "git status": ("git status", "< 0.3 ms"),
        "a typical pipe": ("cd src && grep -n 'def main' app.py | head -20", "< 0.3 ms"),
        **{f"10,000 characters, {name}": (line[:9_990], "< 20 ms") for name, line in LONG.items()},
    }
    for name, (line, goal) in lines.items():
        times = []
        for _ in range(60):
            started = time.perf_counter()
            evaluate(policy, tool.prepare(ToolCall(id="1", name="bash", arguments="{}"), {"command": line}))
            times.append(time.perf_counter() - started)
        row(f"decision: {name}", f"{statistics.median(times) * 1e3:.3f} ms", "", None, goal)
    started = time.perf_counter()
    read_commands("ls " * 40_000, Workspace(folder))
    row(
        "decision: 120,000 characters are opaque",
        f"{(time.perf_counter() - started) * 1e3:.1f} ms",
        "",
        None,
        "< 1000 ms",
    )


MODELS = """\
import time, harness.programs.options
from harness.programs.catalog import model_of, names
started = time.perf_counter()
found = [model_of(name) for name in names()]
print((time.perf_counter() - started) * 1e3, len(found))
"""


def models() -> None:
    """Loading every model of a program, in a process of its own."""
    times, count = [], ""
    for _ in range(9):
        done = subprocess.run([sys.executable, "-c", MODELS], capture_output=True, text=True, check=True)
        taken, count = done.stdout.split()
        times.append(float(taken))
    row(f"loading all {count} models", f"{statistics.median(times):.1f} ms", "", None, "< 15 ms")


def _rule(number: int) -> str:
    if number % 3 == 0:
        return f'[[rule]]\nid = "r{number}"\ndecision = "auto"\nargv = ["tool{number}", "..."]\nflags = ["-a"]\n'
    if number % 3 == 1:
        return (
            f'[[rule]]\nid = "r{number}"\ndecision = "deny"\nreason = "no"\npath = ["secret{number}/", "*.k{number}"]\n'
        )
    return f'[[rule]]\nid = "r{number}"\ndecision = "deny"\nreason = "no"\nargv = ["git", "push{number}"]\n'


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cpus, bytecode {'not ' * sys.dont_write_bytecode}written")
    print(f"{'':44} {'harness':>12} {'floor':>12} {'ratio':>6}   goal")
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as scratch:
        folder = os.path.join(scratch, "workspace")  # log and state lie beside it, not in it
        os.mkdir(folder)
        with open(os.path.join(folder, "policy.toml"), "w", encoding="utf-8") as file:
            file.write(POLICY)
        with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
            file.write("0123456789abcdef " * 400)
        start_up(5 if quick else 25)
        per_call((1, 10) if quick else (1, 10, 100, 500), folder)
        flatness(folder, 40 if quick else 500)
        log_bytes(folder)
        decisions(folder)
        reading(folder)
        models()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(this process peaked at {peak:.0f} MB)")


if __name__ == "__main__":
    main()

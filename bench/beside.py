"""Measure the harness beside bare programs of the openai SDK and other agents: one server, one script, shuffled rounds.

All play one scene of 40 calls of `true`, and those that start at once one of a single call. `first request` is the time from
the start to the first request, `gap per call` from a reply to the next request: the call itself included. `memory` is what a
process and all below it held at most, but for a twentieth of the looks. Prints a table; always exits 0: a bench measures, it
does not judge.
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import IO, NamedTuple

from bench import HARNESS, POLICY, serving
from harness.models.loopback import HttpRequest, Then
from harness.models.scripted import call
from harness.plugins.agents.commands.agent_starts import AGENT_STARTS, PlayedPlace
from harness.plugins.agents.commands.played_model import PlayedModel, PlayedScene

CALLS = 40
AT_ONCE = 20
PROMPT = "PROMPT"
"""Stands for what is said, in the command of who is measured."""
POSTING = "the SDK's post()"
LOOK_SECONDS = 0.005
NATIVE = {"codex": "node_modules/@openai/codex-*/vendor/*/bin/codex"}
"""Where npm put the program itself, of an agent whose command on npm only starts it: Node costs as much as a third of it."""

POST = """\
import json, subprocess, sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
def encoded(message): return json.dumps(message).encode()
messages, calls = [encoded({"role": "user", "content": sys.argv[2]})], True
tools = json.dumps([{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]).encode()
while calls:
    body = b'{"model":"m","tools":' + tools + b',"messages":[' + b",".join(messages) + b"]}"
    name = "content" if "content" in (type(client).post.__kwdefaults__ or {}) else "body"
    message = client.post("/chat/completions", cast_to=object, **{name: body})["choices"][0]["message"]
    messages.append(encoded(message))
    calls = message.get("tool_calls") or []
    for call in calls:
        line = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["bash", "-c", line], capture_output=True, stdin=subprocess.DEVNULL)
        messages.append(encoded({"role": "tool", "tool_call_id": call["id"], "content": (done.stdout + done.stderr).decode()}))
"""
"""The least that anybody could do: nothing judged, nothing logged, nothing streamed, every message encoded once."""

TYPED = """\
import json, subprocess, sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
messages, calls = [{"role": "user", "content": sys.argv[2]}], True
tools = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
while calls:
    calls = {}
    for chunk in client.chat.completions.create(model="m", stream=True, tools=tools, messages=messages):
        for part in (chunk.choices[0].delta.tool_calls if chunk.choices else None) or ():
            new = {"type": "function", "id": part.id, "function": {"name": "bash", "arguments": ""}}
            calls.setdefault(part.index, new)["function"]["arguments"] += part.function.arguments or ""
    messages.append({"role": "assistant", "content": "", **({"tool_calls": list(calls.values())} if calls else {})})
    for call in calls.values():
        line = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["bash", "-c", line], capture_output=True, stdin=subprocess.DEVNULL)
        text = (done.stdout + done.stderr).decode()
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
"""
"""What anybody would write: the SDK's own streaming."""


class Cost(NamedTuple):
    """What a process cost, the children that it waited for included."""

    wall: float
    cpu: float
    """Seconds of user and system time."""


class Started(NamedTuple):
    """A process that runs."""

    pid: int
    when: float
    """By the monotonic clock, which the server's stamps have too."""

    @classmethod
    def of(cls, command: list[str], environment: Mapping[str, str]) -> Started:
        when = time.monotonic()
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        return cls(os.posix_spawn(command[0], command, environment, file_actions=nowhere), when)

    def end(self) -> Cost:
        """Wait for it. Raises SystemExit where it failed: its time would mean nothing."""
        _, status, usage = os.wait4(self.pid, 0)
        wall = time.monotonic() - self.when
        if status:
            raise SystemExit(f"a run exited with {os.waitstatus_to_exitcode(status)}")
        return Cost(wall, usage.ru_utime + usage.ru_stime)

    def peak(self) -> float:
        """Wait for it. Return the memory, in MB, that it and all below it held at most, but for a twentieth of the looks.

        A look while a child begins counts the pages that parent and child share twice: the very most is double.
        """
        looks = []
        while not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            looks.append(_held(self.pid))
            time.sleep(LOOK_SECONDS)
        self.end()
        return statistics.quantiles(looks, n=20)[-1]


def _held(pid: int) -> float:
    """Return the memory of a process and all below it, in MB. What some share counts once (PSS). Of an ended one 0."""
    held, below = 0.0, []
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            held = next((int(line.split()[1]) / 1024 for line in file if line.startswith("Pss:")), 0.0)
        for name in glob.glob(f"/proc/{pid}/task/*/children"):
            with open(name, encoding="ascii") as file:
                below += file.read().split()
    except OSError:  # it has ended meanwhile
        pass
    return held + sum(_held(int(child)) for child in below)


class Stamping(PlayedModel):
    """A played model that prints when each question came in, and when its answer was ready."""

    def respond(self, request: HttpRequest) -> tuple[bytes, Then]:
        came = time.monotonic()
        answer = super().respond(request)
        if request.method == "POST":
            sys.stdout.write(f"{came} {time.monotonic()}\n")
            sys.stdout.flush()
        return answer


def said(way: str, calls: int) -> str:
    """Return the words that begin a scene, of so many calls in the `way` of an agent."""
    return f"Go on with {calls} calls in the way of {way}."


def serve() -> None:
    """Serve until stdin closes. Two scenes for each way of saying a call."""
    ways = {"harness": call("bash", command="true")} | {name: one.command("true") for name, one in AGENT_STARTS.items()}
    scenes = [
        PlayedScene(prompt=said(name, calls), steps=((way,),) * calls)
        for name, way in ways.items()
        for calls in (1, CALLS)
    ]
    with Stamping(scenes) as server:
        print(server.origin, flush=True)
        sys.stdin.read()


class Served(NamedTuple):
    """A server of `serve`, in a process of its own."""

    origin: str
    printed: IO[str]

    def stamps(self, questions: int) -> list[tuple[float, float]]:
        """Return when the next questions came and were answered, in seconds of the monotonic clock."""
        found = []
        for _ in range(questions):
            came, answered = self.printed.readline().split()
            found.append((float(came), float(answered)))
        return found


class Measured(NamedTuple):
    """One run."""

    first: float
    """Seconds to the first question."""
    gap: float
    """Seconds from an answer to the next question, at the middle."""
    cost: Cost


class Contender(NamedTuple):
    """Who is measured: how it starts, and what it has in its environment."""

    way: str
    """Whose way of saying a call it understands."""
    command: Sequence[str]
    environment: Mapping[str, str]

    def started(self, calls: int) -> Started:
        """Start it, to play a scene."""
        words = [said(self.way, calls) if word == PROMPT else word for word in self.command]
        return Started.of(words, self.environment)

    def run(self, served: Served) -> Measured:
        """Play the scene of many calls once."""
        started = self.started(CALLS)
        cost = started.end()
        stamps = served.stamps(CALLS + 1)
        gaps = [came - answered for (_, answered), (came, _) in pairwise(stamps)]
        return Measured(stamps[0][0] - started.when, statistics.median(gaps[1:]), cost)

    def peak(self, served: Served) -> float:
        """Play the scene of many calls once more. Return its memory. A run of its own, since looking takes time."""
        most = self.started(CALLS).peak()
        served.stamps(CALLS + 1)
        return most

    def at_once(self, served: Served) -> float:
        """Return the CPU seconds of many runs of one call that start together."""
        running = [self.started(1) for _ in range(AT_ONCE)]
        costs = [one.end() for one in running]
        served.stamps(AT_ONCE * 2)
        return sum(cost.cpu for cost in costs)


def contenders(origin: str, folder: str, agents: str) -> dict[str, Contender]:
    """Return all that can be measured, ours first. `folder` is for what they keep, `agents` where npm put other agents."""
    work = os.path.join(folder, "work")
    os.mkdir(work)
    os.chdir(work)
    policy = os.path.join(folder, "policy.toml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY)
    plain = {"PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    url = f"{origin}/v1"
    flags = ["--base-url", url, "--policy", policy, "--cwd", work]
    ours = {**plain, "XDG_STATE_HOME": f"{folder}/state", "OPENAI_API_KEY": "none"}
    found = {
        "harness": Contender("harness", [*HARNESS, "run", PROMPT, *flags], ours),
        POSTING: Contender("harness", [sys.executable, "-c", POST, url, PROMPT], plain),
        "the SDK's streaming": Contender("harness", [sys.executable, "-c", TYPED, url, PROMPT], plain),
    }
    for name, start in AGENT_STARTS.items():
        places = (NATIVE.get(name, ""), f"node_modules/.bin/{start.program}")
        program = next((path for place in places if place for path in glob.glob(os.path.join(agents, place))), "")
        if agents and program:
            home = os.path.join(folder, name)
            os.mkdir(home)
            place = PlayedPlace(home=home, workspace=work, origin=origin)
            environment = {**plain, "HOME": home, "TERM": "dumb", **start.environment(place)}
            found[name] = Contender(name, [program, *start.arguments(place), PROMPT], environment)
    return found


def imported(environment: Mapping[str, str]) -> float:
    """Return the seconds of a process that imports openai, and ends."""
    return Started.of([sys.executable, "-c", "import openai"], environment).end().wall


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 rounds in place of 15: a gap may come out far off")
    folder = "where npm put agents that `harness hook` knows: `npm install --prefix FOLDER @openai/codex`"
    parser.add_argument("--agents", metavar="FOLDER", default="", help=folder)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure everything."""
    asked = _arguments()
    if asked.serve:
        serve()
        return
    rounds = 3 if asked.quick else 15
    agents = os.path.abspath(asked.agents) if asked.agents else ""
    found: dict[str, list[Measured]] = {}
    bare: list[float] = []
    together: dict[str, list[float]] = {}
    peaks: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder, serving("beside.py", "--serve") as printed:
        served = Served(*printed)
        all_of_them = contenders(served.origin, folder, agents)
        order = [*all_of_them, "import openai"]
        for turn in range(rounds + 1):  # the first fills the caches
            random.shuffle(order)
            for name in order:
                if name == "import openai":
                    bare += [imported(all_of_them["harness"].environment)] * bool(turn)
                else:
                    found.setdefault(name, []).extend([all_of_them[name].run(served)] * bool(turn))
        for _ in range(max(1, rounds // 5)):
            for name in random.sample(list(all_of_them), len(all_of_them)):
                together.setdefault(name, []).append(all_of_them[name].at_once(served))
                peaks.setdefault(name, []).append(all_of_them[name].peak(served))
        os.chdir("/")
    middle = {name: _middle(runs) for name, runs in found.items()}
    cpus = {name: statistics.median(seconds) for name, seconds in together.items()}
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cpus, medians of {rounds} rounds in shuffled order")
    print(
        f"{'':22}{'first request':>16}{'gap per call':>16}{'whole run, CPU':>16}{'memory':>10}{f'{AT_ONCE} at once, CPU':>20}"
    )
    for name in all_of_them:
        first, gap, cost = middle[name]
        print(
            f"{name:22}{first * 1e3:>13.0f} ms{gap * 1e3:>13.2f} ms{cost.cpu * 1e3:>13.0f} ms"
            f"{statistics.median(peaks[name]):>7.0f} MB"
            f"{cpus[name]:>18.1f} s"
        )
    imports = statistics.median(bare)
    print(f"{'`import openai` alone':22}{imports * 1e3:>13.0f} ms")
    ours = middle["harness"]
    print(f"\nfirst request: {ours.first / imports:.2f} times `import openai` (to reach: 0.6)", end="")
    print(f", {ours.first / middle['codex'].first:.2f} times codex (1.2)" if "codex" in middle else "")
    print(f"gap: {ours.gap / middle[POSTING].gap:.2f} times the SDK's post() (to reach: 1.9)")
    at_once = cpus["harness"] / cpus[POSTING]
    print(f"{AT_ONCE} at once: {at_once:.2f} times the CPU of the SDK's post() (to reach: 0.67)")


def _middle(runs: Sequence[Measured]) -> Measured:
    """Return the medians of some runs, each figure for itself."""
    costs = [run.cost for run in runs]
    cost = Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))
    return Measured(statistics.median(run.first for run in runs), statistics.median(run.gap for run in runs), cost)


if __name__ == "__main__":
    main()

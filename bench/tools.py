"""Measure the tools and the walls around commands against floors taken in the same run; ratios are what counts.

Usage: python bench/tools.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

from bench import HERE, row
from harness.actions import Action, Decision, Effects, Enforcement
from harness.files.workspace import Workspace
from harness.gate.tool import Tool, ToolOutput
from harness.messages import ToolCall
from harness.policy.loader import load_policy
from harness.policy.verdict import evaluate
from harness.process.capture import Capture
from harness.process.command import run_group
from harness.process.start import Launch
from harness.process.temporary import TemporaryFolder
from harness.tools import builtin_tools
from harness.tools.command_walls import CommandWalls

READER = Effects(read=(), write=(), network=False, unasked=True)
APPROVED = Effects(read=None, write=None, granted=(".",), network=True, unasked=False)
CLOSED = Effects(read=None, write=None, granted=(".",), network=False, unasked=False)
UNCONFINED = Effects(read=None, write=None, network=True, unasked=False, enforcement=Enforcement.OFF)
MEGABYTE = 1_000_000
SEARCHES = 60
SMALL_TEST = """
def test_{}(tmp_path):
    (tmp_path / "x").write_text("x")
    assert os.listdir(tmp_path)
"""


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def interleaved(ways: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Return the median of each way in milliseconds; the ways take turns, so that all see the same machine."""
    for work in ways.values():
        work()
    time.sleep(0.2)  # what has just changed on the disk is not counted on
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, work in ways.items():
            taken[name].append(milliseconds(work))
    return {name: statistics.median(times) for name, times in taken.items()}


def starts(workspace: Workspace, runs: int, ballast: str) -> None:
    """Measure the start of one shell, plain and behind walls."""
    command_walls, temporary = CommandWalls(workspace), TemporaryFolder()
    launch = Launch(
        argv=("bash", "--noprofile", "--norc", "-c", "--", "true"),
        executable="/bin/bash",
        cwd=workspace.root,
        environment={"PATH": os.environ["PATH"]},
    )

    def confined(effects: Effects) -> object:
        walls = command_walls.confinement(effects, temporary.path)
        try:
            held = launch
            if walls is not None:
                held = Launch(
                    argv=launch.argv, executable=launch.executable, cwd=launch.cwd, environment=launch.environment,
                    confine=walls.enter, starter=walls.starter, prefix=walls.prefix, descriptors=walls.descriptors,
                )  # fmt: skip
            return run_group(held, seconds=10, output=Capture(30_000))
        finally:
            if walls is not None:
                walls.close()

    plain = ["/bin/bash", "--noprofile", "--norc", "-c", "true"]
    medians = interleaved(
        {
            "plain": lambda: subprocess.run(plain, stdin=subprocess.DEVNULL, capture_output=True, check=True),
            "unconfined": lambda: confined(UNCONFINED),
            "reader": lambda: confined(READER),
            "approved": lambda: confined(APPROVED),
            "no network": lambda: confined(CLOSED),
        },
        runs,
    )
    for name, taken in medians.items():
        if name != "plain":
            plain_ms, goal = medians["plain"], "1.3 x" if name != "unconfined" else ""
            row(f"bash -c true, {name}{ballast}", f"{taken:.2f} ms", f"{plain_ms:.2f} ms", taken / plain_ms, goal)


def pages(workspace: Workspace, tool: Tool, runs: int) -> None:
    """Measure reading of a large file. The file is written, not sparse."""
    path = os.path.join(workspace.root, "large.txt")
    line = b"x" * 99 + b"\n"
    with open(path, "wb") as file:
        file.writelines(line * 10_000 for _ in range(1_000))
    for offset, goal in ((1, "50 ms"), (5_000_000, "")):
        page = partial(call, tool, path="large.txt", offset=offset, limit=2_000)
        taken = [milliseconds(page) for _ in range(runs)]
        row(f"read 2,000 lines of 1 GB from line {offset:,}", f"{statistics.median(taken):.0f} ms", "", None, goal)
    os.unlink(path)


def edits(workspace: Workspace, tools: tuple[Tool, ...], runs: int) -> None:
    """Measure an edit in a file of 10 MB, judged and made."""
    path = os.path.join(workspace.root, "ten.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"line {number} of a file that is rather long {'x' * 40}\n" for number in range(112_000))
    call(tools[1], path="ten.txt", limit=1)
    taken = []
    old, new = "line 60000 of", "LINE 60000 of"
    for _ in range(runs):
        edit = partial(call, tools[3], path="ten.txt", old_string=old, new_string=new)
        taken.append(milliseconds(edit))
        old, new = new, old
    size = os.path.getsize(path) / MEGABYTE
    row(f"an edit in {size:.1f} MB, judged and made", f"{statistics.median(taken):.0f} ms", "", None, "150 ms")


def output(workspace: Workspace, tool: Tool, runs: int) -> None:
    """Measure a command that prints 100 MB, against `cat` into a pipe that is read to its end."""
    path = os.path.join(workspace.root, "hundred.txt")
    with open(path, "wb") as file:
        file.writelines((b"y" * 99 + b"\n") * 10_000 for _ in range(100))

    def floor() -> None:
        process = subprocess.Popen(["cat", path], stdout=subprocess.PIPE, bufsize=0)
        assert process.stdout is not None
        while process.stdout.read(65_536):
            pass
        process.wait()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    medians = interleaved({"cat": floor, "bash": lambda: call(tool, command=f"cat {path}")}, runs)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    row(
        "100 MB of output",
        f"{medians['bash']:.0f} ms",
        f"{medians['cat']:.0f} ms",
        medians["bash"] / medians["cat"],
        "1.5 x",
    )
    row("memory that it took", f"{grown:.1f} MB", "", None, "40 MB")
    os.unlink(path)


def build(workspace: Workspace, tool: Tool, runs: int) -> None:
    """Measure the tests of a small project, confined as approved against unconfined."""
    for number in range(20):
        with open(os.path.join(workspace.root, f"test_{number}.py"), "w", encoding="utf-8") as file:
            file.write("import os\n" + "".join(SMALL_TEST.format(n) for n in range(10)))
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider ."
    medians = interleaved(
        {
            "plain": lambda: call(tool, UNCONFINED, command=command),
            "confined": lambda: call(tool, APPROVED, command=command),
        },
        runs,
    )
    plain, confined = medians["plain"], medians["confined"]
    row("pytest of 200 small tests, confined", f"{confined:.0f} ms", f"{plain:.0f} ms", confined / plain, "1.1 x")


def search(workspace: Workspace, tool: Tool, runs: int) -> None:
    """Measure `grep -r` over 40,000 files, judged by the policy ci and run, against bash that runs it."""
    folder = os.path.join(workspace.root, "tree")
    for number in range(400):
        here = os.path.join(folder, f"package{number // 20}", f"source{number % 20}")
        os.makedirs(here)
        for other in range(100):
            with open(os.path.join(here, f"module_{other}.py"), "w", encoding="utf-8") as file:
                file.write("def one():\n    return 1\n" * 20)
    policy = load_policy(os.path.join(os.path.dirname(HERE), "policies", "ci.toml"))
    command = "grep -r nothing_like_it tree"

    def judged() -> None:
        action = tool.prepare(ToolCall(id="b", name="bash", arguments="{}"), {"command": command})
        verdict = evaluate(policy, action)
        assert verdict.decision is Decision.AUTO
        tool.run(action, verdict.effects)

    floor = partial(subprocess.run, ["bash", "-c", command], cwd=workspace.root, check=False, capture_output=True)
    action = tool.prepare(ToolCall(id="b", name="bash", arguments="{}"), {"command": command})
    held = evaluate(policy, action).effects
    medians = interleaved({"plain": floor, "walls": lambda: tool.run(action, held), "judged": judged}, runs)
    for name, text in (("walls", "confined"), ("judged", "judged and confined")):
        taken, plain = medians[name], medians["plain"]
        goal = "1.3 x" if name == "judged" else ""
        row(f"grep -r over 40,000 files, {text}", f"{taken:.0f} ms", f"{plain:.0f} ms", taken / plain, goal)
    held_megabytes = []
    for number in range(SEARCHES):
        action = tool.prepare(action.call, {"command": f"grep -r word_{number} tree"})
        evaluate(policy, action)
        held_megabytes.append(resident())
    tenth, last = held_megabytes[9], held_megabytes[-1]
    row(
        f"memory after {SEARCHES} such searches judged, and 10",
        f"{last:.0f} MB",
        f"{tenth:.0f} MB",
        last / tenth,
        "1.0 x",
    )
    shutil.rmtree(folder)


def resident() -> float:
    """Return the resident memory of this process in megabytes; see proc(5)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MEGABYTE


def call(tool: Tool, effects: Effects = APPROVED, **arguments: str | int) -> ToolOutput:
    action: Action = tool.prepare(ToolCall(id="b", name=tool.spec.name, arguments="{}"), arguments)
    done = tool.run(action, effects)
    assert "Error" not in done.content[:20], done.content
    return done


def main() -> None:
    quick = "--quick" in sys.argv
    folder = os.path.realpath(tempfile.mkdtemp(prefix="harness-bench-"))
    try:
        root = os.path.join(folder, "workspace")
        os.mkdir(root)
        workspace = Workspace(root, outputs=os.path.join(folder, "outputs"))
        tools = builtin_tools(workspace)
        row("what", "harness", "floor", None, "goal")
        starts(workspace, 30 if quick else 150, "")
        search(workspace, tools[0], 5 if quick else 15)
        build(workspace, tools[0], 3 if quick else 7)
        output(workspace, tools[0], 3 if quick else 9)
        edits(workspace, tools, 4 if quick else 10)
        if not quick:
            pages(workspace, tools[1], 5)
        ballast = bytearray(300 * MEGABYTE)
        ballast[::4096] = b"x" * len(ballast[::4096])
        starts(workspace, 30 if quick else 150, ", in a process of 300 MB")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

"""Measure the action log: its synced records against the bare system calls, `verify` against hashing alone, and memory.

Usage: python bench/log.py [--calls 300] [--megabytes 100]. Prints a table; always exits 0: a bench measures, it does not
judge. The disk is that of the temporary folder (TMPDIR): on a memory file system a sync costs nothing, and the ratio says
nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TypeVar

from audit import long_log  # lies beside this file

from harness.actions import Action, Effects
from harness.gate.tool import Arguments, Tool, ToolOutput
from harness.messages import ToolCall

T = TypeVar("T")
POLICY = b'version = 1\n[tools]\nread_file = "auto"\n'
RECORD_BYTES = 900

VERIFY = """
import json, resource, sys, time
from harness.log.verify import verify
started = time.perf_counter()
found = verify(sys.argv[1])
seconds = time.perf_counter() - started
print(json.dumps([found.records, found.problem, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""
HASH = """
import hashlib, json, resource, sys, time
started = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    count = sum(len(hashlib.sha256(line).digest()) for line in file) // 32
seconds = time.perf_counter() - started
print(json.dumps([count, "", seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def row(name: str, value: str, floor: str, ratio: float | None, goal: str) -> None:
    """Print one line of the table."""
    shown = f"{ratio:6.2f}" if ratio is not None else "      "
    print(f"{name:44} {value:>12} {floor:>12} {shown}   {goal}")


class Timed:
    """The disk as the log asks it, with what was written between two syncs, and how long the syncs took."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.seconds = 0.0
        self._written = 0

    def write(self, descriptor: int, data: bytes) -> int:
        started = time.perf_counter()
        count = os.write(descriptor, data)
        self.seconds += time.perf_counter() - started
        self._written += count
        return count

    def sync(self, descriptor: int) -> None:
        started = time.perf_counter()
        os.fdatasync(descriptor)
        self.seconds += time.perf_counter() - started
        self.sizes.append(self._written)
        self._written = 0


def bare(descriptor: int, sizes: list[int]) -> float:
    """Return the seconds that writing and syncing so many bytes, one time after the other, takes."""
    pieces = [b"x" * size for size in sizes]
    started = time.perf_counter()
    for piece in pieces:
        os.write(descriptor, piece)
        os.fdatasync(descriptor)
    return time.perf_counter() - started


class TimedTool:
    """A tool, and how long its own work takes: preparing and running."""

    def __init__(self, tool: Tool) -> None:
        self.spec = tool.spec
        self.seconds = 0.0
        self._tool = tool

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        return self._timed(lambda: self._tool.prepare(call, arguments))

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        return self._timed(lambda: self._tool.run(action, effects))

    def _timed(self, body: Callable[[], T]) -> T:
        started = time.perf_counter()
        try:
            return body()
        finally:
            self.seconds += time.perf_counter() - started


def synced_records(folder: str, calls: int) -> None:
    """An auto `read_file` call through the gate, from proposal to outcome, against write and fdatasync of the same bytes."""
    from harness import ActionLog, Limits, ToolRegistry, Workspace, deny_all
    from harness.gate.gate import Gate
    from harness.policy.loader import parse_policy
    from harness.tools.read_file import ReadFileTool

    with open(os.path.join(folder, "read.txt"), "w") as file:
        file.write("a line of text\n" * 20)
    disk, policy = Timed(), parse_policy(POLICY, "bench.toml")
    log = ActionLog.open(os.path.join(folder, "log.jsonl"), write=disk.write, sync=disk.sync)
    log.append("session_started", {"harness": "bench", "policy_sha256": policy.sha256}, sync=True)
    tool = TimedTool(ReadFileTool(Workspace(folder), limits=Limits().filled()))
    gate = Gate(policy=policy, approver=deny_all, log=log, tools=ToolRegistry([tool]))
    floor = os.open(os.path.join(folder, "floor"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    ours: list[float] = []
    gated: list[float] = []
    """Judged and recorded: without the tool's own work."""
    bares: list[float] = []
    disks: list[float] = []
    sizes: list[int] = []
    for number in range(calls + 20):
        disk.sizes.clear()
        disk.seconds = tool.seconds = 0.0
        call = ToolCall(id=f"call_{number}", name="read_file", arguments=json.dumps({"path": "read.txt"}))
        started = time.perf_counter()
        gate.call(gate.propose(call, turn=1, step=1))
        settled = time.perf_counter()
        if number >= 20:  # the first ones warm everything up
            gated.append(settled - started - tool.seconds)
            ours.append(settled - started)
            disks.append(disk.seconds)
            sizes = list(disk.sizes)
            bares.append(bare(floor, sizes))
    os.close(floor)
    log.close()
    mine, least, waited = statistics.median(ours), statistics.median(bares), statistics.median(disks)
    told = " + ".join(f"{size} B" for size in sizes)
    recorded = statistics.median(gated)
    row("two synced records, judged", f"{recorded * 1e3:.2f} ms", f"{least * 1e3:.2f} ms", recorded / least, "< 3")
    row("a read_file call with them", f"{mine * 1e3:.2f} ms", f"{least * 1e3:.2f} ms", mine / least, "")
    row("  of that in write and fdatasync", f"{waited * 1e3:.2f} ms", f"{least * 1e3:.2f} ms", waited / least, told)
    slow = statistics.quantiles(ours, n=100)[98]
    row("  the slowest of a hundred", f"{slow * 1e3:.2f} ms", "", None, "")


def appending(folder: str, records: int = 5_000) -> None:
    """Records without a sync: what the chain, the redactor and the encoding cost."""
    from harness import ActionLog

    fields = {"message": "a line of output of a program\n" * (RECORD_BYTES // 30), "where": "bench"}
    line = json.dumps({**fields, "kind": "error"}).encode()
    log = ActionLog.open(os.path.join(folder, "unsynced.jsonl"))
    log.append("session_started", {"harness": "bench"})
    floor = os.open(os.path.join(folder, "floor-unsynced"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def timed(one: Callable[[], object]) -> float:
        started = time.perf_counter()
        for _ in range(records):
            one()
        return (time.perf_counter() - started) / records

    mine, least = timed(lambda: log.append("error", fields)), timed(lambda: os.write(floor, line))
    os.close(floor)
    log.close()
    row("a record of 1 KB, not synced", f"{mine * 1e6:.0f} us", f"{least * 1e6:.0f} us", mine / least, "")


def child(code: str, path: str) -> tuple[int, str, float, int]:
    """Return what a process of its own found: records, problem, seconds, peak of resident memory in KB."""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    records, problem, seconds, memory = json.loads(done.stdout)
    return records, problem, seconds, memory


def verifying(folder: str, megabytes: int, runs: int = 3) -> None:
    """`verify` over a long log against hashing its lines, and its memory against that over a tenth of the log."""
    paths = {part: os.path.join(folder, f"{part}.jsonl") for part in ("tenth", "whole")}
    for part, path in paths.items():
        long_log(path, megabytes * 1_000_000 // RECORD_BYTES // (10 if part == "tenth" else 1))
    size = os.path.getsize(paths["whole"])
    seconds: list[float] = []
    floors: list[float] = []
    problems: set[str] = set()
    peak = 0
    for _ in range(runs):
        floors.append(child(HASH, paths["whole"])[2])
        _, problem, taken, peak = child(VERIFY, paths["whole"])
        problems.add(problem)
        seconds.append(taken)
    mine, least = min(seconds), min(floors)
    name, goal = f"verify, {size / 1e6:.0f} MB", ">= 60 MB/s"
    if problems != {""}:
        goal += f"; NOT WHOLE: {problems}"
    row(name, f"{size / mine / 1e6:.0f} MB/s", f"{size / least / 1e6:.0f} MB/s", mine / least, goal)
    small = child(VERIFY, paths["tenth"])[3]
    row(
        "verify, peak memory against a tenth of it",
        f"{peak / 1024:.1f} MB",
        f"{small / 1024:.1f} MB",
        peak / small,
        "flat",
    )


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--megabytes", type=int, default=100)
    arguments = parser.parse_args()
    print(f"{'':44} {'harness':>12} {'floor':>12} {'ratio':>6}   goal")
    with tempfile.TemporaryDirectory() as folder:
        synced_records(folder, arguments.calls)
        appending(folder)
        verifying(folder, arguments.megabytes)


if __name__ == "__main__":
    main()

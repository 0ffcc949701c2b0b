"""A long run: turns of several calls each through adapter, gate and log, and what the process holds as time goes by.

Usage: python bench/soak.py [--turns 2000] [--calls 4] [--session 100]. `--session` is how many turns a session lasts;
as many as there are turns makes one history that grows all the time. Prints a table; always exits 0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from harness.actions import Action, Effects, JsonValue
from harness.gate.approval import deny_all
from harness.gate.tool import ToolOutput
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.verify import verify
from harness.loop.agent import Agent
from harness.messages import StopReason, ToolCall
from harness.model import ToolSpec
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.policy.loader import parse_policy
from harness.record import Record

POLICY = b'version = 1\nname = "soak"\n[tools]\nwork = "auto"\n'
RESULT = "a line of output\n" * 20


class Held(Record):
    """What a process holds at one moment."""

    turns: int
    rss: int
    """Bytes."""
    descriptors: int
    threads: int
    children: int


class Soak(Record):
    """What a long run came to."""

    held: tuple[Held, ...]
    """After every session, the first one left out: it warms everything up."""
    turn_seconds: tuple[float, ...]
    """Of every turn, from one reply to the next."""
    ran: int
    log_records: int
    log_whole: bool

    def rate(self, first: float, last: float) -> float:
        """Return the median seconds of the turns from one part of the run to another, each from 0 to 1."""
        count = len(self.turn_seconds)
        return statistics.median(self.turn_seconds[int(first * count) : int(last * count)])


def held(turns: int) -> Held:
    """Return what this process holds now; see proc(5)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    children = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
            children += len(file.read().split())
    return Held(
        turns=turns,
        rss=pages * os.sysconf("SC_PAGESIZE"),
        descriptors=len(os.listdir("/proc/self/fd")) - 1,
        threads=len(os.listdir("/proc/self/task")),
        children=children,
    )


class Work:
    """A tool that does next to nothing."""

    def __init__(self) -> None:
        self.ran = 0
        self.spec = ToolSpec(
            name="work",
            description="For the bench.",
            parameters={"properties": {"do": {"type": "string"}}, "required": ["do"], "additionalProperties": False},
        )

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        what = str(arguments["do"])
        return Action(call=call, tool="work", arguments=arguments, facets=(), summary=what, preview=what, request=what)

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - what a tool is given
        self.ran += 1
        return ToolOutput(content=f"{action.request}\n{RESULT}")


def soak(*, turns: int, calls: int, session_turns: int, folder: str) -> Soak:
    """Run `turns` turns of `calls` calls, in sessions of `session_turns`, against a server in a process of its own."""
    tool, stamps, seen = Work(), [], []
    log = ActionLog.open(os.path.join(folder, "log.jsonl"))

    def watch(record: LogRecord) -> None:
        if record["kind"] in ("model_request", "session_ended"):
            stamps.append(time.perf_counter() if record["kind"] == "model_request" else 0.0)

    log.observers.append(watch)
    with server(session_turns, calls) as url:
        model = OpenAIChat("soak", Endpoint(base_url=url, api_key="none"))
        agent = Agent(
            model=model, tools=[tool], policy=parse_policy(POLICY, "soak.toml", extra_tools=("work",)),
            approver=deny_all, log=log, limits=Limits(max_turns=session_turns + 1),
        )  # fmt: skip
        for number in range(turns // session_turns):
            result = agent.run("go")
            if result.stop is not StopReason.COMPLETED:
                raise RuntimeError(f"session {number}: {result.stop} {result.detail}")
            seen.append(held((number + 1) * session_turns))
        model.close()
    log.close()
    seconds = [later - earlier for earlier, later in itertools.pairwise(stamps) if earlier and later]
    checked = verify(log.path)
    return Soak(
        held=tuple(seen[1:] or seen),
        turn_seconds=tuple(seconds),
        ran=tool.ran,
        log_records=checked.records,
        log_whole=checked.broken_line is None and not checked.torn and not checked.unknown_calls,
    )


# --- the server ----------------------------------------------------------------------------------------------------


@contextmanager
def server(session_turns: int, calls: int) -> Iterator[str]:
    """Yield the base URL of a scripted server in a process of its own: so many turns of so many calls, then `done`."""
    process = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--serve", str(session_turns), str(calls)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    port = process.stdout.readline().strip()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.stdin.close()
        process.terminate()
        process.wait()
        process.stdout.close()


def serve(session_turns: int, calls: int) -> None:
    """Answer one connection after another until the process is ended."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    number = 0
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while _take(connection):
                place = number % (session_turns + 1)
                connection.sendall(_reply(number, calls if place < session_turns else 0))
                number += 1


def _take(connection: socket.socket) -> bool:
    """Read one request; say whether there was one."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 20)
        if not piece:
            return False
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    missing = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    missing -= len(rest)
    while missing > 0:
        piece = connection.recv(1 << 20)
        if not piece:
            return False
        missing -= len(piece)
    return True


def _reply(number: int, calls: int) -> bytes:
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": f"turn {number}" if calls else "done"}]
    for index in range(calls):
        arguments = json.dumps({"do": f"turn {number} call {index}"})
        half = len(arguments) // 2
        named = {"name": "work", "arguments": arguments[:half]}
        deltas.append({"tool_calls": [{"index": index, "id": f"c{number}_{index}", "function": named}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})
    events: list[dict[str, object]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]})
    events.append({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
    body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body) + body


# --- the table -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--session", type=int, default=100)
    parser.add_argument("--serve", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.serve:
        serve(*given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        found = soak(turns=given.turns, calls=given.calls, session_turns=given.session, folder=folder)
        took = time.perf_counter() - started
        size = os.path.getsize(os.path.join(folder, "log.jsonl"))
    first, last = found.held[0], found.held[-1]
    print(f"{given.turns} turns, {found.ran} calls in {took:.1f} s, sessions of {given.session} turns; "
          f"log {size / 1e6:.1f} MB, {found.log_records} records, {'whole' if found.log_whole else 'BROKEN'}")  # fmt: skip
    print(f"{'':12} {'after ' + str(first.turns):>14} {'after ' + str(last.turns):>14}")
    print(f"{'RSS':12} {first.rss / 1e6:11.1f} MB {last.rss / 1e6:11.1f} MB")
    for name in ("descriptors", "threads", "children"):
        print(f"{name:12} {getattr(first, name):14} {getattr(last, name):14}")
    print(f"{'per turn':12} {found.rate(0, 0.1) * 1e3:11.2f} ms {found.rate(0.9, 1) * 1e3:11.2f} ms"
          f"   last tenth / first tenth {found.rate(0.9, 1) / found.rate(0, 0.1):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()

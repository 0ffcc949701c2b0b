"""What the wire costs: from the last byte of a reply to the record of its call, long replies, and long histories.

Usage: python bench/wire.py [--quick]. Servers run in processes of their own. Prints a table; always exits 0.
"""

from __future__ import annotations

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
from harness.loop.agent import Agent
from harness.messages import Message, Role, ToolCall
from harness.model import ToolSpec
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Endpoint, ReplyBounds
from harness.models.openai_chat import OpenAIChat
from harness.models.reply_body import ReplyBody
from harness.policy.loader import parse_policy

POLICY = b'version = 1\nname = "wire"\n[tools]\nwork = "auto"\n'
MB = 1_000_000
WIDE = ReplyBounds(event_bytes=256 * MB)
"""The standard bound refuses one event of 64 MB; what is measured is how the time grows."""


class Work:
    """A tool that does next to nothing."""

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="work",
            description="For the bench.",
            parameters={"properties": {"do": {"type": "string"}}, "required": ["do"], "additionalProperties": False},
        )

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        what = str(arguments["do"])
        return Action(call=call, tool="work", arguments=arguments, facets=(), summary=what, preview=what, request=what)

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - what a tool is given
        return ToolOutput(content="a line of output\n" * 20)


def agent_for(url: str, log: ActionLog, turns: int) -> Agent:
    """Return an agent with the real adapter that talks to `url`."""
    model = OpenAIChat("bench", Endpoint(base_url=url, api_key="none", bounds=WIDE))
    return Agent(
        model=model, tools=[Work()], policy=parse_policy(POLICY, "wire.toml", extra_tools=("work",)), approver=deny_all,
        log=log, limits=Limits(max_turns=turns + 1),
    )  # fmt: skip


def row(name: str, value: str, goal: str = "") -> None:
    """Print one line of the table."""
    print(f"{name:58} {value:>34}   {goal}")


# --- from the last byte to the record ------------------------------------------------------------------------------


def latency(folder: str, turns: int) -> None:
    """The time from the last byte of a reply to the first record of its call on disk, and of a long one."""
    for words, name in ((1, "a short call"), (20_000, "100 kB in 20,000 events")):
        turns = turns if words == 1 else 10
        log = ActionLog.open(f"{folder}/latency-{words}.jsonl")
        stamps: list[float] = []

        def watch(record: LogRecord, into: list[float] = stamps) -> None:
            if record["kind"] == "intent":
                into.append(time.monotonic())

        log.observers.append(watch)
        with server("calls", turns, words) as (url, process):
            agent_for(url, log, turns).run("go")
            log.close()
            assert process.stdout is not None
            sent = [float(process.stdout.readline()) for _ in range(turns)]
        times = sorted((later - earlier) * 1e3 for earlier, later in zip(sent, stamps, strict=True))
        shown = f"median {statistics.median(times):.2f} ms, worst {times[-1]:.2f} ms"
        row(f"last byte to the synced intent: {name}", shown, "< 5 ms")


# --- long replies --------------------------------------------------------------------------------------------------


def long_replies(sizes: Sequence[int]) -> None:
    """Text of 16, 32 and 64 MB through the adapter: seconds, and seconds per MB against those of the first."""
    for form, name in (("events", "in events of 4 kB"), ("tiny", "in events of 40 bytes"), ("one", "in one event"),
                       ("document", "in one document")):  # fmt: skip
        found = []
        for size in sizes if form != "tiny" else [size // 8 for size in sizes]:
            with server(form, size, 0) as (url, _):
                model = OpenAIChat("bench", Endpoint(base_url=url, api_key="none", bounds=WIDE))
                model.warm_up()
                texts: list[str] = []
                started = time.perf_counter()
                response = model.complete(
                    [Message(role=Role.USER, content="go")], (), on_text=texts.append, on_retry=print
                )  # fmt: skip
                found.append((size, time.perf_counter() - started))
                model.close()
            assert len(response.text) == size == sum(map(len, texts))
        per_mb = [seconds / size * MB for size, seconds in found]
        shown = ", ".join(f"{size // MB} MB {seconds:.2f} s" for size, seconds in found)
        row(f"text {name}", shown, f"per MB, last / first: {per_mb[-1] / per_mb[0]:.2f} (1 is linear)")


def decoding(sizes: Sequence[int]) -> None:
    """The decoder alone, without a socket."""
    event = _event("x" * 4000)
    found = []
    for size in sizes:
        body = ReplyBody(ChatReply())
        started = time.perf_counter()
        for _ in range(size // 4000):
            body.feed(event)
        body.feed(b"data: [DONE]\n\n")
        body.end()
        body.response()
        found.append((size, time.perf_counter() - started))
    per_mb = [seconds / size * MB for size, seconds in found]
    shown = ", ".join(f"{size // MB} MB {seconds:.2f} s" for size, seconds in found)
    row("text in events of 4 kB, the decoder alone", shown, f"per MB, last / first: {per_mb[-1] / per_mb[0]:.2f}")


# --- long histories ------------------------------------------------------------------------------------------------


def long_histories(folder: str, marks: Sequence[int]) -> None:
    """What a turn costs beyond its request, as the history grows: a whole turn less a bare request of the same size."""
    import openai

    turns = marks[-1] + 8
    log = ActionLog.open(f"{folder}/history.jsonl")
    stamps: list[float] = []
    log.observers.append(
        lambda record: stamps.append(time.perf_counter()) if record["kind"] == "model_request" else None
    )
    with server("lengths", turns, 1) as (url, process):
        agent_for(url, log, turns).run("go")
        log.close()
        assert process.stdout is not None
        lengths = [int(process.stdout.readline()) for _ in range(turns)]
    seconds = [later - earlier for earlier, later in itertools.pairwise(stamps)]
    first = 0.0
    with server("floor", 1, 1) as (url, _):
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        for mark in marks:
            near = range(max(mark - 8, 1), min(mark + 8, len(seconds)))
            own = statistics.median(seconds[place] for place in near)
            floor = statistics.median(_bare(client, b" " * lengths[mark - 1]) for _ in range(25))
            beyond = own - floor
            first = first or beyond
            row(f"a turn after {mark} turns ({lengths[mark - 1] / 1e3:.0f} kB sent)",
                f"{own * 1e3:.2f} ms, the request {floor * 1e3:.2f} ms",
                f"beyond it {beyond * 1e3:.2f} ms, {beyond / first:.2f} x the first")  # fmt: skip
        client.close()


def _bare(client: object, body: bytes) -> float:
    """Return the seconds of one request of the SDK with a body that was ready."""
    post = client.post  # type: ignore[attr-defined]
    named = {"content": body} if "content" in (type(client).post.__kwdefaults__ or {}) else {"body": body}  # type: ignore[attr-defined]
    started = time.perf_counter()
    answer = post(
        "/chat/completions", cast_to=object, options={"headers": {"X-Stainless-Raw-Response": "stream"}}, **named
    )
    for _ in answer.iter_bytes():
        pass
    answer.close()
    return time.perf_counter() - started


# --- servers -------------------------------------------------------------------------------------------------------


@contextmanager
def server(form: str, size: int, words: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the base URL of a server in a process of its own, and the process; what it prints is read from its output."""
    process = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--serve", form, str(size), str(words)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    try:
        yield f"http://127.0.0.1:{port}/v1", process
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def serve(form: str, size: int, words: int) -> None:
    """Answer every request until the process is ended; print when a reply was sent, or how long the request was."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    number, told = 0, []
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while (length := _take(connection)) >= 0:
                for piece in _answer(form, size, words, number):
                    connection.sendall(piece)
                told.append(time.monotonic() if form == "calls" else float(length))
                number += 1
                if form in ("calls", "lengths") and number == size + 1:  # told at the end, so that nobody is disturbed
                    sys.stdout.write(
                        "".join(f"{value:.9f}\n" if form == "calls" else f"{value:.0f}\n" for value in told)
                    )
                    sys.stdout.flush()


def _take(connection: socket.socket) -> int:
    """Read one request; return the length of its body, -1 where there was none."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 20)
        if not piece:
            return -1
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    missing = length - len(rest)
    while missing > 0:
        missing -= len(connection.recv(1 << 20))
    return length


def _answer(form: str, size: int, words: int, number: int) -> Iterator[bytes]:
    """Yield the answer: `size` is the turns of a run, or the characters of a text."""
    if form in ("calls", "lengths", "floor"):
        answer = _call(number, words) if number < size and form != "floor" else _http(_event("done") + _STOP)
        if words > 1:  # the reader has caught up when the last bytes come, as with a model that writes slowly
            yield answer[:-400]
            time.sleep(0.4)
        yield answer[-400:] if words > 1 else answer
        return
    kind = b"application/json" if form == "document" else b"text/event-stream"
    yield b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" % kind
    if form == "document":
        message = {"role": "assistant", "content": "x" * size}
        yield _chunk(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode())
    else:
        width = {"events": 4000, "tiny": 40, "one": size}[form]
        block = _event("x" * width) * max(1, 64_000 // width)
        for _ in range(size // (width * max(1, 64_000 // width))):
            yield _chunk(block)
        rest = size % (width * max(1, 64_000 // width))
        yield _chunk((_event("x" * rest) if rest else b"") + _STOP)
    yield b"0\r\n\r\n"


def _call(number: int, words: int) -> bytes:
    pieces = ['{"do": "', *["word "] * words, f'{number}"}}']
    named = {"index": 0, "id": f"c{number}", "function": {"name": "work", "arguments": ""}}
    deltas = [named, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]} for delta in deltas]
    return _http(b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + _STOP)


def _event(text: str) -> bytes:
    return b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()


_STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def _http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def main() -> None:
    """Measure everything."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    quick = "--quick" in sys.argv[1:]
    sizes = [2 * MB, 4 * MB, 8 * MB] if quick else [16 * MB, 32 * MB, 64 * MB]
    with tempfile.TemporaryDirectory() as folder:
        latency(folder, 20 if quick else 200)
        decoding(sizes)
        long_replies(sizes)
        long_histories(folder, (10, 100) if quick else (10, 100, 1000))


if __name__ == "__main__":
    main()

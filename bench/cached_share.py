"""What share of a session's input a server finds in its cache, over twenty turns, for each of the three APIs.

Usage: python bench/cached_share.py [--turns N] [--json]. The real adapters, over loopback, against a server that keeps
what requests began with as the providers' pages say: chat completions and Responses by themselves, from 1,024 tokens on
and in steps of 128; Messages, and chat completions of Claude (behind OpenRouter, behind LiteLLM), up to the marks of a
request, found up to 20 blocks before a mark, from 1,024 tokens on. In `reasoning` each reply of chat completions brings
4.5 kB of it. A token is four bytes here. Prints a table; always exits 0.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.messages import Message, Role, ToolCall, Usage
from harness.model import Model, ToolSpec
from harness.models.anthropic_messages import AnthropicMessages
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses
from harness.models.openai_wire import OpenAIWire
from harness.models.presets import PRESETS
from harness.record import Record, replace

TURNS = 20
LEAST_TOKENS, STEP_TOKENS, TOKEN_BYTES = 1_024, 128, 4
LOOKED_BACK = 20
"""Blocks before a mark in which the Messages API looks for what it kept."""
NEW_PROMPT = 5
"""After so many calls the model answers, and the person says something new."""
REASONING_BYTES = 4_500


class Case(Record):
    """Who asks for what model, and of what kind its server is."""

    adapter: type[OpenAIWire]
    model: str = "m"
    preset: str = ""
    by_marks: bool = False
    """Whether only what is marked is kept."""
    reasoning: str = ""
    """What each reply of chat completions brings besides."""


CASES = {
    "chat": Case(adapter=OpenAIChat),
    "reasoning": Case(adapter=OpenAIChat, reasoning="hm, " * (REASONING_BYTES // 4)),
    "openrouter": Case(adapter=OpenAIChat, model="anthropic/claude-x", preset="openrouter", by_marks=True),
    "litellm": Case(adapter=OpenAIChat, model="claude-x", preset="litellm", by_marks=True),
    "responses": Case(adapter=OpenAIResponses),
    "messages": Case(adapter=AnthropicMessages, by_marks=True),
}


class PrefixServer:
    """Keeps what requests began with, and says in its usage how much of one was known."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._before: list[bytes] = []
        self._kept: set[tuple[bytes, ...]] = set()
        self.requests = 0

    def answer(self, path: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole reply to a request."""
        self.requests += 1
        blocks, marks = _blocks(path, asked)
        total = sum(map(len, blocks)) // TOKEN_BYTES
        cached = self._marked(blocks, marks) if self._case.by_marks else self._common(blocks)
        is_answer = self.requests % NEW_PROMPT == 0
        reply = _reply(path, f"c{self.requests}", is_answer, total, cached)
        if self._case.reasoning:
            reply["choices"][0]["message"]["reasoning_content"] = f"{self.requests}: {self._case.reasoning}"
        return reply

    def _common(self, blocks: Sequence[bytes]) -> int:
        """Return how many tokens at the start are those of an earlier request; keeps this one."""
        body = b"".join(blocks)
        longest = max((_alike(body, before) for before in self._before), default=0)
        self._before.append(body)
        tokens = longest // TOKEN_BYTES // STEP_TOKENS * STEP_TOKENS
        return tokens if tokens >= LEAST_TOKENS else 0

    def _marked(self, blocks: Sequence[bytes], marks: Sequence[int]) -> int:
        """Return how many tokens were kept up to a mark, or up to a block shortly before one; keeps up to the marks."""
        found = 0
        for mark in marks:
            for end in range(mark, max(mark - LOOKED_BACK, 0), -1):
                if tuple(blocks[:end]) in self._kept:
                    found = max(found, sum(map(len, blocks[:end])) // TOKEN_BYTES)
                    break
        for mark in marks:
            if sum(map(len, blocks[:mark])) // TOKEN_BYTES >= LEAST_TOKENS:
                self._kept.add(tuple(blocks[:mark]))
        return found


def _alike(one: bytes, other: bytes) -> int:
    """Return how many bytes at the start of both are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _blocks(path: str, asked: Mapping[str, Any]) -> tuple[list[bytes], list[int]]:
    """Return what a request says in the order in which a provider reads it, and after how many blocks its marks stand."""
    given: list[Any] = [*asked.get("tools", ())]
    if path.endswith("/messages"):
        given += asked.get("system", ())
        for turn in asked["messages"]:
            given += [{"role": turn["role"], **block} for block in turn["content"]]
    elif path.endswith("/responses"):
        given += [asked.get("instructions", ""), *asked["input"]]
    else:
        given += asked["messages"]
    blocks, marks = [], []
    for place, one in enumerate(given, 1):
        content = one.get("content") if isinstance(one, dict) else None
        parts = [one, *(content if isinstance(content, list) else ())]
        if [part for part in parts if isinstance(part, dict) and part.pop("cache_control", None)]:
            marks.append(place)
        blocks.append(json.dumps(one).encode())
    return blocks, marks


def _reply(path: str, call_id: str, is_answer: bool, total: int, cached: int) -> dict[str, Any]:
    arguments = json.dumps({"command": f"cat {call_id}.py"})
    if path.endswith("/messages"):
        call = {"type": "tool_use", "id": call_id, "name": "bash", "input": json.loads(arguments)}
        content = [{"type": "thinking", "thinking": "hm " * 20, "signature": call_id}]
        content += [{"type": "text", "text": "Done."}] if is_answer else [call]
        usage: dict[str, Any] = {"input_tokens": total - cached, "cache_read_input_tokens": cached, "output_tokens": 20}
        return {"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}
    if path.endswith("/responses"):
        usage = {"input_tokens": total, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": 20}
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
        called = {"type": "function_call", "call_id": call_id, "name": "bash", "arguments": arguments}
        reasoning = {"type": "reasoning", "id": f"rs_{call_id}", "summary": [], "encrypted_content": "hm" * 30}
        output = [reasoning, said if is_answer else called]
        return {"object": "response", "status": "completed", "output": output, "usage": usage}
    usage = {"prompt_tokens": total, "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens": 20}
    function = {"name": "bash", "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    message = {"role": "assistant", "content": "Done."} if is_answer else {"role": "assistant", "tool_calls": calls}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def measured(case: Case, turns: int) -> tuple[Usage, list[float]]:
    """Return what a session of so many requests took, and the cached share of each."""
    kept = PrefixServer(case)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(kept.answer(self.path, asked)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = Endpoint(base_url=f"http://127.0.0.1:{server.server_address[1]}/v1", api_key="none", attempts=1)
    if case.preset:
        endpoint = replace(endpoint, quirks=PRESETS[case.preset].quirks)
    try:
        with closing(case.adapter(case.model, endpoint)) as model:
            return _session(model, turns)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _session(model: Model, turns: int) -> tuple[Usage, list[float]]:
    tools = tuple(
        ToolSpec(name=name, description="What it does. " * 30, parameters={"type": "object", "properties": {}})
        for name in ("bash", "read_file", "write_file", "edit_file")
    )
    history = [
        Message(role=Role.SYSTEM, content="You are a careful software engineer. " * 120),
        Message(role=Role.USER, content="Find out why the test for slugs fails."),
    ]
    taken, shares = Usage(), []
    for _ in range(turns):
        reply = model.complete(history, tools, on_text=lambda _: None, on_retry=lambda _: None)
        taken += reply.usage
        shares.append(reply.usage.cached_tokens / reply.usage.input_tokens)
        said = Message(role=Role.ASSISTANT, content=reply.text, tool_calls=reply.tool_calls, echo=reply.echo)
        history += [said, *(_result(call) for call in reply.tool_calls)]
        if not reply.tool_calls:
            history.append(Message(role=Role.USER, content="And the next one? " * 5))
    return taken, shares


def _result(call: ToolCall) -> Message:
    return Message(role=Role.TOOL, content=f"{call.arguments}\n" * 40, tool_call_id=call.id)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {name: measured(case, given.turns) for name, case in CASES.items()}
    if given.json:
        print(json.dumps({name: taken.cached_tokens / taken.input_tokens for name, (taken, _) in found.items()}))
        return
    print(f"{'case':<10} {'requests':>8} {'tokens in':>10} {'cached':>8} {'share':>6}  least after the first")
    for name, (taken, shares) in found.items():
        share = taken.cached_tokens / taken.input_tokens
        least = min(shares[1:], default=0.0)
        print(
            f"{name:<10} {given.turns:>8} {taken.input_tokens:>10,} {taken.cached_tokens:>8,} {share:>6.1%}  {least:.1%}"
        )


if __name__ == "__main__":
    main()

"""What a wire case is, how its bytes are written, and the judge of all of them; the rows are in wire_rows_*.py.

A case is played through the real Agent, gate, log and adapter over a real socket. After it a second prompt is given to
the same session, so that what the first has left behind is seen where it matters: in the next request's body.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from chat_events import CALLED, DONE, STOP, calls, fragment, said, sse
from clocks import Clock
from fault_server import Answer, End, FaultServer, Send, Step, chunked, status, until_close, whole
from in_flight import all_over
from log_scene import proved, unsynced
from messages_server import chat_form
from process_scene import wait_until
from responses_server import chat_request

from harness.actions import Action, Effects, JsonValue
from harness.errors import ModelError, ModelFault
from harness.gate.approval import deny_all
from harness.gate.tool import ToolOutput
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.transcript import rebuilt
from harness.log.verify import Verification
from harness.loop.agent import Agent
from harness.messages import Message, ModelResponse, RunResult, StopReason, ToolCall, Usage
from harness.model import Retry, ToolSpec
from harness.models.anthropic_messages import AnthropicMessages
from harness.models.endpoint import Deadlines, Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses
from harness.models.presets import Api
from harness.models.scripted import request_problem
from harness.policy.loader import parse_policy
from harness.record import Record, replace

KEY = "sk-wire-0123456789"
TOOLS = ("work", "ask")
POLICY = b'version = 1\nname = "wire"\n[tools]\nwork = "auto"\nask = "confirm"\n'
ENDPOINT = Endpoint(
    api_key=KEY,
    attempts=2,
    deadlines=Deadlines(connect=600, first_event=600, idle=600, total=36_000),
    retry_seconds=300,
)

Given: TypeAlias = Answer | Callable[[str], Answer]

# --- bytes ---------------------------------------------------------------------------------------------------------


def stream(*events: object) -> Answer:
    """Return an answer that streams `events` and leaves the connection open."""
    return chunked(Send(data=b"".join((b"%x\r\n" % len(data := sse(*events)), data, b"\r\n0\r\n\r\n"))))


def document(message: Mapping[str, object], finish: object = "stop", **more: object) -> Answer:
    """Return an answer that holds one whole completion."""
    value = {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}], **more}
    return whole(json.dumps(value).encode(), kind="application/json")


def do(what: str, **more: object) -> str:
    """Return the arguments of a call."""
    return json.dumps({"do": what, **more})


def one(
    arguments: object = ..., *, call_id: object = "c1", name: object = "work", index: object = 0
) -> dict[str, object]:
    """Return the delta of a whole call; `do a` where no arguments are given."""
    return fragment(do("a") if arguments is ... else arguments, index=index, call_id=call_id, name=name)


FINE, FINE_DOCUMENT = stream(said("ok"), STOP, DONE), document({"content": "ok"})
FINE_RESPONSE = stream(
    {
        "type": "response.completed",
        "response": {
            "id": "r1",
            "object": "response",
            "status": "completed",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}],
        },
    }
)
FINE_MESSAGE = stream(
    {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)
ADAPTERS: dict[Api, type[OpenAIChat | OpenAIResponses | AnthropicMessages]] = {
    Api.CHAT: OpenAIChat,
    Api.RESPONSES: OpenAIResponses,
    Api.MESSAGES: AnthropicMessages,
}
CALL = stream(calls(one()), CALLED, DONE)
CALL_DOCUMENT = document({"content": None, "tool_calls": [one(index=None)]}, "tool_calls")


def failure(code: int, message: str, /, *headers: str, **fields: object) -> Answer:
    """Return an error as the OpenAI API words it."""
    return status(code, {"error": {"message": message, **fields}}, *headers)


def broken(data: bytes, end: End) -> Answer:
    """Return a stream that ends with `data`, in one of the ways of End; a clean one has no length and no last chunk."""
    if end is End.CLOSE:
        return until_close(Send(data=data), end)
    steps: tuple[Step, ...] = (Send(data=b"%x\r\n%b\r\n" % (len(data), data)),) if data else ()
    return chunked(*steps, end)


# --- cases ---------------------------------------------------------------------------------------------------------


class Case(Record):
    """What a server does, and what must come of it."""

    answers: tuple[Given, ...]
    """What it answers, in order; afterwards it says `ok` to everything."""
    document: tuple[Given, ...] | None = None
    """The same for a client that asks for no streams; None where it makes no difference or no sense."""
    ran: tuple[str, ...] = ()
    """What the bodies of tools were reached with, in order."""
    results: tuple[str, ...] = ()
    """The status of every call that was proposed, in order."""
    requests: int = 1
    """How many the first prompt takes."""
    waits: tuple[float, ...] = ()
    """The seconds waited before each retry."""
    stop: tuple[StopReason, ...] = (StopReason.COMPLETED,)
    """One of these."""
    fault: tuple[ModelFault, ...] = ()
    """One of these, where the model failed."""
    shown: str = "ok"
    """All the text that the person saw while it came."""
    detail: str = ""
    """A regular expression that the line about the end holds."""
    history: str = "s u a u"
    """Who speaks in the request that follows: `a2` is an assistant's message with two calls."""
    usage: Usage | None = None
    endpoint: Endpoint = ENDPOINT
    limits: Limits = Limits()
    tick: float | None = None
    """How many seconds each look at the clock of the deadlines is later, up to the first retry; None: it is the real one."""
    sees: Callable[[Sequence[Any]], object] = lambda bodies: True
    """Is given the bodies of all requests, the one of the second prompt included; must be true."""
    least: bool = False
    """Whether `requests` is a lower bound: where how often is asked is not what the row is about."""


def fine(*answers: Given, **more: Any) -> Case:
    """Return a case that ends with a reply without calls."""
    return Case(**{"answers": answers, **more})


def calling(*answers: Given, ran: Sequence[str] = ("a",), **more: Any) -> Case:
    """Return a case in which one reply holds calls that run, and the next is `ok`."""
    return Case(
        **{
            "answers": answers,
            "ran": tuple(ran),
            "results": ("ok",) * len(ran),
            "requests": len(answers) + 1,
            "history": f"s u a{len(ran)} {'t ' * len(ran)}a u",
            **more,
        }
    )


def refused(*answers: Given, **more: Any) -> Case:
    """Return a case in which the only call is answered as invalid, and the next reply is `ok`."""
    return calling(*answers, **{"ran": (), "results": ("invalid",), "history": "s u a1 t a u", **more})


def failing(*answers: Given, **more: Any) -> Case:
    """Return a case that ends without a reply: nothing enters the history, and both prompts stand as one."""
    return Case(**{"answers": answers, "stop": (StopReason.MODEL_ERROR,), "shown": "", "history": "s u", **more})


def cut(*answers: Given, **more: Any) -> Case:
    """Return a case whose reply breaks off, and so does its second try."""
    return failing(
        *answers,
        *answers,
        **{
            "requests": 2,
            "waits": (0.5,),
            "stop": (StopReason.CUT,),
            "fault": (ModelFault.REPLY, ModelFault.CONNECTION),
            **more,
        },
    )


# --- playing -------------------------------------------------------------------------------------------------------


class Probe:
    """A tool that notes what its body was reached with."""

    def __init__(self, name: str, reached: list[tuple[ToolCall, Mapping[str, JsonValue]]]) -> None:
        self.spec = ToolSpec(
            name=name,
            description="For tests.",
            parameters={
                "type": "object",
                "properties": {
                    "do": {"type": "string"},
                    "n": {"type": "number"},
                    "more": {"type": "array", "items": {"type": "array"}},
                },
                "required": ["do"],
                "additionalProperties": False,
            },
        )
        self._reached = reached

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        what = str(arguments["do"])[:100]
        return Action(
            call=call, tool=call.name, arguments=arguments, facets=(), summary=what, preview=what, request=what
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        self._reached.append((action.call, action.arguments))
        return ToolOutput(content=f"did {action.request}")


class Watched:
    """The real adapter, and what came out of it."""

    def __init__(self, inner: OpenAIChat | OpenAIResponses | AnthropicMessages) -> None:
        self.name = inner.name
        self.errors: list[ModelError] = []
        self._inner = inner

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        try:
            return self._inner.complete(messages, tools, on_text=on_text, on_retry=on_retry, seconds=seconds)
        except ModelError as error:
            self.errors.append(error)
            raise


class Stage:
    """An agent with the real adapter, and everything that can be seen of it."""

    def __init__(
        self,
        folder: str,
        endpoint: Endpoint,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], None] | None = None,
        api: Api = Api.CHAT,
        on_text: Callable[[str], None] | None = None,
        tick: float | None = None,
    ) -> None:
        self.path = os.path.join(folder, "log.jsonl")
        self.reached: list[tuple[ToolCall, Mapping[str, JsonValue]]] = []
        self.shown: list[str] = []
        self.slept: list[float] = []
        self.interrupt = Interrupt()
        adapter = ADAPTERS[api]
        self._clock = Clock(tick or 0.0)
        monotonic = time.monotonic if tick is None else self._clock
        self.chat = adapter("m1", endpoint, sleep=sleep or self._sleep, jitter=lambda: 0.0, monotonic=monotonic)
        self.model = Watched(self.chat)
        self.log = ActionLog.open(self.path, sync=unsynced)
        self.agent = Agent(
            model=self.model,
            tools=[Probe(name, self.reached) for name in TOOLS],
            policy=parse_policy(POLICY, "wire.toml", extra_tools=TOOLS),
            approver=deny_all,
            log=self.log,
            limits=limits,
            system="be careful",
            on_text=on_text or self.shown.append,
            interrupt=self.interrupt,
            monotonic=lambda: 0.0,  # so that it is the adapter whose time is over
        )
        self.session = self.agent.start()

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._clock.step = 0.0

    def records(self, kind: str) -> list[LogRecord]:
        return [record for record in read_log(self.path) if record["kind"] == kind]

    def close(self, result: RunResult) -> None:
        """End the session; the log must then be whole, with nothing open."""
        self.agent.end(self.session, result)
        self.chat.close()
        assert proved(self.path) == Verification(records=self.log.count, head=self.log.head)
        self.log.close()


def play(case: Case, folder: str, *, streaming: bool = True, api: Api = Api.CHAT) -> None:
    """Play a case, and compare all that is seen of it with what it says.

    By another API only a case can be played in which no answer but `FINE` is a reply.
    """
    answers = case.answers if streaming or case.document is None else case.document
    endpoint = case.endpoint
    if not streaming:
        endpoint = replace(endpoint, quirks=replace(endpoint.quirks, stream=False))
    by_api = {Api.RESPONSES: FINE_RESPONSE, Api.MESSAGES: FINE_MESSAGE}
    ok = by_api.get(api, FINE if streaming else FINE_DOCUMENT)
    with FaultServer([ok if answer is FINE else answer for answer in answers], afterwards=ok) as server:
        base = endpoint.base_url or server.url
        stage = Stage(folder, replace(endpoint, base_url=base), limits=case.limits, api=api, tick=case.tick)
        stage.chat.warm_up()  # so that importing the SDK counts against no deadline
        result = stage.agent.run("go", stage.session)
        wait_until(lambda: len(server.requests) >= case.requests)  # one that was let go may still be on its way
        seen = len(server.requests), list(stage.model.errors)
        shown = "".join(stage.shown)
        if endpoint.base_url is None:
            stage.agent.run("and now?", stage.session)
        stage.close(result)
    faults = [error.fault for error in seen[1]]
    told = f"{result.stop} {result.detail!r}, {faults}, {seen[0]} requests, waits {_waits(stage)}, shown {shown!r}"
    assert result.stop in case.stop, told
    assert re.search(case.detail, result.detail), told
    assert _faults(seen[1], case), told
    assert seen[0] == case.requests or (case.least and seen[0] > case.requests), told
    assert _waits(stage) == list(case.waits) or case.least, told
    assert shown == case.shown, told
    assert tuple(str(value["do"]) for _, value in stage.reached) == case.ran, told
    assert case.usage is None or result.usage == case.usage, result.usage
    assert KEY not in result.detail
    bodies = [request.json for request in server.requests if request.body]
    assert case.sees(bodies), told
    check_road(stage, case.results)
    check_log(stage)
    if api is Api.RESPONSES:
        bodies = [chat_request(body) for body in bodies]
    elif api is Api.MESSAGES:
        bodies = [chat_form(body) for body in bodies]
    for body in bodies:
        check_request(body)
    if endpoint.base_url is None:
        assert shape(bodies[-1]) == case.history
    assert all_over()


def _waits(stage: Stage) -> list[float]:
    """Return the waits that the log tells of, all of them before the second prompt."""
    return [float(str(record["retry_seconds"])) for record in stage.records("error") if "retry_seconds" in record]


def _faults(errors: Sequence[ModelError], case: Case) -> bool:
    return errors[-1].fault in case.fault if errors else not case.fault


def check_road(stage: Stage, results: Sequence[str]) -> None:
    """What was proposed, logged and run is the same text; every call has one end."""
    proposed = {record["call"]: record for record in stage.records("call_proposed")}
    ended = [str(record["status"]) for record in stage.records("outcome")]
    assert (len(proposed), ended) == (len(results), list(results))
    intents = [proposed[record["call"]] for record in stage.records("intent")]
    assert len(intents) == len(stage.reached)
    for record, (call, value) in zip(intents, stage.reached, strict=True):
        text = call.arguments
        if "arguments_sha256" not in record:
            assert (record["id"], record["arguments"]) == (call.id, text)
        else:
            assert record["arguments_sha256"] == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        assert json.loads(text or "{}") == value


def check_log(stage: Stage) -> None:
    """The conversation can be made again of the log, but for arguments that are too long for it."""
    records = list(read_log(stage.path))
    if not any("arguments_characters" in record for record in records):
        assert list(rebuilt(records).messages) == stage.session.messages[1:]


def check_request(body: Mapping[str, Any]) -> None:
    """A request is one that a strict server takes: pairing, ids, names, and arguments that a server may parse."""
    assert request_problem(body) == ""
    ids = []
    for message in body["messages"]:
        assert message["role"] != "assistant" or message.get("content") or message.get("tool_calls"), message
        for call in message.get("tool_calls") or ():
            assert isinstance(json.loads(call["function"]["arguments"]), dict), call
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]), call
            assert 0 < len(call["id"]) <= 40, call
            ids.append(call["id"])
    assert len(ids) == len(set(ids)), ids


def shape(body: Mapping[str, Any]) -> str:
    """Return who speaks in a request."""
    return " ".join(
        message["role"][0] + (str(len(message["tool_calls"])) if message.get("tool_calls") else "")
        for message in body["messages"]
    )

"""The contract of all APIs in one table: what a server does, and what must come of it whichever API is spoken.

A row is written once, in terms of a speaker; `CHAT`, `RESPONSES` and `MESSAGES` put its words on the wire in their own form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from fault_server import Answer, End, Repeat, Send, chunked, chunks, status, until_close, whole, zipped

from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import FinishReason, ToolCall, Usage
from harness.record import Record

DONE = b"data: [DONE]\n\n"
STALLED = End.STALL
COMMENTS = Repeat(data=chunks(b": wait\n\n", last=b""), pause=0.01)
MAX_CALLS = 8
MAX_ARGUMENT_CHARACTERS = 300_000


class Speaker(Protocol):
    """What a server says, in the form of one API."""

    def start(self, reply_id: str = "") -> bytes:
        """Return the first event, which says nothing yet but the id of the reply, if it has one."""
        ...

    def reasoning(self, text: str) -> bytes:
        """Return a piece of reasoning."""
        ...

    def text(self, text: str) -> bytes:
        """Return a piece of text."""
        ...

    def call(self, place: int, call_id: str, name: str, *pieces: str) -> bytes:
        """Return a call whose arguments come in pieces."""
        ...

    def more(self, place: int, piece: str) -> bytes:
        """Return a further piece of a call's arguments."""
        ...

    def end(self, reason: str = "", usage: Usage | None = None) -> bytes:
        """Return what says that the reply has ended: regularly, or for `length`, `content_filter` or `error`."""
        ...

    def error(self, code: str, message: str) -> bytes:
        """Return an error in place of an event."""
        ...

    def document(self, text: str, *calls: ToolCall, reason: str = "") -> bytes:
        """Return a whole reply as one JSON document."""
        ...


def sse(value: object, name: str = "") -> bytes:
    """Return one event."""
    data = value if isinstance(value, str) else json.dumps(value)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


class _Chat:
    """Chat completions."""

    def start(self, reply_id: str = "") -> bytes:
        return self._delta({"role": "assistant", "content": ""}, **({"id": reply_id} if reply_id else {}))

    def reasoning(self, text: str) -> bytes:
        return self._delta({"reasoning_content": text})

    def text(self, text: str) -> bytes:
        return self._delta({"content": text})

    def call(self, place: int, call_id: str, name: str, *pieces: str) -> bytes:
        begun = {"index": place, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        return self._delta({"tool_calls": [begun]}) + b"".join(self.more(place, piece) for piece in pieces)

    def more(self, place: int, piece: str) -> bytes:
        return self._delta({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})

    def end(self, reason: str = "", usage: Usage | None = None) -> bytes:
        choice = {"index": 0, "delta": {}, "finish_reason": reason or "stop"}
        return sse({"choices": [choice]}) + (sse({"choices": [], "usage": _chat_usage(usage)}) if usage else b"")

    def error(self, code: str, message: str) -> bytes:
        return sse({"error": {"code": code, "message": message}})

    def document(self, text: str, *calls: ToolCall, reason: str = "") -> bytes:
        made = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
        message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
        return json.dumps({"choices": [{"message": message, "finish_reason": reason or "stop"}]}).encode()

    def _delta(self, delta: object, **more: object) -> bytes:
        return sse({"choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more})


class _Responses:
    """The Responses API."""

    def start(self, reply_id: str = "") -> bytes:
        begun = {"status": "in_progress", "output": [], **({"id": reply_id} if reply_id else {})}
        return self._event("response.created", response=begun)

    def reasoning(self, text: str) -> bytes:
        item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": text}
        return self._event("response.output_item.done", output_index=0, item=item)

    def text(self, text: str) -> bytes:
        return self._event("response.output_text.delta", output_index=0, content_index=0, item_id="m", delta=text)

    def call(self, place: int, call_id: str, name: str, *pieces: str) -> bytes:
        item = {"type": "function_call", "id": f"fc{place}", "call_id": call_id, "name": name, "arguments": ""}
        begun = self._event("response.output_item.added", output_index=place + 1, item=item)
        return begun + b"".join(self.more(place, piece) for piece in pieces)

    def more(self, place: int, piece: str) -> bytes:
        at: dict[str, object] = {"output_index": place + 1, "item_id": f"fc{place}"}
        return self._event("response.function_call_arguments.delta", delta=piece, **at)

    def end(self, reason: str = "", usage: Usage | None = None) -> bytes:
        name = "response.incomplete" if reason else "response.completed"
        return self._event(name, response=self._response(reason, usage=_responses_usage(usage) if usage else None))

    def error(self, code: str, message: str) -> bytes:
        response = {"status": "failed", "error": {"code": code, "message": message}}
        return self._event("response.failed", response=response)

    def document(self, text: str, *calls: ToolCall, reason: str = "") -> bytes:
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        made = [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in calls
        ]
        return json.dumps(self._response(reason, output=[*([said] if text else []), *made])).encode()

    def _response(self, reason: str, **more: object) -> dict[str, object]:
        why = {"length": "max_output_tokens"}.get(reason, reason)
        state = {"status": "incomplete", "incomplete_details": {"reason": why}} if reason else {"status": "completed"}
        return {"object": "response", "error": None, "output": [], **state, **more}

    def _event(self, name: str, **fields: object) -> bytes:
        return sse({"type": name, **fields}, name)


class _Messages:
    """Anthropic's Messages API. A block stands where its kind has it: thinking, text, then calls by their place."""

    def start(self, reply_id: str = "") -> bytes:
        begun = {"type": "message", "role": "assistant", "content": [], **({"id": reply_id} if reply_id else {})}
        return self._event("message_start", message=begun)

    def reasoning(self, text: str) -> bytes:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        return self._event("content_block_start", index=0, content_block=block) + self._event(
            "content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": text}
        )

    def text(self, text: str) -> bytes:
        """The block begins anew with every piece, which says nothing new: so a speaker needs no memory."""
        begun = self._event("content_block_start", index=1, content_block={"type": "text", "text": ""})
        return begun + self._event("content_block_delta", index=1, delta={"type": "text_delta", "text": text})

    def call(self, place: int, call_id: str, name: str, *pieces: str) -> bytes:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        begun = self._event("content_block_start", index=place + 2, content_block=block)
        return begun + b"".join(self.more(place, piece) for piece in pieces)

    def more(self, place: int, piece: str) -> bytes:
        delta = {"type": "input_json_delta", "partial_json": piece}
        return self._event("content_block_delta", index=place + 2, delta=delta)

    def end(self, reason: str = "", usage: Usage | None = None) -> bytes:
        stop = {"stop_reason": _stop_reason(reason), "stop_sequence": None}
        more = {"usage": _messages_usage(usage)} if usage else {}
        return self._event("message_delta", delta=stop, **more)

    def error(self, code: str, message: str) -> bytes:
        return self._event("error", error={"type": code, "message": message})

    def document(self, text: str, *calls: ToolCall, reason: str = "") -> bytes:
        said = [{"type": "text", "text": text}] if text else []
        made = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in calls
        ]
        message = {"type": "message", "role": "assistant", "content": [*said, *made]}
        return json.dumps({**message, "stop_reason": _stop_reason(reason)}).encode()

    def _event(self, name: str, **fields: object) -> bytes:
        return sse({"type": name, **fields}, name)


def _stop_reason(reason: str) -> str:
    return {"": "end_turn", "length": "max_tokens", "content_filter": "refusal"}.get(reason, reason)


def _messages_usage(usage: Usage) -> object:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


CHAT: Speaker = _Chat()
RESPONSES: Speaker = _Responses()
MESSAGES: Speaker = _Messages()


def _chat_usage(usage: Usage) -> object:
    details = {"cached_tokens": usage.cached_tokens}
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": details,
    }


def _responses_usage(usage: Usage) -> object:
    details = {"cached_tokens": usage.cached_tokens}
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_tokens_details": details,
    }


class Said(Record):
    """A reply is expected."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = FinishReason.DONE
    usage: Usage = Usage(unreported=1)


class Failed(Record):
    """An error is expected."""

    fault: ModelFault
    text: str = ""
    """What stands in its text."""
    kind: type[ModelError] = ModelError


class Interrupted(Enum):
    """The interrupt passes through."""

    PASSED = "passed"


Expected: TypeAlias = Said | Failed | Interrupted
Played: TypeAlias = Callable[[Speaker], Sequence[Answer]]


class Row(Record):
    """One case of the contract."""

    answers: Played
    expected: Expected
    requests: int = 1
    responses_expected: Expected | None = None
    """Where the Responses API and the Messages API, whose end is an event, have another outcome."""
    responses_requests: int | None = None
    slept: tuple[float, ...] | None = None
    seconds: float | None = None
    """What is left of the run."""
    idle: float = 600.0
    """How long the next event is waited for."""
    tick: float | None = None
    """How many seconds each look at the clock is later; None: it is the real one."""
    interrupts: bool = False
    """Whether the first text is answered with an interrupt."""


# --- rows ----------------------------------------------------------------------------------------------------------


def stream(*events: bytes) -> Answer:
    """Return a stream that ends in good order."""
    return chunked(Send(data=chunks(*events)))


def cut(*events: bytes, end: End = End.RESET) -> Answer:
    """Return a stream in the chunked coding whose connection breaks after `events`."""
    return chunked(Send(data=chunks(*events, last=b"")), end)


def error(code: int, message: str, name: str = "", *headers: str, **more: object) -> Answer:
    return status(code, {"error": {"message": message, "code": name or None, **more}}, *headers)


def one(play: Callable[[Speaker], Answer]) -> Played:
    return lambda s: [play(s)]


def twice(play: Callable[[Speaker], Answer]) -> Played:
    return lambda s: [play(s), play(s)]


def then_fine(play: Callable[[Speaker], Answer]) -> Played:
    return lambda s: [play(s), fine(s)]


def fine(s: Speaker) -> Answer:
    return stream(s.start(), s.text("fine"), s.end(), DONE)


def call(arguments: str = '{"a":1}', call_id: str = "c1", name: str = "bash") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


CALL = call()
OTHER = call('{"b":2}', "c2", "read_file")
LONG = "0123456789" * 500_000
DEEP = "[" * 100_000 + "]" * 100_000
FINE = Said(text="fine")
SERVER, REPLY = ModelFault.SERVER, ModelFault.REPLY
CUT = Failed(fault=REPLY, kind=CutReply)
CONNECTION = Failed(fault=ModelFault.CONNECTION, kind=CutReply)
COUNTED = Usage(input_tokens=7, output_tokens=3, cached_tokens=5)


def begun(s: Speaker) -> tuple[bytes, bytes, bytes]:
    """Return text and a call that look whole, but for the end of the reply."""
    return s.start(), s.text("Wait"), s.call(0, "c1", "bash", '{"a":1}')


WHOLE: dict[str, Row] = {
    "text": Row(
        answers=one(lambda s: stream(s.start(), s.text("Hel"), s.text("lo"), s.end(), DONE)),
        expected=Said(text="Hello"),
    ),
    "text, a few bytes at a time": Row(
        answers=one(
            lambda s: chunked(
                Send(data=chunks(s.start() + s.text("Hällo") + s.end() + DONE), slice_bytes=3, pause=0.0005)
            )
        ),
        expected=Said(text="Hällo"),
    ),
    "a call": Row(
        answers=one(lambda s: stream(s.start(), s.call(0, "c1", "bash", '{"a"', ":1}"), s.end(), DONE)),
        expected=Said(calls=(CALL,)),
    ),
    "text and a call": Row(
        answers=one(lambda s: stream(*begun(s), s.end(), DONE)), expected=Said(text="Wait", calls=(CALL,))
    ),
    "two calls": Row(
        answers=one(
            lambda s: stream(s.call(0, "c1", "bash", '{"a":1}'), s.call(1, "c2", "read_file", '{"b":2}'), s.end())
        ),
        expected=Said(calls=(CALL, OTHER)),
    ),
    "two calls interleaved": Row(
        answers=one(
            lambda s: stream(
                s.call(0, "c1", "bash", '{"a"'),
                s.call(1, "c2", "read_file", '{"b"'),
                s.more(0, ":1}"),
                s.more(1, ":2}"),
                s.end(),
            )
        ),
        expected=Said(calls=(CALL, OTHER)),
    ),
    "one call twice": Row(
        answers=one(lambda s: stream(s.call(0, "c1", "bash", "{}"), s.call(1, "c1", "bash", "{}"), s.end())),
        expected=Said(calls=(call("{}"),)),
    ),
    "a call without an id": Row(
        answers=one(lambda s: stream(s.call(0, "", "bash", "{}"), s.end())),
        expected=Said(calls=(call("{}", "call_1"),)),
    ),
    "a call without arguments": Row(
        answers=one(lambda s: stream(s.call(0, "c1", "bash"), s.end())), expected=Said(calls=(call(""),))
    ),
    "arguments that are no JSON come as they are": Row(
        answers=one(lambda s: stream(s.call(0, "c1", "bash", "{'a': 1"), s.end())),
        expected=Said(calls=(call("{'a': 1"),)),
    ),
    "arguments nested deep are text": Row(
        answers=one(lambda s: stream(s.call(0, "c1", "bash", DEEP), s.end())), expected=Said(calls=(call(DEEP),))
    ),
    "usage": Row(
        answers=one(lambda s: stream(s.text("a"), s.end(usage=COUNTED), DONE)), expected=Said(text="a", usage=COUNTED)
    ),
    "too long": Row(
        answers=one(lambda s: stream(s.text("a"), s.end("length"), DONE)),
        expected=Said(text="a", finish_reason=FinishReason.LENGTH),
    ),
    "too long in the middle of a call": Row(
        answers=one(lambda s: stream(s.call(0, "c1", "bash", '{"a'), s.end("length"), DONE)),
        expected=Said(calls=(call('{"a'),), finish_reason=FinishReason.LENGTH),
    ),
    "filtered": Row(
        answers=one(lambda s: stream(s.text("a"), s.end("content_filter"))),
        expected=Said(text="a", finish_reason=FinishReason.CONTENT_FILTER),
    ),
    "nothing said": Row(answers=one(lambda s: stream(s.start(), s.end(), DONE)), expected=Said()),
    "no [DONE]": Row(answers=one(lambda s: stream(s.text("a"), s.end())), expected=Said(text="a")),
    "the last blank line is missing": Row(
        answers=one(lambda s: stream(s.text("a"), s.end()[:-1])), expected=Said(text="a")
    ),
    "nothing counts after [DONE]": Row(
        answers=one(lambda s: stream(s.text("a"), s.end(), DONE, s.text("b"), b"data: junk\n\n")),
        expected=Said(text="a"),
    ),
    "a character cut into two surrogates": Row(
        answers=one(lambda s: stream(s.text("\ud83d"), s.text("\ude00"), s.end())), expected=Said(text="\U0001f600")
    ),
    "keep-alives in between": Row(
        answers=one(lambda s: stream(b": wait\n\n", s.text("a"), b": wait\n\nevent: ping\n\n", s.end())),
        expected=Said(text="a"),
    ),
    "CRLF ends lines": Row(
        answers=one(lambda s: stream((s.text("a") + s.end() + DONE).replace(b"\n", b"\r\n"))), expected=Said(text="a")
    ),
    "a byte-order mark": Row(
        answers=one(lambda s: stream(b"\xef\xbb\xbf" + s.text("a"), s.end())), expected=Said(text="a")
    ),
    "compressed": Row(answers=one(lambda s: zipped(s.text("a") + s.end() + DONE)), expected=Said(text="a")),
    "the connection's end is the body's": Row(
        answers=one(lambda s: until_close(Send(data=s.text("a") + s.end()), End.CLOSE)), expected=Said(text="a")
    ),
    "another content type": Row(
        answers=one(lambda s: whole(s.text("a") + s.end(), kind="text/plain")), expected=Said(text="a")
    ),
    "cut after the end": Row(answers=one(lambda s: cut(s.text("a"), s.end())), expected=Said(text="a")),
    "a document": Row(answers=one(lambda s: whole(s.document("a"), kind="application/json")), expected=Said(text="a")),
    "a document with calls": Row(
        answers=one(lambda s: whole(s.document("a", CALL, OTHER), kind="application/json")),
        expected=Said(text="a", calls=(CALL, OTHER)),
    ),
    "a document that is too long": Row(
        answers=one(lambda s: whole(s.document("a", reason="length"), kind="application/json")),
        expected=Said(text="a", finish_reason=FinishReason.LENGTH),
    ),
    "5 MB of text": Row(
        answers=one(lambda s: stream(*(s.text(LONG[at : at + 80_000]) for at in range(0, len(LONG), 80_000)), s.end())),
        expected=Said(text=LONG),
    ),
}

UNFINISHED: dict[str, Row] = {
    "no end": Row(answers=twice(lambda s: stream(*begun(s))), expected=CUT, requests=2),
    "no end, then all is well": Row(answers=then_fine(lambda s: stream(*begun(s))), expected=FINE, requests=2),
    "[DONE] alone": Row(
        answers=twice(lambda s: stream(*begun(s), DONE)),
        expected=Said(text="Wait", calls=(CALL,)),
        responses_expected=CUT,
        responses_requests=2,
    ),
    "cut before anything": Row(
        answers=twice(lambda _: cut()), expected=Failed(fault=ModelFault.CONNECTION), requests=2
    ),
    "cut within a call": Row(answers=twice(lambda s: cut(*begun(s))), expected=CONNECTION, requests=2),
    "cut within an event": Row(
        answers=twice(lambda s: cut(s.text("a"), s.end()[:-20])), expected=CONNECTION, requests=2
    ),
    "a clean end within the last event": Row(
        answers=twice(lambda s: stream(s.text("a"), s.end()[:-20])), expected=CUT, requests=2
    ),
    "broken off by the provider": Row(
        answers=twice(lambda s: stream(s.text("a"), s.end("error"), DONE)),
        expected=Failed(fault=SERVER, kind=CutReply),
        requests=2,
    ),
    "a stream that stands still": Row(
        answers=twice(lambda s: cut(*begun(s), end=STALLED)),
        expected=Failed(fault=ModelFault.TIMEOUT, kind=CutReply),
        requests=2,
        idle=0.4,
    ),
    "the run's time is over": Row(
        answers=one(lambda s: chunked(Send(data=chunks(*begun(s), last=b"")), COMMENTS)),
        expected=Failed(fault=ModelFault.TIME),
        seconds=500,
        tick=10,
    ),
    "interrupted": Row(
        answers=one(lambda s: cut(*begun(s), end=STALLED)), expected=Interrupted.PASSED, interrupts=True
    ),
    "an empty body": Row(
        answers=lambda _: [whole(b"")] * 3,  # the second is not asked for as a stream
        expected=Failed(fault=REPLY, text="empty"),
        requests=3,
    ),
    "nothing but keep-alives": Row(answers=twice(lambda _: stream(b": wait\n\n" * 3)), expected=CUT, requests=2),
}

WRONG: dict[str, Row] = {
    "a web page": Row(
        answers=one(lambda _: whole(b"<!DOCTYPE html><p>hi", kind="text/html")),
        expected=Failed(fault=REPLY, text="web page"),
    ),
    "JSON of another kind": Row(
        answers=one(lambda _: whole(b'{"hello": 1}', kind="application/json")), expected=Failed(fault=REPLY)
    ),
    "plain text": Row(answers=one(lambda _: whole(b"hello", kind="text/plain")), expected=Failed(fault=REPLY)),
    "an event that is no JSON": Row(
        answers=one(lambda s: stream(s.start(), b"data: {\n\n", s.end())), expected=Failed(fault=REPLY)
    ),
    "an event that is no object": Row(
        answers=one(lambda s: stream(s.start(), b"data: [1]\n\n", s.end())), expected=Failed(fault=REPLY)
    ),
    "an event nested too deep": Row(
        answers=one(lambda s: stream(s.start(), sse('{"choices":' + DEEP + "}"), s.end())), expected=Failed(fault=REPLY)
    ),
    "an event of wrong bytes": Row(
        answers=one(lambda s: stream(s.start(), b'data: {"a":"\xff"}\n\n', s.end())), expected=Failed(fault=REPLY)
    ),
    "too many calls": Row(
        answers=one(lambda s: stream(*(s.call(at, f"c{at}", "bash", "{}") for at in range(MAX_CALLS + 1)), s.end())),
        expected=Failed(fault=REPLY, text="tool calls"),
    ),
    "arguments that are too long": Row(
        answers=one(lambda s: stream(s.call(0, "c1", "bash", *["x" * 100_000] * 4), s.end())),
        expected=Failed(fault=REPLY, text="characters of arguments"),
    ),
}

REFUSED: dict[str, Row] = {
    "an error in the stream": Row(
        answers=twice(lambda s: stream(s.start(), s.error("server_error", "oops"))),
        expected=Failed(fault=SERVER, text="oops"),
        requests=2,
    ),
    "an error in the stream, then all is well": Row(
        answers=then_fine(lambda s: stream(s.start(), s.error("rate_limit_exceeded", "slow"))),
        expected=FINE,
        requests=2,
    ),
    "an error in the stream after text": Row(
        answers=twice(lambda s: stream(s.text("a"), s.error("server_error", "oops"))),
        expected=Failed(fault=SERVER, text="oops"),
        requests=2,
    ),
    "an error in the stream that lasts": Row(
        answers=one(lambda s: stream(s.start(), s.error("context_length_exceeded", "too long"))),
        expected=Failed(fault=ModelFault.CONTEXT),
    ),
    "an error in the stream about what was said": Row(
        answers=one(lambda s: stream(s.start(), s.error("content_filter", "no"))),
        expected=Failed(fault=ModelFault.CONTENT),
    ),
    "an error as a document": Row(
        answers=twice(
            lambda _: whole(b'{"error": {"code": "server_error", "message": "oops"}}', kind="application/json")
        ),
        expected=Failed(fault=SERVER, text="oops"),
        requests=2,
    ),
    "429 with Retry-After": Row(
        answers=then_fine(lambda _: error(429, "slow", "rate_limit_exceeded", "retry-after: 7")),
        expected=FINE,
        requests=2,
        slept=(7.0,),
    ),
    "429 for ever": Row(
        answers=twice(lambda _: error(429, "slow")), expected=Failed(fault=SERVER, text="slow"), requests=2
    ),
    "429 with a wait that is too long": Row(
        answers=one(lambda _: error(429, "slow", "", "retry-after: 3600")), expected=Failed(fault=SERVER), slept=()
    ),
    "429 for want of money": Row(
        answers=one(lambda _: error(429, "pay", "insufficient_quota")), expected=Failed(fault=ModelFault.QUOTA)
    ),
    "500, then all is well": Row(
        answers=then_fine(lambda _: error(500, "oops")), expected=FINE, requests=2, slept=(0.5,)
    ),
    "500 for ever": Row(
        answers=twice(lambda _: error(500, "oops")), expected=Failed(fault=SERVER, text="oops"), requests=2
    ),
    "503 with a web page": Row(answers=then_fine(lambda _: status(503, b"<html>busy")), expected=FINE, requests=2),
    "400": Row(
        answers=one(lambda _: error(400, "no such field")),
        expected=Failed(fault=ModelFault.REQUEST, text="no such field"),
    ),
    "400 for the length": Row(
        answers=one(lambda _: error(400, "This model's maximum context length is 8", "context_length_exceeded")),
        expected=Failed(fault=ModelFault.CONTEXT),
    ),
    "400 for the length, in words only": Row(
        answers=one(lambda _: error(400, "prompt is too long: 9 tokens > 8 maximum")),
        expected=Failed(fault=ModelFault.CONTEXT),
    ),
    "400 for the length and what the reply may have": Row(  # Anthropic: anomalyco/opencode#798
        answers=one(
            lambda _: error(
                400,
                "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input length or "
                "`max_tokens` and try again",
            )
        ),
        expected=Failed(fault=ModelFault.CONTEXT),
    ),
    "400 for the length, in xAI's words": Row(
        answers=one(lambda _: error(400, "This model's maximum prompt length is 8 but the request contains 9 tokens.")),
        expected=Failed(fault=ModelFault.CONTEXT),
    ),
    "400 for the length, in Kimi's words": Row(
        answers=one(lambda _: error(400, "Your request exceeded model token limit: 8 (requested: 9)")),
        expected=Failed(fault=ModelFault.CONTEXT),
    ),
    "400 for the length, told by the provider behind OpenRouter": Row(  # cline/cline#13194
        answers=one(
            lambda _: error(
                400,
                "Provider returned error",
                metadata={
                    "raw": '{"error":{"message":"Please reduce the length of the messages."}}',
                    "provider_name": "N",
                },
            )
        ),
        expected=Failed(fault=ModelFault.CONTEXT, text="HTTP 400: Please reduce"),
    ),
    "400 of Azure's content filter": Row(
        answers=one(
            lambda _: error(
                400,
                "The response was filtered.",
                "content_filter",
                innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
            )
        ),
        expected=Failed(fault=ModelFault.CONTENT),
    ),
    "400 for what was said": Row(
        answers=one(lambda _: error(400, "Invalid prompt: it may violate our usage policy", "invalid_prompt")),
        expected=Failed(fault=ModelFault.CONTENT),
    ),
    "401": Row(
        answers=one(lambda _: error(401, "bad key")), expected=Failed(fault=ModelFault.AUTHENTICATION, text="bad key")
    ),
    "403": Row(answers=one(lambda _: error(403, "not yours")), expected=Failed(fault=ModelFault.AUTHENTICATION)),
    "404": Row(answers=one(lambda _: error(404, "what?")), expected=Failed(fault=ModelFault.NOT_FOUND)),
    "413": Row(answers=one(lambda _: error(413, "large")), expected=Failed(fault=ModelFault.CONTEXT)),
}

ROWS: dict[str, Row] = {**WHOLE, **UNFINISHED, **WRONG, **REFUSED}

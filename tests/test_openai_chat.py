"""The adapter against a wire: what a server sends, byte for byte, and what comes of it. Runs on openai 2.x and 3.x."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import CutReply, ModelError
from harness.messages import FinishReason, Message, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Deadlines, Endpoint
from harness.models.events import EventDecoder
from harness.models.openai_chat import Conversation, OpenAIChat
from harness.models.provider_text import excerpt, provider_message
from harness.models.reply_body import MAX_REPLY_BYTES, ReplyBody
from harness.record import replace
from harness.tool import ToolSpec

KEY = "sk-secret-0123456789"
USER = (Message(role=Role.USER, content="hello"),)
BASH = ToolSpec(
    name="bash",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "additionalProperties": False},
)
DONE = "[DONE]"


def chunk(delta: object = None, finish: object = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}], **more}


def said(content: object, finish: object = None, **more: object) -> dict[str, object]:
    return chunk({"content": content}, finish, **more)


def fragment(
    arguments: object = None, *, index: object = 0, call_id: object = None, name: object = None
) -> dict[str, object]:
    """One tool-call delta; what is None is absent, what is `...` is null."""
    function = {"name": name, "arguments": arguments}
    function = {key: None if value is ... else value for key, value in function.items() if value is not None}
    fields = {"index": index, "id": call_id, "function": function or None}
    return {key: None if value is ... else value for key, value in fields.items() if value is not None}


def calls(*fragments: object) -> dict[str, object]:
    return chunk({"tool_calls": list(fragments)})


def sse(*events: object) -> bytes:
    return b"".join(
        b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n" for event in events
    )


def reply(text: str = "", *tool_calls: ToolCall, **more: Any) -> ModelResponse:
    return ModelResponse(
        **{"text": text, "tool_calls": tool_calls, "finish_reason": FinishReason.DONE, "usage": Usage(), **more}
    )


def bash(arguments: str = '{"a":1}', *, call_id: str = "c1", name: str = "bash") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def read(*pieces: bytes, taken: frozenset[str] = frozenset()) -> tuple[str, ModelResponse]:
    """Return the text that was delivered while the pieces came in, and the reply."""
    reader = ReplyBody(ChatReply())
    texts = [text for piece in pieces for text in reader.feed(piece)] + reader.end()
    return "".join(texts), reader.response(taken)


def outcome(*pieces: bytes) -> object:
    try:
        return read(*pieces)
    except ModelError as error:
        return type(error), str(error)


# ------------------------------------------------------------------------------------------------ events out of bytes


EVENTS = {
    "LF ends lines": (b"data: a\n\ndata: b\n\n", [("", b"a"), ("", b"b")]),
    "CRLF ends lines, and several data lines are one event": (b"data: a\r\ndata: b\r\n\r\n", [("", b"a\nb")]),
    "CR alone ends lines": (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
    "line ends may be mixed": (b"data: a\r\n\ndata: b\n\r\n", [("", b"a"), ("", b"b")]),
    "comments are skipped": (b": keep-alive\n\n: again\ndata: a\n\n", [("", b"a")]),
    "a byte-order mark at the start is skipped": (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
    "one blank after the colon is dropped": (b"data:a\n\ndata:  b\n\n", [("", b"a"), ("", b" b")]),
    "a name holds for one event": (b"event: error\ndata: a\n\ndata: b\n\n", [("error", b"a"), ("", b"b")]),
    "blocks without data are no events": (b"id: 1\nretry: 5\n\nevent: ping\n\ndata\n\ndata:\n\n", []),
    "an event that the end cuts is handed out": (b"data: a\n\ndata: b", [("", b"a"), ("", b"b")]),
    "empty lines mean nothing": (b"\n\n\ndata: a\n\n\n\n", [("", b"a")]),
    "other separators end no line": (
        "data: ä\u2028\x0b\x0c\x85b\n\n".encode(),
        [("", "ä\u2028\x0b\x0c\x85b".encode())],
    ),
}


@pytest.mark.parametrize(("wire", "expected"), EVENTS.values(), ids=EVENTS)
def test_bytes_become_events_wherever_they_are_cut(wire: bytes, expected: list[tuple[str, bytes]]) -> None:
    def events(*pieces: bytes) -> list[tuple[str, bytes]]:
        decoder = EventDecoder()
        return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()

    assert events(wire) == expected
    assert events(*(wire[i : i + 1] for i in range(len(wire)))) == expected
    for cut in range(len(wire) + 1):
        assert events(wire[:cut], b"", wire[cut:]) == expected


# ------------------------------------------------------------------------------------------------- replies out of events


STOP = chunk(finish="stop")
WHOLE = {
    "text in deltas": (
        sse(chunk({"role": "assistant", "content": ""}), said("Hel"), said("lo"), STOP, DONE),
        reply("Hello"),
    ),
    "a finish reason on the last content, no [DONE]": (sse(said("a", "stop")), reply("a")),
    "[DONE] without a finish reason": (sse(said("a"), DONE), reply("a")),
    "the last blank line is missing": (sse(said("a"), STOP)[:-1], reply("a")),
    "the last line end is missing": (sse(said("a"), STOP)[:-2], reply("a")),
    "an empty finish reason is none": (sse(said("a", ""), chunk({}, None), STOP), reply("a")),
    "a finish reason on every chunk": (sse(said("a", "stop"), said("b", "stop")), reply("ab")),
    "finish length": (sse(said("a"), chunk(finish="length")), reply("a", finish_reason=FinishReason.LENGTH)),
    "finish length by another name": (sse(said("a", "MAX_TOKENS")), reply("a", finish_reason=FinishReason.LENGTH)),
    "finish content_filter": (sse(chunk(finish="content_filter")), reply(finish_reason=FinishReason.CONTENT_FILTER)),
    "an unknown finish reason is an end": (sse(said("a", "weird")), reply("a")),
    "chunks without choices": (sse({"choices": []}, {"choices": None}, {}, said("a", "stop")), reply("a")),
    "null where a choice, delta or content should be": (
        sse({"choices": [None]}, {"choices": [{"delta": None}]}, said(None), STOP),
        reply(),
    ),
    "usage in a chunk of its own": (
        sse(STOP, {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}, DONE),
        reply(usage=Usage(input_tokens=7, output_tokens=3)),
    ),
    "usage on every chunk: the last counts": (
        sse(
            said("a", usage={"prompt_tokens": 7, "completion_tokens": 1}),
            chunk({}, "stop", usage={"prompt_tokens": 7, "completion_tokens": 2}),
        ),
        reply("a", usage=Usage(input_tokens=7, output_tokens=2)),
    ),
    "usage of wrong types is no usage": (
        sse(chunk({}, "stop", usage={"prompt_tokens": "7", "completion_tokens": None, "total_tokens": -1})),
        reply(),
    ),
    "reasoning is not text": (sse(chunk({"reasoning_content": "hm", "reasoning": "hm"}), said("a"), STOP), reply("a")),
    "a refusal is text": (sse(chunk({"refusal": "No."}), STOP), reply("No.")),
    "content in parts": (
        sse(chunk({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]}), STOP),
        reply("a"),
    ),
    "keep-alive comments in between": (
        b": PROCESSING\n\n" + sse(said("a")) + b": PROCESSING\n\n" + sse(STOP),
        reply("a"),
    ),
    "one event over several data lines": (
        b'data: {"choices":\ndata: [{"delta":{"content":"a"},\ndata: "finish_reason":"stop"}]}\n\n',
        reply("a"),
    ),
    "a byte-order mark and white space first": (b"\xef\xbb\xbf\r\n" + sse(said("a", "stop")), reply("a")),
    "a character cut into two surrogates": (sse(said("\ud83d"), said("\ude00!"), STOP), reply("\U0001f600!")),
    "lone surrogates become replacement characters": (sse(said("a\udc80b\ud83d"), STOP), reply("a\ufffdb\ufffd")),
    "nothing counts after [DONE]": (sse(STOP, DONE, {"error": "late"}, "garbage"), reply()),
    "one JSON document where a stream was asked for": (
        json.dumps(
            {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
        ).encode(),
        reply("a", usage=Usage(input_tokens=1)),
    ),
    "one JSON document with calls that have neither index nor id": (
        json.dumps(
            {
                "choices": [
                    {
                        "message": {
                            "content": None,
                            "tool_calls": [
                                fragment({"a": 1}, index=None, name="bash"),
                                fragment("", index=None, name="bash"),
                                fragment("{}", index=None, name="bash"),
                            ],
                        }
                    }
                ]
            }
        ).encode(),
        reply("", bash('{"a": 1}', call_id="call_1"), bash("", call_id="call_2"), bash("{}", call_id="call_3")),
    ),
    "a whole message in one event": (
        sse({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}),
        reply("a"),
    ),
    "a whole message after its deltas says nothing new": (
        sse(said("a"), {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}),
        reply("a"),
    ),
}


@pytest.mark.parametrize(("wire", "expected"), WHOLE.values(), ids=WHOLE)
def test_a_stream_becomes_a_reply(wire: bytes, expected: ModelResponse) -> None:
    assert read(wire) == (expected.text, expected)


A, B = '{"a":', "1}"
CALLS = {
    "as the API does it": (
        [calls(fragment("", call_id="c1", name="bash")), calls(fragment(A)), calls(fragment(B))],
        (bash(),),
    ),
    "the same index twice in one delta": (
        [calls(fragment("", call_id="c1", name="bash"), fragment('{"a":1}'))],
        (bash(),),
    ),
    "id and name resent with every piece": (
        [calls(fragment(A, call_id="c1", name="bash")), calls(fragment(B, call_id="c1", name="bash"))],
        (bash(),),
    ),
    "id and name resent once more after the end": (
        [
            calls(fragment(A, call_id="c1", name="bash")),
            calls(fragment(B, call_id="c1", name="bash")),
            calls(fragment("", call_id="c1", name="bash")),
        ],
        (bash(),),
    ),
    "another id with every piece": (
        [calls(fragment(A, call_id="c1", name="bash")), calls(fragment(B, call_id="c9"))],
        (bash(),),
    ),
    "another id and the same name with every piece": (
        [calls(fragment(A, call_id="c1", name="bash")), calls(fragment(B, call_id="c9", name="bash"))],
        (bash(),),
    ),
    "id and name null later on": (
        [calls(fragment(A, call_id="c1", name="bash")), calls(fragment(B, call_id=..., name=...))],
        (bash(),),
    ),
    "id and name in pieces": (
        [calls(fragment(call_id="c", name="ba")), calls(fragment(call_id="1", name="sh")), calls(fragment('{"a":1}'))],
        (bash(),),
    ),
    "a growing name, a late id": (
        [calls(fragment(name="ba")), calls(fragment(name="bash")), calls(fragment('{"a":1}', call_id="c1"))],
        (bash(),),
    ),
    "an empty name first": (
        [calls(fragment("", name="")), calls(fragment('{"a":1}', call_id="c1", name="bash"))],
        (bash(),),
    ),
    "arguments null, then absent, then there": (
        [calls(fragment(..., call_id="c1", name="bash")), calls(fragment()), calls(fragment('{"a":1}'))],
        (bash(),),
    ),
    "no arguments at all": ([calls(fragment(call_id="c1", name="bash"))], (bash(""),)),
    "arguments as an object": (
        [calls(fragment({"a": {"b": "ä"}}, call_id="c1", name="bash"))],
        (bash('{"a": {"b": "ä"}}'),),
    ),
    "an empty object before the arguments": (
        [calls(fragment({}, call_id="c1", name="bash")), calls(fragment('{"a":1}'))],
        (bash(),),
    ),
    "arguments encoded twice stay as they are": ([calls(fragment('"{}"', call_id="c1", name="bash"))], (bash('"{}"'),)),
    "broken arguments stay as they are": (
        [calls(fragment('{"a": "cu', call_id="c1", name="bash"))],
        (bash('{"a": "cu'),),
    ),
    "surrogate pairs in arguments are joined, lone ones stay": (
        [calls(fragment('"\ud83d', call_id="c1", name="bash")), calls(fragment('\ude00\udc80"'))],
        (bash('"\U0001f600\udc80"'),),
    ),
    "two calls interleaved by index": (
        [
            calls(fragment(A, call_id="c1", name="bash"), fragment(A, index=1, call_id="c2", name="bash")),
            calls(fragment(B, index=1)),
            calls(fragment(B)),
        ],
        (bash(), bash(call_id="c2")),
    ),
    "gaps and huge numbers as index": (
        [
            calls(fragment("{}", index=7, call_id="c1", name="bash")),
            calls(fragment("{}", index=10**30, call_id="c2", name="bash")),
        ],
        (bash("{}"), bash("{}", call_id="c2")),
    ),
    "the index as text": (
        [calls(fragment(A, index="0", call_id="c1", name="bash")), calls(fragment(B, index="0"))],
        (bash(),),
    ),
    "no index: a piece without id goes on": (
        [calls(fragment(A, index=None, call_id="c1", name="bash")), calls(fragment(B, index=None))],
        (bash(),),
    ),
    "null index: the id says where a piece belongs": (
        [
            calls(fragment(A, index=..., call_id="c1", name="bash")),
            calls(fragment(A, index=..., call_id="c2", name="bash")),
            calls(fragment(B, index=..., call_id="c1")),
            calls(fragment(B, index=..., call_id="c2")),
        ],
        (bash(), bash(call_id="c2")),
    ),
    "whole calls with neither index nor id": (
        [calls(fragment('{"a":1}', index=None, name="bash")), calls(fragment("{}", index=None, name="bash"))],
        (bash(call_id="call_1"), bash("{}", call_id="call_2")),
    ),
    "no index, a late id": (
        [calls(fragment(A, index=None, name="bash")), calls(fragment(B, index=None, call_id="c1"))],
        (bash(),),
    ),
    "every call has the index 0, ids differ": (
        [calls(fragment("{}", call_id="c1", name="bash")), calls(fragment("{}", call_id="c2", name="bash"))],
        (bash("{}"), bash("{}", call_id="c2")),
    ),
    "every call has the index 0, in pieces": (
        [
            calls(fragment("{}", call_id="c1", name="bash")),
            calls(fragment("", call_id="c2", name="read_file")),
            calls(fragment("{}")),
        ],
        (bash("{}"), bash("{}", call_id="c2", name="read_file")),
    ),
    "every call has the index 0, no ids": (
        [calls(fragment("{}", name="bash")), calls(fragment("{}", name="bash"))],
        (bash("{}", call_id="call_1"), bash("{}", call_id="call_2")),
    ),
    "one id and one index for two calls: brackets tell where the first ends": (
        [
            calls(fragment('{"a":"}\\\\', call_id="c1", name="bash")),
            calls(fragment('"', call_id="c1", name="bash")),
            calls(fragment("}", call_id="c1", name="bash")),
            calls(fragment("{}", call_id="c1", name="bash")),
        ],
        (bash('{"a":"}\\\\"}'), bash("{}", call_id="call_1")),
    ),
    "id and name resent, and a piece that ends in a backslash": (
        [calls(fragment(piece, call_id="c1", name="bash")) for piece in ('{"a":"\\', '"}', '"}')],
        (bash('{"a":"\\"}"}'),),
    ),
    "two calls share an id: the second gets its own": (
        [calls(fragment("{}", call_id="x", name="bash")), calls(fragment("{}", index=1, call_id="x", name="bash"))],
        (bash("{}", call_id="x"), bash("{}", call_id="call_1")),
    ),
    "a made-up id is never one that is there": (
        [calls(fragment("{}", call_id="call_1", name="bash")), calls(fragment("{}", index=1, call_id="", name="bash"))],
        (bash("{}", call_id="call_1"), bash("{}", call_id="call_2")),
    ),
    "a number as id": ([calls(fragment("{}", call_id=12, name="bash"))], (bash("{}", call_id="12"),)),
    "what is no fragment is no call; a fragment may stand without its list": (
        [calls(None, {}, "x", {"function": "x"}), chunk({"tool_calls": fragment("{}", call_id="c1", name="bash")})],
        (bash("{}"),),
    ),
}


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
@pytest.mark.parametrize(("chunks", "expected"), CALLS.values(), ids=CALLS)
def test_fragments_become_calls(chunks: list[object], expected: tuple[ToolCall, ...], finish: str) -> None:
    assert read(sse(*chunks, chunk(finish=finish), DONE)) == ("", reply("", *expected))


def test_an_id_that_an_earlier_turn_used_is_replaced() -> None:
    wire = sse(calls(fragment("{}", call_id="call_0", name="bash")), DONE)
    assert read(wire, taken=frozenset({"call_0", "call_1"})) == ("", reply("", bash("{}", call_id="call_2")))


CUT = "The reply was cut off: the stream ended without a finish reason or [DONE]; nothing of it was used"
BROKEN = {
    "a stream that just ends": (sse(said("abc")), CutReply, f"{CUT} (3 characters of text, 0 tool calls begun)."),
    "a stream that ends within arguments": (
        sse(calls(fragment('{"command": "rm -rf bui', call_id="c1", name="bash"))),
        CutReply,
        f"{CUT} (0 characters of text, 1 tool calls begun).",
    ),
    "a stream that ends within its last event": (
        sse(said("abc"), STOP)[:-30],
        CutReply,
        f"{CUT} (3 characters of text, 0 tool calls begun).",
    ),
    "comments alone": (b": nothing but comments\n\n", CutReply, f"{CUT} (0 characters of text, 0 tool calls begun)."),
    "finish reason error": (
        sse(said("a", "error")),
        CutReply,
        (
            "The provider broke the reply off (finish reason 'error'); nothing of it was used (1 characters "
            "of text, 0 tool calls begun)."
        ),
    ),
    "[DONE] and nothing else": (
        sse(DONE),
        ModelError,
        "The reply is empty: the stream ended properly, but held nothing.",
    ),
    "an empty body": (
        b"",
        ModelError,
        "The answer is empty: the server sent a success status and no body. Check the base URL.",
    ),
    "white space": (
        b" \r\n ",
        ModelError,
        "The answer is empty: the server sent a success status and no body. Check the base URL.",
    ),
    "a web page": (
        b"<!doctype html>\n<title>Sign  in</title>",
        ModelError,
        (
            "The answer is a web page, not a chat completion; check the base URL (it usually ends in /v1): "
            "<!doctype html> <title>Sign in</title>"
        ),
    ),
    "plain text": (b"Bad gateway\x1b[2K", ModelError, "The answer is no event stream: Bad gateway [2K"),
    "JSON lines": (
        b'{"a": 1}\n{"b": 2}',
        ModelError,
        'The answer is neither an event stream nor valid JSON: {"a": 1} {"b": 2}',
    ),
    "JSON of another kind": (
        b'{"models": []}',
        ModelError,
        'The answer is JSON, but no chat completion: {"models": []}',
    ),
    "an error as JSON with a success status": (
        b'[{"error": {"message": "Bad model"}}]',
        ModelError,
        "The provider reports an error: Bad model",
    ),
    "broken JSON in an event": (
        sse("{broken"),
        ModelError,
        "The provider sent an event that is not valid JSON: {broken",
    ),
    "JSON nested without end": (
        sse("[" * 100_000),
        ModelError,
        "The provider sent an event that is not valid JSON: " + "[" * 200 + "...",
    ),
    "bytes that are no UTF-8": (
        b'data: {"choices": "\xff"}\n\n',
        ModelError,
        'The provider sent an event that is not valid JSON: {"choices": "\ufffd"}',
    ),
    "an event that is no object": (
        sse("[1]"),
        ModelError,
        "The provider sent an event that is no completion chunk: [1]",
    ),
    "an error within the stream": (
        sse(said("a"), {"error": {"message": "Overloaded", "code": 502}}),
        ModelError,
        "The provider broke the reply off: Overloaded",
    ),
    "an error after the finish reason": (
        sse(STOP, {"error": "Overloaded"}),
        ModelError,
        "The provider broke the reply off: Overloaded",
    ),
    "an event named error": (
        b'event: error\ndata: {"code": 1}\n\n',
        ModelError,
        'The provider broke the reply off: {"code": 1}',
    ),
    "an error object": (sse({"object": "error", "message": "No"}), ModelError, "The provider broke the reply off: No"),
    "an error in the choice": (
        sse({"choices": [{"error": {"message": "No"}}]}),
        ModelError,
        "The provider broke the reply off: No",
    ),
}


@pytest.mark.parametrize(("wire", "kind", "text"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_reply_is_an_error(wire: bytes, kind: type[ModelError], text: str) -> None:
    assert outcome(wire) == (kind, text)


def test_arguments_nested_about_as_deep_as_the_parser_allows_end_well() -> None:
    limit, kinds = sys.getrecursionlimit(), set()
    for depth in range(limit - 100, limit + 1):
        arguments = '{"a":' * depth + "1" + "}" * depth
        wire = sse('{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":' + arguments + "}}]}}]}", DONE)
        result = outcome(wire)
        assert isinstance(result, tuple)
        kinds.add(result[0])
    assert kinds <= {"", ModelError}  # "" is the text of a reply: what the parser took could be encoded again


def test_a_reply_has_a_bound_in_bytes() -> None:
    reader, megabyte = ReplyBody(ChatReply()), b":" * 1024 * 1024
    for _ in range(MAX_REPLY_BYTES // len(megabyte)):
        assert reader.feed(megabyte) == []
    with pytest.raises(ModelError, match=r"^The reply is longer than 64 MiB; it was dropped\.$"):
        reader.feed(b":")


ALL_WIRES = [
    *(wire for wire, _ in WHOLE.values()),
    *(wire for wire, _, _ in BROKEN.values()),
    *(sse(*chunks, DONE) for chunks, _ in CALLS.values()),
]


def test_every_stream_means_the_same_cut_at_every_byte() -> None:
    for wire in ALL_WIRES:
        if len(wire) > 2000:
            continue  # the deep ones; their length is their point
        expected = outcome(wire)
        assert outcome(*(wire[i : i + 1] for i in range(len(wire)))) == expected
        for cut in range(1, len(wire)):
            assert outcome(wire[:cut], wire[cut:]) == expected


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_random_streams_mean_the_same_however_they_are_sliced_and_end_well(data: st.DataObject) -> None:
    pieces = st.sampled_from(
        [*(w for w in ALL_WIRES if len(w) < 2000), b"\r", b"\n", b"data: ", b"\xef", b"\xbb\xbf", b" ", b"{"]
    )
    wire = b"".join(data.draw(st.lists(pieces, max_size=4)))
    start, length = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 600))
    wire = wire[start:] if data.draw(st.booleans()) else wire[:length] + wire[length + start :]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    sliced = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert outcome(*sliced) == outcome(wire)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"message": "m", "code": 1}, "m", id="the message of an object"),
        pytest.param({"error": {"detail": [{"message": "m"}]}}, "m", id="however deep it lies"),
        pytest.param("a\n\n b\x07c", "a b c", id="a text on one line"),
        pytest.param({"code": 1}, '{"code": 1}', id="an object that says nothing plainly"),
        pytest.param({}, "", id="an empty object"),
        pytest.param(None, "", id="nothing"),
        pytest.param({"message": f"bad key {KEY}!"}, "bad key [key]!", id="a text that repeats the key"),
        pytest.param("x" * 195 + KEY, "x" * 195 + "[key]", id="a key where the text is cut"),
        pytest.param("x" * 300, "x" * 200 + "...", id="a long text"),
    ],
)
def test_what_a_provider_says_becomes_one_short_line(value: object, expected: str) -> None:
    assert provider_message(value, KEY) == expected


def test_a_short_key_is_not_masked() -> None:
    assert excerpt("none of these", "none") == "none of these"


# ------------------------------------------------------------------------------------------------------ over the wire


def http(status: int, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = (f"HTTP/1.1 {status} Word", f"content-length: {len(body) if length is None else length}", *headers)
    return "\r\n".join((*lines, "connection: close", "", "")).encode() + body


def failure(status: int, message: str, *headers: str, **fields: object) -> bytes:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return http(status, body, "content-type: application/json", *headers)


def stream(*events: object) -> bytes:
    return http(200, sse(*events), "content-type: text/event-stream")


LEFT_OPEN = b"HTTP/1.1 200 OK\r\nx-wire: left open until the client hangs up\r\n\r\n"


class Wire:
    """A server that sends these very bytes, one answer per connection, and keeps what it was sent."""

    def __init__(self, *answers: bytes) -> None:
        self.heads: list[str] = []
        self.bodies: list[Any] = []
        self.hung_up = threading.Event()
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._connection = self._listener
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in (self._listener, self._connection):
            try:
                opened.shutdown(socket.SHUT_RDWR)  # wakes the thread, whatever it waits for
            except OSError:
                pass  # closed already
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        for answer in (*self._answers, *[failure(500, "the wire has no more answers")] * 9):
            try:
                self._connection, _ = self._listener.accept()
            except OSError:
                return
            self._connection.settimeout(20)
            with self._connection as connection, connection.makefile("rb") as incoming, suppress(OSError):
                if self._take(incoming):
                    connection.sendall(answer)
                    if answer.startswith(LEFT_OPEN) and connection.recv(1) == b"":
                        self.hung_up.set()

    def _take(self, incoming: BinaryIO) -> bool:
        """Keep one request; say whether there was one."""
        head = ""
        while (line := incoming.readline().decode()) not in ("", "\r\n"):
            head += line
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        if length is None:
            return False
        self.heads.append(head)
        self.bodies.append(json.loads(incoming.read(int(length[1]))))
        return True


class Asked:
    """One request through the adapter, with everything that it reported."""

    def __init__(self, url: str, *, attempts: int = 3, timeout_seconds: float = 20, jitter: float = 0.0) -> None:
        self.slept: list[float] = []
        self.retries: list[Retry] = []
        self.text: list[str] = []
        self.model = OpenAIChat(
            "m1",
            Endpoint(base_url=url, api_key=KEY, attempts=attempts, deadlines=Deadlines(idle=timeout_seconds)),
            sleep=self.slept.append,
            jitter=lambda: jitter,
        )

    def complete(self, messages: Sequence[Message] = USER, tools: Sequence[ToolSpec] = ()) -> ModelResponse:
        return self.model.complete(messages, tools, on_text=self.text.append, on_retry=self.retries.append)


GOOD = stream(said("Hi"), STOP, DONE)


def test_a_request_is_what_the_api_takes() -> None:
    call = ToolCall(id="c1", name="functions.bash", arguments='{"command": "\ud83d"')
    messages = (
        Message(role=Role.SYSTEM, content="Be good."),
        Message(role=Role.USER, content="Grüße \udc80"),
        Message(role=Role.ASSISTANT, content="", tool_calls=(call, replace(call, id="c2", name=""))),
        Message(role=Role.TOOL, content="out", tool_call_id="c1"),
        Message(role=Role.TOOL, content="", tool_call_id="c2"),
        Message(role=Role.ASSISTANT, content=""),
    )
    with Wire(GOOD) as wire:
        Asked(wire.url).complete(messages, (BASH,))
    function = {"name": "functions_bash", "arguments": '{"command": "\ud83d"'}
    assert wire.bodies == [
        {
            "model": "m1",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": "Grüße \ufffd"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": function},
                        {"id": "c2", "type": "function", "function": {**function, "name": "unknown"}},
                    ],
                },
                {"role": "tool", "content": "out", "tool_call_id": "c1"},
                {"role": "tool", "content": "", "tool_call_id": "c2"},
                {"role": "assistant", "content": ""},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "bash", "description": "Run a command.", "parameters": dict(BASH.parameters)},
                }
            ],
        }
    ]
    head = wire.heads[0].lower()
    assert head.startswith("post /v1/chat/completions http/1.1\r\n")
    assert f"authorization: bearer {KEY}" in head
    assert "content-type: application/json" in head


def test_tools_are_left_out_when_there_are_none() -> None:
    with Wire(GOOD) as wire:
        Asked(wire.url).complete()
    assert "tools" not in wire.bodies[0]


def test_text_is_delivered_as_it_comes() -> None:
    with Wire(stream(said("Hel"), said("lo"), STOP, DONE)) as wire:
        asked = Asked(wire.url)
        assert (asked.complete(), asked.text) == (reply("Hello"), ["Hel", "lo"])


def test_an_answer_in_one_document_is_delivered_too() -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode()
    with Wire(http(200, body, "content-type: application/json")) as wire:
        asked = Asked(wire.url)
        assert (asked.complete(), asked.text) == (reply("Hi"), ["Hi"])


def busy(*headers: str) -> bytes:
    return failure(503, "busy", *headers)


def http_date(year: int) -> str:
    return f"retry-after: Fri, 01 Jan {year} 00:00:00 GMT"


RETRIED = {
    "503 after the first back-off": ([busy()], [(0.5, "HTTP 503: busy")]),
    "429, then 500 after twice that": (
        [failure(429, "slow down"), failure(500, "oops")],
        [(0.5, "HTTP 429: slow down"), (1.0, "HTTP 500: oops")],
    ),
    "408 and 409": (
        [failure(408, "late"), failure(409, "locked")],
        [(0.5, "HTTP 408: late"), (1.0, "HTTP 409: locked")],
    ),
    "a page from a proxy": ([http(502, b"<h1>Bad\ngateway</h1>")], [(0.5, "HTTP 502: <h1>Bad gateway</h1>")]),
    "a status without a body": ([http(504, b"")], [(0.5, "HTTP 504")]),
    "Retry-After in seconds": ([busy("retry-after: 7")], [(7.0, "HTTP 503: busy")]),
    "Retry-After at the cap": ([busy("retry-after: 60")], [(60.0, "HTTP 503: busy")]),
    "Retry-After in milliseconds goes first": (
        [busy("retry-after: 7", "retry-after-ms: 250")],
        [(0.25, "HTTP 503: busy")],
    ),
    "a negative Retry-After is none": ([busy("retry-after: -5")], [(0.5, "HTTP 503: busy")]),
    "a Retry-After that is no number is none": ([busy("retry-after: soon")], [(0.5, "HTTP 503: busy")]),
    "an infinite Retry-After is none": ([busy("retry-after: inf")], [(0.5, "HTTP 503: busy")]),
    "a Retry-After date that is past is none": ([busy(http_date(2021))], [(0.5, "HTTP 503: busy")]),
}


@pytest.mark.parametrize(("answers", "expected"), RETRIED.values(), ids=RETRIED)
def test_passing_failures_are_retried_visibly(answers: list[bytes], expected: list[tuple[float, str]]) -> None:
    with Wire(*answers, GOOD) as wire:
        asked = Asked(wire.url)
        response = asked.complete()
    assert response == reply("Hi", retries=len(expected))
    assert asked.slept == [wait for wait, _ in expected]
    assert asked.retries == [
        Retry(attempt=i + 1, attempts=3, wait_seconds=wait, reason=f"The provider could not answer ({told}).")
        for i, (wait, told) in enumerate(expected)
    ]
    assert wire.bodies == [wire.bodies[0]] * (len(answers) + 1)


CUT_OFF_EARLY = {
    "the server hangs up without a word": b"",
    "the head is cut": b"HTTP/1.1 200 OK\r\ncontent-le",
    "it speaks no HTTP": b"garbage\r\n\r\n",
    "the body is cut before an event": http(200, b": hello\n\n", length=99),
    "a document is cut": http(200, b'{"choices": [', length=99),
    "an error body is cut": http(503, b"busy", length=99),
}


@pytest.mark.parametrize("answer", CUT_OFF_EARLY.values(), ids=CUT_OFF_EARLY)
def test_a_connection_that_breaks_before_the_first_event_is_retried(answer: bytes) -> None:
    with Wire(answer, GOOD) as wire:
        asked = Asked(wire.url)
        assert asked.complete() == reply("Hi", retries=1)
        assert asked.slept == [0.5]
        assert asked.retries[0].reason.startswith(f"The connection to {wire.url} failed: ")


def test_a_server_that_says_nothing_is_retried_after_the_timeout() -> None:
    with Wire(LEFT_OPEN, GOOD) as wire:
        asked = Asked(wire.url, timeout_seconds=0.3)
        assert asked.complete() == reply("Hi", retries=1)
    assert [retry.reason for retry in asked.retries] == [f"{wire.url} sent nothing for 0.3 s."]


def test_nobody_there_is_told_after_the_last_try() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    asked = Asked(url, attempts=7)
    with pytest.raises(ModelError) as raised:
        asked.complete()
    assert str(raised.value) == (
        f"The connection to {url} failed: ConnectError: [Errno 111] Connection refused. (tried 7 times)"
    )
    assert asked.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


def test_jitter_takes_up_to_a_quarter_off_a_back_off() -> None:
    with Wire(busy(), GOOD) as wire:
        asked = Asked(wire.url, jitter=0.5)
        asked.complete()
    assert asked.slept == [0.4375]


REFUSED = {
    "401": (
        failure(401, f"Incorrect API key provided: {KEY}"),
        ModelError,
        (
            "{url} refused the API key (HTTP 401: Incorrect API key provided: [key]). Set OPENAI_API_KEY to "
            "a key that is valid there, or OPENAI_BASE_URL to the provider that the key is for."
        ),
    ),
    "403": (
        failure(403, f"{KEY} may not"),
        ModelError,
        (
            "{url} does not allow this (HTTP 403: [key] may not). See whether the key in OPENAI_API_KEY may "
            "use model 'm1'."
        ),
    ),
    "404": (
        http(404, b"404 page not found"),
        ModelError,
        (
            "There is no model 'm1' at {url} (HTTP 404: 404 page not found). Check the model's name, and "
            "the base URL: it usually ends in /v1."
        ),
    ),
    "400 with the code for a long context": (
        failure(400, "No", code="context_length_exceeded"),
        ModelError,
        "The conversation is too long for model 'm1' (HTTP 400: No). Begin a new one.",
    ),
    "400 with words for a long context": (
        failure(400, "This model's maximum context length is 8192 tokens."),
        ModelError,
        (
            "The conversation is too long for model 'm1' (HTTP 400: This model's maximum context length is "
            "8192 tokens.). Begin a new one."
        ),
    ),
    "413": (http(413, b""), ModelError, "The conversation is too long for model 'm1' (HTTP 413). Begin a new one."),
    "400": (failure(400, "bad tools"), ModelError, "The provider refused the request (HTTP 400: bad tools)."),
    "422": (
        http(422, b'{"detail": [{"loc": ["body"], "msg": "x"}]}'),
        ModelError,
        'The provider refused the request (HTTP 422: {"loc": ["body"], "msg": "x"}).',
    ),
    "429 that will last": (
        failure(429, "no money", code="insufficient_quota"),
        ModelError,
        "The provider could not answer (HTTP 429: no money).",
    ),
    "503 that says so itself": (
        busy("x-should-retry: false"),
        ModelError,
        "The provider could not answer (HTTP 503: busy).",
    ),
    "Retry-After above the cap": (
        busy("retry-after: 120"),
        ModelError,
        (
            "The provider could not answer (HTTP 503: busy). The provider asks to wait 120 s; more than 60 "
            "s are not waited. Try again later."
        ),
    ),
    "a key in the error of a server": (
        failure(500, f"trace: {KEY}", "retry-after: 61"),
        ModelError,
        (
            "The provider could not answer (HTTP 500: trace: [key]). The provider asks to wait 61 s; more "
            "than 60 s are not waited. Try again later."
        ),
    ),
    "a page that repeats the key": (
        http(200, f"<html>{KEY}</html>".encode()),
        ModelError,
        (
            "The answer is a web page, not a chat completion; check the base URL (it usually ends in /v1): "
            "<html>[key]</html>"
        ),
    ),
    "an error event that repeats the key": (
        stream({"error": {"message": f"bad {KEY}"}}),
        ModelError,
        "The provider broke the reply off: bad [key]",
    ),
    "an error in a choice that repeats the key": (
        stream({"choices": [{"error": f"bad {KEY}"}]}),
        ModelError,
        "The provider broke the reply off: bad [key]",
    ),
    "a broken event that repeats the key": (
        stream("{" + KEY),
        ModelError,
        "The provider sent an event that is not valid JSON: {[key]",
    ),
    "a stream that just ends": (stream(said("Hi")), CutReply, f"{CUT} (2 characters of text, 0 tool calls begun)."),
    "a connection that breaks after text": (
        http(200, sse(said("Hi")), length=9999),
        CutReply,
        (
            "The reply was cut off: The connection to {url} failed: {broken}; nothing of it was used (2 "
            "characters of text, 0 tool calls begun)."
        ),
    ),
    "a connection that breaks after the first event": (
        http(200, sse(chunk({"role": "assistant"})), length=9999),
        CutReply,
        (
            "The reply was cut off: The connection to {url} failed: {broken}; nothing of it was used (0 "
            "characters of text, 0 tool calls begun)."
        ),
    ),
    "a body that cannot be unpacked": (http(200, b"garbage", "content-encoding: gzip"), ModelError, "{gzip}"),
}
BROKEN_BODY = (
    r"RemoteProtocolError: peer closed connection without sending complete message body "
    r"\(received \d+ bytes, expected 9999\)"
)


@pytest.mark.parametrize(("answer", "kind", "text"), REFUSED.values(), ids=REFUSED)
def test_lasting_failures_are_told_at_once(answer: bytes, kind: type[ModelError], text: str) -> None:
    with Wire(answer) as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    said = str(raised.value)
    expected = re.escape(text.replace("{url}", wire.url)).replace(re.escape("{broken}"), BROKEN_BODY)
    expected = expected.replace(re.escape("{gzip}"), re.escape(f"The request to {wire.url} failed: ") + ".*header.*")
    assert re.fullmatch(expected, said), said
    assert type(raised.value) is kind
    assert KEY not in said
    assert (asked.slept, asked.retries, len(wire.bodies)) == ([], [], 1)


def test_a_retry_after_date_far_ahead_is_not_waited_for() -> None:
    with Wire(busy(http_date(2999))) as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError, match=r"^The provider could not answer \(HTTP 503: busy\)\. .* wait \d{11} s; "):
            asked.complete()
    assert asked.slept == []


def test_a_request_that_cannot_be_sent_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "two\nlines")
    with Wire() as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert str(raised.value).startswith(f"The request to {wire.url} failed: LocalProtocolError: Illegal header value")
    assert (asked.slept, wire.heads) == ([], [])


def test_a_connection_that_breaks_after_the_finish_reason_harms_nothing() -> None:
    with Wire(http(200, sse(said("Hi"), STOP), length=9999)) as wire:
        assert Asked(wire.url).complete() == reply("Hi")


def test_the_address_in_an_error_holds_neither_password_nor_query() -> None:
    with Wire(failure(401, "No")) as wire:
        asked = Asked(wire.url.replace("127", "ann:pass-word@127") + "?token=t0ken")
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert str(raised.value).startswith(f"{wire.url} refused the API key (HTTP 401: No).")


def test_an_interrupt_passes_through_and_hangs_up() -> None:
    def interrupt(text: str) -> None:
        raise KeyboardInterrupt(text)

    with Wire(LEFT_OPEN + sse(said("Hi"))) as wire:
        asked = Asked(wire.url)
        with pytest.raises(KeyboardInterrupt) as raised:
            asked.model.complete(USER, (), on_text=interrupt, on_retry=asked.retries.append)
        assert wire.hung_up.wait(10)
    # Looked at after the wait: the traceback keeps the frames alive, so that nobody but the adapter can have hung up.
    assert str(raised.value) == "Hi"


def test_a_failing_observer_is_not_taken_for_a_failing_provider() -> None:
    def fail(text: str) -> None:
        raise BrokenPipeError(text)

    with Wire(GOOD) as wire:
        asked = Asked(wire.url)
        with pytest.raises(BrokenPipeError, match=r"^Hi$"):
            asked.model.complete(USER, (), on_text=fail, on_retry=asked.retries.append)


NO_KEY = (
    "There is no API key. Set OPENAI_API_KEY; a local server that wants no key takes any text. "
    "`harness demo` needs neither key nor network."
)
BAD_SETTINGS = {
    "no key anywhere": (None, "http://127.0.0.1:9/v1", NO_KEY),
    "an empty key": ("", "http://127.0.0.1:9/v1", NO_KEY),
    "a key with a line end": (
        f"{KEY}\n",
        "http://127.0.0.1:9/v1",
        "The API key holds a line end or another character that cannot be sent; see OPENAI_API_KEY.",
    ),
    "a key with a character that hides": (
        f"{KEY}\u200b",
        "http://127.0.0.1:9/v1",
        "The API key holds a line end or another character that cannot be sent; see OPENAI_API_KEY.",
    ),
    "a base URL without http": (
        KEY,
        "localhost:11434/v1",
        "The base URL must begin with http:// or https://, not 'localhost:11434/v1/'.",
    ),
    "a base URL that is none": (
        KEY,
        "http://host:port",
        "The openai client cannot be made: InvalidURL: Invalid port: 'port'",
    ),
}


@pytest.mark.parametrize(("key", "url", "text"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_settings_that_cannot_work_are_told_before_anything_is_sent(
    key: str | None, url: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)
    model = OpenAIChat("m1", Endpoint(base_url=url, api_key=key))
    model.warm_up()
    with pytest.raises(ModelError) as raised:
        model.complete(USER, (), on_text=print, on_retry=print)
    assert str(raised.value) == text


def test_an_admin_key_alone_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    with Wire() as wire, pytest.raises(ModelError, match=f"^{re.escape(NO_KEY)}$"):
        OpenAIChat("m1", Endpoint(base_url=wire.url)).complete(USER, (), on_text=print, on_retry=print)
    assert wire.heads == []


def test_key_and_address_come_from_the_environment_where_none_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire(GOOD) as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.setenv("NO_PROXY", "*")
        assert OpenAIChat("m1").complete(USER, (), on_text=print, on_retry=print) == reply("Hi")


def test_a_proxy_in_the_environment_does_not_stand_before_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Wire(GOOD) as wire:
        assert Asked(wire.url, attempts=1).complete() == reply("Hi")


def test_the_sdk_is_imported_only_when_it_is_needed() -> None:
    code = (
        "import sys; import harness.models.openai_chat as chat; model = chat.OpenAIChat('m', chat.Endpoint(api_key='k'));"
        "print(sorted({'openai', 'httpx', 'httpx2', 'inspect', 'dataclasses'} & set(sys.modules)));"
        "model.warm_up(); print('openai' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "[]\nTrue\n"


def test_threads_that_warm_up_together_build_one_client() -> None:
    model = OpenAIChat("m1", Endpoint(api_key=KEY))
    barrier, clients = threading.Barrier(4), []

    def warm_up() -> None:
        barrier.wait()
        model.warm_up()
        clients.append(model._wire._client)

    threads = [threading.Thread(target=warm_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clients == [model._wire._client] * 4
    assert model._wire._client is not None


def test_a_closed_model_opens_again() -> None:
    with Wire(GOOD, GOOD) as wire:
        asked = Asked(wire.url)
        assert asked.complete() == reply("Hi")
        asked.model.close()
        assert asked.complete() == reply("Hi")


def test_attempts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^attempts must be at least 1, not 0$"):
        OpenAIChat("m1", Endpoint(attempts=0))


# --------------------------------------------------------------------------------------------- every message once


def test_a_long_history_is_encoded_once() -> None:
    messages = [Message(role=Role.USER, content=f"{number}" * 100) for number in range(500)]
    conversation = Conversation("m1")
    conversation.request(messages, (BASH,))
    encoded = list(conversation._encoded)
    more = [*messages, Message(role=Role.USER, content="new")]
    body = conversation.request(more, (BASH,))
    assert len(conversation._encoded) == 501
    assert all(old is new for old, new in zip(encoded, conversation._encoded, strict=False))
    assert body == Conversation("m1").request(more, (BASH,))


MESSAGES = st.lists(
    st.builds(
        lambda text, ids: Message(
            role=Role.ASSISTANT, content=text, tool_calls=tuple(bash(call_id=call_id) for call_id in ids)
        ),
        st.sampled_from(["", "a", "\u2028", "\ud800", "b"]),
        st.lists(st.sampled_from(["x", "y", "\udfff"]), max_size=2),
    ),
    max_size=6,
)


@given(st.lists(st.tuples(MESSAGES, st.sampled_from([(), (BASH,), (replace(BASH, name="sh"),)])), max_size=5))
@settings(deadline=None)
def test_whatever_was_asked_before_a_body_is_that_of_its_own_messages(
    history: list[tuple[list[Message], tuple[ToolSpec, ...]]],
) -> None:
    conversation = Conversation("m1")
    for messages, tools in history:
        fresh = Conversation("m1")
        assert conversation.request(messages, tools) == fresh.request(messages, tools)
        assert conversation.call_ids == fresh.call_ids == {c.id for message in messages for c in message.tool_calls}

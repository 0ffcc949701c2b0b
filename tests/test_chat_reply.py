"""Replies of the chat completions API out of the bytes of an answer, however they are cut."""

from __future__ import annotations

import json
import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import CutReply, ModelError
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.failures import FailedTry
from harness.models.provider_text import excerpt, provider_message

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from chat_wire import DONE, KEY, STOP, bash, calls, chunk, fragment, outcome, read, reply, said, sse

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
    "a call that is sent twice, with its id and its index, is one": (
        [calls(fragment(A, call_id="c1", name="bash")), calls(fragment(B))] * 2,
        (bash(),),
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
        FailedTry,
        "The reply is empty: the stream ended properly, but held nothing.",
    ),
    "an empty body": (
        b"",
        FailedTry,
        "The answer is empty: the server sent a success status and no body. Check the base URL.",
    ),
    "white space": (
        b" \r\n ",
        FailedTry,
        "The answer is empty: the server sent a success status and no body. Check the base URL.",
    ),
    "a web page": (
        b"<!doctype html>\n<title>Sign  in</title>",
        ModelError,
        (
            "The answer is a web page, not a reply; check the base URL (it usually ends in /v1): "
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
        'The answer is JSON, but no reply: {"models": []}',
    ),
    "an error as JSON with a success status": (
        b'[{"error": {"message": "Bad model"}}]',
        FailedTry,
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
        "The provider sent an event that is no JSON object: [1]",
    ),
    "an error within the stream": (
        sse(said("a"), {"error": {"message": "Overloaded", "code": 502}}),
        FailedTry,
        "The provider broke the reply off: Overloaded",
    ),
    "an error after the finish reason": (
        sse(STOP, {"error": "Overloaded"}),
        FailedTry,
        "The provider broke the reply off: Overloaded",
    ),
    "an event named error": (
        b'event: error\ndata: {"code": 1}\n\n',
        FailedTry,
        'The provider broke the reply off: {"code": 1}',
    ),
    "an error object": (sse({"object": "error", "message": "No"}), FailedTry, "The provider broke the reply off: No"),
    "an error in the choice": (
        sse({"choices": [{"error": {"message": "No"}}]}),
        FailedTry,
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

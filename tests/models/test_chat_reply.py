"""Replies of the chat completions API out of the bytes of an answer, however they are cut."""

from __future__ import annotations

import json
import sys

import pytest
from chat_events import DONE, STOP, calls, chunk, fragment, said, sse
from chat_wire import (
    KEY,
    bash,
    outcome,
    read,
    reply,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples, proof_size
from work import assert_linear

from harness.errors import CutReply, ModelError
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.chat_reply import ChatReply
from harness.models.failures import FailedTry, excerpt, provider_message
from harness.models.reply_body import ReplyBody
from harness.models.wire_format import told_apart

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
    "an unknown finish reason is an end of text": (sse(said("a", "weird")), reply("a")),
    "a finish reason of another API": (sse(said("a", "FINISH_REASON_STOP")), reply("a")),
    "finish length, then stop: the worse holds": (
        sse(said("a", "length"), STOP, DONE),
        reply("a", finish_reason=FinishReason.LENGTH),
    ),
    "finish content_filter, then stop": (
        sse(said("a", "content_filter"), STOP),
        reply("a", finish_reason=FinishReason.CONTENT_FILTER),
    ),
    "finish length, then content_filter": (
        sse(said("a", "length"), chunk(finish="content_filter")),
        reply("a", finish_reason=FinishReason.LENGTH),
    ),
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
    **{
        f"usage that is none: {usage}": (sse(chunk({}, "stop", usage=usage)), reply())
        for usage in (
            {"prompt_tokens": "7", "completion_tokens": None, "total_tokens": -1},
            {"prompt_tokens": 7},
            {"completion_tokens": 7, "total_tokens": 9},
            {"prompt_tokens": 7.5, "completion_tokens": 1},
            {"prompt_tokens": 10**13, "completion_tokens": 1},
            {"prompt_tokens": 10**400, "completion_tokens": 1},
            {"prompt_tokens": "9" * 99, "completion_tokens": 1},
            {"prompt_tokens": -7, "completion_tokens": 1},
            {"prompt_tokens": True, "completion_tokens": 1},
            {"prompt_tokens": "1e3", "completion_tokens": 1},
            {"prompt_tokens": "\u0663", "completion_tokens": 1},
        )
    },
    "usage that is no finite number": (
        sse('{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":Infinity,"completion_tokens":NaN}}'),
        reply(),
    ),
    "usage as text and as floats": (
        sse(chunk({}, "stop", usage={"prompt_tokens": "1000000", "completion_tokens": 1000000.0})),
        reply(usage=Usage(input_tokens=1_000_000, output_tokens=1_000_000)),
    ),
    "usage whose sum is larger than its parts": (
        sse(chunk({}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 50000})),
        reply(usage=Usage(input_tokens=10, output_tokens=49990)),
    ),
    "usage whose sum is smaller than its parts": (
        sse(chunk({}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 2})),
        reply(usage=Usage(input_tokens=10, output_tokens=5)),
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
            {
                "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            }
        ).encode(),
        reply("a", usage=Usage(input_tokens=1, output_tokens=2)),
    ),
    "a document of text alone, without a finish reason": (
        json.dumps({"choices": [{"message": {"content": "a"}, "finish_reason": None}]}).encode(),
        reply("a"),
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
                        },
                        "finish_reason": "tool_calls",
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
    "a whole message after its deltas, which alone has the calls": (
        sse(
            said("a"),
            {"choices": [{"message": {"tool_calls": [fragment("{}", call_id="c1", name="bash")]}}]},
            STOP,
        ),
        reply("a", bash("{}")),
    ),
    "chunks of other choices are left out": (
        sse(
            {"choices": [{"index": 1, "delta": {"content": "x"}}, {"index": 0, "delta": {"content": "a"}}]},
            {"choices": [{"index": 1, "delta": {"content": "y"}, "finish_reason": "length"}]},
            {"choices": [{"index": "0", "delta": {"content": "b"}, "finish_reason": "stop"}]},
        ),
        reply("ab"),
    ),
    "every chunk has an id of its own": (
        sse(*(said(text, id=f"i{text}") for text in "abcd"), {**STOP, "id": "ie"}, DONE),
        reply("abcd"),
    ),
    "an empty id before the real one": (sse(chunk({}, id=""), said("a", id="i"), {**STOP, "id": "i"}), reply("a")),
    "what stands beside is no error": (
        sse({"code": 0, "message": "success"}, {"type": "ping"}, {"status": "ok"}, said("a"), STOP),
        reply("a"),
    ),
    "an event that is cut after the finish reason of text": (sse(said("a"), STOP, chunk())[:-9], reply("a")),
    "[DONE] is cut": (sse(said("a"), STOP, DONE)[:-5], reply("a")),
    "a key twice, saying the same": (b'data: {"id":"i","choices":[{"finish_reason":"stop"}],"id":"i"}\n\n', reply()),
}


@all_rows(("wire", "expected"), WHOLE)
def test_stream_is_assembled_into_a_reply(wire: bytes, expected: ModelResponse) -> None:
    assert read(wire) == (expected.text, expected)


A, B = '{"a":', "1}"
CALLS: dict[str, tuple[list[object], tuple[ToolCall, ...]]] = {
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
    "one call at two indexes is one": (
        [calls(fragment("{}", call_id="x", name="bash")), calls(fragment("{}", index=1, call_id="x", name="bash"))],
        (bash("{}", call_id="x"),),
    ),
    "a call that is sent twice, with its id and its index, is one": (
        [calls(fragment(A, call_id="c1", name="bash")), calls(fragment(B))] * 2,
        (bash(),),
    ),
    "two calls of one id that differ: the second gets its own": (
        [
            calls(fragment("{}", call_id="x", name="bash")),
            calls(fragment('{"a":1}', index=1, call_id="x", name="bash")),
        ],
        (bash("{}", call_id="x"), bash(call_id="call_1")),
    ),
    "a whole call in an event that comes twice is one": (
        [calls(fragment('{"a":1}', call_id="c1", name="bash"))] * 2,
        (bash(),),
    ),
    "a call that is sent twice without an index is one": (
        [calls(fragment('{"a":1}', index=None, call_id="c1", name="bash"))] * 2,
        (bash(),),
    ),
    "arguments that are no object are text": (
        [
            calls(fragment(value, index=index, call_id=f"c{index}", name="bash"))
            for index, value in enumerate(([], 0, False))
        ],
        (bash("[]", call_id="c0"), bash("0", call_id="c1"), bash("false", call_id="c2")),
    ),
    "an object with a key twice stays one": (
        [
            '{"choices":[{"delta":{"tool_calls":[{"id":"c1","function":{"name":"bash","arguments":{"a":{"b":1,"b":2}}}}]}}]}'
        ],
        (bash('{"a": {"b": 1, "b": 2}}'),),
    ),
    "an object with numbers that are none stays one": (
        ['{"choices":[{"delta":{"tool_calls":[{"id":"c1","function":{"name":"bash","arguments":{"a":NaN}}}]}}]}'],
        (bash('{"a": NaN}'),),
    ),
    "an id with a signature in it, as LiteLLM has it, is kept short": (
        [calls(fragment("{}", call_id="call_1__thought__" + "s" * 9000, name="bash"))],
        (bash("{}", call_id="call_51cdfeb171c9067bb5c929f48d6bb942"),),
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


@all_rows("finish", ["tool_calls", "stop"])
@all_rows(("chunks", "expected"), CALLS)
def test_fragments_become_calls(chunks: list[object], expected: tuple[ToolCall, ...], finish: str) -> None:
    assert read(sse(*chunks, chunk(finish=finish), DONE)) == ("", reply("", *expected))


def test_an_id_that_an_earlier_turn_used_is_replaced() -> None:
    wire = sse(calls(fragment("{}", call_id="call_0", name="bash")), DONE)
    assert read(wire, taken=frozenset({"call_0", "call_1"})) == ("", reply("", bash("{}", call_id="call_2")))


def test_calls_without_ids_get_the_next_free_ones() -> None:
    taken = frozenset(f"call_{number}" for number in range(1, 200_001))
    found = told_apart([bash(call_id="")] * 128, taken)
    assert [call.id for call in found] == [f"call_{number}" for number in range(200_001, 200_129)]


def test_ids_are_counted_on_and_not_from_the_beginning_for_each_call() -> None:
    def make(size: int) -> tuple[list[ToolCall], frozenset[str]]:
        return [bash(call_id="")] * size, frozenset(f"call_{number}" for number in range(1, size + 1))

    assert_linear(make, lambda made: told_apart(*made), 200)


CUT = "The reply was cut off: the stream ended without a finish reason or [DONE]. None of it was used"
DOUBT = "The reply is ambiguous:"
ONE_CALL = ". None of it was used (0 characters of text, 1 tool calls)."
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
    **{
        f"finish reason {word}": (
            sse(calls(fragment("{}", call_id="c1", name="bash")), chunk(finish=word), STOP, DONE),
            CutReply,
            (
                f"The provider broke the reply off (finish reason {word!r}). None of it was used (0 characters of text, "
                "1 tool calls begun)."
            ),
        )
        for word in ("error", "insufficient_system_resource", "network_error", "cancel", "pause_turn", "timeout")
    },
    "a finish reason that nobody knows, with calls": (
        sse(calls(fragment("{}", call_id="c1", name="bash")), chunk(finish="odd " + "x" * 999), DONE),
        CutReply,
        f"{DOUBT} it has tool calls and the unknown finish reason 'odd {'x' * 196}...'{ONE_CALL}",
    ),
    "a finish reason that is no text, with calls": (
        sse(calls(fragment("{}", call_id="c1", name="bash")), chunk(finish=["stop"])),
        CutReply,
        f"""{DOUBT} it has tool calls and the unknown finish reason "['stop']"{ONE_CALL}""",
    ),
    "a call goes on after the finish reason": (
        sse(calls(fragment("{", call_id="c1", name="bash")), STOP, calls(fragment("}")), DONE),
        CutReply,
        f"{DOUBT} pieces of a call came after the finish reason, and none after those{ONE_CALL}",
    ),
    "a call goes on after the finish reason, and the stream ends": (
        sse(calls(fragment("{", call_id="c1", name="bash")), STOP, calls(fragment("}"))),
        CutReply,
        f"{CUT} (0 characters of text, 1 tool calls begun).",
    ),
    "an event that is cut after the finish reason of a call": (
        sse(calls(fragment("{}", call_id="c1", name="bash")), STOP, calls(fragment("{}", index=1, name="bash")))[:-9],
        CutReply,
        f"{DOUBT} it has tool calls, and after the finish reason it ended within an event{ONE_CALL}",
    ),
    "a whole message whose calls are others than the deltas": (
        sse(
            calls(fragment("{}", call_id="c1", name="bash")),
            {"choices": [{"message": {"tool_calls": [fragment('{"a":1}', call_id="c1", name="bash")]}}]},
            STOP,
        ),
        CutReply,
        f"{DOUBT} the calls came in pieces and then as a whole, and the two differ{ONE_CALL}",
    ),
    "a stream in which another begins": (
        sse(
            {**calls(fragment("{}", call_id="c1", name="bash")), "id": "i"},
            {**calls(fragment("{}", call_id="c2", name="bash")), "id": "j"},
            {**STOP, "id": "j"},
        ),
        CutReply,
        f"{DOUBT} chunks of different ids were mixed{ONE_CALL.replace('1', '2')}",
    ),
    "another choice is finished, ours is not": (
        sse(
            calls(fragment('{"a":', call_id="c1", name="bash")),
            {"choices": [{"index": 1, "delta": {"tool_calls": [fragment("1}")]}, "finish_reason": "stop"}]},
            DONE,
        ),
        CutReply,
        f"{DOUBT} it has more than one choice, and the first has no finish reason{ONE_CALL}",
    ),
    "a document with calls and no finish reason": (
        json.dumps({"choices": [{"message": {"tool_calls": [fragment("{}", name="bash")]}}]}).encode(),
        CutReply,
        f"{DOUBT} it has tool calls and no finish reason{ONE_CALL}",
    ),
    "one chunk in place of a stream": (
        json.dumps(calls(1)).encode(),
        ModelError,
        'The answer is JSON, but not a reply: {"choices": [{"index": 0, "delta": {"tool_calls": [1]}, "finish_reason": null}]}',
    ),
    "a list of chunks in place of a stream": (
        json.dumps([STOP, STOP]).encode(),
        ModelError,
        (
            'The answer is JSON, but not a reply: [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, '
            '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]'
        ),
    ),
    "a list of one reply": (
        b'[{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}]',
        ModelError,
        'The answer is JSON, but not a reply: [{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}]',
    ),
    "a document of another choice": (
        b'{"choices": [{"index": 1, "message": {"content": "a"}, "finish_reason": "stop"}]}',
        ModelError,
        (
            'The answer is JSON, but not a reply: {"choices": [{"index": 1, "message": {"content": "a"}, '
            '"finish_reason": "stop"}]}'
        ),
    ),
    **{
        f"a document that ends early: {text}": (
            text.encode(),
            CutReply,
            (
                f"The reply was cut off: its JSON ends early, after {len(text)} bytes. None of it was used "
                "(0 characters of text, 0 tool calls begun)."
            ),
        )
        for text in (
            '{"choices": [{"mess',
            '{"a": 1',
            '{"a": ',
            '{"a": tr',
            '{"a": -',
            '{"a": 1e',
            "{",
            '{"a": "\\u00',
            "[{}",
        )
    },
    **{
        f"an error of another form: {value}": (
            sse(calls(fragment("{}", call_id="c1", name="bash")), value, DONE),
            FailedTry,
            f"The provider broke the reply off: {said_by}",
        )
        for value, said_by in (
            ({"type": "error", "message": "boom", "code": 500}, "boom"),
            ({"code": 500, "message": "boom"}, "boom"),
            ({"message": "boom"}, "boom"),
            ({"detail": "boom"}, "boom"),
            ({"code": 1302}, '{"code": 1302}'),
            ({"errors": ["boom"], "choices": []}, '{"errors": ["boom"], "choices": []}'),
        )
    },
    "a key twice, saying otherwise": (
        b'data: {"choices":[{"delta":{},"finish_reason":"length","finish_reason":"stop"}]}\n\n',
        ModelError,
        (
            "The provider sent JSON in which 'finish_reason' has two different values: "
            '{"choices":[{"delta":{},"finish_reason":"length","finish_reason":"stop"}]}'
        ),
    ),
    "arguments twice": (
        b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}","arguments":"{1}"}}]}}]}\n\n',
        ModelError,
        (
            "The provider sent JSON in which 'arguments' has two different values: "
            '{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}","arguments":"{1}"}}]}}]}'
        ),
    ),
    "a name that is none for its length": (
        sse(calls(fragment("{}", call_id="c1", name="x" * 257)), STOP),
        CutReply,
        "The provider sent a tool call whose name is longer than 256 characters. The reply was not used.",
    ),
    "an id that is none for its length": (
        sse(*[calls(fragment(call_id=f"{number}" * 30_000, name="bash")) for number in range(3)], STOP),
        CutReply,
        "The provider sent a tool call whose id is longer than 65536 characters. The reply was not used.",
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
    "plain text": (b"Bad gateway\x1b[2K", ModelError, "The answer is not an event stream: Bad gateway [2K"),
    "JSON lines": (
        b'{"a": 1}\n{"b": 2}',
        ModelError,
        'The answer is neither an event stream nor valid JSON: {"a": 1} {"b": 2}',
    ),
    "JSON of another kind": (
        b'{"models": []}',
        ModelError,
        'The answer is JSON, but not a reply: {"models": []}',
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
        "The provider sent an event that is not a JSON object: [1]",
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


@all_rows(("wire", "kind", "text"), BROKEN)
def test_incomplete_reply_is_an_error(wire: bytes, kind: type[ModelError], text: str) -> None:
    assert outcome(wire) == (kind, text)


def test_a_finish_reason_does_not_repeat_the_key() -> None:
    body = ReplyBody(ChatReply(KEY), secret=KEY)
    body.feed(sse(calls(fragment("{}", call_id="c1", name="bash")), chunk(finish=f"no {KEY}"), DONE))
    body.end()
    with pytest.raises(CutReply, match=r"finish reason 'no \[key\]'"):
        body.response()


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


CUTS_APART = proof_size("CUTS_APART", 11, full=1)


def test_stream_cut_at_any_place_gives_the_same_reply() -> None:
    """Byte by byte, and cut once, at every byte with HARNESS_FULL."""
    for number, wire in enumerate(ALL_WIRES):
        if len(wire) > 2000:
            continue  # the deep ones; their length is their point
        expected = outcome(wire)
        assert outcome(*(wire[i : i + 1] for i in range(len(wire)))) == expected
        for cut in range(1 + number % CUTS_APART, len(wire), CUTS_APART):
            assert outcome(wire[:cut], wire[cut:]) == expected


@given(data=st.data())
@settings(max_examples=examples(300), deadline=None)
def test_random_streams_give_the_same_reply_for_any_cuts(data: st.DataObject) -> None:
    pieces = st.sampled_from(
        [*(w for w in ALL_WIRES if len(w) < 2000), b"\r", b"\n", b"data: ", b"\xef", b"\xbb\xbf", b" ", b"{"]
    )
    wire = b"".join(data.draw(st.lists(pieces, max_size=4)))
    start, length = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 600))
    wire = wire[start:] if data.draw(st.booleans()) else wire[:length] + wire[length + start :]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    sliced = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert outcome(*sliced) == outcome(wire)


@all_rows(
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
def test_provider_message_is_shortened_to_one_line(value: object, expected: str) -> None:
    assert provider_message(value, KEY) == expected


def test_a_short_key_is_not_masked() -> None:
    assert excerpt("none of these", "none") == "none of these"

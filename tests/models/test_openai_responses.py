"""The Responses API: what its events become, what its requests hold, and what a server's refusal teaches."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from fault_server import Answer, FaultServer, status, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from responses_server import ServerOfBothApis, response_events
from rows import all_rows
from sizes import examples

from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import FinishReason, Message, ModelResponse, Role, ToolCall, Usage
from harness.model import ToolSpec
from harness.models.endpoint import Endpoint, Quirks, ReplyBounds
from harness.models.openai_responses import OpenAIResponses, ResponsesDialect
from harness.models.reply_body import ReplyBody
from harness.models.responses_reply import ResponsesReply
from harness.models.scripted import Player, Reply, call, replies, say
from harness.record import replace

KEY = "sk-secret-0123456789"
GO = Message(role=Role.USER, content="go")
DONE = "[DONE]"
ENCRYPTED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def event(kind: str, **fields: object) -> dict[str, object]:
    return {"type": f"response.{kind}", **fields}


def sse(*events: object) -> bytes:
    return b"".join(
        b"data: " + (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n\n" for value in events
    )


def delta(text: object, index: object = 0, **more: object) -> dict[str, object]:
    return event("output_text.delta", output_index=index, content_index=0, delta=text, **more)


def message(*texts: str, **more: object) -> dict[str, object]:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": t} for t in texts],
        **more,
    }


def function(
    call_id: object = "c1", arguments: object = '{"a":1}', name: object = "bash", **more: object
) -> dict[str, Any]:
    fields = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}
    return {key: value for key, value in fields.items() if value is not None}


def added(item: object, index: object = 0) -> dict[str, object]:
    return event("output_item.added", output_index=index, item=item)


def done(item: object, index: object = 0) -> dict[str, object]:
    return event("output_item.done", output_index=index, item=item)


def piece(text: object, index: object = 0, **more: object) -> dict[str, object]:
    fields = {"output_index": index, "delta": text, **more}
    return event("function_call_arguments.delta", **{key: value for key, value in fields.items() if value is not None})


def pieces_done(text: object, index: object = 0) -> dict[str, object]:
    return event("function_call_arguments.done", output_index=index, arguments=text)


def document(*output: object, state: str = "completed", **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": state, "error": None, "output": list(output), **more}


def completed(*output: object, **more: Any) -> dict[str, object]:
    return event("completed", response=document(*output, **more))


def incomplete(reason: object, *output: object) -> dict[str, object]:
    return event("incomplete", response=document(*output, state="incomplete", incomplete_details={"reason": reason}))


def reply(text: str = "", *tool_calls: ToolCall, **more: Any) -> ModelResponse:
    fields = {"finish_reason": FinishReason.DONE, "usage": Usage(unreported=1), **more}
    return ModelResponse(text=text, tool_calls=tool_calls, **fields)


def bash(arguments: str = '{"a":1}', call_id: str = "c1", name: str = "bash") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def read(
    *pieces: bytes, taken: frozenset[str] = frozenset(), bounds: ReplyBounds | None = None
) -> tuple[str, ModelResponse]:
    reader = ReplyBody(ResponsesReply(KEY, bounds=bounds), secret=KEY, bounds=bounds)
    texts = [text for data in pieces for text in reader.feed(data)] + reader.end()
    return "".join(texts), reader.response(taken)


def outcome(*pieces: bytes) -> object:
    try:
        return read(*pieces)
    except ModelError as error:
        return type(error), error.fault, str(error)


# ---------------------------------------------------------------------------------------------- replies out of events


WHOLE = {
    "text in deltas": (sse(event("created"), added(message()), delta("Hel"), delta("lo"), completed()), reply("Hello")),
    "[DONE] after the end": (sse(delta("a"), completed(), DONE), reply("a")),
    "text that only a done event holds": (
        sse(event("output_text.done", output_index=0, content_index=0, text="a"), completed()),
        reply("a"),
    ),
    "text that only the item holds": (sse(done(message("a", "b")), completed()), reply("ab")),
    "text that only the end holds": (sse(completed(message("a"))), reply("a")),
    "deltas, and the whole again and again": (
        sse(
            delta("a"),
            delta("b"),
            event("output_text.done", output_index=0, content_index=0, text="ab"),
            done(message("ab")),
            completed(message("ab")),
        ),
        reply("ab"),
    ),
    "a done event says what deltas left out": (sse(delta("a"), done(message("ab")), completed()), reply("ab")),
    "a done event that says otherwise changes nothing": (sse(delta("a"), done(message("b")), completed()), reply("a")),
    "deltas without a place": (
        sse(delta("a", None), delta("b", None), done(message("ab"), 1), completed(message("ab"))),
        reply("ab"),
    ),
    "two messages are two paragraphs": (
        sse(delta("a"), done(message("a")), delta("b", 1), delta("c", 1), done(message("bc"), 1), completed()),
        reply("a\n\nbc"),
    ),
    "a refusal is text": (
        sse(event("refusal.delta", output_index=0, content_index=0, delta="No."), completed()),
        reply("No."),
    ),
    "a refusal that only the end holds": (
        sse(completed({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]})),
        reply("No."),
    ),
    "a character cut into two surrogates": (sse(delta("\ud83d"), delta("\ude00!"), completed()), reply("\U0001f600!")),
    "lone surrogates become replacement characters": (
        sse(delta("a\udc80b\ud83d"), completed()),
        reply("a\ufffdb\ufffd"),
    ),
    "summaries of reasoning are not text": (
        sse(event("reasoning_summary_text.delta", output_index=0, delta="hm"), delta("a", 1), completed()),
        reply("a"),
    ),
    "events that are not known": (
        sse({"type": "keepalive"}, event("odd.delta", delta="x"), {}, {"type": 5}, delta("a"), completed()),
        reply("a"),
    ),
    "nothing counts after the end": (
        sse(completed(), delta("a"), completed(function()), {"error": "x"}, "junk")[:-9],
        None,
    ),
    "the name stands in the event line alone": (
        (
            b'event: response.output_text.delta\ndata: {"delta":"a","output_index":0}\n\n'
            b'event: response.completed\ndata: {"response":{}}\n\n'
        ),
        reply("a"),
    ),
    "usage": (
        sse(completed(usage={"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 5}})),
        reply(usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=5)),
    ),
    "usage of wrong types": (
        sse(completed(usage={"input_tokens": "7", "output_tokens": -1, "input_tokens_details": None})),
        reply(),
    ),
    "too long": (sse(delta("a"), incomplete("max_output_tokens")), reply("a", finish_reason=FinishReason.LENGTH)),
    "filtered": (sse(incomplete("content_filter")), reply(finish_reason=FinishReason.CONTENT_FILTER)),
    "completed by the event, incomplete by the response": (
        sse(
            event(
                "completed", response=document(state="incomplete", incomplete_details={"reason": "max_output_tokens"})
            )
        ),
        reply(finish_reason=FinishReason.LENGTH),
    ),
    "one document": (json.dumps(document(message("a"), function())).encode(), reply("a", bash())),
    "one document that is too long": (
        json.dumps(
            document(message("a"), state="incomplete", incomplete_details={"reason": "max_output_tokens"})
        ).encode(),
        reply("a", finish_reason=FinishReason.LENGTH),
    ),
}
WHOLE["nothing counts after the end"] = (sse(completed(), delta("a"), completed(function())), reply())

CALLS: dict[str, tuple[bytes, ModelResponse]] = {
    "a call in pieces": (
        sse(
            added(function(arguments="")),
            piece('{"a"'),
            piece(":1}"),
            pieces_done('{"a":1}'),
            done(function()),
            completed(),
        ),
        reply("", bash()),
    ),
    "deltas alone": (sse(added(function(arguments="")), piece('{"a":'), piece("1}"), completed()), reply("", bash())),
    "the item's end alone": (sse(done(function()), completed()), reply("", bash())),
    "the response's end alone": (sse(completed(function())), reply("", bash())),
    "the item's beginning alone": (sse(added(function()), completed()), reply("", bash())),
    "a beginning with arguments that the deltas repeat": (
        sse(added(function()), piece('{"a"'), piece(":1}"), completed()),
        reply("", bash()),
    ),
    "a whole that says otherwise wins over the deltas": (
        sse(added(function(arguments="")), piece('{"a":2'), pieces_done('{"a":1}'), completed()),
        reply("", bash()),
    ),
    "the item wins over the done event": (
        sse(added(function(arguments="")), pieces_done('{"a":2}'), done(function()), completed()),
        reply("", bash()),
    ),
    "the response wins over the item": (
        sse(done(function(arguments='{"a":2}')), completed(function())),
        reply("", bash()),
    ),
    "an end without arguments states none": (
        sse(
            added(function(arguments="")),
            piece('{"a":1}'),
            pieces_done(""),
            done(function(arguments=None)),
            completed(),
        ),
        reply("", bash()),
    ),
    "a response without arguments states none": (
        sse(added(function(arguments="")), piece('{"a":1}'), completed(function(arguments=""))),
        reply("", bash()),
    ),
    "arguments as an object": (sse(done(function(arguments={"a": 1})), completed()), reply("", bash('{"a": 1}'))),
    "no arguments at all": (sse(done(function(arguments=None)), completed()), reply("", bash(""))),
    "two calls interleaved, in the order of their places": (
        sse(
            added(function("c2", "", "two"), 1),
            added(function("c1", ""), 0),
            piece('{"b"', 1),
            piece('{"a"'),
            piece(":2}", 1),
            piece(":1}"),
            completed(),
        ),
        reply("", bash(), bash('{"b":2}', "c2", "two")),
    ),
    "every call at the same place": (
        sse(
            added(function("c1", "", id="f1")),
            piece('{"a":1}', item_id="f1"),
            added(function("c2", "", "two", id="f2")),
            piece('{"b":2}', item_id="f2"),
            done(function("c1", id="f1")),
            completed(),
        ),
        reply("", bash(), bash('{"b":2}', "c2", "two")),
    ),
    "no places, only ids": (
        sse(
            added(function("c1", "", id="f1"), None),
            added(function("c2", "", "two", id="f2"), None),
            piece('{"b":2}', None, item_id="f2"),
            piece('{"a":1}', None, item_id="f1"),
            completed(),
        ),
        reply("", bash(), bash('{"b":2}', "c2", "two")),
    ),
    "another item id in every event": (
        sse(
            added(function("c1", "", id="x1")),
            piece('{"a"', item_id="x2"),
            piece(":1}", item_id="x3"),
            done(function(id="x4")),
            completed(function(id="x5")),
        ),
        reply("", bash()),
    ),
    "one item id for all": (
        sse(
            added(function("c1", "", id="x"), 0),
            added(function("c2", "", "two", id="x"), 1),
            piece('{"a":1}', 0, item_id="x"),
            piece('{"b":2}', 1, item_id="x"),
            completed(),
        ),
        reply("", bash(), bash('{"b":2}', "c2", "two")),
    ),
    "the same event twice": (
        sse(
            added(function(arguments="")),
            added(function(arguments="")),
            done(function()),
            done(function()),
            completed(),
        ),
        reply("", bash()),
    ),
    "the response's calls are the calls": (
        sse(done(function("c9", "{}"), 1), completed(message("x"), function())),
        reply("x", bash()),
    ),
    "an empty output leaves the streamed calls": (sse(done(function()), completed()), reply("", bash())),
    "no id": (
        sse(completed(function(None), function("", "{}"))),
        reply("", bash(call_id="call_1"), bash("{}", "call_2")),
    ),
    "the same call twice": (sse(completed(function(), function())), reply("", bash())),
    "the same call twice, at two places": (sse(done(function()), done(function(), 1), completed()), reply("", bash())),
    "a beginning that comes again without an id": (
        sse(added(function(None, "")), added(function(None, "")), piece('{"a":1}'), completed()),
        reply("", bash(call_id="call_1")),
    ),
    "no id in the end of all, and a call of each name": (
        sse(
            added(function(None, "", id="f1")),
            piece('{"a":1}'),
            added(function(None, "", "two", id="f2"), 1),
            piece('{"b":2}', 1),
            completed(function(None, "", id="f1"), function(None, "", "two", id="f2")),
        ),
        reply("", bash(call_id="call_1"), bash('{"b":2}', "call_2", "two")),
    ),
    "two calls at one place, of which the second has no arguments yet": (
        sse(
            added(function(None, "", id="f1")),
            piece('{"a":1}', item_id="f1"),
            added(function(None, "", "two", id="f2")),
            completed(),
        ),
        reply("", bash(call_id="call_1"), bash("", "call_2", "two")),
    ),
    "two calls without places and ids": (
        sse(
            added(function(None, ""), None),
            piece('{"a":1}', None),
            added(function(None, "", "two"), None),
            piece('{"b":2}', None),
            completed(),
        ),
        reply("", bash(call_id="call_1"), bash('{"b":2}', "call_2", "two")),
    ),
    "a status that says nothing": (
        sse(completed(function(status=None), function("c2", status=""))),
        reply("", bash(), bash(call_id="c2")),
    ),
    "a call that began and was not said to end": (
        sse(added(function(arguments="", status="in_progress")), piece('{"a":1}'), completed()),
        reply("", bash()),
    ),
    "no reason why it should be incomplete": (
        sse(completed(function(), incomplete_details={"reason": None})),
        reply("", bash()),
    ),
    "one call id for two calls: the second gets its own": (
        sse(completed(function(), function(arguments='{"a":2}'))),
        reply("", bash(), bash('{"a":2}', call_id="call_1")),
    ),
    "completed again after the end": (sse(completed(function()), completed(function())), reply("", bash())),
    "the response begins twice under one id": (
        sse(*[event("created", response={"id": "r1"})] * 2, completed(function(), id="other")),
        reply("", bash()),
    ),
    "arguments of a call that never began": (
        sse(piece('{"a":1}'), completed()),
        reply("", bash(call_id="call_1", name="")),
    ),
    "nothing but an empty delta": (sse(piece(""), completed()), reply()),
    "what the server runs itself is no call of ours": (
        sse(
            done({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}}),
            done({"type": "mcp_call", "name": "bash", "arguments": "{}", "call_id": "c9"}, 1),
            done({"type": "code_interpreter_call", "code": "x", "call_id": "c8"}, 2),
            done({"type": "computer_call", "call_id": "c7", "action": {}}, 3),
            done({"type": "custom_tool_call", "name": "bash", "input": "ls", "call_id": "c6"}, 4),
            event("mcp_call_arguments.delta", output_index=1, delta="{}"),
            delta("a", 5),
            completed({"type": "mcp_call", "name": "bash", "arguments": "{}"}, {"type": "new_kind", "call_id": "c5"}),
        ),
        reply("a"),
    ),
    "calls of a reply that is too long": (
        sse(done(function()), incomplete("max_output_tokens")),
        reply("", bash(), finish_reason=FinishReason.LENGTH),
    ),
    "items that are no objects": (sse(added(None), done("x", 1), completed(None, 5, function())), reply("", bash())),
}


@all_rows(("wire", "expected"), [*WHOLE.values(), *CALLS.values()], ids=[*WHOLE, *CALLS])
def test_events_become_one_reply_wherever_they_are_cut(wire: bytes, expected: ModelResponse) -> None:
    assert read(wire) == (expected.text, expected)
    assert read(*(wire[i : i + 1] for i in range(len(wire)))) == (expected.text, expected)
    for cut in range(1, len(wire), 7):
        assert read(wire[:cut], wire[cut:]) == (expected.text, expected)


FAILED = {
    "no end": (sse(delta("a"), done(function(), 1)), CutReply, ModelFault.REPLY, "cut off"),
    "[DONE] alone is no end": (
        sse(delta("a"), done(function(), 1), DONE),
        CutReply,
        ModelFault.REPLY,
        "never marked as completed",
    ),
    "broken off for another reason": (sse(incomplete("odd")), CutReply, ModelFault.SERVER, "finish reason 'odd'"),
    "broken off for no reason": (
        sse(event("incomplete", response={})),
        CutReply,
        ModelFault.SERVER,
        "finish reason 'incomplete'",
    ),
    "cancelled": (sse(event("cancelled", response={})), CutReply, ModelFault.SERVER, "'cancelled'"),
    "a call that is incomplete in a reply that is completed": (
        sse(completed(function(arguments='{"a":1', status="incomplete"))),
        CutReply,
        ModelFault.SERVER,
        "a call that is incomplete",
    ),
    "a document that is still running": (
        json.dumps(document(function(), state="in_progress")).encode(),
        CutReply,
        ModelFault.REPLY,
        "never marked as completed",
    ),
    "a document without a status": (
        json.dumps({"object": "response", "output": [function()]}).encode(),
        CutReply,
        ModelFault.REPLY,
        "never marked as completed",
    ),
    "failed": (
        sse(event("failed", response={"error": {"code": "server_error", "message": f"Sorry, {KEY}."}})),
        ModelError,
        ModelFault.SERVER,
        "broke the reply off: Sorry, [key].",
    ),
    "failed for its length": (
        sse(event("failed", response={"error": {"code": "context_length_exceeded", "message": "long"}})),
        ModelError,
        ModelFault.CONTEXT,
        "long",
    ),
    "failed for what it said": (
        sse(event("failed", response={"error": {"code": "invalid_prompt", "message": "no"}})),
        ModelError,
        ModelFault.CONTENT,
        "no",
    ),
    "failed without a reason": (sse(event("failed")), ModelError, ModelFault.SERVER, "it gave no reason"),
    "completed by the event, failed by the response": (
        sse(event("completed", response=document(function(), state="failed"))),
        ModelError,
        ModelFault.SERVER,
        "it gave no reason",
    ),
    **{
        f"completed by the event, {state} by the response": (
            sse(event("completed", response=document(function(), state=state))),
            CutReply,
            ModelFault.SERVER,
            f"'{state}'",
        )
        for state in ("in_progress", "queued", "expired", "cancelled")
    },
    **{
        f"a call that is {state} in a reply that is completed": (
            sse(completed(function(status=state))),
            CutReply,
            ModelFault.SERVER,
            "a call that is",
        )
        for state in ("in_progress", "failed", "expired")
    },
    "a call that ended incomplete, and an output without it": (
        sse(done(function(status="incomplete")), completed()),
        CutReply,
        ModelFault.SERVER,
        "a call that is incomplete",
    ),
    "completed, with a reason why it is incomplete": (
        sse(completed(function(), incomplete_details={"reason": "odd"})),
        CutReply,
        ModelFault.SERVER,
        "'odd'",
    ),
    "incomplete after it was completed": (
        sse(completed(function()), incomplete("max_output_tokens", function())),
        CutReply,
        ModelFault.SERVER,
        "'incomplete'",
    ),
    "failed after it was completed": (
        sse(completed(function()), event("failed", response={})),
        CutReply,
        ModelFault.SERVER,
        "'failed'",
    ),
    "an error after it was completed": (
        sse(completed(function()), {"type": "error", "message": "boom"}),
        CutReply,
        ModelFault.SERVER,
        "'error'",
    ),
    "a call goes on after the end": (
        sse(added(function(arguments="")), piece('{"a":1}'), completed(), piece(" ")),
        CutReply,
        ModelFault.SERVER,
        "went on",
    ),
    "a call begins after the end": (
        sse(completed(), added(function())),
        CutReply,
        ModelFault.SERVER,
        "went on",
    ),
    "one call id under two names": (
        sse(added(function(arguments="")), piece('{"a":1}'), done(function(arguments="", name="two")), completed()),
        CutReply,
        ModelFault.SERVER,
        "two calls with one id",
    ),
    "two responses in one stream": (
        sse(
            event("created", response={"id": "r1"}),
            done(function()),
            event("created", response={"id": "r2"}),
            done(function("c2"), 1),
            completed(),
        ),
        CutReply,
        ModelFault.SERVER,
        "two responses",
    ),
    "an end that states no arguments of a call that nobody knows": (
        sse(added(function(None, "")), piece('{"a":1}'), completed(message("x"), function("c7", ""))),
        CutReply,
        ModelFault.SERVER,
        "arguments",
    ),
    "a long reason with the key in it": (
        sse(incomplete(f"{KEY[:9]}\u200b{KEY[9:]} {KEY} " + "A" * 100_000)),
        CutReply,
        ModelFault.SERVER,
        "[key] [key] AAA",
    ),
    "an error event": (
        sse(delta("a"), {"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}),
        ModelError,
        ModelFault.SERVER,
        "slow",
    ),
}


@all_rows(("wire", "kind", "fault", "said"), FAILED)
def test_unfinished_response_is_an_error(wire: bytes, kind: type[ModelError], fault: ModelFault, said: str) -> None:
    with pytest.raises(ModelError) as raised:
        read(wire)
    assert (isinstance(raised.value, CutReply), raised.value.fault) == (kind is CutReply, fault)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 500


THREE = [function(f"c{number}") for number in range(3)]
TOO_MUCH = {
    "calls that begin": (sse(*(added(item, place) for place, item in enumerate(THREE))), "more than 2 tool calls"),
    "calls that end": (sse(*(done(item, place) for place, item in enumerate(THREE))), "more than 2 tool calls"),
    "calls at the end of all": (sse(completed(*THREE)), "more than 2 tool calls"),
    "calls that never began": (sse(*(piece("{", place) for place in range(3))), "more than 2 tool calls"),
    "arguments in pieces": (sse(added(function(arguments="")), *[piece("12345")] * 5), "more than 20 characters"),
    "arguments stated": (sse(added(function(arguments="")), pieces_done("1" * 21)), "more than 20 characters"),
    "arguments of an item": (sse(done(function(arguments="1" * 21))), "more than 20 characters"),
    "arguments at the end of all": (sse(completed(function(arguments="1" * 21))), "more than 20 characters"),
}


@all_rows(("wire", "said"), TOO_MUCH)
def test_more_than_the_bounds_is_dropped(wire: bytes, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read(wire, bounds=ReplyBounds(calls=2, argument_characters=20))


def test_as_much_as_the_bounds_is_taken() -> None:
    bounds = ReplyBounds(calls=2, argument_characters=20)
    assert len(read(sse(completed(*THREE[:2])), bounds=bounds)[1].tool_calls) == 2
    assert (
        read(sse(done(function(arguments="1" * 20)), completed()), bounds=bounds)[1].tool_calls[0].arguments == "1" * 20
    )


def test_responses_call_left_in_the_text_is_an_error() -> None:
    wire = sse(delta('<tool_call>\n{"name": "bash", "arguments": {}}'), completed())
    tool = ToolSpec(name="bash", description="", parameters={})
    with FaultServer([whole(wire), whole(wire)]) as server:
        ask = Asking(server.url)
        assert ask(GO).text.startswith("<tool_call>")  # no tool of that name was offered
        with pytest.raises(ModelError, match=r"^The model called bash, but its server left the call in the text"):
            ask.model.complete([GO], [tool], on_text=ask.text.append, on_retry=lambda _: None)
        ask.model.close()


def test_ids_of_earlier_calls_are_not_given_again() -> None:
    given_calls = (function("c1"), function(None, "{}"))
    made = read(sse(completed(*given_calls)), taken=frozenset(("c1", "call_1")))[1].tool_calls
    assert [made_call.id for made_call in made] == ["call_2", "call_3"]


# ------------------------------------------------------------------------------------------------- any order, any cut


def scripted(text: str, calls: Sequence[ToolCall]) -> list[bytes]:
    answer = Reply(text=text, calls=tuple(calls))
    return [f"event: {name}\ndata: {data}\n\n".encode() for name, data in response_events(answer, {"model": "m"}, 3)]


CALL_TEXTS = st.lists(
    st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3).map(json.dumps), max_size=4
)


@settings(deadline=None, max_examples=examples(60))
@given(text=st.text(max_size=40), arguments=CALL_TEXTS, seed=st.integers(0, 2**32), data=st.data())
def test_a_stream_cut_doubled_or_shuffled_gives_the_same_calls_or_none(
    text: str, arguments: list[str], seed: int, data: st.DataObject
) -> None:
    calls = tuple(bash(given_text, f"c{number}") for number, given_text in enumerate(arguments))
    events = scripted(text.encode(errors="ignore").decode(), calls)
    expected = read(b"".join(events))[1].tool_calls
    assert expected == calls
    stream = b"".join(events)
    cut = data.draw(st.integers(0, len(stream)))
    kept = outcome(stream[:cut])
    end = len(stream) - len(events[-1].split(b"\n", 1)[1])
    if isinstance(kept[0], str):  # type: ignore[index]
        assert cut > end
        assert kept[1].tool_calls == calls  # type: ignore[index]
    middle = [*events[1:-1], *(value for value in events[1:-1] if hash((seed, value)) % 3 == 0)]
    random.Random(seed).shuffle(middle)
    assert read(b"".join((events[0], *middle, events[-1])))[1].tool_calls == calls


# ------------------------------------------------------------------------------------------------------- the requests


ASKED = Message(role=Role.ASSISTANT, content="", tool_calls=(bash(),))
RESULT = Message(role=Role.TOOL, content="out", tool_call_id="c1")
USER_ITEM = {"type": "message", "role": "user", "content": "go"}
CALL_ITEM = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"a":1}'}
RESULT_ITEM = {"type": "function_call_output", "call_id": "c1", "output": "out"}
SAID_ITEM = {"type": "message", "role": "assistant", "content": "a"}


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def assistant(text: str = "", *calls: ToolCall, echo: object = None) -> Message:
    told = "" if echo is None else echo if isinstance(echo, str) else json.dumps(echo)
    return Message(role=Role.ASSISTANT, content=text, tool_calls=calls, echo=told)


INPUTS: dict[str, tuple[Sequence[Message], list[object]]] = {
    "a question": ([GO], [USER_ITEM]),
    "a call and its result": ([GO, ASKED, RESULT], [USER_ITEM, CALL_ITEM, RESULT_ITEM]),
    "text before the calls": ([assistant("a", bash())], [SAID_ITEM, CALL_ITEM]),
    "user messages in a row are one": ([user("a"), user("b"), GO], [{**USER_ITEM, "content": "a\n\nb\n\ngo"}]),
    "empty assistant messages are left out": (
        [user("a"), assistant(), GO, assistant()],
        [{**USER_ITEM, "content": "a\n\ngo"}],
    ),
    "a system message that is not the first": (
        [GO, Message(role=Role.SYSTEM, content="s")],
        [USER_ITEM, {**USER_ITEM, "role": "system", "content": "s"}],
    ),
    "a name that the API refuses": (
        [assistant("", bash(name="functions.bash"))],
        [{**CALL_ITEM, "name": "functions_bash"}],
    ),
    "no name": ([assistant("", bash(name=""))], [{**CALL_ITEM, "name": "unknown"}]),
    "a lone surrogate in arguments goes back as it came": (
        [assistant("", bash('{"a":"\ud800"}'))],
        [{**CALL_ITEM, "arguments": '{"a":"\ud800"}'}],
    ),
    "arguments that are no object are wrapped": (
        [assistant("", bash("[1]"), bash("{", "c2"))],
        [
            {**CALL_ITEM, "arguments": '{"invalid_arguments":"[1]"}'},
            {**CALL_ITEM, "call_id": "c2", "arguments": '{"invalid_arguments":"{"}'},
        ],
    ),
    "no arguments are an empty object": ([assistant("", bash(""))], [{**CALL_ITEM, "arguments": "{}"}]),
    "a lone surrogate in text does not": ([user("a\ud800")], [{**USER_ITEM, "content": "a\ufffd"}]),
    "reasoning before what it led to": (
        [assistant("a", bash(), echo=[[0, {"n": 1}], [1, {"n": 2}], [1, {"n": 3}]])],
        [{"n": 1}, SAID_ITEM, {"n": 2}, {"n": 3}, CALL_ITEM],
    ),
    "reasoning whose text is gone": (
        [assistant("", bash(), echo=[[0, {"n": 1}], [1, {"n": 2}]])],
        [{"n": 1}, {"n": 2}, CALL_ITEM],
    ),
    "reasoning whose call is gone": ([assistant("a", echo=[[1, {"n": 1}]])], [SAID_ITEM]),
    "what another adapter wants back": ([assistant("a", echo='{"reasoning_content":"x"}')], [SAID_ITEM]),
    "an echo that is no JSON": ([assistant("a", echo="[[0,")], [SAID_ITEM]),
    "an echo of another shape": ([assistant("a", echo='[["x",{}],[0],[0,5],5]')], [SAID_ITEM]),
}


@all_rows(("messages", "items"), INPUTS)
def test_messages_become_items(messages: Sequence[Message], items: list[object]) -> None:
    assert json.loads(ResponsesDialect("m", Endpoint()).request(messages, ()))["input"] == items


@all_rows("call_id", ["a b", "x" * 65, "", "a.b", "\ud800"])
def test_an_id_that_the_api_refuses_is_another_one_in_call_and_result(call_id: str) -> None:
    history = [assistant("", bash(call_id=call_id)), replace(RESULT, tool_call_id=call_id)]
    sent = json.loads(ResponsesDialect("m", Endpoint()).request(history, ()))["input"]
    assert sent[0]["call_id"] == sent[1]["call_id"]
    assert sent[0]["call_id"].startswith("call_")
    assert len(sent[0]["call_id"]) <= 64


def test_responses_body_contains_the_request() -> None:
    tool = ToolSpec(name="bash", description="Run.", parameters={"type": "object"})
    history = [Message(role=Role.SYSTEM, content="s\ud800"), GO]
    assert json.loads(ResponsesDialect("m", Endpoint()).request(history, [tool])) == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "s\ufffd",
        "tools": [
            {
                "type": "function",
                "name": "bash",
                "description": "Run.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "input": [USER_ITEM],
    }
    plain = ResponsesDialect("m", Endpoint(quirks=Quirks(stream=False, encrypted_reasoning=False))).request([GO], ())
    assert json.loads(plain) == {"model": "m", "stream": False, "store": False, "input": [USER_ITEM]}


STEPS = st.sampled_from(
    [GO, user("b"), assistant(), assistant("a"), assistant("a", bash(), echo=[[1, {"n": 1}]]), RESULT, replace(GO)]
)
SYSTEMS = st.sampled_from([(), (Message(role=Role.SYSTEM, content="s"),), (Message(role=Role.SYSTEM, content=""),)])


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.tuples(SYSTEMS, st.integers(0, 8), st.lists(STEPS, max_size=4)), max_size=6))
def test_a_body_depends_on_the_messages_alone(
    turns: list[tuple[tuple[Message, ...], int, list[Message]]],
) -> None:
    grown, history = ResponsesDialect("m", Endpoint()), list[Message]()
    for system, kept, further in turns:
        history = [*history[:kept], *further]
        fresh = ResponsesDialect("m", Endpoint())
        assert grown.request([*system, *history], ()) == fresh.request([*system, *history], ())
        assert grown.call_ids == fresh.call_ids


# ------------------------------------------------------------------------------------------------------ over the wire


class Asking:
    """An adapter at a server, with what it reported."""

    def __init__(self, url: str, **more: Any) -> None:
        self.slept: list[float] = []
        self.text: list[str] = []
        endpoint = Endpoint(base_url=url, api_key=KEY, **more)
        self.model = OpenAIResponses("m", endpoint, sleep=self.slept.append, jitter=lambda: 0.0)

    def __call__(self, *messages: Message, seconds: float | None = None) -> ModelResponse:
        with closing(self.model):
            return self.model.complete(messages, (), on_text=self.text.append, on_retry=lambda _: None, seconds=seconds)


LONG = "Zeile für Zeile \U0001f600\n" * 40


@all_rows("stream", [True, False])
@all_rows("fragment", [1, 7, 100_000])
def test_responses_conversation_survives_a_round_trip(fragment: int, stream: bool) -> None:
    written = Reply(
        text=LONG,
        calls=(call("write_file", path="a", content=LONG), call("bash", command='"\\')),
        usage=Usage(input_tokens=5, output_tokens=6, cached_tokens=4),
    )
    player = Player(replies(written, Reply(text="cut", finish_reason="length"), say("")))
    with ServerOfBothApis(player, fragment=fragment) as server:
        ask = Asking(server.base_url, quirks=Quirks(stream=stream))
        response = ask(Message(role=Role.SYSTEM, content="s"), GO)
        history = [
            GO,
            assistant(response.text, *response.tool_calls),
            *(Message(role=Role.TOOL, content="ok", tool_call_id=made.id) for made in response.tool_calls),
        ]
        second = ask(*history)
        third = ask(*history, GO)
    calls = tuple(replace(made, id=f"call_{number}") for number, made in enumerate(written.calls, 1))
    assert response == reply(LONG, *calls, usage=written.usage)
    assert "".join(ask.text) == LONG + "cut"
    usage = Usage(input_tokens=200, output_tokens=20)
    assert second == reply("cut", finish_reason=FinishReason.LENGTH, usage=usage)
    assert third == reply("", usage=usage)
    assert [asked["messages"][0]["role"] for asked in player.requests] == ["system", "user", "user"]  # type: ignore[index,call-overload]


def reasoned(*output: object) -> Answer:
    return whole(sse(*(done(item, place) for place, item in enumerate(output)), completed()))


def test_reasoning_is_sent_back_before_its_call() -> None:
    second = {**ENCRYPTED, "id": "rs_2", "status": "completed", "content": None}
    plain = {"type": "reasoning", "id": "rs_3", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    mere = {"type": "reasoning", "id": "rs_4", "summary": []}
    first = reasoned(ENCRYPTED, message("a"), second, function(), plain, mere, function("c2", "{}"), ENCRYPTED)
    with FaultServer([first, whole(sse(completed()))]) as server:
        ask = Asking(server.url)
        response = ask(GO)
        echoed = assistant(response.text, *response.tool_calls, echo=response.echo)
        results = (RESULT, replace(RESULT, tool_call_id="c2"))
        ask(GO, echoed, *results)
        sent = server.requests[1].json["input"]
    assert sent == [
        USER_ITEM,
        ENCRYPTED,
        SAID_ITEM,
        {**ENCRYPTED, "id": "rs_2"},
        CALL_ITEM,
        plain,
        {**CALL_ITEM, "call_id": "c2", "arguments": "{}"},
        RESULT_ITEM,
        {**RESULT_ITEM, "call_id": "c2"},
    ]


def test_reasoning_of_an_unfinished_reply_is_not_sent_back() -> None:
    wire = sse(done(ENCRYPTED), done(function(), 1), incomplete("max_output_tokens"))
    assert read(wire)[1].echo == ""


REFUSALS = {
    "the field is not known": (400, {"error": {"message": "Unknown parameter: 'include'.", "param": "include"}}),
    "the model has none": (400, {"error": {"message": "Encrypted content is not supported with this model."}}),
    "a validator's words": (422, {"detail": [{"loc": ["body", "include"], "msg": "extra fields not permitted"}]}),
}


@all_rows(("code", "body"), REFUSALS)
def test_a_server_that_has_no_encrypted_reasoning_is_asked_once_only(code: int, body: object) -> None:
    fine = whole(sse(delta("a"), completed()))
    with FaultServer([status(code, body), fine, fine]) as server:
        ask = Asking(server.url)
        assert [ask(GO).text, ask(GO).text] == ["a", "a"]
        assert ["include" in request.json for request in server.requests] == [True, False, False]
    assert ask.slept == []


def test_server_without_streams_is_asked_for_complete_replies() -> None:
    document = whole(json.dumps(completed()["response"]).encode(), kind="application/json")
    refused = status(400, {"error": {"message": "Streaming is not supported for this model."}})
    with FaultServer([refused, document, document]) as server:
        ask = Asking(server.url)
        assert [ask(GO).text, ask(GO).text] == ["", ""]
        assert [request.json["stream"] for request in server.requests] == [True, False, False]
    assert (ask.slept, ask.model.quirks) == ([], Quirks(stream=False))


REASONING_REFUSALS = {
    "of another account": (
        400,
        {
            "error": {
                "message": "The encrypted content gAAA could not be verified.",
                "code": "invalid_encrypted_content",
            }
        },
    ),
    "of another account, said inside of the answer": (
        200,
        {"error": {"message": "The encrypted content gAAA could not be verified.", "code": "bad_request"}},
    ),
    "a reference to nothing": (404, {"error": {"message": "Item with id 'rs_1' not found."}}),
    "a type that is not known": (422, {"detail": "input[1].type: 'reasoning' is not a valid type"}),
}


@all_rows(("code", "body"), REASONING_REFUSALS)
def test_refused_reasoning_is_left_out_but_later_reasoning_is_sent(code: int, body: object) -> None:
    old = assistant("", bash(), echo=[[1, {"type": "reasoning", "id": "rs_1"}]])
    new = assistant("", bash(call_id="c2"), echo=[[1, {"type": "reasoning", "id": "rs_2"}]])
    fine = whole(sse(delta("a"), completed()))
    with FaultServer([status(code, body), fine, fine]) as server:
        ask = Asking(server.url)
        ask(GO, old, RESULT)
        ask(GO, old, RESULT, new, replace(RESULT, tool_call_id="c2"))
        sent = [[item.get("id") for item in request.json["input"] if "id" in item] for request in server.requests]
        assert all("include" in request.json for request in server.requests)
    assert sent == [["rs_1"], [], ["rs_2"]]


def test_a_refusal_of_reasoning_that_was_not_sent_ends_the_request() -> None:
    refused = status(400, {"error": {"message": "reasoning_effort is not for this model"}})
    with FaultServer([refused]) as server, pytest.raises(ModelError, match="reasoning_effort"):
        Asking(server.url)(GO)
    assert len(server.requests) == 1


def test_a_field_that_only_the_error_s_details_name_is_learned_too() -> None:
    body = {"error": {"message": "Unsupported.", "param": "include", "code": "unsupported_value"}}
    with FaultServer([status(400, body), whole(sse(completed()))]) as server:
        Asking(server.url)(GO)
        assert ["include" in request.json for request in server.requests] == [True, False]


@all_rows(
    ("answers", "requests"),
    [
        pytest.param([status(400, {"error": {"message": "no tools here"}})], 1, id="another refusal"),
        pytest.param([status(400, {"error": {"message": "include?"}})] * 2, 2, id="it was not that after all"),
        pytest.param([status(401, {"error": {"message": "include a key"}})], 1, id="a key that is refused"),
    ],
)
def test_other_refusals_change_no_settings(answers: list[Answer], requests: int) -> None:
    with FaultServer(answers) as server, pytest.raises(ModelError, match=r"HTTP 4"):
        Asking(server.url)(GO)
    assert len(server.requests) == requests


def test_a_hole_in_the_history_is_refused() -> None:
    with ServerOfBothApis(Player(replies(say("fine")))) as server, pytest.raises(ModelError) as raised:
        Asking(server.base_url)(GO, ASKED, GO)
    assert "messages[2]: the call c1 has no result directly after it" in str(raised.value)

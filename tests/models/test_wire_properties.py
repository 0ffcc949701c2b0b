"""What holds of any stream, however its bytes and events are treated: the same message, or no run at all.

Treated are the events of a random valid reply: sliced, cut, repeated, put in another order. What is promised:

- Sliced at random: the same message, and it is the one that was sent.
- Cut anywhere: before the finish reason an error, after it the same message; or, for chat completions with calls that end
  within a later event, an error.
- Repeated or out of order, every call whole in one event: what would run was sent, and no more often than it was sent;
  or an error.
- Repeated or out of order, calls in pieces: never a call by a name that was not sent. Chat completions number nothing,
  so that a piece of arguments that comes twice cannot be told from a model that wrote it twice; TCP and TLS keep the
  order, and the finish reason tells a loss at the end; what comes after it, or after a finish reason `length`, is not
  run. The Responses API states every call as a whole after its pieces:
  there the message is the same, or there is none.

`[DONE]` stays where it is: several servers send it and no finish reason, so that what comes behind it, be it a finish
reason `length`, counts no more.

`HARNESS_EXAMPLES=10000 pytest tests/models/test_wire_properties.py` tries so many examples of each; HARNESS_FULL 150.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from enum import Enum

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sizes import examples

from harness.errors import CutReply, ModelError, ToolError
from harness.gate.arguments import parse_arguments
from harness.messages import FinishReason, ModelResponse
from harness.model import ToolSpec
from harness.models.chat_reply import ChatReply
from harness.models.messages_reply import MessagesReply
from harness.models.reply_body import ReplyBody
from harness.models.responses_reply import ResponsesReply
from harness.record import Record

SPEC = ToolSpec(
    name="any",
    description="",
    parameters={"properties": {"do": {"type": "string"}, "n": {"type": "integer"}}, "required": ["do"]},
)
trial = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


class Api(Enum):
    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"


class SentCall(Record):
    id: str
    name: str
    pieces: tuple[str, ...]

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class Sent(Record):
    """What a server means to say."""

    texts: tuple[str, ...]
    reasoning: str
    calls: tuple[SentCall, ...]
    length: bool
    interleaved: bool
    done: bool

    @property
    def finish(self) -> FinishReason:
        if self.length:
            return FinishReason.LENGTH
        answers = bool(self.calls) or bool("".join(self.texts).strip())
        return FinishReason.REASONING if self.reasoning and not answers else FinishReason.DONE

    @property
    def runs(self) -> Counter[str]:
        return Counter(f"{call.name} {call.arguments}" for call in self.calls if not self.length)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@st.composite
def _call(draw: st.DrawFn, number: int, *, whole: bool) -> SentCall:
    value: dict[str, object] = {"do": f"{number} {draw(WORDS)}"}
    if draw(st.booleans()):
        value["n"] = draw(st.integers(-9, 9))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    cuts = [] if whole else sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    pieces = tuple(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    return SentCall(id=f"call_{number}x", name=draw(st.sampled_from(["work", "ask"])), pieces=pieces)


@st.composite
def _sent(draw: st.DrawFn, *, whole: bool = False) -> Sent:
    return Sent(
        texts=tuple(draw(st.lists(WORDS, max_size=3))),
        reasoning=draw(WORDS),
        calls=tuple(draw(_call(number, whole=whole)) for number in range(draw(st.integers(0, 3)))),
        length=draw(st.sampled_from([False, False, False, True])),
        interleaved=draw(st.booleans()),
        done=draw(st.booleans()),
    )


def chat_events(sent: Sent) -> tuple[list[object], int]:
    """Return the events of chat completions, and which of them is the end of the reply."""
    deltas: list[object] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": sent.reasoning}] * bool(sent.reasoning)
    deltas += [{"content": text} for text in sent.texts]
    fragments = []
    for index, call in enumerate(sent.calls):
        first: dict[str, object] = {"index": index, "id": call.id, "type": "function"}
        first["function"] = {"name": call.name, "arguments": call.pieces[0]}
        rest = [{"index": index, "function": {"arguments": piece}} for piece in call.pieces[1:]]
        fragments.append([first, *rest])
    if sent.interleaved:  # one piece of each in turn
        longest = max((len(own) for own in fragments), default=0)
        fragments = [[own[place] for own in fragments if place < len(own)] for place in range(longest)]
    deltas += [{"tool_calls": [fragment]} for own in fragments for fragment in own]
    events: list[object] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "length" if sent.length else "tool_calls" if sent.calls else "stop"
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    end = len(events) - 1
    events.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    return [*events, *["[DONE]"] * sent.done], end


def responses_events(sent: Sent) -> tuple[list[object], int]:
    """Return the events of the Responses API, and which of them is the end of the reply."""
    events: list[dict[str, object]] = [{"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}]
    output: list[object] = []
    if sent.reasoning:
        output.append({"type": "reasoning", "id": "rs0", "summary": [], "encrypted_content": sent.reasoning})
        events.append({"type": "response.output_item.done", "output_index": 0, "item": output[-1]})
    if sent.texts:
        at = len(output)
        place = {"output_index": at, "item_id": "m0", "content_index": 0}
        message = {"type": "message", "id": "m0", "role": "assistant"}
        text = "".join(sent.texts)
        events.append({"type": "response.output_item.added", "output_index": at, "item": {**message, "content": []}})
        events += [{"type": "response.output_text.delta", **place, "delta": piece} for piece in sent.texts]
        events.append({"type": "response.output_text.done", **place, "text": text})
        output.append({**message, "status": "completed", "content": [{"type": "output_text", "text": text}]})
        events.append({"type": "response.output_item.done", "output_index": at, "item": output[-1]})
    for number, call in enumerate(sent.calls, len(output)):
        item = {"type": "function_call", "id": f"f{number}", "call_id": call.id, "name": call.name}
        place = {"output_index": number, "item_id": f"f{number}"}
        events.append({"type": "response.output_item.added", "output_index": number, "item": {**item, "arguments": ""}})
        events += [{"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in call.pieces]
        events.append({"type": "response.function_call_arguments.done", **place, "arguments": call.arguments})
        output.append({**item, "status": "completed", "arguments": call.arguments})
        events.append({"type": "response.output_item.done", "output_index": number, "item": output[-1]})
    response: dict[str, object] = {"id": "r1", "object": "response", "status": "completed", "output": output}
    response["usage"] = {"input_tokens": 3, "output_tokens": 2}
    if sent.length:
        response |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events.append({"type": f"response.{response['status']}", "response": response})
    numbered: list[object] = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return [*numbered, *["[DONE]"] * sent.done], len(numbered) - 1


def messages_events(sent: Sent) -> tuple[list[object], int]:
    """Return the events of a message, and the place of the one that says why it stopped."""
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 3, "output_tokens": 1}}}
    ]
    blocks: list[tuple[dict[str, object], str, str, Sequence[str]]] = []
    if sent.reasoning:
        thinking: dict[str, object] = {"type": "thinking", "thinking": "", "signature": ""}
        blocks.append((thinking, "thinking_delta", "thinking", (sent.reasoning,)))
    if sent.texts:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", sent.texts))
    for call in sent.calls:
        begun: dict[str, object] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((begun, "input_json_delta", "partial_json", call.pieces))
    for index, (block, kind, field, pieces) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for piece in pieces:
            delta = {"type": kind, field: piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    reason = "max_tokens" if sent.length else "tool_use" if sent.calls else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}})
    return [*events, {"type": "message_stop"}, *["[DONE]"] * sent.done], len(events) - 1


EVENTS = {Api.CHAT: chat_events, Api.RESPONSES: responses_events, Api.MESSAGES: messages_events}
ASSEMBLY = {Api.CHAT: ChatReply, Api.RESPONSES: ResponsesReply, Api.MESSAGES: MessagesReply}


def wire(event: object) -> bytes:
    named = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{named}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()


def read(api: Api, *pieces: bytes) -> tuple[str, ModelResponse]:
    """Return the text that was told while the pieces came in, and the reply. Raises ModelError, and nothing else."""
    body = ReplyBody(ASSEMBLY[api]())
    told = [text for piece in pieces for text in body.feed(piece)] + body.end()
    return "".join(told), body.response()


def runs(response: ModelResponse) -> Counter[str]:
    """Return what would run of a reply: names and argument texts that fit the schema."""
    found: Counter[str] = Counter()
    for call in response.tool_calls if response.finish_reason is FinishReason.DONE else ():
        try:
            parse_arguments(call.arguments, SPEC)
        except ToolError:
            continue
        found[f"{call.name} {call.arguments}"] += 1
    return found


def check_same(response: ModelResponse, sent: Sent) -> None:
    """The reply is the one that was sent, call for call."""
    said = [(call.id, call.name, call.arguments) for call in response.tool_calls]
    assert said == [(call.id, call.name, call.arguments) for call in sent.calls]
    assert (response.text, response.finish_reason) == ("".join(sent.texts), sent.finish)


apis = pytest.mark.parametrize("api", list(Api), ids=lambda api: api.value)


@apis
@given(sent=_sent(), data=st.data())
@trial
def test_stream_cut_anywhere_gives_the_same_reply(api: Api, sent: Sent, data: st.DataObject) -> None:
    events, _ = EVENTS[api](sent)
    comments = data.draw(st.lists(st.integers(0, len(events)), max_size=3))
    wires = [b": keep-alive\n\n" * comments.count(number) + wire(event) for number, event in enumerate(events)]
    whole = b"".join(wires)
    if data.draw(st.booleans()):
        whole = whole.replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    sliced = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    told, response = read(api, *sliced)
    check_same(response, sent)
    assert told == response.text
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 2)
    assert runs(response) == sent.runs


@apis
@given(sent=_sent(), data=st.data())
@trial
def test_cut_stream_is_a_reply_only_after_its_end(api: Api, sent: Sent, data: st.DataObject) -> None:
    events, end = EVENTS[api](sent)
    wires = [wire(event) for event in events]
    ended = len(b"".join(wires[: end + 1])) - 2  # without its line end and its blank line it is whole as well
    whole = b"".join(wires)
    near = st.integers(max(0, ended - 3), min(len(whole), ended + 3))
    cut = data.draw(st.one_of(st.integers(0, len(whole)), near))
    if cut < ended:
        with pytest.raises(ModelError):
            read(api, whole[:cut])
    else:
        try:
            _, response = read(api, whole[:cut])
        except CutReply:
            assert api is Api.CHAT
            assert sent.calls
            assert not any(whole[:cut].endswith(wire[:-2]) for wire in wires)
            return
        check_same(response, sent)


def _disturbed(data: st.DataObject, events: Sequence[object]) -> bytes:
    """Return the events with some repeated at once or later, and some moved; `[DONE]` stays last."""
    wires = [wire(event) for event in events if event != "[DONE]"]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(wires) - 1))
        other = data.draw(st.one_of(st.just(place), st.integers(0, len(wires))))
        again = data.draw(st.booleans())
        wires.insert(other, wires[place] if again else wires.pop(place))
    return b"".join(wires) + b"".join(wire(event) for event in events if event == "[DONE]")


@apis
@given(sent=_sent(whole=True), data=st.data())
@trial
def test_repeated_and_reordered_events_add_no_calls(api: Api, sent: Sent, data: st.DataObject) -> None:
    disturbed = _disturbed(data, EVENTS[api](sent)[0])
    try:
        _, response = read(api, disturbed)
    except ModelError:
        return
    assert runs(response) <= sent.runs
    ids = [call.id for call in response.tool_calls]
    assert len(ids) == len(set(ids))


@apis
@given(sent=_sent(), data=st.data())
@trial
def test_repeated_and_reordered_pieces(api: Api, sent: Sent, data: st.DataObject) -> None:
    """See the top of the module for what cannot be told apart."""
    disturbed = _disturbed(data, EVENTS[api](sent)[0])
    try:
        _, response = read(api, disturbed)
    except ModelError:
        return
    found = runs(response)
    if api is Api.RESPONSES or sent.length:
        assert found <= sent.runs
    else:
        assert {run.partition(" ")[0] for run in found} <= {call.name for call in sent.calls}


@apis
@given(sent=_sent(), junk=st.binary(max_size=30), data=st.data())
@trial
def test_stream_with_junk_raises_only_model_errors(api: Api, sent: Sent, junk: bytes, data: st.DataObject) -> None:
    whole = b"".join(wire(event) for event in EVENTS[api](sent)[0])
    start = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 30))
    told = ""
    try:
        read(api, whole[:start] + junk + whole[start + cut :])
    except ModelError as error:
        told = str(error)
    assert "\n" not in told

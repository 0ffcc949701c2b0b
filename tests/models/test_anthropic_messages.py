"""The Messages API: what requests hold, that thinking goes back as it came, marks for the cache, and what refusals teach."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from fault_server import Answer, FaultServer, whole
from messages_server import chat_form, marks
from picture_files import png
from wire_contract import MESSAGES, error, sse, stream

from harness.errors import CutReply, ModelError
from harness.messages import Attachment, FinishReason, Message, ModelResponse, Role, ToolCall, Usage
from harness.model import ToolSpec
from harness.models.anthropic_messages import AnthropicMessages, MessagesDialect
from harness.models.endpoint import Endpoint, Quirks
from harness.models.messages_reply import MessagesReply
from harness.models.reply_body import ReplyBody

if TYPE_CHECKING:
    from program import Program

TOOLS = tuple(
    ToolSpec(name=name, description="d", parameters={"type": "object", "properties": {}}) for name in ("bash", "look")
)
SYSTEM = Message(role=Role.SYSTEM, content="be careful")


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def call(call_id: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name="bash", arguments=arguments)


def result(call_id: str, text: str) -> Message:
    return Message(role=Role.TOOL, content=text, tool_call_id=call_id)


def said(text: str, *calls: ToolCall, echo: str = "") -> Message:
    return Message(role=Role.ASSISTANT, content=text, tool_calls=calls, echo=echo)


def body(*messages: Message, dialect: MessagesDialect | None = None) -> dict[str, Any]:
    asked = (dialect or MessagesDialect("claude-x", Endpoint())).request(messages, TOOLS)
    found: dict[str, Any] = json.loads(asked)
    chat_form(found)
    return found


def read(*events: dict[str, object]) -> ModelResponse:
    reply = ReplyBody(MessagesReply())
    for event in events:
        reply.feed(sse(event, str(event["type"])))
    reply.end()
    return reply.response()


def start(index: int, **block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, object]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str, **usage: int) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **({"usage": usage} if usage else {})}


def test_conversation_is_converted_to_turns_of_blocks() -> None:
    found = body(
        SYSTEM,
        user("a"),
        user("b"),
        said("I look", call("c1", '{"x":1}'), call("c2", "no json")),
        result("c1", "out"),
        result("c2", ""),
        user("and now?"),
        said(""),
        user("well?"),
    )
    assert (found["model"], found["max_tokens"], found["stream"]) == ("claude-x", 32_000, True)
    first, reply, answer = found["messages"]
    assert [block["text"] for block in first["content"]] == ["a\n\nb"]
    assert [block["type"] for block in reply["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["input"] for block in reply["content"][1:]] == [{"x": 1}, {"invalid_arguments": "no json"}]
    assert [block["type"] for block in answer["content"]] == ["tool_result", "tool_result", "text"]
    assert "content" not in answer["content"][1]
    assert answer["content"][2]["text"] == "and now?\n\nwell?"
    assert [tool["input_schema"]["type"] for tool in found["tools"]] == ["object", "object"]


def test_arguments_outside_json_are_sent_as_text() -> None:
    for text in ('{"a": 1e999}', '{"a": NaN}', "[1]", '"a"', '{"a":' * 5_000 + "1" + "}" * 5_000):
        found = body(user("a"), said("", call("c1", text)), result("c1", "x"))
        assert found["messages"][1]["content"][0]["input"] == {"invalid_arguments": text}


THOUGHT = (
    start(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="let me "),
    delta(0, "thinking_delta", thinking="see"),
    delta(0, "signature_delta", signature="s1=="),
    stop(0),
    start(1, type="text", text=""),
    delta(1, "text_delta", text="I look."),
    stop(1),
    start(2, type="redacted_thinking", data="zzz"),
    stop(2),
    start(3, type="tool_use", id="c1", name="bash", input={}),
    delta(3, "input_json_delta", partial_json='{"a"'),
    delta(3, "input_json_delta", partial_json=":1}"),
    stop(3),
    start(4, type="thinking", thinking="more", signature="s2=="),
    stop(4),
    start(5, type="tool_use", id="c2", name="look", input={}),
    stop(5),
    end("tool_use", output_tokens=5),
)


def test_thinking_is_sent_back_unchanged_and_in_order() -> None:
    reply = read(*THOUGHT)
    assert (reply.text, [made.arguments for made in reply.tool_calls]) == ("I look.", ['{"a":1}', ""])
    message = said(reply.text, *reply.tool_calls, echo=reply.echo)
    blocks = body(user("go"), message, result("c1", "x"), result("c2", "y"))["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "let me see", "signature": "s1=="}
    assert blocks[2] == {"type": "redacted_thinking", "data": "zzz"}
    assert blocks[4] == {"type": "thinking", "thinking": "more", "signature": "s2=="}
    assert [block["type"] for block in blocks] == [
        "thinking", "text", "redacted_thinking", "tool_use", "thinking", "tool_use",
    ]  # fmt: skip
    later = body(user("go"), message, result("c1", "x"), result("c2", "y"), said("ok"), user("more"))
    assert later["messages"][1]["content"] == blocks, "what a request begins with stays the same"


@pytest.mark.parametrize(
    "echo",
    [
        "[[0,{}]]",
        '{"api":"chat","reasoning":{}}',
        '{"api":"messages","parts":[{"type":"text","text":"x"}]}',
        '{"api":"messages","parts":[{"type":"thinking"},{"text":3},0]}',
        '{"api":"messages","parts":[{"type":"thinking"},{"text":6},1]}',
        '{"api":"messages","parts":[true]}',
        '{"api":"messages","parts":7}',
        '{"api":"messages"',
    ],
)
def test_an_echo_that_does_not_belong_to_the_message_is_left_out(echo: str) -> None:
    blocks = body(user("go"), said("I look", call("c1"), echo=echo), result("c1", "x"))["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use"]


def test_cache_marks_save_tokens_and_keep_earlier_messages_unchanged() -> None:
    dialect = MessagesDialect("m", Endpoint())
    history = [SYSTEM, user("go")]
    before = b""
    for number in range(20):
        asked = dialect.request(history, TOOLS)
        assert asked == MessagesDialect("m", Endpoint()).request(history, TOOLS)
        assert marks(json.loads(asked)) == (3 if number == 0 else 4)
        plain = asked.replace(b',"cache_control":{"type":"ephemeral"}', b"")
        assert plain.startswith(before.removesuffix(b"]}"))
        before = plain
        history += [said("", call(f"c{number}")), result(f"c{number}", "x" * number)]


REFUSALS: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "marks": ("messages.0.content.0.cache_control: Extra inputs are not permitted", lambda asked: marks(asked) == 0),
    "output": (
        "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m",
        lambda asked: asked["max_tokens"] == 8192,
    ),
    # vllm-project/vllm#42474, as it says it of old and of late.
    "room": (
        "max_tokens is too large: 32000. This model's maximum context length is 16384 tokens and your request has 900",
        lambda asked: asked["max_tokens"] == 4096,
    ),
    "room, of late": (
        "This model's maximum context length is 40000 tokens. However, you requested 32000 output tokens and your prompt ...",
        lambda asked: asked["max_tokens"] == 10_000,
    ),
    "thinking": ("messages.1.content.0: Invalid `signature` in `thinking` block", lambda asked: "s1" not in str(asked)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_teaches_once(name: str) -> None:
    text, fits = REFUSALS[name]
    reply = read(*THOUGHT)
    history = (user("go"), said(reply.text, *reply.tool_calls, echo=reply.echo), result("c1", "x"), result("c2", "y"))
    fine = stream(MESSAGES.start(), MESSAGES.text("fine"), MESSAGES.end())
    with FaultServer([error(400, text), fine, error(400, text)]) as server:
        with closing(AnthropicMessages("m", Endpoint(base_url=server.url, api_key="sk-x", attempts=1))) as model:
            told = model.complete(history, TOOLS, on_text=lambda _: None, on_retry=lambda _: None)
            assert told.text == "fine"
            with pytest.raises(ModelError):
                model.complete(history, TOOLS, on_text=lambda _: None, on_retry=lambda _: None)
        first, second, *_ = [request.json for request in server.requests]
    assert not fits(first)
    assert fits(second)


def test_usage_includes_cache_reads_and_writes() -> None:
    begun = {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    reply = read(
        {"type": "message_start", "message": {"id": "m", "usage": begun}},
        {"type": "ping"},
        start(0, type="text", text="a"),
        end("end_turn", output_tokens=7),
        {"type": "message_stop"},
    )
    assert reply.usage == Usage(input_tokens=123, output_tokens=7, cached_tokens=100, cache_write_tokens=20)


ENDS = {
    "end_turn": FinishReason.DONE,
    "stop_sequence": FinishReason.DONE,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}


def test_stop_reason_gives_the_finish_reason() -> None:
    for reason, expected in ENDS.items():
        assert read(start(0, type="text", text="a"), end(reason)).finish_reason is expected
    assert read(end("tool_use")).finish_reason is FinishReason.NO_CALLS
    assert read(start(0, type="thinking", thinking="x"), end("end_turn")).finish_reason is FinishReason.REASONING


CALLED = start(0, type="tool_use", id="c1", name="bash", input={})
ARGUED = delta(0, "input_json_delta", partial_json="{}")
DOUBTFUL: dict[str, tuple[dict[str, object], ...]] = {
    "it never stopped": (CALLED, ARGUED, {"type": "message_stop"}),
    "paused": (CALLED, ARGUED, end("pause_turn")),
    "an unknown reason with a call": (CALLED, ARGUED, end("because")),
    "a delta before its block": (ARGUED, CALLED, end("tool_use")),
    "a delta after its block": (CALLED, stop(0), ARGUED, end("tool_use")),
    "a delta after the end": (CALLED, end("tool_use"), ARGUED),
    "a call after the end": (start(1, type="text", text="a"), end("end_turn"), CALLED),
    "another block at its place": (CALLED, start(0, type="tool_use", id="c2", name="bash", input={}), end("tool_use")),
    "two reasons": (CALLED, end("tool_use"), end("max_tokens")),
    "two messages": (
        {"type": "message_start", "message": {"id": "a"}},
        CALLED,
        {"type": "message_start", "message": {"id": "b"}},
        end("tool_use"),
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_doubtful_reply_is_rejected(name: str) -> None:
    with pytest.raises(CutReply):
        read(*DOUBTFUL[name])


def test_tools_run_by_the_server_are_not_calls() -> None:
    reply = read(
        start(0, type="server_tool_use", id="s1", name="bash", input={}),
        delta(0, "input_json_delta", partial_json='{"q":1}'),
        start(1, type="web_search_tool_result", content=[]),
        start(2, type="text", text="found"),
        end("end_turn"),
    )
    assert (reply.text, reply.tool_calls, reply.echo) == ("found", (), "")


def test_a_whole_document() -> None:
    document: Answer = whole(
        json.dumps(
            {
                "type": "message",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "a"},
                    {"type": "text", "text": "b"},
                    {"type": "tool_use", "id": "c1", "name": "bash", "input": {"x": [1]}},
                ],
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 2, "output_tokens": 3},
            }
        ).encode(),
        kind="application/json",
    )
    with FaultServer([document]) as server:
        endpoint = Endpoint(base_url=server.url, api_key="sk-x", quirks=Quirks(stream=False))
        with closing(AnthropicMessages("m", endpoint)) as model:
            reply = model.complete((user("go"),), TOOLS, on_text=lambda _: None, on_retry=lambda _: None)
        assert server.requests[0].json["stream"] is False
    assert (reply.text, reply.tool_calls) == ("a\n\nb", (call("c1", '{"x":[1]}'),))
    assert reply.usage == Usage(input_tokens=2, output_tokens=3)
    blocks = body(user("go"), said(reply.text, *reply.tool_calls, echo=reply.echo), result("c1", ""))["messages"][1]
    assert [block["type"] for block in blocks["content"]] == ["thinking", "text", "text", "tool_use"]


def test_the_program_works_through_it(program: Program) -> None:
    """A call and its result, then the answer: the second request is one that a strict server takes."""
    (program.workspace / "told.txt").write_text("forty-two\n")
    asks = stream(MESSAGES.start("m1"), MESSAGES.call(0, "c1", "read_file", '{"path":"told.txt"}'), MESSAGES.end())
    with FaultServer([asks, stream(MESSAGES.start("m2"), MESSAGES.text("It says so."), MESSAGES.end())]) as server:
        done = program.run("run", "--api", "messages", "--base-url", server.url, "--model", "m", "go")
        bodies = [request.json for request in server.requests]
    assert (done.code, done.out) == (0, "It says so.\n"), done.err
    said = [chat_form(asked)["messages"] for asked in bodies]
    assert [message["role"] for message in said[1]] == ["system", "user", "assistant", "tool"]
    assert "forty-two" in said[1][-1]["content"]
    assert bodies[1]["tools"][-1]["cache_control"] == {"type": "ephemeral"}


def test_pictures_are_blocks_of_the_prompt_and_of_the_result(program: Program) -> None:
    """Asked for by the preset's own word, too: nothing is configured."""
    (program.workspace / "shot.png").write_bytes(png())
    asks = stream(MESSAGES.start("m1"), MESSAGES.call(0, "c1", "read_file", '{"path":"shot.png"}'), MESSAGES.end())
    program.environment["ANTHROPIC_API_KEY"] = "k"
    with FaultServer([asks, stream(MESSAGES.start("m2"), MESSAGES.text("Grey."), MESSAGES.end())]) as server:
        words = ("--provider", "anthropic-messages", "--base-url", server.url, "--model", "claude-x")
        done = program.run("run", *words, "see @shot.png")
        first, second = [request.json for request in server.requests]
    assert (done.code, done.out) == (0, "Grey.\n"), done.err
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()},
    }
    chat_form(second)
    (asked,) = first["messages"]
    assert [block["type"] for block in asked["content"]] == ["image", "text"]
    assert asked["content"][0] == image
    (answered,) = second["messages"][-1]["content"]
    assert [block["type"] for block in answered["content"]] == ["text", "image"]
    assert (answered["content"][1], marks(second)) == (image, 4)


def test_missing_picture_is_named() -> None:
    picture = Attachment(sha256="a" * 64, media_type="image/png", width=3, height=2, size=9)
    seeing = MessagesDialect("claude-x", Endpoint(attachments=lambda _: None))
    for dialect, why in ((seeing, "its file beside the log is gone"), (None, "this model is not sent pictures")):
        asked = body(Message(role=Role.USER, content="", attachments=(picture,)), dialect=dialect)
        (block,) = asked["messages"][0]["content"]
        assert (block["type"], why in block["text"]) == ("text", True)

"""What servers do otherwise than the API says: what is learned, given back, told, and counted."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from chat_events import DONE, STOP, calls, chunk, fragment, said, sse
from chat_wire import (
    BASH,
    GOOD,
    USER,
    Asked,
    Wire,
    bash,
    failure,
    http,
    reply,
    stream,
)
from rows import all_rows
from work import lines_run

from harness.errors import ModelError, ModelFault
from harness.messages import FinishReason, Message, Role, Usage
from harness.models.reply_body import unread_call

NO_USAGE = failure(400, "Unrecognized request argument supplied: stream_options")
EXTRA_FIELD = http(422, b'{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}')
NO_STREAM = failure(500, "Cannot use tools with stream")
DOCUMENT = http(200, json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode())
LEARNED: dict[str, tuple[list[bytes], list[tuple[bool, bool]]]] = {
    "no usage": ([NO_USAGE, GOOD, GOOD], [(True, True), (True, False), (True, False)]),
    "no usage, told by a list of problems": ([EXTRA_FIELD, GOOD, GOOD], [(True, True), (True, False), (True, False)]),
    "no streams with tools": ([NO_STREAM, DOCUMENT, DOCUMENT], [(True, True), (False, False), (False, False)]),
    "neither": (
        [NO_USAGE, failure(400, "streaming is not supported"), DOCUMENT, DOCUMENT],
        [(True, True), (True, False), (False, False), (False, False)],
    ),
    "within the answer": (
        [stream({"error": {"code": 400, "message": "stream_options?"}}), GOOD, GOOD],
        [(True, True), (True, False), (True, False)],
    ),
}


@all_rows(("answers", "asked_for"), LEARNED)
def test_refused_field_is_left_out_of_later_requests(answers: list[bytes], asked_for: list[tuple[bool, bool]]) -> None:
    with Wire(*answers) as wire:
        asked = Asked(wire.url, attempts=1)
        learned = len(answers) - 2
        assert [asked.complete(tools=(BASH,)) for _ in range(2)] == [reply("Hi", retries=learned), reply("Hi")]
    assert [(body["stream"], "stream_options" in body) for body in wire.bodies] == asked_for
    assert [retry.wait_seconds for retry in asked.retries] == [0.0] * learned


def test_repeated_refusal_is_reported() -> None:
    with (
        Wire(NO_USAGE, NO_USAGE) as wire,
        pytest.raises(ModelError, match=r"^The provider refused .*stream_options\)\. \(tried 2 times\)$"),
    ):
        Asked(wire.url).complete()
    assert len(wire.bodies) == 2


def test_reasoning_is_kept_given_back_and_left_out_where_it_is_refused() -> None:
    call = fragment("{}", call_id="c1", name="bash") | {"extra_content": {"google": {"thought_signature": "s"}}}
    thought = stream(
        chunk({"reasoning_content": "h", "reasoning_details": [{"type": "t", "text": "a", "index": 0}]}),
        chunk(
            {"reasoning_content": "m", "reasoning_details": [{"type": "t", "text": "b", "index": 0, "signature": "x"}]}
        ),
        chunk({"reasoning_details": [{"type": "e", "data": "z", "index": 1}]}),
        calls(call),
        DONE,
    )
    with Wire(thought, failure(400, "messages[1]: unknown field reasoning_details"), GOOD, GOOD) as wire:
        asked = Asked(wire.url)
        first = asked.complete(tools=(BASH,))
        turn = (
            *USER,
            Message(role=Role.ASSISTANT, content="", tool_calls=first.tool_calls, echo=first.echo),
            Message(role=Role.TOOL, content="out", tool_call_id="c1"),
        )
        asked.complete(turn)
        asked.complete((*turn, *USER))
    sent = [body["messages"][1] for body in wire.bodies[1:]]
    assert sent[0]["reasoning_details"] == [
        {"type": "t", "text": "ab", "index": 0, "signature": "x"},
        {"type": "e", "data": "z", "index": 1},
    ]
    assert [message.get("reasoning_content") for message in sent] == ["hm", "hm", "hm"]
    assert ["reasoning_details" in message for message in sent] == [True, False, False]
    assert [m["tool_calls"][0]["extra_content"] for m in sent] == [{"google": {"thought_signature": "s"}}] * 3


WANTED = (
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "Missing `reasoning_content` field in the assistant message at message index 1.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
)


@all_rows("said", WANTED)
def test_blank_replaces_missing_reasoning_of_another_model(said: str) -> None:
    thought = '{"api":"chat","reasoning":{"reasoning_content":"hm"}}'
    turn = (
        *USER,
        Message(role=Role.ASSISTANT, content="", tool_calls=(bash(),)),
        Message(role=Role.TOOL, content="out", tool_call_id="c1"),
        Message(role=Role.ASSISTANT, content="done", echo=thought),
        *USER,
    )
    with Wire(failure(400, said), GOOD, failure(400, said)) as wire:
        asked = Asked(wire.url, attempts=1)
        asked.complete(turn)
        with pytest.raises(ModelError, match="refused the request"):
            asked.complete(turn)
    sent = [[one.get("reasoning_content") for one in body["messages"]] for body in wire.bodies]
    assert sent == [[None, None, None, "hm", None], *[[None, " ", None, "hm", None]] * 2]


def test_reasoning_with_a_refused_signature_is_left_out() -> None:
    thought = '{"api":"chat","reasoning":{"reasoning_details":[{"signature":"s"}]}}'
    turn = [*USER, Message(role=Role.ASSISTANT, content="a", echo=thought), *USER]
    later = [*turn, Message(role=Role.ASSISTANT, content="b", echo=thought), *USER]
    with Wire(failure(400, "messages.1.content.0: Invalid `signature` in `thinking` block"), GOOD, GOOD) as wire:
        asked = Asked(wire.url, attempts=1)
        asked.complete(turn)
        asked.complete(later)
    sent = [["reasoning_details" in one for one in body["messages"]] for body in wire.bodies]
    assert sent == [[False, True, False], [False] * 3, [False, False, False, True, False]]


UNREAD = {
    "Mistral": '[TOOL_CALLS][{"name": "bash", "arguments": {}}]',
    "Mistral, newer": 'Let me look.\n[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
    "Hermes": '<tool_call>\n{"name": "bash", "arguments": {}}\n</tool_call>',
    "arguments first are not looked for, the function form is": "<tool_call>\n<function=bash>\n<parameter=command>",
    "GLM": "<tool_call>bash\n<arg_key>command</arg_key>",
    "Llama": '<|python_tag|>{"type": "function", "name": "bash", "parameters": {}}',
    "Llama, called": '<|python_tag|>bash.call(command="ls")',
    "Llama, function": '<function=bash>{"command": "ls"}</function>',
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{}",
    "DeepSeek": (
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
        "<\uff5ctool\u2581sep\uff5c>bash\n```json\n{}"
    ),
    "JSON alone": '{"name": "bash", "arguments": {"command": "ls"}}',
    "JSON with its arguments first": '{"arguments": {"command": "ls"}, "name": "bash"}',
    "JSON with arguments as text": '{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}',
    "JSON with parameters": '\n {"name": "bash", "parameters": {"command": "ls"}}\n',
    "JSON over many lines": '{\n  "name": "bash",\n  "arguments": {\n    "command": "ls"\n  }\n}',
    "JSON as the API has it": '{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}',
    "JSON of a message": '{"tool_calls": [{"function": {"name": "bash", "arguments": {}}}]}',
    "JSON with other keys": '{"tool": "bash", "input": {"command": "ls"}}',
    "JSON with an action": '{"action": "bash", "action_input": {"command": "ls"}}',
    "JSON by the name of the tool": '{"bash": {"command": "ls"}}',
    "JSON, a list": '[{"name": "bash", "arguments": {}}, {"name": "bash", "arguments": {}}]',
    "JSON, two in a row": '{"name": "bash", "arguments": {}}\n{"name": "bash", "arguments": {}}',
    "JSON, two with a semicolon": '{"name": "bash", "parameters": {}}; {"name": "bash", "parameters": {}}',
    "JSON in a code block": '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
    "JSON in a code block without a language": '\n```\n{"name": "bash", "arguments": {"command": "ls"}}\n```\n',
    "JSON behind words": 'I will look.\n\n{"name": "bash", "arguments": {"command": "ls"}}',
    "JSON behind thoughts": '<think>\nlook first\n</think>\n\n{"name": "bash", "arguments": {}}',
    "Python alone": 'bash(command="ls -l")',
    "Python in a list (Llama 4)": '[bash(command="ls"), bash(command="pwd")]',
    "a mark in a code block": '```xml\n<tool_call>{"name": "bash", "arguments": {}}</tool_call>\n```',
    "a mark within thoughts without end": '<think>look\n<tool_call>\n{"name": "bash", "arguments": {}}\n</tool_call>',
    "gpt-oss": '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls"}<|call|>',
    "gpt-oss behind its analysis": (
        "<|channel|>analysis<|message|>We need to look.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.bash <|constrain|>json<|message|>{"command": "ls"}<|call|>'
    ),
    "gpt-oss, recipient first": "<|start|>assistant to=functions.bash<|channel|>commentary json<|message|>{}",
    "gpt-oss without its tokens": 'analysisWe need to look.assistantcommentary to=functions.bash json{"command": "ls"}',
    "Granite, Phi": '<|tool_call|>[{"name": "bash", "arguments": {}}]',
    "LFM": '<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>',
    "MiniMax, Claude": '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls</parameter>',
    "DeepSeek, newer": '<\uff5cDSML\uff5cfunction_calls>\n<\uff5cDSML\uff5cinvoke name="bash">',
    "Gemma": "<start_function_call>call:bash{command:<escape>ls<escape>}<end_function_call>",
    "Cline": "I will look.\n<bash>\n<command>ls</command>\n</bash>",
    "ReAct": 'Thought: look\nAction: bash\nAction Input: {"command": "ls"}',
}


@all_rows("text", UNREAD)
def test_call_left_in_the_text_is_an_error_and_not_run(text: str) -> None:
    with Wire(stream(said(text), STOP, DONE)) as wire:
        asked = Asked(wire.url)
        with pytest.raises(
            ModelError, match=r"^The model called bash, but its server left the call in the text"
        ) as raised:
            asked.complete(tools=(BASH,))
    assert (raised.value.fault, len(wire.bodies)) == (ModelFault.REPLY, 1)


PROSE = {
    "a tool that is not offered": '<tool_call>{"name": "rm", "arguments": {}}',
    "talk about a mark": "Models write <tool_call> before a call to bash.",
    "talk that begins with one": "<tool_call> bash is how Qwen calls it.",
    "a quotation in the line": 'It is `<tool_call>{"name": "bash"}` there.',
    "a code block": 'It is:\n```\n<tool_call>{"name": "bash", "arguments": {}}\n```',
    "two code blocks": '```\n{"name": "bash", "arguments": {}}\n```\n```\n{"name": "bash", "arguments": {}}\n```',
    "JSON explained": 'Send this:\n```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```\nand read the answer.',
    "JSON with words behind it": '{"name": "bash", "arguments": {}}\nis how a call looks.',
    "JSON within a line": 'A call is {"name": "bash", "arguments": {}}',
    "JSON of another tool": '{"name": "rm", "arguments": {}}',
    "JSON without arguments": '{"name": "bash", "version": "5.2"}',
    "JSON that is the answer": '{"files": ["a", "b"], "input": {"name": "bash"}}',
    "a list of which one is no call": '[{"name": "bash", "arguments": {}}, 1]',
    "an empty list": "[]",
    "an empty object": "{}",
    "JSON that is cut": '{"name": "bash", "arguments": {"command": "ls"',
    "a list of names": '["bash", "read_file"]',
    "a page of a manual": "bash(1)",
    "Python that calls something else": 'subprocess.run(args=["bash"])',
    "thoughts that quote a call": '<think>\n<tool_call>{"name": "bash", "arguments": {}}\n</think>\nDone.',
    "HTML": "<ul>\n<li>bash</li>\n</ul>",
    "talk about a channel": "gpt-oss writes `<|channel|>commentary to=functions.bash` before JSON.",
    "a list of tools as tags": "<tools>bash, read_file</tools>",
    "an action in words": "Action: bash was started.",
    "a mark and nothing": "[TOOL_CALLS]",
    "many marks": "<tool_call>\n" * 10_000,
}


@all_rows("text", PROSE)
def test_text_that_only_mentions_such_a_call_is_a_reply(text: str) -> None:
    with Wire(stream(said(text), STOP, DONE)) as wire:
        assert Asked(wire.url).complete(tools=(BASH,)) == reply(text)


def test_request_after_an_empty_stream_is_sent_without_streaming() -> None:
    with Wire(http(200, b""), DOCUMENT, GOOD) as wire:
        asked = Asked(wire.url)
        assert [asked.complete().text, asked.complete().text] == ["Hi", "Hi"]
    assert ([body["stream"] for body in wire.bodies], asked.slept) == ([True, False, True], [])


THOUGHTS = {
    "without an end": "<think>plan",
    "closed": "<think>\nplan\n</think>\n\n",
    "by another name": "<thinking>plan</thinking>",
    "whose opening tag is in the prompt": "plan\n</think>\n",
    "of gpt-oss": "<|channel|>analysis<|message|>plan",
}


@all_rows("text", THOUGHTS)
def test_reply_of_thoughts_only_ends_by_reasoning(text: str) -> None:
    with Wire(stream(said(text), STOP, DONE)) as wire:
        assert Asked(wire.url).complete().finish_reason is FinishReason.REASONING


ANSWERS = {
    "behind thoughts": "<think>plan</think>Done.",
    "about the tag": "The tag is called <think>.",
    "that ends with another tag": "<b>Done.</b>",
    "in the last channel": "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>Done.",
}


@all_rows("text", ANSWERS)
def test_text_after_thoughts_is_an_answer(text: str) -> None:
    with Wire(stream(said(text), STOP, DONE)) as wire:
        assert Asked(wire.url).complete() == reply(text)


def test_beginning_and_end_of_a_long_text_are_searched() -> None:
    call, bash_only = UNREAD["Hermes"], frozenset(("bash",))
    assert unread_call(call + "\n" + "x" * 1_000_000, bash_only) == "bash"
    assert unread_call("x" * 1_000_000 + "\n" + call, bash_only) == "bash"
    assert unread_call("x" * 1_000_000 + "\n" + call + "\n" + "x" * 1_000_000, bash_only) == ""
    assert unread_call("```\n" + "x" * 1_000_000 + "\n" + call, bash_only) == ""


def test_search_for_marks_in_a_text_is_bounded() -> None:
    short, long = "\n[TOOL_CALLS]" * 20_000, "\n[TOOL_CALLS]" * 2_000_000
    assert unread_call(long, frozenset(("bash",))) == ""
    steps = [lines_run(partial(unread_call, text, frozenset(("bash",)))) for text in (short, long)]
    assert steps[0] == steps[1]


def test_real_call_with_such_a_text_counts() -> None:
    with Wire(stream(said(UNREAD["Hermes"]), calls(fragment("{}", call_id="c1", name="bash")), DONE)) as wire:
        assert Asked(wire.url).complete(tools=(BASH,)) == reply(UNREAD["Hermes"], bash("{}"))


USAGES: dict[str, tuple[dict[str, Any], Usage]] = {
    "none": ({}, Usage(unreported=1)),
    "null": ({"usage": None}, Usage(unreported=1)),
    "cached tokens": (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}},
        Usage(input_tokens=9, output_tokens=2, cached_tokens=5),
    ),
    "cached tokens of DeepSeek": (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5}},
        Usage(input_tokens=9, output_tokens=2, cached_tokens=5),
    ),
    "tokens that a cache took, of OpenRouter": (
        # openrouter.ai/docs/use-cases/usage-accounting
        {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cache_write_tokens": 4}}},
        Usage(input_tokens=9, output_tokens=2, cache_write_tokens=4),
    ),
    "more cached than there are": (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 50}}},
        Usage(input_tokens=9, output_tokens=2, cached_tokens=9),
    ),
    "beside the reply, as Groq has it": (
        {"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}},
        Usage(input_tokens=9, output_tokens=2),
    ),
}


@all_rows(("more", "usage"), USAGES)
def test_usage_is_found_in_any_place(more: dict[str, Any], usage: Usage) -> None:
    with Wire(stream(said("Hi", "stop", **more), chunk({}, usage=None), DONE)) as wire:
        assert Asked(wire.url).complete() == reply("Hi", usage=usage)


@all_rows("kind", ["text/html", "application/json", "text/plain; charset=latin-1", ""])
def test_the_content_type_is_not_believed(kind: str) -> None:
    with Wire(http(200, sse(said("Grüße", "stop"), DONE), f"content-type: {kind}")) as wire:
        assert Asked(wire.url).complete() == reply("Grüße")

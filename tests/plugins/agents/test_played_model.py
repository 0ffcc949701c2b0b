"""The scripted model that agents are played against: one scene, told over each wire as an agent speaks it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rows import all_rows

from harness.models.scripted import call
from harness.plugins.agents.commands.played_model import PlayedModel, PlayedScene

SCENE = PlayedScene(
    prompt="Play the scene.",
    steps=((call("sh", command="one"), call("sh", command="two")), (call("sh", command="three"),)),
)
INNER = PlayedScene(prompt="Play the inner scene.", steps=((call("sh", command="inner"),),), closing="Inner done.")
Asked = dict[str, Any]
Call = tuple[str, str, Any]
"""Of what was said: id, name, arguments."""


class Speech(NamedTuple):
    """One wire, in the words of its client."""

    path: str
    asked: Callable[[list[Asked], bool], Asked]
    """A request: the conversation, and whether it offers the tool."""
    user: Callable[[str], Asked]
    result: Callable[[str], Asked]
    """The result of the call of this id."""
    heard: Callable[[str], tuple[str, list[Call]]]
    """What an answer says: text, calls."""


def _data(body: str) -> list[Any]:
    lines = (line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def _anthropic(body: str) -> tuple[str, list[Call]]:
    text, calls = "", []
    blocks: dict[int, Any] = {}
    for event in _data(body):
        if event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            text += event["delta"]["text"]
        elif event["type"] == "content_block_delta":
            block = blocks[event["index"]]
            calls.append((block["id"], block["name"], json.loads(event["delta"]["partial_json"])))
    return text, calls


def _anthropic_whole(body: str) -> tuple[str, list[Call]]:
    content = json.loads(body)["content"]
    text = "".join(block["text"] for block in content if block["type"] == "text")
    return text, [(one["id"], one["name"], one["input"]) for one in content if one["type"] == "tool_use"]


def _chat(body: str) -> tuple[str, list[Call]]:
    deltas = [choice["delta"] for event in _data(body) for choice in event["choices"]]
    named = [one for delta in deltas for one in delta.get("tool_calls", []) if "id" in one]
    pieces = [one for delta in deltas for one in delta.get("tool_calls", []) if "id" not in one]
    calls = []
    for one in named:
        text = "".join(piece["function"]["arguments"] for piece in pieces if piece["index"] == one["index"])
        calls.append((one["id"], one["function"]["name"], json.loads(text)))
    return "".join(delta.get("content") or "" for delta in deltas), calls


def _responses(body: str) -> tuple[str, list[Call]]:
    (output,) = (event["response"]["output"] for event in _data(body) if event["type"] == "response.completed")
    text = "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"])
    calls = [(item["call_id"], item["name"], json.loads(item["arguments"])) for item in output if "arguments" in item]
    return text, calls


def _gemini_parts(events: list[Any]) -> tuple[str, list[Call]]:
    parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
    found = [part["functionCall"] for part in parts if "functionCall" in part]
    return "".join(part.get("text", "") for part in parts), [(one["id"], one["name"], one["args"]) for one in found]


def _gemini(path: str, heard: Callable[[str], tuple[str, list[Call]]]) -> Speech:
    return Speech(
        f"/v1beta/models/played:{path}",
        lambda contents, tools: {
            "contents": contents,
            **({"tools": [{"functionDeclarations": [{"name": "sh"}]}]} if tools else {}),
        },
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda made: {
            "role": "user",
            "parts": [{"functionResponse": {"id": made, "name": "sh", "response": {"output": "as said"}}}],
        },
        heard,
    )


def _messages(stream: bool, heard: Callable[[str], tuple[str, list[Call]]]) -> Speech:
    return Speech(
        "/v1/messages?beta=true",
        lambda messages, tools: {
            "model": "played",
            "messages": messages,
            "stream": stream,
            "tools": [{"name": "sh"}] if tools else [],
        },
        lambda text: {"role": "user", "content": [{"type": "text", "text": text}]},
        lambda made: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": made, "content": "as said"}]},
        heard,
    )


SPEECHES: Mapping[str, Speech] = {
    "messages": _messages(True, _anthropic),
    "messages, whole": _messages(False, _anthropic_whole),
    "chat": Speech(
        "/v1/chat/completions",
        lambda messages, tools: {
            "model": "played",
            "messages": messages,
            "stream": True,
            **({"tools": [{"type": "function", "function": {"name": "sh"}}]} if tools else {}),
        },
        lambda text: {"role": "user", "content": text},
        lambda made: {"role": "tool", "tool_call_id": made, "content": "as said"},
        _chat,
    ),
    "responses": Speech(
        "/v1/responses",
        lambda items, tools: {
            "model": "played",
            "input": items,
            "stream": True,
            "tools": [{"type": "function", "name": "sh"}] if tools else [],
        },
        lambda text: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
        lambda made: {"type": "function_call_output", "call_id": made, "output": "as said"},
        _responses,
    ),
    "gemini": _gemini("streamGenerateContent?alt=sse", lambda body: _gemini_parts(_data(body))),
    "gemini, whole": _gemini("generateContent", lambda body: _gemini_parts([json.loads(body)])),
}


def _sent(model: PlayedModel, path: str, asked: Asked | bytes) -> str:
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    with urllib.request.urlopen(urllib.request.Request(model.origin + path, data=body), timeout=60) as answer:
        return str(answer.read().decode())


@all_rows("speech", SPEECHES)
def test_a_scene_is_played_step_by_step_over_each_wire(speech: Speech) -> None:
    with PlayedModel([SCENE, INNER]) as model:

        def said(*conversation: Asked, tools: bool = True) -> tuple[str, list[Call]]:
            return speech.heard(_sent(model, speech.path, speech.asked(list(conversation), tools)))

        begun = speech.user("Some rules. Play the scene. Thank you.")
        two = [("call_0-0-0", "sh", {"command": "one"}), ("call_0-0-1", "sh", {"command": "two"})]
        results = [speech.result(made) for made in ("call_0-0-0", "call_0-0-1", "call_0-1-0")]
        assert said(begun) == ("", two)
        assert said(begun, results[0]) == ("", two)  # one is not answered yet
        assert said(begun, *results[:2]) == ("", [("call_0-1-0", "sh", {"command": "three"})])
        assert said(begun, *results) == ("Done.", [])
        assert said(begun, tools=False) == ("Done.", [])  # a title, beside
        assert said(speech.user("Play the inner scene.")) == ("", [("call_1-0-0", "sh", {"command": "inner"})])
        assert said(begun, *results, begun) == ("", two)  # again
        assert said(speech.user("Something else.")) == ("Done.", [])
    assert set(model.results()) == {"call_0-0-0", "call_0-0-1", "call_0-1-0"}
    assert all("as said" in text for text in model.results().values())


def test_namespace_and_text_tools_are_called_in_codex_form() -> None:
    scene = PlayedScene(prompt="go", steps=((call("exec", input="text(1)"), call("wait", seconds=1)),))
    tools = [{"type": "custom", "name": "exec"}, {"type": "function", "name": "wait"}]
    opened = {"type": "additional_tools", "tools": [{"type": "namespace", "name": "functions", "tools": tools}]}
    told = {"type": "agent_message", "content": [{"type": "encrypted_content", "encrypted_content": "go"}]}
    with PlayedModel([scene]) as model:
        events = _data(_sent(model, "/v1/responses", {"model": "played", "input": [opened, told]}))
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [(item["type"], item["namespace"], item["name"]) for item in items] == [
        ("custom_tool_call", "functions", "exec"),
        ("function_call", "functions", "wait"),
    ]
    assert (items[0]["input"], items[1]["arguments"]) == ("text(1)", '{"seconds": 1}')


def test_other_requests_are_answered_outside_the_scene() -> None:
    with PlayedModel([SCENE]) as model:
        assert json.loads(_sent(model, "/v1/telemetry", {"a": 1})) == {"object": "list", "data": [], "models": []}
        with urllib.request.urlopen(model.base_url + "/models", timeout=60) as answer:
            assert json.loads(answer.read())["data"] == []
        head = urllib.request.Request(model.origin, method="HEAD")
        with urllib.request.urlopen(head, timeout=60) as answer:
            assert answer.status == 200
    assert model.heard == []

"""Requests of Anthropic's Messages API read as a strict server reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MOST_MARKS = 4
"""More marks for the cache are refused."""


def chat_form(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request in the form of chat completions, as the checks of those take it.

    Thinking is checked for its signature and left out. Raises AssertionError for what the API refuses.
    """
    assert isinstance(request["max_tokens"], int)
    assert request["max_tokens"] > 0
    assert marks(request) <= MOST_MARKS
    messages: list[dict[str, Any]] = []
    if "system" in request:
        messages.append({"role": "system", "content": "".join(block["text"] for block in request["system"])})
    roles = [turn["role"] for turn in request["messages"]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))], roles
    open_calls: list[str] = []
    for turn in request["messages"]:
        if turn["role"] == "assistant":
            messages.append(_said(turn["content"]))
            open_calls = [call["id"] for call in messages[-1].get("tool_calls", ())]
        else:
            messages += _given(turn["content"], open_calls)
    fields = ("model", "stream", *(["tools"] if "tools" in request else []))
    tools = [
        {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
        for tool in request.get("tools", ())
    ]
    return {**{name: request[name] for name in fields}, **({"tools": tools} if tools else {}), "messages": messages}


def marks(request: Mapping[str, Any]) -> int:
    """Return how many marks for the cache a request has."""
    return json.dumps(request).count('"cache_control"')


def _said(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    assert blocks
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for block in blocks:
        match block["type"]:
            case "thinking":
                assert block["signature"]
            case "redacted_thinking":
                assert block["data"]
            case "text":
                assert block["text"].strip()
                message["content"] = (message["content"] or "") + block["text"]
            case "tool_use":
                assert isinstance(block["input"], dict)
                function = {"name": block["name"], "arguments": json.dumps(block["input"])}
                message.setdefault("tool_calls", []).append(
                    {"id": block["id"], "type": "function", "function": function}
                )
            case other:
                raise AssertionError(other)
    return message


def _given(blocks: list[dict[str, Any]], calls: list[str]) -> list[dict[str, Any]]:
    results = [block for block in blocks if block["type"] == "tool_result"]
    others = [block for block in blocks if block["type"] in ("text", "image")]
    texts = [block for block in others if block["type"] == "text"]
    assert [*results, *others] == blocks, "results of calls come first, and there is nothing else"
    assert [result["tool_use_id"] for result in results] == calls
    assert all(block["text"].strip() for block in texts)
    for block in [
        *others,
        *(part for result in results if isinstance(result.get("content"), list) for part in result["content"]),
    ]:
        if block["type"] == "image":
            assert block["source"].keys() == {"type", "media_type", "data"}
            assert block["source"]["type"] == "base64"
    said = [{"role": "user", "content": "".join(block["text"] for block in texts)}] if texts else []
    found = [
        {"role": "tool", "tool_call_id": result["tool_use_id"], "content": result.get("content", "")}
        for result in results
    ]
    return [*found, *said]

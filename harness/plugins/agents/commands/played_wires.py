"""The APIs through which agents talk to their model, implemented as far as a played model needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from harness.actions import JsonValue
from harness.messages import ToolCall
from harness.models.loopback import chat_answer, in_chunks, with_length
from harness.models.scripted import Reply
from harness.record import Record

Asked = Mapping[str, JsonValue]
"""The parsed JSON of a request."""


class Prompted(Record):
    """A text with the user's role, written by the user or by the agent."""

    text: str


class Answered(Record):
    """The result of a call, as the model receives it."""

    call_id: str
    text: str


class Heard(Record):
    """The content of a request in order, without the model's own messages."""

    parts: tuple[Prompted | Answered, ...]
    offered: Mapping[str, Mapping[str, str]]
    """The offered tools by name, each with the extra fields that a call of it needs in this API."""
    request: Asked
    """The parsed request itself."""


class Wire(Protocol):
    """One API, as far as a played model speaks it."""

    def hear(self, request_body: Asked) -> Heard:
        """Return the content of a request."""

    def say(self, reply: Reply, heard: Heard) -> bytes:
        """Return the whole HTTP answer with this reply."""


class AnthropicWire:
    """The Messages API, as Claude Code uses it."""

    def hear(self, request_body: Asked) -> Heard:
        """Return the content of a request."""
        parts: list[Prompted | Answered] = []
        for message in _objects(request_body.get("messages")):
            if message.get("role") == "assistant":
                continue
            for block in _blocks(message.get("content")):
                if block.get("type") == "tool_result":
                    parts.append(Answered(call_id=str(block.get("tool_use_id")), text=_text(block.get("content"))))
                elif isinstance(text := block.get("text"), str):
                    parts.append(Prompted(text=text))
        return Heard(parts=tuple(parts), offered=_by_name(request_body.get("tools")), request=request_body)

    def say(self, reply: Reply, heard: Heard) -> bytes:
        """Return the whole HTTP answer that says this reply."""
        text: list[JsonValue] = [{"type": "text", "text": reply.text}] if reply.text else []
        calls: list[JsonValue] = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in reply.calls
        ]
        reason = "tool_use" if calls else "end_turn"
        message: dict[str, JsonValue] = {
            "id": "msg_played",
            "type": "message",
            "role": "assistant",
            "model": heard.request.get("model"),
            "content": [*text, *calls],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }
        if heard.request.get("stream") is not True:
            return with_length(200, json.dumps(message).encode())
        return _named_events(self._events(reply, message))

    @staticmethod
    def _events(reply: Reply, message: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
        yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
        deltas: list[tuple[JsonValue, JsonValue]] = []
        if reply.text:
            deltas.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}))
        deltas.extend(
            (
                {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
                {"type": "input_json_delta", "partial_json": call.arguments},
            )
            for call in reply.calls
        )
        for index, (block, delta) in enumerate(deltas):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop: JsonValue = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}}
        yield {"type": "message_stop"}


class ChatWire:
    """Chat completions, as Qwen Code, opencode and Copilot use it."""

    def hear(self, request_body: Asked) -> Heard:
        """Return the content of a request."""
        parts: list[Prompted | Answered] = []
        for message in _objects(request_body.get("messages")):
            text = _text(message.get("content"))
            if message.get("role") == "tool":
                parts.append(Answered(call_id=str(message.get("tool_call_id")), text=text))
            elif message.get("role") == "user":
                parts.append(Prompted(text=text))
        return Heard(
            parts=tuple(parts),
            offered=_by_name([tool.get("function") for tool in _objects(request_body.get("tools"))]),
            request=request_body,
        )

    def say(self, reply: Reply, heard: Heard) -> bytes:
        """Return the whole HTTP answer that says this reply."""
        return chat_answer(reply, dict(heard.request), fragment=256)


class ResponsesWire:
    """The Responses API, as Codex uses it."""

    def hear(self, request_body: Asked) -> Heard:
        """Return the content of a request."""
        parts: list[Prompted | Answered] = []
        offered = _objects(request_body.get("tools"))
        for item in _objects(request_body.get("input")):
            if item.get("type") == "additional_tools":
                offered += _objects(item.get("tools"))
            if str(item.get("type")).endswith("_call_output"):
                parts.append(Answered(call_id=str(item.get("call_id")), text=_text(item.get("output"))))
            elif item.get("role") == "user" or item.get("type") == "agent_message":
                parts.append(Prompted(text=_text(item.get("content"))))
        return Heard(parts=tuple(parts), offered=_spaced(offered), request=request_body)

    def say(self, reply: Reply, heard: Heard) -> bytes:
        """Return the whole HTTP answer that says this reply."""
        items = [_item(call, heard.offered.get(call.name, {})) for call in reply.calls]
        if reply.text:
            content: JsonValue = [{"type": "output_text", "text": reply.text, "annotations": []}]
            message: JsonValue = {"type": "message", "role": "assistant", "status": "completed", "content": content}
            items.insert(0, {"id": "msg_played", **_object(message)})
        usage: JsonValue = {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 110,
        }
        answer: dict[str, JsonValue] = {"id": "resp_played", "object": "response", "model": heard.request.get("model")}
        response: JsonValue = {**answer, "status": "completed", "output": list(items), "usage": usage}
        events: list[Mapping[str, JsonValue]] = [
            {"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}},
        ]
        for index, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        return _named_events([*events, {"type": "response.completed", "response": response}])


class GeminiWire:
    """generateContent, as Gemini CLI uses it."""

    def __init__(self, *, streams: bool) -> None:
        """`streams` says whether answers are event streams. In this API, the path of the request determines it."""
        self._streams = streams

    def hear(self, request_body: Asked) -> Heard:
        """Return the content of a request."""
        parts: list[Prompted | Answered] = []
        for content in _objects(request_body.get("contents")):
            if content.get("role") == "model":
                continue
            for part in _objects(content.get("parts")):
                if "functionResponse" in part:
                    result = _object(part["functionResponse"])
                    text = json.dumps(result.get("response"), ensure_ascii=False)
                    parts.append(Answered(call_id=str(result.get("id")), text=text))
                elif isinstance(prompt_text := part.get("text"), str):
                    parts.append(Prompted(text=prompt_text))
        tools = [
            declaration
            for tool in _objects(request_body.get("tools"))
            for declaration in _objects(tool.get("functionDeclarations"))
        ]
        return Heard(parts=tuple(parts), offered=_by_name(tools), request=request_body)

    def say(self, reply: Reply, heard: Heard) -> bytes:  # noqa: ARG002 - the signature of the protocol
        """Return the whole HTTP answer with this reply; a stream has one event."""
        parts: list[JsonValue] = [{"text": reply.text}] if reply.text else []
        parts.extend(
            {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}
            for call in reply.calls
        )
        body: JsonValue = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
        }
        text = json.dumps(body)
        return in_chunks([f"data: {text}\n\n"]) if self._streams else with_length(200, text.encode())


WIRES: Mapping[str, Wire] = {
    "/messages": AnthropicWire(),
    "/chat/completions": ChatWire(),
    "/responses": ResponsesWire(),
    ":streamGenerateContent": GeminiWire(streams=True),
    ":generateContent": GeminiWire(streams=False),
}
"""APIs by the end of the request's path."""


def _item(call: ToolCall, tool: Mapping[str, str]) -> dict[str, JsonValue]:
    common: dict[str, JsonValue] = {"call_id": call.id, "name": call.name, "status": "completed"}
    if "namespace" in tool:
        common["namespace"] = tool["namespace"]
    if tool.get("type") == "custom":
        return {
            "type": "custom_tool_call",
            "id": f"ctc_{call.id}",
            **common,
            "input": json.loads(call.arguments)["input"],
        }
    return {"type": "function_call", "id": f"fc_{call.id}", **common, "arguments": call.arguments}


def _spaced(tools: Iterable[Mapping[str, JsonValue]]) -> dict[str, dict[str, str]]:
    """Return all tools by name, including those in namespaces."""
    tools_found: dict[str, dict[str, str]] = {}
    for tool in tools:
        if tool.get("type") == "namespace":
            space = str(tool.get("name"))
            tools_found |= {
                name: {**entry, "namespace": space} for name, entry in _spaced(_objects(tool.get("tools"))).items()
            }
        else:
            tools_found[str(tool.get("name"))] = {"type": str(tool.get("type"))}
    return tools_found


def _named_events(events: Iterable[Mapping[str, JsonValue]]) -> bytes:
    return in_chunks(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _object(value: object) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _blocks(content: object) -> list[dict[str, JsonValue]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content)


def _text(content: object) -> str:
    # Text between agents of Codex is in `encrypted_content`. For a model without keys it is plain text.
    texts = (block.get("text", block.get("encrypted_content")) for block in _blocks(content))
    return "\n".join(text for text in texts if isinstance(text, str))


def _by_name(tools: object) -> dict[str, dict[str, str]]:
    return {str(tool.get("name")): {} for tool in _objects(tools)}

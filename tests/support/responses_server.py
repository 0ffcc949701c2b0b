"""A server of scripts that speaks both OpenAI APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.messages import ToolCall
from harness.models.loopback import NO_JSON, HttpRequest, ScriptServer, Then, in_chunks, with_length
from harness.models.scripted import Reply, refusal

_TEXT_PIECE = 12
"""Characters of text per event."""


class ResponsesProblem(Exception):
    """What a strict server would refuse in a request before it looks at the pairing; never leaves the server."""


class ServerOfBothApis(ScriptServer):
    """Serves a player to clients of chat completions and of the Responses API."""

    def respond(self, request: HttpRequest) -> tuple[bytes, Then]:
        """Answer at /v1/responses too."""
        if (request.method, request.path) != ("POST", "/v1/responses"):
            return super().respond(request)
        try:
            asked = json.loads(request.body)
        except (ValueError, RecursionError):
            return self.sent(NO_JSON, {})
        if not isinstance(asked, dict):
            return self.sent(refusal("the request must be a JSON object"), {})
        try:
            answer = self.play(chat_request(asked))
        except ResponsesProblem as problem:
            answer = refusal(str(problem))
        if not isinstance(answer, Reply):
            return self.sent(answer, asked)
        if asked.get("stream") is not True:
            return with_length(200, json.dumps(whole_response(answer, asked)).encode()), Then.KEEP
        events = response_events(answer, asked, self.fragment)
        return in_chunks(f"event: {name}\ndata: {data}\n\n" for name, data in events), Then.KEEP


def chat_request(request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the same request in the form of chat completions, as a Player takes and checks it.

    A reply's message and the calls after it become one assistant message. Reasoning is checked and left out.

    Raises ResponsesProblem for an item that is not known or stands where it may not.
    """
    given = request.get("input")
    items: JsonValue = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not items:
        raise ResponsesProblem("`input` must be a text, or a list that is not empty")
    reading = _Reading()
    if isinstance(instructions := request.get("instructions"), str):
        reading.messages.append({"role": "system", "content": instructions})
    for place, item in enumerate(items):
        reading.take(place, item)
    reading.check_reasoning()
    rest = {key: value for key, value in request.items() if key not in ("input", "instructions")}
    return {**rest, "messages": list(reading.messages)}


class _Reading:
    """Input items on their way to messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, JsonValue]] = []
        self._calls: list[JsonValue] | None = None
        """Of the reply that the next call belongs to; None where none is open."""
        self._reasoning = -1
        """The place of reasoning that nothing has followed yet."""

    def take(self, place: int, item: JsonValue) -> None:
        """Add one item."""
        if not isinstance(item, dict):
            raise ResponsesProblem(f"input[{place}] must be an object")
        kind = item.get("type", "message")
        if kind not in ("reasoning", "function_call") and item.get("role") != "assistant":
            self.check_reasoning()
        self._reasoning = place if kind == "reasoning" else -1
        match kind:
            case "reasoning":
                pass
            case "message":
                self.messages.append({"role": item.get("role"), "content": _text(item.get("content"))})
                self._calls = [] if item.get("role") == "assistant" else None
            case "function_call":
                if self._calls is None:
                    self._calls = []
                    self.messages.append({"role": "assistant", "content": None})
                self._calls.append(_call(item))
                self.messages[-1]["tool_calls"] = self._calls
            case "function_call_output":
                self._calls = None
                result = {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
                if isinstance(result["content"], list):  # text and pictures, as the API has them
                    result["content"] = json.dumps(result["content"])
                self.messages.append(result)
            case _:
                raise ResponsesProblem(f"input[{place}] has no known type")

    def check_reasoning(self) -> None:
        """Refuse reasoning that nothing followed."""
        if self._reasoning >= 0:
            raise ResponsesProblem(f"input[{self._reasoning}]: reasoning without the item that it led to")


def whole_response(reply: Reply, asked: Mapping[str, JsonValue]) -> JsonValue:
    """Return a reply as one document."""
    reason = _incomplete_reason(reply)
    given, made = reply.usage.input_tokens, reply.usage.output_tokens
    return {
        **_envelope(asked, "incomplete" if reason else "completed"),
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _output(reply),
        "usage": {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": reply.usage.cached_tokens},
            "output_tokens": made,
            "total_tokens": given + made,
        },
    }


def response_events(reply: Reply, asked: Mapping[str, JsonValue], fragment: int) -> Iterator[tuple[str, str]]:
    """Yield name and data of the events of a reply, as the API sends them; `fragment` characters of arguments in each."""
    end = "response.incomplete" if _incomplete_reason(reply) else "response.completed"
    events: list[tuple[str, dict[str, JsonValue]]] = [
        ("response.created", {"response": {**_envelope(asked, "in_progress"), "output": [], "usage": None}})
    ]
    for index, item in enumerate(_output(reply)):
        if isinstance(item, dict):
            is_call = item["type"] == "function_call"
            events += _call_events(index, item, fragment) if is_call else _message_events(index, item, reply.text)
    events.append((end, {"response": whole_response(reply, asked)}))
    for number, (name, fields) in enumerate(events):
        yield name, json.dumps({"type": name, "sequence_number": number, **fields})


def _message_events(index: int, item: dict[str, JsonValue], text: str) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    begun: JsonValue = {**item, "status": "in_progress", "content": []}
    part: dict[str, JsonValue] = {"type": "output_text", "text": "", "annotations": []}
    at: dict[str, JsonValue] = {"item_id": item["id"], "output_index": index, "content_index": 0}
    yield "response.output_item.added", {"output_index": index, "item": begun}
    yield "response.content_part.added", {**at, "part": part}
    for start in range(0, len(text), _TEXT_PIECE):
        yield "response.output_text.delta", {**at, "delta": text[start : start + _TEXT_PIECE]}
    yield "response.output_text.done", {**at, "text": text}
    yield "response.content_part.done", {**at, "part": {**part, "text": text}}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _call_events(index: int, item: dict[str, JsonValue], fragment: int) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    arguments = str(item["arguments"])
    begun: JsonValue = {**item, "status": "in_progress", "arguments": ""}
    at: dict[str, JsonValue] = {"item_id": item["id"], "output_index": index}
    yield "response.output_item.added", {"output_index": index, "item": begun}
    for start in range(0, len(arguments), fragment):
        yield "response.function_call_arguments.delta", {**at, "delta": arguments[start : start + fragment]}
    yield "response.function_call_arguments.done", {**at, "arguments": arguments}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _output(reply: Reply) -> list[JsonValue]:
    part: JsonValue = {"type": "output_text", "text": reply.text, "annotations": []}
    message: JsonValue = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    return [*([message] if reply.text else []), *(_call_item(call) for call in reply.calls)]


def _call_item(call: ToolCall) -> JsonValue:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _envelope(asked: Mapping[str, JsonValue], status: str) -> dict[str, JsonValue]:
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "model": asked.get("model"),
        "status": status,
        "error": None,
    }


def _incomplete_reason(reply: Reply) -> str:
    """Return why a reply is incomplete in this API's words, or nothing where it is complete."""
    reason = reply.finish_reason
    return (
        "" if reason in (None, "stop", "tool_calls") else {"length": "max_output_tokens"}.get(str(reason), str(reason))
    )


def _call(item: dict[str, JsonValue]) -> JsonValue:
    function: JsonValue = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _text(content: JsonValue) -> JsonValue:
    """Return the text of a message, whose parts go by other names in chat completions."""
    if not isinstance(content, list):
        return content
    return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))

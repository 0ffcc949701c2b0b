"""A scripted model. A script is a generator; a Player answers requests with the values that it yields.

The Player is also a strict server: it refuses a history with a call without a result, or a result without a call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from harness.actions import JsonValue
from harness.messages import ToolCall, Usage
from harness.record import Record, replace


class Reply(Record):
    """The model's reply in one turn."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Calls. The player gives those with an empty ID an ID: `call_1`, `call_2` and so on."""
    finish_reason: str | None = None
    """Finish reason. `None` means `tool_calls` for a reply with calls, else `stop`."""
    usage: Usage = Usage(input_tokens=200, output_tokens=20)


class Failure(Record):
    """An answer with an error status instead of a reply."""

    status: int
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Raw(Record):
    """A success status and this body, after which the connection is closed. For cut streams, web pages and garbage."""

    body: bytes
    content_type: str = "text/event-stream"


class ToolOutcome(Record):
    """A tool result as the model reads it."""

    call_id: str
    name: str
    """Name of the called tool."""
    content: str


class Turn(Record):
    """The additions of a request since the previous reply."""

    results: tuple[ToolOutcome, ...]
    """Results of the calls of the last reply, in their order."""
    user: str
    """Text of the last user message."""
    messages: tuple[Mapping[str, JsonValue], ...]
    """The whole conversation in the form of the request."""


ScriptedAnswer: TypeAlias = Reply | Failure | Raw
ModelScript: TypeAlias = Callable[[], Generator[ScriptedAnswer, Turn, None]]
"""A script. `turn = yield Reply(...)` sends a reply and waits for the next request.

A Failure or Raw also answers one request: the client's next try gets the next yielded value.
"""


def say(text: str) -> Reply:
    """Return a reply without calls: the end of a turn."""
    return Reply(text=text)


def call(tool: str, /, **arguments: JsonValue) -> ToolCall:
    """Return a call of `tool` without an ID; the player sets it."""
    return ToolCall(id="", name=tool, arguments=json.dumps(arguments))


def replies(*answers: ScriptedAnswer) -> ModelScript:
    """Return a script that yields these answers in order, regardless of the requests."""

    def script() -> Generator[ScriptedAnswer, Turn, None]:
        for answer in answers:  # noqa: UP028 - `yield from` would pass the turns on to a plain iterator
            yield answer

    return script


class _Act(Enum):
    """Progress of a script."""

    WAITING = "waiting"
    PLAYING = "playing"
    OVER = "over"
    FAILED = "failed"


class Player:
    """Plays one script to one client."""

    def __init__(self, script: ModelScript) -> None:
        """Create the generator of `script`, which starts with the first request."""
        self.requests: list[Mapping[str, JsonValue]] = []
        """All requests in order, including refused ones. Equal messages are stored once."""
        self._generator = script()
        self._messages: list[JsonValue] = []
        self._last: ScriptedAnswer | None = None
        self._last_messages: list[JsonValue] = []
        self._act = _Act.WAITING
        self._calls = 0

    @property
    def finished(self) -> bool:
        """Whether no further request is expected: the script has ended, or its last answer was a reply without calls.

        After such a reply, only a new user message leads to another request.
        """
        said_all = isinstance(self._last, Reply) and not self._last.calls
        return self._act is _Act.OVER or (self._act is _Act.PLAYING and said_all)

    def answer(self, request: object) -> ScriptedAnswer:
        """Return the answer to a parsed request of the chat completions API.

        A request that the API would refuse gets status 400, and the script does not advance. A request after the end of
        the script also gets status 400, unless it repeats the last request: then it gets the last answer again.
        """
        if not isinstance(request, dict):
            return refusal("the request must be a JSON object")
        messages = request.get("messages")
        if isinstance(messages, list):
            request = {**request, "messages": self._shared(messages)}
        self.requests.append(request)
        problem = request_problem(request)
        if problem:
            return refusal(problem)
        return self._next(request["messages"])

    def _next(self, messages: list[JsonValue]) -> ScriptedAnswer:
        if self._act in (_Act.WAITING, _Act.PLAYING):
            try:
                # The first `send` to a generator accepts only None.
                answer = next(self._generator) if self._act is _Act.WAITING else self._generator.send(_turn(messages))
            except StopIteration:
                self._act = _Act.OVER
            except Exception as error:  # noqa: BLE001 - a fault in a script must reach the person who wrote it
                self._act = _Act.FAILED
                return refusal(f"the script failed: {type(error).__name__}: {error}")
            else:
                self._act, self._last, self._last_messages = _Act.PLAYING, self._numbered(answer), messages
                return self._last
        if self._last is not None and messages == self._last_messages:
            return self._last
        return refusal("the script is over")

    def _numbered(self, answer: ScriptedAnswer) -> ScriptedAnswer:
        if not isinstance(answer, Reply):
            return answer
        calls = []
        for written in answer.calls:
            self._calls += 1
            calls.append(written if written.id else replace(written, id=f"call_{self._calls}"))
        return replace(answer, calls=tuple(calls))

    def _shared(self, messages: list[JsonValue]) -> list[JsonValue]:
        """Return `messages` with the objects of the previous request in place of equal messages.

        Without this, memory use would grow with the square of the length of a run.
        """
        common = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old != new:
                break
            common += 1
        self._messages = self._messages[:common] + messages[common:]
        return self._messages


def request_problem(request: Mapping[str, JsonValue]) -> str:
    """Return the reason why a strict server would refuse `request`, or an empty string."""
    if not isinstance(request.get("model"), str):
        return "`model` must be a text"
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "`messages` must be a list that is not empty"
    awaited: list[str] = []
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant", "tool"):
            return f"messages[{number}] has no known role"
        problem = _pairing_problem(message, awaited) or _calls_problem(message, awaited)
        if problem:
            return f"messages[{number}]: {problem}"
    return f"the call {awaited[0]} has no result" if awaited else ""


def _pairing_problem(message: Mapping[str, JsonValue], awaited: list[str]) -> str:
    """Check whether a message is the next awaited result, and remove its ID from `awaited`. Return the problem."""
    if message["role"] != "tool":
        return f"the call {awaited[0]} has no result directly after it" if awaited else ""
    call_id = message.get("tool_call_id")
    if not awaited or call_id not in awaited:
        return f"the result {call_id} has no call right before it"
    if call_id != awaited[0]:
        return f"the result {call_id} stands where that of {awaited[0]} should"
    if not isinstance(message.get("content"), str):
        return f"the result {call_id} has no text"
    del awaited[0]
    return ""


def _calls_problem(message: Mapping[str, JsonValue], awaited: list[str]) -> str:
    """Check the calls of a message, and append their IDs to `awaited`. Return the problem."""
    calls = message.get("tool_calls")
    if calls is None:
        return ""
    if message["role"] != "assistant" or not isinstance(calls, list) or not calls:
        return "`tool_calls` must be a list in an assistant message, and not empty"
    for call_json in calls:
        problem = _call_problem(call_json)
        if problem:
            return problem
    ids = [call_id for call_id, _ in _calls_of(message)]
    awaited.extend(ids)
    return "two calls share an id" if len(set(ids)) < len(ids) else ""


def _call_problem(value: JsonValue) -> str:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(function, dict) or value.get("type") != "function":
        return "a tool call must be an object of type `function`"
    if not isinstance(value.get("id"), str) or not value["id"]:
        return "a tool call has no id"
    if not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str):
        return "a tool call needs a name and arguments, both texts"
    return ""


def _calls_of(message: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """Return the ID and the name of each call in a message."""
    calls = message.get("tool_calls")
    return [
        (str(value.get("id")), str(function.get("name")))
        for value in (calls if isinstance(calls, list) else [])
        if isinstance(value, dict) and isinstance(function := value.get("function"), dict)
    ]


def _turn(messages: Sequence[JsonValue]) -> Turn:
    objects = [message for message in messages if isinstance(message, dict)]
    start = max((i for i, message in enumerate(objects) if message["role"] == "assistant"), default=-1)
    names = dict(_calls_of(objects[start])) if start >= 0 else {}
    results = tuple(
        ToolOutcome(call_id=call_id, name=names.get(call_id, ""), content=_text(message))
        for message in objects[start + 1 :]
        if message["role"] == "tool" and (call_id := str(message.get("tool_call_id")))
    )
    user = next((_text(message) for message in reversed(objects) if message["role"] == "user"), "")
    return Turn(results=results, user=user, messages=tuple(objects))


def _text(message: Mapping[str, JsonValue]) -> str:
    """Return the text of a message; its content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def refusal(problem: str) -> Failure:
    """Return an answer with status 400 and `problem` in the error format of the API."""
    error = {"message": problem, "type": "invalid_request_error", "param": None, "code": None}
    return Failure(status=400, body=json.dumps({"error": error}))

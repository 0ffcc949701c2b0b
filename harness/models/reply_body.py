"""The body of one answer. Its pieces are assembled to one whole reply, or to an error that describes the content.

INVARIANT: the result does not depend on how the bytes are split into pieces. A reply that was not marked as finished is
never returned as a reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from enum import Enum

from harness.actions import JsonValue
from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import FinishReason, ModelResponse
from harness.models.dialect import Assembly, out_of_bounds
from harness.models.endpoint import ReplyBounds
from harness.models.failures import EMPTY_ANSWER, EXCERPT_CHARACTERS, FailedTry, ProviderRefusal, broken_off, excerpt
from harness.models.wire_format import BOM, AmbiguousKey, Event, EventDecoder, ends_early, read_json, told_apart
from harness.record import replace
from harness.regex import regex

_EDGE_CHARACTERS = 65_536
"""Number of characters at each end of a long text that are searched for marks. Calls occur at the start or the end."""
_HEAD_CHARACTERS = 400
"""Number of characters from a mark on that are searched for the tool's name."""

# A mark opens a call in the format of some model family: Mistral `[TOOL_CALLS]`; Qwen, Hermes, GLM `<tool_call>`; Llama
# `<|python_tag|>` and `<function=NAME>`; Kimi, DeepSeek, Granite, LFM, MiniMax and others: further tags that mention tools,
# functions or calls; Cline `<NAME><path>`; gpt-oss `<|channel|>commentary to=functions.NAME`; ReAct `Action: NAME`.
_MARK = regex(
    r"\[TOOL_(?:CALLS|REQUEST)\]|<(?=\w{1,64}>\s{0,9}<\w)|Action: |"
    r"<[|\uff5c]?[\w:\uff5c]{0,20}?(?:tool|function|invoke|call|python_tag|plugin)|"
    r"(?:<\|channel\|>|<\|start\|>assistant|assistant)(?:commentary|analysis)? ?to="
)
# Text that may separate the mark from the tool's name: tags, JSON keys before a name, and words of these formats.
_NAMED = regex(
    r"(?:\s|\[TOOL_\w+\]|\"(?:type|id)\"\s*:\s*\"[^\"]{0,80}\"\s*,|\"(?:function|name|tool|tool_name)\"\s*:|[\[{\"]|"
    r"</?[|\uff5c][^<>\n]{1,60}[|\uff5c]>|<[\w:\uff5c]{0,20}?(?:tool|function|invoke|call)\w{0,30}(?:\s+name)?[=>]|<|"
    r"Action: |assistant|commentary|analysis|to=|function(?=<)|functions\.|call:)*+"
    r"(?P<name>[A-Za-z0-9_.-]{1,64})(?=\s*(?:[\"\[({<>:`]|Action Input:|json|code))"
)
_PYTHON_CALL = regex(r"\[?(?P<name>\w{1,64})\(\w+\s*=.*\)\]?", re.DOTALL)
_FIRST_JSON = regex(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_NAME_KEYS = ("name", "tool", "tool_name", "function_name", "function", "action", "recipient_name")
_ARGUMENT_KEYS = frozenset(("arguments", "parameters", "args", "input", "params", "action_input", "tool_input"))

_THOUGHT = regex(r"\s*<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)


def refuse_unread(reply: ModelResponse, offered: AbstractSet[str]) -> None:
    """Raise ModelError if a reply has no calls, but its text calls a tool of `offered`."""
    if not reply.tool_calls and (name := unread_call(reply.text, offered)):
        raise ModelError(
            f"The model called {name}, but its server left the call in the text instead of parsing it, so that no tool "
            "ran. Start the server with the parser for this model (vLLM: --enable-auto-tool-choice and "
            "--tool-call-parser; SGLang: --tool-call-parser; llama-server: --jinja), use `--calls text`, or choose "
            "another model.",
            fault=ModelFault.REPLY,
        )


def unread_call(text: str, offered: AbstractSet[str]) -> str:
    """Return the name of an offered tool that `text` calls in the format of some model. Empty if it calls none.

    A call is one of two forms. It begins with a mark, at the start of a line or after another tag, directly followed by
    the name of the tool. Or it is JSON or Python with arguments, from the start of a line to the end of the text.

    Reasoning before the call is skipped, and so is a code block around the whole text. Text within any other code block
    counts as a quotation. The middle of a long text is not searched.
    """
    text = without_thoughts(text) or text
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text[:-3].partition("\n")[2].strip()
    return _marked_call(text, offered) or _bare_call(text, offered)


def without_thoughts(text: str) -> str:
    """Return `text` without the tagged reasoning at its start, and without surrounding white space.

    Reasoning without a closing tag extends to the end of the text. The opening tag may be missing if the text ends with
    the closing tag, since some templates put the opening tag into the prompt.
    """
    thought = _THOUGHT.match(text)
    rest = text[thought.end() :].strip() if thought is not None else text.strip()
    is_analysis = rest.startswith("<|channel|>analysis") and rest.count("<|channel|>") == 1
    return "" if is_analysis or rest.endswith("</think>") else rest


def _marked_call(text: str, offered: AbstractSet[str]) -> str:
    parts = [(0, len(text))]
    if len(text) > 2 * _EDGE_CHARACTERS:
        parts = [(0, _EDGE_CHARACTERS), (len(text) - _EDGE_CHARACTERS, len(text))]
    fences, count = 0, 0
    for mark in (mark for part in parts for mark in _MARK.finditer(text, *part)):
        position = mark.start()
        fences += text.count("```", count, position)
        count = position
        line = text[max(0, position - 80) : position].rpartition("\n")[2].strip()
        if fences % 2 or (line and not line.endswith(("|>", "|>assistant")) and not mark[0].startswith("assistantc")):
            continue
        match = _NAMED.match(text[position : position + _HEAD_CHARACTERS])
        name = match["name"].removesuffix(".call") if match is not None else ""
        if name in offered:
            return name
    return ""


def _bare_call(text: str, offered: AbstractSet[str]) -> str:
    if text.endswith((")", ")]")) and (python := _PYTHON_CALL.fullmatch(text)) is not None:
        return python["name"] if python["name"] in offered else ""
    start = _FIRST_JSON.search(text) if text.endswith(("}", "]", ";")) else None
    if start is None or "```" in text[: start.end()]:
        return ""
    called, position, decoder = "", start.end(), json.JSONDecoder()
    while position < len(text):
        if text[position] in " \t\r\n,;":
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return ""
        called = _named_in(value, offered)
        if not called:
            return ""
    return called


def _named_in(value: JsonValue, offered: AbstractSet[str]) -> str:
    """Return the name of the offered tool that a JSON value calls. Empty if it calls none.

    For a list, every value must be a call; the first name is returned.
    """
    if isinstance(value, list):
        names = [_named_in(item, offered) for item in value]
        return names[0] if names and all(names) else ""
    if not isinstance(value, dict):
        return ""
    for key in ("function", "tool_call", "tool_calls"):
        if isinstance(inner := value.get(key), dict | list):
            return _named_in(inner, offered)
    if _ARGUMENT_KEYS.intersection(value):
        names = [str(value[key]).removeprefix("functions.") for key in _NAME_KEYS if key in value]
        return next((name for name in names if name in offered), "")
    (name, arguments), *rest = [*value.items()] or [("", "")]
    return name if name in offered and isinstance(arguments, dict) and not rest else ""


_HEAD_BYTES = 4 * EXCERPT_CHARACTERS


class _Shape(Enum):
    """The format of a body, determined by its first byte. Content types are not trusted."""

    UNKNOWN = "unknown"
    EVENTS = "events"
    JSON = "json"
    HTML = "html"


class ReplyBody:
    """The body of one answer, fed piece by piece. It is an event stream or one JSON document, even if a stream was
    requested.
    """

    def __init__(self, assembly: Assembly, *, secret: str = "", bounds: ReplyBounds | None = None) -> None:
        """`assembly` assembles the reply, `secret` is the API key to mask in error texts, `bounds` limits the reply."""
        self.events = 0
        """Number of received events with data."""
        self._bounds = bounds or ReplyBounds()
        self._secret = secret
        self._shape = _Shape.UNKNOWN
        self._size = 0
        self._has_text = False
        self._head = b""
        self._waiting: bytes | None = b""
        self._document: list[bytes] = []
        self._document_bytes = 0
        self._decoder = EventDecoder()
        self._assembly = assembly
        self._done = False

    @property
    def started(self) -> bool:
        """Whether an event was decoded."""
        return self.events > 0

    @property
    def finished(self) -> bool:
        """Whether a finish reason or `[DONE]` arrived."""
        return self._done or self._assembly.finished

    @property
    def over(self) -> bool:
        """Whether `[DONE]` arrived. Everything after it is ignored."""
        return self._done

    @property
    def is_shown(self) -> bool:
        """Whether any text of the reply, or the beginning of a call, has arrived."""
        return self._assembly.call_count > 0 or self._has_text

    @property
    def arrived(self) -> bool:
        """Whether any byte arrived, including keep-alives."""
        return self._size > 0

    def feed(self, data: bytes) -> list[str]:
        """Add a piece of the body; return the pieces of text that it completes.

        Raises ModelError for an error reported by the provider, invalid JSON, a web page, or a reply beyond the bounds.
        """
        self._size += len(data)
        if self._size > self._bounds.bytes:
            raise out_of_bounds("bytes", self._bounds.bytes)
        if len(self._head) < _HEAD_BYTES:
            self._head = (self._head + data)[:_HEAD_BYTES]
        if self._shape is _Shape.UNKNOWN:
            data = self._look(data)
        if self._shape is _Shape.JSON:
            self._document.append(data)
            self._document_bytes += len(data)
            if self._document_bytes > self._bounds.event_bytes:
                raise out_of_bounds("event_bytes", self._bounds.event_bytes)
        if self._shape is _Shape.HTML and len(self._head) == _HEAD_BYTES:
            raise self._web_page()
        if self._shape is not _Shape.EVENTS:
            return []
        events = self._decoder.feed(data)
        if self._decoder.longest > self._bounds.event_bytes:
            raise out_of_bounds("event_bytes", self._bounds.event_bytes)
        return [text for event in events if (text := self._take(event))]

    def end(self) -> list[str]:
        """Return the last pieces of text, after the end of the body. Raises ModelError as `feed` does."""
        if self._shape is _Shape.JSON:
            texts = [self._take_document()]
        else:
            texts = [self._take(event, last=True) for event in self._decoder.finish()]
        texts.append(self._assembly.end_text())
        return [text for text in texts if text]

    def response(
        self, taken_ids: AbstractSet[str] = frozenset(), offered: AbstractSet[str] = frozenset()
    ) -> ModelResponse:
        """Return the reply; call this after `end`. Each call gets an ID that is unique and not in `taken_ids`.

        Raises CutReply if the reply was never marked as finished. Raises ModelError if the body is not a reply, or if
        its text calls a tool of `offered` in a form that the server did not parse.
        """
        assembly = self._assembly
        if self._shape is not _Shape.JSON:
            self._check_stream()
        if assembly.broken_off:
            raise CutReply(
                f"The provider broke the reply off (finish reason {assembly.broken_off!r}). {self._so_far()}",
                fault=ModelFault.SERVER,
            )
        reply = assembly.response()
        refuse_unread(reply, offered)
        if reply.text.strip() and not without_thoughts(reply.text) and reply.finish_reason is FinishReason.DONE:
            reply = replace(reply, finish_reason=FinishReason.REASONING)
        return replace(reply, tool_calls=told_apart(reply.tool_calls, taken_ids))

    def cut(self, reason: str, fault: ModelFault = ModelFault.REPLY) -> CutReply:
        """Return the error for a reply that was cut off for `reason`."""
        return CutReply(f"The reply was cut off: {reason}. {self._so_far()}", fault=fault)

    def _so_far(self) -> str:
        count, calls = len(self._assembly.text), self._assembly.call_count
        return f"None of it was used ({count} characters of text, {calls} tool calls begun)."

    def _look(self, data: bytes) -> bytes:
        """Determine the format by the first byte that is not white space. Return the data without leading white space."""
        if self._waiting is not None:  # the body so far is at most a part of the byte-order mark
            data = self._waiting + data
            self._waiting = data if BOM.startswith(data) else None
            data = b"" if self._waiting is not None else data.removeprefix(BOM)
        start = data.lstrip()
        if start:
            self._shape = {b"{": _Shape.JSON, b"[": _Shape.JSON, b"<": _Shape.HTML}.get(start[:1], _Shape.EVENTS)
        return start

    def _take(self, event: Event, *, last: bool = False) -> str:
        name, data = event
        self.events += 1
        if self.events > self._bounds.events:
            raise out_of_bounds("events", self._bounds.events)
        if self._done:
            return ""
        if data.strip() == b"[DONE]":
            self._done = True
            return ""
        chunk = self._event_value(data, last=last)
        if chunk is None:
            return ""
        if chunk.get("type") == "ping":  # a keep-alive of the Messages API, though it has data
            self.events -= 1
            return ""
        if name == "error" or _error_of(chunk):
            raise broken_off(_error_of(chunk) or chunk, self._secret)
        try:
            text = self._assembly.add(name, chunk)
        except RecursionError:
            raise _too_deep() from None
        self._has_text = self._has_text or bool(text)
        return text

    def _event_value(self, data: bytes, *, last: bool) -> dict[str, JsonValue] | None:
        """Parse the data of an event. Return `None` for the `last` event if the end of the stream cut it."""
        try:
            chunk = read_json(data)
        except AmbiguousKey as twice:
            raise self._ambiguous(twice, data) from None
        except (ValueError, RecursionError):
            if not last:
                raise ModelError(f"The provider sent an event that is not valid JSON: {self._quote(data)}") from None
            if not b"[DONE]".startswith(data.strip()):
                self._assembly.tear()  # without a finish reason, the reply counts as cut off
            return None
        if not isinstance(chunk, dict):
            raise ModelError(f"The provider sent an event that is not a JSON object: {self._quote(data)}")
        return chunk

    def _take_document(self) -> str:
        data = b"".join(self._document)
        try:
            document = read_json(data)
        except AmbiguousKey as twice:
            raise self._ambiguous(twice, data) from None
        except (ValueError, RecursionError):
            if ends_early(data):
                raise self.cut(f"its JSON ends early, after {len(data)} bytes") from None
            raise ModelError(f"The answer is neither an event stream nor valid JSON: {self._quote(data)}") from None
        first = document[0] if isinstance(document, list) and len(document) == 1 else document
        error = _error_of(first) if isinstance(first, dict) else None  # Gemini's compatible endpoint lists its errors
        if error:
            raise broken_off(error, self._secret, words="The provider reports an error")
        try:
            text = self._assembly.add_document(document) if isinstance(document, dict) else ""
        except RecursionError:
            raise _too_deep() from None
        if not self._assembly.chosen:
            raise ModelError(f"The answer is JSON, but not a reply: {self._quote(data)}")
        return text

    def _check_stream(self) -> None:
        if self._shape is _Shape.UNKNOWN:
            raise FailedTry(
                "The answer is empty: the server sent a success status and no body. Check the base URL.",
                fault=ModelFault.REPLY,
                passing=True,
                refusal=ProviderRefusal(status=0, codes=(EMPTY_ANSWER,), message="", words=""),
            )
        if self._shape is _Shape.HTML:
            raise self._web_page()
        if not self._decoder.recognised:
            raise ModelError(f"The answer is not an event stream: {self._quote(self._head)}")
        if not self.finished:
            raise self.cut("the stream ended without a finish reason or [DONE]")
        if not self._assembly.chosen:
            raise FailedTry(
                "The reply is empty: the stream ended properly, but held nothing.", fault=ModelFault.REPLY, passing=True
            )

    def _web_page(self) -> ModelError:
        return ModelError(
            "The answer is a web page, not a reply; check the base URL (it usually ends in /v1): "
            + self._quote(self._head)
        )

    def _ambiguous(self, twice: AmbiguousKey, data: bytes) -> ModelError:
        key = excerpt(twice.key, self._secret)
        return ModelError(f"The provider sent JSON in which {key!r} has two different values: {self._quote(data)}")

    def _quote(self, data: bytes) -> str:
        return excerpt(data.decode(errors="replace"), self._secret)


def _too_deep() -> ModelError:
    """Return the error for arguments that can be parsed, but are nested too deeply for further processing."""
    return ModelError("The provider sent tool arguments that are nested too deeply to read.")


def _error_of(chunk: dict[str, JsonValue]) -> JsonValue:
    return chunk if chunk.get("object") == "error" else chunk.get("error")

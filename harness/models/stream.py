"""Read a chat completion off the wire: bytes to events to one ModelResponse. Pure: no I/O, no SDK, no clock.

Servers that call themselves compatible differ in many small ways; whatever they send ends in a reply that is whole, in
CutReply, or in ModelError. INVARIANT: however the bytes are sliced, the outcome is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import TypeAlias

from harness.actions import JsonValue
from harness.errors import CutReply, ModelError
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Of one reply, after decompression: a bound on memory, far above what a model writes."""
EXCERPT_CHARACTERS = 200
"""How much of a provider's own text an error message holds."""
MIN_SECRET_CHARACTERS = 6
"""Shorter keys are the made-up ones of local servers; masking those would blot out ordinary text."""

_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 4 * EXCERPT_CHARACTERS
_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)

# `model_length` is Mistral's, `max_tokens` and `safety` come from proxies that hand through other APIs' words.
_NO_REASONS = frozenset(("", "null", "none"))
_LENGTH_REASONS = frozenset(("length", "max_tokens", "model_length"))
_FILTER_REASONS = frozenset(("content_filter", "safety"))
# OpenRouter ends a reply that its provider dropped with `error`, vLLM one that was cancelled with `abort`.
_BROKEN_REASONS = frozenset(("error", "abort", "aborted", "cancelled"))

Event: TypeAlias = tuple[str, bytes]
"""An event's name (empty where it has none) and its data, not yet decoded."""


class EventDecoder:
    """Server-sent events out of bytes in any slicing.

    Line ends, comments, fields and the byte-order mark are those of the WHATWG HTML standard, section 9.2.6, except that
    an event which the end of the stream leaves without its blank line is not dropped: `finish` returns it.
    """

    def __init__(self) -> None:
        self.recognised = False
        """Whether any line so far was one of an event stream."""
        self._pieces: list[bytes] = []
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that `data` completes."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        self._pieces.append(data)
        if b"\n" not in data and b"\r" not in data:
            return []  # joining only at line ends keeps one huge line linear in its length
        lines = b"".join(self._pieces).splitlines(keepends=True)
        self._pieces = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        events: list[Event] = []
        for line in lines:
            self._take_line(line.rstrip(b"\r\n"), events)
        return events

    def finish(self) -> list[Event]:
        """Return what is left at the end of the stream; the last event may be cut anywhere."""
        events: list[Event] = []
        if self._pieces:
            self._take_line(b"".join(self._pieces), events)
            self._pieces = []
        self._take_line(b"", events)
        return events

    def _take_line(self, line: bytes, events: list[Event]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode(errors="replace")
        elif field not in (b"", b"id", b"retry"):
            return
        self.recognised = True

    def _dispatch(self, events: list[Event]) -> None:
        data = b"\n".join(self._data)
        if data.strip():
            events.append((self._name, data))
        self._name = ""
        self._data.clear()


class _PartialCall:
    """One tool call while its fragments come in."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self._scanned = 0
        self._held = ""
        self._in_text = False
        self._depth = 0
        self._opened = False

    def absorb(self, call_id: str, name: str, arguments: str) -> None:
        """Add a fragment: id and name may be whole, resent, growing or in pieces, until the arguments begin."""
        if not self.arguments:
            self.id = _grown(self.id, call_id)
        if not self.arguments or not self.name:
            self.name = _grown(self.name, name)
        self.id = self.id or call_id
        if arguments:
            self.arguments.append(arguments)

    def is_over(self, call_id: str, name: str, arguments: str) -> bool:
        """Say whether a fragment that points here begins another call: some servers give every call the index 0."""
        if not name or not self.arguments:
            return False
        if call_id and self.id and call_id != self.id:
            return name != self.name or self._closed()
        return bool(arguments.strip()) and self._closed()

    def _closed(self) -> bool:
        """Say whether the arguments are a whole object, as far as brackets tell; each character is read once."""
        text = self._held + "".join(self.arguments[self._scanned :])
        self._scanned = len(self.arguments)
        self._held = "\\" if (len(text) - len(text.rstrip("\\"))) % 2 else ""
        for mark in _MARKS.findall(text):
            if mark == '"':
                self._in_text = not self._in_text
            elif not self._in_text and mark in "{}[]":
                self._opened = True
                self._depth += 1 if mark in "{[" else -1
        return self._opened and self._depth <= 0 and not self._in_text


class _Assembly:
    """The deltas of one reply, put together."""

    def __init__(self, secret: str) -> None:
        self.finish_reason = ""
        self.usage = Usage()
        self.chosen = False
        """Whether any choice came in."""
        self._secret = secret
        self._text: list[str] = []
        self._held = ""
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def call_count(self) -> int:
        return len(self._calls)

    def add(self, chunk: dict[str, JsonValue]) -> str:
        """Take one chunk, or a whole completion; return the text that it adds. Raises ModelError for an error in it."""
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.usage = Usage(
                input_tokens=_count(usage.get("prompt_tokens")), output_tokens=_count(usage.get("completion_tokens"))
            )
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if choice.get("error"):
            raise ModelError(f"The provider broke the reply off: {provider_message(choice['error'], self._secret)}")
        self.chosen = True
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason.lower() not in _NO_REASONS:
            self.finish_reason = reason.lower()
        return self._add_delta(choice)

    def end_text(self) -> str:
        """Return what stands for half a character that the end of the reply left over."""
        rest, self._held = "\ufffd" if self._held else "", ""
        self._text.append(rest)
        return rest

    def calls(self, taken: AbstractSet[str]) -> tuple[ToolCall, ...]:
        """Return the calls, each with an id that is neither in `taken` nor another call's."""
        used, calls = set(taken), []
        for call in self._calls:
            if not (call.id or call.name or call.arguments):
                continue
            call_id = call.id if call.id and call.id not in used else _free_id(used)
            used.add(call_id)
            calls.append(ToolCall(id=call_id, name=call.name, arguments=join_pairs("".join(call.arguments))))
        return tuple(calls)

    def _add_delta(self, choice: dict[str, JsonValue]) -> str:
        delta, whole = choice.get("delta"), choice.get("message")
        if not isinstance(delta, dict):
            if not isinstance(whole, dict) or self._text or self._calls:
                return ""  # a whole message after its own deltas says nothing new
            delta = whole
        fragments = delta.get("tool_calls")
        for position, fragment in enumerate(fragments if isinstance(fragments, list) else [fragments]):
            if isinstance(fragment, dict):
                self._add_fragment(fragment, position if delta is whole else _index(fragment.get("index")))
        return self._add_text(_content(delta.get("content")) or _content(delta.get("refusal")))

    def _add_fragment(self, fragment: dict[str, JsonValue], index: int | None) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call_id, name = _word(fragment.get("id")), _word(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        call = self._find(index, call_id, name)
        if call is None or call.is_over(call_id, name, arguments):
            call = _PartialCall()
            self._calls.append(call)
        call.absorb(call_id, name, arguments)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call

    def _find(self, index: int | None, call_id: str, name: str) -> _PartialCall | None:
        """Return the call that a fragment points to: by index, else by id, else the last one."""
        if index is not None:
            return self._by_index.get(index)
        last = self._calls[-1] if self._calls else None
        if not call_id:
            return last
        late = last if last is not None and not last.id and not name else None
        return self._by_id.get(call_id, late)

    def _add_text(self, text: str) -> str:
        """Keep and return `text`; half a surrogate pair at its end waits for the other half."""
        if not text:
            return ""
        text = self._held + text
        self._held = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        text = join_pairs(text.removesuffix(self._held), errors="replace")
        self._text.append(text)
        return text


class _Shape(Enum):
    """What a body turned out to be, by its first byte; content types are not believed."""

    UNKNOWN = "unknown"
    EVENTS = "events"
    JSON = "json"
    HTML = "html"


class ReplyReader:
    """The body of one answer, fed piece by piece: an event stream, or one JSON document where a stream was asked for."""

    def __init__(self, *, secret: str = "") -> None:
        """Take the API key, so that no error text repeats it."""
        self.started = False
        """Whether an event was decoded: from then on the request must not be sent again."""
        self._secret = secret
        self._shape = _Shape.UNKNOWN
        self._size = 0
        self._head = b""
        self._waiting: bytes | None = b""
        self._document: list[bytes] = []
        self._decoder = EventDecoder()
        self._assembly = _Assembly(secret)
        self._done = False

    @property
    def finished(self) -> bool:
        """Whether the reply said that it is finished: a finish reason or `[DONE]`."""
        return self._done or bool(self._assembly.finish_reason)

    def feed(self, data: bytes) -> list[str]:
        """Return the pieces of text that `data` completes.

        Raises ModelError for an error that the provider reports, broken JSON, or more than MAX_REPLY_BYTES.
        """
        self._size += len(data)
        if self._size > MAX_REPLY_BYTES:
            raise ModelError(f"The reply is longer than {MAX_REPLY_BYTES // 1024 // 1024} MiB; it was dropped.")
        if len(self._head) < _HEAD_BYTES:
            self._head = (self._head + data)[:_HEAD_BYTES]
        if self._shape is _Shape.UNKNOWN:
            data = self._look(data)
        if self._shape is _Shape.JSON:
            self._document.append(data)
        if self._shape is not _Shape.EVENTS:
            return []
        return [text for event in self._decoder.feed(data) if (text := self._take(event))]

    def end(self) -> list[str]:
        """Return the last pieces of text, after the end of the body. Raises ModelError as `feed` does."""
        if self._shape is _Shape.JSON:
            texts = [self._take_document()]
        else:
            texts = [self._take(event, last=True) for event in self._decoder.finish()]
        texts.append(self._assembly.end_text())
        return [text for text in texts if text]

    def response(self, taken_ids: AbstractSet[str] = frozenset()) -> ModelResponse:
        """Return the reply, after `end`. Calls without an id of their own get one that is not in `taken_ids`.

        Raises CutReply if it never said that it is finished, ModelError if the body was no reply at all.
        """
        assembly = self._assembly
        if self._shape is not _Shape.JSON:
            self._check_stream()
        if assembly.finish_reason in _BROKEN_REASONS:
            raise CutReply(
                f"The provider broke the reply off (finish reason {assembly.finish_reason!r}); {self._so_far()}"
            )
        return ModelResponse(
            text=assembly.text,
            tool_calls=assembly.calls(taken_ids),
            finish_reason=_finish_reason(assembly.finish_reason),
            usage=assembly.usage,
        )

    def cut(self, why: str) -> CutReply:
        """Return the error for a reply that broke off because of `why`."""
        return CutReply(f"The reply was cut off: {why}; {self._so_far()}")

    def _so_far(self) -> str:
        count, calls = len(self._assembly.text), self._assembly.call_count
        return f"nothing of it was used ({count} characters of text, {calls} tool calls begun)."

    def _look(self, data: bytes) -> bytes:
        """Decide the shape by the first byte that is not white, and return the data that counts."""
        if self._waiting is not None:  # nothing but perhaps a part of the byte-order mark came before
            data = self._waiting + data
            self._waiting = data if _BOM.startswith(data) else None
            data = b"" if self._waiting is not None else data.removeprefix(_BOM)
        start = data.lstrip()
        if start:
            self._shape = {b"{": _Shape.JSON, b"[": _Shape.JSON, b"<": _Shape.HTML}.get(start[:1], _Shape.EVENTS)
        return start

    def _take(self, event: Event, *, last: bool = False) -> str:
        name, data = event
        self.started = True
        if self._done:
            return ""
        if data.strip() == b"[DONE]":
            self._done = True
            return ""
        try:
            chunk = json.loads(data.decode())
        except (ValueError, RecursionError):
            if last:
                return ""  # the end of the stream fell into this event; without a finish reason the reply is cut
            raise ModelError(f"The provider sent an event that is not valid JSON: {self._quote(data)}") from None
        if not isinstance(chunk, dict):
            raise ModelError(f"The provider sent an event that is no completion chunk: {self._quote(data)}")
        if name == "error" or _error_of(chunk):
            message = provider_message(_error_of(chunk) or chunk, self._secret)
            raise ModelError(f"The provider broke the reply off: {message}")
        return self._add(chunk)

    def _add(self, chunk: dict[str, JsonValue]) -> str:
        try:
            return self._assembly.add(chunk)
        except RecursionError:  # an arguments object, nested as deep as the parser just allows
            raise ModelError("The provider sent tool arguments that are nested too deeply to read.") from None

    def _take_document(self) -> str:
        data = b"".join(self._document)
        try:
            document = json.loads(data.decode())
        except (ValueError, RecursionError):
            raise ModelError(f"The answer is neither an event stream nor valid JSON: {self._quote(data)}") from None
        if isinstance(document, list) and document:
            document = document[0]  # Gemini's compatible endpoint wraps its errors in a list
        error = _error_of(document) if isinstance(document, dict) else None
        if error:
            raise ModelError(f"The provider reports an error: {provider_message(error, self._secret)}")
        text = self._add(document) if isinstance(document, dict) else ""
        if not self._assembly.chosen:
            raise ModelError(f"The answer is JSON, but no chat completion: {self._quote(data)}")
        return text

    def _check_stream(self) -> None:
        if self._shape is _Shape.UNKNOWN:
            raise ModelError("The answer is empty: the server sent a success status and no body. Check the base URL.")
        if self._shape is _Shape.HTML:
            raise ModelError(
                "The answer is a web page, not a chat completion; check the base URL (it usually ends in /v1): "
                + self._quote(self._head)
            )
        if not self._decoder.recognised:
            raise ModelError(f"The answer is no event stream: {self._quote(self._head)}")
        if not self.finished:
            raise self.cut("the stream ended without a finish reason or [DONE]")
        if not self._assembly.chosen:
            raise ModelError("The reply is empty: the stream ended properly, but held nothing.")

    def _quote(self, data: bytes) -> str:
        return excerpt(data.decode(errors="replace"), self._secret)


def excerpt(text: str, secret: str = "") -> str:
    """Return `text` on one line, the secret masked, cut to EXCERPT_CHARACTERS."""
    if len(secret) >= MIN_SECRET_CHARACTERS:
        text = text.replace(secret, "[key]")
    start = text[: 20 * EXCERPT_CHARACTERS]  # a page may begin with much white space; all of it would be too slow
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + "..."


def provider_message(value: object, secret: str = "") -> str:
    """Return what a provider's error value says, as an excerpt; empty if it says nothing."""
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        inner = next((value[key] for key in ("message", "detail", "error") if value.get(key)), None)
        if inner is None:
            break
        value = inner
    if isinstance(value, str):
        return excerpt(value, secret)
    try:
        return excerpt(json.dumps(value, default=str), secret) if value else ""
    except RecursionError:
        return ""


def join_pairs(text: str, errors: str = "surrogatepass") -> str:
    """Return `text` with surrogate pairs joined that came in two pieces; `errors` says what becomes of lone halves."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors)
    return text


def _error_of(chunk: dict[str, JsonValue]) -> JsonValue:
    return chunk if chunk.get("object") == "error" else chunk.get("error")


def _grown(old: str, new: str) -> str:
    """Return `old` with `new` added, where `new` may also repeat or extend all of `old`."""
    return new if new.startswith(old) else old + new


def _finish_reason(reason: str) -> FinishReason:
    if reason in _LENGTH_REASONS:
        return FinishReason.LENGTH
    return FinishReason.CONTENT_FILTER if reason in _FILTER_REASONS else FinishReason.DONE


def _free_id(used: AbstractSet[str]) -> str:
    number = 1
    while f"call_{number}" in used:
        number += 1
    return f"call_{number}"


def _content(value: JsonValue) -> str:
    """Return the text of a content field: a text, or a list of parts as Mistral sends it."""
    if isinstance(value, list):
        texts = (part.get("text") for part in value if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else ""


def _arguments(value: JsonValue) -> str:
    """Return the text of an arguments field; some servers send the object itself."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if value else ""


def _word(value: JsonValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def _index(value: JsonValue) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0

"""One reply of the chat completions API, put together from its deltas or its whole message; pure.

Servers that call themselves compatible differ in many small ways: indexes, ids, names and finish reasons are taken as
they come, and what cannot be told apart for certain is never guessed into a call that nobody made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.errors import ModelError
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.provider_text import join_pairs, provider_message

_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)

# `model_length` is Mistral's, `max_tokens` and `safety` come from proxies that hand through other APIs' words.
_NO_REASONS = frozenset(("", "null", "none"))
_LENGTH_REASONS = frozenset(("length", "max_tokens", "model_length"))
_FILTER_REASONS = frozenset(("content_filter", "safety"))
# OpenRouter ends a reply that its provider dropped with `error`, vLLM one that was cancelled with `abort`.
_BROKEN_REASONS = frozenset(("error", "abort", "aborted", "cancelled"))


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


class ChatReply:
    """The deltas of one reply, put together; an Assembly of reply_body."""

    def __init__(self, secret: str = "") -> None:
        """Take the API key, so that no error text repeats it."""
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
    def finished(self) -> bool:
        """Whether a finish reason came in."""
        return bool(self.finish_reason)

    @property
    def broken_off(self) -> str:
        """The finish reason by which the provider says that the reply broke off, or nothing."""
        return self.finish_reason if self.finish_reason in _BROKEN_REASONS else ""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def call_count(self) -> int:
        """How many tool calls have begun."""
        return len(self._calls)

    def add(self, name: str, chunk: dict[str, JsonValue]) -> str:  # noqa: ARG002 - chat completions name no events
        """Take one chunk; return the text that it adds. Raises ModelError for an error in it."""
        return self.add_document(chunk)

    def add_document(self, chunk: dict[str, JsonValue]) -> str:
        """Take a chunk or a whole completion; return the text that it adds. Raises ModelError for an error in it."""
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

    def response(self, taken_ids: AbstractSet[str]) -> ModelResponse:
        """Return the reply, each of its calls with an id that is neither in `taken_ids` nor another call's."""
        return ModelResponse(
            text=self.text,
            tool_calls=self._tool_calls(taken_ids),
            finish_reason=_finish_reason(self.finish_reason),
            usage=self.usage,
        )

    def _tool_calls(self, taken_ids: AbstractSet[str]) -> tuple[ToolCall, ...]:
        used, calls = set(taken_ids), []
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

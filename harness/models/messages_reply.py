"""One reply of Anthropic's Messages API, assembled from its events or from its whole document.

A block has a start event, deltas and an end event; no event holds the whole block. A delta for a block that is not open
makes the whole reply ambiguous.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from harness.actions import JsonValue
from harness.errors import CutReply
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.chat_echo import ECHO_CHARACTERS
from harness.models.chat_reply import Finish, finish_of, finish_reason, speaks_of_calls
from harness.models.dialect import ReplyText, out_of_bounds, usage_of
from harness.models.endpoint import ReplyBounds
from harness.models.failures import broken_off, excerpt, join_pairs
from harness.models.messages_echo import THINKING, Part, echo_of
from harness.models.responses_items import index_of, word

_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class _Block:
    """One content block. `kind` is its type in the API.

    Types other than text, thinking and calls are neither run nor sent back.
    """

    def __init__(self, value: dict[str, JsonValue]) -> None:
        self.kind = word(value.get("type"))
        self.value = value
        self.call_id, self.name = word(value.get("id")), word(value.get("name"))
        self.is_complete = False
        self.texts: list[str] = []
        """The displayed pieces of the text."""
        self.pieces: list[str] = []
        """The deltas of a call's arguments."""
        self.length = 0
        """Number of characters of the deltas."""
        self._grown: dict[str, list[str]] = {}

    @property
    def arguments(self) -> str:
        """The arguments of a call as text: the joined deltas, else the input of the start event."""
        if self.pieces:
            return "".join(self.pieces)
        stated = self.value.get("input")
        if isinstance(stated, str):
            return stated
        return "" if not stated and stated != [] else json.dumps(stated, ensure_ascii=False, separators=(",", ":"))

    def grow(self, name: str, text: str) -> None:
        """Append `text` to a field of a block of thinking."""
        self._grown.setdefault(name, []).append(text)

    def thinking(self) -> dict[str, JsonValue]:
        """Return a block of thinking in the form to send back."""
        grown = {name: word(self.value.get(name)) + "".join(pieces) for name, pieces in self._grown.items()}
        return {**self.value, **grown}


class MessagesReply:
    """Assembly of one reply from its events. Implements the Assembly protocol."""

    def __init__(self, secret: str = "", *, bounds: ReplyBounds | None = None) -> None:
        """`secret` is the API key, which is masked in every error text; `bounds` limits the size of the reply."""
        self.chosen = False
        """Whether any event of a message arrived."""
        self._secret = secret
        self._bounds = bounds or ReplyBounds()
        self._broken_off = ""
        self._reply_id = ""
        self._reason = ""
        """The stop reason of the message. Empty until it arrives."""
        self._counts: dict[str, JsonValue] = {}
        self._blocks: list[_Block] = []
        self._at: dict[int, _Block] = {}
        self._calls = 0
        self._thought = 0
        """Number of characters of thinking."""
        self._text = ReplyText()

    @property
    def finished(self) -> bool:
        """Whether the stop reason of the message arrived. The end of the stream does not count."""
        return bool(self._reason)

    @property
    def broken_off(self) -> str:
        """Reason for which the reply broke off or is ambiguous. Empty otherwise."""
        return excerpt(self._broken_off, self._secret)

    @property
    def text(self) -> str:
        """The text so far."""
        return str(self._text)

    @property
    def call_count(self) -> int:
        """Number of tool calls that have begun."""
        return self._calls

    @property
    def usage(self) -> Usage:
        """Usage of the reply. The API counts tokens that are read from or written to a cache separately from other input."""
        counts = self._counts
        inward = [counts.get(name) for name in _COUNTS[:3]]
        numbers = [value for value in inward if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) < sum(value is not None for value in inward) or any(value < 0 for value in numbers):
            return Usage(unreported=1)
        input_tokens = sum(numbers) if numbers else None
        read, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
        return usage_of(input_tokens, counts.get("output_tokens"), read, written=written)

    def add(self, name: str, event: dict[str, JsonValue]) -> str:
        """Add one event; return its new text. Raises ModelError if the event holds an error."""
        kind = word(event.get("type")) or name
        match kind:
            case "message_start":
                self._begin(event.get("message"))
            case "content_block_start":
                return self._begin_block(event.get("content_block"), index_of(event.get("index")))
            case "content_block_delta":
                return self._add_delta(event.get("delta"), index_of(event.get("index")))
            case "content_block_stop":
                block = self._block_at(index_of(event.get("index")))
                if block is not None:
                    block.is_complete = True
            case "message_delta":
                self._stop(event)
            case "error":
                raise broken_off(event, self._secret)
            case _:
                pass  # an unused event; message_stop repeats what message_delta said
        return ""

    def add_document(self, message: dict[str, JsonValue]) -> str:
        """Add a whole message; return its text. Raises ModelError if it exceeds the bounds."""
        content = message.get("content")
        if message.get("type") != "message" and not isinstance(content, list):
            return ""
        self._begin({**message, "usage": None})
        texts = [
            self._begin_block(value, place) for place, value in enumerate(content if isinstance(content, list) else ())
        ]
        self._stop({"delta": message, "usage": message.get("usage")})
        return "".join(texts)

    def end_text(self) -> str:
        """Return the replacement character if the reply ends with half a surrogate pair, else an empty string."""
        return self._text.end()

    def tear(self) -> None:
        """Ignore an event that the end of the body cut. Without a stop reason the reply counts as cut off anyway."""

    def response(self) -> ModelResponse:
        """Return the reply; its calls have the IDs that the server sent.

        Raises CutReply if the message has no stop reason, or has calls and an unknown stop reason.
        """
        if not self._reason:
            raise CutReply(
                "The reply was cut off: it has no stop reason. None of it was used "
                f"({len(self.text)} characters of text, {self.call_count} tool calls begun)."
            )
        blocks = tuple(_without_repeats(self._blocks))
        calls = tuple(
            ToolCall(id=block.call_id, name=block.name, arguments=join_pairs(block.arguments))
            for block in blocks
            if block.kind == "tool_use"
        )
        end = finish_of(self._reason)
        if end is Finish.UNKNOWN and calls:
            raise CutReply(
                f"The reply is ambiguous: it has tool calls and an unknown stop reason. None of it was used "
                f"({len(self.text)} characters of text, {len(calls)} tool calls)."
            )
        reason = finish_reason(end)
        if reason is FinishReason.DONE and not calls and not self.text.strip():
            if speaks_of_calls(self._reason):
                reason = FinishReason.NO_CALLS
            elif any(block.kind in THINKING for block in blocks):
                reason = FinishReason.REASONING
        echo = (
            echo_of(tuple(_layout(blocks))) if reason is FinishReason.DONE and self._thought <= ECHO_CHARACTERS else ""
        )
        return ModelResponse(text=self.text, tool_calls=calls, finish_reason=reason, usage=self.usage, echo=echo)

    def _begin(self, message: JsonValue) -> None:
        """Begin the message. A second one means that a proxy tried again; since both may have calls, the reply is broken."""
        self.chosen = True
        if not isinstance(message, dict):
            return
        reply_id = word(message.get("id"))
        if reply_id and self._reply_id and reply_id != self._reply_id:
            self._broken_off = self._broken_off or "two messages in one stream"
        self._reply_id = self._reply_id or reply_id
        self._count(message.get("usage"))

    def _begin_block(self, value: JsonValue, index: int | None) -> str:
        """Add a block from its start event or from a document; return its new text."""
        self.chosen = True
        if not isinstance(value, dict):
            return ""
        existing = self._at.get(index) if index is not None else None
        if existing is not None and existing.value == value:
            return ""  # the event was sent twice
        if existing is not None or self._reason:
            self._broken_off = self._broken_off or ("two blocks at one place" if existing else "a block after the end")
            return ""
        block = _Block(value)
        self._at[len(self._at) if index is None else index] = block
        self._blocks.append(block)
        self._thought += len(word(value.get("thinking"))) + len(word(value.get("data")))
        if block.kind == "tool_use":
            self._calls += 1
            self._check_call(len(block.arguments))
        return self._show(block, word(value.get("text"))) if block.kind == "text" else ""

    def _add_delta(self, delta: JsonValue, index: int | None) -> str:
        """Add a delta; return its new text."""
        self.chosen = True
        block = self._block_at(index)
        if not isinstance(delta, dict):
            return ""
        if block is None or block.is_complete or self._reason:
            self._broken_off = self._broken_off or "a block that is not open was added to"
            return ""
        match word(delta.get("type")), block.kind:
            case "text_delta", "text":
                return self._show(block, word(delta.get("text")))
            case "input_json_delta", "tool_use":
                piece = word(delta.get("partial_json"))
                block.pieces += [piece] if piece else []
                block.length += len(piece)
                self._check_call(block.length)
            case ("thinking_delta" | "signature_delta") as kind, "thinking":
                name = kind.removesuffix("_delta")
                piece = word(delta.get(name))
                self._thought += len(piece)
                if self._thought <= ECHO_CHARACTERS:
                    block.grow(name, piece)
            case _:
                pass  # for a block that the server runs itself, citations, or an unknown type
        return ""

    def _stop(self, event: dict[str, JsonValue]) -> None:
        """Record the stop reason and the usage. A repeated stop reason must be the same, else the reply is broken."""
        self.chosen = True
        self._count(event.get("usage"))
        delta = event.get("delta")
        reason = word(delta.get("stop_reason")) if isinstance(delta, dict) else ""
        if not reason:
            return
        if finish_of(reason) is Finish.BROKEN or (self._reason and reason != self._reason):
            self._broken_off = self._broken_off or reason
        self._reason = self._reason or reason

    def _count(self, usage: JsonValue) -> None:
        """Record the reported usage. Every number is the total of the message so far."""
        if isinstance(usage, dict):
            self._counts |= {name: usage[name] for name in _COUNTS if usage.get(name) is not None}

    def _block_at(self, index: int | None) -> _Block | None:
        """Return the block at an index; the last block for `None`."""
        if index is None:
            return self._blocks[-1] if self._blocks else None
        return self._at.get(index)

    def _check_call(self, length: int) -> None:
        """Raise ModelError for more calls or longer arguments than the bounds allow."""
        if self._calls > self._bounds.calls:
            raise out_of_bounds("calls", self._bounds.calls)
        if length > self._bounds.argument_characters:
            raise out_of_bounds("argument_characters", self._bounds.argument_characters)

    def _show(self, block: _Block, text: str) -> str:
        """Append `text` to a block; return the text to display. Each further block of text starts a new paragraph."""
        if not text:
            return ""
        if not block.texts and any(other.texts for other in self._blocks if other is not block):
            text = "\n\n" + text
        visible_text = self._text.add(text)
        block.texts.append(visible_text)
        return visible_text


def _without_repeats(blocks: Sequence[_Block]) -> Iterator[_Block]:
    """Yield the blocks without exact repetitions of a call. Different calls with the same ID are kept."""
    keys: set[tuple[str, str, str]] = set()
    for block in blocks:
        key = (block.call_id, block.name, block.arguments) if block.kind == "tool_use" else ("", "", "")
        if not key[0] or key not in keys:
            yield block
        keys.add(key)


def _layout(blocks: Sequence[_Block]) -> Iterator[Part]:
    """Yield the parts of a reply to send back, without blocks of unknown types."""
    calls = 0
    for block in blocks:
        if block.kind in THINKING:
            yield block.thinking()
        elif block.kind == "text":
            yield "".join(block.texts)
        elif block.kind == "tool_use":
            yield calls
            calls += 1

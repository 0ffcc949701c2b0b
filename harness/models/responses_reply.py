"""One reply of the Responses API, assembled from its events or from its whole document.

Deltas of text are displayed as they arrive. Once an event states a whole call, that replaces its deltas and is never
mixed with them. Tools that the server runs itself (searches, MCP, code) are never treated as our calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import assert_never

from harness.actions import JsonValue
from harness.errors import CutReply
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.dialect import ReplyText, usage_of
from harness.models.endpoint import ReplyBounds
from harness.models.failures import broken_off, excerpt, join_pairs
from harness.models.responses_items import Item, ItemKind, Items, echo_text, echoed, index_of, kind_of, texts_of, word


class _End(Enum):
    """The end of a reply, as its last event states it."""

    COMPLETED = "completed"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    BROKEN = "broken"


_INCOMPLETE = {
    "max_output_tokens": _End.LENGTH,
    "max_tokens": _End.LENGTH,
    "length": _End.LENGTH,
    "content_filter": _End.CONTENT_FILTER,
}
"""Reasons for an incomplete response. The API defines the first and the last; translating servers send the others."""
_NO_REASON: JsonValue = {"code": "server_error", "message": "it gave no reason"}
_UNPLACED = -1
"""Index for text whose item is unknown."""


class _Part:
    """The displayed text of one part of a message. Its pieces are joined only to compare them with a whole text."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    def says(self, text: str) -> bool:
        return len(text) == self._length and self._joined() == text

    def rest_of(self, text: str) -> str:
        """Return the part of `text` that was not displayed; empty if `text` does not continue the displayed text."""
        return text[self._length :] if len(text) > self._length and text.startswith(self._joined()) else ""

    def _joined(self) -> str:
        self._pieces[:] = ["".join(self._pieces)]
        return self._pieces[0]


class ResponsesReply:
    """Assembly of one reply from its events. Implements the Assembly protocol."""

    def __init__(self, secret: str = "", *, bounds: ReplyBounds | None = None) -> None:
        """`secret` is the API key, which is masked in every error text; `bounds` limits the size of the reply."""
        self.usage = Usage(unreported=1)
        self.chosen = False
        """Whether any event of a response arrived."""
        self._reply_id = ""
        """The provider's ID of the response. Empty if unknown."""
        self._secret = secret
        self._broken_off = ""
        self._end: _End | None = None
        self._items = Items(bounds or ReplyBounds())
        self._text = ReplyText()
        self._parts: dict[tuple[int, int], _Part] = {}
        """The displayed text of each part, by index of the message and of the part."""
        self._text_places: set[int] = set()
        """Indexes of the messages with displayed text."""
        self._last = (_UNPLACED, 0)

    @property
    def finished(self) -> bool:
        """Whether an event stated the end of the response. `[DONE]` alone does not count."""
        return self._end is not None

    @property
    def broken_off(self) -> str:
        """Reason for which the reply broke off or is ambiguous. Empty otherwise."""
        return excerpt(self._broken_off or self._items.doubt, self._secret)

    @property
    def text(self) -> str:
        """The text so far."""
        return str(self._text)

    @property
    def call_count(self) -> int:
        """Number of tool calls that have begun."""
        return self._items.call_count

    def add(self, name: str, event: dict[str, JsonValue]) -> str:  # noqa: C901 - a table
        """Add one event; return its new text. Raises ModelError if the event holds an error."""
        kind = word(event.get("type")) or name
        if not (kind.startswith("response.") or kind == "error"):
            return ""
        if self._end is not None:
            self._check_end(kind.removeprefix("response."), event)
            return ""
        self.chosen = True
        match kind.removeprefix("response."):
            case "created":
                self._begin(event.get("response"))
            case "output_text.delta" | "refusal.delta":
                return self._show(self._place(event), word(event.get("delta")))
            case "output_text.done" | "refusal.done":
                return self._show_rest(self._place(event), word(event.get("text")) or word(event.get("refusal")))
            case "output_item.added":
                self._items.begin(event.get("item"), index_of(event.get("output_index")))
            case "output_item.done":
                return self._end_item(event)
            case "function_call_arguments.delta":
                self._items.add_piece(event)
            case "function_call_arguments.done":
                self._items.state_arguments(event)
            case "completed" | "incomplete" | "failed" | "cancelled" as status:
                response = event.get("response")
                return self._finish(status, response if isinstance(response, dict) else {})
            case "error":
                raise broken_off(event, self._secret)
            case _:
                pass  # an unused event
        return ""

    def add_document(self, response: dict[str, JsonValue]) -> str:
        """Add a whole response; return its text. Raises ModelError if it holds an error."""
        if response.get("object") != "response" and not isinstance(response.get("output"), list):
            return ""
        self.chosen = True
        return self._finish("", response)

    def end_text(self) -> str:
        """Return the replacement character if the reply ends with half a surrogate pair, else an empty string."""
        return self._text.end()

    def tear(self) -> None:
        """Ignore an event that the end of the body cut. The reply needs a complete final event anyway."""

    def response(self) -> ModelResponse:
        """Return the reply; its calls have the IDs that the server sent.

        Raises CutReply if the response did not state its end, or broke off.
        """
        match _End.BROKEN if self.broken_off else self._end:
            case _End.COMPLETED:
                reason = FinishReason.DONE
            case _End.LENGTH:
                reason = FinishReason.LENGTH
            case _End.CONTENT_FILTER:
                reason = FinishReason.CONTENT_FILTER
            case _End.BROKEN | None:
                raise CutReply(
                    "The reply was cut off: it was never marked as completed. None of it was used "
                    f"({len(self.text)} characters of text, {self.call_count} tool calls begun)."
                )
            case _:
                assert_never(self._end)
        items = self._items.in_order()
        calls = tuple(_tool_calls(items))
        is_empty = not calls and not self.text.strip()
        if reason is FinishReason.DONE and is_empty and any(item.kind is ItemKind.REASONING for item in items):
            reason = FinishReason.REASONING
        return ModelResponse(
            text=self.text,
            tool_calls=calls,
            finish_reason=reason,
            usage=self.usage,
            echo=echo_text(tuple(echoed(items))) if reason is FinishReason.DONE else "",
        )

    def _begin(self, response: JsonValue) -> None:
        """Begin the response. A second one means that a proxy tried again; since both may have calls, the reply is broken."""
        reply_id = word(response.get("id")) if isinstance(response, dict) else ""
        if reply_id and self._reply_id and reply_id != self._reply_id:
            self._broken_off = self._broken_off or "two responses in one stream"
        self._reply_id = self._reply_id or reply_id

    def _check_end(self, kind: str, event: dict[str, JsonValue]) -> None:
        """Check an event after the end. It may repeat the end, but neither revoke it nor add calls."""
        match kind:
            case "incomplete" | "failed" | "cancelled" | "error":
                self._break(kind)
            case "function_call_arguments.delta":
                self._break("a call that went on after the end")
            case "output_item.added" | "output_item.done":
                match event.get("item"):
                    case dict(item) if kind_of(item) is ItemKind.CALL and not self._items.knows(item.get("call_id")):
                        self._break("calls went on after the end")
            case _:
                pass

    def _break(self, reason: str) -> None:
        self._end = _End.BROKEN
        self._broken_off = self._broken_off or reason

    def _end_item(self, event: dict[str, JsonValue]) -> str:
        index = index_of(event.get("output_index"))
        item = self._items.end(event.get("item"), index)
        if item is None or item.kind is not ItemKind.MESSAGE:
            return ""
        return "".join(self._show_rest((item.index, place), text) for place, text in enumerate(texts_of(item.value)))

    def _finish(self, status: str, response: dict[str, JsonValue]) -> str:
        """Process the final response; return its new text. `status` is the kind of the event, empty for a document."""
        own_status, by_event = word(response.get("status")), bool(status)
        if not status or own_status not in ("", "completed"):
            status = own_status  # if the two differ, the worse status counts
        if isinstance(usage := response.get("usage"), dict):
            self.usage = _usage(usage)
        if status == "failed" or response.get("error"):
            raise broken_off(response.get("error") or _NO_REASON, self._secret)
        output = response.get("output")
        items = self._items.replace_by(output) if isinstance(output, list) else ()
        self._items.drop_repeats()
        self._conclude(status, response, by_event=by_event)
        if self._parts:
            return ""  # indexes may have changed, so missing text cannot be determined
        return "".join(
            self._show((item.index, place), text)
            for item in items
            if item.kind is ItemKind.MESSAGE
            for place, text in enumerate(texts_of(item.value))
        )

    def _conclude(self, status: str, response: dict[str, JsonValue], *, by_event: bool) -> None:
        """Record the end of the response. `by_event` means that an event stated the end, whatever the status is."""
        details = response.get("incomplete_details")
        reason = word(details.get("reason")) if isinstance(details, dict) else ""
        if status == "completed" and not reason:
            cut = next((item for item in self._items.all if item.kind is ItemKind.CALL and item.is_cut), None)
            if cut is not None:
                self._break(f"a call that is {word(cut.value.get('status')) or 'of no known status'}")
            self._end = self._end or _End.COMPLETED
        elif status in ("completed", "incomplete"):
            self._end = _INCOMPLETE.get(reason)
            if self._end is None:
                self._break(reason or status)
        elif by_event or status == "cancelled":
            self._break(status)
        # else: a document that is `queued` or `in_progress` has not ended

    def _place(self, event: dict[str, JsonValue]) -> tuple[int, int]:
        """Return the place of an event's text: the index of its item, and the index of the part in the item."""
        index = index_of(event.get("output_index"))
        if index is None:
            item = self._items.find(None, word(event.get("item_id")))
            index = item.index if item is not None else _UNPLACED
        return index, index_of(event.get("content_index")) or 0

    def _show_rest(self, place: tuple[int, int], text: str) -> str:
        """Return the rest of a whole text that the deltas omitted. If the deltas differ from it, return an empty string."""
        last, part = self._parts.get(self._last), self._parts.get(place, _Part())
        if _UNPLACED in self._text_places or (text and last is not None and last.says(text)):
            return ""  # displayed already: the deltas had a missing or wrong place
        return self._show(place, part.rest_of(text))

    def _show(self, place: tuple[int, int], text: str) -> str:
        """Add `text` to the reply; return the text to display. Each further message starts a new paragraph."""
        if not text:
            return ""
        gap = "\n\n" if self._text_places and place[0] not in self._text_places else ""
        self._text_places.add(place[0])
        self._last = place
        self._parts.setdefault(place, _Part()).add(text)
        return self._text.add(gap + text)


def _tool_calls(items: Sequence[Item]) -> Iterator[ToolCall]:
    for item in items:
        if item.kind is ItemKind.CALL and (item.call_id or item.name or item.arguments):
            yield ToolCall(id=item.call_id, name=item.name, arguments=join_pairs(item.arguments))


def _usage(usage: dict[str, JsonValue]) -> Usage:
    details = usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return usage_of(usage.get("input_tokens"), usage.get("output_tokens"), cached)

"""One reply of the Responses API, put together from its events or its whole document; pure.

Deltas are shown as they come. For calls, what states a thing as a whole takes the place of what was said in pieces, never
a mixture of both; and what the server runs itself (searches, MCP, code) is never taken for a call of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import assert_never

from harness.actions import JsonValue
from harness.errors import CutReply
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.assembly import ReplyText, usage_of
from harness.models.endpoint import ReplyBounds
from harness.models.failures import broken_off
from harness.models.provider_text import join_pairs
from harness.models.responses_items import Item, ItemKind, Items, echo_text, echoed, index_of, texts_of, word


class _End(Enum):
    """How a reply said that it ended."""

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
"""Why a response may be incomplete; the API knows the first and the last, servers that translate say the others."""
_NO_REASON: JsonValue = {"code": "server_error", "message": "it gave no reason"}
_UNPLACED = -1
"""The place of text that no item is known for."""


class ResponsesReply:
    """The events of one reply, put together; an Assembly."""

    def __init__(self, secret: str = "", *, bounds: ReplyBounds | None = None) -> None:
        """Take the API key, so that no error text repeats it, and how much is taken."""
        self.usage = Usage(unreported=1)
        self.chosen = False
        """Whether any event of a response came in."""
        self.broken_off = ""
        """Why the provider says that the reply broke off, or nothing."""
        self._secret = secret
        self._end: _End | None = None
        self._items = Items(bounds or ReplyBounds())
        self._text = ReplyText()
        self._parts: dict[tuple[int, int], list[str]] = {}
        """What was shown of each part of each message."""
        self._told: set[int] = set()
        """The places of the messages of which anything was shown."""
        self._last = (_UNPLACED, 0)

    @property
    def finished(self) -> bool:
        """Whether the response said that it is completed or incomplete; `[DONE]` alone says neither."""
        return self._end is not None

    @property
    def text(self) -> str:
        """The text so far."""
        return str(self._text)

    @property
    def call_count(self) -> int:
        """How many tool calls have begun."""
        return self._items.call_count

    def add(self, name: str, event: dict[str, JsonValue]) -> str:
        """Take one event; return the text that it adds. Raises ModelError for an error in it."""
        kind = word(event.get("type")) or name
        if self._end is not None or not (kind.startswith("response.") or kind == "error"):
            return ""
        self.chosen = True
        match kind.removeprefix("response."):
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
                pass  # an event that adds nothing of ours
        return ""

    def add_document(self, response: dict[str, JsonValue]) -> str:
        """Take a whole response; return its text. Raises ModelError for an error in it."""
        if response.get("object") != "response" and not isinstance(response.get("output"), list):
            return ""
        self.chosen = True
        return self._finish("", response)

    def end_text(self) -> str:
        """Return what stands for half a character that the end of the reply left over."""
        return self._text.end()

    def response(self) -> ModelResponse:
        """Return the reply, its calls with the ids that came.

        Raises CutReply where the response did not say that it ended, whatever else the body said.
        """
        match self._end:
            case _End.COMPLETED:
                reason = FinishReason.DONE
            case _End.LENGTH:
                reason = FinishReason.LENGTH
            case _End.CONTENT_FILTER:
                reason = FinishReason.CONTENT_FILTER
            case _End.BROKEN | None:
                raise CutReply(
                    "The reply was cut off: it never said that it is completed; nothing of it was used "
                    f"({len(self.text)} characters of text, {self.call_count} tool calls begun)."
                )
            case _:
                assert_never(self._end)
        items = self._items.in_order()
        return ModelResponse(
            text=self.text,
            tool_calls=tuple(_tool_calls(items)),
            finish_reason=reason,
            usage=self.usage,
            echo=echo_text(tuple(echoed(items))) if reason is FinishReason.DONE else "",
        )

    def _end_item(self, event: dict[str, JsonValue]) -> str:
        index = index_of(event.get("output_index"))
        item = self._items.end(event.get("item"), index)
        if item is None or item.kind is not ItemKind.MESSAGE:
            return ""
        return "".join(self._show_rest((item.index, place), text) for place, text in enumerate(texts_of(item.value)))

    def _finish(self, status: str, response: dict[str, JsonValue]) -> str:
        """Take the response as it stands at its end; `status` is that of the event, empty for a document."""
        said = word(response.get("status"))
        if not status or said in ("incomplete", "failed", "cancelled"):
            status = said  # the worse of both, where they differ
        if status == "failed" or response.get("error"):
            raise broken_off(response.get("error") or _NO_REASON, self._secret)
        if isinstance(usage := response.get("usage"), dict):
            self.usage = _usage(usage)
        output = response.get("output")
        whole = self._items.replace_by(output) if isinstance(output, list) else ()
        self._conclude(status, response)
        if self._parts:
            return ""  # places may have moved, so that no text could be said to be missing
        return "".join(
            self._show((item.index, place), text)
            for item in whole
            if item.kind is ItemKind.MESSAGE
            for place, text in enumerate(texts_of(item.value))
        )

    def _conclude(self, status: str, response: dict[str, JsonValue]) -> None:
        match status:
            case "completed":
                cut = any(item.kind is ItemKind.CALL and item.is_cut for item in self._items.all)
                self._end = _End.BROKEN if cut else _End.COMPLETED
                self.broken_off = "a call that is incomplete" if cut else ""
            case "incomplete":
                details = response.get("incomplete_details")
                reason = word(details.get("reason")) if isinstance(details, dict) else ""
                self._end = _INCOMPLETE.get(reason, _End.BROKEN)
                self.broken_off = (reason or "incomplete") if self._end is _End.BROKEN else ""
            case "cancelled":
                self._end, self.broken_off = _End.BROKEN, status
            case _:
                pass  # `queued` or `in_progress`: no end

    def _place(self, event: dict[str, JsonValue]) -> tuple[int, int]:
        """Return where an event's text belongs: which item, and which part of it."""
        index = index_of(event.get("output_index"))
        if index is None:
            item = self._items.find(None, word(event.get("item_id")))
            index = item.index if item is not None else _UNPLACED
        return index, index_of(event.get("content_index")) or 0

    def _show_rest(self, place: tuple[int, int], whole: str) -> str:
        """Show what the deltas left out of a part; where they differ, what was shown stands."""
        if _UNPLACED in self._told or (whole and whole == self._shown(self._last)):
            return ""  # shown already, at a place that the deltas did not name rightly
        shown = self._shown(place)
        return self._show(place, whole[len(shown) :]) if whole.startswith(shown) else ""

    def _shown(self, place: tuple[int, int]) -> str:
        pieces = self._parts.get(place, [])
        if len(pieces) > 1:
            pieces[:] = ["".join(pieces)]
        return pieces[0] if pieces else ""

    def _show(self, place: tuple[int, int], text: str) -> str:
        """Keep `text` and return what can be shown of it. A further message begins a paragraph of its own."""
        if not text:
            return ""
        gap = "\n\n" if self._told and place[0] not in self._told else ""
        self._told.add(place[0])
        self._last = place
        self._parts.setdefault(place, []).append(text)
        return self._text.add(gap + text)


def _tool_calls(items: Sequence[Item]) -> Iterator[ToolCall]:
    for item in items:
        if item.kind is ItemKind.CALL and (item.call_id or item.name or item.arguments):
            yield ToolCall(id=item.call_id, name=item.name, arguments=join_pairs(item.arguments))


def _usage(usage: dict[str, JsonValue]) -> Usage:
    details = usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return usage_of(usage.get("input_tokens"), usage.get("output_tokens"), cached)

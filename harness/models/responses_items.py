"""The output items of one reply of the Responses API, collected as its events arrive.

INVARIANT: the arguments of a call come from one source only, never from a mixture: the whole arguments if any event
stated them, else the deltas, else the start event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import assert_never

from harness.actions import JsonValue
from harness.models.dialect import argument_text, out_of_bounds
from harness.models.endpoint import ReplyBounds
from harness.record import Record

TWO_CALLS = "two calls with one id"


class ItemKind(Enum):
    """The kinds of items; the values are the API's item types."""

    CALL = "function_call"
    MESSAGE = "message"
    REASONING = "reasoning"
    OTHER = ""
    """Tools that the server ran itself, and unknown types: never run, never sent back."""


class Item:
    """One output item."""

    def __init__(self, index: int, item_id: str) -> None:
        """`index` is the position in the output. `item_id` is empty if the item has no ID."""
        self.index = index
        self.item_id = item_id
        self.kind = ItemKind.CALL
        """Kind of the item. A call until a start or end event states the kind."""
        self.value: dict[str, JsonValue] = {}
        """The item in the last start or end event."""
        self.is_complete = False
        self.call_id = ""
        self.name = ""
        self.pieces: list[str] = []
        """The deltas of the arguments."""
        self.length = 0
        """Number of characters of the deltas."""
        self._first = ""
        self._stated = ""

    @property
    def arguments(self) -> str:
        """The arguments: stated as a whole, else the joined deltas, else those of the start event."""
        return self._stated or "".join(self.pieces) or self._first

    @property
    def is_cut(self) -> bool:
        """Whether the status says that the item is incomplete. `in_progress` in the start event does not count."""
        state = self.value.get("status")
        return not (state in (None, "", "completed") or (state == "in_progress" and not self.is_complete))

    def begin(self, value: dict[str, JsonValue]) -> None:
        """Add the item of a start event."""
        self._take(value)
        self._first = argument_text(value.get("arguments"))

    def end(self, value: dict[str, JsonValue]) -> None:
        """Add the item of an end event."""
        self._take(value)
        self.is_complete = True
        self.state_arguments(value.get("arguments"))

    def state_arguments(self, value: JsonValue) -> None:
        """Set the whole arguments. Empty ones are ignored, since some servers omit them in the end event."""
        self._stated = argument_text(value) or self._stated

    def _take(self, value: dict[str, JsonValue]) -> None:
        self.value = value
        self.kind = kind_of(value)
        self.call_id = word(value.get("call_id")) or self.call_id
        self.name = word(value.get("name")) or self.name


class Items:
    """The items of one response, found by index and ID."""

    def __init__(self, bounds: ReplyBounds) -> None:
        """`bounds` limits the number of calls and the arguments of each."""
        self.all: list[Item] = []
        self.doubt = ""
        """Reason why the calls are uncertain. Empty if they are certain."""
        self._bounds = bounds
        self._last_index = -1
        self._calls: set[Item] = set()
        self._at: dict[int, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._by_both: dict[tuple[int, str], Item] = {}

    @property
    def call_count(self) -> int:
        """Number of calls that have begun."""
        return len(self._calls)

    def in_order(self) -> list[Item]:
        """Return the items sorted by their index in the output."""
        return sorted(self.all, key=lambda item: item.index)

    def begin(self, value: JsonValue, index: int | None) -> None:
        """Begin an item. If an item with this index or ID has begun already, it is taken for the same unless they differ."""
        if not isinstance(value, dict):
            return
        item = self._item_of(value, index)
        if item.value and item.pieces and not _has_its_id(item, value):
            item = self._new(index, word(value.get("id")))  # the pieces belong to another call at this index
        if not item.is_complete:
            item.begin(value)
            self._check(item, len(item.arguments))

    def end(self, value: JsonValue, index: int | None) -> Item | None:
        """End an item and return it; None if `value` is not an item."""
        if not isinstance(value, dict):
            return None
        item = self._item_of(value, index)
        item.end(value)
        self._check(item, len(item.arguments))
        return item

    def add_piece(self, event: dict[str, JsonValue]) -> None:
        """Add a delta of a call's arguments."""
        item, piece = self._call_at(event), word(event.get("delta"))
        item.pieces.append(piece)
        item.length += len(piece)
        self._check(item, item.length)

    def state_arguments(self, event: dict[str, JsonValue]) -> None:
        """Set the whole arguments of a call."""
        item = self._call_at(event)
        item.state_arguments(event.get("arguments"))
        self._check(item, len(item.arguments))

    def replace_by(self, output: Sequence[JsonValue]) -> Sequence[Item]:
        """Parse the output of a finished response, and return its items.

        If it holds calls, its items replace the streamed ones. Many servers leave the output empty or omit the calls;
        then the streamed items are kept.
        """
        items: list[Item] = []
        for place, value in enumerate(output):
            if isinstance(value, dict):
                item = Item(place, word(value.get("id")))
                item.end(value)
                items.append(item)
        streamed = [item for item in self.all if item in self._calls]
        if streamed and not any(item.kind is ItemKind.CALL for item in items):
            return items
        self.all, self._calls = items or self.all, set()
        for item in items:
            if item.kind is ItemKind.CALL and not item.arguments:
                self._take_streamed(item, streamed)
            self._check(item, len(item.arguments))
        return items

    def drop_repeats(self) -> None:
        """Remove exact repetitions of a call. Different calls with the same ID are kept."""
        items: list[Item] = []
        keys: set[tuple[str, str, str]] = set()
        for item in self.in_order():
            if item.kind is ItemKind.CALL and item.call_id:
                key = (item.call_id, item.name, item.arguments)
                if key in keys:
                    continue
                keys.add(key)
            items.append(item)
        self.all = items

    def knows(self, call_id: JsonValue) -> bool:
        """Return whether there is a call with this ID."""
        return bool(call_id) and any(item.call_id == call_id for item in self._calls)

    def find(self, index: int | None, item_id: str) -> Item | None:
        """Return the item that an event belongs to: by index and ID, else by index, else by ID, else the last item.

        Some servers give every event a new ID, others give every item the same index. So an item keeps its index even
        for events with other IDs, until a clearly different item begins at that index.
        """
        if index is not None:
            return self._by_both.get((index, item_id)) or self._at.get(index)
        if item_id:
            return self._by_id.get(item_id)
        return self.all[-1] if self.all else None

    def _item_of(self, value: dict[str, JsonValue], index: int | None) -> Item:
        """Return the item that `value` begins or ends. Create it if no existing item fits."""
        item = self.find(index, word(value.get("id")))
        if item is None or _is_another(item, value):
            return self._new(index, word(value.get("id")))
        name = word(value.get("name"))
        if item.kind is ItemKind.CALL and name and item.name and name != item.name:
            self.doubt = self.doubt or TWO_CALLS
        return item

    def _take_streamed(self, item: Item, streamed: Sequence[Item]) -> None:
        """Copy the streamed arguments to a call of the final output that has none."""
        same = next((call for call in streamed if _is_same_call(call, item)), None)
        if same is not None:
            item.state_arguments(same.arguments)
        elif any(call.name == item.name and call.arguments for call in streamed):
            self.doubt = self.doubt or "a call with ambiguous arguments"

    def _call_at(self, event: dict[str, JsonValue]) -> Item:
        """Return the call that an event about arguments belongs to.

        If no such call has begun, create one. It has no name, so it cannot run.
        """
        index, item_id = index_of(event.get("output_index")), word(event.get("item_id"))
        item = self.find(index, item_id)
        return item if item is not None and item.kind is ItemKind.CALL else self._new(index, item_id)

    def _check(self, item: Item, length: int) -> None:
        """Count an item if it is a call. Raises ModelError if calls or arguments exceed the bounds."""
        if item.kind is not ItemKind.CALL:
            return
        self._calls.add(item)
        if len(self._calls) > self._bounds.calls:
            raise out_of_bounds("calls", self._bounds.calls)
        if length > self._bounds.argument_characters:
            raise out_of_bounds("argument_characters", self._bounds.argument_characters)

    def _new(self, index: int | None, item_id: str) -> Item:
        item = Item(index if index is not None else self._last_index + 1, item_id)
        self._last_index = max(self._last_index, item.index)
        self.all.append(item)
        self._at[item.index] = item
        if item_id:
            self._by_id[item_id] = self._by_both[item.index, item_id] = item
        return item


def kind_of(value: dict[str, JsonValue]) -> ItemKind:
    """Return the kind of an item; OTHER for an unknown type."""
    kinds = {kind.value: kind for kind in ItemKind}
    return kinds.get(word(value.get("type")), ItemKind.OTHER)


def texts_of(value: dict[str, JsonValue]) -> list[str]:
    """Return the texts of a message's parts, refusals included."""
    content = value.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [word(part.get("text")) or word(part.get("refusal")) if isinstance(part, dict) else "" for part in parts]


def word(value: JsonValue) -> str:
    """Return `value` if it is a text, else an empty string."""
    return value if isinstance(value, str) else ""


def index_of(value: JsonValue) -> int | None:
    """Return `value` if it is a valid index, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _is_another(item: Item, value: dict[str, JsonValue]) -> bool:
    """Return whether `value` must be a different item than `item`."""
    if not item.value:
        return False  # only deltas arrived so far
    if kind_of(value) is not item.kind:
        return True
    if item.kind is not ItemKind.CALL:
        return item.is_complete and word(value.get("id")) != item.item_id
    call_id, name = word(value.get("call_id")), word(value.get("name"))
    if call_id and item.call_id:
        return call_id != item.call_id
    if name and item.name and name != item.name:
        return True
    return item.is_complete and value != item.value and not _has_its_id(item, value)


def _has_its_id(item: Item, value: dict[str, JsonValue]) -> bool:
    """Return whether `value` has the call ID or the item ID of `item`."""
    call_id, item_id = word(value.get("call_id")), word(value.get("id"))
    return bool((call_id and call_id == item.call_id) or (item_id and item_id == item.item_id))


def _is_same_call(streamed: Item, stated: Item) -> bool:
    """Return whether both are the same call: equal names and, if both have call IDs, equal call IDs.

    Without call IDs, the index or the item ID must be equal.
    """
    if streamed.name != stated.name:
        return False
    if streamed.call_id and stated.call_id:
        return streamed.call_id == stated.call_id
    return streamed.index == stated.index or bool(stated.item_id and streamed.item_id == stated.item_id)


_ECHOED_FIELDS = ("type", "id", "summary", "content", "encrypted_content")
"""Fields of a reasoning item to send back. `status` is left out, since servers refuse it in a request."""


class EchoedItem(Record):
    """A reasoning item to send back to the provider."""

    before: int
    """Position of the item: 0 is before the message's text, n before its n-th call."""
    value: dict[str, JsonValue]


def echoed(items: Sequence[Item]) -> Iterator[EchoedItem]:
    """Yield the reasoning items of a reply that can be sent back.

    The API refuses reasoning that no text or call follows. An item without encrypted or plain content is only a
    reference to data on the server, which does not store it; it is left out too.
    """
    reasoning_items: list[Item] = []
    calls = 0
    for item in items:
        match item.kind:
            case ItemKind.REASONING:
                reasoning_items.append(item)
            case ItemKind.CALL:
                calls += 1
                yield from _echoed_before(calls, reasoning_items)
                reasoning_items = []
            case ItemKind.MESSAGE if calls == 0:
                yield from _echoed_before(0, reasoning_items)
                reasoning_items = []
            case ItemKind.MESSAGE | ItemKind.OTHER:
                pass  # text is sent back before the calls; reasoning before later text is sent with the next call
            case _:
                assert_never(item.kind)


def _echoed_before(place: int, items: Sequence[Item]) -> Iterator[EchoedItem]:
    for item in items:
        value = {key: item.value[key] for key in _ECHOED_FIELDS if item.value.get(key) is not None}
        if value.get("encrypted_content") or value.get("content"):
            yield EchoedItem(before=place, value={"summary": [], **value})


def echo_text(items: Sequence[EchoedItem]) -> str:
    """Encode the items as Message.echo; empty without items."""
    return json.dumps([[item.before, item.value] for item in items]) if items else ""


def read_echo(echo: str) -> list[EchoedItem]:
    """Parse Message.echo; empty if another adapter wrote it, or it is invalid JSON."""
    try:
        pairs = json.loads(echo) if echo.startswith("[[") else []
    except (ValueError, RecursionError):
        return []
    return [
        EchoedItem(before=pair[0], value=pair[1])
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], int) and isinstance(pair[1], dict)
    ]

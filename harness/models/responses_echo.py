"""The reasoning of a reply that the Responses API wants back with the next request; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from harness.actions import JsonValue
from harness.models.responses_items import Item, ItemKind
from harness.record import Record

_ECHOED_FIELDS = ("type", "id", "summary", "content", "encrypted_content")
"""Of a reasoning item; `status` is of replies only, servers refuse it in a request."""


class EchoedItem(Record):
    """A reasoning item that goes back to the provider."""

    before: int
    """What it belongs to: 0 is the message's text, n its n-th call."""
    value: dict[str, JsonValue]


def echoed(items: Sequence[Item]) -> Iterator[EchoedItem]:
    """Yield the reasoning of a reply that can be sent back: all but what nothing follows, which the API refuses.

    Without encrypted or plain content an item is only a reference to what the server stored, and it stores nothing.
    """
    held: list[Item] = []
    calls = 0
    for item in items:
        match item.kind:
            case ItemKind.REASONING:
                held.append(item)
            case ItemKind.CALL:
                calls += 1
                yield from _echoed_before(calls, held)
                held = []
            case ItemKind.MESSAGE if calls == 0:
                yield from _echoed_before(0, held)
                held = []
            case ItemKind.MESSAGE | ItemKind.OTHER:
                pass  # a message goes back before the calls, so that its reasoning waits for the next of those
            case _:
                assert_never(item.kind)


def _echoed_before(place: int, items: Sequence[Item]) -> Iterator[EchoedItem]:
    for item in items:
        value = {key: item.value[key] for key in _ECHOED_FIELDS if item.value.get(key) is not None}
        if value.get("encrypted_content") or value.get("content"):
            yield EchoedItem(before=place, value={"summary": [], **value})


def echo_text(items: Sequence[EchoedItem]) -> str:
    """Return the items as Message.echo; empty where there are none."""
    return json.dumps([[item.before, item.value] for item in items]) if items else ""


def read_echo(echo: str) -> list[EchoedItem]:
    """Return the items of Message.echo; none where another adapter made it, or it is no JSON."""
    try:
        pairs = json.loads(echo) if echo.startswith("[[") else []
    except (ValueError, RecursionError):
        return []
    return [
        EchoedItem(before=pair[0], value=pair[1])
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], int) and isinstance(pair[1], dict)
    ]

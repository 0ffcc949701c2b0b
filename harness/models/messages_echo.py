"""The thinking of a reply of the Messages API, kept with the message and sent back unchanged.

The API checks the signature of every block of thinking, and requires its original place between text and calls
(platform.claude.com/docs/en/build-with-claude/extended-thinking, "Preserving thinking blocks").
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from harness.actions import JsonValue
from harness.models.chat_echo import ECHO_CHARACTERS

THINKING = frozenset(("thinking", "redacted_thinking"))
"""Types of blocks that go back unchanged."""

_API = "messages"

Part: TypeAlias = dict[str, JsonValue] | str | int
"""A block of thinking, a piece of the text, or the index of a call."""


def echo_of(layout: Sequence[Part]) -> str:
    """Encode the parts of a reply as Message.echo; a piece of text is stored as its length.

    Empty if the reply has no thinking, or more than ECHO_CHARACTERS.
    """
    if not any(isinstance(part, dict) for part in layout):
        return ""
    parts: list[JsonValue] = [{"text": len(part)} if isinstance(part, str) else part for part in layout]
    text = json.dumps({"api": _API, "parts": parts}, separators=(",", ":"))
    return text if len(text) <= ECHO_CHARACTERS else ""


def layout_of(echo: str, text: str, calls: int) -> tuple[Part, ...]:
    """Decode Message.echo: return the parts of a message with this text and this number of calls, in original order.

    Empty if the reply had no thinking, if another adapter wrote the echo, or if it does not fit the text or the number of
    calls. Then the signatures would be invalid.
    """
    try:
        value = json.loads(echo) if echo.startswith('{"api":"messages"') else None
    except (ValueError, RecursionError):
        value = None
    parts = value.get("parts") if isinstance(value, dict) else None
    layout: list[Part] = []
    place, called = 0, 0
    for part in parts if isinstance(parts, list) else ():
        match part:
            case bool():
                return ()
            case int() if part == called:
                layout.append(part)
                called += 1
            case {"text": int(length)}:
                layout.append(text[place : place + length])
                place += length
            case {"type": str(kind)} if kind in THINKING:
                layout.append(part)
            case _:
                return ()
    return tuple(layout) if (place, called) == (len(text), calls) else ()

"""The thinking of a reply of the Messages API, kept with the message and sent back unchanged.

The API checks a signature of every block of thinking, and wants each at its place between text and calls
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
"""A block of thinking, a piece of the text, or the number of a call."""


def echo_of(layout: Sequence[Part]) -> str:
    """Return a reply's parts as Message.echo: of text its length alone; empty where nothing was thought, or too much."""
    if not any(isinstance(part, dict) for part in layout):
        return ""
    parts: list[JsonValue] = [{"text": len(part)} if isinstance(part, str) else part for part in layout]
    text = json.dumps({"api": _API, "parts": parts}, separators=(",", ":"))
    return text if len(text) <= ECHO_CHARACTERS else ""


def layout_of(echo: str, text: str, calls: int) -> tuple[Part, ...]:
    """Return the parts of a message with this text and so many calls, in the order in which they came.

    Empty where nothing was thought, another adapter made the echo, or it belongs to another text or to other calls: then
    signatures would not be right.
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

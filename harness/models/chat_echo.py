"""Echo: data of a reply that a chat completions server expects back, namely its reasoning and signatures of calls.

`Echo` collects it while the reply arrives. It is stored as text in the message, and `given_back` decodes it for later
requests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.actions import JsonValue

ECHO_CHARACTERS = 4_000_000
"""Maximum number of characters of an echo. A longer one is dropped whole, since partial reasoning is useless."""
MAX_DEPTH = 50
"""Maximum nesting of lists and objects. Deeper data is dropped, since it could not be encoded into every request."""
EXTRA = "extra_content"
"""Field of Gemini's compatible API for thought signatures, in a message and in its calls. Without the signature of a
call it refuses the next request (ai.google.dev, "Thought signatures").
"""

_API = "chat"
_TEXTS = frozenset(("text", "summary", "thinking"))
"""Fields of a part whose pieces are joined. In every other field a later value replaces the earlier one."""


class _Part:
    """One part of a list of reasoning, assembled as its pieces arrive."""

    def __init__(self, piece: dict[str, JsonValue]) -> None:
        self.kind = piece.get("type")
        self._fields: dict[str, JsonValue] = {}
        self._texts: dict[str, list[str]] = {}
        self.add(piece)

    def add(self, piece: dict[str, JsonValue]) -> None:
        for name, value in piece.items():
            if name in _TEXTS and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
                self._fields.setdefault(name, "")
            elif value is not None or name not in self._fields:
                self._fields[name] = value

    def json(self) -> JsonValue:
        return self._fields | {name: "".join(texts) for name, texts in self._texts.items()}


class Echo:
    """The data to send back with one reply, assembled from its deltas."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names` are the fields of a message to send back. The `extra_content` field is always sent back."""
        self._names = tuple(names)
        self._texts: dict[str, list[str]] = {}
        self._parts: dict[str, list[_Part | JsonValue]] = {}
        self._by_index: dict[tuple[str, int], _Part] = {}
        self._extra: JsonValue = None
        self._size = 0

    def add(self, delta: dict[str, JsonValue]) -> None:
        """Add a delta, or a whole message."""
        for name in self._names:
            value = delta.get(name)
            if value and self._size <= ECHO_CHARACTERS:
                self._add(name, value)
        self._extra = delta.get(EXTRA) or self._extra

    def text(self, extras: list[JsonValue]) -> str:
        """Return the JSON for Message.echo; empty if there is nothing to send back.

        `extras` holds the `extra_content` of each call.
        """
        message: dict[str, JsonValue] = {name: "".join(texts) for name, texts in self._texts.items()}
        for name, parts in self._parts.items():
            message[name] = [part.json() if isinstance(part, _Part) else part for part in parts]
        value: dict[str, JsonValue] = {"api": _API}
        if message:
            value["reasoning"] = message
        if self._extra:
            value[EXTRA] = self._extra
        if any(extras):
            value["calls"] = extras
        if len(value) == 1 or self._size > ECHO_CHARACTERS or _deeper(value, MAX_DEPTH):
            return ""
        text = json.dumps(value, separators=(",", ":"))
        return text if len(text) <= ECHO_CHARACTERS else ""

    def _add(self, name: str, value: JsonValue) -> None:
        if isinstance(value, str):
            self._size += len(value)
            self._texts.setdefault(name, []).append(value)
        for piece in value if isinstance(value, list) else ():
            self._size += len(json.dumps(piece))
            index = piece.get("index") if isinstance(piece, dict) else None
            earlier = self._by_index.get((name, index)) if isinstance(index, int) else None
            if not isinstance(piece, dict):
                self._parts.setdefault(name, []).append(piece)
            elif earlier is not None and piece.get("type") in {None, earlier.kind}:
                earlier.add(piece)
            else:
                part = _Part(piece)
                self._parts.setdefault(name, []).append(part)
                if isinstance(index, int):
                    self._by_index[name, index] = part


def _deeper(value: JsonValue, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(each, levels - 1) for each in inner if isinstance(each, dict | list))


def given_back(echo: str, names: Sequence[str]) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """Return the fields called `names` to add to a message, and the `extra_content` to add to each of its calls."""
    try:
        value = json.loads(echo) if echo else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("api") != _API:
        return {}, []
    reasoning, calls = value.get("reasoning"), value.get("calls")
    fields: dict[str, JsonValue] = {}
    if isinstance(reasoning, dict):
        fields = {name: reasoning[name] for name in names if name in reasoning}
    if value.get(EXTRA):
        fields[EXTRA] = value[EXTRA]
    return fields, calls if isinstance(calls, list) else []

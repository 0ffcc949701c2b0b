"""Wire formats: JSON with detection of duplicate keys, server-sent events, and call IDs in each server's form."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import TypeAlias

from harness.actions import JsonValue
from harness.messages import ToolCall
from harness.record import replace


class Repeated(dict[str, JsonValue]):
    """An object with a duplicate key. The last value counts, but writing the object as JSON repeats the key.

    So a strict parser rejects arguments that arrived as such an object.
    """

    def __init__(self, pairs: list[tuple[str, JsonValue]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def items(self) -> list[tuple[str, JsonValue]]:  # type: ignore[override]
        """Return all pairs, including duplicates: the json module writes these."""
        return self.pairs


class AmbiguousKey(Exception):
    """Raised for a duplicate key with different values, outside of a call's arguments."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def read_json(data: bytes) -> JsonValue:
    """Parse `data`, JSON in UTF-8.

    A duplicate key within `arguments` is accepted, since the arguments are parsed strictly later. Elsewhere it is
    accepted only with equal values.

    Raises ValueError, RecursionError, AmbiguousKey.
    """
    repeated: list[Repeated] = []

    def object_of(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        repeated.append(Repeated(pairs))
        return repeated[-1]

    value: JsonValue = json.loads(data.decode(), object_pairs_hook=object_of)
    if repeated and (key := _ambiguous(value)) is not None:
        raise AmbiguousKey(key)
    return value


def ends_early(data: bytes) -> bool:
    """Return whether `data`, which is invalid JSON, may be valid JSON without its end."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if error.msg.startswith("Invalid \\uXXXX"):
            return len(rest) < len("uXXXX") and '"' not in rest
        return (
            not rest
            or error.msg.startswith("Unterminated string")
            or any(word.startswith(rest) for word in ("true", "false", "null", "-", "e", "E", "e-", "e+", "."))
        )
    except (ValueError, RecursionError):
        pass
    return False


def _ambiguous(value: JsonValue) -> str | None:
    """Return a duplicate key with different values, or `None`. Iterative; does not search inside `arguments`."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        if not isinstance(item, dict):
            continue
        pairs = item.pairs if isinstance(item, Repeated) else ()
        differing = [key for key, inner in pairs if item[key] != inner]
        if differing:
            return differing[0]
        waiting += [inner for key, inner in item.items() if key != "arguments"]
    return None


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class IdForm(Enum):
    """Forms of call IDs that a server accepts in a request; the values are regular expressions."""

    CHAT = r"(?s).{1,40}"
    """OpenAI's chat completions. Their error `string_above_max_length` for `tool_calls[].id` states the limit."""
    RESPONSES = r"[a-zA-Z0-9_-]{1,64}"
    """The Responses API."""
    NINE = r"[a-zA-Z0-9]{9}"
    """Mistral."""


class WireIds:
    """Converts the call IDs of one conversation to a form that the server accepts."""

    def __init__(self, form: IdForm) -> None:
        """`form` is the form that the server accepts. The conversation may have IDs of another server."""
        self._form = form
        self._sent: dict[str, str] = {}
        self._used_ids: set[str] = set()

    def of(self, call_id: str) -> str:
        """Return the ID to send for a call: its own ID if the server accepts it, else one derived from it."""
        if call_id not in self._sent:
            number = 0
            while (sent := self._candidate(call_id, number)) in self._used_ids:
                number += 1
            self._sent[call_id] = sent
            self._used_ids.add(sent)
        return self._sent[call_id]

    def _candidate(self, call_id: str, number: int) -> str:
        if not number and re.fullmatch(self._form.value, call_id):
            return call_id
        digest = hashlib.sha256(f"{number} {call_id}".encode(errors="surrogatepass")).hexdigest()
        if self._form is not IdForm.NINE:
            return f"call_{digest[:32]}"
        value, letters = int(digest, 16), []
        for _ in range(9):
            value, letter = divmod(value, len(_LETTERS))
            letters.append(_LETTERS[letter])
        return "".join(letters)


def told_apart(calls: Sequence[ToolCall], used_ids: AbstractSet[str]) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, each with a unique ID that is not in `used_ids`."""
    used, result, number = set(used_ids), [], 0
    for call in calls:
        call_id = call.id
        while not call_id or call_id in used:
            number += 1
            call_id = f"call_{number}"
        used.add(call_id)
        result.append(call if call_id == call.id else replace(call, id=call_id))
    return tuple(result)


BOM = b"\xef\xbb\xbf"
"""The byte-order mark that a body may begin with."""

Event: TypeAlias = tuple[str, bytes]
"""Name of an event (empty if it has none) and its data as bytes."""


class EventDecoder:
    """Decodes server-sent events from bytes that may be split anywhere.

    Line ends, comments, fields and the byte-order mark follow the WHATWG HTML standard, section 9.2.6. One exception: an
    event without its blank line at the end of the stream is not dropped; `finish` returns it.
    """

    def __init__(self) -> None:
        self.recognised = False
        """Whether any line so far was a valid line of an event stream."""
        self.longest = 0
        """Size in bytes of the longest line or event so far, including incomplete ones."""
        self._pieces: list[bytes] = []
        self._pending = 0
        """Number of bytes received of an incomplete line."""
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that `data` completes."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        self._pieces.append(data)
        self._pending += len(data)
        if b"\n" not in data and b"\r" not in data:
            self.longest = max(self.longest, self._pending)
            return []  # pieces are joined only at line ends, so that one huge line takes linear time
        lines = b"".join(self._pieces).splitlines(keepends=True)
        self._pieces = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._pending = sum(map(len, self._pieces))
        self.longest = max(self.longest, self._pending)
        events: list[Event] = []
        for line in lines:
            self._take_line(line.rstrip(b"\r\n"), events)
        return events

    def finish(self) -> list[Event]:
        """Return the remaining events at the end of the stream. The last event may be incomplete."""
        events: list[Event] = []
        if self._pieces:
            self._take_line(b"".join(self._pieces), events)
            self._pieces = []
        self._take_line(b"", events)
        return events

    def _take_line(self, line: bytes, events: list[Event]) -> None:
        self.longest = max(self.longest, len(line))
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(BOM)
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value)
            self.longest = max(self.longest, self._data_bytes)
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
        self._data_bytes = 0

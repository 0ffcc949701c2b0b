"""The tool calls of one chat completion, assembled from fragments with unreliable indexes, ids and names.

Ambiguous fragments are never combined into a call by guessing.
"""

from __future__ import annotations

import hashlib
import re

from harness.actions import JsonValue
from harness.errors import CutReply
from harness.messages import ToolCall
from harness.models.dialect import argument_text, out_of_bounds
from harness.models.endpoint import ReplyBounds
from harness.models.failures import join_pairs

NAME_CHARACTERS = 256
"""Maximum length of a tool's name in a reply. The API allows at most 64 characters for a function's name."""
ID_CHARACTERS = 65_536
"""Maximum length of a valid ID. LiteLLM puts Gemini's thought signatures, thousands of characters, into IDs."""
KEPT_ID_CHARACTERS = 256
"""Maximum length of an ID that is stored unchanged. A longer ID is replaced by its digest in log and history."""

_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)


class _PartialCall:
    """One tool call, assembled as its fragments arrive."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.length = 0
        """Number of characters of the arguments."""
        self.extra: JsonValue = None
        self._scanned = 0
        self._backslash = ""
        self._in_text = False
        self._depth = 0
        self._opened = False

    def absorb(self, call_id: str, name: str, arguments: str) -> bool:
        """Add a fragment; return whether it added anything new.

        Until the arguments begin, its ID and name may be whole, repeated, growing or in pieces. Raises CutReply if the
        name or the ID is too long.
        """
        before = self.id, self.name
        if not self.arguments:
            self.id = _grown(self.id, call_id)
        if not self.arguments or not self.name:
            self.name = _grown(self.name, name)
        self.id = self.id or call_id
        if arguments:
            self.arguments.append(arguments)
            self.length += len(arguments)
        if len(self.name) > NAME_CHARACTERS:
            raise _no_call("name", NAME_CHARACTERS)
        if len(self.id) > ID_CHARACTERS:
            raise _no_call("id", ID_CHARACTERS)
        return bool(arguments) or (self.id, self.name) != before

    def is_repeated_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Return whether a fragment repeats the whole call with the same ID, because an event was sent twice."""
        if not call_id or len(arguments) != self.length or (call_id, name) != (self.id, self.name):
            return False
        return arguments == "".join(self.arguments) and self._closed()

    def is_over(self, call_id: str, name: str, arguments: str) -> bool:
        """Return whether a fragment with this call's index begins another call. Some servers use index 0 for every call."""
        if not name or not self.arguments:
            return False
        if call_id and self.id and call_id != self.id:
            return name != self.name or self._closed()
        return bool(arguments.strip()) and self._closed()

    def _closed(self) -> bool:
        """Return whether the brackets of the arguments are balanced. Each character is scanned once."""
        text = self._backslash + "".join(self.arguments[self._scanned :])
        self._scanned = len(self.arguments)
        self._backslash = "\\" if (len(text) - len(text.rstrip("\\"))) % 2 else ""
        for mark in _MARKS.findall(text):
            if mark == '"':
                self._in_text = not self._in_text
            elif not self._in_text and mark in "{}[]":
                self._opened = True
                self._depth += 1 if mark in "{[" else -1
        return self._opened and self._depth <= 0 and not self._in_text


class ChatCalls:
    """The calls of one reply."""

    def __init__(self, bounds: ReplyBounds) -> None:
        """`bounds` limits the number of calls and the arguments of each."""
        self._bounds = bounds
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}

    @property
    def count(self) -> int:
        """Number of calls that have begun."""
        return len(self._calls)

    def add(self, fragments: JsonValue, *, is_whole: bool) -> bool:
        """Add the `tool_calls` of a delta or, if `is_whole`, of a whole message. Return whether they added anything new.

        Raises ModelError beyond the bounds, CutReply for an invalid call.
        """
        is_new = False
        for position, fragment in enumerate(fragments if isinstance(fragments, list) else [fragments]):
            if isinstance(fragment, dict):
                is_new |= self._add(fragment, position if is_whole else place_of(fragment.get("index")))
        return is_new

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls with the IDs that the server sent; a very long ID is replaced by its digest."""
        return tuple(
            ToolCall(id=_short_id(call.id), name=call.name, arguments=join_pairs("".join(call.arguments)))
            for call in self._distinct_calls()
        )

    def extras(self) -> list[JsonValue]:
        """Return the `extra_content` of each call (Gemini's thought signatures), `None` for a call without it."""
        return [call.extra for call in self._distinct_calls()]

    def _distinct_calls(self) -> list[_PartialCall]:
        """Return the calls that are not empty, without exact repetitions (same ID, name and arguments).

        Different calls with the same ID are both returned, since some models restart their numbering.
        """
        calls, ids = [], set()
        for call in self._calls:
            key = (call.id, call.name, "".join(call.arguments))
            if (call.id or call.name or call.arguments) and not (call.id and key in ids):
                calls.append(call)
                ids.add(key)
        return calls

    def _add(self, fragment: dict[str, JsonValue], index: int | None) -> bool:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call_id, name = _word(fragment.get("id")), _word(function.get("name"))
        arguments = argument_text(function.get("arguments"))
        call = self._find(index, call_id, name)
        if call is not None and call.is_repeated_by(call_id, name, arguments):
            return False
        if call is None or call.is_over(call_id, name, arguments):
            call = _PartialCall()
            self._calls.append(call)
            if len(self._calls) > self._bounds.calls:
                raise out_of_bounds("calls", self._bounds.calls)
        is_new = call.absorb(call_id, name, arguments)
        if call.length > self._bounds.argument_characters:
            raise out_of_bounds("argument_characters", self._bounds.argument_characters)
        call.extra = fragment.get("extra_content") or call.extra
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
        return is_new

    def _find(self, index: int | None, call_id: str, name: str) -> _PartialCall | None:
        """Return the call that a fragment belongs to: by index, else by ID, else the last call."""
        if index is not None:
            return self._by_index.get(index)
        last = self._calls[-1] if self._calls else None
        if not call_id:
            return last
        late = last if last is not None and not last.id and not name else None
        return self._by_id.get(call_id, late)


def _grown(old: str, new: str) -> str:
    """Return `new` if it begins with `old`, else both joined."""
    return new if new.startswith(old) else old + new


def _word(value: JsonValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def _short_id(call_id: str) -> str:
    if len(call_id) <= KEPT_ID_CHARACTERS:
        return call_id
    return "call_" + hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:32]


def _no_call(subject: str, maximum: int) -> CutReply:
    return CutReply(
        f"The provider sent a tool call whose {subject} is longer than {maximum} characters. The reply was not used."
    )


def place_of(value: JsonValue) -> int | None:
    """Parse an `index` field, a number or digits; `None` if it is neither."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

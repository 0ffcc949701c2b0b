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
"""Maximum length of a tool's name in a reply; functions have at most 64 characters."""
ID_CHARACTERS = 65_536
"""A longer id is none. LiteLLM writes Gemini's thought signatures into ids, which makes them some thousand characters."""
KEPT_ID_CHARACTERS = 256
"""Maximum length of an id that is kept. A longer one becomes its digest, since log and history hold it."""

_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)


class _PartialCall:
    """One tool call while its fragments come in."""

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
        """Add a fragment: id and name may be whole, resent, growing or in pieces, until the arguments begin.

        Says whether it told anything new. Raises CutReply for a name or an id that is none for its length.
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
        """Say whether a fragment is the whole call over again, under its own id: an event that came twice."""
        if not call_id or len(arguments) != self.length or (call_id, name) != (self.id, self.name):
            return False
        return arguments == "".join(self.arguments) and self._closed()

    def is_over(self, call_id: str, name: str, arguments: str) -> bool:
        """Say whether a fragment that points here begins another call: some servers give every call the index 0."""
        if not name or not self.arguments:
            return False
        if call_id and self.id and call_id != self.id:
            return name != self.name or self._closed()
        return bool(arguments.strip()) and self._closed()

    def _closed(self) -> bool:
        """Say whether the arguments are a whole object, as far as brackets tell; each character is read once."""
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
        """Add the `tool_calls` of a delta, or of a `is_whole` message; return whether they were new.

        Raises ModelError beyond the bounds, CutReply for an invalid call.
        """
        is_new = False
        for position, fragment in enumerate(fragments if isinstance(fragments, list) else [fragments]):
            if isinstance(fragment, dict):
                is_new |= self._add(fragment, position if is_whole else place_of(fragment.get("index")))
        return is_new

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls, with the ids that came."""
        return tuple(
            ToolCall(id=_short_id(call.id), name=call.name, arguments=join_pairs("".join(call.arguments)))
            for call in self._distinct_calls()
        )

    def extras(self) -> list[JsonValue]:
        """Return the `extra_content` of each call (Gemini's thought signatures), null if it had none."""
        return [call.extra for call in self._distinct_calls()]

    def _distinct_calls(self) -> list[_PartialCall]:
        """Return the calls that hold anything; one that came twice, its id included, was only sent again.

        Different calls of one id are two: some models number theirs anew.
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
        """Return the call that a fragment points to: by index, else by id, else the last one."""
        if index is not None:
            return self._by_index.get(index)
        last = self._calls[-1] if self._calls else None
        if not call_id:
            return last
        late = last if last is not None and not last.id and not name else None
        return self._by_id.get(call_id, late)


def _grown(old: str, new: str) -> str:
    """Return `old` with `new` added, where `new` may also repeat or extend all of `old`."""
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
    """Return the number that an `index` is; None for what is none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

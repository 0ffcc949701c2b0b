"""The common part of request bodies. Each message and tool is encoded once, so that a turn encodes only new messages.

INVARIANT: a body depends only on its messages, not on earlier requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from harness.actions import JsonValue
from harness.messages import Message, Role
from harness.model import ToolSpec
from harness.record import replace

MAX_NAME_CHARACTERS = 64
"""Maximum length of a function's name."""

MARKED_RUNS = 2
"""Number of runs of messages between replies that get a cache mark. A request may have four marks in total; the other
two are for the tools and the system message.
"""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), default=dict).encode

ItemsOf: TypeAlias = Callable[[Message, bool], Iterable[JsonValue]]
"""Converts a message to the elements of the array, possibly none. The flag says whether to include its reasoning."""


class EncodedMessages:
    """The messages of a conversation as the elements of a JSON array. Each message is encoded once.

    Consecutive user messages are joined with an empty line, since strict servers require alternating roles. Assistant
    messages with neither text nor calls are left out.
    """

    def __init__(self, items: ItemsOf) -> None:
        """`items` converts a message to elements."""
        self._items = items
        self._messages: list[Message] = []
        self._encoded: list[bytes] = []
        """Encoded elements of each message, each after a comma. In a run of joined messages only the last entry has any."""
        self._echoing: list[int] = []
        """Indexes of the messages that may hold reasoning."""
        self._reasoning_from = 0
        self._call_ids: set[str] = set()

    @property
    def call_ids(self) -> AbstractSet[str]:
        """IDs of all calls in the messages."""
        return self._call_ids

    def __len__(self) -> int:
        """Return the number of messages in the last request."""
        return len(self._messages)

    def may_reason(self, start: int) -> bool:
        """Return whether a message at index `start` or later may hold reasoning."""
        return any(place >= start for place in self._echoing)

    def update(self, messages: Sequence[Message], *, reasoning_from: int = 0) -> None:
        """Set the messages of the next request. Only messages that differ from the previous request are encoded.

        Messages at index `reasoning_from` and later include their reasoning, earlier ones do not.
        """
        common = self._common(messages)
        if not common == len(self._messages) == len(messages):
            while common and _joins(self._messages[common - 1]):
                common -= 1  # the run may be longer or shorter now
            self._keep(common)
        self._move_reasoning(reasoning_from)
        run: list[Message] = []
        for message in messages[common:]:
            if _joins(message):
                run.append(message)
                continue
            self._add_run(run)
            run = []
            self._add(message)
        self._add_run(run)

    def array(self, mark: Callable[[bytes], bytes] | None = None) -> list[bytes]:
        """Return the pieces of the array, including its brackets. `mark` adds a cache mark to a piece; `None`: no marks."""
        encoded = self._encoded if mark is None else self.marked(mark)
        pieces = [piece for piece in encoded if piece]
        if pieces:
            pieces[0] = pieces[0][1:]
        return [b"[", *pieces, b"]"]

    def marked(self, mark: Callable[[bytes], bytes]) -> list[bytes]:
        """Return the elements of each message, with cache marks.

        The marked messages are the system message, the last message after the model's last reply, and the last message
        before that reply. The mark after the reply is for the next request. The mark before it finds the beginning that
        the previous request cached: a server searches only a limited number of blocks before a mark, and one reply may
        have more.
        """
        pieces = list(self._encoded)
        marked = {0} if pieces and self._messages[0].role is Role.SYSTEM else set()
        before_reply, runs = True, 0
        for place in range(len(pieces) - 1, -1, -1):
            if is_reply(self._messages[place]):
                before_reply = True
            elif before_reply and pieces[place]:
                marked.add(place)
                before_reply, runs = False, runs + 1
            if runs == MARKED_RUNS:
                break
        for place in marked:
            pieces[place] = pieces[place] and mark(pieces[place])
        return pieces

    def _common(self, messages: Sequence[Message]) -> int:
        """Return the number of leading messages that are the same as in the previous request."""
        length = len(self._messages)
        if list(messages[:length]) == self._messages:  # the usual case; compared in C, by identity first
            return length
        count = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new and old != new:
                break
            count += 1
        return count

    def _keep(self, count: int) -> None:
        if count < len(self._messages):
            del self._messages[count:], self._encoded[count:]
            self._echoing = [place for place in self._echoing if place < count]
            self._call_ids = {call.id for message in self._messages for call in message.tool_calls}

    def _move_reasoning(self, start: int) -> None:
        """Include reasoning only from index `start` on. Encode again each message for which that changes."""
        first, last = sorted((start, self._reasoning_from))
        self._reasoning_from = start
        if first == last:
            return
        for place in self._echoing:
            if first <= place < last:
                self._encoded[place] = self._pieces(self._messages[place], place)

    def _add(self, message: Message) -> None:
        place = len(self._messages)
        self._messages.append(message)
        self._encoded.append(self._pieces(message, place))
        if message.echo:
            self._echoing.append(place)
        self._call_ids.update(call.id for call in message.tool_calls)

    def _add_run(self, run: Sequence[Message]) -> None:
        """Add the user messages of a run as one message. Empty assistant messages in the run are left out."""
        user_messages = [message for message in run if message.role is Role.USER]
        self._messages.extend(run)
        self._encoded.extend(b"" for _ in run)
        if user_messages:
            attachments = tuple(attachment for message in user_messages for attachment in message.attachments)
            content = "\n\n".join(message.content for message in user_messages)
            merged = replace(user_messages[0], content=content, attachments=attachments)
            self._encoded[-1] = self._pieces(merged, len(self._messages) - 1)

    def _pieces(self, message: Message, place: int) -> bytes:
        items = self._items(message, place >= self._reasoning_from)
        return b"".join(b"," + encoded(item) for item in items)


class EncodedTools:
    """A list of tools as a field of a body. It is encoded only when it changes."""

    def __init__(self, item: Callable[[ToolSpec], JsonValue]) -> None:
        """`item` converts a tool to an element of the list."""
        self._item = item
        self._tools: tuple[ToolSpec, ...] = ()
        self._encoded = b""

    def field(self, tools: Sequence[ToolSpec]) -> bytes:
        """Return `,"tools":[...]`. Empty without tools, since servers refuse an empty list."""
        if self._tools != (offered := tuple(tools)):
            self._tools = offered
            self._encoded = b',"tools":' + encoded([self._item(tool) for tool in offered]) if offered else b""
        return self._encoded


def encoded(value: JsonValue) -> bytes:
    """Return `value` as JSON. A lone surrogate, possible in a call's arguments, is escaped."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        return _encode_ascii(value).encode()


def sendable_name(name: str) -> str:
    """Return a tool name that servers accept in a request. A name that the model invented, such as `functions.bash`,
    would make every later request fail.
    """
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME_CHARACTERS] or "unknown"


def sendable_arguments(arguments: str) -> str:
    """Return arguments that every server can parse. vLLM and Ollama fail unless they are a JSON object.

    A JSON object is returned unchanged. Other text becomes the value of `invalid_arguments`.
    """
    try:
        value = json.loads(arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return arguments
    return _encode({"invalid_arguments": arguments}) if arguments.strip() else "{}"


def _refuse(constant: str) -> JsonValue:
    raise ValueError(constant)


def is_reply(message: Message) -> bool:
    """Return whether a message is a reply of the model with text or calls."""
    return message.role is Role.ASSISTANT and bool(message.content or message.tool_calls)


def _joins(message: Message) -> bool:
    """Return whether a message is part of a run: a user message, or an empty assistant message."""
    return message.role is Role.USER or (message.role is Role.ASSISTANT and not is_reply(message))

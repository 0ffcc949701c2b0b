"""Dialect: one API with the quirks of one server. It encodes requests and creates the parsers of replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, Protocol

from harness.actions import JsonValue
from harness.errors import ModelError
from harness.messages import Message, ModelResponse, Usage
from harness.model import MAX_REPLY_CHARACTERS, ToolSpec
from harness.models.endpoint import Endpoint
from harness.models.failures import EMPTY_ANSWER, ProviderRefusal, join_pairs
from harness.models.presets import Api
from harness.models.request_body import EncodedMessages
from harness.models.retries import Lesson, learned
from harness.models.setting_fields import SettingFields
from harness.models.sight import Sight
from harness.record import replace

MOST_TOKENS = 10**12
"""Maximum token count accepted. A larger number must be an error, and would spoil every sum."""


class Assembly(Protocol):
    """One reply, assembled from its events. `ReplyBody` feeds it, and alone decides whether the reply is used."""

    @property
    def finished(self) -> bool:
        """Whether the reply said that it is finished."""
        ...

    @property
    def broken_off(self) -> str:
        """The finish reason with which the provider reported a broken reply. Empty if it reported none."""
        ...

    @property
    def chosen(self) -> bool:
        """Whether any part of a reply arrived."""
        ...

    @property
    def text(self) -> str:
        """The text so far."""
        ...

    @property
    def call_count(self) -> int:
        """Number of tool calls that have begun."""
        ...

    @property
    def usage(self) -> Usage:
        """Usage of the reply, as far as it was reported."""
        ...

    def add(self, name: str, value: dict[str, JsonValue]) -> str:
        """Add one event by its name; return its new text. Raises ModelError if the event holds an error."""
        ...

    def add_document(self, value: dict[str, JsonValue]) -> str:
        """Add the whole reply as one document; return its text. Raises ModelError if it holds an error."""
        ...

    def end_text(self) -> str:
        """Return the text that the end of the body completes. Call it after the last event."""
        ...

    def tear(self) -> None:
        """Record that the body ended within an event, so that its content is unknown."""
        ...

    def response(self) -> ModelResponse:
        """Return the reply. Its calls have the IDs that the server sent, which may be empty or duplicate."""
        ...


class ReplyText:
    """The text of a reply. A piece may end within a surrogate pair; that half waits for the other one."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._characters = 0
        self._half_pair = ""

    def __str__(self) -> str:
        """Return the whole text so far."""
        return "".join(self._pieces)

    def __bool__(self) -> bool:
        """Return whether any text has arrived."""
        return bool(self._pieces)

    def add(self, piece: str) -> str:
        """Add a piece; return the text to display. Raises ModelError if the text exceeds MAX_REPLY_CHARACTERS."""
        if not piece:
            return ""
        self._characters += len(piece)
        if self._characters > MAX_REPLY_CHARACTERS:
            raise ModelError(f"The reply has more than {MAX_REPLY_CHARACTERS:,} characters; it was dropped.")
        piece = self._half_pair + piece
        self._half_pair = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
        joined = join_pairs(piece.removesuffix(self._half_pair), errors="replace")
        self._pieces.append(joined)
        return joined

    def end(self) -> str:
        """Return the replacement character if the text ends with half a surrogate pair, else an empty string."""
        rest, self._half_pair = "\ufffd" if self._half_pair else "", ""
        self._pieces.append(rest)
        return rest


def argument_text(value: JsonValue) -> str:
    """Return an arguments field as text. Some servers send the object itself.

    Any other value is written as JSON, so that a strict parser rejects it later. Null and an empty object become an
    empty string.
    """
    if isinstance(value, str):
        return value
    return "" if value is None or value == {} else json.dumps(value, ensure_ascii=False)


def usage_of(
    input_tokens: JsonValue,
    output_tokens: JsonValue,
    cached: JsonValue,
    total: JsonValue = None,
    *,
    written: JsonValue = None,
) -> Usage:
    """Return the reported usage. `cached` tokens were read from a cache, `written` tokens were written to it.

    A report without input or output, or with impossible numbers, is ignored. If `total` exceeds input plus output, the
    difference counts as output: Gemini omits its thoughts from the other numbers.
    """
    inward, outward = _count(input_tokens), _count(output_tokens)
    if inward is None or outward is None or not (inward or outward):
        return Usage(unreported=1)
    outward = max(outward, (_count(total) or 0) - inward)
    read = min(_count(cached) or 0, inward)
    wrote = min(_count(written) or 0, inward - read)
    return Usage(input_tokens=inward, output_tokens=outward, cached_tokens=read, cache_write_tokens=wrote)


def out_of_bounds(bound: str, maximum: int) -> ModelError:
    """Return the error for a reply that exceeds the bound of this name (see ReplyBounds)."""
    text = {
        "bytes": "is longer than {} bytes",
        "event_bytes": "has an event, or is a document, of more than {} bytes",
        "events": "has more than {} events",
        "calls": "has more than {} tool calls",
        "argument_characters": "has a tool call with more than {} characters of arguments",
    }[bound].format(maximum)
    return ModelError(f"The reply {text}; it was dropped. Raise `{bound}` under [bounds] if it should be taken.")


def _count(value: JsonValue) -> int | None:
    """Parse a number of tokens, a whole number or digits as text; `None` for other values."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MOST_TOKENS)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


class Dialect:
    """The common part of the APIs. Each defines its address, requests, adaptations and replies."""

    path: ClassVar[str]
    """Path of requests, below the base URL."""
    api: ClassVar[Api]
    """The API of this dialect."""
    lessons: ClassVar[tuple[Lesson, ...]]
    reasoning_refused: ClassVar[re.Pattern[str]]
    """Lower-case pattern of a refusal of earlier reasoning, such as another model's in a resumed session."""
    _messages: EncodedMessages
    """The encoded messages of the last request. Each subclass creates this object."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """`endpoint` is the address of the server and its settings."""
        self._model = model
        self.quirks = endpoint.quirks
        """The server's peculiarities, including those learned from refusals."""
        self.bounds = endpoint.bounds
        self.sight = Sight(endpoint.attachments)
        self.settings = SettingFields(endpoint.settings, self.api)
        """Settings to send with each request."""
        self._streams_later = False
        self._forgotten = 0
        """Number of messages at the start that are sent without their reasoning."""
        self.adapt()

    @property
    def call_ids(self) -> AbstractSet[str]:
        """IDs of all calls in the messages of the last request."""
        return self._messages.call_ids

    @classmethod
    def completed(cls, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the defaults that this API needs."""
        return endpoint

    def adapt(self) -> None:
        """Apply the current quirks to later requests. Every message is encoded again."""
        raise NotImplementedError

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request."""
        raise NotImplementedError

    def assembly(self, secret: str) -> Assembly:
        """Return an assembly for the next reply. It masks `secret` in its error texts."""
        raise NotImplementedError

    def setting_hint(self, refusal: ProviderRefusal) -> str:
        """Return a sentence that names the user's settings mentioned in a refusal. Empty if it mentions none."""
        if refusal.status not in {0, 400, 404, 422}:
            return ""
        names = ", ".join(f"`{name}`" for name in self.settings.named_in(refusal.words, self.other_names))
        return f" See your settings of the model: {names}." if names else ""

    @property
    def other_names(self) -> Mapping[str, str]:
        """This server's own names of setting fields."""
        return {}

    def learn(self, refusal: ProviderRefusal, messages: Sequence[Message]) -> bool:
        """Adapt to a refusal of `messages`; return whether the request for them differs now.

        INVARIANT: only finitely many adaptations are possible, so that the request is not sent forever.
        """
        quirks = learned(self.quirks, refusal, self.lessons)
        self._streams_later |= EMPTY_ANSWER in refusal.codes and quirks != self.quirks
        if quirks == self.quirks and not self.sight.learn(refusal, messages):
            return self._forget_reasoning(refusal)
        self.quirks = quirks
        self.adapt()
        return True

    def resume_streams(self) -> None:
        """Ask for streams again, if streaming was turned off for one request because of an empty answer."""
        if self._streams_later:
            self._streams_later = False
            self.quirks = replace(self.quirks, stream=True)
            self.adapt()

    def _take(self, messages: Sequence[Message]) -> None:
        """Encode the messages of the next request, with all reasoning that the server has not refused.

        The reasoning of earlier turns is included. DeepSeek and Kimi want it in every message with calls ("The
        `reasoning_content` in the thinking mode must be passed back to the API"); other servers ignore what they do not
        need. The beginning of the request also stays the same, so that the server finds it in its cache.
        """
        self._forgotten = min(self._forgotten, len(messages))  # a summary makes a conversation shorter
        self._messages.update(messages, reasoning_from=self._forgotten)

    def _forget_reasoning(self, refusal: ProviderRefusal) -> bool:
        """Omit the reasoning of the last request's messages, if it was refused. Return whether that changes the request."""
        if refusal.status not in {0, 400, 404, 422} or not self.reasoning_refused.search(refusal.words):
            return False
        changes = self._messages.may_reason(self._forgotten)
        self._forgotten = len(self._messages)
        return changes

"""Dialect: one of the two APIs, as one server speaks it: what a conversation is in its requests, and what its replies are."""

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
"""Maximum token count. A larger number cannot be one, and would spoil every sum."""


class Assembly(Protocol):
    """One reply of one API, put together; `ReplyBody` feeds it, and alone decides whether it may be used."""

    @property
    def finished(self) -> bool:
        """Whether the reply said that it is finished."""
        ...

    @property
    def broken_off(self) -> str:
        """The finish reason by which the provider says that the reply broke off; empty where it says no such thing."""
        ...

    @property
    def chosen(self) -> bool:
        """Whether anything of a reply came in."""
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
        """Take one event by its name; return the text that it adds. Raises ModelError for an error in it."""
        ...

    def add_document(self, value: dict[str, JsonValue]) -> str:
        """Take the whole reply in one; return its text. Raises ModelError for an error in it."""
        ...

    def end_text(self) -> str:
        """Return the text that the end of the body completes."""
        ...

    def tear(self) -> None:
        """Take note that the body ended within an event; what that said is not known."""
        ...

    def response(self) -> ModelResponse:
        """Return the reply, its calls with the ids that came: some may be empty, or there twice."""
        ...


class ReplyText:
    """The text of a reply, whose pieces may part a character: half a surrogate pair waits for its other half."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._characters = 0
        self._half_pair = ""

    def __str__(self) -> str:
        """Return all of it so far."""
        return "".join(self._pieces)

    def __bool__(self) -> bool:
        """Say whether any has come in."""
        return bool(self._pieces)

    def add(self, piece: str) -> str:
        """Take a piece; return what can be shown of it. Raises ModelError where the text becomes longer than any reply."""
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
        """Return the replacement for half a character at the end."""
        rest, self._half_pair = "\ufffd" if self._half_pair else "", ""
        self._pieces.append(rest)
        return rest


def argument_text(value: JsonValue) -> str:
    """Return the text of an arguments field. Some servers send the object itself.

    Any other value becomes text too, so that a strict reader refuses it. Null and an empty object are empty
    arguments.
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
    """Return the reported usage: tokens in, out, read from a cache, and in total; `written` tokens went into a cache.

    A report without input or output, or with impossible numbers, is ignored. If `total` exceeds both, the rest is
    output: Gemini leaves its thoughts out of the other numbers.
    """
    inward, outward = _count(input_tokens), _count(output_tokens)
    if inward is None or outward is None or not (inward or outward):
        return Usage(unreported=1)
    outward = max(outward, (_count(total) or 0) - inward)
    read = min(_count(cached) or 0, inward)
    wrote = min(_count(written) or 0, inward - read)
    return Usage(input_tokens=inward, output_tokens=outward, cached_tokens=read, cache_write_tokens=wrote)


def out_of_bounds(bound: str, maximum: int) -> ModelError:
    """Return the error for a reply that is more than the bound of that name (see ReplyBounds) allows."""
    text = {
        "bytes": "is longer than {} bytes",
        "event_bytes": "has an event, or is a document, of more than {} bytes",
        "events": "has more than {} events",
        "calls": "has more than {} tool calls",
        "argument_characters": "has a tool call with more than {} characters of arguments",
    }[bound].format(maximum)
    return ModelError(f"The reply {text}; it was dropped. Raise `{bound}` under [bounds] if it should be taken.")


def _count(value: JsonValue) -> int | None:
    """Return a number of tokens, however it is written; None for what is none."""
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
    """Lower-case pattern of a refusal of earlier reasoning: of another model or account, in a resumed session."""
    _messages: EncodedMessages
    """The messages of the last request; each API makes its own."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """Take the model's name, and where its server is."""
        self._model = model
        self.quirks = endpoint.quirks
        """The server's peculiarities, including those learned from refusals."""
        self.bounds = endpoint.bounds
        self.sight = Sight(endpoint.attachments)
        self.settings = SettingFields(endpoint.settings, self.api)
        """Settings of each request besides the conversation."""
        self._streams_later = False
        self._forgotten = 0
        """Number of messages at the start that are sent without their reasoning."""
        self.adapt()

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._messages.call_ids

    @classmethod
    def completed(cls, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint with what this API needs there and its maker left out."""
        return endpoint

    def adapt(self) -> None:
        """Write the next requests as the quirks want them; all messages are encoded anew."""
        raise NotImplementedError

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request."""
        raise NotImplementedError

    def assembly(self, secret: str) -> Assembly:
        """Return an assembly for the next reply, which repeats the secret in no error text."""
        raise NotImplementedError

    def setting_hint(self, refusal: ProviderRefusal) -> str:
        """Return a sentence about the person's setting that a refusal mentions, to be added to its text. Usually
        empty.
        """
        if refusal.status not in {0, 400, 404, 422}:
            return ""
        names = ", ".join(f"`{name}`" for name in self.settings.named_in(refusal.words, self.other_names))
        return f" See your settings of the model: {names}." if names else ""

    @property
    def other_names(self) -> Mapping[str, str]:
        """This server's own names of setting fields."""
        return {}

    def learn(self, refusal: ProviderRefusal, messages: Sequence[Message]) -> bool:
        """Adapt to a refusal of `messages`; return whether their request is a different one now.

        INVARIANT: adaptation ends, so that the request is not sent for ever.
        """
        quirks = learned(self.quirks, refusal, self.lessons)
        self._streams_later |= EMPTY_ANSWER in refusal.codes and quirks != self.quirks
        if quirks == self.quirks and not self.sight.learn(refusal, messages):
            return self._forget_reasoning(refusal)
        self.quirks = quirks
        self.adapt()
        return True

    def resume_streams(self) -> None:
        """Ask for streams again, where only one request went without because of an empty answer."""
        if self._streams_later:
            self._streams_later = False
            self.quirks = replace(self.quirks, stream=True)
            self.adapt()

    def _take(self, messages: Sequence[Message]) -> None:
        """Encode the messages of the next request, with all reasoning that the server has not refused.

        That of earlier turns goes back too: DeepSeek and Kimi want it wherever calls were made ("The `reasoning_content` in the
        thinking mode must be passed back to the API"), others leave out what they do not want, and what a request begins
        with stays the same, so that it is found in the cache.
        """
        self._forgotten = min(self._forgotten, len(messages))  # a summary makes a conversation shorter
        self._messages.update(messages, reasoning_from=self._forgotten)

    def _forget_reasoning(self, refusal: ProviderRefusal) -> bool:
        """Leave out the reasoning of the last request's messages where it was refused; say whether that changes anything."""
        if refusal.status not in {0, 400, 404, 422} or not self.reasoning_refused.search(refusal.words):
            return False
        changes = self._messages.may_reason(self._forgotten)
        self._forgotten = len(self._messages)
        return changes

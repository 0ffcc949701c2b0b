"""One reply of the chat completions API, put together from its deltas or its whole message; pure.

Servers that call themselves compatible differ in many small ways: indexes, ids, names and finish reasons are taken as
they come, and what cannot be told apart for certain is never guessed into a call that nobody made.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import JsonValue
from harness.messages import FinishReason, ModelResponse, Usage
from harness.models.assembly import ReplyText, usage_of
from harness.models.chat_calls import ChatCalls
from harness.models.chat_echo import Echo
from harness.models.endpoint import ReplyBounds
from harness.models.failures import broken_off

# `model_length` is Mistral's, `max_tokens` and `safety` come from proxies that hand through other APIs' words.
_NO_REASONS = frozenset(("", "null", "none"))
_LENGTH_REASONS = frozenset(("length", "max_tokens", "model_length"))
_FILTER_REASONS = frozenset(("content_filter", "safety"))
# OpenRouter ends a reply that its provider dropped with `error`, vLLM one that was cancelled with `abort`.
_BROKEN_REASONS = frozenset(("error", "abort", "aborted", "cancelled"))


class ChatReply:
    """The deltas of one reply, put together; an Assembly."""

    def __init__(self, secret: str = "", *, bounds: ReplyBounds | None = None, echo: Sequence[str] = ()) -> None:
        """Take the API key, so that no error text repeats it, and how much is taken.

        `echo` names the fields of the message that are to be given back.
        """
        self.finish_reason = ""
        self.usage = Usage(unreported=1)
        self.chosen = False
        """Whether any choice came in."""
        self._secret = secret
        self._text = ReplyText()
        self._calls = ChatCalls(bounds or ReplyBounds())
        self._echo = Echo(echo)

    @property
    def finished(self) -> bool:
        """Whether a finish reason came in."""
        return bool(self.finish_reason)

    @property
    def broken_off(self) -> str:
        """The finish reason by which the provider says that the reply broke off, or nothing."""
        return self.finish_reason if self.finish_reason in _BROKEN_REASONS else ""

    @property
    def text(self) -> str:
        """The text so far."""
        return str(self._text)

    @property
    def call_count(self) -> int:
        """How many tool calls have begun."""
        return self._calls.count

    def add(self, name: str, chunk: dict[str, JsonValue]) -> str:  # noqa: ARG002 - chat completions name no events
        """Take one chunk; return the text that it adds. Raises ModelError for an error in it."""
        return self.add_document(chunk)

    def add_document(self, chunk: dict[str, JsonValue]) -> str:
        """Take a chunk or a whole completion; return the text that it adds. Raises ModelError for an error in it."""
        beside = chunk.get("x_groq")
        for usage in (chunk.get("usage"), beside.get("usage") if isinstance(beside, dict) else None):
            if isinstance(usage, dict) and not (reported := _usage(usage)).unreported:
                self.usage = reported
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if choice.get("error"):
            raise broken_off(choice["error"], self._secret)
        self.chosen = True
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason.lower() not in _NO_REASONS:
            self.finish_reason = reason.lower()
        return self._add_delta(choice)

    def end_text(self) -> str:
        """Return what stands for half a character that the end of the reply left over."""
        return self._text.end()

    def response(self) -> ModelResponse:
        """Return the reply, its calls with the ids that came."""
        return ModelResponse(
            text=self.text,
            tool_calls=self._calls.tool_calls(),
            finish_reason=_finish_reason(self.finish_reason),
            usage=self.usage,
            echo=self._echo.text(self._calls.extras()),
        )

    def _add_delta(self, choice: dict[str, JsonValue]) -> str:
        delta, whole = choice.get("delta"), choice.get("message")
        if not isinstance(delta, dict):
            if not isinstance(whole, dict) or self._text or self._calls.count:
                return ""  # a whole message after its own deltas says nothing new
            delta = whole
        self._echo.add(delta)
        self._calls.add(delta.get("tool_calls"), whole=delta is whole)
        return self._text.add(_content(delta.get("content")) or _content(delta.get("refusal")))


def _finish_reason(reason: str) -> FinishReason:
    if reason in _LENGTH_REASONS:
        return FinishReason.LENGTH
    return FinishReason.CONTENT_FILTER if reason in _FILTER_REASONS else FinishReason.DONE


def _usage(usage: dict[str, JsonValue]) -> Usage:
    details = usage.get("prompt_tokens_details")
    # `prompt_cache_hit_tokens` is DeepSeek's name for it.
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return usage_of(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)


def _content(value: JsonValue) -> str:
    """Return the text of a content field: a text, or a list of parts as Mistral sends it."""
    if isinstance(value, list):
        texts = (part.get("text") for part in value if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else ""

"""One reply of the chat completions API, assembled from its deltas or from its whole message.

Servers that call themselves compatible differ in many small ways. Indexes, ids, names and finish reasons are accepted
in any form, and ambiguous fragments are never combined into a call by guessing.

INVARIANT: calls are returned only from a reply whose finish reasons all say that it is complete, or from one without a
finish reason that ended with `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import assert_never

from harness.actions import JsonValue
from harness.errors import CutReply
from harness.messages import FinishReason, ModelResponse, Usage
from harness.models.chat_calls import ChatCalls
from harness.models.chat_echo import Echo
from harness.models.dialect import ReplyText, usage_of
from harness.models.endpoint import ReplyBounds
from harness.models.failures import broken_off, excerpt


class Finish(Enum):
    """The meaning of a finish reason. Members are ordered from good to bad."""

    WHOLE = "whole"
    UNKNOWN = "unknown"
    """An unknown word. The text of the reply is used, since text runs nothing; its calls are not."""
    FILTER = "filter"
    LENGTH = "length"
    BROKEN = "broken"

    def is_worse_than(self, other: Finish) -> bool:
        """Return whether this one counts if both occurred."""
        order = list(Finish)
        return order.index(self) > order.index(other)


_NO_REASONS = frozenset(("", "null", "none"))
# The words of the API, and those of other APIs that proxies pass on. Anthropic: end_turn, tool_use,
# stop_sequence, max_tokens, refusal, pause_turn, model_context_window_exceeded. Gemini: recitation, safety, spii,
# malformed_function_call. Mistral: model_length. Bedrock: content_filtered, guardrail_intervened. Together: eos. Ollama,
# LM Studio: end. TGI: eos_token. Cohere: complete, tool_call. DeepSeek: insufficient_system_resource. Zhipu: sensitive,
# network_error. OpenRouter sends `error` if its provider dropped the reply; vLLM sends `abort` if it was cancelled.
_WORDS = {
    Finish.WHOLE: "stop tool_calls tool_call tool_use function_call function_calls end_turn end eos eos_token "
    "stop_sequence complete completed done finish finished",
    Finish.FILTER: "content_filter content_filtered safety sensitive recitation refusal prohibited_content blocklist spii "
    "guardrail_intervened image_safety",
    Finish.LENGTH: "length max_tokens max_output_tokens max_length max_new_tokens model_length token_limit "
    "model_context_window_exceeded context_window_exceeded context_length_exceeded",
    Finish.BROKEN: "error abort aborted cancel canceled cancelled fail failed failure timeout interrupted incomplete "
    "insufficient_system_resource network_error server_error malformed_function_call unexpected_tool_call "
    "too_many_tool_calls pause_turn other",
}
_FINISHES = {word: finish for finish, words in _WORDS.items() for word in words.split()}


def finish_of(reason: JsonValue) -> Finish | None:
    """Parse a `finish_reason` field; `None` if it is not set yet."""
    word = str(reason).strip().lower().replace("-", "_") if reason else ""
    if word in _NO_REASONS:
        return None
    return _FINISHES.get(word.removeprefix("finish_reason_"), Finish.UNKNOWN)


def speaks_of_calls(reason: str) -> bool:
    """Return whether a finish reason mentions tool calls or functions."""
    return any(word in reason.lower() for word in ("tool", "function"))


def finish_reason(finish: Finish | None) -> FinishReason:
    """Return the finish reason for the loop. `None` means a reply without a finish reason."""
    match finish:
        case Finish.LENGTH:
            return FinishReason.LENGTH
        case Finish.FILTER:
            return FinishReason.CONTENT_FILTER
        case Finish.WHOLE | Finish.UNKNOWN | Finish.BROKEN | None:
            return FinishReason.DONE
        case _:
            assert_never(finish)


_FINE_CODES = (0, 200, "", "0", "200", "ok", "success")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
"""The fields of a message in which servers put reasoning."""
_MANY_IDS = 1000
"""Number of distinct chunk IDs after which no more are recorded: the server gives every chunk its own ID."""


class ChatReply:
    """Assembly of one reply from its deltas. Implements the Assembly protocol."""

    def __init__(self, secret: str = "", *, bounds: ReplyBounds | None = None, echo: Sequence[str] = ()) -> None:
        """`secret` is the API key, which is masked in every error text; `bounds` limits the size of the reply.

        `echo` names the fields of the message to send back in later requests.
        """
        self.usage = Usage(unreported=1)
        self.chosen = False
        """Whether any choice arrived."""
        self._secret = secret
        self._bounds = bounds or ReplyBounds()
        self._text = ReplyText()
        self._calls = ChatCalls(self._bounds)
        self._echo = Echo(echo)
        self._ids = _ChunkIds()
        self._end: Finish | None = None
        self._reason = ""
        """The finish reason as an excerpt that is safe to display."""
        self._reopened = False
        """Whether a piece of a call arrived after the finish reason."""
        self._document = False
        self._has_other_choices = False
        """Whether a choice other than the first arrived, although only one was requested."""
        self._reasoned = False
        """Whether any reasoning arrived."""
        self._old_style = False
        """Whether a call arrived in the old form, `function_call`."""
        self._torn = False
        """Whether the body ended within an event."""
        self._contradicted = False
        """Whether a whole message after the deltas had other calls than the deltas."""

    @property
    def finished(self) -> bool:
        """Whether a finish reason arrived, and no piece of a call after it."""
        return self._end is not None and not self._reopened

    @property
    def broken_off(self) -> str:
        """The finish reason of a reply that broke off. Empty otherwise."""
        return self._reason if self._end is Finish.BROKEN else ""

    @property
    def text(self) -> str:
        """The text so far."""
        return str(self._text)

    @property
    def call_count(self) -> int:
        """Number of tool calls that have begun."""
        return self._calls.count

    def add(self, name: str, chunk: dict[str, JsonValue]) -> str:  # noqa: ARG002 - chat completions name no events
        """Add one chunk; return its new text. Raises ModelError if the chunk holds an error."""
        if not chunk.get("choices") and _is_error(chunk):
            raise broken_off(chunk, self._secret)
        return self._take(chunk)

    def add_document(self, value: dict[str, JsonValue]) -> str:
        """Add a whole completion; return its text. Raises ModelError if it holds an error."""
        self._document = True
        return self._take(value)

    def end_text(self) -> str:
        """Return the replacement character if the reply ends with half a surrogate pair, else an empty string."""
        return self._text.end()

    def tear(self) -> None:
        """Record that the body ended within an event."""
        self._torn = True

    def response(self) -> ModelResponse:
        """Return the reply; its calls have the IDs that the server sent. Raises CutReply if the reply is ambiguous."""
        calls = self._calls.tool_calls()
        if doubt := self._doubt(has_calls=bool(calls)):
            raise CutReply(
                f"The reply is ambiguous: {doubt}. None of it was used "
                f"({len(self.text)} characters of text, {len(calls)} tool calls)."
            )
        return ModelResponse(
            text=self.text,
            tool_calls=calls,
            finish_reason=self._finish_reason(has_calls=bool(calls)),
            usage=self.usage,
            echo=self._echo.text(self._calls.extras()),
        )

    def _finish_reason(self, *, has_calls: bool) -> FinishReason:
        """Return the reason why the model stopped. For a reply without text and calls, it names the content instead."""
        reason = finish_reason(self._end)
        if has_calls or reason is not FinishReason.DONE:
            return reason
        if self._old_style:
            return FinishReason.FUNCTION_CALL
        if self.text.strip():
            return reason
        if speaks_of_calls(self._reason):
            return FinishReason.NO_CALLS
        return FinishReason.REASONING if self._reasoned else reason

    def _doubt(self, *, has_calls: bool) -> str:
        """Return the reason to distrust the reply, or an empty string."""
        if self._reopened:
            return "pieces of a call came after the finish reason, and none after those"
        if self._contradicted:
            return "the calls came in pieces and then as a whole, and the two differ"
        if self._ids.are_mixed:
            return "chunks of different ids were mixed"
        if self._has_other_choices and not self.finished:
            return "it has more than one choice, and the first has no finish reason"
        if has_calls and self._end is Finish.UNKNOWN:
            return f"it has tool calls and the unknown finish reason {self._reason!r}"
        if has_calls and self._torn:
            return "it has tool calls, and after the finish reason it ended within an event"
        if has_calls and self._document and self._end is None:
            return "it has tool calls and no finish reason"
        return ""

    def _take(self, chunk: dict[str, JsonValue]) -> str:
        beside = chunk.get("x_groq")
        for usage in (chunk.get("usage"), beside.get("usage") if isinstance(beside, dict) else None):
            if isinstance(usage, dict) and not (reported := _usage(usage)).unreported:
                self.usage = reported
        choice = self._choice(chunk.get("choices"))
        if choice is None:
            return ""
        if choice.get("error"):
            raise broken_off(choice["error"], self._secret)
        delta, message = choice.get("delta"), choice.get("message")
        is_whole = self._document or not isinstance(delta, dict)
        fields = message if is_whole else delta
        fields = fields if isinstance(fields, dict) else None
        self.chosen = self.chosen or not self._document or fields is not None
        self._ids.add(chunk.get("id"), tells=any(value for key, value in (fields or {}).items() if key != "role"))
        text = self._add(fields, is_whole=is_whole) if fields is not None else ""
        self._finish(choice.get("finish_reason"))
        return text

    def _choice(self, choices: JsonValue) -> dict[str, JsonValue] | None:
        """Return the first choice, the only one that was requested."""
        ours = None
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            if choice.get("index") in (None, 0, "0"):
                ours = ours or choice
            else:
                self._has_other_choices = True
        return ours

    def _add(self, fields: dict[str, JsonValue], *, is_whole: bool) -> str:
        """Add a delta or, if `is_whole`, a whole message; return its new text.

        A whole message after deltas repeats them, so only its calls are used, and only if the deltas had none.
        """
        self._reasoned |= any(fields.get(name) for name in _REASONING) or _thinks(fields.get("content"))
        old_style = fields.get("function_call")
        self._old_style |= isinstance(old_style, dict) and any(old_style.values())
        fragments = fields.get("tool_calls")
        if not is_whole or not (self._text or self._calls.count):
            self._echo.add(fields)
            self._reopened |= self._calls.add(fragments, is_whole=is_whole) and self._end is not None
            return self._text.add(_content(fields.get("content")) or _content(fields.get("refusal")))
        again = ChatCalls(self._bounds)
        if again.add(fragments, is_whole=True) and not self._calls.count:
            self._reopened |= self._calls.add(fragments, is_whole=True) and self._end is not None
        call_lists = ([(call.name, call.arguments) for call in calls.tool_calls()] for calls in (self._calls, again))
        self._contradicted |= bool(again.count) and next(call_lists) != next(call_lists)
        return ""

    def _finish(self, reason: JsonValue) -> None:
        """Record a finish reason. Of several, the worst counts."""
        finish = finish_of(reason)
        if finish is None:
            return
        if self._end is None or finish.is_worse_than(self._end):
            self._end, self._reason = finish, excerpt(str(reason).strip(), self._secret)
        self._reopened = False


class _ChunkIds:
    """The IDs of a stream's chunks. Chunks of one message share an ID, but some servers give every chunk its own."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._telling: set[str] = set()
        """Ids of chunks with content."""
        self._came_again = False

    @property
    def are_mixed(self) -> bool:
        """Whether the IDs show that chunks of more than one message arrived."""
        return len(self._telling) > 1 and (self._came_again or len(self._all) < 3)

    def add(self, chunk_id: JsonValue, *, tells: bool) -> None:
        """Add the ID of a chunk; `tells` says whether the chunk has content."""
        if not isinstance(chunk_id, str) or not chunk_id or len(self._all) >= _MANY_IDS:
            return
        self._came_again |= chunk_id in self._all
        self._all.add(chunk_id)
        if tells:
            self._telling.add(chunk_id)


def _is_error(chunk: dict[str, JsonValue]) -> bool:
    """Return whether a chunk without choices is an error in a form other than the API's."""
    codes = [code for name in ("code", "status", "status_code", "error_code") if (code := chunk.get(name)) is not None]
    if any(code not in _FINE_CODES for code in codes) or chunk.get("detail") or chunk.get("errors"):
        return True
    says = any(isinstance(text := chunk.get(name), str) and text for name in ("message", "msg", "error_message"))
    return str(chunk.get("type")).endswith("error") or (says and not codes)


def _usage(usage: dict[str, JsonValue]) -> Usage:
    details = usage.get("prompt_tokens_details")
    # `prompt_cache_hit_tokens` is DeepSeek's name for it.
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    # OpenRouter's name (openrouter.ai/docs/use-cases/usage-accounting); others count no writes.
    written = details.get("cache_write_tokens") if isinstance(details, dict) else None
    inward, outward = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return usage_of(inward, outward, cached, usage.get("total_tokens"), written=written)


def _content(value: JsonValue) -> str:
    """Return the text of a content field: a text, or a list of parts as Mistral sends it."""
    if isinstance(value, list):
        texts = (part.get("text") for part in value if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else ""


def _thinks(content: JsonValue) -> bool:
    """Return whether a content field holds reasoning, which Mistral sends as a separate part."""
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") == "thinking" for part in parts)

"""What a finish reason says of a chat completion, in whosever words it comes; pure."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from harness.actions import JsonValue
from harness.messages import FinishReason


class Finish(Enum):
    """What a finish reason says; the later in this order, the worse."""

    WHOLE = "whole"
    UNKNOWN = "unknown"
    """A word that nobody knows: text before it counts, for it runs nothing; calls do not."""
    FILTER = "filter"
    LENGTH = "length"
    BROKEN = "broken"

    def is_worse_than(self, other: Finish) -> bool:
        """Say whether this holds where both were said."""
        order = list(Finish)
        return order.index(self) > order.index(other)


_NO_REASONS = frozenset(("", "null", "none"))
# Beside the words of the API those of other APIs, which proxies hand through. Anthropic: end_turn, tool_use,
# stop_sequence, max_tokens, refusal, pause_turn, model_context_window_exceeded. Gemini: recitation, safety, spii,
# malformed_function_call. Mistral: model_length. Bedrock: content_filtered, guardrail_intervened. Together: eos. Ollama,
# LM Studio: end. TGI: eos_token. Cohere: complete, tool_call. DeepSeek: insufficient_system_resource. Zhipu: sensitive,
# network_error. OpenRouter ends a reply that its provider dropped with error, vLLM one that was cancelled with abort.
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
    """Return what a `finish_reason` field says; None where it says nothing yet."""
    word = str(reason).strip().lower().replace("-", "_") if reason else ""
    if word in _NO_REASONS:
        return None
    return _FINISHES.get(word.removeprefix("finish_reason_"), Finish.UNKNOWN)


def speaks_of_calls(reason: str) -> bool:
    """Say whether a finish reason is one that a reply with calls has."""
    return any(word in reason.lower() for word in ("tool", "function"))


def finish_reason(finish: Finish | None) -> FinishReason:
    """Return what the loop makes of it; None is the end of a reply without one."""
    match finish:
        case Finish.LENGTH:
            return FinishReason.LENGTH
        case Finish.FILTER:
            return FinishReason.CONTENT_FILTER
        case Finish.WHOLE | Finish.UNKNOWN | Finish.BROKEN | None:
            return FinishReason.DONE
        case _:
            assert_never(finish)

"""Figures about a model: its limits, its prices, and whether it takes pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.model import Prices
from harness.record import Record, field_names

LONGEST_NAME = 200
"""Maximum length of a model's name."""
MOST_TOKENS = 1_000_000_000
MOST_DOLLARS = 1_000_000.0
"""Per million tokens."""
_MILLION = 1_000_000

# Where servers tell it, each in words of its own; the first that stands in a row counts.
# openrouter.ai/docs/models, platform.claude.com/docs/en/api/models/list, console.groq.com/docs/api-reference#models-list,
# and vLLM's ModelCard (docs.vllm.ai, openai_compatible_server). llama-server has it as `n_ctx` in `meta` (README of its server,
# ggml-org/llama.cpp); `n_ctx_train` there is the model's, of which the server may give less.
_CONTEXT = ("context_length", "max_input_tokens", "context_window", "max_model_len")
_MAX_OUTPUT = ("max_tokens", "max_completion_tokens")
_PER_TOKEN = {
    "input": "prompt",
    "cached_input": "input_cache_read",
    "cache_write": "input_cache_write",
    "output": "completion",
}
"""OpenRouter's prices, in dollars per token, as text."""


class ModelFacts(Record):
    """Statements about a model. INVARIANT: a figure that nobody stated is `None`; none is a guess."""

    context: int | None = None
    """Maximum number of input tokens."""
    max_output: int | None = None
    """Maximum number of tokens of a reply."""
    input: float | None = None
    """This and the next three in dollars per million tokens."""
    cached_input: float | None = None
    cache_write: float | None = None
    output: float | None = None
    pictures: bool | None = None

    @property
    def prices(self) -> Prices | None:
        """Prices of a reply; `None` if that of input or output is unknown."""
        if self.input is None or self.output is None:
            return None
        return Prices(**{name: getattr(self, name) for name in field_names(Prices)})


def facts_in(row: Mapping[str, object]) -> ModelFacts:
    """Parse one model of a server's list. Total: fields that are not such figures are left out."""
    top, pricing = _table(row.get("top_provider")), _table(row.get("pricing"))
    return ModelFacts(
        context=_tokens(row, _CONTEXT) or _tokens(_table(row.get("meta")), ("n_ctx",)),
        max_output=_tokens(row, _MAX_OUTPUT) or _tokens(top, _MAX_OUTPUT),
        pictures=_pictures(row),
        **{name: _price(pricing.get(theirs)) for name, theirs in _PER_TOKEN.items()},
    )


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _tokens(row: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    values = (row.get(name) for name in names)
    return next((n for n in values if isinstance(n, int) and not isinstance(n, bool) and 0 < n <= MOST_TOKENS), None)


def _price(value: object) -> float | None:
    """Return dollars per million out of dollars per token; only text, as OpenRouter has it: other units are numbers."""
    if not isinstance(value, str) or len(value) > 30 or not value.isascii():
        return None
    try:
        dollars = round(float(value) * _MILLION, 6)
    except ValueError:
        return None
    # OpenRouter says -1 where the price is another from call to call.
    return dollars if math.isfinite(dollars) and 0 <= dollars <= MOST_DOLLARS else None


def _pictures(row: Mapping[str, object]) -> bool | None:
    kinds = _table(row.get("architecture")).get("input_modalities")
    if isinstance(kinds, list):
        return "image" in kinds
    is_supported = _table(_table(row.get("capabilities")).get("image_input")).get("supported")
    return is_supported if isinstance(is_supported, bool) else None

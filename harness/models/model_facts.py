"""Facts about a model: its limits, its prices, and whether it accepts pictures."""

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

# Field names of several servers; the first one that a row has is used. Sources:
# openrouter.ai/docs/models, platform.claude.com/docs/en/api/models/list, console.groq.com/docs/api-reference#models-list,
# and vLLM's ModelCard (docs.vllm.ai, openai_compatible_server). llama-server has it as `n_ctx` in `meta` (README of its server,
# ggml-org/llama.cpp). Its `n_ctx_train` is the limit of the model; the server may be configured with less.
_CONTEXT = ("context_length", "max_input_tokens", "context_window", "max_model_len")
_MAX_OUTPUT = ("max_tokens", "max_completion_tokens")
_PER_TOKEN = {
    "input": "prompt",
    "cached_input": "input_cache_read",
    "cache_write": "input_cache_write",
    "output": "completion",
}
"""OpenRouter's price fields, by our names. They hold dollars per token, as text."""


class ModelFacts(Record):
    """Facts about a model. INVARIANT: a fact that the source does not state is `None`, never a guess."""

    context: int | None = None
    """Maximum number of input tokens."""
    max_output: int | None = None
    """Maximum number of tokens of a reply."""
    input: float | None = None
    """Price of input; this and the next three prices are in dollars per million tokens."""
    cached_input: float | None = None
    cache_write: float | None = None
    output: float | None = None
    pictures: bool | None = None

    @property
    def prices(self) -> Prices | None:
        """Prices of a reply; `None` if the price of input or output is unknown."""
        if self.input is None or self.output is None:
            return None
        return Prices(**{name: getattr(self, name) for name in field_names(Prices)})


def facts_in(row: Mapping[str, object]) -> ModelFacts:
    """Parse one row of a server's model list. Never raises: invalid fields are left out."""
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
    """Convert dollars per token to dollars per million tokens.

    Only text is accepted, as OpenRouter sends it: servers that send numbers use other units.
    """
    if not isinstance(value, str) or len(value) > 30 or not value.isascii():
        return None
    try:
        dollars = round(float(value) * _MILLION, 6)
    except ValueError:
        return None
    # OpenRouter sends -1 if the price varies from request to request.
    return dollars if math.isfinite(dollars) and 0 <= dollars <= MOST_DOLLARS else None


def _pictures(row: Mapping[str, object]) -> bool | None:
    kinds = _table(row.get("architecture")).get("input_modalities")
    if isinstance(kinds, list):
        return "image" in kinds
    is_supported = _table(_table(row.get("capabilities")).get("image_input")).get("supported")
    return is_supported if isinstance(is_supported, bool) else None

"""Pictures on the wire: which servers are known to take them, and what a picture becomes where its bytes are gone.

An adapter asks `Endpoint.pictures` for the bytes by digest; None there means that the model gets texts alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from harness.messages import Picture

PictureSource: TypeAlias = Callable[[str], bytes | None]
"""Returns the bytes of a picture by its SHA-256; None where they are gone."""

_SEEING_PRESETS = frozenset(("openai", "azure", "anthropic", "anthropic-messages", "gemini", "openrouter"))
"""Their pages offer pictures in messages of the same API. Of a model there that takes none the provider says so itself."""
_BLIND_MODELS = re.compile(
    r"(^|/)(o1-mini|o1-preview|o3-mini|gpt-3\.5|gpt-4-0|gpt-4$|deepseek|codex-mini)", re.IGNORECASE
)
"""Of these their makers say that they take texts alone (platform.openai.com/docs/models)."""


def takes_pictures(preset: str, model: str) -> bool:
    """Say whether a model behind the preset of this name (empty: an address that nobody knows) is known to take pictures."""
    return preset in _SEEING_PRESETS and not _BLIND_MODELS.search(model)


def encoded_picture(picture: Picture, source: PictureSource | None) -> str:
    """Return the bytes of a picture as Base64 text, or nothing where they are gone or the model takes none."""
    data = source(picture.sha256) if source is not None else None
    if data is None:
        return ""
    import base64

    return base64.b64encode(data).decode()


def data_address(picture: Picture, source: PictureSource | None) -> str:
    """Return the same as a `data:` address, or nothing."""
    text = encoded_picture(picture, source)
    return f"data:{picture.media_type};base64,{text}" if text else ""


def in_place_of(picture: Picture, source: PictureSource | None) -> str:
    """Return what the model reads in the place of a picture that cannot be sent."""
    why = "this model is not sent pictures" if source is None else "its file beside the log is gone"
    return f"[a picture stood here: {picture.words}; {why}]"

"""What a server's refusals teach about it: a request is sent again at once, in the way that the server takes; pure.

A lesson changes one thing, and only where the refusal names it. INVARIANT: no lesson is learned twice, so that asking
again ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from harness.models.endpoint import Quirks
from harness.models.failures import Refusal
from harness.record import replace

Lesson: TypeAlias = Callable[[Quirks, Refusal], Quirks]
"""Returns the quirks with what a refusal teaches, the very same ones if it teaches nothing."""

_ABOUT_THE_REQUEST = frozenset((0, 400, 422, 500, 501))
"""Statuses of such refusals, 0 inside of an answer; llama-server says 500."""

# llama-server: "Cannot use tools with stream"; others say that streaming is not supported, with or without tools.
_NO_STREAM = re.compile(
    r"tools? with stream|stream\w*[^.]{0,40}(not|n't) (supported|support|allowed|available)|"
    r"(not|n't) support[^.]{0,40}stream|stream\w*[^.]{0,40}(unsupported|tool|function)"
)
# OpenAI says "Encrypted content is not supported with this model" (pydantic/pydantic-ai#2865), others name the field.
_NO_ENCRYPTED_REASONING = re.compile(r"\binclude\b|encrypted.?content")


def learned(quirks: Quirks, refusal: Refusal, lessons: tuple[Lesson, ...]) -> Quirks:
    """Return `quirks` with the first of the lessons that the refusal teaches."""
    return next((taught for lesson in lessons if (taught := lesson(quirks, refusal)) != quirks), quirks)


def no_usage(quirks: Quirks, refusal: Refusal) -> Quirks:
    """Learn that a stream may not be asked for its usage."""
    named = "stream_options" in refusal.words or "include_usage" in refusal.words
    asked = quirks.stream and quirks.usage and refusal.status in _ABOUT_THE_REQUEST
    return replace(quirks, usage=False) if named and asked else quirks


def less_echo(quirks: Quirks, refusal: Refusal) -> Quirks:
    """Learn that fields of a reply's message are not wanted back."""
    if refusal.status not in _ABOUT_THE_REQUEST - {500}:
        return quirks
    return replace(quirks, echo=tuple(name for name in quirks.echo if name not in refusal.words))


def no_streams(quirks: Quirks, refusal: Refusal) -> Quirks:
    """Learn that replies must be asked for as a whole."""
    asked = quirks.stream and refusal.status in _ABOUT_THE_REQUEST
    return replace(quirks, stream=False) if asked and _NO_STREAM.search(refusal.words) else quirks


def no_encrypted_reasoning(quirks: Quirks, refusal: Refusal) -> Quirks:
    """Learn that reasoning may not be asked for in encrypted form."""
    asked = quirks.encrypted_reasoning and refusal.status in {0, 400, 404, 422}
    return (
        replace(quirks, encrypted_reasoning=False)
        if asked and _NO_ENCRYPTED_REASONING.search(refusal.words)
        else quirks
    )

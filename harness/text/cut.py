"""A long text without its middle: what it begins with says what it is, and what it ends with how it went."""

from __future__ import annotations


def without_middle(text: str, max_characters: int) -> str:
    """Return `text`, or its two ends and the size of the gap if it has more than `max_characters` characters."""
    if len(text) <= max_characters:
        return text
    side = max_characters // 2
    return f"{text[:side]}\n[... {len(text) - 2 * side} characters left out ...]\n{text[-side:]}"

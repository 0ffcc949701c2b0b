"""A long text without its middle: what it begins with says what it is, and what it ends with how it went."""

from __future__ import annotations


def without_middle(text: str, most: int) -> str:
    """Return `text`, or of one with more than `most` characters the two ends, and between them how much is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

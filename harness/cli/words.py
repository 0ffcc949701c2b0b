"""Words: numbers with their nouns, as lines for people have them; pure."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return `1 turn`, `2,000 turns`: an English noun that takes an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

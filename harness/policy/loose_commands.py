"""Loose commands: those of text that could not be parsed, split at spaces and separators. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Opaque
from harness.policy.granted_programs import LEAVES
from harness.programs.catalog import only_reads
from harness.programs.runners import WRAPPERS, name_of

UNREAD = "$"
"""A word that is not known before it runs."""
_SHELL_WORDS = frozenset(
    "source . cd pushd popd set shopt export unset local declare typeset readonly alias true false : echo printf [ [[ test "
    "wait sleep trap shift return exit if then else elif fi for in do done while until case esac select "
    "function { } ! time".split()
)
"""Words of the shell that start no other program."""
_PLAIN_WRAPPERS = WRAPPERS - LEAVES - {"ssh", "bunx", "npx", "pnpx", "uvx"}


def programs_in(text: Opaque) -> list[tuple[str, ...]]:
    """Return the commands of text that could not be parsed, loosely split, without those that only read."""
    return [words for words in map(_after_shell_words, text.commands) if words and not only_reads(words)]


def expanded_programs_in(text: Opaque) -> list[tuple[str, ...]]:
    """Return the same commands, with `$` for each word that an expansion gives, and `$` after the last word.

    An expansion may give any number of words.
    """
    if "$" not in text.text and "`" not in text.text:
        return programs_in(text)
    return [
        (*(UNREAD if f"${word}" in text.text or f"${{{word}" in text.text else word for word in words), UNREAD)
        for words in programs_in(text)
    ]


def only_prepares(text: Opaque) -> bool:
    """Return whether a text begins with a builtin that changes the folder or the variables of later commands."""
    return text.text.split(maxsplit=1)[:1] in (["cd"], ["source"], ["."], ["export"], ["pushd"], ["popd"])


def _after_shell_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return loosely split words without the words of the shell, wrappers and their options at the beginning.

    Empty if no program follows.
    """
    if not words or words[0] in ("source", ".", "cd", "echo", "printf"):
        return ()
    position = 0
    while position < len(words) and (
        words[position] in _SHELL_WORDS
        or name_of(words[position]) in _PLAIN_WRAPPERS
        or (position > 0 and (words[position].startswith("-") or words[position].isdigit()))
        or "=" in words[position]
    ):
        position += 1
    return tuple(words[position:])

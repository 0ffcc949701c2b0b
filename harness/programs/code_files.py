"""Files whose code is run, and the words that it is given: which of them may be files too; pure, and reads no code."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access
from harness.programs.model import Found, Parsed, PathUse, Unknown, Use, gap
from harness.record import replace


def argument_paths(words: Sequence[str]) -> tuple[PathUse, ...] | str:
    """Return the words given to code that may be files, with which it may do anything; or why that is not known.

    A word of the shape `name=value` or `--name=value` may be one by its value too; other options are none.
    """
    paths: list[PathUse] = []
    for word in words:
        if isinstance(word, Unknown):
            return f"the value of {word} is not known"
        if isinstance(word, Found):
            paths += [PathUse(word=start, access=Access.EITHER, tree=True) for start in word.starts]
            continue
        names = [] if word.startswith("-") else [word]
        if "=" in word:
            names.append(word.partition("=")[2])
        paths += [PathUse(word=name, access=Access.EITHER) for name in names if name]
    return tuple(paths)


def with_arguments(parsed: Parsed, use: Use) -> Use:
    """Refine for `SCRIPT TEXT...`: what follows the script may be files; without a script, the input is run: a gap."""
    if not parsed.operands or parsed.operands[0] == "-":
        return gap("it runs what its input says")
    paths = argument_paths(parsed.operands[1:])
    return gap(paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))

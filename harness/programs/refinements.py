"""What the models of programs that run programs share: that there is a command, text for sh, files given to code; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.model import Found, Parsed, PathUse, Program, Refine, Style, Unknown, Use, gap
from harness.record import replace

_OTHERWISE = (
    # Sequences that dash, ash and others read otherwise than bash, or not at all: each of them in the strict subset.
    r"\$'|\[\[|\(\(|[<>]\(|\|&|&>|<<<|>&[^0-9-]|[0-9]{2}[<>]|[}][<>]|\[\^"
    # Keywords that they do not have; and builtins that make commands of text in which the above may come up again.
    r"|\b(?:time|function|select|coproc|eval|alias|trap)\b"
)
_NO_QUOTES = str.maketrans("", "", "'\"\\\n")


def read_alike(text: str) -> bool:
    """Say whether dash and its kin read `text`, if bash reads it at all, as bash does (POSIX.1-2024, XCU 2; dash(1)).

    Asked for `sh`, which is dash, ash, ksh or bash, whatever the system has, and for programs that hand text to `sh -c`.
    A sequence counts also where it is only made by quotes or line continuations being taken away.
    """
    bare = text.translate(_NO_QUOTES)
    return text.isascii() and re.search(_OTHERWISE, text) is None and re.search(_OTHERWISE, bare) is None


def with_text_for_sh(parsed: Parsed, use: Use) -> Use:
    """Refine: the texts that a program hands to `sh -c` must be read by that as bash reads them, and there must be one."""
    if not use.scripts:
        return gap(f"{parsed.program} without a command")
    return use if all(read_alike(text) for text in use.scripts) else gap("text that sh may read otherwise than bash")


def with_command(parsed: Parsed, use: Use) -> Use:
    """Refine: a wrapper without a command is a gap; many start a shell then."""
    return use if use.commands else gap(f"{parsed.program} without a command")


def wraps(
    options: str = "",
    operands: str = "COMMAND...",
    *,
    refine: Refine = with_command,
    act: Act = Act.WRAPS,
    looks: tuple[str, ...] = (),
    covered: tuple[str, ...] = (),
    not_covered: tuple[str, ...] = (),
) -> Program:
    """Return the model of a program whose options stand in front of the command that it runs."""
    return Program(
        act=act,
        style=Style.POSIX,
        options=options,
        operands=operands,
        refine=refine,
        looks=looks,
        covered=covered,
        not_covered=not_covered,
    )


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

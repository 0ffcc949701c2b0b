"""What the models of wrappers share: that there is a command, and that sh reads a text as bash does; pure."""

from __future__ import annotations

import re

from harness.actions import Act
from harness.programs.model import Parsed, Program, Refine, Style, Use, gap

_OTHERWISE = (
    # Sequences that dash, ash and others read otherwise than bash, or not at all: each of them in the strict subset.
    r"\$'|\[\[|\(\(|[<>]\(|\|&|&>|<<<|>&[^0-9-]|[0-9]{2}[<>]|[}][<>]|\[\^|[<>][|&]?[ \t]*[^\s;&|()<>]*[*?\[]"
    r"|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}"
    # Keywords that they do not have; and builtins that make commands of text in which the above may come up again.
    r"|\b(?:time|function|select|coproc|eval|alias|trap|pushd|popd)\b"
    # Older ones split the words of export: `export A=$(echo b PATH=.)`.
    r"|\bexport\b[^;\n]*[$`]"
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
    options: str = "", operands: str = "COMMAND...", *, refine: Refine = with_command, act: Act = Act.WRAPS
) -> Program:
    """Return the model of a program whose options stand in front of the command that it runs."""
    return Program(act=act, style=Style.POSIX, options=options, operands=operands, refine=refine)

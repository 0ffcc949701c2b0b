"""What the tables of programs written with Go's pflag have in common (docker, kubectl, helm); pure."""

from __future__ import annotations

from harness.actions import Act
from harness.programs.model import Parsed, Program, Refine, Style, Use, gap


def plain_values(parsed: Parsed, use: Use) -> Use:
    """Refine for programs written with Go's pflag: it drops the `=` of `-o=x`, and no file is the input."""
    if any(given.value is not None and given.value[:1] == "=" for given in parsed.options):
        return gap("an option of one letter with = behind it")
    if "-" in parsed.operands or any(given.value == "-" for given in parsed.options):
        return gap("a file that is the input")
    return use


def looks(options: str = "", operands: str = "TEXT...", *, network: bool = False) -> Program:
    """Return the model of a subcommand that lists or shows."""
    return Program(options=options, operands=operands, network=network, refine=plain_values)


def changes(
    options: str = "",
    operands: str = "TEXT...",
    *,
    act: Act = Act.CHANGES,
    style: Style = Style.GNU,
    refine: Refine = plain_values,
) -> Program:
    """Return the model of a subcommand that changes what is not among the files that it names."""
    return Program(act=act, style=style, options=options, operands=operands, network=True, refine=refine)

"""The man page of `harness`, written in troff from the table of commands. The build adds it to the wheel."""

from __future__ import annotations

from argparse import Action
from collections.abc import Iterator

from harness import __version__
from harness.app.command_line import command, parser_for
from harness.app.common_flags import EXIT_CODES
from harness.shipped import COMMANDS


def manual() -> str:
    """Return the man page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH HARNESS 1 "" "harness {__version__}" "User Commands"'
    yield ".SH NAME"
    yield "harness \\- run a language model whose every call is decided before it runs"
    yield ".SH SYNOPSIS"
    yield ".B harness\n[OPTION ...] [PROMPT]\n.br\n.B harness\nCOMMAND ..."
    yield ".SH DESCRIPTION"
    yield _text(command("").help)
    yield ".SH OPTIONS"
    yield from _arguments("")
    yield ".SH COMMANDS"
    for name in filter(None, COMMANDS):
        yield f'.SS "harness {name}"'
        yield _text(command(name).help)
        yield from _arguments(name)
    yield ".SH EXIT STATUS"
    for code in EXIT_CODES.partition(": ")[2].split(", "):
        number, _, meaning = code.partition(" ")
        yield f".TP\n.B {number}\n{_text(meaning)}"
    yield ".SH SEE ALSO"
    yield _text("`harness help` lists topics: policies, walls, modes and more.")


def _arguments(name: str) -> Iterator[str]:
    parser = parser_for(name)
    for argument in parser.arguments():
        yield f".TP\n{_spelling(argument)}\n{_text((argument.help or '').replace('%%', '%'))}"
    if name and parser.epilog:
        yield f".PP\n{_text(parser.epilog)}"


def _spelling(argument: Action) -> str:
    """Return the names of an argument and its value, as the line of a tagged paragraph."""
    value = argument.metavar or ("{" + ",".join(argument.choices) + "}" if argument.choices else argument.dest.upper())
    if not argument.option_strings:
        return f".I {_text(str(value))}"
    names = ", ".join(argument.option_strings)
    return f'.BI "{_text(names)} " "{_text(str(value))}"' if argument.nargs != 0 else f'.B "{_text(names)}"'


def _text(text: str) -> str:
    """Return one line of text as troff that prints it unchanged."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped

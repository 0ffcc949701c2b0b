"""The command line: finding the command, building its parser, and the help pages.

Only the module of the command itself is imported (harness/shipped.py).
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import NoReturn

from harness.errors import UsageError, closest
from harness.plugin import CliCommand
from harness.session.shipped_plugins import plugin_in
from harness.shipped import COMMANDS, DEFAULT_ACTIONS, HELP, TOPICS
from harness.text.visible import visible, visible_line

MOST_WIDTH = 110
"""Maximum width of help, in columns. Also the width of help that is written to a file."""
_NEAR = 0.75
"""Minimum similarity (difflib) of a misspelt command: `doctro` and `polcy` reach it; `ran` and `doc` do not."""
_WISHES = {"version": "--version"}


def named_command(words: Sequence[str], plugin_commands: Sequence[CliCommand] = ()) -> tuple[CliCommand, list[str]]:
    """Return the command of a command line (without the program name), and the words after it.

    `plugin_commands` are commands of external plugins. Words that do not begin with a command are for the prompt.
    Raises UsageError for a misspelt command, and for a command whose action is missing or unknown.
    """
    first = words[0] if words else ""
    if first and first in (*COMMANDS, *(cli_command.name for cli_command in plugin_commands)):
        return command(first, plugin_commands), list(words[1:])
    known_actions = actions(first, plugin_commands)
    if not known_actions:
        _refuse_misspelt(first, plugin_commands)
        return command(""), list(words)
    rest = list(words[1:])
    if first in DEFAULT_ACTIONS and (not rest or rest[0].startswith("-")):
        rest.insert(0, DEFAULT_ACTIONS[first])
    if not rest or rest[0] not in known_actions:
        near = closest(rest[0], known_actions) if rest else ""
        advice = f"; did you mean {near}?" if near else ""
        raise UsageError(f"harness {first} needs an action: {', '.join(known_actions)}{advice}")
    return command(f"{first} {rest[0]}", plugin_commands), rest[1:]


def command(name: str, plugin_commands: Sequence[CliCommand] = ()) -> CliCommand:
    """Return the command with this full name.

    Raises StopIteration if it is neither in COMMANDS nor one of `plugin_commands`.
    """
    candidates = plugin_in(COMMANDS[name]).commands if name in COMMANDS else plugin_commands
    return next(candidate for candidate in candidates if candidate.name == name)


def actions(first: str, plugin_commands: Sequence[CliCommand] = ()) -> tuple[str, ...]:
    """Return the actions that may follow a first word. Empty if the word takes none or is not a command."""
    names = (*COMMANDS, *(cli_command.name for cli_command in plugin_commands))
    return tuple(name.partition(" ")[2] for name in names if name.startswith(f"{first} "))


def first_words(plugin_commands: Sequence[CliCommand] = ()) -> tuple[str, ...]:
    """Return the first words of all commands."""
    names = (*COMMANDS, *(cli_command.name for cli_command in plugin_commands))
    return tuple(dict.fromkeys(name.partition(" ")[0] for name in names if name))


def _refuse_misspelt(first: str, plugin_commands: Sequence[CliCommand]) -> None:
    """Raise UsageError if `first` is similar to a command. As a prompt it would be sent at once, and cost money."""
    if not first.isalpha():  # flags, a quoted prompt of several words, or an empty word
        return
    if near := closest(first, (*first_words(plugin_commands), "help", *_WISHES), _NEAR):
        word = _WISHES.get(near, near)
        raise UsageError(f"unknown command: {first}; did you mean `harness {word}`? `harness -- {first}` sends it")


def parser_for(name: str) -> ArgumentParser:
    """Return the parser of a shipped command, by its full name."""
    return parser_of(command(name))


def parser_of(cli_command: CliCommand) -> ArgumentParser:
    """Return the parser of a command. The attribute `action` of its result is the second word of the command."""
    parser = ArgumentParser(
        f"harness {cli_command.name}".rstrip(), description=cli_command.help, formatter_class=_Formatter
    )
    parser.set_defaults(action=cli_command.name.partition(" ")[2])
    cli_command.add_flags(parser)
    return parser


def command_list(plugin_commands: Sequence[CliCommand] = ()) -> str:
    """Return the table of all first words, by heading. The commands of external plugins have their own heading."""
    lines = []
    theirs = {
        word: _help_line(word, plugin_commands) for word in first_words(plugin_commands) if word not in first_words()
    }
    for heading, commands in {**HELP, "plugins": theirs}.items():
        label = heading
        for word, text in commands.items():
            lines.append(f"  {label:13} {word:10} {text}")
            label = ""
    topics = " ".join(topic for topic in TOPICS if topic != "commands")  # those of the prompt; `/help` lists them there
    return "\n".join([*lines, f"  {'topics':13} {topics}"])


def _help_line(word: str, plugin_commands: Sequence[CliCommand]) -> str:
    """Return the description of a first word of external plugins: the help of its only command, or its actions."""
    return visible_line(", ".join(actions(word, plugin_commands)) or command(word, plugin_commands).help, 200)


def short_help(plugin_commands: Sequence[CliCommand] = ()) -> str:
    """Return one line about each command, on one screen."""
    parser = parser_for("")
    text = f"{command('').help}\n{command_list(plugin_commands)}"
    fitted_text = "\n".join(fitted(line, help_width()) for line in text.splitlines())
    return f"{parser.format_usage()}{fitted_text}\n"


def actions_help(first: str, plugin_commands: Sequence[CliCommand] = ()) -> str:
    """Return the actions of a command, one or two lines each."""
    known_actions = actions(first, plugin_commands)
    width = max(len(action) for action in known_actions) + 2
    lines = [
        fitted(
            f"  {action:{width}}{visible_line(command(f'{first} {action}', plugin_commands).help, 500)}", help_width()
        )
        for action in known_actions
    ]
    return "\n".join([f"usage: harness {first} ACTION [--help]", "", *lines, ""])


def fitted(line: str, width: int) -> str:
    """Break a line into lines of at most `width` characters.

    Continuation lines align with the last column of a table.
    """
    if len(line) <= width:
        return line
    import textwrap

    start = max((gap.end() for gap in re.finditer("  +", line)), default=0)
    return textwrap.fill(line, width, subsequent_indent=" " * min(start, width // 2), break_on_hyphens=False)


def help_width() -> int:
    """Return the width of help: the width of the terminal, even if output is piped to a pager, up to MOST_WIDTH."""
    for descriptor in (1, 2):
        try:
            return min(os.get_terminal_size(descriptor).columns or MOST_WIDTH, MOST_WIDTH)
        except OSError:
            continue
    return MOST_WIDTH


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that keeps lines of a description that fit."""

    def __init__(self, prog: str) -> None:
        # The width is explicit. Otherwise argparse imports shutil (2 ms) to find the terminal's width, at every flag.
        super().__init__(prog, width=help_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(fitted(f"{indent}{line}", width) for line in text.splitlines())

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Break a text into lines, but never at the hyphens of a flag."""
        return fitted(" ".join(text.split()), width).splitlines()


class ArgumentParser(argparse.ArgumentParser):
    """A parser that escapes unsafe characters of arguments in its errors."""

    def arguments(self) -> list[argparse.Action]:
        """Return the described arguments, in the order of the help. `--help` itself is not among them."""
        return [action for action in self._actions if action.help != argparse.SUPPRESS and action.dest != "help"]

    def error(self, message: str) -> NoReturn:
        """Write the error and a reference to the help, and exit with code 2. Raises SystemExit."""
        message_text = visible(message).replace("\n", "\n  ")
        if is_unquoted(message) and any(action.dest == "prompt" for action in self._actions):
            message_text += " (put a prompt of several words in quotes)"
        self.exit(2, f"{self.prog}: error: {message_text}\n`{self.prog} --help` lists the arguments\n")


def is_unquoted(message: str) -> bool:
    """Return whether an argparse error is about surplus words without any flag among them."""
    words = message.removeprefix("unrecognized arguments: ")
    return words != message and not any(word.startswith("-") for word in words.split())

"""Interpretation of a typed line: text for the model, a slash command, or a shell command.

A line is a slash command only if its first word is one or looks like one. `/etc/hosts says ...` is text for the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TypeAlias

import harness.app.commands
from harness.errors import UsageError, nearest
from harness.plugin import HelpGroup, Plugin, SlashCommand
from harness.record import Record
from harness.text.visible import visible_line


@cache
def slash_commands() -> tuple[SlashCommand, ...]:
    """Return all shipped slash commands in the order of /help.

    They are in tuples `COMMANDS` in the modules of this package.
    """
    import pkgutil

    names = [module.name for module in pkgutil.iter_modules(harness.app.commands.__path__)]
    modules = [import_module(f"{harness.app.commands.__name__}.{name}") for name in names]
    commands = [command for module in modules for command in getattr(module, "COMMANDS", ())]
    groups = list(HelpGroup)
    return tuple(sorted(commands, key=lambda command: (groups.index(command.group), command.name)))


def added_commands(plugins: Sequence[Plugin]) -> tuple[SlashCommand, ...]:
    """Return the slash commands of plugins. Raises UsageError for one with the name of a command that ships."""
    added = tuple(command for plugin in plugins for command in plugin.slash_commands)
    if added:
        shipped = {name for command in slash_commands() for name in command.names}
        for name in (name for command in added for name in command.names):
            if name in shipped:
                raise UsageError(f"plugins: slash command {visible_line(name)}: it ships already")
    return added


class Ask(Record):
    """A line for the model."""

    text: str
    by_command: bool = False
    """Whether the text comes from a command of the user or the team, and was not typed."""


class Do(Record):
    """A line that is a slash command."""

    command: SlashCommand
    rest: str
    """The text after the name."""


class RunAsPerson(Record):
    """A line that runs a shell command as the user: `!command`. With `!!command`, the model is not notified."""

    text: str
    model_hears: bool
    """Whether the user's next message tells the model about the command."""


class Wrong(Record):
    """An invalid line. It is not sent or run."""

    problem: str


Meaning: TypeAlias = Ask | Do | RunAsPerson | Wrong


_BARE = {"?": "/help keys", "exit": "/quit", "quit": "/quit"}
"""Lines that are commands without a slash."""
NOTHING_LEFT_OUT: Mapping[str, str] = {}


def why_no_command(word: str, known_names: Sequence[str], left_out: Mapping[str, str]) -> str:
    """Return the error message for a word with a slash that is not in `known_names`.

    `left_out` has the reasons why some commands are unavailable, by their names without the slash.
    """
    display_word = visible_line(word, 100)
    if reason := left_out.get(word[1:].lower()):
        return f"there is no command {display_word}: {reason}"
    return f"there is no command {display_word}{nearest(word.lower(), known_names) if known_names else ''}"


def meaning_of(
    line: str, own_commands: Sequence[SlashCommand] = (), left_out: Mapping[str, str] = NOTHING_LEFT_OUT
) -> Meaning:
    """Return the meaning of a line, which must not be empty or have outer blanks. Pure.

    `own_commands` are additional commands. `left_out` has the reasons why some commands are unavailable, by name. `?`
    alone shows the keys; `exit` and `quit` alone exit. `/` and a known word is a command. An unknown word is an error
    that suggests the nearest name. It is text for the model if it has another `/`, as a path does. `/` alone is an
    error.
    """
    if line.startswith("!"):
        text = line.removeprefix("!").removeprefix("!").strip()
        if not text:
            return Wrong(problem="! and a command runs it as you, !! tells nobody")
        return RunAsPerson(text=text, model_hears=not line.startswith("!!"))
    line = _BARE.get(line.lower(), line)
    if not line.startswith("/"):
        return Ask(text=line)
    if not line.strip("/"):
        return Wrong(problem="/ begins a command: type on, or Tab, and choose; /help says what each does")
    word = line.split(maxsplit=1)[0]
    rest = line[len(word) :].strip()
    name = word.lower()
    match = next((command for command in (*slash_commands(), *own_commands) if name in command.names), None)
    if match is None:
        if "/" in word[1:]:
            return Ask(text=line)
        known_names = [name for command in (*slash_commands(), *own_commands) for name in command.names]
        return Wrong(problem=why_no_command(word, known_names, left_out))
    max_arguments = match.max_arguments if match.arguments else 0
    if max_arguments is not None and len(rest.split()) > max_arguments:
        return Wrong(problem=f"usage: {match.usage}")
    return Do(command=match, rest=rest)

"""What a typed line means: text for the model, a slash command, or a command of the shell.

A line is a slash command only where its first word is one, or looks like one: `/etc/hosts says ...` is text for the model.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TypeAlias

import harness.cli.commands
from harness.cli.commands.slash_command import HelpGroup, SlashCommand
from harness.record import Record


def _found() -> tuple[SlashCommand, ...]:
    """Return the commands of every module of the package, in the order of /help."""
    names = [module.name for module in pkgutil.iter_modules(harness.cli.commands.__path__)]
    modules = [import_module(f"{harness.cli.commands.__name__}.{name}") for name in names if name != "meaning"]
    commands = [command for module in modules for command in getattr(module, "COMMANDS", ())]
    groups = list(HelpGroup)
    return tuple(sorted(commands, key=lambda command: (groups.index(command.group), command.name)))


COMMANDS = _found()


class Ask(Record):
    """A line for the model."""

    text: str


class Do(Record):
    """A line that is a command."""

    command: SlashCommand
    rest: str
    """What follows the name."""


class RunAsPerson(Record):
    """A line that runs a command of the shell as the person: `!command`, or `!!command` of which the model hears nothing."""

    text: str
    told: bool
    """Whether the model is told with the person's next message."""


class Wrong(Record):
    """A line that means none of these, and goes nowhere."""

    problem: str


Meaning: TypeAlias = Ask | Do | RunAsPerson | Wrong


def meaning_of(line: str) -> Meaning:
    """Return what a line (not empty, no blanks around it) means. Pure.

    `/` and a known word is a command. An unknown word is an error with the nearest name, unless it holds a further `/`, as
    a path does: then it is text for the model. Nothing but `/` is a slip of the finger.
    """
    if line.startswith("!"):
        told = not line.startswith("!!")
        text = line.removeprefix("!!" if not told else "!").strip()
        return (
            RunAsPerson(text=text, told=told)
            if text
            else Wrong(problem="! and a command runs it as you, !! tells nobody")
        )
    if not line.startswith("/"):
        return Ask(text=line)
    if not line.strip("/"):
        return Wrong(problem="there is no command of that name; /help shows all")
    word = line.split(maxsplit=1)[0]
    rest = line[len(word) :].strip()
    name = word.lower()
    found = next((command for command in COMMANDS if name == command.name or name in command.aliases), None)
    if found is None:
        if "/" in word[1:]:
            return Ask(text=line)
        from harness.policy.loader import nearest

        return Wrong(problem=f"there is no command {word}{nearest(word.lower(), [one.name for one in COMMANDS])}")
    most = found.most if found.arguments else 0
    if most is not None and len(rest.split()) > most:
        return Wrong(problem=f"usage: {found.usage}")
    return Do(command=found, rest=rest)

"""A command of a team or a user at the prompt: its words, with what follows its name, are said in the person's place."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from harness.cli.commands.conversation import Conversation
from harness.cli.commands.slash_command import HelpGroup, SlashCommand, slash_commands
from harness.cli.words.word_files import OwnCommand
from harness.errors import UsageError
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.cli.config.settings import Settings

_PLACES = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?![0-9]))")


def expanded(body: str, rest: str) -> str:
    """Return `body` with `$ARGUMENTS` replaced by `rest`, and `$1` to `$9` by its words, quoted as a shell's.

    What is put in is not read again. Where the body places none of it, it follows as a paragraph of its own.

    Raises UsageError for quotes that do not end, where a single word is wanted.
    """
    found = list(_PLACES.finditer(body))
    if not found:
        return f"{body}\n\n{rest}" if rest else body
    words: Sequence[str] = ()
    if any(match[1] for match in found):
        try:
            words = shlex.split(rest)
        except ValueError:
            raise UsageError("a quote does not end in what follows the command") from None

    def value(match: re.Match[str]) -> str:
        if not match[1]:
            return rest
        place = int(match[1]) - 1
        return words[place] if place < len(words) else ""

    return _PLACES.sub(value, body)


def said_in_run(prompt: str, commands: Mapping[str, OwnCommand], settings: Settings, *, plans: bool) -> str:
    """Return the words of the command that the prompt of a run calls, `/name arguments`; a prompt that calls none as it is.

    Raises UsageError where the command is meant for another model, or for plan mode, than the run has.
    """
    name, _, rest = prompt.removeprefix("/").partition(" ")
    command = commands.get(name.strip()) if prompt.startswith("/") else None
    if command is None or f"/{command.name}" in _built_in():
        return prompt
    if command.model and command.model not in {settings.profile, settings.model.value}:
        raise UsageError(f"/{command.name} is for another model: give --model {visible_line(command.model, 100)}")
    if command.plans and not plans:
        raise UsageError(f"/{command.name} is for plan mode: give --plan")
    return expanded(command.body, rest.strip())


def slash_of(commands: Mapping[str, OwnCommand]) -> tuple[tuple[SlashCommand, ...], tuple[str, ...]]:
    """Return the commands as the prompt knows them, and what is told of those that have the name of one that ships."""
    known = _built_in()
    slashes = [_slash(one) for one in commands.values() if f"/{one.name}" not in known]
    notes = [
        visible_line(f"{one.path} is left out: /{one.name} is a command of the program", 1_000)
        for one in commands.values()
        if f"/{one.name}" in known
    ]
    return tuple(slashes), tuple(notes)


def _built_in() -> set[str]:
    return {name for command in slash_commands() for name in command.names}


def _slash(command: OwnCommand) -> SlashCommand:
    return SlashCommand(
        name=f"/{command.name}",
        arguments=visible_line(command.arguments, 60) or "[...]",
        summary=visible_line(command.description, 200),
        group=HelpGroup.OWN,
        does=partial(_say, command),
        most=None,
    )


def _say(command: OwnCommand, conversation: Conversation, rest: str) -> None:
    """Say the command's words to the model, by the model and in the mode that it names. Raises UsageError, PolicyError and
    LogError."""
    from harness.cli.commands.model import change_model
    from harness.cli.commands.plan import enter

    text = expanded(command.body, rest)
    now = conversation.parts.settings
    if command.model and command.model not in {now.profile, now.model.value}:
        change_model(conversation, command.model)
        conversation.settings_after = now
    if command.plans and not conversation.plans:
        enter(conversation)
    conversation.prompt = text

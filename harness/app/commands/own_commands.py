"""Commands of a team or a user. The text of a command, with the user's arguments, becomes the next message."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial

from harness.app.commands.conversation import Conversation
from harness.app.commands.model import change_model
from harness.app.commands.plan import enter
from harness.app.commands.slash_command import slash_commands, why_no_command
from harness.errors import UsageError
from harness.plugin import HelpGroup, SlashCommand
from harness.record import Record
from harness.regex import regex
from harness.session.config.settings import Settings
from harness.session.words.word_files import OwnCommand, OwnWords, by_name
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

_PLACES = regex(r"\$(?:ARGUMENTS\b|([1-9])(?![0-9]))")
_OTHERS_MODELS = regex(r"sonnet|opus|haiku|opusplan|best|claude-.*")
"""Names of models in another agent's commands (code.claude.com/docs/en/model-config).

Those with `claude-` are names at one provider.
"""


def expanded(body: str, rest: str) -> str:
    """Return `body` with `$ARGUMENTS` replaced by `rest`, and `$1` to `$9` replaced by the words of `rest`.

    Words may be quoted as in a shell. If a quote is not closed, `rest` is split at blanks. Inserted text is not
    expanded again. If `body` has no placeholder, `rest` is added as a separate paragraph.
    """
    if not _PLACES.search(body):
        return f"{body}\n\n{rest}" if rest else body
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()

    def value(match: re.Match[str]) -> str:
        if not match[1]:
            return rest
        place = int(match[1]) - 1
        return words[place] if place < len(words) else ""

    return _PLACES.sub(value, body)


class SaidInRun(Record):
    """A message from a command that the prompt of a run calls."""

    words: str
    notes: tuple[str, ...] = ()


def called(prompt: str, own_words: OwnWords) -> OwnCommand | None:
    """Return the command that the first word of a prompt calls, or `None`."""
    name = _first_word(prompt).removeprefix("/").lower()
    return None if f"/{name}" in _built_in() else by_name(own_words.commands).get(name)


def _first_word(prompt: str) -> str:
    """Return the first word of a prompt if it could be a command name with a slash. Else return an empty string."""
    word = prompt.split(maxsplit=1)[0] if prompt.startswith("/") else ""
    return word if word.strip("/") and "/" not in word[1:] else ""


def said_in_run(prompt: str, own_words: OwnWords, settings: Settings, *, plans: bool) -> SaidInRun | None:
    """Return the message of the command that a prompt calls (`/name arguments`). `None` if the prompt is text.

    A prompt is text if it does not begin with a slash, or if its first word has another slash, as a path does. Raises
    UsageError if the command is unknown, is only available at the interactive prompt, or is for another model or for
    plan mode while the run is not.
    """
    word = _first_word(prompt)
    if not word:
        return None
    command = called(prompt, own_words)
    if command is None:
        command_names = [f"/{name}" for name in by_name(own_words.commands)]
        reason = (
            f"{word} is a command of the prompt, `harness`, and there is none here"
            if word.lower() in _built_in()
            else why_no_command(word, command_names, own_words.left_out)
        )
        raise UsageError(f"{reason} (a prompt that begins with a blank is text)")
    model, note = model_of(command, settings)
    if model:
        raise UsageError(f"{word} is for another model: give --model {visible_line(model, 100)}")
    if command.plans and not plans:
        raise UsageError(f"{word} is for plan mode: give --plan")
    words = expanded(command.body, prompt[len(word) :].strip())
    return SaidInRun(words=words, notes=tuple(filter(None, (note, not_run_in(command)))))


def not_run_in(command: OwnCommand) -> str:
    """Return the warning about `!` commands in the text, which another agent would run and this program does not."""
    return visible_line(f"/{command.name}: !`...` is not run, and stays text", 200) if "!`" in command.body else ""


def model_of(command: OwnCommand, settings: Settings) -> tuple[str, str]:
    """Return the model of a command (empty for the present one), and a note about an unavailable model.

    A model is unavailable if its name is another agent's and is not a profile or model known here.
    """
    name = command.model
    if name in ("", settings.profile, settings.model.value):
        return "", ""
    is_known = name in settings.file.profiles or name in settings.file.prices or name in settings.table.models
    of_provider = name.startswith("claude-") and settings.preset is not None and settings.preset.name == "anthropic"
    if is_known or of_provider or not _OTHERS_MODELS.fullmatch(name):
        return name, ""
    note = f"/{command.name} names the model {name}, which is no profile here: {settings.model.value} answers"
    return "", visible_line(note, 500)


def slash_of(
    commands: Mapping[str, OwnCommand], added: Sequence[SlashCommand] = ()
) -> tuple[tuple[SlashCommand, ...], tuple[str, ...]]:
    """Return the slash commands for the prompt, and notes on those whose name is that of a shipped command or of `added`."""
    if not commands:
        return (), ()  # avoids loading the shipped commands
    names = by_name(commands)
    built_in_names = _built_in().union(name for command in added for name in command.names)
    slashes, notes = [], []
    for command in commands.values():
        if f"/{command.name}" in built_in_names:
            notes.append(
                visible_line(
                    f"{command.path} is left out: /{command.name} is a command of the program or of a plugin", 1_000
                )
            )
            continue
        short = f"/{command.short_name}"
        has_short = (
            command.short_name != command.name and names[command.short_name] is command and short not in built_in_names
        )
        slashes.append(
            SlashCommand(
                name=f"/{command.name}",
                arguments=visible_line(command.arguments, 60) or "[...]",
                summary=visible_line(command.description, 200),
                group=HelpGroup.OWN,
                run=partial(_say, command),
                max_arguments=None,
                aliases=(short,) if has_short else (),
            )
        )
    return tuple(slashes), tuple(notes)


def _built_in() -> set[str]:
    return {name for command in slash_commands() for name in command.names}


def _say(command: OwnCommand, conversation: Conversation, rest: str) -> None:
    """Set the command's text as the next message, with the model and the mode that it names.

    Raises UsageError, PolicyError and LogError.
    """
    now = conversation.running.settings
    model, note = model_of(command, now)
    for message in filter(None, (note, not_run_in(command))):
        conversation.say_line(message, Tone.WARNING)
    if model:
        change_model(conversation, model)
        conversation.settings_after = now
    if command.plans and not conversation.plans:
        enter(conversation)
    conversation.prompt = expanded(command.body, rest)
    conversation.prompt_by_command = True

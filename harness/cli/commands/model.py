"""/model: which model answers, and how another one of the same provider is taken."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import JsonValue
from harness.cli.commands.conversation import Conversation
from harness.cli.commands.slash_command import HelpGroup, SlashCommand
from harness.cli.config.config_file import Setting
from harness.cli.terminal.completion import Offered
from harness.cli.terminal.styles import Tone
from harness.errors import HarnessError, UsageError
from harness.models.endpoint import shown_address
from harness.record import replace
from harness.text.visible import visible_line


def model(conversation: Conversation, rest: str) -> None:
    """Show the model, or ask another one of the same provider from now on. Raises UsageError and LogError."""
    settings = conversation.parts.settings
    if not rest:
        address = shown_address(settings.base_url.value)
        conversation.say_line(f"model {conversation.agent.model.name}  at {address}  by {settings.api.value.value}")
        if not conversation.open_menu("/model"):
            conversation.say("/model NAME takes another model of the same provider; Tab lists them", Tone.QUIET)
        return
    if not rest.isprintable():
        raise UsageError("that is no name of a model")
    if rest == conversation.agent.model.name:
        conversation.say("it is the model already", Tone.QUIET)
        return
    change_model(conversation, rest)


def models_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return the models: the one that answers, those that the configuration names, those that the provider lists."""
    from harness.cli.config.provider import endpoint_of
    from harness.models.model_list import listed_models

    parts, now = conversation.parts, conversation.agent.model.name
    problem, listed = "", tuple[str, ...]()
    try:
        listed = listed_models(endpoint_of(parts.settings, parts.environment))
    except HarnessError as error:
        problem = f"; no list: {error}"
    about = {now: f"answers now{problem}", **{name: "configured" for name in parts.settings.file.prices if name != now}}
    about = {**dict.fromkeys(parts.settings.table.models, "in your table"), **about}
    names = [name for name in dict.fromkeys((*about, *listed)) if len(name.split()) == 1]
    return [Offered(text=name, shown=name, about=about.get(name, "")) for name in names]


def change_model(conversation: Conversation, name: str) -> None:
    """Ask the model `name` of the same provider from now on. Raises UsageError and LogError."""
    from harness.cli.config.provider import model_from
    from harness.cli.config.settings import DEFAULT, context_of, sight_of

    parts, agent, session = conversation.parts, conversation.agent, conversation.session
    before = parts.settings
    prices = before.prices_of(name)
    if agent.limits.max_cost is not None and prices.value is None:
        raise UsageError(
            f"the cost is limited, and what {visible_line(name)!r} costs is not known: write its prices in the configuration"
        )
    settings = replace(before, model=Setting(value=name, origin="/model"), prices=prices)
    if "context_tokens" not in before.file.values:
        settings = replace(settings, context_tokens=context_of(settings.table, name))
    if settings.pictures.origin.startswith((DEFAULT, "preset ")):
        settings = replace(settings, pictures=sight_of(settings.preset, name))
    asked = model_from(settings, parts.environment, sleep=parts.on_wait, pictures=parts.pictures.bytes_of)
    made = parts.calling(asked)
    # What a provider wants back with its replies goes to the model that made them, and to no other.
    messages = session.messages[1:]
    if any(message.echo for message in messages):
        without = tuple(replace(message, echo="") for message in messages)
        agent.change_history(session, "model changed", 0, len(messages), without)
    about: dict[str, JsonValue] = {"api": settings.api.value.value, "server": shown_address(settings.base_url.value)}
    agent.change_model(session, made, about, prices.value)
    parts.settings, parts.model, parts.prices = settings, made, prices.value
    parts.pictures.settings = settings
    conversation.say_line(f"from now on {name} answers; whether the provider has it, its next reply tells", Tone.QUIET)
    if settings.context_tokens is before.context_tokens and parts.context_tokens is not None:
        conversation.say(f"context_tokens stays {parts.context_tokens:,}, as configured", Tone.QUIET)
    parts.context_tokens = agent.context_tokens = settings.context_tokens.value


COMMANDS = (
    SlashCommand(
        name="/model",
        arguments="[NAME]",
        summary="the model; or another one of the same provider",
        group=HelpGroup.PROGRAM,
        does=model,
        offers=models_to_choose,
    ),
)

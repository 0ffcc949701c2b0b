"""/model: which model answers, and how another one is taken: a profile, or one of the same provider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.app.commands.conversation import Conversation
from harness.app.commands.slash_command import HelpGroup, SlashCommand
from harness.errors import HarnessError, UsageError
from harness.models.endpoint import shown_address
from harness.record import replace
from harness.session.config.model_settings import shown_value
from harness.session.config.provider import about_model
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.session.config.settings import Settings


def model(conversation: Conversation, rest: str) -> None:
    """Show the model, or ask another one from now on. Raises UsageError and LogError."""
    settings = conversation.parts.settings
    if not rest:
        address = shown_address(settings.base_url.value)
        conversation.say_line(f"model {conversation.agent.model.name}  at {address}  by {settings.api.value.value}")
        if settings.of_model:
            said = {name: shown_value(name, one.value) for name, one in settings.of_model.items()}
            told = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in said.items())
            conversation.say_line(", ".join(told), most=1_000)
        if not conversation.open_menu("/model"):
            conversation.say(
                "/model NAME takes a profile, or another model of this provider; Tab lists them", Tone.QUIET
            )
        return
    if not rest.isprintable():
        raise UsageError("that is no name of a model")
    if rest in {settings.profile, settings.model.value}:
        conversation.say("it is the model already", Tone.QUIET)
        return
    change_model(conversation, rest)


def models_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return the models: the one that answers, those that the configuration names, those that the provider lists."""
    from harness.models.model_list import listed_models
    from harness.session.config.provider import endpoint_of

    parts, now = conversation.parts, conversation.agent.model.name
    problem, listed = "", tuple[str, ...]()
    try:
        listed = listed_models(endpoint_of(parts.settings, parts.environment))
    except HarnessError as error:
        problem = f"; no list: {error}"
    file = parts.settings.file
    about = {
        **dict.fromkeys(parts.settings.table.models, "in your table"),
        **dict.fromkeys(file.prices, "configured"),
        parts.begun_settings.model.value: "answered at the beginning",
        **{name: f"profile: {profile.model.value}" for name, profile in file.profiles.items()},
        now: f"answers now{problem}",
    }
    names = [name for name in dict.fromkeys((*about, *listed)) if len(name.split()) == 1]
    return [Offered(text=name, shown=name, about=about.get(name, "")) for name in names]


def change_model(conversation: Conversation, name: str) -> None:
    """Ask the model `name` from now on: as its profile says, or as at the beginning, else of the same provider.

    Raises UsageError and LogError.
    """
    parts = conversation.parts
    begun = parts.begun_settings
    as_begun = name in {begun.profile, begun.model.value} - {""}
    take_settings(conversation, begun if as_begun else parts.settings.with_model(name, parts.environment))


def take_settings(conversation: Conversation, settings: Settings) -> None:
    """Ask the model that `settings` name from now on. Raises UsageError and LogError."""
    from harness.session.config.provider import not_for, withhold

    parts, agent, session = conversation.parts, conversation.agent, conversation.session
    before, name = parts.settings, settings.model.value
    if agent.limits.max_cost is not None and settings.prices.value is None:
        raise UsageError(
            f"the cost is limited, and what {visible_line(name)!r} costs is not known: write its prices in the configuration"
        )
    made = parts.model_of(settings)
    withhold(not_for(settings))
    # What a provider wants back with its replies goes to the model that made them, and to no other.
    messages = session.messages[1:]
    if any(message.echo for message in messages):
        without = tuple(replace(message, echo="") for message in messages)
        agent.change_history(session, "model changed", 0, len(messages), without)
    parts.settings, parts.prices = settings, settings.prices.value
    parts.model = made
    agent.change_model(session, parts.model, about_model(settings), parts.prices)
    parts.pictures.settings = settings
    where = "" if settings.base_url.value == before.base_url.value else f", at {shown_address(settings.base_url.value)}"
    conversation.say_line(f"from now on {name} answers{where}; whether the provider has it is not checked", Tone.QUIET)
    if settings.context_tokens == settings.file.values.get("context_tokens") == before.context_tokens:
        conversation.say(f"context_tokens stays {parts.context_tokens:,}, as configured", Tone.QUIET)
    parts.context_tokens = agent.context_tokens = settings.context_tokens.value


COMMANDS = (
    SlashCommand(
        name="/model",
        arguments="[NAME]",
        summary="the model; or a profile, or another one of its provider",
        group=HelpGroup.PROGRAM,
        does=model,
        offers=models_to_choose,
    ),
)

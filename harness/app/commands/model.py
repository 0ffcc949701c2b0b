"""/model: show the model, or choose another one: a profile, or a model of the same provider."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.app.commands.conversation import Conversation
from harness.errors import HarnessError, UsageError
from harness.models.endpoint import shown_address
from harness.models.model_list import listed_models
from harness.plugin import HelpGroup, SlashCommand
from harness.session.config.model_settings import shown_value
from harness.session.config.provider import endpoint_of
from harness.session.config.settings import Settings
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.text.visible import visible_line


def model(conversation: Conversation, rest: str) -> None:
    """Show the model, or use another one from now on. Raises UsageError and LogError."""
    settings = conversation.running.settings
    if not rest:
        address = shown_address(settings.base_url.value)
        conversation.say_line(f"model {conversation.agent.model.name}  at {address}  by {settings.api.value.value}")
        if settings.of_model:
            values = {name: shown_value(name, setting.value) for name, setting in settings.of_model.items()}
            setting_lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
            conversation.say_line(", ".join(setting_lines), max_characters=1_000)
        if not conversation.open_menu("/model"):
            conversation.say(
                "/model NAME takes a profile, or another model of this provider; Tab lists them", Tone.QUIET
            )
        return
    if not rest.isprintable():
        raise UsageError("invalid name of a model: a character cannot be shown")
    if rest in {settings.profile, settings.model.value}:
        conversation.say("it is the model already", Tone.QUIET)
        return
    change_model(conversation, rest)


def models_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return the models for the menu: the present one, the configured ones, and those that the provider lists."""
    settings, now = conversation.running.settings, conversation.agent.model.name
    problem, server_models = "", tuple[str, ...]()
    try:
        server_models = listed_models(endpoint_of(settings, conversation.place.environment))
    except HarnessError as error:
        problem = f"; no list: {error}"
    file = settings.file
    descriptions = {
        **dict.fromkeys(settings.table.models, "in your table"),
        **dict.fromkeys(file.prices, "configured"),
        conversation.place.settings.model.value: "answered at the beginning",
        **{name: f"profile: {profile.model.value}" for name, profile in file.profiles.items()},
        now: f"answers now{problem}",
    }
    names = [name for name in dict.fromkeys((*descriptions, *server_models)) if len(name.split()) == 1]
    return [Offered(text=name, label=name, description=descriptions.get(name, "")) for name in names]


def change_model(conversation: Conversation, name: str) -> None:
    """Use the model `name` from now on. Raises UsageError and LogError.

    The settings are those of its profile, or those of the start if it was the first model. Otherwise the provider stays
    the same.
    """
    first_settings, now = conversation.place.settings, conversation.running.settings
    as_begun = name in {first_settings.profile, first_settings.model.value} - {""}
    take_settings(conversation, first_settings if as_begun else now.with_model(name, conversation.place.environment))


def take_settings(conversation: Conversation, settings: Settings) -> None:
    """Use the model of `settings` from now on. Raises UsageError and LogError."""
    before, name = conversation.running.settings, settings.model.value
    if conversation.agent.limits.max_cost is not None and settings.prices.value is None:
        raise UsageError(
            f"the cost is limited, and what {visible_line(name)!r} costs is not known: write its prices in the configuration"
        )
    conversation.running.change_model(conversation.session, settings)
    address_text = (
        "" if settings.base_url.value == before.base_url.value else f", at {shown_address(settings.base_url.value)}"
    )
    conversation.say_line(
        f"from now on {name} answers{address_text}; whether the provider has it is not checked", Tone.QUIET
    )
    if settings.context_tokens == settings.file.values.get("context_tokens") == before.context_tokens:
        conversation.say(f"context_tokens stays {settings.context_tokens.value:,}, as configured", Tone.QUIET)


COMMANDS = (
    SlashCommand(
        name="/model",
        arguments="[NAME]",
        summary="show the model, or choose another one or a profile",
        group=HelpGroup.PROGRAM,
        run=model,
        offers=models_to_choose,
    ),
)

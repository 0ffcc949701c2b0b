"""Makes the model's adapter from the settings. An API key is sent only to its own provider."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, assert_never

from harness.actions import JsonValue
from harness.errors import NoModelError, UsageError
from harness.interrupt import sleep_here, stops_here
from harness.models.endpoint import (
    ANTHROPIC_VERSION,
    CERTIFICATE_VARIABLES,
    OTHER_CERTIFICATE_VARIABLES,
    Deadlines,
    Endpoint,
    Quirks,
    ReplyBounds,
    is_local,
    shown_address,
)
from harness.models.presets import PRESETS, Api, Preset, preset_of
from harness.models.setting_fields import setting_problem
from harness.record import replace
from harness.session.config.config_file import Setting
from harness.session.config.model_settings import model_settings
from harness.session.config.settings import DEFAULT, OPENAI, Settings

if TYPE_CHECKING:
    from harness.models.anthropic_messages import AnthropicMessages
    from harness.models.openai_chat import OpenAIChat
    from harness.models.openai_responses import OpenAIResponses
    from harness.models.sight import AttachmentSource

NO_PROVIDER = """\
no model to talk to. Three ways out:
  export OPENAI_API_KEY=...       the OpenAI API; --provider NAME is another
  --provider ollama --model NAME  a server on this machine, or --base-url URL
  harness demo                    a scripted model, without key or network"""

NO_KEY = "none"
"""API key for a server that needs none, since the SDK requires a text."""

OPENAI_ONLY = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS")
"""Environment variables that the SDK itself reads and sends as headers to any server (see its `_client.py`)."""


def model_from(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    sleep: Callable[[float], None] = sleep_here,
    stops: Callable[[], int] = stops_here,
    attachments: AttachmentSource | None = None,
) -> OpenAIChat | OpenAIResponses | AnthropicMessages:
    """Return the adapter for the model that `settings` name. Sends nothing yet.

    `sleep` waits before a request is repeated, `stops` is as in OpenAIWire, and `attachments` provides the bytes of
    attachments, if the settings permit sending them. Raises UsageError if an address, a key or a model is missing, or
    if they do not belong together.
    """
    endpoint = endpoint_of(settings, environment)
    if settings.pictures.value:
        endpoint = replace(endpoint, attachments=attachments)
    match settings.api.value:
        case Api.CHAT:
            from harness.models.openai_chat import OpenAIChat

            return OpenAIChat(settings.model.value, endpoint, sleep=sleep, stops=stops)
        case Api.RESPONSES:
            from harness.models.openai_responses import OpenAIResponses

            return OpenAIResponses(settings.model.value, endpoint, sleep=sleep, stops=stops)
        case Api.MESSAGES:
            from harness.models.anthropic_messages import AnthropicMessages

            return AnthropicMessages(settings.model.value, endpoint, sleep=sleep, stops=stops)
        case _:
            assert_never(settings.api.value)


def endpoint_of(settings: Settings, environment: Mapping[str, str]) -> Endpoint:
    """Return the model's address and bounds, with the key.

    Raises UsageError like `model_from`: NoModelError if an address, a key or a model is missing.
    """
    if missing := _missing(settings):
        raise NoModelError(missing)
    problem = _azure_problem(settings) or _foreign_key(settings) or _setting_problem(settings)
    if problem:
        raise UsageError(problem)
    key = environment.get(settings.key_variable.value, "").strip() if settings.key_variable.value else ""
    if not key.isascii() or not key.isprintable():
        raise UsageError(
            f"the key in {settings.key_variable.value} holds a line end or a character that cannot be sent"
        )
    return Endpoint(
        base_url=settings.base_url.value,
        api_key=key or NO_KEY,
        key_variable=settings.key_variable.value,
        azure_api_version=settings.azure_api_version.value,
        anthropic_version=ANTHROPIC_VERSION if settings.api.value is Api.MESSAGES else "",
        attempts=settings.attempts.value,
        retry_seconds=settings.retry_seconds.value,
        certificate_paths={
            name: path
            for name in (*CERTIFICATE_VARIABLES, *OTHER_CERTIFICATE_VARIABLES)
            if (path := environment.get(name))
        },
        deadlines=Deadlines(**{name: setting.value for name, setting in settings.deadlines.items()}),
        bounds=ReplyBounds(**{name: setting.value for name, setting in settings.bounds.items()}),
        settings=model_settings({name: setting.value for name, setting in settings.of_model.items()}),
        quirks=replace(
            settings.preset.quirks if settings.preset else Quirks(), most_output=settings.most_output.value or 0
        ),
    )


def endpoint_of_any_model(settings: Settings, environment: Mapping[str, str]) -> Endpoint:
    """Return the endpoint even if no model is chosen. Raises UsageError as `model_from` does, except for that."""
    chosen = Setting(value=settings.model.value or "any", origin=DEFAULT)
    return endpoint_of(replace(settings, model=chosen), environment)


def about_model(settings: Settings) -> dict[str, JsonValue]:
    """Return the log's fields about the model (without its name): API, address, form of calls, profile and settings."""
    model_fields = model_settings(
        {name: setting.value for name, setting in settings.of_model.items()}
    ).stated_settings()
    return {
        "api": settings.api.value.value,
        "server": shown_address(settings.base_url.value),
        **({"call_form": "text"} if settings.calls.value == "text" else {}),
        **({"profile": settings.profile} if settings.profile else {}),
        **({"model_settings": model_fields} if model_fields else {}),
    }


def not_for(settings: Settings) -> tuple[str, ...]:
    """Return the environment variables whose values must not be sent to the server in `settings`.

    OpenAI's variables are sent to OpenAI only, and to an unknown address (the user's proxy) that gets OpenAI's key.
    """
    server = _server_of(settings)
    is_openai_key = (
        settings.key_variable.value == PRESETS[OPENAI].key_variable if server is None else server.name == OPENAI
    )
    return () if is_openai_key else OPENAI_ONLY


def withhold(names: Iterable[str]) -> None:
    """Remove variables from this process's environment, where the SDK would read them."""
    for name in names:
        os.environ.pop(name, None)


def _server_of(settings: Settings) -> Preset | None:
    """Return the preset of the address, or else the named one. A local address may be a proxy for any provider."""
    address = settings.base_url.value
    return (None if is_local(address) else preset_of(address)) or settings.named_preset


def _missing(settings: Settings) -> str:
    """Return a message about a missing setting, or an empty string."""
    preset, variable = settings.named_preset, settings.key_variable.value
    if preset is not None and not settings.base_url.value:
        ways = [f"set {preset.base_url_variable}"] if preset.base_url_variable else []
        return f"{preset.title} has no address that all share: {' or '.join([*ways, 'give --base-url'])}"
    if not settings.key_set and variable and _wants_key(settings):
        if preset is None and settings.key_variable.origin == DEFAULT:
            return NO_PROVIDER
        whose = preset.title if preset else shown_address(settings.base_url.value)
        return (
            f"{whose} wants a key: export {variable}=... ({settings.key_variable.origin}); a key in another variable is for "
            "another provider, and is not sent there"
        )
    if not settings.model.value:
        return f"which model of {preset.title if preset else 'the provider'}? Name it with --model or HARNESS_MODEL"
    return ""


def _setting_problem(settings: Settings) -> str:
    """Return a message about a setting that this API or provider does not support, or an empty string."""
    preset = settings.preset.name if settings.preset else ""
    for name, setting in settings.of_model.items():
        if problem := setting_problem(name, setting.value, settings.api.value, preset):
            return f"{setting.origin}: {name}: {problem}"
    return ""


def _wants_key(settings: Settings) -> bool:
    """Return whether a missing key is an error. It is not for local servers, nor for a bare address."""
    if settings.named_preset is not None:
        return not is_local(settings.named_preset.base_url or settings.base_url.value)
    return settings.base_url.origin == DEFAULT or settings.key_variable.origin != DEFAULT


def _azure_problem(settings: Settings) -> str:
    """Return a message if provider and address fit neither of Azure's two addressing modes, or an empty string."""
    version = settings.azure_api_version
    is_azure = settings.named_preset is not None and bool(settings.named_preset.api_version_variable)
    if version.value and not is_azure:
        return f'{version.origin}: azure_api_version is only for provider = "azure"'
    if is_azure and not version.value and not re.search(r"/openai/v1/?$", settings.base_url.value):
        return (
            "Azure is reached by an API version (azure_api_version in the configuration, or OPENAI_API_VERSION) or by an "
            f"address that ends in /openai/v1; {shown_address(settings.base_url.value)} is neither"
        )
    return ""


def _foreign_key(settings: Settings) -> str:
    """Return the reason why the key must not be sent to the address, or an empty string.

    OPENAI_API_KEY may be sent to any address that the user names without a provider, like the SDK's own variables.
    """
    variable = settings.key_variable.value
    if settings.named_preset is None and variable == PRESETS[OPENAI].key_variable:
        return ""
    address = settings.base_url.value
    server = _server_of(settings)
    owners = [preset for preset in PRESETS.values() if preset.key_variable == variable]
    if not settings.key_set or server is None or not owners or server in owners:
        return ""
    return (
        f"the key in {variable} is for {owners[0].title}, and {shown_address(address)} is {server.title} "
        f"({settings.base_url.origin}): it is not sent there. Name --provider {server.name}"
    )

"""How to start each agent against a played model, in an empty home."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.messages import ToolCall
from harness.models.scripted import call
from harness.record import Record

KEY = "sk-played-0123456789-0123456789"
"""API key without a meaning. Agents require a key before they start; the played model does not check it."""


class PlayedPlace(Record):
    """The folders for the run of an agent, and the address of its model."""

    home: str
    """The agent's home, empty except for the installed files."""
    workspace: str
    origin: str
    """Address of the played model, without a path."""


class AgentStart(Record):
    """The start of one agent without a user, so that only its hooks guard its tools.

    The home has only the installed files, and those of `files`.
    """

    package: str
    """Package on npm, with the last tested version. pi and Kimi Code need Node 22.19."""
    program: str
    arguments: Callable[[PlayedPlace], tuple[str, ...]]
    """Returns the arguments before the prompt."""
    environment: Callable[[PlayedPlace], Mapping[str, str]]
    command: Callable[[str], ToolCall]
    """Returns the model's call that runs a command."""
    files: Callable[[PlayedPlace], Mapping[str, str]] = lambda place: {}  # noqa: ARG005
    """Returns files to write into the home, by path, for an agent that takes the address of its model from nowhere else."""


def _claude_environment(place: PlayedPlace) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.origin,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",  # otherwise it refuses bypass mode for root
    }


def _codex_arguments(place: PlayedPlace) -> tuple[str, ...]:
    provider = f'{{name = "played", base_url = "{place.origin}/v1", wire_api = "responses", env_key = "PLAYED_KEY"}}'
    settings = (
        f"model_providers.played={provider}",
        "model_provider=played",
        "model=gpt-5.5",
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
        f'projects={{{json.dumps(place.workspace)}={{trust_level="trusted"}}}}',
    )
    options = [word for setting in settings for word in ("-c", setting)]
    # Codex's own sandbox does not work in every home, and is not under test.
    return ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", *options)


def _gemini_environment(place: PlayedPlace) -> dict[str, str]:
    return {
        # The usual way, GEMINI_API_KEY with another address, would also need a settings file.
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_API_KEY": KEY,
        "GOOGLE_VERTEX_BASE_URL": place.origin,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _qwen_environment(place: PlayedPlace) -> dict[str, str]:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{place.origin}/v1", "OPENAI_MODEL": "played"}


def _copilot_environment(place: PlayedPlace) -> dict[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{place.origin}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "played",
        "COPILOT_OFFLINE": "true",
    }


def _opencode_environment(place: PlayedPlace) -> dict[str, str]:
    provider: JsonValue = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.origin}/v1", "apiKey": KEY},
        "models": {"played": {"tool_call": True}},
    }
    settings: JsonValue = {
        "model": "played/played",
        "small_model": "played/played",
        "provider": {"played": provider},
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow"},
    }
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _pi_environment(place: PlayedPlace) -> dict[str, str]:
    return {
        "AZURE_OPENAI_BASE_URL": f"{place.origin}/openai/v1",
        "AZURE_OPENAI_API_KEY": KEY,
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
    }


def _kimi_environment(place: PlayedPlace) -> dict[str, str]:
    return {
        "KIMI_MODEL_NAME": "played",
        "KIMI_MODEL_API_KEY": KEY,
        "KIMI_MODEL_BASE_URL": f"{place.origin}/v1",
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
    }


def _droid_settings(place: PlayedPlace) -> dict[str, str]:
    model: JsonValue = {
        "model": "played",
        "displayName": "played",
        "baseUrl": f"{place.origin}/v1",
        "apiKey": KEY,
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 8_000,
    }
    return {"played.json": json.dumps({"customModels": [model]})}


def _cline_settings(place: PlayedPlace) -> dict[str, str]:
    settings: JsonValue = {
        "provider": "openai-compatible",
        "apiKey": KEY,
        "model": "played",
        "baseUrl": f"{place.origin}/v1",
    }
    content: JsonValue = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": {"settings": settings, "updatedAt": "2026-01-01T00:00:00Z"}},
    }
    return {".cline/data/settings/providers.json": json.dumps(content)}


def tried_version(agent: str) -> str:
    """Return the version of an agent whose tools and answers we know. Empty for one that was not tried."""
    return AGENT_STARTS[agent].package.rpartition("@")[2] if agent in AGENT_STARTS else ""


AGENT_STARTS: Mapping[str, AgentStart] = {
    "claude": AgentStart(
        package="@anthropic-ai/claude-code@2.1.332",
        program="claude",
        arguments=lambda _: ("--permission-mode", "bypassPermissions", "-p"),
        environment=_claude_environment,
        command=lambda command: call("Bash", command=command, description="d"),
    ),
    "codex": AgentStart(
        package="@openai/codex@0.171.0",
        program="codex",
        arguments=_codex_arguments,
        environment=lambda _: {"PLAYED_KEY": KEY},
        command=lambda command: call("exec_command", cmd=command),
    ),
    "gemini": AgentStart(
        package="@google/gemini-cli@0.61.0",
        program="gemini",
        arguments=lambda _: ("--yolo", "--model", "gemini-2.5-pro", "--prompt"),
        environment=_gemini_environment,
        command=lambda command: call("run_shell_command", command=command, description="d"),
    ),
    "qwen": AgentStart(
        package="@qwen-code/qwen-code@0.24.4",
        program="qwen",
        arguments=lambda _: ("--yolo", "--auth-type", "openai", "--prompt"),
        environment=_qwen_environment,
        command=lambda command: call("run_shell_command", command=command, description="d", is_background=False),
    ),
    "copilot": AgentStart(
        package="@github/copilot@1.0.102",
        program="copilot",
        arguments=lambda _: ("--allow-all-tools", "--trust-folder", "--prompt"),
        environment=_copilot_environment,
        command=lambda command: call("bash", command=command, description="d"),
    ),
    "opencode": AgentStart(
        package="opencode-ai@1.18.33",
        program="opencode",
        arguments=lambda _: ("run",),
        environment=_opencode_environment,
        command=lambda command: call("bash", command=command, description="d"),
    ),
    "pi": AgentStart(
        package="@earendil-works/pi-coding-agent@1.6.0",
        program="pi",
        arguments=lambda _: ("--provider", "azure", "--model", "gpt-5.5", "--print"),
        environment=_pi_environment,
        command=lambda command: call("bash", command=command),
    ),
    "kimi": AgentStart(
        package="@moonshot-ai/kimi-code@2.1.0",
        program="kimi",
        arguments=lambda _: ("--prompt",),
        environment=_kimi_environment,
        command=lambda command: call("Bash", command=command),
    ),
    "droid": AgentStart(
        package="@factory/cli-linux-x64@0.225.2",
        program="droid",
        arguments=lambda place: (
            *("exec", "--skip-permissions-unsafe", "--model", "custom:played"),
            *("--settings", f"{place.home}/played.json"),
        ),
        environment=lambda _: {"FACTORY_API_KEY": KEY},
        command=lambda command: call("Execute", command=command, summary="s"),
        files=_droid_settings,
    ),
    "cline": AgentStart(
        package="cline@3.0.65",
        program="cline",
        arguments=lambda _: (),
        environment=lambda _: {},
        command=lambda command: call("run_commands", commands=[command]),
        files=_cline_settings,
    ),
}

"""How each agent is started against a played model, in an empty home: what an agent's own file will say of itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.record import Record

KEY = "sk-played-0123456789-0123456789"
"""Agents want some key before they begin; nobody checks this one."""


class Place(Record):
    """Where an agent is started, and against what."""

    home: str
    """Its home, empty but for what is written there first."""
    workspace: str
    origin: str
    """The played model's address, without a path."""


class AgentStart(Record):
    """What starts one agent without a person, so that only the hook stands before its tools."""

    package: str
    """On npm, with the version that was tried last."""
    program: str
    arguments: tuple[str, ...]
    environment: Callable[[Place], Mapping[str, str]]
    files: Callable[[Place], Mapping[str, str]]
    """What has to stand in the home, by path; hooks are not among it."""
    prompt_option: tuple[str, ...] = ()
    """What stands before the prompt, which comes last."""


def _json(value: JsonValue) -> str:
    return json.dumps(value, indent=1) + "\n"


def _claude_environment(place: Place) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.origin,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",  # else it refuses the bypass mode to root
    }


def _claude_files(place: Place) -> dict[str, str]:
    trusted: JsonValue = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known: JsonValue = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {place.workspace: trusted},
    }
    return {".claude.json": _json(known)}


def _codex_files(place: Place) -> dict[str, str]:
    return {
        ".codex/config.toml": f"""\
model = "gpt-5.1-codex"
model_provider = "played"
check_for_update_on_startup = false
[model_providers.played]
name = "played"
base_url = "{place.origin}/v1"
wire_api = "responses"
env_key = "PLAYED_KEY"
[projects."{place.workspace}"]
trust_level = "trusted"
[analytics]
enabled = false
"""
    }


def _gemini_files(place: Place) -> dict[str, str]:
    settings: JsonValue = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {
        ".gemini/settings.json": _json(settings),
        ".gemini/trustedFolders.json": _json({place.workspace: "TRUST_FOLDER"}),
    }


def _qwen_files(place: Place) -> dict[str, str]:
    settings: JsonValue = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return {".qwen/settings.json": _json(settings)}


def _opencode_files(place: Place) -> dict[str, str]:
    provider: JsonValue = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "played",
        "options": {"baseURL": f"{place.origin}/v1", "apiKey": KEY},
        "models": {"played": {"name": "played", "tool_call": True}},
    }
    settings: JsonValue = {
        "model": "played/played",
        "small_model": "played/played",
        "provider": {"played": provider},
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow"},
    }
    return {".config/opencode/opencode.json": _json(settings)}


AGENT_STARTS: Mapping[str, AgentStart] = {
    "claude": AgentStart(
        package="@anthropic-ai/claude-code@2.1.330",
        program="claude",
        arguments=("--permission-mode", "bypassPermissions", "-p"),
        environment=_claude_environment,
        files=_claude_files,
    ),
    "codex": AgentStart(
        package="@openai/codex@0.169.0",
        program="codex",
        arguments=("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
        environment=lambda _: {"PLAYED_KEY": KEY},
        files=_codex_files,
    ),
    "gemini": AgentStart(
        package="@google/gemini-cli@0.61.0",
        program="gemini",
        arguments=("--yolo", "--model", "gemini-2.5-pro"),
        prompt_option=("--prompt",),
        environment=lambda place: {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": place.origin},
        files=_gemini_files,
    ),
    "qwen": AgentStart(
        package="@qwen-code/qwen-code@0.24.4",
        program="qwen",
        arguments=("--yolo",),
        prompt_option=("--prompt",),
        environment=lambda place: {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{place.origin}/v1",
            "OPENAI_MODEL": "played",
        },
        files=_qwen_files,
    ),
    "copilot": AgentStart(
        package="@github/copilot@1.0.102",
        program="copilot",
        arguments=("--allow-all-tools",),
        prompt_option=("--prompt",),
        environment=lambda place: {
            "COPILOT_PROVIDER_BASE_URL": f"{place.origin}/v1",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "played",
            "COPILOT_OFFLINE": "true",
        },
        files=lambda _: {},
    ),
    "opencode": AgentStart(
        package="opencode-ai@1.18.33",
        program="opencode",
        arguments=("run",),
        environment=lambda _: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        files=_opencode_files,
    ),
}

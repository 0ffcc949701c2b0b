"""Well-known servers by name: address, key variable, and known deviations. Add a server with one entry.

A deviation is listed only if the server's documentation or its maintainers state it. Deviations that any server may
have are tolerated for all servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from harness.models.endpoint import CacheMarks, Quirks
from harness.record import Record, replace

_ADDRESS = re.compile(
    r"https?://(?:[^/?#@\\\s]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\\\s]+)(?::([0-9]{1,5}))?(?:[/?#]|$)", re.IGNORECASE
)
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]+){3}|\[::1\]|0\.0\.0\.0")


class Api(Enum):
    """The APIs, with their names in the configuration."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"
    """Anthropic's Messages API."""


class Preset(Record):
    """One kind of server."""

    name: str
    """Name in `--provider` and the configuration."""
    title: str
    base_url: str | None
    """Base URL. `None` for the OpenAI API itself, and for Azure, where each resource has its own address."""
    key_variable: str
    """Environment variable that holds the key. Empty if no key is needed."""
    base_url_variable: str = ""
    """Environment variable that holds the address. Empty for OPENAI_BASE_URL."""
    api_version_variable: str = ""
    """Environment variable that holds the API version (Azure), as the SDK reads it."""
    hosts: tuple[str, ...] = ()
    """Hosts that identify the server, including their subdomains. Empty for a server that users run themselves."""
    api: Api = Api.CHAT
    """The default API of the server."""
    start: str = ""
    """Command that starts a server that users run themselves. Empty for other servers."""
    quirks: Quirks = Quirks()


# OpenAI's API returns no reasoning in chat completions and refuses unknown message fields. So reasoning from another
# server must not be sent to it in a resumed conversation.
# `max_tokens` is deprecated, and reasoning models refuse it (platform.openai.com/docs/api-reference/chat/create).
_STRICT = Quirks(echo=(), output_field="max_completion_tokens")

# The comment after `Preset(` is the source of each entry.
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(  # https://platform.openai.com/docs/api-reference
            name="openai",
            title="OpenAI",
            base_url=None,
            key_variable="OPENAI_API_KEY",
            hosts=("api.openai.com",),
            quirks=_STRICT,
        ),
        # With an API version, requests name a deployment. Without, the address ends in /openai/v1 and works like OpenAI's.
        Preset(  # https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
            name="azure",
            title="Azure OpenAI",
            base_url=None,
            key_variable="AZURE_OPENAI_API_KEY",
            base_url_variable="AZURE_OPENAI_ENDPOINT",
            api_version_variable="OPENAI_API_VERSION",
            hosts=("openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"),
            quirks=_STRICT,
        ),
        # Reasoning is sent back as `reasoning_details`, unchanged: openrouter.ai/docs/use-cases/reasoning-tokens. Usage
        # is always sent; asking for it has no effect: openrouter.ai/docs/use-cases/usage-accounting. For Claude only marked
        # parts are cached (openrouter.ai/docs/features/prompt-caching). A mark in a part also works for a tool result; a mark
        # next to the content makes the request hang (NousResearch/hermes-agent#2391, #58129).
        Preset(  # https://openrouter.ai/docs/api-reference/overview
            name="openrouter",
            title="OpenRouter",
            base_url="https://openrouter.ai/api/v1",
            key_variable="OPENROUTER_API_KEY",
            hosts=("openrouter.ai",),
            quirks=Quirks(echo=("reasoning_details",), cache_marks=CacheMarks.PARTS),
        ),
        Preset(  # https://console.groq.com/docs/openai
            name="groq",
            title="Groq",
            base_url="https://api.groq.com/openai/v1",
            key_variable="GROQ_API_KEY",
            hosts=("api.groq.com",),
        ),
        # Thinking is on by default, and `reasoning_content` must go back in all later requests of a turn that called tools.
        Preset(  # https://api-docs.deepseek.com/guides/thinking_mode
            name="deepseek",
            title="DeepSeek",
            base_url="https://api.deepseek.com",
            key_variable="DEEPSEEK_API_KEY",
            hosts=("api.deepseek.com",),
            quirks=Quirks(echo=("reasoning_content",)),
        ),
        # Call ids of nine letters and digits: mistral-common, protocol/instruct/validator.py, and anomalyco/opencode#1680.
        # Unknown fields are refused with status 422, including reasoning of earlier replies (BerriAI/litellm#30835,
        # charmbracelet/crush#1590). The last chunk always holds the usage.
        Preset(  # https://docs.mistral.ai/api
            name="mistral",
            title="Mistral",
            base_url="https://api.mistral.ai/v1",
            key_variable="MISTRAL_API_KEY",
            hosts=("api.mistral.ai",),
            quirks=Quirks(usage=False, echo=(), nine_character_ids=True),
        ),
        # Each call's `extra_content` holds a thought signature: ai.google.dev/gemini-api/docs/thought-signatures.
        Preset(  # https://ai.google.dev/gemini-api/docs/openai
            name="gemini",
            title="Google Gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
            key_variable="GEMINI_API_KEY",
            hosts=("generativelanguage.googleapis.com",),
        ),
        Preset(  # https://docs.x.ai/docs/api-reference
            name="xai",
            title="xAI",
            base_url="https://api.x.ai/v1",
            key_variable="XAI_API_KEY",
            hosts=("api.x.ai",),
        ),
        # Model names have the form MAKER/MODEL; others get 404.
        Preset(  # https://docs.together.ai/docs/inference/openai-compatibility
            name="together",
            title="Together AI",
            base_url="https://api.together.ai/v1",
            key_variable="TOGETHER_API_KEY",
            hosts=("api.together.ai", "api.together.xyz"),
        ),
        Preset(  # https://docs.fireworks.ai/tools-sdks/openai-compatibility
            name="fireworks",
            title="Fireworks AI",
            base_url="https://api.fireworks.ai/inference/v1",
            key_variable="FIREWORKS_API_KEY",
            hosts=("api.fireworks.ai",),
        ),
        Preset(  # https://inference-docs.cerebras.ai/resources/openai
            name="cerebras",
            title="Cerebras",
            base_url="https://api.cerebras.ai/v1",
            key_variable="CEREBRAS_API_KEY",
            hosts=("api.cerebras.ai",),
        ),
        # For trying out, according to its page. Thinking is not returned, and unknown fields are ignored.
        Preset(  # https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk
            name="anthropic",
            title="Anthropic, OpenAI-compatible end",
            base_url="https://api.anthropic.com/v1/",
            key_variable="ANTHROPIC_API_KEY",
            hosts=("api.anthropic.com",),
        ),
        # It has the same address as the preset above. The host alone selects that preset.
        Preset(  # https://platform.claude.com/docs/en/api/messages
            name="anthropic-messages",
            title="Anthropic, Messages API",
            base_url="https://api.anthropic.com/v1/",
            key_variable="ANTHROPIC_API_KEY",
            hosts=("api.anthropic.com",),
            api=Api.MESSAGES,
        ),
        # The variables are those of LiteLLM's client (provider `litellm_proxy`). Marks: docs.litellm.ai/docs/completion,
        # "Prompt Caching". LiteLLM passes parts of a tool result on unchanged, and Anthropic accepts no mark in them
        # (langchain#34920).
        Preset(  # https://docs.litellm.ai/docs/providers/litellm_proxy
            name="litellm",
            title="LiteLLM proxy",
            base_url="http://localhost:4000/v1",
            key_variable="LITELLM_PROXY_API_KEY",
            base_url_variable="LITELLM_PROXY_API_BASE",
            start="litellm --config FILE",
            quirks=Quirks(cache_marks=CacheMarks.RESULTS),
        ),
        Preset(  # https://docs.ollama.com/api/openai-compatibility
            name="ollama",
            title="Ollama, local",
            base_url="http://localhost:11434/v1",
            key_variable="",
            start="ollama serve",
        ),
        Preset(  # https://lmstudio.ai/docs/developer/openai-compat
            name="lmstudio",
            title="LM Studio, local",
            base_url="http://localhost:1234/v1",
            key_variable="",
            start="lms server start",
        ),
        # Reads calls only when started with --enable-auto-tool-choice and --tool-call-parser.
        Preset(  # https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html
            name="vllm",
            title="vLLM, local",
            base_url="http://localhost:8000/v1",
            key_variable="",
            start="vllm serve",
        ),
        # Reads calls only when started with --jinja.
        Preset(  # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
            name="llamacpp",
            title="llama.cpp server, local",
            base_url="http://localhost:8080/v1",
            key_variable="",
            start="llama-server --jinja",
        ),
    )
}


def preset_of(base_url: str | None) -> Preset | None:
    """Return the preset of an address by its host. `None` as the address means OpenAI's API.

    An address on this machine is matched by its port. That is only a guess, good enough for a title. INVARIANT: a
    guessed preset has no deviations, so that it changes no request.
    """
    if base_url is None:
        return PRESETS["openai"]
    match = _ADDRESS.match(base_url)
    if match is None:
        return None
    host, port = match[1].lower().rstrip("."), match[2] or ""
    if _LOOPBACK.fullmatch(host):
        local = (preset for preset in PRESETS.values() if not preset.hosts and preset.base_url)
        return next((replace(preset, quirks=Quirks()) for preset in local if _port(preset) == port), None)
    return next((preset for preset in PRESETS.values() if _is_at(preset, host)), None)


def _is_at(preset: Preset, host: str) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in preset.hosts)


def _port(preset: Preset) -> str | None:
    match = _ADDRESS.match(preset.base_url or "")
    return match[2] if match is not None else None

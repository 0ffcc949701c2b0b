"""Well-known servers by name: address, key variable, and known deviations. Add a server with one entry.

A deviation is listed here only if a page of the server's own says so, or its maintainers do. Deviations that any
server may have are tolerated everywhere.
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
    """The APIs; the values are those of the configuration."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"
    """Anthropic's own."""


class Preset(Record):
    """One kind of server."""

    name: str
    """Name in `--provider` and the configuration."""
    title: str
    base_url: str | None
    """Base URL. `None` for the OpenAI API itself, or (Azure) an address that only its owner knows."""
    key_variable: str
    """The environment variable that holds the key; empty where none is wanted."""
    base_url_variable: str = ""
    """The environment variable that holds the address, where it is another than OPENAI_BASE_URL."""
    api_version_variable: str = ""
    """The environment variable that holds the API version (Azure), as the SDK reads it."""
    hosts: tuple[str, ...] = ()
    """Hosts by which the server is recognised, those below them included. Empty for servers of one's own."""
    api: Api = Api.CHAT
    """The API unless the configuration names another."""
    start: str = ""
    """The command that starts it, where it is a server of one's own."""
    quirks: Quirks = Quirks()


# OpenAI's own API returns no reasoning in chat completions, and refuses message fields that it does not know: what
# another server gave a resumed conversation is not for it.
# `max_tokens` is deprecated there, and refused by models that reason (platform.openai.com/docs/api-reference/chat/create).
_STRICT = Quirks(echo=(), output_field="max_completion_tokens")

# Behind each, the page that it is taken from.
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
        # With an API version: by deployment. Without: the address ends in /openai/v1, and is like OpenAI's own.
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
        # Reasoning goes back as `reasoning_details`, unchanged: openrouter.ai/docs/use-cases/reasoning-tokens. Usage
        # comes always; asking for it has no effect: openrouter.ai/docs/use-cases/usage-accounting. Of Claude only what is
        # marked is kept (openrouter.ai/docs/features/prompt-caching): the mark of a part goes to the tool result, one beside
        # the content makes the request hang (NousResearch/hermes-agent#2391, #58129).
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
        # Fields that are not known are refused with status 422, reasoning of earlier replies too (BerriAI/litellm#30835,
        # charmbracelet/crush#1590); usage stands in the last chunk without being asked for.
        Preset(  # https://docs.mistral.ai/api
            name="mistral",
            title="Mistral",
            base_url="https://api.mistral.ai/v1",
            key_variable="MISTRAL_API_KEY",
            hosts=("api.mistral.ai",),
            quirks=Quirks(usage=False, echo=(), nine_character_ids=True),
        ),
        # Thought signatures stand in each call's `extra_content`: ai.google.dev/gemini-api/docs/thought-signatures.
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
        # Names of models are those of their makers, with a slash; others get 404.
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
        # Made for trying out, says its own page; thinking is not returned, and fields that are not known are ignored.
        Preset(  # https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk
            name="anthropic",
            title="Anthropic, OpenAI-compatible end",
            base_url="https://api.anthropic.com/v1/",
            key_variable="ANTHROPIC_API_KEY",
            hosts=("api.anthropic.com",),
        ),
        # Its address is that of the end above, which is what the host alone means.
        Preset(  # https://platform.claude.com/docs/en/api/messages
            name="anthropic-messages",
            title="Anthropic, Messages API",
            base_url="https://api.anthropic.com/v1/",
            key_variable="ANTHROPIC_API_KEY",
            hosts=("api.anthropic.com",),
            api=Api.MESSAGES,
        ),
        # The variables are those of LiteLLM's own client (provider `litellm_proxy`). Marks: docs.litellm.ai/docs/completion,
        # "Prompt Caching". Parts of a tool result go on as they are, and Anthropic takes no mark there (langchain#34920).
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
    """Return the preset of an address by its host. `None` for the address means OpenAI's own.

    An address on this machine is matched by its port: a guess, good for a title only. INVARIANT: such a guess has no
    deviations, so that it changes no request.
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

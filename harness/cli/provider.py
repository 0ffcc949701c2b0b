"""Which model answers: flags and environment in, an adapter out; a file in the workspace never has a say."""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import UsageError
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat

DEFAULT_MODEL = "gpt-5"
"""Asked for when neither --model nor HARNESS_MODEL names one."""

NO_PROVIDER = """\
no model to talk to. Three ways out:
  export OPENAI_API_KEY=...                       the OpenAI API (or any provider with OPENAI_BASE_URL)
  export OPENAI_BASE_URL=http://localhost:11434/v1  a local server; name its model with --model
  harness demo                                    a scripted model, without key or network"""

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH")


def model_from(environment: Mapping[str, str], *, model: str | None, base_url: str | None) -> OpenAIChat:
    """Return the adapter for the model that flags and environment name.

    Raises UsageError if there is neither a key nor a base URL.
    """
    key = environment.get("OPENAI_API_KEY", "").strip()
    url = base_url or environment.get("OPENAI_BASE_URL", "").strip() or None
    if not key and url is None:
        raise UsageError(NO_PROVIDER)
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"the base URL must begin with http:// or https://, not {url!r}")
    name = model or environment.get("HARNESS_MODEL", "").strip() or DEFAULT_MODEL
    # Local servers want no key, the SDK wants one: any text will do.
    return OpenAIChat(name, Endpoint(base_url=url, api_key=key or "none"))


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables that look secret by their name: the log masks them."""
    named = ((name.upper().replace("AUTHOR", ""), value) for name, value in environment.items())  # GIT_AUTHOR_NAME
    return [value for name, value in named if any(word in name for word in _SECRET_WORDS)]

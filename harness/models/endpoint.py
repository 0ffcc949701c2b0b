"""Address, bounds and quirks of a model's server. The user's settings fill these records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from harness.declared_types import CheckedRecord
from harness.model import ModelSettings
from harness.models.sight import AttachmentSource

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that name trusted authorities for the SDK's HTTP client; the first one that is set counts."""
OTHER_CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Such variables of other programs. Not used for requests, only for advice in error texts."""


class Deadlines(CheckedRecord):
    """Time limits of one request, in seconds; each is above 0."""

    connect: float = 10.0
    first_event: float = 600.0
    """Time from the end of the request to the first event with data. A local server may need minutes for a long prompt."""
    idle: float = 300.0
    """Time between two events with data. Comments that only keep the connection alive do not count."""
    total: float = 3600.0
    """Time of one try from start to end."""


class ReplyBounds(CheckedRecord):
    """Size limits of one reply. A larger reply is an error, and none of its calls run."""

    bytes: int = 256 * 1024 * 1024
    """Maximum size of the body after decompression, far above a model's output. Limits memory use."""
    event_bytes: int = 32 * 1024 * 1024
    """Maximum size of one event, or of a reply that is one document. Decoding it takes many times its size."""
    events: int = 4_000_000
    calls: int = 128
    argument_characters: int = 12_000_000
    """Maximum number of characters in the arguments of one call."""


class CacheMarks(Enum):
    """Place of the cache marks in a request (`cache_control`). A server caches the request up to each mark."""

    NOWHERE = "nowhere"
    MESSAGES = "messages"
    """The places that the Messages API defines."""
    PARTS = "parts"
    """The last part of a message's content, for Claude behind chat completions."""
    RESULTS = "results"
    """Same as `PARTS`, but next to the content of a tool result."""


class Quirks(CheckedRecord):
    """Known deviations of a server from the API."""

    stream: bool = True
    """Whether replies may be asked for as event streams."""
    usage: bool = True
    """Whether a stream may be asked for its usage (`stream_options`)."""
    echo: tuple[str, ...] = ("reasoning_content", "reasoning_details")
    """Fields of a reply's message to send back in later requests."""
    wanted_echo: str = ""
    """One of the `echo` fields that every assistant message must hold. Empty if none is required."""
    output_field: str = "max_tokens"
    """Chat completions' field for the maximum output; OpenAI's is `max_completion_tokens`."""
    nine_character_ids: bool = False
    """Whether call ids must be nine letters and digits (Mistral)."""
    encrypted_reasoning: bool = True
    """Whether reasoning may be asked for in encrypted form (`include`); only in the Responses API."""
    cache_marks: CacheMarks = CacheMarks.MESSAGES
    """Place of the marks for the cache."""
    adaptive_thinking: bool = True
    """Whether a request with an effort setting may ask for adaptive thinking (`thinking`); only in the Messages API."""
    most_output: int = 0
    """Maximum `max_tokens` of the model, from settings or its server; 0 if unknown. Only in the Messages API."""


class Endpoint(CheckedRecord):
    """A server that speaks one of the APIs."""

    base_url: str | None = None
    """Base URL. If `None`, the SDK reads OPENAI_BASE_URL, and uses the OpenAI API if that is not set."""
    api_key: str | None = None
    """API key. If `None`, the SDK reads OPENAI_API_KEY."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key, named in error texts. Empty if no key is needed."""
    azure_api_version: str = ""
    """API version of an Azure resource at `base_url`, addressed by deployment. Empty for other servers."""
    anthropic_version: str = ""
    """Version of Anthropic's Messages API; the key is sent as `x-api-key`. Empty for servers of other APIs."""
    attempts: int = 5
    """Maximum number of tries of one request, including the first; at least 1."""
    retry_seconds: float = 300.0
    """Seconds after the start of a request in which another try may begin."""
    deadlines: Deadlines = Deadlines()
    bounds: ReplyBounds = ReplyBounds()
    quirks: Quirks = Quirks()
    settings: ModelSettings = ModelSettings()
    """Settings to send with each request."""
    certificate_paths: Mapping[str, str] = {}
    """Values of the environment variables for trusted authorities, by name of the variable."""
    attachments: AttachmentSource | None = None
    """Source of the bytes of attachments; `None` for a model that reads only text."""


ANTHROPIC_VERSION = "2023-06-01"
"""Newest version of the Messages API (platform.claude.com/docs/en/api/versioning)."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Usual host names of this machine."""

_LOOPBACK = re.compile(r"https?://(localhost|127(?:\.\d+){3}|\[::1\])(?::|/|$)", re.IGNORECASE)


def shown_address(url: str) -> str:
    """Return an address without the parts that may be secret: user, password, query."""
    return re.sub(r"//[^/]*@", "//", url.partition("?")[0]).rstrip("/")


def loopback_host(url: str) -> str:
    """Return the host of an address, in lower case, if it is this machine; else an empty string."""
    match = _LOOPBACK.match(url)
    return match[1].lower() if match is not None else ""


def is_local(url: str) -> bool:
    """Return whether the host of an address is this machine."""
    return bool(loopback_host(url))

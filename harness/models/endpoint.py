"""Address and bounds of a model, as data that a person's settings fill."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from harness.model import ModelSettings
from harness.models.sight import AttachmentSource
from harness.record import Record

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables from which the SDK's HTTP client takes trusted authorities; the first that is set counts."""
OTHER_CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The same for other programs. Not read here."""


class Deadlines(Record):
    """Time limits of one request, in seconds; each is above 0."""

    connect: float = 10.0
    first_event: float = 600.0
    """From the end of the request to the first event with data: a local server may read a long prompt for minutes."""
    idle: float = 300.0
    """Between two events with data; comments that only keep the connection alive do not count."""
    total: float = 3600.0
    """For one try, start to end."""


class ReplyBounds(Record):
    """Size limits of one reply. A larger reply is an error, and none of its calls run."""

    bytes: int = 256 * 1024 * 1024
    """Maximum size of the body, after decompression: a memory bound far above a model's output."""
    event_bytes: int = 32 * 1024 * 1024
    """Maximum size of one event, or of a reply that is one document. Decoding it takes many times its size."""
    events: int = 4_000_000
    calls: int = 128
    argument_characters: int = 12_000_000
    """Maximum number of characters in the arguments of one call."""


class CacheMarks(Enum):
    """Place of the marks up to which a server caches a request (`cache_control`)."""

    NOWHERE = "nowhere"
    MESSAGES = "messages"
    """The Messages API, which defines them."""
    PARTS = "parts"
    """Chat completions of Claude: the last part of a message's content."""
    RESULTS = "results"
    """The same, but next to the content of a tool result."""


class Quirks(Record):
    """Known deviations of a server from the API."""

    stream: bool = True
    """Whether replies may be asked for as event streams."""
    usage: bool = True
    """Whether a stream may be asked for its usage (`stream_options`)."""
    echo: tuple[str, ...] = ("reasoning_content", "reasoning_details")
    """Fields of a reply's message that the server wants back with it."""
    wanted_echo: str = ""
    """One of these fields that every assistant message must hold; empty where it may be left out."""
    output_field: str = "max_tokens"
    """Chat completions' field for the maximum output; OpenAI's is `max_completion_tokens`."""
    nine_character_ids: bool = False
    """Whether call ids must be nine letters and digits (Mistral)."""
    encrypted_reasoning: bool = True
    """Whether reasoning may be asked for in encrypted form (`include`); only in the Responses API."""
    cache_marks: CacheMarks = CacheMarks.MESSAGES
    """Place of the marks for the cache."""
    adaptive_thinking: bool = True
    """Whether a request that says how much to think may ask for it (`thinking`); only in the Messages API."""
    most_output: int = 0
    """The model's greatest `max_tokens`, from settings or its server; 0 if unknown. Only in the Messages API."""


class Endpoint(Record):
    """A server that speaks one of the APIs."""

    base_url: str | None = None
    """Base URL. If `None`, the SDK reads OPENAI_BASE_URL, and uses the OpenAI API if that is not set."""
    api_key: str | None = None
    """API key. If `None`, the SDK reads OPENAI_API_KEY."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds the key, for texts that say what to set; empty where none is wanted."""
    azure_api_version: str = ""
    """Not empty: `base_url` is an Azure resource, reached by deployment and API version."""
    anthropic_version: str = ""
    """Not empty: the server speaks Anthropic's Messages API of this version, and takes the key as `x-api-key`."""
    attempts: int = 5
    """Tries of one request, the first included; at least 1."""
    retry_seconds: float = 300.0
    """The longest that one request is tried again for, waits included."""
    deadlines: Deadlines = Deadlines()
    bounds: ReplyBounds = ReplyBounds()
    quirks: Quirks = Quirks()
    settings: ModelSettings = ModelSettings()
    """Settings of each request besides the conversation."""
    certificate_paths: Mapping[str, str] = {}
    """Values of the environment's variables for authorities, by variable, for texts that say what to set."""
    attachments: AttachmentSource | None = None
    """Source of the bytes of attachments; `None` for a model that reads text alone."""


ANTHROPIC_VERSION = "2023-06-01"
"""Version of the Messages API, its newest (platform.claude.com/docs/en/api/versioning)."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names by which people write this machine."""

_LOOPBACK = re.compile(r"https?://(localhost|127(?:\.\d+){3}|\[::1\])(?::|/|$)", re.IGNORECASE)


def shown_address(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    return re.sub(r"//[^/]*@", "//", url.partition("?")[0]).rstrip("/")


def loopback_host(url: str) -> str:
    """Return the host of an address, in lower case, if it is this machine itself; else nothing."""
    match = _LOOPBACK.match(url)
    return match[1].lower() if match is not None else ""


def is_local(url: str) -> bool:
    """Say whether an address leads to this machine itself."""
    return bool(loopback_host(url))

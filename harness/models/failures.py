"""Classify the error of one try of a request by its status and the provider's text, and decide whether to try again.

An error may arrive with an error status, or inside an answer with a success status. Both are handled alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from harness.errors import CutReply, ModelError, ModelFault
from harness.record import Record
from harness.regex import regex

EXCERPT_CHARACTERS = 200
"""Maximum number of characters of a provider's own text in an error message."""
MIN_SECRET_CHARACTERS = 6
"""Minimum length of a key to mask. Shorter keys are placeholders for local servers, and may be ordinary words."""


def excerpt(text: str, secret: str = "") -> str:
    """Return `text` on one line, the secret masked, cut to EXCERPT_CHARACTERS."""
    masked = _masked(text, secret.strip())
    start = masked[
        : 20 * EXCERPT_CHARACTERS
    ]  # bounded for speed, but not too small: a page may begin with much white space
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + "..."


def _masked(text: str, secret: str) -> str:
    """Return `text` with the secret masked in every form: plain, escaped, or with invisible characters inside."""
    if len(secret) < MIN_SECRET_CHARACTERS:
        return text
    for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        text = text.replace(form, "[key]")
    hidden = "[^!-~]*".join(re.escape(character) for character in secret)
    start = text[: 20 * EXCERPT_CHARACTERS + 2 * len(secret)]
    return re.sub(hidden, "[key]", start)


def provider_message(value: object, secret: str = "") -> str:
    """Return the text of a provider's error value, as an excerpt; empty if it has none."""
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        inner = _told_behind(value) or next(
            (value[key] for key in ("message", "detail", "error") if value.get(key)), None
        )
        if inner is None:
            break
        value = inner
    if isinstance(value, str):
        return excerpt(value, secret)
    try:
        return excerpt(json.dumps(value, default=str), secret) if value else ""
    except RecursionError:
        return ""


def _told_behind(value: dict[object, object]) -> object:
    """Return the error of the provider behind OpenRouter; `None` if missing.

    OpenRouter's own text is only "Provider returned error". The original error is `raw` in `metadata`, mostly JSON as
    text (openrouter.ai/docs/api-reference/errors).
    """
    metadata = value.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    try:
        return json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        return raw


def join_pairs(text: str, errors: str = "surrogatepass") -> str:
    """Return `text` with each surrogate pair that arrived in two pieces joined; `errors` handles lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors)
    return text


WORDS_CHARACTERS = 10_000
"""Maximum number of characters of a provider's text that are searched, for example for the refused field."""

_PASSING_STATUSES = frozenset((408, 409, 425, 429))
_QUOTA = frozenset(
    (
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "payment_required",
    )
)
_CONTENT = frozenset(
    (
        "content_policy_violation",
        "content_filter",
        "responsibleaipolicyviolation",
        "moderation_blocked",
        "invalid_prompt",
    )
)
_CONTEXT = frozenset(
    "context_length_exceeded exceed_context_size_error string_above_max_length model_max_prompt_tokens_exceeded "
    "model_context_window_exceeded context_window_exceeded request_too_large tokens_limit_reached".split()
)
EMPTY_ANSWER = "empty_answer"
"""Code of a refusal created by harness, for a success status with an empty body."""
_KEY = frozenset(("invalid_api_key", "authentication_error", "permission_error", "permission_denied", "unauthorized"))
_MISSING = frozenset(("model_not_found", "not_found_error", "deploymentnotfound", "deployment_not_found"))
# Groq sends the second code for a call that its parser could not read. Another try may be well formed.
_BAD_CALL = frozenset(("tool_use_failed", "failed_generation"))
_BUSY = frozenset(
    "overloaded overloaded_error server_error internal_server_error internal_error api_error engine_overloaded "
    "service_unavailable server_is_overloaded rate_limit_exceeded rate_limit_error rate_limited slow_down "
    "timeout timeout_error resource_exhausted unavailable too_many_requests".split()
)
# Texts about a conversation that is too long. They mention the context, the prompt with a word such as "exceed", or a limit.
# tests/models/overflow_texts.txt has such texts of providers, and texts of other errors that resemble them.
_TOO_LONG = regex(
    r"context.?(length|window|size|limit|shift)|maximum context|exceeds? (the )?(available )?context|"
    r"(?<!\w)(prompt|inputs?\b|messages?\b|conversation|tokens?\b)[^.;]{0,80}?(\bexceed|\btoo (long|large)|"
    r"\b(longer|more|greater|larger) than|\bmust (have|be) (less|<=)|\bshould be \[|\bonly supports up to)|"
    r"\btoo many (input |prompt )?tokens|(input|prompt) token count|reduce the length|token limit|"
    r"maximum (number of tokens allowed|(prompt|(allowed )?input|model) length)|max_tokens must be at least 1, got -",
    re.IGNORECASE,
)
# Texts with similar words that are about the tokens of a reply, about images, or about limits per minute.
_NOT_TOO_LONG = regex(r"max_\w*tokens\W+must be less|\bimages?\b", re.IGNORECASE)
_THROTTLED = regex(r"throttl|please wait|rate.?limit|too many requests|tokens per (minute|day)", re.IGNORECASE)
_AGAINST_POLICY = regex(
    r"content (management )?policy|usage policy|content.?filter|was flagged|flagged (for|as)|safety system",
    re.IGNORECASE,
)
_BUSY_WORDS = regex(
    r"overloaded|rate.?limit|too many requests|temporar(il)?y|try again|timed? ?out|unavailable|at capacity|"
    r"internal (server )?error|bad gateway|upstream",
    re.IGNORECASE,
)
# After a rate limit without a stated time the wait is longer than after other failures: most limits count per minute.
_RATE_CODES = frozenset(
    "rate_limit_exceeded rate_limit_error rate_limited slow_down too_many_requests resource_exhausted".split()
)
_RATE_WORDS = regex(r"rate.?limit|too many requests")

# Times that providers write into an error. OpenAI, Groq: "Please try again in 1m30.5s". Azure: "Please retry after 26 seconds".
# Gemini: "Please retry in 12.3s", and the field `"retryDelay": "12s"`; others have `retry_after`, `retryAfterMs`,
# `resets_in_seconds`, and Hugging Face `estimated_time` while a model loads.
_SPAN = r"(?:\d+(?:\.\d+)?|\.\d+)\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
_SPANS = rf"{_SPAN}(?:(?:,? and |,? )?{_SPAN})*"
_DURATION = regex(rf"\s*({_SPANS})\s*")
_NUMBER_AND_UNIT = regex(r"(\d*\.?\d+)\s*(ms|milli|[smhd])")
_UNIT_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_WORDED_WAIT = regex(
    r"(?:retry|try again|wait|reset|\bavailable (?:again )?(?:in|after))[^.\d]{0,40}?"
    rf"(?<![\w.])({_SPANS})(?![\w-])"
)
_WAIT_FIELD = regex(
    r"(?:retry[_-]?after|retry[_-]?delay|resets?[_-]?in|estimated[_-]?time)[_-]?"
    r"(?P<unit>ms|milli\w*|s|sec|seconds)?\W{1,6}(?P<number>\d+(?:\.\d+)?)(?![\w.])"
)
_NO_TOOLS = regex(r"not support (the )?(tool|function)|support tool use|tools? (is|are) not supported", re.IGNORECASE)

# OpenAI: "Invalid content type. image_url is only supported by certain models". llama-server: "image input is not supported -
# hint: if this is unexpected, you may need to provide the mmproj". OpenRouter: "No endpoints found that support image input".
# DeepSeek: "unknown variant `image_url`, expected `text`". vLLM: "is not a multimodal model", "At most 0 image(s) may be
# provided". LM Studio: "does not support image input". Ollama: "missing data required for image input".
# Groq: "'messages.0.content' : value must be a string".
_NO_IMAGES = regex(
    r"image_url is only supported|variant `?image_url|(that|not|n't) supports? (image|vision)(?! (format|type|size))|"
    r"((image|vision|multimodal).?(inputs?|content)|vision) (is|are) not supported|mmproj|not a (vision|multimodal) model|"
    r"at most 0 image|required for image input|content\W*(value )?must be a string",
    re.IGNORECASE,
)
_AN_IMAGE = regex(r"\bimages?\b|image_url|input_image", re.IGNORECASE)
# Texts that a proxy may put inside its own text. Anthropic: "image exceeds 5 MB maximum: 5272940 bytes > 5242880
# bytes", "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels", "Could not
# process image". OpenAI: "You uploaded an unsupported image". Gemini: "Unable to process input image".
_WRAPPED_IMAGE = regex(r"image exceeds|image dimensions|process (input )?image|unsupported image")

_SHORTER = (
    "At the prompt, /compact or /clear makes it shorter; else give a smaller task, or take a model with more room."
)


class ProviderRefusal(Record):
    """A provider's error in place of a reply."""

    status: int
    """The HTTP status, or the status that an error inside an answer names. 0 if there is none."""
    codes: tuple[str, ...]
    """The codes and types of the error that are not empty, in lower case."""
    message: str
    """The provider's message on one short line, with the key masked."""
    words: str
    """The provider's text in lower case, at most WORDS_CHARACTERS. For searches only: it may hold the key."""

    @property
    def is_rate_limit(self) -> bool:
        """Whether the server refused the request because of a rate limit on requests or tokens."""
        if self.status == 429 or _RATE_CODES.intersection(self.codes):
            return True
        return self.status == 0 and _RATE_WORDS.search(self.words) is not None

    @property
    def wait_seconds(self) -> float | None:
        """The wait in seconds that the error's text or fields ask for. `None` if they name none."""
        if (worded := _WORDED_WAIT.search(self.words)) is not None:
            return duration(worded[1])
        field = _WAIT_FIELD.search(self.words)
        if field is None or not (number := float(field["number"])):
            return None
        return number / 1000 if (field["unit"] or "").startswith("m") else number


def duration(text: str) -> float | None:
    """Parse a duration such as `1m30.5s` or `20 seconds`; return seconds. `None` for any other text, and for zero."""
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        return None
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _NUMBER_AND_UNIT.findall(match[1])) or None


class FailedTry(ModelError):
    """One failed try. Callers of the model never see it: another try follows, or the error of `lasting` is raised."""

    def __init__(
        self,
        text: str,
        *,
        fault: ModelFault,
        passing: bool = False,
        cut: bool = False,
        retry_after: float | None = None,
        refusal: ProviderRefusal | None = None,
        nobody_there: bool = False,
    ) -> None:
        super().__init__(text, fault=fault)
        self.passing = passing
        """Whether the failure may pass, so that the same request may succeed later."""
        self.cut = cut
        """Whether a reply had begun and was cut off."""
        self.retry_after = retry_after if retry_after is not None or refusal is None else refusal.wait_seconds
        """The wait in seconds that the provider asks for. `None` if it names none."""
        self.refusal = refusal
        self.nobody_there = nobody_there
        """Whether the address is on this machine and no program listens there. Waiting hardly helps then."""
        self.hint = ""
        """Advice to append to the error if this was the last try."""

    def lasting(self, more: str = "") -> ModelError:
        """Return the error to raise after the last try."""
        return (CutReply if self.cut else ModelError)(str(self) + more + self.hint, fault=self.fault, usage=self.usage)


class ImageFault(Enum):
    """The reason of a refusal, as far as it is about images."""

    NONE = "none"
    """Not about images."""
    SOME = "some"
    """An image is too large or damaged, or there are too many."""
    ALL = "all"
    """The model accepts no images."""


def image_fault(refusal: ProviderRefusal) -> ImageFault:
    """Return whether a refusal is about some images or about all. llama-server and Ollama send it with status 500."""
    if refusal.status in {0, 400, 404, 415, 422, 500} and _NO_IMAGES.search(refusal.words):
        return ImageFault.ALL
    if refusal.status not in {0, 400, 415, 422} or _kind(refusal).fault is not ModelFault.REQUEST:
        return ImageFault.NONE
    mention = _AN_IMAGE.search(refusal.message) or _WRAPPED_IMAGE.search(refusal.words)
    return ImageFault.SOME if mention else ImageFault.NONE


class _Kind(NamedTuple):
    fault: ModelFault
    passing: bool


def refusal_of(value: object, *, status: int = 0, secret: str = "") -> ProviderRefusal:
    """Parse an error value of any type; `status` is the error status of the answer, 0 if it has none."""
    error = value
    for _ in range(
        5
    ):  # Gemini wraps its errors in a list, many servers in `error`; Azure puts the reason in `innererror`
        if isinstance(error, list) and error:
            error = error[0]
        elif isinstance(error, dict) and isinstance(error.get("error"), dict):
            error = error["error"]
        else:
            break
    codes: list[str] = []
    if isinstance(error, dict):
        inner = error.get("innererror")
        field_name = (
            error.get("code"),
            error.get("type"),
            error.get("status"),
            isinstance(inner, dict) and inner.get("code"),
        )
        for name in field_name:
            if isinstance(name, str) and name and not name.isdigit():
                codes.append(name.lower())
            elif not status and name and (number := _status(name)):
                status = number
    try:
        words = value if isinstance(value, str) else json.dumps(value, default=str)
    except RecursionError:
        words = ""
    message = provider_message(value, secret)
    return ProviderRefusal(status=status, codes=tuple(codes), message=message, words=words[:WORDS_CHARACTERS].lower())


def refused(
    refusal: ProviderRefusal, *, model: str, address: str, key_variable: str, headers: Mapping[str, str] | None = None
) -> FailedTry:
    """Return the failure for a request that was answered with an error status; `headers` have lower-case names.

    `key_variable` names the environment variable that holds the key, or is empty. The header `x-should-retry` says
    whether to try again, and takes precedence over the status.
    """
    fault, passing = _kind(refusal)
    if fault in {ModelFault.SERVER, ModelFault.REQUEST}:
        word = (headers or {}).get("x-should-retry", "").strip().lower()
        passing = {"true": True, "false": False}.get(word, passing)
    message = f"HTTP {refusal.status}: {refusal.message}" if refusal.message else f"HTTP {refusal.status}"
    text = _text(fault, refusal, message, model=model, address=address, key_variable=key_variable)
    return FailedTry(text, fault=fault, passing=passing, refusal=refusal)


def broken_off(value: object, secret: str = "", *, words: str = "The provider broke the reply off") -> FailedTry:
    """Return the failure for an error inside an answer with a success status; `value` is the content of its error field."""
    refusal = refusal_of(value, secret=secret)
    fault, passing = _kind(refusal)
    text = f"{words}: {refusal.message}"
    if fault is ModelFault.CONTEXT:
        text += f" (The conversation is too long for this model. {_SHORTER})"
    return FailedTry(text, fault=fault, passing=passing, refusal=refusal)


def _status(value: object) -> int:
    """Parse an error's code as an HTTP error status; 0 if it is not one."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if re.fullmatch("[45][0-9][0-9]", text) else 0


def _says_too_long(refusal: ProviderRefusal) -> bool:
    """Return whether a refusal is about a conversation that is too long. llama-server and Ollama use status 500 for it."""
    if refusal.status not in {0, 400, 422, 500} or _TOO_LONG.search(refusal.message) is None:
        return False
    return not (_NOT_TOO_LONG.search(refusal.message) or _THROTTLED.search(refusal.message))


def _kind(refusal: ProviderRefusal) -> _Kind:
    codes, status = frozenset(refusal.codes), refusal.status
    if codes & _QUOTA or status == 402:
        return _Kind(ModelFault.QUOTA, passing=False)
    if codes & _BAD_CALL:
        return _Kind(ModelFault.REPLY, passing=True)
    if codes & _CONTENT or (status in {0, 400, 403, 422} and _AGAINST_POLICY.search(refusal.message)):
        return _Kind(ModelFault.CONTENT, passing=False)
    if codes & _CONTEXT or status == 413 or _says_too_long(refusal):
        return _Kind(ModelFault.CONTEXT, passing=False)
    if _NO_TOOLS.search(refusal.message) or "--jinja" in refusal.words:
        return _Kind(ModelFault.REQUEST, passing=False)
    if status in _PASSING_STATUSES or status >= 500 or (status in {0, 400} and _THROTTLED.search(refusal.message)):
        return _Kind(ModelFault.SERVER, passing=True)
    if status in {401, 403} or codes & _KEY:
        return _Kind(ModelFault.AUTHENTICATION, passing=False)
    if status == 404 or codes & _MISSING:
        return _Kind(ModelFault.NOT_FOUND, passing=False)
    if status == 0 and (codes & _BUSY or _BUSY_WORDS.search(refusal.message)):
        return _Kind(ModelFault.SERVER, passing=True)
    return _Kind(ModelFault.REQUEST, passing=False)


def _text(  # noqa: C901, PLR0911 - a table
    fault: ModelFault, refusal: ProviderRefusal, text: str, *, model: str, address: str, key_variable: str
) -> str:
    match fault:
        case ModelFault.AUTHENTICATION if refusal.status == 403:
            key = f"the key in {key_variable}" if key_variable else "your key"
            return f"{address} does not allow this ({text}). See whether {key} may use model {model!r}."
        case ModelFault.AUTHENTICATION if not key_variable:
            return (
                f"{address} wants an API key ({text}), and none is set for it. Name the variable that holds one as "
                "key_variable in the configuration, or the provider with --provider."
            )
        case ModelFault.AUTHENTICATION:
            return (
                f"{address} refused the API key ({text}). Set {key_variable} to a key that is valid there, or name the "
                "provider that the key is for with --provider or --base-url."
            )
        case _ if image_fault(refusal) is ImageFault.ALL:
            return f"Model {model!r} at {address} takes no pictures ({text}); `pictures = false` says so beforehand."
        case _ if image_fault(refusal) is ImageFault.SOME:
            return f"Model {model!r} at {address} refused a picture ({text})."
        case ModelFault.NOT_FOUND:
            return (
                f"Unknown model {model!r} at {address} ({text}). Check the model's name, and the base URL: it "
                "usually ends in /v1."
            )
        case ModelFault.CONTEXT:
            return f"The conversation is too long for model {model!r} ({text}). {_SHORTER}"
        case ModelFault.CONTENT:
            return (
                f"The provider's content policy refused the request ({text}). Undo the last turn, or word it otherwise."
            )
        case ModelFault.QUOTA:
            return f"{address} wants money ({text}). Waiting does not help: see the account's quota and billing."
        case ModelFault.REPLY:
            return f"The model wrote a call that its own server could not read ({text})."
        case ModelFault.SERVER:
            return f"The provider could not answer ({text})."
        case _ if "--jinja" in refusal.words:
            return f"The server cannot offer tools ({text}). Start llama-server with --jinja."
        case _ if _NO_TOOLS.search(refusal.message):
            return f"Model {model!r} cannot call tools at {address} ({text}). Choose a model that can."
        case _:
            return f"The provider refused the request ({text})."

"""The input of a hook from its agent: one JSON object, parsed strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.record import Record
from harness.text.strict_json import NotJsonError, is_deeper, read_line

MOST_BYTES = 32 * 1024 * 1024
"""Maximum size of one event. Claude sends a whole file back with the outcome of an edit (`originalFile`)."""
MOST_LEVELS = 100
"""Maximum depth of nested lists and objects."""


class EventError(Exception):
    """Raised for an invalid event. Its call is refused."""


class When(Enum):
    """The occasion of an event."""

    BEFORE = "before"
    """A tool is about to be called. This event gets an answer."""
    AFTER = "after"
    """A tool call succeeded, according to the agent."""
    FAILED = "failed"
    """A tool call ended with an error."""
    PROMPT = "prompt"
    """A person sends a prompt. It gets an answer too."""
    SETTINGS = "settings"
    """A settings file of the agent changed during the session. It gets an answer too."""
    ENDED = "ended"
    """The session is over."""


class HookEvent(Record):
    """One event in a common form. All fields are unverified statements of the agent."""

    when: When
    session: str
    """The agent's name of its session."""
    cwd: str = ""
    """Current folder of the agent's shell."""
    tool: str = ""
    """The agent's name of the tool."""
    arguments: Mapping[str, JsonValue] = {}
    use_id: str = ""
    """The agent's name of the call. Empty if it gives none."""
    mode: str = ""
    """The agent's own permission mode."""
    subagent: str = ""
    """Name of the calling subagent; empty for the main agent."""
    transcript: str = ""
    """Path of the transcript that the agent writes about its session."""
    servers: Sequence[str] | None = None
    """Names of the agent's MCP servers, as they begin the names of tools. `None` if the event does not have them."""
    response: JsonValue = None
    """Result of the call, for an event after it."""
    prompt: str = ""
    """Text of the prompt, without the files that the agent added to it."""
    sent_files: Sequence[str] = ()
    """Files that the agent added to the prompt, as far as the event names them."""
    edited: bool = False
    """Whether the person changed the arguments at the agent's prompt."""


def parse(data: bytes) -> Mapping[str, JsonValue]:
    """Parse the JSON object of an event. Raises EventError unless it is one strictly valid object.

    Duplicate keys, NUL in a text, invalid UTF-8, NaN, extreme numbers, deep nesting and more than MOST_BYTES are invalid.
    """
    if len(data) > MOST_BYTES:
        raise EventError(f"the event has more than {MOST_BYTES:,} bytes")
    try:
        value = read_line(data)
    except NotJsonError as error:
        raise EventError(f"the event is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise EventError("the event is not a JSON object")
    if is_deeper(value, MOST_LEVELS):
        raise EventError("the event is nested too deep")
    _check(value)
    return value


def text(fields: Mapping[str, JsonValue], name: str) -> str:
    """Return a text field of an event; empty if missing. Raises EventError for another type."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise EventError(f"{name} is not a text")
    return value


def needed(fields: Mapping[str, JsonValue], name: str) -> str:
    """Return a required text field of an event. Raises EventError if it is missing, empty or of another type."""
    value = text(fields, name)
    if not value:
        raise EventError(f"{name} is missing")
    return value


_ADDED = "\n--- Content from referenced files ---"


def prompt_of(fields: Mapping[str, JsonValue]) -> tuple[str, Sequence[str]]:
    """Return the prompt of an event of Gemini CLI or of its descendants, and the files that the agent added to it."""
    prompt, _, added = text(fields, "prompt").partition(_ADDED)
    lines = (line.removesuffix(":") for line in added.splitlines() if line.endswith(":"))
    prefix = "Content from "
    return prompt, [line.removeprefix(prefix).removeprefix("@") for line in lines if line.startswith(prefix)]


def table(fields: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    """Return an object field of an event. Raises EventError if it is missing or of another type."""
    value = fields.get(name)
    if not isinstance(value, dict):
        raise EventError(f"{name} is not an object")
    return value


def _check(value: JsonValue) -> None:
    """Raise EventError for a text with NUL or a lone surrogate, which no file name and no command can contain."""
    match value:
        case str():
            if "\0" in value or not _is_unicode(value):
                raise EventError("a text holds NUL or half a character")
        case dict():
            for key, item in value.items():
                _check(key)
                _check(item)
        case list():
            for item in value:
                _check(item)
        case _:
            pass


def _is_unicode(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

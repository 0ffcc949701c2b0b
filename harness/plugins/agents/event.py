"""The input of a hook from its agent: one JSON object, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from harness.actions import JsonValue
from harness.record import Record
from harness.text.strict_json import NotJsonError, is_deeper, read_line

MOST_BYTES = 32 * 1024 * 1024
"""Maximum size of one event. Claude sends a whole file back with the outcome of an edit (`originalFile`)."""
MOST_LEVELS = 100
"""Maximum depth of nested lists and objects."""


class EventError(Exception):
    """An event that is not understood: the call that it is about is refused."""


class When(Enum):
    """The occasion of an event."""

    BEFORE = "before"
    """A tool is about to be called: the one event that is answered."""
    AFTER = "after"
    """A tool call ended, in the agent's eyes well."""
    FAILED = "failed"
    """A tool call ended with an error."""
    ENDED = "ended"
    """The session is over."""


class HookEvent(Record):
    """One event, in our words. All of it is the agent's claim."""

    when: When
    session: str
    """The agent's name of its session."""
    cwd: str = ""
    """The folder that the agent's shell is in."""
    tool: str = ""
    """The agent's name of the tool."""
    arguments: Mapping[str, JsonValue] = {}
    use_id: str = ""
    """The agent's name of the call; empty where it gives none."""
    mode: str = ""
    """The agent's own permission mode."""
    subagent: str = ""
    """Name of the calling subagent; empty for the main agent."""
    transcript: str = ""
    """The file in which the agent writes what happens in its session."""
    response: JsonValue = None
    """Result of the call, after it."""


def parse(data: bytes) -> Mapping[str, JsonValue]:
    """Return the object that an event is. Raises EventError for anything that is not plainly one JSON object.

    Not plain are a key twice, NUL in a text, invalid UTF-8, NaN, a number or a nesting beyond all measure, and too many bytes.
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
    """Return a text of an event; empty where it is missing. Raises EventError for something else than a text."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise EventError(f"{name} is not a text")
    return value


def needed(fields: Mapping[str, JsonValue], name: str) -> str:
    """Return a text that an event must have. Raises EventError."""
    value = text(fields, name)
    if not value:
        raise EventError(f"{name} is missing")
    return value


def table(fields: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    """Return an object of an event. Raises EventError where it is missing or something else."""
    value = fields.get(name)
    if not isinstance(value, dict):
        raise EventError(f"{name} is not an object")
    return value


def _check(value: JsonValue) -> None:
    """Raise EventError for a text that no file and no command can hold."""
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

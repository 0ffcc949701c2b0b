"""The subject of a hook (`HookCase`), its answer (`SaidByHook`), and a useless answer (`NoAnswerError`)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Action, JsonValue
from harness.decisions import Decision
from harness.log.vocabulary import CheckEvent
from harness.messages import ToolResult
from harness.record import Record


class HookCase(Record):
    """One subject for hooks. INVARIANT: secrets are masked in all its output."""

    event: CheckEvent
    session: str
    workspace: str
    action: Action | None = None
    """The call, for its kind and its folder; its arguments are in `judged`."""
    judged: Mapping[str, JsonValue] = {}
    """The same call as JSON, with its verdict; see gate/judged_json.py."""
    result: ToolResult | None = None
    """Result of the call, if it ran."""
    text: str = ""
    """The model's words, for an answer; the reason, for the end of a session."""
    again: bool = False
    """Whether the model answers anew, after a hook had something against its answer."""
    about: Mapping[str, JsonValue] = {}
    """Facts about a session that begins."""


class SaidByHook(Record):
    """A hook's answer; not yet masked, made visible or cut."""

    decision: Decision = Decision.AUTO
    """AUTO: nothing against it."""
    reason: str = ""
    note: str = ""
    ignored: str = ""
    """A word of it that would allow something: it means nothing."""


class NoAnswerError(ValueError):
    """Raised for an invalid answer of a hook, with the reason in words that are safe to show."""

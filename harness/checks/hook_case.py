"""What a hook is asked about (`HookCase`), what it said (`SaidByHook`), and that it said nothing of use (`NoAnswerError`)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Action, JsonValue
from harness.decisions import Decision
from harness.log.vocabulary import CheckEvent
from harness.messages import ToolResult
from harness.record import Record


class HookCase(Record):
    """One thing that hooks are asked about. INVARIANT: secrets are masked in everything that goes out of it."""

    event: CheckEvent
    session: str
    workspace: str
    action: Action | None = None
    """Of a call; for what it is and where it runs, never for its arguments, which are in `judged`."""
    judged: Mapping[str, JsonValue] = {}
    """The same call as JSON, with its verdict; see gate/judged_json.py."""
    result: ToolResult | None = None
    """What the call came to, where it ran."""
    text: str = ""
    """Of an answer: the model's words; of the end of a session: why it ended."""
    again: bool = False
    """Whether the model answers anew, after a hook had something against its answer."""
    about: Mapping[str, JsonValue] = {}
    """What is known of a session that begins."""


class SaidByHook(Record):
    """What a hook said; not yet masked, made visible or cut."""

    decision: Decision = Decision.AUTO
    """AUTO: nothing against it."""
    reason: str = ""
    note: str = ""
    ignored: str = ""
    """A word of it that would allow something: it means nothing."""


class NoAnswerError(ValueError):
    """What a hook printed is no answer; says why, in words that are safe to show."""

"""Which calls a person wants to see: every condition that is set must hold; pure, and reads no clock."""

from __future__ import annotations

from collections.abc import Iterator

from harness.actions import JsonValue
from harness.audit.calls import LoggedCall, text
from harness.log.order import LogRecord
from harness.record import Record

UNANSWERED = "unanswered"
"""The answer to ask for where a question has none in the log."""


class CallFilter(Record):
    """Conditions on a call; an empty one holds for every call."""

    tool: str = ""
    decision: str = ""
    answer: str = ""
    rule: str = ""
    """The id of a rule, or a part of what decided the call or a part of it: `rule x (file:line)`, a default, a built-in."""
    path: str = ""
    """A part of a path that the call named or changed, as far as the log has it."""
    since: str = ""
    """RFC 3339 in UTC, as the log writes it; the call was asked for at that time or later."""
    until: str = ""
    call: str = ""

    @property
    def is_set(self) -> bool:
        """Whether there is any condition."""
        return any(getattr(self, name) for name in type(self)._fields)

    def takes(self, call: LoggedCall) -> bool:
        """Say whether every condition holds for `call`."""
        return (
            self.tool in ("", call.tool)
            and self.decision in ("", call.decided)
            and (not self.answer or self._has_answer(call))
            and self.call in ("", call.number)
            and (not self.since or call.time >= self.since)
            and (not self.until or call.time <= self.until)
            and (not self.rule or self._has_rule(call))
            and (not self.path or any(self.path in path for path in named_paths(call)))
        )

    def _has_answer(self, call: LoggedCall) -> bool:
        return bool(call.asked) and (text(call.answered, "answer") or UNANSWERED) == self.answer

    def _has_rule(self, call: LoggedCall) -> bool:
        every = [
            text(call.decision, "rule"),
            call.by,
            *(text(facet, "by") for facet in _objects(call.decision, "facets")),
        ]
        return any(self.rule in one for one in every)


def named_paths(call: LoggedCall) -> Iterator[str]:
    """Yield the paths that the log names for a call: those of its effects and parts, and the one that it changed.

    The log keeps the first 20 paths and the first 50 parts of a call.
    """
    yield text(call.outcome, "changed_path")
    for record in (call.decision, call.intent):
        effects = record.get("effects")
        for name in ("read", "write", "named"):
            paths = effects.get(name) if isinstance(effects, dict) else None
            yield from (path for path in paths if isinstance(path, str)) if isinstance(paths, list) else ()
    change = call.intent.get("change")
    if isinstance(change, dict):
        yield text(change, "path")
    for facet in _objects(call.decision, "facets"):
        if text(facet, "kind") == "PathAccess":
            yield text(facet, "facet").partition(" ")[2]


def _objects(record: LogRecord, name: str) -> list[dict[str, JsonValue]]:
    values = record.get(name)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []

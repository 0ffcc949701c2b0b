"""Helpers in the log's records: the session, the task and the usage of each. Never raises.

The texts are untrusted: make them safe before showing them.
"""

from __future__ import annotations

from harness.audit.calls import count_in, text, usage_in, word
from harness.log.order import LogRecord
from harness.messages import Usage
from harness.text.visible import visible_line

MOST_HELPERS = 10_000
"""Maximum number of helpers that are kept; further ones are ignored."""
_TITLE = 60


class Helper:
    """Facts about one helper."""

    def __init__(self, session: str, parent: str, call: str, number: int) -> None:
        """Initialize with all counts at 0."""
        self.session = session
        self.parent = parent
        """Session that started the helper."""
        self.call = call
        """Number of the call that started the helper."""
        self.number = number
        """Number of the helper in the parent session, from 1."""
        self.task = ""
        """Task of the helper. Untrusted text of a model."""
        self.stop = ""
        """Stop reason of the helper. Empty while it runs."""
        self.requests = 0
        self.usage = Usage()
        self.last_usage = Usage()
        """Usage of the helper's last reply, which tells the length of its conversation."""
        self.cost: float | None = 0.0
        """Cost in dollars. `None` if any part is unknown."""
        self.patch_file = ""
        """Path of the patch file with its changes. Untrusted text, not safe to show."""

    @property
    def name(self) -> str:
        """Its number and the beginning of its task, safe to show."""
        return f"helper {self.number} ({visible_line(self.task, _TITLE).strip()})" if self.task else self.title

    @property
    def title(self) -> str:
        """Its number."""
        return f"helper {self.number}"


class HelperTree:
    """The helpers of some sessions, collected from the records that `record` receives in order."""

    def __init__(self) -> None:
        """Initialize without helpers."""
        self._helpers: dict[str, Helper] = {}

    def record(self, record: LogRecord) -> Helper | None:
        """Add one record. Return the helper whose session wrote it, or `None`."""
        kind, session = record.get("kind"), text(record, "session")
        if kind == "session_started" and (parent := text(record, "parent")) and len(self._helpers) < MOST_HELPERS:
            called_by = word(record.get("parent_call"))
            self._helpers[session] = Helper(session, parent, called_by, count_in(record, "helper"))
        elif kind == "outcome" and (path := text(record, "patch_file")):
            for child in self.of(session):
                if child.call == word(record.get("call")):
                    child.patch_file = path
        helper = self._helpers.get(session)
        if helper is None:
            return None
        if kind == "user_message" and not helper.task:
            helper.task = text(record, "text")
        elif kind == "model_request":
            helper.requests += 1
        elif kind == "session_ended":
            helper.stop = text(record, "stop")
        elif "input_tokens" in record:
            _count(helper, record)
        return helper

    def of(self, session: str) -> tuple[Helper, ...]:
        """Return the helpers of one session, in order."""
        return tuple(helper for helper in self._helpers.values() if helper.parent == session)

    def get(self, session: str) -> Helper | None:
        """Return the helper that runs in a session, or `None`."""
        return self._helpers.get(session)


def _count(helper: Helper, record: LogRecord) -> None:
    used = usage_in(record)
    helper.usage += used
    if record.get("kind") == "model_response":
        helper.last_usage = used
    cost = record.get("cost")
    has_cost = isinstance(cost, int | float) and not isinstance(cost, bool)
    helper.cost = helper.cost + float(str(cost)) if has_cost and helper.cost is not None else None

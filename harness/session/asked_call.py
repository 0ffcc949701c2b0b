"""The program's side of a hook: places, policy, and approver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from harness.record import Record
from harness.regex import regex

if TYPE_CHECKING:
    from harness.actions import Action, JsonValue
    from harness.files.before_images import BeforeImages
    from harness.files.workspace import Workspace
    from harness.gate.approval import Approval
    from harness.gate.call_checks import CallChecks
    from harness.gate.grants_in_force import GrantStore
    from harness.gate.records import Advice
    from harness.log.action_log import ActionLog
    from harness.policy.grant_offers import Offer
    from harness.policy.policy import Policy
    from harness.policy.session_grants import Grant
    from harness.policy.verdict import Verdict
    from harness.redaction.redactor import Redactor

_PLAIN = regex(r"[A-Za-z0-9_./@%+,:-]+")


class AskedCall(Record):
    """A call for a person's decision, and its origin; see WaitingQuestion."""

    agent: str
    session: str
    workspace: str
    confinement: str
    level: str
    writes: tuple[str, ...]
    action: Action
    verdict: Verdict
    offer: Callable[[], Offer | str]
    """Works out what may be granted."""


class HookParts(Record):
    """See the module. What is a function here is made when an event needs it: each hook is a process of its own."""

    folder: str
    """Folder of the sessions of agents, a folder each."""
    home: str | None
    environment: Mapping[str, str]
    redactor: Redactor
    images: BeforeImages
    hidden: tuple[str, ...]
    """Our own folders, which commands cannot read."""
    policy_at: Callable[[Workspace, str], Policy]
    """Takes a workspace and the digest of a policy whose examples were tried before, and returns the policy that holds.
    Raises PolicyError."""
    new_log: Callable[[str], str]
    """Names a log for a session in a workspace."""
    note_head: Callable[[ActionLog, bool], None]
    """Notes the head of a log, which is closed or goes on."""
    grants_at: Callable[[str], tuple[Sequence[Grant], GrantStore | None]]
    """Returns the grants in a workspace, and the store for more."""
    ask: Callable[[AskedCall], Approval]
    """Asks a person if the agent cannot."""
    advise: Callable[[Policy, Action, Verdict], Advice]
    runner: str
    """The command line, quoted, of what runs a ticket; empty where no call is rewritten."""
    host_fields: Callable[[], Mapping[str, JsonValue]]
    """Returns further fields of a session's first record: user, host."""
    wait_seconds: float
    """Seconds to wait for another call of the same session, which may have to wait for a person."""
    checks: Callable[[Workspace], CallChecks]
    """Takes a workspace, and returns the person's own programs that check calls there."""
    clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext
    """Stops the limit on our own work meanwhile."""


def quoted(text: str) -> str:
    """Return a text as one word of a shell; as it is where nothing in it is special."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"

"""`HookParts`: everything that an agent's hook needs from the program, such as folders, policy and approver."""

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
    """A call that the user must decide on, and its origin. The fields are those of WaitingQuestion, but for the last two."""

    agent: str
    session: str
    workspace: str
    confinement: str
    level: str
    writes: tuple[str, ...]
    action: Action
    verdict: Verdict
    offer: Callable[[], Offer | str]
    """Returns the grant that can be offered, or the reason why there is none."""
    is_attended: bool = False
    """Whether a person may be there to begin `harness approve`. Then the question waits a minute for that."""
    has_waited: bool = False
    """Whether a question of this session has waited in vain for someone to answer. Then this one need not."""


class HookParts(Record):
    """See the module. Fields that are functions are evaluated on demand, since each hook is a process of its own."""

    folder: str
    """Folder with one folder for each session of an agent."""
    home: str | None
    environment: Mapping[str, str]
    redactor: Redactor
    images: BeforeImages
    hidden: tuple[str, ...]
    """Our own folders, which commands cannot read."""
    policy_at: Callable[[Workspace, str], Policy]
    """Takes a workspace and the digest of a policy whose examples were tried before; returns the policy in force.

    Raises PolicyError.
    """
    new_log: Callable[[str], str]
    """Takes a workspace; returns the path of a new log for a session there."""
    note_head: Callable[[ActionLog, bool], None]
    """Notes the head of a log. The flag says whether the log is closed."""
    grants_at: Callable[[str], tuple[Sequence[Grant], GrantStore | None]]
    """Returns the grants in a workspace, and the store for more."""
    ask: Callable[[AskedCall, Policy], Approval]
    """Asks the user about a call under a policy if the agent itself cannot."""
    advise: Callable[[Policy, Action, Verdict], Advice]
    runner: str
    """Quoted command line of the program that runs a ticket. Empty if calls are not rewritten."""
    host_fields: Callable[[], Mapping[str, JsonValue]]
    """Returns further fields of a session's first record: user, host."""
    wait_seconds: float
    """Seconds to wait for another call of the same session. That call may itself wait for the user."""
    checks: Callable[[Workspace], CallChecks]
    """Takes a workspace; returns the user's own hooks that check calls there."""
    stops_unjudged: Callable[[str], bool] = lambda workspace: True  # noqa: ARG005
    """Takes a workspace; returns whether a call that ran and was not allowed stops the session."""
    clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext
    """Context manager that pauses the time limit on the hook's own work."""
    policy_name: str = "that of the prompt"
    """The policies that the hook's command line names, for the user."""
    process: int = 0
    """Number of the process that the agent started. 0 for this one."""


def quoted(text: str) -> str:
    """Quote a text as one shell word. Text without special characters is returned unchanged."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"

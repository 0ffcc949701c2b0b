"""The grants in force, and the policy together with them: added at a question, kept for the workspace, revoked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness.actions import Action
from harness.errors import GateError
from harness.gate.approval import Answer, Approval
from harness.gate.records import CallRecords, Proposal
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.session_grants import (
    SESSION_GRANTS,
    Grant,
    GrantPattern,
    GrantScope,
    Offer,
    kept_id,
    offer_for,
    with_grants,
)
from harness.policy.verdict import Verdict

KeepGrant: TypeAlias = Callable[[GrantPattern], Origin | str]
"""Keeps a grant for the workspace, and returns where it stands; or why it cannot be kept."""


class GrantsInForce:
    """What a person granted, on top of a policy."""

    def __init__(
        self, policy: Policy, grants: Sequence[Grant], keep_grant: KeepGrant | None, records: CallRecords
    ) -> None:
        """Begin with `grants`. Without `keep_grant` there is no place to keep any: they hold for the session."""
        self._files = policy
        self._grants = list(grants)
        self._keep_grant = keep_grant
        self._records = records
        self._count = 0
        self.policy = with_grants(policy, grants)
        """The policy, and what is granted."""

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What is granted and not revoked, the oldest first."""
        return tuple(self._grants)

    def change_policy(self, policy: Policy) -> None:
        """Put the grants on top of another policy."""
        self._files = policy
        self.policy = with_grants(policy, self._grants)

    def begin_session(self) -> None:
        """Record the grants that are in force as a session begins; those of another session end here. Raises LogError."""
        if not self._grants:
            return
        self._grants = [grant for grant in self._grants if grant.scope is GrantScope.WORKSPACE]
        self.policy = with_grants(self._files, self._grants)
        for grant in self._grants:
            self._records.grant(grant, "kept")

    def revoke(self, identity: str) -> Grant | None:
        """End a grant, and return it; None where there is none of that name. Raises LogError."""
        found = next((grant for grant in self._grants if grant.id == identity), None)
        if found is not None:
            self._records.grant(found, "revoked")
            self._grants.remove(found)
            self.policy = with_grants(self._files, self._grants)
        return found

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return what the person may grant at the question whether `action` may run; else why nothing."""
        return offer_for(self.policy, action, verdict)

    def check(self, action: Action, verdict: Verdict, approval: Approval) -> None:
        """Raise GateError for a grant of something else than was offered: what is granted is what was shown."""
        if approval.scope is None and not approval.patterns:
            return
        offer = self.offer(action, verdict)
        granted = approval.answer is Answer.YES and approval.scope is not None and bool(approval.patterns)
        if not granted or isinstance(offer, str) or approval.patterns not in (offer.patterns, offer.wider):
            raise GateError("the approver granted what was not offered")

    def add(self, proposal: Proposal, approval: Approval, wanted: GrantScope) -> None:
        """Record what is granted, and judge by it from now on. Raises LogError."""
        for pattern in approval.patterns:
            kept = self._kept(pattern) if wanted is GrantScope.WORKSPACE else None
            self._count += 1
            if isinstance(kept, Origin):
                identity, scope, origin = kept_id(pattern), GrantScope.WORKSPACE, kept
            else:
                origin = Origin(file=SESSION_GRANTS, line=proposal.number)
                identity, scope = f"grant-{self._count}", GrantScope.SESSION
            grant = Grant(id=identity, scope=scope, pattern=pattern, origin=origin)
            self._records.grant(grant, "added", proposal.number, kept if isinstance(kept, str) else "")
            self._grants.append(grant)
        self.policy = with_grants(self._files, self._grants)

    def _kept(self, pattern: GrantPattern) -> Origin | str:
        return self._keep_grant(pattern) if self._keep_grant else "there is no place to keep it"

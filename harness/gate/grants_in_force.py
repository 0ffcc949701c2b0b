"""The grants in force, and the policy together with them: added at a question, kept for the workspace, revoked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeAlias

from harness.actions import Action
from harness.errors import GateError
from harness.gate.approval import Answer, Approval
from harness.gate.records import CallRecords, Proposal
from harness.place_changes import PlaceChange
from harness.policy.grant_offers import Offer, WallsHere, all_edits, offer_for
from harness.policy.policy import Policy
from harness.policy.rules import Decision, Origin
from harness.policy.session_grants import SESSION_GRANTS, Grant, GrantPattern, GrantScope, with_grants
from harness.policy.verdict import Verdict, evaluate
from harness.record import replace


class GrantStore(Protocol):
    """Where grants are kept for the workspace, beyond the session."""

    def keep(self, pattern: GrantPattern, days: int | None) -> Grant | str:
        """Keep a grant for so many days (None: until it is revoked), and return it; or why it cannot be kept."""
        ...

    def revoke(self, identity: str) -> bool:
        """Note the end of a grant; say whether that is kept."""
        ...

    def sleep(self, identity: str, changes: Sequence[PlaceChange]) -> bool:
        """Note that a grant sleeps because of these changes (none: that it is awake again); say whether that is kept."""
        ...


WallsOf: TypeAlias = Callable[[Policy, str], WallsHere]
"""What can hold a granted program of a tool, under a policy."""
EDITS = "edits"
"""The id of the grant of all edits in the workspace, which the mode of that name is."""


class GrantsInForce:
    """What a person granted, on top of a policy."""

    def __init__(
        self,
        policy: Policy,
        grants: Sequence[Grant],
        kept: GrantStore | None,
        walls_of: WallsOf,
        records: CallRecords,
    ) -> None:
        """Begin with `grants`. Without `kept` there is no place to keep any: they hold for the session."""
        self._files = policy
        self._walls_of = walls_of
        self._grants = list(grants)
        self._kept = kept
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

    def put_to_sleep(
        self, identities: Collection[str], changes: Sequence[PlaceChange]
    ) -> tuple[tuple[Grant, ...], str]:
        """Let grants decide nothing until somebody has answered for these changes.

        Returns them, and why that holds for this session alone where it does.
        """
        slept = tuple(replace(one, changed=tuple(changes)) for one in self._grants if one.id in identities)
        self._put_in_place(slept)
        lost = [one.id for one in slept if not self._is_kept_asleep(one)]
        return slept, f"that {', '.join(lost)} sleeps could not be kept for later sessions" if lost else ""

    def wake(self, identity: str) -> None:
        """Let a grant that slept decide again."""
        self._put_in_place([replace(one, changed=()) for one in self._grants if one.id == identity])
        for grant in self._grants:
            if grant.id == identity:
                self._is_kept_asleep(grant)

    def end(self, grant: Grant) -> bool:
        """Revoke a grant, also where it is kept; say whether that could be done. Raises LogError."""
        is_of_session = grant.scope is GrantScope.SESSION or self._kept is None
        # First where it is kept: what could not be ended there would be in force again the next time.
        if not is_of_session and self._kept is not None and not self._kept.revoke(grant.id):
            return False
        self.revoke(grant.id)
        return True

    def _put_in_place(self, grants: Sequence[Grant]) -> None:
        by_id = {grant.id: grant for grant in grants}
        self._grants = [by_id.get(grant.id, grant) for grant in self._grants]
        self.policy = with_grants(self._files, self._grants)

    def _is_kept_asleep(self, grant: Grant) -> bool:
        of_session = grant.scope is GrantScope.SESSION or self._kept is None
        return of_session or (self._kept is not None and self._kept.sleep(grant.id, grant.changed))

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return what the person may grant at the question whether `action` may run; else why nothing."""
        return offer_for(self.policy, action, verdict, self._walls_of(self._files, action.tool))

    def judge(self, action: Action, suspended: tuple[str, ...]) -> Verdict:
        """Return the verdict on a call: AUTO by a granted program only if the walls here hold it to that (see `evaluate`)."""
        verdict = evaluate(self.policy, action, suspended)
        programs = {rule.id for part in verdict.facets for rule in part.rules if rule.walled}
        if verdict.decision is not Decision.AUTO or not programs:
            return verdict
        walls = self._walls_of(self._files, action.tool)
        told = [set(grant.pattern.exposes) for grant in self._grants if grant.id in programs]
        if not walls.confines or not all(names.issuperset(walls.exposed) for names in told):
            return evaluate(with_grants(self._files, self._exact), action, suspended)
        effects = verdict.effects
        return replace(verdict, effects=replace(effects, hide=(*effects.hide, *walls.hidden)))

    @property
    def _exact(self) -> Sequence[Grant]:
        """What is granted and needs no walls."""
        return [grant for grant in self._grants if not grant.pattern.program]

    def check(self, action: Action, verdict: Verdict, approval: Approval) -> None:
        """Raise GateError for a grant of something else than was offered: what is granted is what was shown."""
        if approval.scope is None and not approval.patterns:
            return
        offer = self.offer(action, verdict)
        granted = approval.answer is Answer.YES and approval.scope is not None and bool(approval.patterns)
        offered = () if isinstance(offer, str) else offer.choices
        choice = next((choice for choice in offered if choice.patterns == approval.patterns), None)
        if not granted or choice is None or (choice.session_only and approval.scope is not GrantScope.SESSION):
            raise GateError("the approver granted what was not offered")

    def add(self, proposal: Proposal, approval: Approval, wanted: GrantScope) -> None:
        """Record what is granted, and judge by it from now on. Raises LogError."""
        for pattern in approval.patterns:
            kept = self._keep(pattern, approval.days) if wanted is GrantScope.WORKSPACE else ""
            self._count += 1
            origin = Origin(file=SESSION_GRANTS, line=proposal.number)
            of_session = Grant(id=f"grant-{self._count}", scope=GrantScope.SESSION, pattern=pattern, origin=origin)
            grant = of_session if isinstance(kept, str) else kept
            self.revoke(grant.id)  # of this name one may sleep
            self._records.grant(grant, "added", proposal.number, kept if isinstance(kept, str) else "")
            self._grants.append(grant)
        self.policy = with_grants(self._files, self._grants)

    def narrow(self, held: Grant, narrower: Grant) -> None:
        """Put a grant of less in the place of one that is in force. Raises LogError."""
        narrower = replace(narrower, changed=held.changed)
        self._records.grant(narrower, "narrowed", of=held.id)
        self._grants = [narrower if grant == held else grant for grant in self._grants if grant.id != narrower.id]
        self.policy = with_grants(self._files, self._grants)

    def allow_edits(self, *, on: bool) -> None:
        """Grant all edits in the workspace for this session, or end that. Raises LogError."""
        self.revoke(EDITS)
        if on:
            origin = Origin(file=SESSION_GRANTS, line=0)
            grant = Grant(id=EDITS, scope=GrantScope.SESSION, pattern=all_edits(), origin=origin)
            self._records.grant(grant, "mode")
            self._grants.append(grant)
            self.policy = with_grants(self._files, self._grants)

    @property
    def allows_edits(self) -> bool:
        """Whether all edits in the workspace are granted as the mode of that name."""
        return any(grant.id == EDITS for grant in self._grants)

    def _keep(self, pattern: GrantPattern, days: int | None) -> Grant | str:
        return self._kept.keep(pattern, days) if self._kept else "there is no place to keep it"

"""The grants in force, and the policy that includes them: adding, saving, suspending and revoking grants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from harness.actions import Action, Decision, Effects, PathAccess, WallsLevel
from harness.errors import GateError
from harness.gate.approval import Approval
from harness.gate.records import CallRecords, Proposal
from harness.gate.registry import ToolRegistry
from harness.grant_pattern import EVERY_FILE, GrantPattern, GrantScope
from harness.log.vocabulary import Answer
from harness.paths import is_within
from harness.policy.effects import Sandbox
from harness.policy.policy import Policy
from harness.policy.session_grants import Grant, kept_id, narrowed, session_grant, with_grants
from harness.policy.verdict import Verdict, evaluate, evaluate_here
from harness.policy.walls_here import WallsHere
from harness.record import replace
from harness.tool_kinds import BASH

if TYPE_CHECKING:
    from harness.place_changes import PlaceChange
    from harness.policy.grant_offers import Offer


class GrantStore(Protocol):
    """Storage of grants for the workspace. They outlast the session."""

    def keep(self, pattern: GrantPattern, days: int | None) -> Grant | str:
        """Save a grant for `days` (`None`: until it is revoked). Return it, or the reason why it cannot be saved."""
        ...

    def keep_until(self, pattern: GrantPattern, until: str) -> Grant | str:
        """Do as `keep`, with the end of the grant in the form of `Grant.until`."""
        ...

    def revoke(self, identity: str) -> str:
        """Save the end of a grant. Return the reason why it cannot be saved, or an empty string."""
        ...

    def sleep(self, identity: str, changes: Sequence[PlaceChange]) -> str:
        """Save that a grant is suspended because of `changes`, or active again if there are none.

        Return as `revoke`.
        """
        ...


_NUMBERED = "grant-"
EDITS = "edits"
"""ID of the grant for all edits in the workspace. The mode `edits` consists of this grant."""
WALLS = "walls"
"""ID of the grant for all commands that fit into the workspace walls. The mode `walls` has it, and WALLS_EDITS."""
WALLS_EDITS = "walls-edits"
"""ID of the grant for all edits in the workspace, with those of files that tests and builds obey."""
OF_MODES = (EDITS, WALLS, WALLS_EDITS)
"""IDs of the grants that modes consist of."""


class GrantsInForce:
    """A person's grants, on top of a policy."""

    def __init__(
        self,
        policy: Policy,
        grants: Sequence[Grant],
        store: GrantStore | None,
        tools: Callable[[], ToolRegistry],
        records: CallRecords,
    ) -> None:
        """Begin with `grants`. Without `store` no grant can be saved, so that new ones end with the session.

        `tools` returns the tools on offer, whose walls confine granted programs.
        """
        self._files = policy
        self._tools = tools
        self._grants = list(grants)
        self._store = store
        self._records = records
        numbers = (grant.id.removeprefix(_NUMBERED) for grant in grants if grant.scope is GrantScope.SESSION)
        self._count = max((int(number) for number in numbers if number.isdigit()), default=0)
        """Number of the session's last grant, which an earlier process may have added.

        The next gets the next number.
        """
        self._open_offer: tuple[Action, Verdict, Offer | str] | None = None
        """Offer at the open approval prompt. It stays the same even if files appear while the prompt is open."""
        self.policy = with_grants(policy, grants)
        """The policy with the grants."""

    @property
    def grants(self) -> tuple[Grant, ...]:
        """The grants that are not revoked, oldest first."""
        return tuple(self._grants)

    @property
    def stated_policy(self) -> Policy:
        """The policy without the grants."""
        return self._files

    def change_policy(self, policy: Policy) -> None:
        """Put the grants on top of another policy."""
        self._files = policy
        self._hold(self._grants)

    def record_kept(self) -> None:
        """Drop the grants of an earlier session, and record those of the workspace at the start of this one.

        Raises LogError.
        """
        if not self._grants:
            return
        self._hold([grant for grant in self._grants if grant.scope is GrantScope.WORKSPACE])
        for grant in self._grants:
            self._records.grant(grant, "kept")

    def revoke(self, grant: Grant) -> str:
        """Revoke a grant, also in the store. Raises LogError.

        Return an empty string, or the reason why the store could not end it, so that later sessions still have it.
        """
        store = self._store_of(grant)
        not_kept = "" if store is None else store.revoke(grant.id)
        self._drop(grant.id, not_kept)
        return not_kept

    def _drop(self, identity: str, not_kept: str = "") -> None:
        grant_to_drop = next((grant for grant in self._grants if grant.id == identity), None)
        if grant_to_drop is not None:
            self._records.grant(grant_to_drop, "revoked", not_kept=not_kept)
            self._hold([grant for grant in self._grants if grant is not grant_to_drop])

    def put_to_sleep(
        self, identities: Collection[str], changes: Sequence[PlaceChange]
    ) -> tuple[tuple[Grant, ...], str]:
        """Suspend grants until the user has answered about `changes`.

        Return the suspended grants, and the reason why the store could not save that, or an empty string. If it could
        not, they are suspended for this session only.
        """
        slept = tuple(replace(grant, changed=tuple(changes)) for grant in self._grants if grant.id in identities)
        self._put_in_place(slept)
        lost = [grant.id for grant in slept if self._keep_asleep(grant)]
        return slept, f"later sessions do not know that {', '.join(lost)} sleeps: it could not be saved" if lost else ""

    def wake(self, identity: str) -> None:
        """Reactivate a suspended grant."""
        self._put_in_place([replace(each, changed=()) for each in self._grants if each.id == identity])
        for grant in self._grants:
            if grant.id == identity:
                self._keep_asleep(grant)

    def _put_in_place(self, grants: Sequence[Grant]) -> None:
        by_id = {grant.id: grant for grant in grants}
        self._hold([by_id.get(grant.id, grant) for grant in self._grants])

    def _hold(self, grants: Sequence[Grant]) -> None:
        self._grants = list(grants)
        self.policy = with_grants(self._files, self._grants)

    def _keep_asleep(self, grant: Grant) -> str:
        store = self._store_of(grant)
        return "" if store is None else store.sleep(grant.id, grant.changed)

    def _store_of(self, grant: Grant) -> GrantStore | None:
        return None if grant.scope is GrantScope.SESSION else self._store

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return the grants on offer at the approval prompt for `action`, or the reason why there are none.

        INVARIANT: while a grant is suspended no program is offered. An equal new grant would reactivate it although the
        user has not answered.
        """
        if action.asked_by:
            return f"a yes to {action.asked_by} counts for this call alone"
        if self._open_offer is None or self._open_offer[0] is not action or self._open_offer[1] is not verdict:
            from harness.policy.grant_offers import offer_for

            walls = self.walls_here(action.tool)
            offer = offer_for(self._held_by(walls), action, verdict, walls)
            asleep = next((grant.id for grant in self._grants if grant.changed), "")
            self._open_offer = action, verdict, _without_programs(offer, asleep) if asleep else offer
        return self._open_offer[2]

    def walls_here(self, tool: str) -> WallsHere:
        """Return the possible walls of a granted program of a tool, in the present workspace."""
        return self._tools().walls_here(self._files, tool)

    def judge(self, action: Action, suspended: tuple[str, ...]) -> Verdict:
        """Return the verdict on a call, with the walls that this workspace and this machine give it.

        A granted program counts only if the walls here confine it (see `evaluate`).
        """
        verdict = evaluate_here(self.policy, action, suspended, walls=lambda: self.walls_here(action.tool))
        if verdict.decision > Decision.CONFIRM or verdict.effects.level in (WallsLevel.READER, WallsLevel.UNCONFINED):
            return verdict
        walls = self.walls_here(action.tool)
        if verdict.programs:
            verdict = evaluate(self._held_by(walls), action, suspended, walls=walls)
        return replace(verdict, effects=_within(walls, verdict, self._files.sandbox))

    def _held_by(self, walls: WallsHere) -> Policy:
        """Return the policy with the grants that the walls can hold.

        Grants of programs count only if the walls confine them and expose no file besides those that the grant names.
        """
        allowed = [
            grant
            for grant in self._grants
            if not grant.pattern.program or (walls.confines and set(walls.exposed) <= set(grant.pattern.exposes))
        ]
        return with_grants(self._files, allowed)

    def check(self, action: Action, verdict: Verdict, approval: Approval) -> None:
        """Raise GateError if the approval contains a grant that the prompt did not offer."""
        offer = self.offer(action, verdict) if approval.scope is not None or approval.patterns else None
        self._open_offer = None
        if offer is None:
            return
        granted = approval.answer is Answer.YES and approval.scope is not None and bool(approval.patterns)
        offered = () if isinstance(offer, str) else offer.choices
        choice = next((choice for choice in offered if choice.patterns == approval.patterns), None)
        if not granted or choice is None or (choice.session_only and approval.scope is not GrantScope.SESSION):
            raise GateError("the approver returned a grant that was not offered")

    def add(self, proposal: Proposal, approval: Approval, scope: GrantScope) -> None:
        """Add the grants of an approval, save them if their scope is the workspace, and record them.

        Raises LogError.
        """
        for pattern in approval.patterns:
            problem = self._keep(pattern, approval.days) if scope is GrantScope.WORKSPACE else ""
            self._count += 1
            of_session = session_grant(f"{_NUMBERED}{self._count}", pattern, proposal.number)
            grant = of_session if isinstance(problem, str) else problem
            self._drop(grant.id)
            self._records.grant(grant, "added", proposal.number, problem if isinstance(problem, str) else "")
            self._hold([*self._grants, grant])

    def narrow(self, old_grant: Grant, words: Sequence[str]) -> Grant | str:
        """Replace a grant with a narrower one, also in the store. Return the new one, or the reason for no change.

        `words` are those of `narrowed`. Raises LogError.
        """
        if old_grant.changed:
            return f"{old_grant.id} sleeps: {_answer_first(old_grant.id)}"
        pattern = narrowed(old_grant.pattern, words)
        if isinstance(pattern, str):
            return pattern
        less: Grant | str = replace(old_grant, id=f"{old_grant.id}-narrow", pattern=pattern)
        if (store := self._store_of(old_grant)) is not None:
            if kept_id(pattern) in {grant.id for grant in self._grants}:
                return f"{kept_id(pattern)} is that already: revoke {old_grant.id}"
            less = store.keep_until(pattern, old_grant.until)
            less = less if isinstance(less, str) else store.revoke(old_grant.id) or less
        if isinstance(less, Grant):
            self._records.grant(less, "narrowed", of=old_grant.id)
            self._hold([less if grant == old_grant else grant for grant in self._grants])
        return less

    @property
    def mode(self) -> str:
        """The mode in force: EDITS, WALLS, or empty for neither."""
        return next((grant.id for grant in self._grants if grant.id in (EDITS, WALLS)), "")

    def set_mode(self, mode: str) -> None:
        """Switch to the mode EDITS or WALLS, or to neither (empty). Raises LogError."""
        for identity in OF_MODES:
            self._drop(identity)
        for identity, pattern in self._of_mode(mode).items():
            grant = session_grant(identity, pattern)
            self._records.grant(grant, "mode")
            self._hold([*self._grants, grant])

    def runs_in(self, mode: str, action: Action) -> bool:
        """Return whether a call would run unasked in the mode EDITS or WALLS."""
        grants = [session_grant(identity, pattern) for identity, pattern in self._of_mode(mode).items()]
        policy, walls = with_grants(self._files, grants), self.walls_here(action.tool)
        return evaluate(policy, action, walls=walls).decision is Decision.AUTO

    def _of_mode(self, mode: str) -> dict[str, GrantPattern]:
        from harness.policy.grant_offers import all_edits, any_command

        if mode != WALLS:
            return {EDITS: all_edits()} if mode else {}
        commands = any_command(BASH.name, replace(self.walls_here(BASH.name), exposed=()))
        return {WALLS: commands, WALLS_EDITS: replace(all_edits(), path=EVERY_FILE)}

    def _keep(self, pattern: GrantPattern, days: int | None) -> Grant | str:
        return self._store.keep(pattern, days) if self._store else "grants cannot be saved here"


def _within(walls: WallsHere, verdict: Verdict, sandbox: Sandbox) -> Effects:
    """Return the effects of a verdict inside the walls of this workspace: files of rules are hidden or write-protected.

    A file that the user approves by its name is not hidden, nor one that a command is known to write only. Where
    commands cannot be limited to hosts, an approval opens the whole network.
    """
    effects = verdict.effects
    visible = [
        facet.facet.real
        for facet in verdict.facets
        if isinstance(facet.facet, PathAccess) and facet.decision is Decision.CONFIRM
    ]
    visible += effects.named_paths if effects.write is not None else ()
    hidden = [place for place in walls.hidden if not any(is_within(path, place) for path in visible)]
    if verdict.decision is Decision.CONFIRM and effects.hosts and sandbox.network and not walls.by_host:
        effects = replace(effects, network=True, hosts=())
    is_granted = bool(verdict.programs) and sandbox.required is None
    return replace(
        effects,
        hide=(*effects.hide, *hidden),
        hold=walls.held_places,
        unheld="" if is_granted or not walls.root else walls.gap,
    )


def _answer_first(identity: str) -> str:
    return f"/grants answer {identity} comes first"


def _without_programs(offer: Offer | str, asleep: str) -> Offer | str:
    """Return an offer without the choices that grant a program, since the grant with the ID `asleep` is suspended."""
    reason = f"{asleep} sleeps: {_answer_first(asleep)}"
    if isinstance(offer, str):
        return offer
    remaining = tuple(choice for choice in offer.choices if not any(pattern.program for pattern in choice.patterns))
    if len(remaining) == len(offer.choices):
        return offer
    return replace(offer, choices=remaining, no_program=reason) if remaining else reason

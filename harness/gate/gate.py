"""The gate: the only road from a proposed call to a run, and the only maker of permits.

INVARIANT: a Permit can be redeemed once, only for the action that it was made for, and only after its intent is on
disk. Whatever goes wrong in here (a policy, an approver, the log) raises and stops the run; nothing is let through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never, final

from harness.actions import (
    Action,
    Command,
    Effects,
    Facet,
    Opaque,
    PathAccess,
    ToolUse,
    Unconfined,
    describe_facet,
    written_paths,
)
from harness.errors import GateError, LogError
from harness.gate.approval import Answer, Approval, Approver, deny_all
from harness.gate.records import Advice, CallRecords, Proposal, sha256_of
from harness.log.action_log import ActionLog
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.built_in import is_entry_point
from harness.policy.policy import Policy, Source, Verdict, evaluate
from harness.policy.rules import Decision, Origin
from harness.policy.session_grants import (
    SESSION_GRANTS,
    Grant,
    GrantScope,
    Offer,
    Pattern,
    kept_id,
    offer_for,
    with_grants,
)
from harness.record import Record, replace

_FACETS = (Command, PathAccess, Opaque, Unconfined, ToolUse)

NO_DETOUR = "Do not retry this call, and do not seek the same effect another way."


class _Seal:
    """What a Permit is valid by: that very permit, one use, and not before the intent is on disk."""

    __slots__ = ("armed", "permit")

    def __init__(self) -> None:
        self.permit: Permit | None = None
        self.armed = False


@final
class Permit(Record):
    """Leave to run one action once. Only the gate makes one: a copy or a change of one cannot be redeemed."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    approval: Approval | None
    seal: _Seal

    def redeem(self) -> Action:
        """Return the action to run, and spend the permit.

        Raises GateError if the permit was not made by the gate for this action, is not logged yet, or is spent.
        """
        if type(self.seal) is not _Seal or self.seal.permit is not self or not self.seal.armed:
            raise GateError("a call was about to run without a valid permit")
        self.seal.armed = False
        self.seal.permit = None  # each would keep the other, and with them the action, which may hold a whole file
        return self.action


class Refusal(Record):
    """A call that does not run, and why."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    approval: Approval | None
    decision: Decision
    """DENY or BLOCK."""
    text: str
    """For the model: who refused, what, why, and what to do instead."""

    @property
    def wanted(self) -> ToolCall | None:
        """The call that is wanted in the place of this one, if there is one."""
        if self.approval is None or self.approval.answer is not Answer.EDIT:
            return None
        return replace(self.proposal.call, arguments=self.approval.arguments)

    @property
    def ends_turn(self) -> bool:
        """Whether the person asked to stop, not only to refuse this call."""
        return self.approval is not None and self.approval.answer is Answer.STOP


class Withheld(Record):
    """A call that may run, and does not: the gate only rehearses."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    text: str
    """For the model."""


Ruling: TypeAlias = Permit | Refusal

DRY_RUN = "dry run; every call is judged and recorded, and none is run. This one may run"
"""Why a call did not run that may."""


def rule_on(
    proposal: Proposal,
    action: Action,
    verdict: Verdict,
    approval: Approval | None,
    unattended: Decision,
    describe: Callable[[Facet], str] = describe_facet,
) -> Ruling:
    """Return the ruling that follows from a verdict and, where it is CONFIRM, from the answer. Pure and total.

    `describe` says in a few words what part of a call a refusal is about.
    """
    match verdict.decision:
        case Decision.AUTO:
            permitted = True
            decision = Decision.AUTO
        case Decision.CONFIRM:
            permitted = approval is not None and approval.answer is Answer.YES
            nobody = approval is None or approval.answer is Answer.NOBODY
            halted = approval is not None and approval.answer is Answer.HALT
            decision = Decision.BLOCK if halted or (nobody and unattended is Decision.BLOCK) else Decision.DENY
        case Decision.DENY | Decision.BLOCK:
            permitted = False
            decision = verdict.decision
        case _:
            assert_never(verdict.decision)
    if permitted:
        seal = _Seal()
        seal.permit = Permit(proposal=proposal, action=action, verdict=verdict, approval=approval, seal=seal)
        return seal.permit
    return Refusal(
        proposal=proposal,
        action=action,
        verdict=verdict,
        approval=approval,
        decision=decision,
        text=refusal_text(verdict, approval, decision, describe),
    )


def refusal_text(
    verdict: Verdict,
    approval: Approval | None,
    decision: Decision,
    describe: Callable[[Facet], str] = describe_facet,
) -> str:
    """Return what the model reads: who refused, the part in question, the reason, the hint, and not to go round it."""
    facet = verdict.deciding
    part = describe(facet.facet)
    about = f"{facet.reason.rstrip('.')}. Part: {part}." if part else f"{facet.reason.rstrip('.')}."
    hint = f" Hint: {facet.hint}" if facet.hint else ""
    word = "Blocked" if decision is Decision.BLOCK else "Denied"
    if approval is None:
        text = f"{word} by {facet.by}: {about}{hint}"
    elif approval.answer is Answer.NOBODY:
        text = f"{word}: this needs a person's yes ({facet.by}) and nobody is there to ask. {about}{hint}"
    elif approval.answer is Answer.EDIT:
        return f"Not run: the {approval.by} put another call in its place."
    else:
        who = "the person" if approval.by == "person" else f"the {approval.by}"
        words = f': "{approval.words}"' if approval.words else ", without a reason."
        if approval.answer is Answer.STOP and not approval.words:
            words = ", who stopped the turn at the question."
        text = f"{word} by {who}{words} Part: {part}."
    if decision is Decision.BLOCK:
        return f"{text} The run stops here."
    return f"{text} {NO_DETOUR}"


class Gate:
    """Judges, asks, records and rules. Policy, approver and log have no defaults: there is no gate without them."""

    def __init__(  # noqa: PLR0913 - the parts of a gate, each named where it is passed
        self,
        *,
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        confinement_of: Callable[[str, Effects], str],
        grants: Sequence[Grant] = (),
        keep_grant: Callable[[Pattern], Origin | str] | None = None,
        dry_run: bool = False,
        advise: Callable[[Policy, Action, Verdict], Advice] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the parts; `confinement_of` says what holds a call of the tool of that name to its effects.

        `grants` are in force from the beginning. `keep_grant` keeps what is granted for the workspace, and returns where it
        stands; or why it cannot be kept: then it holds for the session. `dry_run`: no permit is made. `advise` is asked about
        each call that is refused, and what it says is recorded.
        """
        self._dry_run = dry_run
        self._advise = advise
        self._confinement_of = confinement_of
        self._grants = list(grants)
        self._granted = 0
        self._keep_grant = keep_grant
        self.change_policy(policy, log)
        self._approver = approver
        self._log = log
        self._records = CallRecords(log)
        self._monotonic = monotonic
        self._proposed = 0
        self._open: dict[int, Proposal] = {}
        """Calls that have no outcome yet."""
        self._unseen: list[tuple[str, str]] = []
        """Changes of entry points that no person has seen: what was done, and the diff."""
        self._judged: tuple[Action, Policy, Verdict] | None = None
        """What was judged last, and by which policy, until something runs: judged again, it gets the same verdict."""

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What is granted and not revoked, the oldest first."""
        return tuple(self._grants)

    def change_policy(self, policy: Policy, log: ActionLog) -> None:
        """Judge by `policy` from now on, grants included; whoever calls this has recorded it.

        INVARIANT: changes of entry points that no person has seen stay unseen.
        """
        self._files = policy.guarding(log.path)
        self._policy_sha256 = policy.sha256
        self.policy = with_grants(self._files, self._grants)

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return what the person may grant at the question whether `action` may run; else why nothing."""
        return offer_for(self.policy, action, verdict)

    def record_kept(self) -> None:
        """Record the grants that are in force as a session begins; those of another session end here. Raises LogError."""
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

    def brief(self, action: Action) -> str:
        """Return the summary of an action in one short line, with secrets masked before it was cut."""
        return self._records.brief(action)

    def propose(
        self,
        call: ToolCall,
        *,
        turn: int = 0,
        step: int = 0,
        edited_from: Proposal | None = None,
        by_person: bool = False,
    ) -> Proposal:
        """Record that the model asked for `call`, as its `step`th (from 1) of this turn. Raises LogError.

        `edited_from` is the call in whose place whoever was asked about that wants this one. `by_person`: it is the
        person's own, and no part of the conversation.
        """
        self._proposed += 1
        proposal = Proposal(number=self._proposed, call=call, arguments_sha256=sha256_of(call.arguments))
        self._open[proposal.number] = proposal
        self._records.proposed(proposal, turn=turn, step=step, edited_from=edited_from, by_person=by_person)
        return proposal

    def blocks(self, action: Action) -> bool:
        """Say whether `action` is a hard block, without recording or asking. Raises GateError.

        With nobody to ask, a confirm is one too where the policy's `[unattended]` says so.
        """
        decision = self._judge(action).decision
        nobody = self._approver is deny_all and self.policy.unattended is Decision.BLOCK
        return decision is Decision.BLOCK or (decision is Decision.CONFIRM and nobody)

    def authorize(self, proposal: Proposal, action: Action, *, approver: Approver | None = None) -> Ruling | Withheld:
        """Judge `action`, ask where the verdict says so, record it all, and rule.

        `approver` answers in the place of the gate's own, for a call that is the person's own. A Permit is returned only
        when its intent is on disk, and none in a dry run. Raises GateError or LogError; then nothing may run.
        """
        verdict, self._judged = self._judge(action), None  # an action may hold a whole file
        self._records.decided(proposal, action, verdict, self._policy_sha256)
        asked = verdict.decision is Decision.CONFIRM
        approval = self._ask(proposal, action, verdict, approver or self._approver) if asked else None
        ruling = rule_on(proposal, action, verdict, approval, self.policy.unattended, self._records.describe)
        match ruling:
            case Permit() if self._dry_run:
                content = f"Not run: {DRY_RUN} ({verdict.deciding.by})."
                self._end(proposal, ResultStatus.NOT_RUN, content)
                return Withheld(proposal=proposal, action=action, verdict=verdict, text=content)
            case Permit():
                if verdict.notes and approver is None:  # they were part of the question, and the answer was yes
                    self._unseen.clear()
                if approval is not None and approval.scope is not None:
                    self._grant(proposal, approval, approval.scope)
                confinement = self._confinement_of(action.tool, verdict.effects)
                self._records.intended(
                    proposal, action, verdict, policy_sha256=self._policy_sha256, confinement=confinement
                )
                ruling.seal.armed = True
            case Refusal():
                status = ResultStatus.BLOCKED if ruling.decision is Decision.BLOCK else ResultStatus.DENIED
                self._end(proposal, status, ruling.text)
                self._advise_on(ruling)
            case _:
                assert_never(ruling)
        return ruling

    def settle(self, permit: Permit, result: ToolResult) -> None:
        """Record what a permitted call came to; on disk when this returns. Raises LogError."""
        if permit.approval is None and any(is_entry_point(path) for path in changed_paths(permit.action, result)):
            self._unseen.append((self.brief(permit.action), permit.action.preview))
        self._judged = None
        self._records.ended(permit.proposal, result, ran=True)
        self._open.pop(permit.proposal.number, None)

    def refuse_invalid(self, proposal: Proposal, problem: str, error_code: str = "") -> ToolResult:
        """Record a call that could not be prepared, and return its result, secrets masked. Raises LogError."""
        return self._end_unjudged(
            proposal, ResultStatus.INVALID, self._records.redact(problem), "not a valid call", error_code
        )

    def skip(self, proposal: Proposal, why: str) -> ToolResult:
        """Record a call whose turn never came, and return its result. Raises LogError."""
        return self._end_unjudged(proposal, ResultStatus.NOT_RUN, f"Not run: {why}", why)

    def end_open_calls(self, why: str) -> None:
        """Record an end for the session's calls that something cut short. Raises LogError.

        A call whose intent is the last that is known of it gets none: it may have run, and an audit must be told.
        """
        for proposal in tuple(self._open.values()):
            step = self._log.last_step(proposal.number)
            if step == "call_proposed":
                self.skip(proposal, why)
            elif step in ("decision", "approval_asked", "approval_answered"):
                self._end(proposal, ResultStatus.NOT_RUN, f"Not run: {why}")

    def _end_unjudged(
        self, proposal: Proposal, status: ResultStatus, content: str, reason: str, error_code: str = ""
    ) -> ToolResult:
        self._records.undecided(proposal, reason)
        return self._end(proposal, status, content, error_code)

    def _end(self, proposal: Proposal, status: ResultStatus, content: str, error_code: str = "") -> ToolResult:
        """Record the end of a call that did not run, and return its result."""
        result = ToolResult(call_id=proposal.call.id, status=status, content=content, error_code=error_code)
        self._records.ended(proposal, result, ran=False)
        self._open.pop(proposal.number, None)
        return result

    def _judge(self, action: Action) -> Verdict:
        if self._judged is not None and self._judged[0] is action and self._judged[1] is self.policy:
            return self._judged[2]
        verdict = self._new_verdict(action)
        self._judged = (action, self.policy, verdict)
        return verdict

    def _new_verdict(self, action: Action) -> Verdict:
        try:
            if not all(isinstance(facet, _FACETS) for facet in action.facets):
                raise TypeError("a facet of a kind that no rule knows")  # noqa: TRY301 - a default would decide it
            verdict = evaluate(self.policy, action, tuple(dict.fromkeys(summary for summary, _ in self._unseen)))
        except Exception as error:
            raise GateError(f"the policy could not judge a call of {action.tool}: {error!r}") from error
        if any(facet.source is Source.SUSPENDED for facet in verdict.facets):
            return replace(verdict, notes=tuple(preview for _, preview in self._unseen))
        return verdict

    def _ask(self, proposal: Proposal, action: Action, verdict: Verdict, approver: Approver) -> Approval:
        self._records.asked(proposal, action, verdict)
        started = self._monotonic()
        try:
            approval = approver(action, verdict)
        except KeyboardInterrupt:
            approval = Approval(answer=Answer.STOP, by="person")
        except (GateError, LogError):
            raise
        except Exception as error:
            raise GateError(f"the approver failed: {error!r}") from error
        _check_approval(approval)
        self._check_patterns(action, verdict, approval)
        self._records.answered(proposal, approval, self._monotonic() - started, self._proposed + 1)
        return approval

    def _check_patterns(self, action: Action, verdict: Verdict, approval: Approval) -> None:
        """Raise GateError for a grant of something else than was offered: what is granted is what was shown."""
        if approval.scope is None and not approval.patterns:
            return
        offer = self.offer(action, verdict)
        granted = approval.answer is Answer.YES and approval.scope is not None and bool(approval.patterns)
        if not granted or isinstance(offer, str) or approval.patterns not in (offer.patterns, offer.wider):
            raise GateError("the approver granted what was not offered")

    def _grant(self, proposal: Proposal, approval: Approval, wanted: GrantScope) -> None:
        """Record what is granted, and judge by it from now on."""
        for pattern in approval.patterns:
            kept = self._kept(pattern) if wanted is GrantScope.WORKSPACE else None
            self._granted += 1
            if isinstance(kept, Origin):
                identity, scope, origin = kept_id(pattern), GrantScope.WORKSPACE, kept
            else:
                origin = Origin(file=SESSION_GRANTS, line=proposal.number)
                identity, scope = f"grant-{self._granted}", GrantScope.SESSION
            grant = Grant(id=identity, scope=scope, pattern=pattern, origin=origin)
            self._records.grant(grant, "added", proposal.number, kept if isinstance(kept, str) else "")
            self._grants.append(grant)
        self.policy = with_grants(self._files, self._grants)

    def _kept(self, pattern: Pattern) -> Origin | str:
        return self._keep_grant(pattern) if self._keep_grant else "there is no place to keep it"

    def _advise_on(self, refusal: Refusal) -> None:
        """Record what would let a refused call run, where somebody knows; that nobody does harms nothing."""
        if self._advise is None or refusal.wanted is not None:
            return
        try:
            advice = self._advise(self.policy, refusal.action, refusal.verdict)
        except Exception as error:  # noqa: BLE001 - the refusal stands, with or without it
            advice = Advice(why=f"what would let it run could not be worked out: {error!r}")
        self._records.advised(refusal.proposal, advice)


def _check_approval(approval: object) -> None:
    """Raise GateError for what an approver must not return: no type checker sees every approver."""
    if not isinstance(approval, Approval):
        raise GateError(f"the approver returned {type(approval).__name__}, not an Approval")
    answer: object = approval.answer
    texts = (approval.by, approval.words, approval.arguments)
    scope: object = approval.scope
    known = isinstance(answer, Answer) and (scope is None or isinstance(scope, GrantScope))
    if not (known and all(isinstance(text, str) for text in texts)):
        raise GateError(f"the approver returned no valid Approval: {approval!r}")


def changed_paths(action: Action, result: ToolResult) -> tuple[str, ...]:
    """Return the files that a call changed; of one that could not report, those that it may have changed.

    A command never reports: what its parts write is taken for changed, however it ended.
    """
    if result.changed_path is not None:
        return (result.changed_path,)
    cut_short = result.status in (ResultStatus.INTERRUPTED, ResultStatus.CRASHED, ResultStatus.TIMEOUT)
    return written_paths(action) if cut_short or action.text else ()

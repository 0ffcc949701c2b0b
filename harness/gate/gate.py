"""The gate: the single path of a call, from its proposal to its outcome. Only the gate makes permits and runs tools.

Read `Gate.call` first, then `Gate.permit`; the methods below them are their steps, in order.

INVARIANT: any failure in here (of a policy, an approver or the log) raises an exception that stops the run. It never
lets a call run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from harness.actions import Action, Decision, JsonValue
from harness.declared_types import check_arguments
from harness.errors import ChangedCodeError, GateError, LogError, ToolError
from harness.gate.approval import Approval, Approver, check_approval, deny_all
from harness.gate.call_checks import NO_CHECKS, CallChecks, tightened, with_notes
from harness.gate.checked_calls import CheckedCalls
from harness.gate.grants_in_force import GrantsInForce
from harness.gate.judge import Judge
from harness.gate.options import GateOptions
from harness.gate.pending_call import CallEnd, PendingCall
from harness.gate.place_watch import PlaceWatch, words_of
from harness.gate.proposed_calls import ProposedCalls
from harness.gate.records import Advice, CallRecords, GateState, Proposal
from harness.gate.registry import ToolRegistry
from harness.gate.ruling import Permit, Refusal, rule_on
from harness.gate.tool import TIME_OVER, Attempt, ChangingTool, CompareFiles, NotedBefore, SeenTool, TimedTool
from harness.interrupt import Interrupt, Interrupted
from harness.log.action_log import ActionLog
from harness.log.attachments import attachments_beside
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import replace

MAX_EDITS = 20
"""Maximum number of edits of one call. An approver that exceeds it stops the run."""
MOST_KEPT_CHARACTERS = 100_000
"""Maximum length of the preview of a judged call that waits.

A call with a longer preview is prepared again later, since many of them would fill the memory.
"""
DRY_RUN = "dry run; every call is judged and recorded, and none is run. This one may run"
"""Reason why a permitted call did not run."""
NO_WALLS = (
    "the walls that were chosen at the approval prompt cannot hold this call any more: new files match a rule. "
    "The call was not run. Send it again to be asked again."
)


class Gate:
    """Judges, asks, records and runs. Policy, approver and log have no defaults, so that no gate lacks them."""

    def __init__(
        self,
        *,
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        tools: ToolRegistry,
        interrupt: Interrupt | None = None,
        checks: CallChecks = NO_CHECKS,
        options: GateOptions = GateOptions(),  # noqa: B008 - it never changes
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a gate. `checks` are the hooks for calls that the policy permits; `monotonic` is a clock in seconds.

        Raises TypeError for a policy, an approver or a log of another type.
        """
        check_arguments(Gate.__init__, locals())
        self.tools = tools
        self._approver = approver
        self._log = log
        self._interrupt = interrupt or Interrupt()
        self._options = options
        self._monotonic = monotonic
        self._records = CallRecords(log)
        self.checks = CheckedCalls(checks, log, self._records)
        """Hooks for calls."""
        state, records = options.begun, self._records

        def tools_now() -> ToolRegistry:
            return self.tools

        self.grants = GrantsInForce(self._guarded(policy), options.grants, options.kept, tools_now, records)
        """Grants of persons, on top of the policy."""
        self.places = PlaceWatch(self.grants, records, tools_now, options.ask_places, monotonic)
        """Protected places, compared around calls of granted programs."""
        self._judge = Judge(tools_now, self.grants, log, records, self._interrupt, state.unseen)
        self._calls = ProposedCalls(log, records, state.proposed)
        self._policy_sha256 = policy.sha256

    @property
    def policy(self) -> Policy:
        """The policy that calls are judged by, grants included."""
        return self.grants.policy

    @property
    def dry_run(self) -> bool:
        """Whether calls are only judged and recorded, and not run."""
        return self._options.dry_run

    @property
    def state(self) -> GateState:
        """State with which a gate in another process can continue the session."""
        return GateState(proposed=self._calls.proposed, unseen=self._judge.unseen)

    def change_policy(self, policy: Policy, tools: ToolRegistry) -> None:
        """Judge by `policy` plus the grants from now on, and offer `tools`. The caller has recorded the change.

        INVARIANT: changes of entry points that the user has not seen stay unseen.
        """
        self.grants.change_policy(self._guarded(policy))
        self._policy_sha256 = policy.sha256
        self.tools = tools

    def _guarded(self, policy: Policy) -> Policy:
        """Return the policy that also protects the log, its attachments and the programs of the hooks.

        INVARIANT: no call may write files that decide on calls or record them.
        """
        return policy.guarding(self._log.path, attachments_beside(self._log.path), *self.checks.programs)

    def judge(self, action: Action) -> Verdict:
        """Return the verdict on an action under the present grants and walls. Records nothing. Raises GateError."""
        return self._judge.verdict(action)

    # -- the path of a call

    def propose(
        self,
        call: ToolCall,
        *,
        turn: int = 0,
        step: int = 0,
        by_person: bool = False,
        agent: Mapping[str, JsonValue] | None = None,
    ) -> PendingCall:
        """Record a proposed call, number `step` (from 1) of this turn, and return its state. Raises LogError.

        `by_person`: the user makes the call, outside the conversation. `agent`: another agent proposes the call; these
        are its facts about it (see schema).
        """
        return PendingCall(self._calls.propose(call, turn, step, by_person=by_person, agent=agent), by_person=by_person)

    def blocks(self, pending: PendingCall, *, waits: bool = False) -> bool:
        """Return whether a call is a hard block, without recording or asking.

        In an unattended run, CONFIRM counts as a block if the policy's `[unattended]` says so. `waits`: other calls run
        before it. Raises GateError, WorkspaceError, and Interrupted if the user stopped the judging.
        """
        try:
            action, verdict = self._judge.judge(pending)
        except ToolError:
            return False
        decision = verdict.decision
        if waits and len(action.preview) > MOST_KEPT_CHARACTERS:
            pending.action = None
        nobody = self._approver is deny_all and self.policy.unattended is Decision.BLOCK
        return decision is Decision.BLOCK or (decision is Decision.CONFIRM and nobody)

    def call(
        self,
        pending: PendingCall,
        *,
        seconds_left: Callable[[], float | None] = lambda: None,
        approver: Approver | None = None,
    ) -> CallEnd:
        """Judge a call, ask, write the intent, run it, write the outcome, and return the end of the call.

        The body of a `TimedTool` takes at most `seconds_left` (`None`: no limit). When that is 0, a call does not start
        unless it was approved at a prompt, since the approval may have taken long. `approver` replaces the gate's own.
        Raises GateError, LogError and WorkspaceError, after which the run must stop, and Interrupted if the user
        stopped the call before it was judged.
        """
        ruling = self.permit(pending, seconds_left=seconds_left, approver=approver)
        if isinstance(ruling, CallEnd):
            return ruling
        approval, effects, tool = ruling.approval, ruling.verdict.effects, self.tools[ruling.action.tool]
        noted = self._intend(pending, ruling)

        seconds = seconds_left()
        permitted = ruling.redeem()
        compare: CompareFiles | None = None
        with Attempt(permitted.call, self._monotonic) as attempt, self._interrupt:
            if seconds is not None and seconds <= 0 and approval is None:
                attempt.not_begun(TIME_OVER)
            else:
                self.tools.check_place()  # the approval prompt may have been open for long
                if isinstance(tool, ChangingTool):
                    compare = tool.note_files(effects, self.policy)
                attempt.is_started = True
                if approval is not None and approval.by == "person" and isinstance(tool, SeenTool):
                    tool.keep_seen(permitted)  # only an answer by the person shows that a person saw the prompt
                if isinstance(tool, TimedTool):
                    attempt.take(tool.run_for(permitted, effects, seconds or None))
                else:
                    attempt.take(tool.run(permitted, effects))
        end = self._settle(pending, ruling, noted, attempt, compare)
        if attempt.fault is not None:
            raise attempt.fault
        return end

    def permit(
        self,
        pending: PendingCall,
        *,
        seconds_left: Callable[[], float | None] = lambda: None,
        approver: Approver | None = None,
    ) -> Permit | CallEnd:
        """Judge a call, ask if the verdict is CONFIRM, and return its permit or its end. Raises as `call` does."""
        while True:
            try:
                action, verdict = self._checked(pending, seconds_left())
            except ToolError as error:
                return self._not_valid(pending, error)
            pending.action = pending.verdict = None  # the action may hold a whole file
            self._records.decided(pending.proposal, action, verdict, self._policy_sha256)
            asks = verdict.decision is Decision.CONFIRM
            approval = self._ask(pending, action, verdict, approver or self._approver) if asks else None
            ruling = rule_on(
                pending.proposal, action, verdict, approval, self.policy.unattended, self._records.describe
            )
            match ruling:
                case Permit() if self._options.dry_run:
                    return self._withheld(ruling)
                case Permit():
                    self._take_grants(ruling, asked_own=approver is None)
                    return self._opened(self._within_walls(ruling))
                case Refusal(replacement_call=None):
                    return self._refused(pending, ruling)
                case Refusal():
                    self._put_in_place(pending, ruling)
                    if seconds_left() == 0:  # the answer may have taken long, and the replacement is not approved
                        name = pending.proposal.call.name
                        return CallEnd(result=self.skip(pending, TIME_OVER), summary=f"{name} (not run)")
                case _:
                    assert_never(ruling)

    def _checked(self, pending: PendingCall, seconds: float | None) -> tuple[Action, Verdict]:
        """Return the action of a call and its verdict, tightened by the hooks.

        Judges the call again after hooks ran, since they may have changed files. Raises as `Judge.judge` does, LogError
        and Interrupted.
        """
        action, verdict = self._judge.judge(pending)
        if self.checks.ask_before(pending, action, verdict, seconds):
            self._judge.mark_changed()
            action, verdict = self._judge.judge(pending)
        return action, tightened(verdict, action.tool, pending.hook_answers)

    def _ask(self, pending: PendingCall, action: Action, verdict: Verdict, approver: Approver) -> Approval:
        from harness.gate.beside import on_gates_thread

        self._records.record_question(pending.proposal, action, verdict)
        tool = self.tools[action.tool]
        if isinstance(tool, ChangingTool) and approver is not deny_all:
            tool.expect_files(verdict.effects, self.policy)
        started = self._monotonic()
        try:
            approval = on_gates_thread(lambda: approver(action, verdict))
        except KeyboardInterrupt:
            approval = Approval(answer=Answer.STOP, by="person")
        except Interrupted:
            approval = Approval(
                answer=Answer.STOP, by="nobody", words="the run was stopped before the approval prompt was shown"
            )
        except (GateError, LogError):
            raise
        except Exception as error:
            raise GateError(f"the approver failed: {error!r}") from error
        check_approval(approval)
        self.grants.check(action, verdict, approval)
        self._records.record_approval(pending.proposal, approval, self._monotonic() - started, self._calls.proposed + 1)
        return approval

    def _put_in_place(self, pending: PendingCall, refusal: Refusal) -> None:
        """End a call that was edited at the approval prompt, and propose its replacement."""
        self._calls.end(refusal.proposal, ResultStatus.DENIED, refusal.text)
        replacement = refusal.replacement_call
        if replacement is None or len(pending.edits) >= MAX_EDITS:
            raise GateError(f"the approver changed one call more than {MAX_EDITS} times")
        pending.edits.append(self._records.redact(replacement.arguments))
        pending.proposal = self._calls.propose(
            replacement, refusal.proposal.turn, refusal.proposal.step, refusal.proposal
        )

    def _take_grants(self, permit: Permit, *, asked_own: bool) -> None:
        """Mark unseen changes as seen if the prompt showed them, and add the grants of the approval."""
        if permit.verdict.notes and asked_own:  # the prompt showed the notes, and the answer was yes
            self._judge.mark_seen()
        if permit.approval is not None and permit.approval.scope is not None:
            self.grants.add(permit.proposal, permit.approval, permit.approval.scope)

    def _within_walls(self, permit: Permit) -> Permit | CallEnd:
        """Return a permit with the walls that were granted at the prompt, or the end of the call if they cannot hold it.

        INVARIANT: a program that is granted inside walls runs within them, beginning with this call.
        """
        proposal, action, approval = permit.proposal, permit.action, permit.approval
        programs = {pattern for pattern in approval.patterns if pattern.program} if approval else set()
        if not programs:
            return permit
        verdict = self._judge.verdict(action)
        in_force = {grant.pattern for grant in self.grants.grants if grant.id in verdict.programs}
        ruling = rule_on(proposal, action, verdict, approval, self.policy.unattended, self._records.describe)
        if not programs <= in_force or not isinstance(ruling, Permit):
            return self.deny(proposal, action, NO_WALLS)
        return ruling

    def _opened(self, ruling: Permit | CallEnd) -> Permit | CallEnd:
        """Return a permit with what the approver opened for this command, as far as the policy allows it."""
        if isinstance(ruling, CallEnd) or ruling.approval is None or not ruling.approval.opens or not ruling.action.cwd:
            return ruling
        effects = self.policy.sandbox.opened(ruling.verdict.effects, ruling.approval.opens)
        verdict = replace(ruling.verdict, effects=effects)
        opened = rule_on(ruling.proposal, ruling.action, verdict, ruling.approval, self.policy.unattended)
        return opened if isinstance(opened, Permit) else ruling

    def _intend(self, pending: PendingCall, ruling: Permit) -> NotedBefore | None:
        """Write the intent of a permitted call. Return the state of the protected places before it."""
        action, verdict = ruling.action, ruling.verdict
        noted = self.places.note(ruling)
        confinement = f"{self.tools.confinement(action.tool, verdict.effects)}{words_of(noted)}"
        self._records.intended(
            self._records.intent_of(pending.proposal, action, verdict, self._policy_sha256, confinement)
        )
        pending.intent_logged = ruling.seal.armed = True
        return noted

    def _settle(
        self,
        pending: PendingCall,
        ruling: Permit,
        noted: NotedBefore | None,
        attempt: Attempt,
        compare: CompareFiles | None = None,
    ) -> CallEnd:
        """Write the outcome of a call, with its changes and the words of the approver and the hooks. Return its end."""
        changes = compare() if compare is not None and attempt.is_started else None
        action = ruling.action
        result = attempt.result(self._records.redact)
        if self._options.phrase is not None:
            result = replace(result, content=self._options.phrase(action.tool, result))
        if ruling.approval is not None and ruling.approval.words:
            words = self._records.redact(ruling.approval.words_with_yes)
            result = replace(result, content=f"{result.content}\n\n[{words}]")
        result, entry_points = self.places.settle(ruling, noted, result)
        result, halts = self.checks.look_at(pending, ruling, result, ran=attempt.is_started)
        self._judge.note_changes(ruling, result, entry_points)
        self._records.record_end(pending.proposal, result, ran=True, changes=changes)
        self._calls.close(pending.proposal)
        return CallEnd(result=result, summary=self._summary(action), halts=halts)

    # -- read-only calls in parallel

    def only_reads(self, pending: PendingCall) -> bool:
        """Return whether a call may run in parallel with others; see `runs_beside`.

        Records nothing. Raises as `blocks` does.
        """
        from harness.gate.beside import runs_beside

        if self._options.dry_run:
            return False
        try:
            action, verdict = self._judge.judge(pending)
        except ToolError:
            return False
        return runs_beside(action, verdict, self.tools, self.checks)

    def call_together(
        self, group: Sequence[PendingCall], *, seconds_left: Callable[[], float | None] = lambda: None, limit: int = 1
    ) -> Sequence[CallEnd]:
        """Do as `call` for read-only calls (`only_reads`), at most `limit` in parallel. Return their ends in order.

        All are judged, then all intents are written, before the first call runs. Decisions, intents and outcomes are
        written in the order of the calls. Raises as `call` does, and GateError if a call is no longer read-only. An
        error in the middle ends the calls that run.
        """
        from harness.gate.beside import BesideCall, CallsBeside, runs_beside

        permits: list[tuple[PendingCall, Permit]] = []
        for pending in group:
            ruling = self.permit(pending, seconds_left=seconds_left)
            if isinstance(ruling, CallEnd) or not runs_beside(ruling.action, ruling.verdict, self.tools, self.checks):
                raise GateError("a call that only read when it was looked at does more now")
            permits.append((pending, ruling))
        noted = [self._intend(pending, ruling) for pending, ruling in permits]
        calls = [BesideCall(number=p.proposal.number, action=r.redeem(), effects=r.verdict.effects) for p, r in permits]

        ends: list[CallEnd] = []
        fault: ChangedCodeError | None = None
        with CallsBeside(
            calls,
            self.tools,
            seconds_left=seconds_left,
            limit=limit,
            interrupt=self._interrupt,
            monotonic=self._monotonic,
            undisturbed=self._log.held,
        ) as beside:
            for place, (pending, ruling) in enumerate(permits):
                attempt = beside.attempt(place)
                ends.append(self._settle(pending, ruling, noted[place], attempt))
                fault = fault or attempt.fault
        if fault is not None:
            raise fault
        return ends

    # -- calls that another program carries out: the gate does not run them, and other code records the outcome

    def question(self, pending: PendingCall) -> tuple[Action, Verdict] | None:
        """Record the decision on a call whose verdict is CONFIRM, for a program that asks the user itself.

        Return the action and its verdict. For any other verdict, record nothing and return `None`; the caller then uses
        `permit`.
        """
        try:
            action, verdict = self._checked(pending, None)
        except ToolError:
            return None
        if verdict.decision is not Decision.CONFIRM:
            return None
        self._records.decided(pending.proposal, action, verdict, self._policy_sha256)
        return action, verdict

    def leave_question(
        self, pending: PendingCall, action: Action, verdict: Verdict, confinement: str
    ) -> Mapping[str, JsonValue]:
        """Record that the other program asks about a call of `question`. Return the intent to write after approval.

        `confinement` briefly describes what confines that program to the effects of the verdict.
        """
        self._calls.close(pending.proposal)
        self._records.record_question(pending.proposal, action, verdict, "client")
        return self._records.intent_of(pending.proposal, action, verdict, self._policy_sha256, confinement)

    def release(self, permit: Permit, confinement: str) -> Mapping[str, JsonValue]:
        """Write the intent of a call that the other program carries out, redeem its permit, and return the intent.

        `confinement` as in `leave_question`.
        """
        self._calls.close(permit.proposal)
        intent = self._records.intent_of(
            permit.proposal, permit.action, permit.verdict, self._policy_sha256, confinement
        )
        self._records.intended(intent)
        permit.seal.armed = True
        permit.redeem()
        self._judge.note_changes(permit, None)
        return intent

    def deny(self, proposal: Proposal, action: Action, reason: str) -> CallEnd:
        """Refuse a permitted call, for a reason that is not part of its verdict. Return its end."""
        result = self._calls.end(proposal, ResultStatus.DENIED, f"Denied: {reason}")
        return CallEnd(result=result, summary=f"{self._summary(action)} (refused)")

    # -- ends without a run

    def skip(self, pending: PendingCall, reason: str) -> ToolResult:
        """Record a call whose turn never came, and return its result. Raises LogError."""
        return self._calls.skip(pending.proposal, reason)

    def end_open_calls(self, reason: str) -> None:
        """Record an end for the session's open calls, except for those that may have run. Raises LogError."""
        self._calls.end_all(reason)

    def _not_valid(self, pending: PendingCall, error: ToolError) -> CallEnd:
        """Record the end of a call that could not be prepared, with secrets masked. Return the end."""
        proposal, code = pending.proposal, error.code.value if error.code else ""
        content = self._records.redact(f"Error: {error}")
        result = self._calls.end_unjudged(proposal, ResultStatus.INVALID, content, "not a valid call", code)
        name = proposal.call.name if proposal.call.name in self.tools.names else "an unknown tool"
        return CallEnd(result=result, summary=f"{name} (not understood)")

    def _withheld(self, permit: Permit) -> CallEnd:
        content = f"Not run: {DRY_RUN} ({permit.verdict.deciding.by})."
        result = self._calls.end(permit.proposal, ResultStatus.NOT_RUN, content)
        return CallEnd(result=result, summary=f"{self._summary(permit.action)} (not run)")

    def _refused(self, pending: PendingCall, refusal: Refusal) -> CallEnd:
        status = ResultStatus.BLOCKED if refusal.decision is Decision.BLOCK else ResultStatus.DENIED
        result = self._calls.end(refusal.proposal, status, with_notes(refusal.text, pending.hook_answers))
        self._advise_on(refusal)
        return CallEnd(result=result, summary=f"{self._summary(refusal.action)} (refused)", ends_turn=refusal.ends_turn)

    def _advise_on(self, refusal: Refusal) -> None:
        """Record the rules that would let a refused call run, if there are any and nobody said no to it.

        A failure here has no effect.
        """
        has_answer = refusal.approval is not None and refusal.approval.answer is not Answer.NOBODY
        if self._options.advise is None or has_answer:
            return
        try:
            advice = self._options.advise(self.policy, refusal.action, refusal.verdict)
        except ChangedCodeError:
            raise
        except Exception as error:  # noqa: BLE001 - the refusal stands, with or without it
            advice = Advice(reason=f"what would let it run could not be worked out: {error!r}")
        self._records.advised(refusal.proposal, advice)

    def _summary(self, action: Action) -> str:
        """Return a one-line summary of an action. Secrets are masked before it is cut."""
        return f"{action.tool}: {self._records.brief(action)}"

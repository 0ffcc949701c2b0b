"""The gate: the one road of a call, from its proposal to its outcome. The only maker of permits and caller of tools.

Read `Gate.call` first, then `Gate.permit`; the methods below them are their steps, in order.

INVARIANT: any failure in here (a policy, an approver, the log) raises and stops the run, and never lets a call
through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from harness.actions import Action, Decision, JsonValue
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
from harness.gate.tool import TIME_OVER, Attempt, NotedBefore, SeenTool, TimedTool
from harness.interrupt import Interrupt, Interrupted
from harness.log.action_log import ActionLog
from harness.log.attachments import attachments_beside
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import replace

MAX_EDITS = 20
"""Maximum number of edits of one call: an approver that never comes to an end stops the run."""
MOST_KEPT_CHARACTERS = 100_000
"""Maximum length of the preview of a judged call that waits. A longer one is prepared again, or many would fill the memory."""
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
        """Make a gate. `checks` look at each call that may run, after the policy; `monotonic` is a clock in
        seconds.
        """
        self.tools = tools
        self._approver = approver
        self._log = log
        self._interrupt = interrupt or Interrupt()
        self._options = options
        self._monotonic = monotonic
        self._records = CallRecords(log)
        self.checks = CheckedCalls(checks, log, self._records)
        """Hooks, asked about calls."""
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
    def state(self) -> GateState:
        """State that a gate in another process needs to go on."""
        return GateState(proposed=self._calls.proposed, unseen=self._judge.unseen)

    def change_policy(self, policy: Policy, tools: ToolRegistry) -> None:
        """Judge by `policy` from now on, grants included, and offer `tools`; the caller has recorded it.

        INVARIANT: changes of entry points that no person has seen stay unseen.
        """
        self.grants.change_policy(self._guarded(policy))
        self._policy_sha256 = policy.sha256
        self.tools = tools

    def _guarded(self, policy: Policy) -> Policy:
        """INVARIANT: no call may write what decides on calls, nor what is kept of them."""
        return policy.guarding(self._log.path, attachments_beside(self._log.path), *self.checks.programs)

    def judge(self, action: Action) -> Verdict:
        """Return the verdict on an action by the present grants and walls. Records nothing. Raises GateError."""
        return self._judge.verdict(action)

    # -- the road of a call

    def propose(
        self,
        call: ToolCall,
        *,
        turn: int = 0,
        step: int = 0,
        by_person: bool = False,
        agent: Mapping[str, JsonValue] | None = None,
    ) -> PendingCall:
        """Record that `call` is wanted, as the `step`th (from 1) of this turn. Raises LogError.

        `by_person`: it is the person's own, and no part of the conversation. `agent`: another agent wants it, and says this
        of it; see schema.
        """
        return PendingCall(self._calls.propose(call, turn, step, by_person=by_person, agent=agent), by_person=by_person)

    def blocks(self, pending: PendingCall, *, waits: bool = False) -> bool:
        """Return whether a call is a hard block, without recording or asking. Raises GateError and WorkspaceError.

        Without a person, a confirm is one too if the policy's `[unattended]` says so. `waits`: others run before it.
        Raises Interrupted if the person stopped it meanwhile.
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
        """Judge, ask, write the intent, run, write the outcome; return the end of the call.

        A body that can be ended takes no longer than `seconds_left` (`None`: no limit), and none begins when that is
        0, except for a call with a question, whose yes may have come late. `approver` answers in place of the gate's
        own. Raises GateError, LogError and WorkspaceError, after which the run must stop, and Interrupted if the
        person stopped it before it was judged.
        """
        ruling = self.permit(pending, seconds_left=seconds_left, approver=approver)
        if isinstance(ruling, CallEnd):
            return ruling
        approval, effects, tool = ruling.approval, ruling.verdict.effects, self.tools[ruling.action.tool]
        noted = self._intend(pending, ruling)

        seconds = seconds_left()
        permitted = ruling.redeem()
        with Attempt(permitted.call, self._monotonic) as attempt, self._interrupt:
            if seconds is not None and seconds <= 0 and approval is None:
                attempt.not_begun(TIME_OVER)
            else:
                self.tools.check_place()  # a question may have stood for long
                attempt.is_started = True
                if approval is not None and approval.by == "person" and isinstance(tool, SeenTool):
                    tool.keep_seen(permitted)  # of any other yes nobody knows whether a person looked
                if isinstance(tool, TimedTool):
                    attempt.take(tool.run_for(permitted, effects, seconds or None))
                else:
                    attempt.take(tool.run(permitted, effects))
        end = self._settle(pending, ruling, noted, attempt)
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
        """Judge a call, and ask where the verdict is CONFIRM; return its permit, or its end. Raises as `call` does."""
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
                    return self._within_walls(ruling)
                case Refusal(replacement_call=None):
                    return self._refused(pending, ruling)
                case Refusal():
                    self._put_in_place(pending, ruling)
                    if seconds_left() == 0:  # the answer may have come late, and this call has no yes
                        name = pending.proposal.call.name
                        return CallEnd(result=self.skip(pending, TIME_OVER), summary=f"{name} (not run)")
                case _:
                    assert_never(ruling)

    def _checked(self, pending: PendingCall, seconds: float | None) -> tuple[Action, Verdict]:
        """Return a call and its verdict, tightened by the hooks; changes by the hooks themselves are judged anew.

        Raises like `Judge.judged`, and Interrupted.
        """
        action, verdict = self._judge.judge(pending)
        if self.checks.ask_before(pending, action, verdict, seconds):
            self._judge.mark_changed()
            action, verdict = self._judge.judge(pending)
        return action, tightened(verdict, action.tool, pending.hook_answers)

    def _ask(self, pending: PendingCall, action: Action, verdict: Verdict, approver: Approver) -> Approval:
        from harness.gate.beside import on_gates_thread

        self._records.record_question(pending.proposal, action, verdict)
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
        """End a call that was edited at the question, and propose its replacement."""
        self._calls.end(refusal.proposal, ResultStatus.DENIED, refusal.text)
        replacement = refusal.replacement_call
        if replacement is None or len(pending.edits) >= MAX_EDITS:
            raise GateError(f"the approver changed one call more than {MAX_EDITS} times")
        pending.edits.append(self._records.redact(replacement.arguments))
        pending.proposal = self._calls.propose(
            replacement, refusal.proposal.turn, refusal.proposal.step, refusal.proposal
        )

    def _take_grants(self, permit: Permit, *, asked_own: bool) -> None:
        """Note the grants of an answer besides the yes."""
        if permit.verdict.notes and asked_own:  # they were part of the question, and the answer was yes
            self._judge.mark_seen()
        if permit.approval is not None and permit.approval.scope is not None:
            self.grants.add(permit.proposal, permit.approval, permit.approval.scope)

    def _within_walls(self, permit: Permit) -> Permit | CallEnd:
        """Return the permit of a call within the walls granted at its question; its end where these cannot hold it.

        INVARIANT: a program that is granted inside walls runs within them from this call on.
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

    def _intend(self, pending: PendingCall, ruling: Permit) -> NotedBefore | None:
        """Write the intent of a call that may run; return the places that were noted before it."""
        action, verdict = ruling.action, ruling.verdict
        noted = self.places.note(ruling)
        confinement = f"{self.tools.confinement(action.tool, verdict.effects)}{words_of(noted)}"
        self._records.intended(
            self._records.intent_of(pending.proposal, action, verdict, self._policy_sha256, confinement)
        )
        pending.intent_logged = ruling.seal.armed = True
        return noted

    def _settle(self, pending: PendingCall, ruling: Permit, noted: NotedBefore | None, attempt: Attempt) -> CallEnd:
        """Write the outcome of a call, with what people and hooks say of it."""
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
        self._records.record_end(pending.proposal, result, ran=True)
        self._calls.close(pending.proposal)
        return CallEnd(result=result, summary=self._summary(action), halts=halts)

    # -- calls that only read, side by side

    def only_reads(self, pending: PendingCall) -> bool:
        """Return whether a call may run beside others; see `runs_beside`. Records nothing. Raises as `blocks` does."""
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
        """Do as `call` with calls that only read (`only_reads`), at most so many at once; return their ends, in their order.

        Each is decided, and then each intent is written, in their order, before the first runs; the outcomes are written in
        the same order. Raises as `call` does, and GateError for a call that is another than it was; what runs was ended then.
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

    # -- calls that another program carries out: nothing runs here, and the outcome is recorded by whoever learns of it

    def question(self, pending: PendingCall) -> tuple[Action, Verdict] | None:
        """Record the decision on a call whose verdict is CONFIRM, for a program that asks a person itself.

        Return the call and its verdict. None for any other call: nothing was recorded, and `permit` decides on it.
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
        """Record that the other program asks about a call of `question`; return the intent to write after a yes.

        `confinement` says in a few words what holds that program to the effects of the verdict.
        """
        self._calls.close(pending.proposal)
        self._records.record_question(pending.proposal, action, verdict)
        return self._records.intent_of(pending.proposal, action, verdict, self._policy_sha256, confinement)

    def release(self, permit: Permit, confinement: str) -> Mapping[str, JsonValue]:
        """Write the intent of a call that the other program carries out, and spend its permit; return the intent.

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
        """Refuse a call that was permitted, for a reason that its verdict does not know; return its end."""
        result = self._calls.end(proposal, ResultStatus.DENIED, f"Denied: {reason}")
        return CallEnd(result=result, summary=f"{self._summary(action)} (refused)")

    # -- ends without a run

    def skip(self, pending: PendingCall, reason: str) -> ToolResult:
        """Record a call whose turn never came, and return its result. Raises LogError."""
        return self._calls.skip(pending.proposal, reason)

    def end_open_calls(self, reason: str) -> None:
        """Record an end for the session's calls that something cut short, but for those that may have run. Raises LogError."""
        self._calls.end_all(reason)

    def _not_valid(self, pending: PendingCall, error: ToolError) -> CallEnd:
        """Record a call that could not be prepared, secrets masked."""
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
        """Record the rules that would let a refused call run, if there are any. A failure here has no effect."""
        if self._options.advise is None:
            return
        try:
            advice = self._options.advise(self.policy, refusal.action, refusal.verdict)
        except ChangedCodeError:
            raise
        except Exception as error:  # noqa: BLE001 - the refusal stands, with or without it
            advice = Advice(reason=f"what would let it run could not be worked out: {error!r}")
        self._records.advised(refusal.proposal, advice)

    def _summary(self, action: Action) -> str:
        """Return an action in one short line, with secrets masked before it was cut."""
        return f"{action.tool}: {self._records.brief(action)}"

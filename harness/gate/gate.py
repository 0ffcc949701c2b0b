"""The gate: the one road of a call, from its proposal to its outcome. The only maker of permits and caller of tools.

INVARIANT: whatever goes wrong in here (a policy, an approver, the log) raises and stops the run; nothing is let through.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from harness.actions import Action, Command, Effects, JsonValue, Opaque, PathAccess, ToolUse, Unconfined, written_paths
from harness.decisions import Decision
from harness.errors import ChangedCodeError, GateError, LogError, ToolError
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.beside import Beside, looks_only, on_gates_thread
from harness.gate.call_checks import NO_CHECKS, CallChecks, CheckAnswer, tightened, with_notes
from harness.gate.checked_calls import CheckedCalls
from harness.gate.grants_in_force import GrantsInForce, GrantStore
from harness.gate.pending_call import CallEnd, HandedOver, PendingCall
from harness.gate.place_watch import AskPlaces, PlaceWatch, nobody_to_ask, words_of
from harness.gate.records import Advice, CallRecords, GateState, Proposal, sha256_of
from harness.gate.registry import ToolRegistry
from harness.gate.ruling import Permit, Refusal, rule_on
from harness.gate.tool import Attempt, BesideTool, ConfinedTool, Neighbour, NotedBefore, SeenTool, TimedTool
from harness.interrupt import Interrupt, Interrupted
from harness.log.action_log import ActionLog
from harness.log.attachments import attachments_beside
from harness.log.vocabulary import Answer, PlacesAnswer
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.place_changes import PlaceChange
from harness.policy.built_in import is_entry_point
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer, WallsHere
from harness.policy.policy import Policy
from harness.policy.session_grants import Grant
from harness.policy.verdict import Source, Verdict, asking_about
from harness.record import replace

_FACETS = (Command, PathAccess, Opaque, Unconfined, ToolUse)

MAX_EDITS = 20
"""Of one call: an approver that never comes to an end stops the run."""
MOST_KEPT_CHARACTERS = 100_000
"""Of the preview of a call that is judged and has to wait: a longer one is prepared again, or many would fill the memory."""
DRY_RUN = "dry run; every call is judged and recorded, and none is run. This one may run"
"""Why a call did not run that may."""
TIME_OVER = "the time of the run was over"
NO_WALLS = (
    "the walls that were chosen at the question cannot hold this call any more: files that a rule speaks of appeared "
    "meanwhile. Nothing was run. Send the call again: it is asked about again."
)


class Gate:
    """Judges, asks, records and runs. Policy, approver and log have no defaults: there is no gate without them."""

    def __init__(  # noqa: PLR0913 - the parts of a gate, each named where it is passed
        self,
        *,
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        tools: ToolRegistry,
        interrupt: Interrupt | None = None,
        grants: Sequence[Grant] = (),
        kept: GrantStore | None = None,
        dry_run: bool = False,
        advise: Callable[[Policy, Action, Verdict], Advice] | None = None,
        checks: CallChecks = NO_CHECKS,
        ask_places: AskPlaces = nobody_to_ask,
        phrase: Callable[[str, ToolResult], str] | None = None,
        begun: GateState = GateState(),  # noqa: B008 - it never changes
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the parts.

        `grants` are in force from the beginning. `kept` keeps what is granted for the workspace; what cannot be kept holds
        for the session. `dry_run`: nothing runs. `advise` is asked about each call that is refused, and what it says is
        recorded. `checks` are asked after the policy, about each call that may run. `ask_places` asks a person about protected
        places that a granted program changed. `phrase` is given a tool's name and its result, and returns what the model and
        the log have of it. `begun` is what the gate
        knew that the session had before, in another process.
        """
        self.tools = tools
        self._approver = approver
        self._log = log
        self._interrupt = interrupt or Interrupt()
        self._dry_run = dry_run
        self._phrase = phrase
        self._advise = advise
        self._monotonic = monotonic
        self._records = CallRecords(log)
        self._checks = CheckedCalls(checks, log, self._records)
        self._grants = GrantsInForce(self._guarded(policy), grants, kept, self._walls_here, self._records)
        self._watch = PlaceWatch(self._grants, self._records, ask_places, monotonic)
        self._policy_sha256 = policy.sha256
        self._proposed = begun.proposed
        self._open: dict[int, Proposal] = {}
        """Calls that have no outcome yet."""
        self._unseen = list(begun.unseen)
        self._changes = 0
        """How often something ran that may have changed what a prepared call means."""

    @property
    def policy(self) -> Policy:
        """The policy that calls are judged by, grants included."""
        return self._grants.policy

    @property
    def stated_policy(self) -> Policy:
        """The policy without what a person granted."""
        return self._grants.files

    @property
    def state(self) -> GateState:
        """What a gate in another process must know to go on."""
        return GateState(proposed=self._proposed, unseen=tuple(self._unseen))

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What is granted and not revoked, the oldest first."""
        return self._grants.grants

    def change_policy(self, policy: Policy, tools: ToolRegistry) -> None:
        """Judge by `policy` from now on, grants included, and offer `tools`; whoever calls this has recorded it.

        INVARIANT: changes of entry points that no person has seen stay unseen.
        """
        self._grants.change_policy(self._guarded(policy))
        self._policy_sha256 = policy.sha256
        self.tools = tools

    def _guarded(self, policy: Policy) -> Policy:
        """INVARIANT: no call may write what decides on calls, nor what is kept of them."""
        return policy.guarding(self._log.path, attachments_beside(self._log.path), *self._checks.programs)

    def judge(self, action: Action) -> Verdict:
        """Return what would be decided on an action now, grants and walls as they are. Records nothing. Raises GateError."""
        return self._verdict(action, by_person=False)

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return what the person may grant at the question whether `action` may run; else why nothing."""
        if action.asked_by:
            return f"a yes to {action.asked_by} counts for this call alone"
        return self._grants.offer(action, verdict)

    def record_kept(self) -> None:
        """Record the grants that are in force as a session begins; those of another session end here. Raises LogError."""
        self._grants.begin_session()

    def note_checks(self, answers: Sequence[CheckAnswer]) -> None:
        """Record what hooks said that was about no call. Raises LogError."""
        self._checks.note(answers)

    def revoke(self, grant: Grant) -> str:
        """End a grant, also where it is kept; return why it is kept on for later sessions, or nothing. Raises LogError."""
        return self._grants.end(grant)

    def ask_places(self, grant: Grant) -> PlacesAnswer:
        """Ask about a grant that sleeps, and do what is answered. Raises LogError."""
        tool = next((name for name in grant.pattern.tools if name in self.tools.names), None)
        return PlacesAnswer.NOBODY if tool is None else self._watch.ask_again(self.tools[tool], grant)

    def narrow(self, held: Grant, words: Sequence[str]) -> Grant | str:
        """Put a grant of less, as `words` say it, in the place of one; return it, or why all stays. Raises LogError."""
        return self._grants.narrow(held, words)

    @property
    def allows_edits(self) -> bool:
        """Whether all edits in the workspace are granted for this session by the mode of that name."""
        return self._grants.allows_edits

    def allow_edits(self, *, on: bool) -> None:
        """Grant all edits in the workspace for this session, or end that. Raises LogError."""
        self._grants.allow_edits(on=on)

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
        return PendingCall(self._new_proposal(call, turn, step, by_person=by_person, agent=agent), by_person=by_person)

    def blocks(self, pending: PendingCall, *, waits: bool = False) -> bool:
        """Say whether a call is a hard block, without recording or asking. Raises GateError and WorkspaceError.

        With nobody to ask, a confirm is one too where the policy's `[unattended]` says so. `waits`: others run before it.
        Raises Interrupted where the person stopped it meanwhile.
        """
        try:
            action, verdict = self._judged(pending)
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
        """Judge, ask, write the intent, run, write the outcome; return what became of the call.

        A body that can be ended takes no longer than `seconds_left` (None: no limit), and none begins when that is 0; but
        a call that somebody was asked about runs: their yes may have come late. `approver` answers in the place of the
        gate's own. Raises GateError, LogError and WorkspaceError; then the run must stop; and
        Interrupted where the person stopped it before it was judged.
        """
        ruling = self._permitted(pending, seconds_left=seconds_left, approver=approver)
        if isinstance(ruling, CallEnd):
            return ruling
        approval, effects, tool = ruling.approval, ruling.verdict.effects, self.tools[ruling.action.tool]
        noted = self._intend(pending, ruling)

        left = seconds_left()
        permitted = ruling.redeem()
        with Attempt(permitted.call, self._monotonic) as attempt, self._interrupt:
            if left is not None and left <= 0 and approval is None:
                attempt.not_begun(TIME_OVER)
            else:
                self.tools.check_place()  # a question may have stood for long
                attempt.begun = True
                if approval is not None and approval.by == "person" and isinstance(tool, SeenTool):
                    tool.keep_seen(permitted)  # of any other yes nobody knows whether a person looked
                if isinstance(tool, TimedTool):
                    attempt.take(tool.run_for(permitted, effects, left or None))
                else:
                    attempt.take(tool.run(permitted, effects))
        end = self._settle(pending, ruling, noted, attempt)
        if attempt.fault is not None:
            raise attempt.fault
        return end

    def only_reads(self, pending: PendingCall) -> bool:
        """Say whether a call may run beside others: nothing but reading is permitted, nobody is asked, no hook looks at it,
        and its tool can run so. Records nothing. Raises as `blocks` does.
        """
        if self._dry_run:
            return False
        try:
            action, verdict = self._judged(pending)
        except ToolError:
            return False
        return self._reads(action, verdict)

    def _reads(self, action: Action, verdict: Verdict) -> bool:
        if verdict.decision is not Decision.AUTO or verdict.programs or not looks_only(verdict.effects):
            return False
        tool = self.tools[action.tool]
        # A command is what its text says only as far as the kernel holds it to that.
        held = not isinstance(tool, ConfinedTool) or self.tools.bounds_by_kernel(action.tool)
        beside = isinstance(tool, BesideTool) and tool.runs_beside
        return beside and held and not self._checks.asks_about(action)

    def call_together(
        self, group: Sequence[PendingCall], *, seconds_left: Callable[[], float | None] = lambda: None, most: int = 1
    ) -> Sequence[CallEnd]:
        """Do as `call` with calls that only read (`only_reads`), at most so many at once; return their ends, in their order.

        Each is decided, and then each intent is written, in their order, before the first runs; the outcomes are written in
        the same order. Raises as `call` does, and GateError for a call that is another than it was; what runs was ended then.
        """
        permits: list[tuple[PendingCall, Permit]] = []
        for pending in group:
            ruling = self._permitted(pending, seconds_left=seconds_left)
            if isinstance(ruling, CallEnd) or not self._reads(ruling.action, ruling.verdict):
                raise GateError("a call that only read when it was looked at does more now")
            permits.append((pending, ruling))
        noted = [self._intend(pending, ruling) for pending, ruling in permits]
        effects = [ruling.verdict.effects for _, ruling in permits]
        permitted = [ruling.redeem() for _, ruling in permits]

        calls = [
            (action.tool, pending.proposal.number) for action, (pending, _) in zip(permitted, permits, strict=True)
        ]

        def run(place: int, neighbour: Neighbour) -> Attempt:
            tool, call = calls[place]
            known = replace(neighbour, call=call, alike=tuple(number for name, number in calls if name == tool))
            return self._read(permitted[place], effects[place], seconds_left(), known)

        ends: list[CallEnd] = []
        fault: ChangedCodeError | None = None
        with Beside(
            len(permits),
            run,
            most=most,
            interrupt=self._interrupt,
            monotonic=self._monotonic,
            undisturbed=self._log.held,
        ) as beside:
            for place, (pending, ruling) in enumerate(permits):
                attempt = beside.ended(place) or self._given_up(permitted[place], beside.began(place))
                ends.append(self._settle(pending, ruling, noted[place], attempt))
                fault = fault or attempt.fault
        if fault is not None:
            raise fault
        return ends

    def _read(self, permitted: Action, effects: Effects, left: float | None, neighbour: Neighbour) -> Attempt:
        """Run the body of a call that only reads; on any thread."""
        tool = self.tools[permitted.tool]
        with Attempt(permitted.call, self._monotonic) as attempt:
            if neighbour.stops() or self._interrupt.requested:
                attempt.not_begun("the person interrupted" if self._interrupt.requested else "the run was stopped")
            elif left is not None and left <= 0:
                attempt.not_begun(TIME_OVER)
            elif isinstance(tool, BesideTool):
                self.tools.check_place()
                attempt.begun = True
                attempt.take(tool.run_beside(permitted, effects, left or None, neighbour))
        return attempt

    def _given_up(self, permitted: Action, since: float | None) -> Attempt:
        """Return what came of a body that was asked to stop, and did not end."""
        with Attempt(permitted.call, self._monotonic, since=since) as attempt:
            attempt.begun = since is not None
            raise KeyboardInterrupt
        return attempt

    def _intend(self, pending: PendingCall, ruling: Permit) -> NotedBefore | None:
        """Write the intent of a call that may run; return the places that were noted before it."""
        action, verdict = ruling.action, ruling.verdict
        noted = self._watch.note(self.tools[action.tool], ruling)
        held = f"{self.tools.confinement(action.tool, verdict.effects)}{words_of(noted)}"
        self._records.intended(self._records.intent_of(pending.proposal, action, verdict, self._policy_sha256, held))
        pending.begun = ruling.seal.armed = True
        return noted

    def _settle(self, pending: PendingCall, ruling: Permit, noted: NotedBefore | None, attempt: Attempt) -> CallEnd:
        """Write the outcome of a call, with what people and hooks say of it."""
        action = ruling.action
        result = attempt.result(self._records.redact)
        if self._phrase is not None:
            result = replace(result, content=self._phrase(action.tool, result))
        result = self._with_words(result, ruling.approval)
        result, entry_points = self._watch.settle(self.tools[action.tool], ruling, noted, result)
        result, halts = self._checks.look_at(pending, ruling, result, ran=attempt.begun)
        self._note_changes(ruling, result, entry_points)
        self._records.ended(pending.proposal, result, ran=True)
        self._open.pop(pending.proposal.number, None)
        return CallEnd(result=result, about=self._about(action), halts=halts)

    def hand_over(
        self, pending: PendingCall, *, held_by: Callable[[Action, Verdict], str], asks_itself: bool = False
    ) -> HandedOver | CallEnd:
        """Judge, ask and write the intent of a call that another program carries out; nothing runs here.

        `held_by` says what holds it to its effects, in a few words for the log; it raises ToolError for a call that must be
        held and cannot be. `asks_itself`: that program can ask a person, and does so where the verdict is CONFIRM; the
        question is recorded. What the call came to is recorded later, by whoever learns of it. Raises as `call` does.
        """
        if asks_itself and (asking := self._asking(pending, held_by)) is not None:
            return asking
        ruling = self._permitted(pending)
        if isinstance(ruling, CallEnd):
            return ruling
        handed = self._handed_over(pending, ruling.action, ruling.verdict, held_by, asks=False)
        if isinstance(handed, CallEnd):
            return handed
        self._records.intended(handed.intent)
        ruling.seal.armed = True
        ruling.redeem()
        self._note_changes(ruling, None)
        return handed

    def _asking(self, pending: PendingCall, held_by: Callable[[Action, Verdict], str]) -> HandedOver | CallEnd | None:
        """Record the question about a call whose verdict is CONFIRM, and return it; None for any other."""
        try:
            action, verdict = self._checked(pending, None)
        except ToolError:
            return None
        if verdict.decision is not Decision.CONFIRM:
            return None
        self._records.decided(pending.proposal, action, verdict, self._policy_sha256)
        handed = self._handed_over(pending, action, verdict, held_by, asks=True)
        if isinstance(handed, HandedOver):
            self._records.asked(pending.proposal, action, verdict)
        return handed

    def _handed_over(
        self,
        pending: PendingCall,
        action: Action,
        verdict: Verdict,
        held_by: Callable[[Action, Verdict], str],
        *,
        asks: bool,
    ) -> HandedOver | CallEnd:
        proposal = pending.proposal
        try:
            held = held_by(action, verdict)
        except ToolError as error:
            result = self._end(proposal, ResultStatus.DENIED, f"Denied: {error}")
            return CallEnd(result=result, about=f"{self._about(action)} (refused)")
        self._open.pop(proposal.number, None)
        intent = self._records.intent_of(proposal, action, verdict, self._policy_sha256, held)
        return HandedOver(proposal=proposal, action=action, verdict=verdict, intent=intent, asks=asks)

    def skip(self, pending: PendingCall, why: str) -> ToolResult:
        """Record a call whose turn never came, and return its result. Raises LogError."""
        return self._end_unjudged(pending.proposal, ResultStatus.NOT_RUN, f"Not run: {why}", why)

    def end_open_calls(self, why: str) -> None:
        """Record an end for the session's calls that something cut short. Raises LogError.

        A call whose intent is the last that is known of it gets none: it may have run, and an audit must be told.
        """
        for proposal in tuple(self._open.values()):
            step = self._log.last_step(proposal.number)
            if step == "call_proposed":
                self._end_unjudged(proposal, ResultStatus.NOT_RUN, f"Not run: {why}", why)
            elif step in ("decision", "approval_asked", "approval_answered"):
                self._end(proposal, ResultStatus.NOT_RUN, f"Not run: {why}")

    def _permitted(
        self,
        pending: PendingCall,
        *,
        seconds_left: Callable[[], float | None] = lambda: None,
        approver: Approver | None = None,
    ) -> Permit | CallEnd:
        """Judge a call, and ask where it is to be asked about; return its permit, or its end."""
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
                case Permit() if self._dry_run:
                    return self._withheld(ruling)
                case Permit():
                    self._take_grants(ruling, asked_own=approver is None)
                    return self._within_walls(ruling)
                case Refusal(wanted=None):
                    return self._refused(pending, ruling)
                case Refusal():
                    self._put_in_place(pending, ruling)
                    if seconds_left() == 0:  # the answer may have come late, and this call has no yes
                        return self._too_late(pending)
                case _:
                    assert_never(ruling)

    # -- judging

    def _walls_here(self, policy: Policy, tool: str) -> WallsHere:
        return self.tools.walls_here(policy, tool)  # of the tools that are on offer then

    def _judged(self, pending: PendingCall) -> tuple[Action, Verdict]:
        """Return what a call means and the verdict on it; worked out anew only if something that matters has changed.

        Raises ToolError for what is no valid call, GateError for a policy that cannot judge it, WorkspaceError.
        """
        if pending.action is None or pending.prepared_at != self._changes:
            pending.action = pending.verdict = None
            pending.action = self._prepared(pending.proposal.call)
            pending.prepared_at = self._changes
        based_on = (self.policy, len(self._unseen))
        if pending.verdict is None or pending.judged_by != based_on:
            pending.verdict = self._verdict(pending.action, by_person=pending.by_person)
            pending.judged_by = based_on
        return pending.action, pending.verdict

    def _prepared(self, call: ToolCall) -> Action:
        self.tools.check_place()
        try:
            with self._interrupt:  # it has no effects, and may take seconds
                action = self.tools.prepare(call, self.policy)
        except KeyboardInterrupt:
            raise Interrupted from None
        # As they were parsed: in the raw text a mark could be spelled with escapes.
        raw = call.arguments if "\\u" not in call.arguments else json.dumps(dict(action.arguments), ensure_ascii=False)
        mark = self._log.redactor.issued(raw)
        if mark:
            raise ToolError(
                f"The arguments hold {mark}, which stands for a secret that was not shown to you; it would be written in "
                "the secret's place. Leave that part of the file as it is: change the lines around it."
            )
        return action

    def _verdict(self, action: Action, *, by_person: bool) -> Verdict:
        try:
            if not all(isinstance(facet, _FACETS) for facet in action.facets):
                raise TypeError("a facet of a kind that no rule knows")  # noqa: TRY301 - a default would decide it
            verdict = self._grants.judge(action, tuple(dict(self._unseen)))
            if by_person and (reasons := destroys(action)):  # typing it is no answer to that
                verdict = asking_about(verdict, reasons)
        except Exception as error:
            raise GateError(f"the policy could not judge a call of {action.tool}: {error!r}") from error
        if self._unseen and any(facet.source is Source.SUSPENDED for facet in verdict.facets):
            return replace(verdict, notes=tuple(preview for _, preview in self._unseen))
        return verdict

    def _checked(self, pending: PendingCall, seconds: float | None) -> tuple[Action, Verdict]:
        """Return the same, tightened by what hooks say; what they may have changed meanwhile is judged anew.

        Raises as `_judged` does, and Interrupted.
        """
        action, verdict = self._judged(pending)
        if self._checks.ask_before(pending, action, verdict, seconds):
            self._changes += 1
            action, verdict = self._judged(pending)
        return action, tightened(verdict, action.tool, pending.said)

    # -- asking

    def _ask(self, pending: PendingCall, action: Action, verdict: Verdict, approver: Approver) -> Approval:
        self._records.asked(pending.proposal, action, verdict)
        started = self._monotonic()
        try:
            approval = on_gates_thread(lambda: approver(action, verdict))
        except KeyboardInterrupt:
            approval = Approval(answer=Answer.STOP, by="person")
        except Interrupted:
            approval = Approval(
                answer=Answer.STOP, by="nobody", words="all was stopped before anybody saw the question"
            )
        except (GateError, LogError):
            raise
        except Exception as error:
            raise GateError(f"the approver failed: {error!r}") from error
        _check_approval(approval)
        self._grants.check(action, verdict, approval)
        self._records.answered(pending.proposal, approval, self._monotonic() - started, self._proposed + 1)
        return approval

    def _put_in_place(self, pending: PendingCall, refusal: Refusal) -> None:
        """End a call that was changed at the question, and propose what is wanted in its place."""
        self._end(refusal.proposal, ResultStatus.DENIED, refusal.text)
        wanted = refusal.wanted
        if wanted is None or len(pending.edits) >= MAX_EDITS:
            raise GateError(f"the approver changed one call more than {MAX_EDITS} times")
        pending.edits.append(self._records.redact(wanted.arguments))
        pending.proposal = self._new_proposal(wanted, refusal.proposal.turn, refusal.proposal.step, refusal.proposal)

    def _with_words(self, result: ToolResult, approval: Approval | None) -> ToolResult:
        """Return a result with the words that came with the yes, marked as theirs, behind what the call itself says."""
        if approval is None or not approval.words:
            return result
        whose = f"{approval.whose[0].upper()}{approval.whose[1:]}"
        said = f'{whose} allowed this call, and says to you: "{approval.words}"'
        return replace(result, content=f"{result.content}\n\n[{self._records.redact(said)}]")

    def _take_grants(self, permit: Permit, *, asked_own: bool) -> None:
        """Note what an answer says besides the yes."""
        if permit.verdict.notes and asked_own:  # they were part of the question, and the answer was yes
            self._unseen.clear()
        if permit.approval is not None and permit.approval.scope is not None:
            self._grants.add(permit.proposal, permit.approval, permit.approval.scope)

    def _within_walls(self, permit: Permit) -> Permit | CallEnd:
        """Return the permit of a call within the walls granted at its question; its end where these cannot hold it.

        INVARIANT: a program that is granted inside walls runs within them from this call on.
        """
        proposal, action, approval = permit.proposal, permit.action, permit.approval
        programs = {pattern for pattern in approval.patterns if pattern.program} if approval else set()
        if not programs:
            return permit
        verdict = self._verdict(action, by_person=False)
        in_force = {grant.pattern for grant in self.grants if grant.id in verdict.programs}
        ruling = rule_on(proposal, action, verdict, approval, self.policy.unattended, self._records.describe)
        if not programs <= in_force or not isinstance(ruling, Permit):
            result = self._end(proposal, ResultStatus.DENIED, f"Denied: {NO_WALLS}")
            return CallEnd(result=result, about=f"{self._about(action)} (refused)")
        return ruling

    # -- ends

    def _not_valid(self, pending: PendingCall, error: ToolError) -> CallEnd:
        """Record a call that could not be prepared, secrets masked."""
        proposal, code = pending.proposal, error.code.value if error.code else ""
        content = self._records.redact(f"Error: {error}")
        result = self._end_unjudged(proposal, ResultStatus.INVALID, content, "not a valid call", code)
        name = proposal.call.name if proposal.call.name in self.tools.names else "an unknown tool"
        return CallEnd(result=result, about=f"{name} (not understood)")

    def _too_late(self, pending: PendingCall) -> CallEnd:
        return CallEnd(result=self.skip(pending, TIME_OVER), about=f"{pending.proposal.call.name} (not run)")

    def _withheld(self, permit: Permit) -> CallEnd:
        content = f"Not run: {DRY_RUN} ({permit.verdict.deciding.by})."
        result = self._end(permit.proposal, ResultStatus.NOT_RUN, content)
        return CallEnd(result=result, about=f"{self._about(permit.action)} (not run)")

    def _refused(self, pending: PendingCall, refusal: Refusal) -> CallEnd:
        status = ResultStatus.BLOCKED if refusal.decision is Decision.BLOCK else ResultStatus.DENIED
        result = self._end(refusal.proposal, status, with_notes(refusal.text, pending.said))
        self._advise_on(refusal)
        return CallEnd(result=result, about=f"{self._about(refusal.action)} (refused)", ends_turn=refusal.ends_turn)

    def _advise_on(self, refusal: Refusal) -> None:
        """Record what would let a refused call run, where somebody knows; that nobody does harms nothing."""
        if self._advise is None:
            return
        try:
            advice = self._advise(self.policy, refusal.action, refusal.verdict)
        except ChangedCodeError:
            raise
        except Exception as error:  # noqa: BLE001 - the refusal stands, with or without it
            advice = Advice(why=f"what would let it run could not be worked out: {error!r}")
        self._records.advised(refusal.proposal, advice)

    def _note_changes(self, permit: Permit, result: ToolResult | None, found: Sequence[PlaceChange] = ()) -> None:
        """Note what a call that ran may have changed: what other calls mean, and entry points that no person has seen.

        No result: another program carries it out, and may change whatever its parts write. `found` are entry points that
        the watch saw changed.
        """
        action, effects = permit.action, permit.verdict.effects
        for one in found:
            preview = "\n".join((f"{one.path}  {one.how}", *one.diff))
            self._unseen.append((f"{one.path} ({self._records.brief(action)})", preview))
        if effects.write == () and self.tools.bounds_by_kernel(action.tool):
            return
        self._changes += 1
        changed = written_paths(action) if result is None else changed_paths(action, result)
        if permit.approval is None and any(is_entry_point(path) for path in changed):
            self._unseen.append((self._records.brief(action), action.preview))

    def _new_proposal(
        self,
        call: ToolCall,
        turn: int,
        step: int,
        edited_from: Proposal | None = None,
        *,
        by_person: bool = False,
        agent: Mapping[str, JsonValue] | None = None,
    ) -> Proposal:
        self._proposed += 1
        digest = sha256_of(call.arguments)
        proposal = Proposal(number=self._proposed, call=call, arguments_sha256=digest, turn=turn, step=step)
        self._open[proposal.number] = proposal
        self._records.proposed(proposal, edited_from=edited_from, by_person=by_person, agent=agent)
        return proposal

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

    def _about(self, action: Action) -> str:
        """Return an action in one short line, with secrets masked before it was cut."""
        return f"{action.tool}: {self._records.brief(action)}"


def _check_approval(approval: object) -> None:
    """Raise GateError for what an approver must not return: no type checker sees every approver."""
    if not isinstance(approval, Approval):
        raise GateError(f"the approver returned {type(approval).__name__}, not an Approval")
    if not approval.is_sound:
        raise GateError(f"the approver returned no valid Approval: {approval!r}")


def changed_paths(action: Action, result: ToolResult) -> tuple[str, ...]:
    """Return the files that a call changed; of one that could not report, those that it may have changed.

    Only tools of files report. What the parts of any other call write is taken for changed, however it ended.
    """
    if result.changed_path is not None:
        return (result.changed_path,)
    cut_short = result.status in (ResultStatus.INTERRUPTED, ResultStatus.CRASHED, ResultStatus.TIMEOUT)
    return written_paths(action) if cut_short or not action.kind.is_of_files else ()

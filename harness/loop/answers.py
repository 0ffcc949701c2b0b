"""Answers: the calls of one reply, each put through the gate and given its one result, in the order of the calls."""

from __future__ import annotations

import json

from harness.actions import Action
from harness.errors import GateError, ToolError
from harness.exhaustive import assert_never
from harness.gate.gate import Gate, Permit, Refusal, Withheld
from harness.gate.records import Proposal
from harness.gate.registry import ToolRegistry
from harness.interrupt import Interrupt
from harness.log.action_log import ActionLog
from harness.log.rebuilding import UNKNOWN, edited_text
from harness.loop.run import Run
from harness.loop.running import run_permitted
from harness.messages import (
    FinishReason,
    ModelResponse,
    ResultStatus,
    RunResult,
    StopReason,
    ToolCall,
    ToolResult,
)
from harness.policy.rules import Decision

ENDED_HERE = "the run ended here."
MOST_UNUSABLE = 2
"""Of so many replies in a row that cannot be used, the last ends the run."""
CUT_SHORT = (
    "the reply was cut at the model's length limit. Nothing of it ran. Send less at a time: fewer calls in one reply, and a "
    "long file in several parts."
)
MAX_EDITS = 20
"""Of one call: an approver that never comes to an end stops the run."""


class Answers:
    """What becomes of one reply's calls."""

    def __init__(
        self,
        run: Run,
        response: ModelResponse,
        *,
        gate: Gate,
        registry: ToolRegistry,
        interrupt: Interrupt,
        log: ActionLog,
        done_marker: str | None,
    ) -> None:
        """Take the run and the reply; nothing is judged yet.

        A command that succeeds and prints `done_marker` as its first line ends the run; None: none does.
        """
        self._run = run
        self._response = response
        self._gate = gate
        self._registry = registry
        self._interrupt = interrupt
        self._log = log
        self._done_marker = done_marker
        self._proposals: list[Proposal] = []
        self._results: dict[int, ToolResult] = {}
        self._running: int | None = None
        self._edits: dict[int, list[str]] = {}
        """What calls were changed into at the question: their arguments, one change after the other."""

    def give(self) -> RunResult | None:
        """Run what may run, and give every call its result, even if something in here raises.

        Returns how the run ended, or None where it goes on. Raises GateError, LogError, WorkspaceError.

        INVARIANT: reply and results enter the history in one step; there is no moment at which a call lacks its result.
        """
        response = self._response
        try:
            self._proposals = [
                self._gate.propose(call, turn=self._run.turns, step=step)
                for step, call in enumerate(response.tool_calls, start=1)
            ]
            if response.finish_reason is FinishReason.LENGTH and self._run.unusable < MOST_UNUSABLE:
                self._skip_rest(CUT_SHORT)
                return None
            if is_cut(response):
                return self._stop(self._run.stopped(*unusable(response)))
            return self._run_calls()
        finally:
            results = [self._text_of(index) for index in range(len(response.tool_calls))]
            self._run.session.history.reply(response.text, response.tool_calls, results, response.echo)

    def _text_of(self, index: int) -> str:
        """Return what the model reads of a call, also where something raised before it had its result."""
        text = UNKNOWN if index == self._running else f"Not run: {ENDED_HERE}"
        if index in self._results:
            text = self._results[index].content
        return edited_text(self._edits.get(index, ()), text)

    def _run_calls(self) -> RunResult | None:
        first: Action | ToolError | None = None
        for index, proposal in enumerate(self._proposals):
            action = self._prepare(proposal.call)
            if isinstance(action, RunResult):
                return self._stop(action)
            if isinstance(action, Action) and self._gate.blocks(action):
                return self._stop_at_block(index, action)
            if index == 0:
                first = action  # and no other: each may hold a whole file
        for index, proposal in enumerate(self._proposals):
            # What ran before may have changed what this call means: paths and contents are taken anew.
            prepared, first = first or self._prepare(proposal.call), None
            stopped = self._run_call(index, proposal, prepared)
            if stopped is None and self._interrupt.requested:
                stopped = self._interrupted()
            if stopped is not None:
                return self._stop(stopped)
        return None

    def _prepare(self, call: ToolCall) -> Action | ToolError | RunResult:
        """Return the action that a call stands for, or what is wrong with it; or how the run ends before that is known."""
        run = self._run
        self._registry.check_place()
        if run.time_is_over:
            return run.stopped_at_limit(run.time_limit, self._log)
        try:
            with self._interrupt:  # it has no effects, and may take seconds
                action = self._registry.prepare(call)
        except KeyboardInterrupt:
            return self._interrupted()
        except ToolError as error:
            return error
        mark = self._mark_in(action)
        if not mark:
            return action
        return ToolError(
            f"The arguments hold {mark}, which stands for a secret that was not shown to you; it would be written in "
            "the secret's place. Leave that part of the file as it is: change the lines around it with edit_file."
        )

    def _mark_in(self, action: Action) -> str:
        """Return a mark of this session's that the arguments hold, if there is one: as they were parsed, since in the raw text
        it could be spelled with escapes.
        """
        issued, raw = self._log.redactor.issued, action.call.arguments
        if "\\u" not in raw:
            return issued(raw)
        return issued(json.dumps(dict(action.arguments), ensure_ascii=False))

    def _run_call(self, index: int, proposal: Proposal, action: Action | ToolError | RunResult) -> RunResult | None:
        run = self._run
        if isinstance(action, RunResult):
            return action
        if run.time_is_over:
            return run.stopped_at_limit(run.time_limit, self._log)
        if self._interrupt.requested:
            return self._interrupted()
        if isinstance(action, ToolError):
            code = action.code.value if action.code else ""
            self._results[index] = self._gate.refuse_invalid(proposal, f"Error: {action}", code)
            known = proposal.call.name in self._registry.names
            run.last_action = f"{proposal.call.name if known else 'an unknown tool'} (not understood)"
            limit = run.misunderstood()
            return run.stopped_at_limit(limit, self._log) if limit else None
        run.bad_calls = 0
        ruling = self._gate.authorize(proposal, action)
        match ruling:
            case Refusal():
                return self._refused(index, ruling) if ruling.wanted is None else self._run_edited(index, ruling)
            case Withheld():
                run.last_action = f"{action.tool}: {self._gate.brief(action)} (not run)"
                self._results[index] = ToolResult(
                    call_id=proposal.call.id, status=ResultStatus.NOT_RUN, content=ruling.text
                )
                return None
            case Permit():
                return self._run_permitted(index, ruling)
            case _:
                assert_never(ruling)

    def _run_permitted(self, index: int, ruling: Permit) -> RunResult | None:
        run, action = self._run, ruling.action
        run.last_action = f"{action.tool}: {self._gate.brief(action)}"
        self._running = index
        seconds = run.seconds_left
        if ruling.approval is not None:
            seconds = seconds or None  # a yes that came after the time holds; the next call is stopped
        result = self._results[index] = run_permitted(
            ruling, self._registry, self._interrupt, self._log.redactor, seconds=seconds
        )
        self._gate.settle(ruling, result)
        if result.status is ResultStatus.INTERRUPTED:
            return run.stopped(StopReason.INTERRUPTED, f"interrupted during {run.last_action}")
        return self._done(result)

    def _run_edited(self, index: int, refusal: Refusal) -> RunResult | None:
        """Put the call that is wanted in the place of the model's through the gate; the model is told of both."""
        wanted, edits = refusal.wanted, self._edits.setdefault(index, [])
        if wanted is None or len(edits) >= MAX_EDITS:
            raise GateError(f"the approver changed one call more than {MAX_EDITS} times")
        proposal = self._gate.propose(wanted, turn=self._run.turns, step=index + 1, edited_from=refusal.proposal)
        edits.append(self._log.redactor.redact(wanted.arguments))
        stopped = self._run_call(index, proposal, self._prepare(wanted))
        if stopped is not None and index not in self._results:
            self._results[index] = self._gate.skip(proposal, stopped.detail)  # the time was over
        return stopped

    def _done(self, result: ToolResult) -> RunResult | None:
        """Return the end of the run where a command said that it is done: it succeeded, and its first line is the marker."""
        succeeded = result.status is ResultStatus.OK and result.exit_code == 0
        marker = (self._done_marker or "").rstrip()
        if not marker or not succeeded or result.printed is None:
            return None
        first, _, rest = result.printed.partition("\n")
        if first.rstrip() != marker:
            return None
        self._run.text = rest.strip()
        return self._run.stopped(StopReason.COMPLETED)

    def _refused(self, index: int, refusal: Refusal) -> RunResult | None:
        run, call = self._run, refusal.proposal.call
        blocked = refusal.decision is Decision.BLOCK
        status = ResultStatus.BLOCKED if blocked else ResultStatus.DENIED
        self._results[index] = ToolResult(call_id=call.id, status=status, content=refusal.text)
        run.last_action = f"{refusal.action.tool}: {self._gate.brief(refusal.action)} (refused)"
        limit = run.refused(call)
        if blocked:
            return run.stopped(StopReason.BLOCKED, refusal.text)
        if refusal.ends_turn:
            return run.stopped(StopReason.INTERRUPTED, "stopped by the person at a question")
        return run.stopped_at_limit(limit, self._log) if limit else None

    def _stop_at_block(self, index: int, action: Action) -> RunResult:
        """Record the block and answer the others: none of a reply's calls runs when one of them is blocked."""
        ruling = self._gate.authorize(self._proposals[index], action)
        if not isinstance(ruling, Refusal):
            raise GateError("a call that was judged a block was permitted a moment later")
        self._refused(index, ruling)
        self._skip_rest("another call of the same reply was blocked, and the run stops")
        return self._run.stopped(StopReason.BLOCKED, ruling.text)

    def _interrupted(self) -> RunResult:
        return self._run.stopped(StopReason.INTERRUPTED, f"interrupted after {self._run.last_action}")

    def _stop(self, stopped: RunResult) -> RunResult:
        """Answer the calls that have no result yet, and return how the run ended."""
        self._skip_rest(stopped.detail or "the run was done")
        return stopped

    def _skip_rest(self, why: str) -> None:
        for index, proposal in enumerate(self._proposals):
            if index not in self._results:
                self._results[index] = self._gate.skip(proposal, why)


def is_cut(response: ModelResponse) -> bool:
    """Say whether a reply says itself that it is not whole."""
    return response.finish_reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)


def unusable(response: ModelResponse) -> tuple[StopReason, str]:
    """Return how a run ends on a reply that is cut."""
    if response.finish_reason is FinishReason.LENGTH:
        return StopReason.LENGTH, "the reply was cut at the model's length limit; nothing of it ran"
    return StopReason.CONTENT_FILTER, "the reply was withheld by the provider's content filter; nothing of it ran"


def no_answer(response: ModelResponse) -> str:
    """Return what is wrong with a whole reply that neither calls nor says anything, and what it holds instead; or nothing."""
    if response.tool_calls:
        return ""
    match response.finish_reason:
        case FinishReason.FUNCTION_CALL:
            return (
                "The reply holds a call in the old form `function_call`, which was not offered; nothing was run. Does the "
                "server, or a proxy before it, know `tools`?"
            )
        case FinishReason.NO_CALLS:
            return "The reply holds neither text nor a call, though its finish reason speaks of calls."
        case FinishReason.REASONING:
            return "The reply holds neither text nor a call: it is reasoning alone."
        case FinishReason.DONE:
            return "" if response.text.strip() else "The reply holds neither text nor a call, and nothing else."
        case FinishReason.LENGTH | FinishReason.CONTENT_FILTER:
            return ""
        case _:
            assert_never(response.finish_reason)

"""The loop: ask the model, put every call through the gate, answer every call, until a reply holds no calls.

INVARIANT: whatever ends a run, every call of the history has exactly one result, with its id, in call order.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence

from harness.action_log import ActionLog
from harness.actions import Action, JsonValue
from harness.approval import Approver
from harness.errors import CutReply, GateError, HarnessError, LogError, ModelError, ToolError
from harness.gate import Gate, Permit, Proposal, Refusal
from harness.interrupt import Interrupt
from harness.limits import Limits, strictest
from harness.messages import (
    FinishReason,
    Message,
    ModelResponse,
    ResultStatus,
    Role,
    StopReason,
    ToolCall,
    ToolResult,
    Usage,
)
from harness.model import Model, Retry
from harness.policy import Policy
from harness.record import Record, replace
from harness.rules import Decision
from harness.tool import LimitedTool, Tool, ToolRegistry
from harness.version import __version__

EQUAL_REFUSALS = 3
"""The same call, refused this often in a run, ends it."""
BAD_CALLS_IN_A_ROW = 5
"""Calls in a row that could not even be prepared end the run."""

DEFAULT_SYSTEM = """\
You are a careful software engineer working in the user's repository through tools. Look before you change: read the \
files concerned, make the smallest change that does the job, and check it (run the tests) before you say it is done.
Every call is decided by a policy before it runs. A refusal says who refused and why: do not repeat the call and do not \
seek the same effect another way; choose another course, or say what you need and stop. Plain commands are understood \
best and are asked about least: simple commands joined by && or |, no redirections or substitutions; change files with \
edit_file and write_file, and set a command's folder with `cwd`.
When you are done, answer in a few sentences, without a tool call."""


class RunResult(Record):
    """How a run ended."""

    stop: StopReason
    text: str
    """The model's last words; the answer, when the run was completed."""
    detail: str = ""
    """What ended it, for a person: the limit and the last action, the error, the block."""
    turns: int = 0
    refusals: int = 0
    usage: Usage = Usage()


class Session:
    """What changes while an agent works: the conversation. The only mutable state of the loop."""

    def __init__(self, system: str, identity: str) -> None:
        """`identity` is the name under which the log knows it; `Agent.start` makes both."""
        self.identity = identity
        self.messages: list[Message] = [Message(role=Role.SYSTEM, content=system)]
        self.usage = Usage()
        self.ended = False


class _Run:
    """The counters of one run."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.turns = 0
        self.refusals = 0
        self.bad_calls = 0
        self.refused: dict[tuple[str, str], int] = {}
        self.usage = Usage()
        self.last_action = "none"
        self.text = ""

    def stopped(self, stop: StopReason, detail: str = "") -> RunResult:
        return RunResult(
            stop=stop, text=self.text, detail=detail, turns=self.turns, refusals=self.refusals, usage=self.usage
        )


def _ignore_text(text: str) -> None:
    pass


class Agent:
    """A model, tools, and the gate between them. Policy, approver and log have no defaults: nothing runs ungated."""

    def __init__(  # noqa: PLR0913 - the parts of an agent, each named where it is passed
        self,
        *,
        model: Model,
        tools: Sequence[Tool],
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        limits: Limits | None = None,
        system: str = DEFAULT_SYSTEM,
        about: Mapping[str, JsonValue] | None = None,
        on_text: Callable[[str], None] = _ignore_text,
        interrupt: Interrupt | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the parts. `limits` tighten those of the policy; `about` is added to the log's first record.

        Raises ValueError if two tools share a name.
        """
        self.model = model
        self.log = log
        self.limits = strictest([policy.limits, limits or Limits()]).filled()
        # Here, so that no program can forget to hand a policy's limits to the tools.
        limited = [tool.under(self.limits) if isinstance(tool, LimitedTool) else tool for tool in tools]
        self.registry = ToolRegistry(limited, monotonic=monotonic)
        self.gate = Gate(
            policy=policy, approver=approver, log=log, confinement_of=self.registry.confinement, monotonic=monotonic
        )
        self._system = system
        self._about = dict(about or {})
        self._on_text = on_text
        self._interrupt = interrupt or Interrupt()
        self._monotonic = monotonic

    def start(self) -> Session:
        """Begin a session and record it. Raises LogError."""
        identity = self.log.begin_session()
        sources: list[JsonValue] = [
            {"layer": s.layer.value, "path": s.path, "sha256": s.sha256, "trusted": s.trusted}
            for s in self.gate.policy.sources
        ]
        self.log.append(
            "session_started",
            {
                **self._about,
                "harness": __version__,
                "python": platform.python_version(),
                "model": self.model.name,
                "tools": [spec.name for spec in self.registry.specs],
                "policy": self.gate.policy.name,
                "policy_sha256": self.gate.policy.sha256,
                "policy_files": sources,
                "confinement": self.registry.level,
            },
            sync=True,
        )
        return Session(self._system, identity)

    def end(self, session: Session, result: RunResult | None = None) -> None:
        """Record that the session is over, and before it an end for every call that lacks one. Raises LogError."""
        session.ended = True
        self.log.session = session.identity
        self.gate.end_open_calls("the session ended")
        self.log.append(
            "session_ended",
            {
                "stop": result.stop.value if result else StopReason.COMPLETED.value,
                "detail": result.detail if result else "",
                "input_tokens": session.usage.input_tokens,
                "output_tokens": session.usage.output_tokens,
            },
            sync=True,
        )

    def run(self, prompt: str, session: Session | None = None) -> RunResult:
        """Work on `prompt` until the model is done or something ends it; the result says which.

        Without `session` a new one is begun and ended; with one, its conversation goes on, and its owner ends it.
        Raises nothing that is expected: provider, policy, log and interrupt are stop reasons. Whatever else passes
        through (a bug; KeyboardInterrupt where Python's own handler raises it between two steps) leaves every call of
        the history with its result. Raises ValueError for a session that was ended.
        """
        if session is not None and session.ended:
            raise ValueError("the session was ended; start another one")
        try:
            current = session if session is not None else self.start()
        except LogError as error:
            return RunResult(stop=StopReason.LOG_ERROR, text="", detail=str(error))
        result = self._guarded(current, prompt)
        if session is None and result.stop is not StopReason.LOG_ERROR:
            try:
                self.end(current, result)
            except LogError as error:
                return replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
        return result

    def _guarded(self, session: Session, prompt: str) -> RunResult:
        self.log.session = session.identity
        run = _Run(session)
        try:
            return self._loop(run, prompt)
        except LogError as error:
            return run.stopped(StopReason.LOG_ERROR, str(error))
        except GateError as error:
            try:
                self._log_error("gate", str(error))
            except LogError:
                pass  # the gate's own fault is the one to report; nothing runs either way
            return run.stopped(StopReason.GATE_ERROR, str(error))

    def _loop(self, run: _Run, prompt: str) -> RunResult:
        started = self._monotonic()
        self.log.append("user_message", {"text": prompt})
        run.session.messages.append(Message(role=Role.USER, content=prompt))
        while True:
            limit = self._limit_reached(run, self._monotonic() - started)
            if limit:
                return self._stop_at_limit(run, limit)
            try:
                response = self._ask_model(run)
            except KeyboardInterrupt:
                return run.stopped(StopReason.INTERRUPTED, "interrupted while the model was answering")
            except CutReply as error:
                self._log_error("model", str(error))
                return run.stopped(StopReason.CUT, str(error))
            except ModelError as error:
                self._log_error("model", str(error))
                return run.stopped(StopReason.MODEL_ERROR, str(error))
            run.text = response.text
            if response.tool_calls:
                stopped = self._answer_calls(run, response)
                if stopped is not None:
                    return stopped
                continue
            run.session.messages.append(Message(role=Role.ASSISTANT, content=response.text))
            if response.finish_reason is not FinishReason.DONE:
                return run.stopped(*_unusable(response))
            return run.stopped(StopReason.COMPLETED)

    def _ask_model(self, run: _Run) -> ModelResponse:
        run.turns += 1
        self.log.append("model_request", {"turn": run.turns, "messages": len(run.session.messages)})
        started = self._monotonic()
        try:
            with self._interrupt:
                response = self.model.complete(
                    run.session.messages, self.registry.specs, on_text=self._tell_text, on_retry=self._log_retry
                )
        except HarnessError:
            raise
        except Exception as error:
            raise ModelError(f"the model adapter failed: {type(error).__name__}: {error}") from error
        run.usage += response.usage
        run.session.usage += response.usage
        self.log.append(
            "model_response",
            {
                "turn": run.turns,
                "text": response.text,
                "calls": len(response.tool_calls),
                "finish_reason": response.finish_reason.value,
                "input_tokens": response.usage.input_tokens,
                "output_tokens": response.usage.output_tokens,
                "retries": response.retries,
                "ms": round((self._monotonic() - started) * 1000),
            },
        )
        return response

    def _answer_calls(self, run: _Run, response: ModelResponse) -> RunResult | None:
        """Run what may run, and give every call its result, even if something in here raises.

        INVARIANT: reply and results enter the history in one step; there is no moment at which a call lacks its result.
        """
        calls = response.tool_calls
        results: dict[int, ToolResult] = {}
        try:
            proposals = [self.gate.propose(call) for call in calls]
            if response.finish_reason is not FinishReason.DONE:
                stopped = run.stopped(*_unusable(response))
                self._skip_rest(proposals, results, stopped.detail)
                return stopped
            return self._run_calls(run, proposals, results)
        finally:
            run.session.messages += _reply_and_results(response, results)

    def _run_calls(self, run: _Run, proposals: Sequence[Proposal], results: dict[int, ToolResult]) -> RunResult | None:
        prepared = [self._prepare(proposal.call) for proposal in proposals]
        for index, action in enumerate(prepared):
            if isinstance(action, Action) and self.gate.blocks(action):
                return self._stop_at_block(run, proposals, results, index, action)
        for index, proposal in enumerate(proposals):
            # What ran before may have changed what this call means: paths and contents are taken anew.
            action = prepared[index] if index == 0 else self._prepare(proposal.call)
            stopped = self._run_call(run, proposal, action, results, index)
            if stopped is None and self._interrupt.requested:
                stopped = run.stopped(StopReason.INTERRUPTED, f"interrupted after {run.last_action}")
            if stopped is not None:
                self._skip_rest(proposals, results, stopped.detail)
                return stopped
        return None

    def _prepare(self, call: ToolCall) -> Action | ToolError:
        try:
            return self.registry.prepare(call)
        except ToolError as error:
            return error

    def _run_call(
        self, run: _Run, proposal: Proposal, action: Action | ToolError, results: dict[int, ToolResult], index: int
    ) -> RunResult | None:
        if isinstance(action, ToolError):
            results[index] = self.gate.refuse_invalid(proposal, f"Error: {action}")
            run.bad_calls += 1
            if run.bad_calls >= BAD_CALLS_IN_A_ROW:
                return self._stop_at_limit(run, f"{BAD_CALLS_IN_A_ROW} calls in a row could not be understood")
            return None
        run.bad_calls = 0
        ruling = self.gate.authorize(proposal, action)
        if isinstance(ruling, Refusal):
            return self._refused(run, ruling, results, index)
        run.last_action = f"{action.tool}: {action.summary}"
        results[index] = self._run_permitted(ruling)
        self.gate.settle(ruling, results[index])
        if results[index].status is ResultStatus.INTERRUPTED:
            return run.stopped(StopReason.INTERRUPTED, f"interrupted during {run.last_action}")
        return None

    def _run_permitted(self, permit: Permit) -> ToolResult:
        try:
            with self._interrupt:
                return self.registry.run(permit)
        except KeyboardInterrupt:
            return ToolResult(
                call_id=permit.action.call.id,
                status=ResultStatus.INTERRUPTED,
                content="Interrupted by the person; what it had begun may be done in part.",
            )

    def _refused(self, run: _Run, refusal: Refusal, results: dict[int, ToolResult], index: int) -> RunResult | None:
        call = refusal.proposal.call
        blocked = refusal.decision is Decision.BLOCK
        status = ResultStatus.BLOCKED if blocked else ResultStatus.DENIED
        results[index] = ToolResult(call_id=call.id, status=status, content=refusal.text)
        run.refusals += 1
        run.last_action = f"{refusal.action.tool}: {refusal.action.summary} (refused)"
        if blocked:
            return run.stopped(StopReason.BLOCKED, refusal.text)
        if refusal.ends_turn:
            return run.stopped(StopReason.INTERRUPTED, "stopped by the person at a question")
        key = (call.name, call.arguments)
        run.refused[key] = run.refused.get(key, 0) + 1
        if run.refused[key] >= EQUAL_REFUSALS:
            return self._stop_at_limit(run, f"the same call was refused {EQUAL_REFUSALS} times")
        if self.limits.max_refusals is not None and run.refusals >= self.limits.max_refusals:
            return self._stop_at_limit(
                run, f"{run.refusals} calls were refused (refusals = {self.limits.max_refusals})"
            )
        return None

    def _stop_at_block(
        self, run: _Run, proposals: Sequence[Proposal], results: dict[int, ToolResult], index: int, action: Action
    ) -> RunResult:
        """Record the block and answer the others: none of a reply's calls runs when one of them is blocked."""
        ruling = self.gate.authorize(proposals[index], action)
        if not isinstance(ruling, Refusal):
            raise GateError("a call that was judged a block was permitted a moment later")
        self._refused(run, ruling, results, index)
        self._skip_rest(proposals, results, "another call of the same reply was blocked, and the run stops")
        return run.stopped(StopReason.BLOCKED, ruling.text)

    def _skip_rest(self, proposals: Sequence[Proposal], results: dict[int, ToolResult], why: str) -> None:
        for index, proposal in enumerate(proposals):
            if index not in results:
                results[index] = self.gate.skip(proposal, why)

    def _limit_reached(self, run: _Run, seconds: float) -> str:
        """Return which limit stands in the way of another request, or nothing."""
        limits = self.limits
        tokens = run.usage.input_tokens + run.usage.output_tokens
        if limits.max_turns is not None and run.turns >= limits.max_turns:
            return f"{run.turns} requests were made (turns = {limits.max_turns})"
        if limits.max_seconds is not None and seconds >= limits.max_seconds:
            return f"{seconds:.0f} seconds have passed (seconds = {limits.max_seconds:g})"
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            return f"{tokens} tokens were used (tokens = {limits.max_tokens})"
        return ""

    def _stop_at_limit(self, run: _Run, limit: str) -> RunResult:
        detail = (
            f"a limit was reached: {limit}. Last action: {run.last_action}. "
            "To go on, raise the limit in the policy's [limits] or by flag, or give a new prompt."
        )
        self.log.append("limit", {"limit": limit, "last_action": run.last_action})
        return run.stopped(StopReason.LIMIT, detail)

    def _tell_text(self, text: str) -> None:
        try:
            self._on_text(text)
        except (Exception, SystemExit):  # noqa: BLE001, S110 - an observer that fails harms nothing
            pass

    def _log_retry(self, retry: Retry) -> None:
        with self._interrupt.hold():
            self.log.append(
                "error",
                {
                    "where": "model",
                    "message": retry.reason,
                    "attempt": retry.attempt,
                    "attempts": retry.attempts,
                    "retry_seconds": round(retry.wait_seconds, 3),
                },
            )

    def _log_error(self, where: str, message: str) -> None:
        self.log.append("error", {"where": where, "message": message})


def _unusable(response: ModelResponse) -> tuple[StopReason, str]:
    if response.finish_reason is FinishReason.LENGTH:
        return StopReason.LENGTH, "the reply was cut at the model's length limit; nothing of it ran"
    return StopReason.CONTENT_FILTER, "the reply was withheld by the provider's content filter; nothing of it ran"


def _reply_and_results(response: ModelResponse, results: Mapping[int, ToolResult]) -> list[Message]:
    messages = [Message(role=Role.ASSISTANT, content=response.text, tool_calls=response.tool_calls)]
    for index, call in enumerate(response.tool_calls):
        content = results[index].content if index in results else "Not run: the run ended here."
        messages.append(Message(role=Role.TOOL, content=content, tool_call_id=call.id))
    return messages

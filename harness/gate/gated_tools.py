"""Tools behind a gate, for a program whose agent is not ours."""

from __future__ import annotations

import json
from _thread import RLock, get_ident
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from harness.actions import JsonValue
from harness.declared_types import check_arguments
from harness.errors import LogError
from harness.gate.approval import Approver, stoppable
from harness.gate.gate import Gate
from harness.gate.options import GateOptions
from harness.gate.pending_call import PendingCall
from harness.gate.refused_calls import RefusedCalls, refusal_limit
from harness.gate.registry import ToolRegistry
from harness.gate.session_records import record_begin, record_end, session_facts
from harness.gate.tool import LimitedTool, Tool
from harness.interrupt import Interrupt, Interrupted
from harness.limits import Limits, strictest
from harness.log.action_log import BEGIN_FIRST, ActionLog
from harness.messages import ResultStatus, StopReason, ToolCall, ToolResult
from harness.model import ToolSpec
from harness.policy.policy import Policy

STOPPED = "the program stopped it"


class GatedTools:
    """Tools behind a gate, and one session of the log: a `with` block for the agent of another library.

    ```python
    with GatedTools(tools=tools, policy=policy, approver=ask, log=log) as gate:
        result = gate.call("bash", {"command": "pytest -q"})
    ```

    Policy, approver and log have no defaults. The tools must not be shared with another gate that is in use.
    """

    def __init__(
        self,
        *,
        tools: Sequence[Tool],
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        limits: Limits | None = None,
        facts: Mapping[str, JsonValue] | None = None,
        options: GateOptions = GateOptions(),  # noqa: B008 - it never changes
    ) -> None:
        """Make the gate. Nothing is recorded before the block begins.

        - `limits` tighten those of the policy. The limits of commands, results and refusals apply here. Those of turns,
          seconds, tokens and cost are for the agent around it.
        - `facts`: fields added to the first record of the session, such as `model`. Its `workspace` is by default the
          folder of the tools.
        - `options`: options of the gate.

        Raises TypeError for a part of a wrong type, and ValueError if two tools share a name.
        """
        check_arguments(GatedTools.__init__, locals())
        self._limits = strictest([policy.limits, limits or Limits()]).filled()
        self._interrupt = Interrupt()
        self._log = log
        self._facts = facts or {}
        self._gate = Gate(
            policy=policy,
            approver=stoppable(approver, self._interrupt, when=lambda: get_ident() != self._thread),
            log=log,
            tools=ToolRegistry([tool.under(self._limits) if isinstance(tool, LimitedTool) else tool for tool in tools]),
            interrupt=self._interrupt,
            options=options,
        )
        self._turn = RLock()
        """The lock for calls: an agent may call from several threads, and each call waits for the one before."""
        self._session = log.session
        self._is_open = False
        self._thread = 0
        """The thread that began the block. Only a call of another one can still wait for an answer when it leaves."""
        self._refusals = RefusedCalls()
        self._halted: tuple[StopReason, str] | None = None

    @property
    def halted(self) -> str:
        """Reason why the gate is shut. Empty while calls can run.

        The gate shuts after a hard block, after a person stopped the turn, at a limit of refusals, after `stop`, and
        after a fault of the gate or the log. It stays shut.
        """
        if self._halted is None and self._is_open:
            return self._log.fault
        return "" if self._halted is None else self._halted[1]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Descriptions for a model: all tools except those that the policy always refuses."""
        return self._gate.tools.offered(self._gate.policy)

    def __enter__(self) -> Self:
        """Begin the session. Raises LogError if it cannot be recorded, or if another one of the log is open."""
        self._session = record_begin(self._log, self._gate, session_facts(self._gate, self._facts))
        self._thread = get_ident()
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session. The log stays open. A call or question of another thread is stopped, and its end awaited.

        Raises LogError, unless another exception leaves the block.
        """
        if not self._turn.acquire(blocking=False):
            self.stop()
            self._turn.acquire()
        try:
            self._end(kind)
        except LogError:
            if error is None:
                raise
        finally:
            self._is_open = False
            self._turn.release()

    def _end(self, kind: type[BaseException] | None) -> None:
        stop, detail = self._halted or (StopReason.COMPLETED, "")
        if self._halted is None and kind is not None:
            stop = StopReason.INTERNAL_ERROR if issubclass(kind, Exception) else StopReason.INTERRUPTED
            detail = f"the block ended with {kind.__name__}"
        self._log.session = self._session
        self._gate.end_open_calls("the session ended")
        record_end(self._log, stop, detail)

    def call(self, name: str, arguments: Mapping[str, JsonValue] | str, *, call_id: str = "") -> ToolResult:
        """Judge a call, ask if the policy says so, run it if it may run, and return its result.

        `arguments` is a mapping, or the JSON text of the model. `call_id` is the model's ID of the call. The model
        reads `content` of the result, also of a call that was refused, failed or is invalid. After a hard block no call
        runs (see `halted`).

        Raises GateError, LogError and WorkspaceError. Then the gate is shut too. Raises TypeError, before anything is
        recorded, for an argument of a wrong type.
        """
        check_arguments(GatedTools.call, locals())
        text = _json_text(arguments)
        with self._turn:
            if not self._is_open:
                raise LogError(f"a call needs an open session: {BEGIN_FIRST}")
            self._log.session = self._session
            pending = self._gate.propose(ToolCall(id=call_id, name=name, arguments=text))
            if self._halted is not None:
                return self._gate.skip(pending, f"the session was halted earlier: {self.halted}")
            try:
                return self._called(pending)
            except Interrupted:
                self._halted = (StopReason.INTERRUPTED, STOPPED)
                return self._gate.skip(pending, STOPPED)
            except LogError as error:
                self._halted = (StopReason.LOG_ERROR, str(error))
                raise
            except BaseException as error:
                self._halted = (StopReason.GATE_ERROR, str(error) or type(error).__name__)
                raise

    def _called(self, pending: PendingCall) -> ToolResult:
        end = self._gate.call(pending)
        result = end.result
        match result.status:
            case ResultStatus.BLOCKED:
                self._halted = (StopReason.BLOCKED, result.content)
            case ResultStatus.DENIED if end.ends_turn:
                self._halted = (StopReason.INTERRUPTED, "a person stopped it at a question")
            case ResultStatus.DENIED:
                same = self._refusals.add(pending.proposal.call)
                if limit := same or refusal_limit(self._refusals.count, self._limits.max_refusals):
                    self._halted = (StopReason.LIMIT, limit)
            case ResultStatus.INTERRUPTED:
                self._halted = (StopReason.INTERRUPTED, "a call was interrupted")
            case _:
                pass
        if end.halts and self._halted is None:
            self._halted = (StopReason.BLOCKED, end.halts)
        return result

    def stop(self) -> None:
        """Shut the gate, from any thread or task. A running command is ended, and no later call runs.

        A question ends too, unless it was asked on the thread that began the block.
        """
        self._halted = self._halted or (StopReason.INTERRUPTED, STOPPED)
        self._interrupt.note()


def _json_text(arguments: Mapping[str, JsonValue] | str) -> str:
    try:
        return arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"arguments must be JSON: {error}") from None

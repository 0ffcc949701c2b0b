"""The MCP server of `harness mcp serve`: runs the client's calls through the gate, one after the other.

Calls run on the main thread, as at the prompt, so that a signal can end a call. The protocol's thread (client_link.py)
only passes calls on, so that it can handle messages while a call waits for the user.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol, TypeAlias

from harness.actions import Action, JsonValue
from harness.errors import HarnessError, LogError, WorkspaceError
from harness.gate.approval import Approval, Approver, nobody
from harness.gate.call_checks import SessionChecks, strictest_answer
from harness.gate.gate import Gate
from harness.interrupt import Interrupt, Interrupted
from harness.log.action_log import ActionLog
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, StopReason, ToolCall
from harness.model import ToolSpec
from harness.plugins.mcp.question_form import CALL_GONE, TOO_LONG, FormEnd, question_form
from harness.plugins.mcp.served_call import AskedNoMoreError, CallResult, ServedCall, ServedClient
from harness.policy.verdict import Verdict
from harness.record import Record
from harness.text.visible import visible_line

ASKS_SECONDS = 300.0
"""Seconds that a question waits for an answer in the client. `harness approve` has the same limit."""
MOST_NAME = 100
"""Maximum number of characters of a client's name and version."""
NO_FORMS = "this client shows no questions (elicitation), or is not asked to"
CLOSED = "the client closed the question without an answer"
IN_TIME = "nobody answered in time"
CANCELLED = "the client cancelled it, or left."


class ServerStop(Enum):
    """The cause of the server's end."""

    CLIENT = "the client closed its side"
    SIGNAL = "a signal"
    FAULT = "a fault"


class ServerEnd(Record):
    """The end of the server."""

    stop: ServerStop
    fault: Exception | None = None


class PermissionPrompt(Protocol):
    """Judges calls that the client carries out itself."""

    @property
    def spec(self) -> ToolSpec:
        """Description of the tool with which the client asks for permission."""
        ...

    def answer(self, arguments: str, latch: str, pause: Callable[[float], None]) -> tuple[str, str]:
        """Return the answer to a call, and the reason to refuse all further calls, or an empty string.

        If `latch` is not empty, the call is refused for that reason. `pause` waits some seconds for the user's answer.
        Raises only AskedNoMoreError.
        """
        ...

    def end(self) -> None:
        """End the session of these calls in its log. Raises HarnessError and OSError."""
        ...


class Questions(Record):
    """The ways to ask about a call."""

    text: Callable[[Action, Verdict], str]
    """Returns the complete question, safe to show, with secrets masked."""
    word: Callable[[Action], str]
    """Returns the word that the user must type to allow an irreversible action. Empty for other actions."""
    elsewhere: Callable[[ServedClient, Action, Verdict, Callable[[float], None]], Approval]
    """Asks an approver outside the client, if one is listening. The last argument waits some seconds.

    Raises AskedNoMoreError from that argument, and KeyboardInterrupt.
    """


Arrival: TypeAlias = ServedCall | ServedClient | ServerStop
"""A message to the main thread: a call, the client's identification (always first), or the end."""


class ToolServer:
    """The server for one client: runs its calls through the gate."""

    def __init__(
        self,
        *,
        gate_for: Callable[[Approver], Gate],
        log: ActionLog,
        fields: Mapping[str, JsonValue],
        interrupt: Interrupt,
        checks: SessionChecks,
        questions: Questions,
        prompt: PermissionPrompt | None = None,
    ) -> None:
        """Create the server. `gate_for` makes the gate for an approver. `fields` are for the session's first record."""
        self._log = log
        self._header_fields = fields
        self._interrupt = interrupt
        self._checks = checks
        self._questions = questions
        self._prompt = prompt
        self.gate = gate_for(self._ask)
        self.latch = ""
        """Reason to refuse every further call. Empty before the first hard block."""
        self._arrivals: queue.SimpleQueue[Arrival] = queue.SimpleQueue()
        self._now: ServedCall | None = None
        self._stop: ServerStop | None = None
        self._cut_short = False
        """Whether the end interrupted a call."""
        self._is_begun = False
        self._count = 0

    def take(self, arrival: Arrival) -> None:
        """Queue an arrival for the main thread. Called by the protocol's thread.

        The end of the client also ends the running call.
        """
        if isinstance(arrival, ServerStop):
            self._stop = self._stop or arrival
        self._arrivals.put(arrival)
        if isinstance(arrival, ServerStop):
            self.wake()

    def wake(self) -> None:
        """Make the main thread check whether the running call was cancelled. Called by the protocol's thread."""
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGUSR1)

    def on_wake(self, number: int = 0, frame: object = None) -> None:  # noqa: ARG002 - the signature of a signal handler
        """End the running call if it was cancelled or the server stops. Called by a signal handler."""
        if self._stop is not None and self._now is not None:
            self._cut_short = True
            self._now.ask_no_more()
        if self._stop is not None or (self._now is not None and self._now.is_cancelled):
            self._interrupt.request()

    def stop(self) -> None:
        """Make `run` end. Called by a signal handler."""
        self._stop = self._stop or ServerStop.SIGNAL
        self._arrivals.put(self._stop)
        self.on_wake()

    def run(self) -> ServerEnd:
        """Run the client's calls until the client or the server ends. Call it on the main thread. Raises LogError."""
        while self._stop is None:
            match self._arrivals.get():
                case ServedClient() as client:
                    self._begin(client)
                case ServedCall() as call:
                    try:
                        self._carry_out(call)
                    except HarnessError as fault:
                        call.end(CallResult(text=f"Not run: the gate failed: {fault}", is_error=True))
                        return ServerEnd(stop=ServerStop.FAULT, fault=fault)
                case _:
                    pass
        return ServerEnd(stop=self._stop)

    def end(self, server_end: ServerEnd, exit_code: int) -> None:
        """Record the end. Raises LogError."""
        self._begin(ServedClient())
        self.gate.end_open_calls("the server ended")
        if server_end.fault is not None:
            self._log.append("error", {"where": "gate", "message": str(server_end.fault)})
        stop = self._reason(server_end).value
        self.gate.checks.note(self._checks.session_ends(self._log.session, stop))
        counts: JsonValue = dict(self._log.counts)
        fields = {
            "stop": stop,
            "detail": server_end.stop.value,
            "counts": counts,
            "exit_code": exit_code,
        }
        self._log.append("session_ended", fields, sync=True)

    def _reason(self, server_end: ServerEnd) -> StopReason:
        if isinstance(server_end.fault, WorkspaceError):
            return StopReason.WORKSPACE_LOST
        if server_end.fault is not None:
            return StopReason.LOG_ERROR if isinstance(server_end.fault, LogError) else StopReason.GATE_ERROR
        if self.latch:
            return StopReason.BLOCKED
        return StopReason.INTERRUPTED if self._cut_short else StopReason.COMPLETED

    def _begin(self, client: ServedClient) -> None:
        """Begin the session, once."""
        if self._is_begun:
            return
        self._is_begun = True
        self._log.begin_session()
        client_fields = {"agent": client.name, "agent_version": client.version} if client.name or client.version else {}
        self._log.append("session_started", {**self._header_fields, **client_fields}, sync=True)
        self.gate.grants.record_kept()
        answers = self._checks.session_starts(self._log.session, {**self._header_fields, **client_fields})
        self.gate.checks.note(answers)
        if (refusing := strictest_answer(answers)) is not None:
            self.latch = f"{refusing.by} does not let the session begin: {refusing.reason}"

    def _carry_out(self, call: ServedCall) -> None:
        """Run a call through the gate, and send its result. After a HarnessError no further call may run."""
        self._begin(call.client)
        if call.is_cancelled and self._is_prompt(call):
            return
        self._now = call
        self._interrupt.clear()
        try:
            if self._stop is not None:
                return
            result = self._judge_served(call) if self._is_prompt(call) else self._judge(call)
        finally:
            self._now = None
        # INVARIANT: the call has ended before its result is sent, so that a client that leaves then interrupts no call.
        call.end(result)

    def _is_prompt(self, call: ServedCall) -> bool:
        return self._prompt is not None and call.name == self._prompt.spec.name

    def _judge_served(self, call: ServedCall) -> CallResult:
        """Judge a call that the client carries out itself."""
        if self._prompt is None:
            raise AssertionError("a call for a tool that is not offered")
        try:
            text, latch = self._prompt.answer(call.arguments, self.latch, call.pause)
        except AskedNoMoreError:
            return CallResult(text=f"Not run: {CANCELLED}", is_error=True)
        self.latch = self.latch or latch
        return CallResult(text=text, is_error=False)

    def _judge(self, call: ServedCall) -> CallResult:
        self._count += 1
        proposed = ToolCall(id=f"call_{self._count}", name=call.name, arguments=call.arguments)
        pending = self.gate.propose(proposed, step=self._count)
        if call.is_cancelled:
            result = self.gate.skip(pending, CANCELLED)
        elif self.latch:
            result = self.gate.skip(pending, self.latch)
        else:
            try:
                result = self.gate.call(pending).result
            except Interrupted:
                result = self.gate.skip(pending, CANCELLED)
        if result.status is ResultStatus.BLOCKED:
            self.latch = f"an earlier call was a hard block, and nothing runs after it. It was told: {result.content}"
        return CallResult(text=result.content, is_error=result.status is not ResultStatus.OK)

    # -- asking

    def _ask(self, action: Action, verdict: Verdict) -> Approval:
        """Ask the user in the client, or else an approver outside it."""
        call = self._now
        if call is None:
            raise AssertionError("a question without a call")
        reason = NO_FORMS
        if call.asks:
            approval_or_reason = self._asked_by_form(call, action, verdict)
            if isinstance(approval_or_reason, Approval):
                return approval_or_reason
            reason = approval_or_reason
        try:
            approval = self._questions.elsewhere(call.client, action, verdict, call.pause)
        except (AskedNoMoreError, KeyboardInterrupt):
            return nobody(CALL_GONE)
        if approval.answer is Answer.NOBODY:
            return nobody(f"{reason}, and {approval.words or 'nobody is there to ask'}")
        return approval

    def _asked_by_form(self, call: ServedCall, action: Action, verdict: Verdict) -> Approval | str:
        """Ask by a form in the client. Return the approval, or the reason why there is no answer."""
        text = self._questions.text(action, verdict)
        form = question_form(action.tool, text, self._questions.word(action)) if action.shown_whole else None
        if form is None:
            return TOO_LONG
        answer = call.ask(form, ASKS_SECONDS)
        if answer.end is FormEnd.LATE:
            return nobody(IN_TIME)
        approval = form.approval(answer, visible_line(call.client.display_name, MOST_NAME))
        return CLOSED if approval is None else approval

"""The calls of one reply. All are judged before the first runs, and each gets one result, in the order of the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from types import TracebackType
from typing import Self, assert_never

from harness.gate.gate import Gate
from harness.gate.pending_call import CallEnd, PendingCall
from harness.interrupt import Interrupt, Interrupted
from harness.log.transcript import UNKNOWN, edited_text
from harness.loop.run import Run
from harness.messages import FinishReason, ModelResponse, ResultStatus, StopReason, ToolResult

ENDED_HERE = "the run ended here."
OTHER_BLOCKED = "another call of the same reply was blocked, and the run stops"
MOST_UNUSABLE = 2
"""Number of consecutive unusable replies that ends the run."""
CUT_SHORT = (
    "the reply was cut at the model's length limit. Nothing of it ran. Send less at a time: fewer calls in one reply, and a "
    "long file in several parts."
)


class ReplyCalls:
    """A `with` block in which the calls of one reply are answered.

    INVARIANT: on every exit from the block, the reply and all results enter the history in one step. A call in the
    history never lacks its result.
    """

    def __init__(
        self,
        run: Run,
        response: ModelResponse,
        gate: Gate,
        interrupt: Interrupt,
        *,
        done_marker: str = "",
        together: int = 1,
    ) -> None:
        """Take the run and the reply, before any call is judged.

        A command that succeeds and prints `done_marker` as its first line ends the run. An empty marker turns this off.
        `together` is the maximum number of read-only calls that run at once. With a marker each call runs alone, since
        any of them may end the run.
        """
        self._run = run
        self._response = response
        self._gate = gate
        self._interrupt = interrupt
        self._done_marker = done_marker.rstrip()
        self._together = together
        self.done = False
        """Whether a command printed the marker that ends the run."""
        self._calls: list[PendingCall] = []
        self._results: dict[PendingCall, ToolResult] = {}

    def __enter__(self) -> Self:
        """Record the calls of the reply. Raises LogError."""
        try:
            for step, call in enumerate(self._response.tool_calls, start=1):
                self._calls.append(self._gate.propose(call, turn=self._run.turns, step=step))
        except BaseException:
            self._put_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Give every call its result. An interrupt ends the run; everything else passes through."""
        try:
            if isinstance(error, Interrupted):
                self._interrupted()
            if error is None or isinstance(error, Interrupted):
                self._skip_rest()
        finally:
            self._put_down()
        return isinstance(error, Interrupted)

    def to_run(self) -> Iterator[Sequence[PendingCall]]:
        """Yield the calls to run, in groups of one or more that may run at once, until the run ends.

        All calls are judged before the first runs. If one is blocked, only that one is yielded. Each group is formed after
        the group before it has run. Raises GateError, WorkspaceError, Interrupted.
        """
        if is_cut(self._response):
            self._answer_none()
            return
        for index, pending in enumerate(self._calls):
            if self._is_over():
                return
            if self._gate.blocks(pending, waits=index > 0):
                yield (pending,)
                self._skip_rest(OTHER_BLOCKED)
                return
        waiting = self._calls
        while waiting and not self._is_over():
            yield self._group(waiting)
            waiting = [pending for pending in waiting if pending not in self._results]

    def _group(self, waiting: Sequence[PendingCall]) -> Sequence[PendingCall]:
        """Return the first waiting call, and the calls right after it that may run at the same time."""
        if self._together <= 1 or self._done_marker or len(waiting) == 1:
            return waiting[:1]
        return tuple(takewhile(self._gate.only_reads, waiting)) or waiting[:1]

    def _answer_none(self) -> None:
        """Answer a cut reply without running its calls."""
        if self._response.finish_reason is FinishReason.LENGTH and self._run.unusable < MOST_UNUSABLE:
            self._skip_rest(CUT_SHORT)
        else:
            self._run.stop(*unusable(self._response))

    def _is_over(self) -> bool:
        """Return whether no further call of the reply may run. End the run if its time is over or the user stopped it."""
        run = self._run
        if self.done or run.end is not None:
            return True
        if run.time_is_over:
            run.stop_at_limit(run.time_limit)
        elif self._interrupt.requested:
            self._interrupted()
        return run.end is not None

    def take_all(self, group: Sequence[PendingCall], ends: Sequence[CallEnd]) -> None:
        """Process the ends of calls that ran together. Raises LogError."""
        for pending, end in zip(group, ends, strict=True):
            self.take(pending, end)

    def take(self, pending: PendingCall, end: CallEnd) -> None:
        """Store the result of a call, count refusals, and end the run if the result or a limit requires it. Raises LogError."""
        run, result = self._run, end.result
        self._results[pending] = result
        run.last_action = end.summary
        if result.status is not ResultStatus.INVALID:
            run.bad_calls = 0
        match result.status:
            case ResultStatus.INVALID:
                run.stop_at_limit(run.misunderstood())
            case ResultStatus.BLOCKED:
                run.refused(pending.proposal.call)
                run.stop(StopReason.BLOCKED, result.content)
            case ResultStatus.DENIED:
                limit = run.refused(pending.proposal.call)
                if end.ends_turn:
                    run.stop(StopReason.INTERRUPTED, "stopped by the person at a question")
                else:
                    run.stop_at_limit(limit)
            case ResultStatus.INTERRUPTED if run.end is None:  # if several ran at once, the first one is named
                run.stop(StopReason.INTERRUPTED, f"interrupted during {run.last_action}")
            case ResultStatus.OK if self._done_marker and self._says_done(result):
                run.text = (result.printed or "").partition("\n")[2].strip()
                self.done = True
            case _:
                pass
        if end.halts and run.end is None:
            self.done = False
            run.stop(StopReason.BLOCKED, end.halts)
        if run.end is None and not self.done and self._interrupt.requested:
            self._interrupted()

    def _says_done(self, result: ToolResult) -> bool:
        """Return whether a command succeeded and printed the marker as its first line."""
        first = (result.printed or "").partition("\n")[0].rstrip()
        return result.exit_code == 0 and first == self._done_marker

    def _interrupted(self) -> None:
        self._run.stop(StopReason.INTERRUPTED, f"interrupted after {self._run.last_action}")

    def _skip_rest(self, reason: str = "") -> None:
        """Record calls without a result as not run, for `reason`. Empty: the reason is taken from the run's end."""
        end = self._run.end
        if not reason:
            reason = "the run was done" if end is None else end.detail
            reason = OTHER_BLOCKED if end is not None and end.stop is StopReason.BLOCKED else reason
        for pending in self._calls:
            if pending not in self._results:
                self._results[pending] = self._gate.skip(pending, reason)

    def _put_down(self) -> None:
        response, calls = self._response, self._calls
        texts = [
            self._text_of(calls[index] if index < len(calls) else None) for index in range(len(response.tool_calls))
        ]
        attachments = [self._results[call_id].attachments if call_id in self._results else () for call_id in calls]
        self._run.session.history.reply(response.text, response.tool_calls, texts, response.echo, attachments)

    def _text_of(self, pending: PendingCall | None) -> str:
        """Return the result text of a call for the model, also if an exception left it without a result."""
        if pending is None:
            return f"Not run: {ENDED_HERE}"
        text = UNKNOWN if pending.intent_logged else f"Not run: {ENDED_HERE}"
        if pending in self._results:
            text = self._results[pending].content
        return edited_text(pending.edits, text) if pending.edits else text


def is_cut(response: ModelResponse) -> bool:
    """Return whether the finish reason says that the reply is incomplete."""
    return response.finish_reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)


def unusable(response: ModelResponse) -> tuple[StopReason, str]:
    """Return the stop reason and detail of a run that ends at a cut reply."""
    if response.finish_reason is FinishReason.LENGTH:
        return StopReason.LENGTH, "the reply was cut at the model's length limit; none of it ran"
    return StopReason.CONTENT_FILTER, "the reply was withheld by the provider's content filter; none of it ran"


def no_answer(response: ModelResponse) -> str:
    """Return the problem with a complete reply that has no usable text or calls, or an empty string."""
    if response.tool_calls:
        return ""
    match response.finish_reason:
        case FinishReason.FUNCTION_CALL:
            return (
                "The reply contains a call in the old form `function_call`, which was not offered; it was not run. Does the "
                "server, or a proxy before it, support `tools`?"
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

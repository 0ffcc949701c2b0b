"""Parallel runs of read-only calls: each body runs on a thread, and the results are taken in the order of the calls.

INVARIANT: the threads record nothing and show nothing. The gate's own thread does both, call by call, as if the calls
had run one after the other. At the end of the `with` block every body has ended, except one that does not end within
PATIENCE_SECONDS after a request to stop; such a body only reads.

A body that is itself a session (a helper) records its own events. It asks the user on the gate's own thread, through
`on_gates_thread`.
"""

from __future__ import annotations

from _thread import _local as Local  # noqa: N812 - threading.local, which is a class
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from harness.actions import Action, Decision, Effects, WallsLevel
from harness.gate.checked_calls import CheckedCalls
from harness.gate.registry import ToolRegistry
from harness.gate.tool import TIME_OVER, Attempt, BesideTool, ConfinedTool, Neighbour
from harness.interrupt import Interrupt, Interrupted
from harness.policy.verdict import Verdict
from harness.record import Record, replace

LOOK_UP_SECONDS = 0.1
"""Seconds between checks by the gate's waiting thread. Each check shows new output of a command."""
PATIENCE_SECONDS = 15.0
"""Seconds to wait for a body after a request to stop.

A command needs a few seconds to end. A read of a file on a dead server never returns.
"""
KEPT_CHARACTERS = 16_384
"""Maximum number of characters of a call's output kept until its turn to be shown. The oldest output is dropped."""


_Result = TypeVar("_Result")
_HERE = Local()
"""Thread-local data. `beside`: the `Beside` block of the body that this thread runs."""


def on_gates_thread(work: Callable[[], _Result]) -> _Result:
    """Run `work` on the thread of the gate, and return its result.

    From a body of a `Beside` block, `work` runs at the next check of the gate's thread; otherwise at once. Raises the
    errors of `work`, and Interrupted if the group was asked to stop before `work` began.
    """
    beside: Beside | None = getattr(_HERE, "beside", None)
    return work() if beside is None else beside.errand(work)


def runs_beside(action: Action, verdict: Verdict, tools: ToolRegistry, checks: CheckedCalls) -> bool:
    """Return whether a call may run in parallel with others.

    The call must only read, and need no approval and no hook. Its tool must support parallel runs.
    """
    if verdict.decision is not Decision.AUTO or verdict.programs or verdict.effects.level is not WallsLevel.READER:
        return False
    tool = tools[action.tool]
    # A command can do more than its text suggests unless the kernel confines it.
    is_confined = not isinstance(tool, ConfinedTool) or tools.bounds_by_kernel(action.tool)
    return isinstance(tool, BesideTool) and tool.runs_beside and is_confined and not checks.asks_about(action)


class _Body:
    """One body, and its result."""

    def __init__(self) -> None:
        self.over = allocate_lock()
        """Lock that is held until the body has ended."""
        self.over.acquire()
        self.began: float | None = None
        self.attempt: Attempt | None = None
        self.error: BaseException | None = None
        """An exception that no attempt handles."""
        self._pieces: deque[tuple[Callable[[str], None], str]] = deque()
        self._lock = allocate_lock()

    @property
    def has_ended(self) -> bool:
        return self.attempt is not None or self.error is not None

    def keep(self, show: Callable[[str], None], text: str) -> None:
        """Keep output until the call's turn to be shown."""
        with self._lock:
            self._pieces.append((show, text))
            size = sum(len(piece) for _, piece in self._pieces)
            while size > KEPT_CHARACTERS and len(self._pieces) > 1:
                size -= len(self._pieces.popleft()[1])

    def show(self) -> None:
        """Show the kept output."""
        with self._lock:
            pieces = tuple(self._pieces)
            self._pieces.clear()
        for show, text in pieces:
            show(text)


class _Errand(Generic[_Result]):
    """A function that a body wants to run on the gate's thread."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self.over = allocate_lock()
        """Lock that is held until the function has run or was refused."""
        self.over.acquire()
        self.error: BaseException | None = None
        self._work = work
        self._results: list[_Result] = []

    def do(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again by the body
            self.error = error
        finally:
            self.over.release()

    def refuse(self) -> None:
        self.error = Interrupted()
        self.over.release()

    @property
    def result(self) -> _Result:
        """Result of the function. Raises the exception that the function raised."""
        if self.error is not None:
            raise self.error
        return self._results[0]


class Beside:
    """A `with` block in which bodies run in parallel. `wait_for` returns the result of one body."""

    def __init__(
        self,
        count: int,
        run: Callable[[int, Neighbour], Attempt],
        *,
        limit: int,
        interrupt: Interrupt,
        monotonic: Callable[[], float],
        undisturbed: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Make a block of `count` bodies, at most `limit` of them at once.

        `run` runs one body by its index (from 0). It is called on threads, and checks first whether the body may still
        begin. `monotonic` is a clock in seconds. `undisturbed` returns a block in which other bodies show nothing,
        while the gate's thread does an errand, such as an approval prompt.
        """
        self._bodies = tuple(_Body() for _ in range(count))
        self._run = run
        self._limit = limit
        self._interrupt = interrupt
        self._before = interrupt.count
        self._own_stops = 0
        """Number of further requests to stop: KeyboardInterrupts of Python's own handler, and the end of the block."""
        self._monotonic = monotonic
        self._undisturbed = undisturbed
        self._deadline: float | None = None
        """Time, by `monotonic`, until which bodies that were asked to stop are waited for. `None` before a stop."""
        self._next = 0
        self._errands: deque[_Errand[Any]] = deque()
        self._is_left = False
        self._lock = allocate_lock()

    def stops(self) -> int:
        """Return the number of requests to stop since the block was made."""
        return self._interrupt.count - self._before + self._own_stops

    def errand(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` as `on_gates_thread` does. Called from a body."""
        errand = _Errand(work)
        self._errands.append(errand)
        while not errand.over.acquire(timeout=LOOK_UP_SECONDS):
            if self._is_left:  # this body was given up
                raise Interrupted
        return errand.result

    def _stop_all(self) -> None:
        with self._lock:
            self._own_stops += 1

    def __enter__(self) -> Self:
        """Start the threads. If no thread can be started, run the bodies here, one after the other."""
        started = 0
        try:
            for _ in range(min(self._limit, len(self._bodies))):
                start_new_thread(self._thread, ())
                started += 1
        except RuntimeError:
            if not started:
                self._work()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the bodies that still run, which happens only if the block ended early, and wait for them."""
        if not all(body.has_ended for body in self._bodies):
            self._stop_all()
            for body in self._bodies:
                self._wait(body)
        self._is_left = True

    def wait_for(self, place: int) -> Attempt | None:
        """Wait for a body, show its output, and return its attempt. `None` if the body did not end in time.

        Raises an exception that its attempt did not handle. KeyboardInterrupt is not raised: it asks the bodies to end.
        """
        body = self._bodies[place]
        self._wait(body, shows=True)
        body.show()
        if body.error is not None:
            raise body.error
        return body.attempt

    def began(self, place: int) -> float | None:
        """Return the start time of a body, by `monotonic`; `None` if it did not start."""
        return self._bodies[place].began

    def _wait(self, body: _Body, *, shows: bool = False) -> None:
        while not body.has_ended and (self._deadline is None or self._monotonic() < self._deadline):
            try:
                body.over.acquire(timeout=LOOK_UP_SECONDS)
                if shows:
                    body.show()
                self._look_up()
            except KeyboardInterrupt:
                self._stop_all()
            if self._deadline is None and self.stops():
                self._deadline = self._monotonic() + PATIENCE_SECONDS

    def _look_up(self) -> None:
        """Run the errands of the bodies on this thread. Refuse them after a request to stop."""
        while self._errands:
            errand = self._errands.popleft()
            if self.stops():
                errand.refuse()
            else:
                with self._undisturbed():
                    errand.do()

    def _thread(self) -> None:
        _HERE.beside = self
        self._work()

    def _work(self) -> None:
        """Run bodies one after the other, in the order of the calls, until all have begun."""
        while True:
            with self._lock:
                place, self._next = self._next, self._next + 1
            if place >= len(self._bodies):
                return
            body = self._bodies[place]
            body.began = self._monotonic()
            neighbour = Neighbour(stops=self.stops, stop_all=self._stop_all, in_turn=body.keep)
            try:
                body.attempt = self._run(place, neighbour)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                body.error = error
            finally:
                body.over.release()


class BesideCall(Record):
    """A permitted read-only call, whose intent is in the log."""

    number: int
    action: Action
    effects: Effects


class CallsBeside(Beside):
    """A `with` block in which the bodies of calls run in parallel. `attempt` returns the result of one call."""

    def __init__(
        self,
        calls: Sequence[BesideCall],
        tools: ToolRegistry,
        *,
        seconds_left: Callable[[], float | None],
        limit: int,
        interrupt: Interrupt,
        monotonic: Callable[[], float],
        undisturbed: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """Make the block.

        `seconds_left` returns the time left for a body (`None`: no limit). For the others see `Beside`.
        """
        super().__init__(
            len(calls), self._body, limit=limit, interrupt=interrupt, monotonic=monotonic, undisturbed=undisturbed
        )
        self._calls = calls
        self._tools = tools
        self._seconds_left = seconds_left

    def attempt(self, place: int) -> Attempt:
        """Wait for a body as `wait_for` does, and return its attempt.

        For a body that did not end in time, return an interrupted attempt.
        """
        attempt = self.wait_for(place)
        if attempt is not None:
            return attempt
        since = self.began(place)
        with Attempt(self._calls[place].action.call, self._monotonic, since=since) as given_up:
            given_up.is_started = since is not None
            raise KeyboardInterrupt
        return given_up

    def _body(self, place: int, neighbour: Neighbour) -> Attempt:
        """Run one body. Called on any thread."""
        call, seconds = self._calls[place], self._seconds_left()
        name = call.action.tool
        tool, alike = self._tools[name], tuple(other.number for other in self._calls if other.action.tool == name)
        with Attempt(call.action.call, self._monotonic) as attempt:
            if neighbour.stops() or self._interrupt.requested:
                attempt.not_begun("the person interrupted" if self._interrupt.requested else "the run was stopped")
            elif seconds is not None and seconds <= 0:
                attempt.not_begun(TIME_OVER)
            elif isinstance(tool, BesideTool):
                self._tools.check_place()
                attempt.is_started = True
                surroundings = replace(neighbour, call=call.number, alike=alike)
                attempt.take(tool.run_beside(call.action, call.effects, seconds or None, surroundings))
        return attempt

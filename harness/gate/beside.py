"""Bodies of reading calls, run at once: each on a thread, with results taken in the order of the calls.

INVARIANT: nothing is recorded or shown here. The gate's own thread does both, call by call, as if they had run one
after the other. When the `with` block is left, no body runs on, except one that did not end within PATIENCE_SECONDS
after a request to stop: that one only reads.

A body that is a session of its own (a helper) records its own events. It asks a person on the gate's own thread,
through `on_gates_thread`.
"""

from __future__ import annotations

from _thread import _local as Local  # noqa: N812 - threading.local, which is a class
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from harness.actions import Action, Decision, Effects, Enforcement
from harness.gate.checked_calls import CheckedCalls
from harness.gate.registry import ToolRegistry
from harness.gate.tool import TIME_OVER, Attempt, BesideTool, ConfinedTool, Neighbour
from harness.interrupt import Interrupt, Interrupted
from harness.policy.verdict import Verdict
from harness.record import Record, replace

LOOK_UP_SECONDS = 0.1
"""Seconds between checks of the waiting gate's thread, at which a command's output is shown."""
PATIENCE_SECONDS = 15.0
"""Seconds to wait for a body after a request to stop: a command needs a few, and a file of a dead server never
arrives.
"""
KEPT_CHARACTERS = 16_384
"""Maximum output kept of a call before its turn to be shown; the oldest is dropped."""


_Result = TypeVar("_Result")
_HERE = Local()
"""`beside`: the block whose body this thread runs."""


def on_gates_thread(work: Callable[[], _Result]) -> _Result:
    """Run `work` on the thread of the gate, and return its result: at once, or, from a body beside others, at its
    next check.

    Raises the errors of `work`, and Interrupted if all were asked to stop before it began.
    """
    beside: Beside | None = getattr(_HERE, "beside", None)
    return work() if beside is None else beside.errand(work)


def looks_only(effects: Effects) -> bool:
    """Say whether effects permit nothing but to read."""
    writes = effects.write != () or bool(effects.named_paths or effects.granted)
    return not writes and not effects.reaches and effects.enforcement is not Enforcement.OFF


def runs_beside(action: Action, verdict: Verdict, tools: ToolRegistry, checks: CheckedCalls) -> bool:
    """Return whether a call may run beside others.

    It must only read, need no question and no hook, and have a tool that can run so.
    """
    if verdict.decision is not Decision.AUTO or verdict.programs or not looks_only(verdict.effects):
        return False
    tool = tools[action.tool]
    # A command is what its text says only as far as the kernel holds it to that.
    is_confined = not isinstance(tool, ConfinedTool) or tools.bounds_by_kernel(action.tool)
    return isinstance(tool, BesideTool) and tool.runs_beside and is_confined and not checks.asks_about(action)


class _Body:
    """One body, and its result."""

    def __init__(self) -> None:
        self.over = allocate_lock()
        """Held until it has ended."""
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
        """Keep output until its turn."""
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
    """Something that a body wants done on the gate's thread."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self.over = allocate_lock()
        """Held until it was done."""
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
        """The result. Raises its exception."""
        if self.error is not None:
            raise self.error
        return self._results[0]


class Beside:
    """A `with` block in which bodies run at once; `wait_for` gives them in the order of their calls."""

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
        """Take the number of bodies, the function that runs one by its index (from 0), and the maximum number at
        once.

        `run` is called on threads, and checks before each body whether it may still begin. `monotonic` is a clock in
        seconds. `undisturbed` returns a block in which bodies do nothing visible, since one of them has a question.
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
        """Until when what was asked to stop is waited for."""
        self._next = 0
        self._errands: deque[_Errand[Any]] = deque()
        self._is_left = False
        self._lock = allocate_lock()

    def stops(self) -> int:
        """Return the number of requests to stop since the block was made."""
        return self._interrupt.count - self._before + self._own_stops

    def errand(self, work: Callable[[], _Result]) -> _Result:
        """Do as `on_gates_thread`; called by a body."""
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
        """Start the threads; where the system gives none, the bodies run one after the other, right here."""
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
        """Have what still runs end: something cut the block short."""
        if not all(body.has_ended for body in self._bodies):
            self._stop_all()
            for body in self._bodies:
                self._wait(body)
        self._is_left = True

    def wait_for(self, place: int) -> Attempt | None:
        """Wait for a body, showing its output, and return its attempt; `None` for one that was given up.

        Raises an exception that its attempt did not handle. An interrupt is not an error here: it asks the bodies
        to end.
        """
        body = self._bodies[place]
        self._wait(body, shows=True)
        body.show()
        if body.error is not None:
            raise body.error
        return body.attempt

    def began(self, place: int) -> float | None:
        """Return the start of a body, by the clock; `None` if it did not start."""
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
        """Do what bodies want done on this thread, unless they shall stop."""
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
        """Run one body after the other, in the order of the calls, until none is left to begin."""
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
    """A permitted call that only reads, whose intent is written."""

    number: int
    action: Action
    effects: Effects


class CallsBeside(Beside):
    """A `with` block in which the bodies of calls run at once; `attempt` returns their results, in their order."""

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
        """Make the block. `seconds_left` returns how long a body may take (None: no limit); for the others see Beside."""
        super().__init__(
            len(calls), self._body, limit=limit, interrupt=interrupt, monotonic=monotonic, undisturbed=undisturbed
        )
        self._calls = calls
        self._tools = tools
        self._seconds_left = seconds_left

    def attempt(self, place: int) -> Attempt:
        """Wait for a body as `wait_for` does, and return its attempt, also that of one that was given up."""
        attempt = self.wait_for(place)
        if attempt is not None:
            return attempt
        since = self.began(place)
        with Attempt(self._calls[place].action.call, self._monotonic, since=since) as given_up:
            given_up.is_started = since is not None
            raise KeyboardInterrupt
        return given_up

    def _body(self, place: int, neighbour: Neighbour) -> Attempt:
        """Run one body; on any thread."""
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

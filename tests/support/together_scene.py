"""An agent whose calls may run at once: readers that end in an order that a test names, and writers that look who runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from agent_scene import Playing, Scene, Step, Violation, call
from process_scene import ENOUGH

from harness.actions import Access, Action, Effects, JsonValue, PathAccess, Place
from harness.errors import ToolError
from harness.gate.approval import Approver, ScriptedAnswers
from harness.gate.call_checks import NO_SESSION_CHECKS, SessionChecks
from harness.gate.tool import Neighbour, ToolOutput
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.loop.agent import Agent
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.policy.loader import parse_policy

POLICY = b"""
version = 1
name = "table"
[tools]
reads = "auto"
alone = "auto"
writes = "auto"
asked = "confirm"
refused = "deny"
halted = "block"
[[rule]]
id = "closed"
decision = "deny"
access = ["read"]
path = ["closed"]
reason = "It is closed."
"""
TOOLS = ("reads", "alone", "writes", "asked", "refused", "halted")


class Turnstile:
    """Lets bodies out in one order, once as many of them are inside as may be: so it proves that they run at once."""

    def __init__(self, order: Sequence[str], at_once: int) -> None:
        """Take the ids of a group in the order in which they shall end, as far as they run at the same time."""
        self._order = order
        self._at_once = at_once
        self._inside: set[str] = set()
        self._left = len(order)
        self._changed = threading.Condition()

    def pass_through(self, identity: str) -> None:
        """Come in, and go out when it is one's turn."""
        with self._changed:
            self._inside.add(identity)
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._may_leave(identity), ENOUGH):
                raise Violation(f"{identity} waits for others that do not come: {self._inside}")
            self._inside.remove(identity)
            self._left -= 1
            self._changed.notify_all()

    def _may_leave(self, identity: str) -> bool:
        full = len(self._inside) >= min(self._at_once, self._left)
        return full and identity == min(self._inside, key=self._order.index)


class Floor:
    """What the tools of one scene share: who runs, what ran, and who leaves when."""

    def __init__(self, path: str, interrupt: Interrupt) -> None:
        self.path = path
        self.interrupt = interrupt
        self.running: set[str] = set()
        self.ran: list[str] = []
        """Ids, as they were begun."""
        self.written = 0
        self.turnstiles: Mapping[str, Turnstile] = {}
        self.release = threading.Event()
        """Lets go of those that wait for nothing else."""
        self.on_body: Callable[[str], None] = lambda identity: None
        self.lock = threading.Lock()


class Deed:
    """A tool that does what its argument says."""

    def __init__(self, name: str, floor: Floor) -> None:
        self.spec = ToolSpec(
            name=name,
            description="For tests.",
            parameters={"properties": {"do": {"type": "string"}}, "required": ["do"], "additionalProperties": False},
        )
        self.floor = floor

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        do = str(arguments["do"])
        if do.startswith("cannot"):
            raise ToolError("This cannot be prepared.")
        name = "closed" if do.startswith("later closed") and self.floor.written else do.partition(" ")[0]
        writes = self.spec.name == "writes"
        path = PathAccess(
            written=name,
            real=f"/w/{name}",
            names=(name,),
            access=Access.WRITE if writes else Access.READ,
            place=Place.INSIDE,
        )
        return Action(
            call=call, tool=self.spec.name, arguments=arguments, facets=(path,), summary=do, preview=do, request=do
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Do it, alone."""
        if self.floor.running:
            raise Violation(f"{action.call.id} runs while {self.floor.running} do")
        return self.body(action, None)

    def body(self, action: Action, neighbour: Neighbour | None) -> ToolOutput:
        """Do it; where others run, wait for them as the scene says."""
        floor, identity = self.floor, action.call.id
        with floor.lock:
            check_intent(floor.path, action)
            floor.running.add(identity)
            floor.ran.append(identity)
        try:
            floor.on_body(identity)
            if neighbour is not None and identity in floor.turnstiles:
                floor.turnstiles[identity].pass_through(identity)
            return self._do(str(action.request), neighbour)
        finally:
            with floor.lock:
                floor.running.discard(identity)
                floor.written += self.spec.name == "writes"

    def _do(self, do: str, neighbour: Neighbour | None) -> ToolOutput:
        match do.partition(" ")[0]:
            case "fail":
                raise ToolError("It did not work.")
            case "crash":
                raise RuntimeError("a bug")
            case "exit":
                raise SystemExit(0)
            case "wait":
                while not self.floor.release.wait(0.001):
                    if neighbour is not None and neighbour.stops():
                        raise KeyboardInterrupt
            case "hang":
                self.floor.release.wait(ENOUGH)
            case _:
                pass
        return ToolOutput(content=f"did {do}")


class Reading(Deed):
    """The same, which may run beside others."""

    runs_beside = True

    def run_beside(self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour) -> ToolOutput:
        """Do it while others do."""
        if effects.write != ():
            raise Violation(f"{action.call.id} may write, and runs beside others")
        if any(not identity.startswith("reads") for identity in self.floor.running):
            raise Violation(f"{action.call.id} runs while {self.floor.running} do")
        return self.body(action, neighbour)


def check_intent(path: str, action: Action) -> None:
    """Raise Violation unless the intent of a permitted call is on disk, and no end of it."""
    of_call: list[str] = []
    numbers: set[object] = set()
    for record in read_log(path):
        if record["kind"] == "call_proposed" and record["id"] == action.call.id:
            numbers.add(record["call"])
        if record.get("call") in numbers:
            of_call.append(str(record["kind"]))
    if of_call[-1:] != ["intent"] or "decision" not in of_call:
        raise Violation(f"a body was reached without leave: {of_call}")


class Together(Scene):
    """An agent with these tools, of whose calls some may run at once."""

    def __init__(  # the parts of Scene that are told here are others
        self,
        path: str,
        *script: Step,
        together: int,
        approver: Approver | None = None,
        limits: Limits | None = None,
        checks: SessionChecks = NO_SESSION_CHECKS,
        done_marker: str | None = None,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.path = path
        self.interrupt = Interrupt()
        self.floor = Floor(path, self.interrupt)
        self.log = ActionLog.open(path)
        self.model = Playing(script)
        self.agent = Agent(
            model=self.model,
            tools=[(Reading if name in ("reads", "asked") else Deed)(name, self.floor) for name in TOOLS],
            policy=parse_policy(POLICY, "table.toml", extra_tools=TOOLS),
            approver=approver or ScriptedAnswers(["y"] * 20),
            log=self.log,
            limits=limits,
            system="be careful",
            interrupt=self.interrupt,
            monotonic=monotonic,
            together=together,
            checks=checks,
            done_marker=done_marker,
        )
        self.session = None

    def order(self, ends: Sequence[Sequence[str]], at_once: int) -> None:
        """Let the calls of each group end in this order."""
        for group in ends:
            turnstile = Turnstile(group, at_once)
            self.floor.turnstiles = {**self.floor.turnstiles, **dict.fromkeys(group, turnstile)}

    def per_call(self) -> list[list[str]]:
        """Return what the log tells of each call, in order."""
        told: dict[object, list[str]] = {}
        for record in read_log(self.path):
            if "call" in record:
                more = [record.get(name) for name in ("id", "decision", "effects", "answer", "status", "content")]
                told.setdefault(record["call"], []).append(f"{record['kind']} {more}")
        return [told[number] for number in sorted(told, key=str)]

    def kinds(self, *wanted: str) -> list[str]:
        """Return the records of some kinds in their order, as `kind number`."""
        return [f"{one['kind']} {one['call']}" for one in read_log(self.path) if one["kind"] in wanted]


def deed(number: int, tool: str, do: str = "work") -> ToolCall:
    """Return a call; its id tells its tool."""
    made = call(number, tool, f"{do} {number}")
    return ToolCall(id=f"{tool}{number}", name=tool, arguments=made.arguments)


def groups(calls: Sequence[ToolCall]) -> Iterator[Sequence[str]]:
    """Yield what should run at once, by their ids: neighbours that read, where there is more than one."""
    for reads, members in groupby(calls, lambda one: one.name == "reads" and "cannot" not in one.arguments):
        ids = [one.id for one in members]
        if reads and len(ids) > 1:
            yield ids

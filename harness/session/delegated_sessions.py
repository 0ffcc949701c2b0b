"""Helpers: separate agents for one task each, with the caller's log and approver, and never with more rights.

INVARIANT: a helper's policy is that of its caller, or a stricter one. Its limits are a share of the caller's remaining
limits, and its usage counts against them. It cannot start helpers. A blocked call, a fault of the gate or log, and the
user's halt or Ctrl-C in a helper end the caller too.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from harness.actions import Action, JsonValue
from harness.errors import ToolError
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.records import GateState
from harness.gate.tool import Neighbour, Tool
from harness.interrupt import Interrupt
from harness.limits import Limits, strictest
from harness.loop.agent import Agent
from harness.loop.run import HelpersUse, Run
from harness.messages import RunResult, StopReason
from harness.model import Model, OwnModel
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import Record, replace
from harness.text.visible import visible_line
from harness.tools.delegation import DelegatedResult, DelegatedTask, HelperChanges, HelperPolicy

SHARE = 0.5
"""Share of each remaining limit that a single helper gets. Each of `n` helpers at once gets 1 / (n + 1)."""
_TITLE = 40
"""Maximum characters of its task in a helper's name at an approval prompt."""
_NOT_OF_A_HELPER = ("argv", "environment", "origin", "add_dirs", "lost_log")
"""Fields of a session's first record that a helper's does not repeat."""
_OF_THE_MODEL = ("api", "server", "call_form", "profile", "model_settings")
"""Fields about the first model; a helper's record has those of the present model."""
_ENDS_ALL = (
    StopReason.BLOCKED,
    StopReason.INTERRUPTED,
    StopReason.LOG_ERROR,
    StopReason.GATE_ERROR,
    StopReason.WORKSPACE_LOST,
    StopReason.INTERNAL_ERROR,
    StopReason.TERMINAL_CLOSED,
)
"""Ends of a helper that end its caller, too."""


class Equipment(Record):
    """Policy, tools and place of a helper."""

    tools: Sequence[Tool]
    policy: Policy
    """The caller's policy, or a stricter one."""
    system: str
    log_fields: Mapping[str, JsonValue] = {}
    """Added to its first record."""
    changes: Callable[[], HelperChanges] = HelperChanges
    """Returns the helper's changes, after it has ended."""


Equip = Callable[[DelegatedTask, Policy, Interrupt], AbstractContextManager[Equipment]]
"""Takes a task, the policy in force and the helper's interrupt; prepares the equipment, and removes it at the end.

Raises ToolError if that fails.
"""
AnotherModel = Callable[[Interrupt], OwnModel]
"""Makes one more model like the present one, with its own interrupt."""


class DelegatedSessions:
    """Runs the helpers of one agent: one after the other, or several read-only ones at once."""

    def __init__(self, agent: Agent, equip: Equip, another_model: AnotherModel | None = None) -> None:
        """Keep the calling agent, the function that equips its helpers, and the one that makes a model for each.

        `another_model` is `None` if the model is being recorded or played back. Then only one helper can run at a time,
        with the caller's model.
        """
        self._agent = agent
        self._equip = equip
        self._another_model = another_model
        self._lock = allocate_lock()
        """Lock for the following fields, and for the caller's run."""
        self._numbers: dict[tuple[str, int], int] = {}
        """Numbers of helpers, by session and call of the caller."""

    @property
    def at_once(self) -> bool:
        """Whether several helpers may run at once."""
        return self._another_model is not None

    def start(self, task: DelegatedTask, neighbour: Neighbour | None = None) -> DelegatedResult:
        """Run a task and return its result. With `neighbour`, it runs beside others, on any thread.

        Stops the caller's run too if the helper's stop reason requires it. Raises ToolError if helpers are not
        available, LogError, and KeyboardInterrupt if the user stops it.
        """
        agent = self._agent
        run = agent.run_now
        if run is None or run.end is not None:
            raise ToolError("A helper is had by a conversation, and none goes on.")
        parent = run.session.identity
        call = agent.log.running_call if neighbour is None else neighbour.call
        alike = (call,) if neighbour is None else neighbour.alike
        with self._lock:
            limits = share_of(run, len(alike))
            number = self._number(parent, call, alike)
        fields: dict[str, JsonValue] = {"mode": "helper", "parent": parent, "parent_call": call, "helper": number}
        place = ", in a copy of its own" if task.policy is HelperPolicy.SAME else ""
        helper_name = f"helper {number} ({_title(task.task)}){place}"
        with (
            self._apart(neighbour) as (interrupt, model),
            self._equip(task, agent.gate.grants.stated_policy, interrupt) as equipment,
        ):
            helper = self._helper(equipment, limits, helper_name, fields, interrupt, model)
            try:
                result = helper.run(task.task)
            finally:
                if helper.run_now is not None:
                    self._count(run, helper.run_now)
            changes = equipment.changes()
        self._pass_on(run, result, number, neighbour)
        return DelegatedResult(helper=number, ended=result, changes=changes)

    @contextmanager
    def _apart(self, neighbour: Neighbour | None) -> Iterator[tuple[Interrupt, Model]]:
        """Give a helper its place in the log; yield its interrupt and its model.

        A helper that runs alone uses those of its caller, which waits for it. Beside other helpers it gets its own.
        """
        agent = self._agent
        if neighbour is None:
            before, is_done = agent.log.session, False
            try:
                with agent.interrupt.hold():  # the helper opens its own interrupt windows
                    yield agent.interrupt, agent.model
                    is_done = True
            except KeyboardInterrupt:
                if not is_done:
                    raise
                # The helper is done: its result is returned, and the caller sees the stop request when it goes on.
            finally:
                agent.log.session = before
            return
        if self._another_model is None:
            raise ToolError("Several helpers cannot be had at once here: ask for one at a time.")
        interrupt = Interrupt(neighbour.stops)
        model = self._another_model(interrupt)
        try:
            with agent.log.session_of_thread():
                yield interrupt, model
        finally:
            model.close()

    def _number(self, parent: str, call: int, alike: Sequence[int]) -> int:
        """Return the number of a helper in the caller's session. Helpers at once are numbered in the order of their calls."""
        if (parent, call) not in self._numbers:
            first = 1 + sum(session == parent for session, _ in self._numbers)
            self._numbers |= {(parent, other_call): number for number, other_call in enumerate(alike, start=first)}
        return self._numbers[parent, call]

    def _helper(
        self,
        equipment: Equipment,
        limits: Limits,
        helper_name: str,
        more_fields: Mapping[str, JsonValue],
        interrupt: Interrupt,
        model: Model,
    ) -> Agent:
        agent = self._agent
        fields = {name: value for name, value in agent.facts.items() if name not in (*_NOT_OF_A_HELPER, *_OF_THE_MODEL)}

        def confinement(action: Action, verdict: Verdict) -> str:
            return helper.registry.confinement(action.tool, verdict.effects)

        # INVARIANT: entry points with changes that the user has not seen stay blocked for a helper's rules too.
        state = GateState(unseen=agent.gate.state.unseen)
        helper = Agent(
            model=model,
            tools=equipment.tools,
            policy=equipment.policy,
            approver=asked_for(helper_name, agent.approver, confinement),
            log=agent.log,
            limits=strictest((agent.own_limits, limits)),
            prices=agent.prices,
            context_tokens=agent.context_tokens,
            system=equipment.system,
            facts={**fields, **equipment.log_fields, **more_fields},
            interrupt=interrupt,
            together=agent.together,
            checks=agent.checks,
            options=replace(agent.options, grants=(), kept=None, begun=state),
            monotonic=agent.monotonic,
        )
        return helper

    def _count(self, run: Run, helper_run: Run) -> None:
        with self._lock:
            used = run.helpers
            run.helpers = HelpersUse(
                turns=used.turns + helper_run.tries,
                refusals=used.refusals + helper_run.whole_refusals,
                usage=used.usage + helper_run.usage,
            )
            run.session.helpers_usage += helper_run.usage

    def _pass_on(self, run: Run, result: RunResult, number: int, neighbour: Neighbour | None) -> None:
        """End the caller's run and the other helpers if the helper's stop reason requires it."""
        if result.stop not in _ENDS_ALL:
            return
        with self._lock:
            if run.end is None:
                run.stop(
                    result.stop, f"in helper {number}: {result.detail}" if result.detail else f"in helper {number}"
                )
        if neighbour is not None and not neighbour.stops():
            neighbour.stop_all()


def share_of(run: Run, among: int) -> Limits:
    """Return the limits of each of `among` helpers at once: 1 / (among + 1) of the run's remaining limits.

    Each gets SHARE of the remaining seconds, since time passes for all of them at once. Raises ToolError if too little
    remains, or if the cost is limited and unknown.
    """
    limits, usage = run.limits, run.whole_usage
    cost, seconds = run.cost, run.seconds_left
    share = 1 / (among + 1)
    tokens = usage.input_tokens + usage.output_tokens
    turns = None if limits.max_turns is None else int((limits.max_turns - run.tries) * share)
    left_tokens = None if limits.max_tokens is None else int((limits.max_tokens - tokens) * share)
    left_cost = None if limits.max_cost is None or cost is None else (limits.max_cost - cost) * share
    if limits.max_cost is not None and cost is None:
        raise ToolError("A helper cannot be had: what the run has cost is not known, and the cost is limited.")
    if any(remaining is not None and remaining <= 0 for remaining in (turns, left_tokens, left_cost, seconds)):
        raise ToolError("Too little is left of the limits of this run for a helper: do the task yourself.")
    refusals = None if limits.max_refusals is None else int((limits.max_refusals - run.whole_refusals) * share)
    return Limits(
        max_turns=turns,
        max_tokens=left_tokens,
        max_cost=left_cost,
        max_seconds=None if seconds is None else seconds * SHARE,  # time passes for all of them at once
        max_refusals=None if refusals is None else max(1, refusals),
    )


def asked_for(helper_name: str, approver: Approver, confinement: Callable[[Action, Verdict], str]) -> Approver:
    """Return an approver that shows the helper's name and the call's confinement. An approval counts for one call only.

    INVARIANT: `deny_all` is returned unchanged, since the gate compares with it to know that no user is there.
    """
    if approver is deny_all:
        return deny_all

    def approve(action: Action, verdict: Verdict) -> Approval:
        answer = approver(replace(action, asked_by=helper_name, confinement=confinement(action, verdict)), verdict)
        return replace(answer, scope=None, days=None, patterns=())

    return approve


def _title(task: str) -> str:
    return visible_line(task, _TITLE).strip()

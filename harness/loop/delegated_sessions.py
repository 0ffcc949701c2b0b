"""Helpers: an agent of its own for one task, in the log of whoever asked, by its approver, and never with more rights.

INVARIANT: a helper's policy is that of whoever asks, or a stricter one; its limits are a part of what is left of theirs, and
what it uses counts against them. It has no tool to have helpers itself. A hard block in it, a fault of the gate or of the
log, and a person's halt or Ctrl-C end whoever asked as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from harness.actions import Action, JsonValue
from harness.delegation import DelegatedResult, DelegatedTask
from harness.errors import ToolError
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.records import GateState
from harness.gate.tool import Tool
from harness.limits import Limits, strictest
from harness.loop.agent import Agent
from harness.loop.offered_tools import no_more_tools
from harness.loop.run import HelpersUse, Run
from harness.messages import RunResult, StopReason
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import Record, replace
from harness.text.visible import visible_line

SHARE = 0.5
"""Of what is left of each limit: what one helper gets."""
_TITLE = 40
"""Characters of its task that name a helper at a question."""
_NOT_OF_A_HELPER = ("argv", "environment", "origin", "add_dirs", "lost_log")
"""What the first record of a session says, and that of a helper's does not say again."""
_ENDS_ALL = (
    StopReason.BLOCKED,
    StopReason.INTERRUPTED,
    StopReason.LOG_ERROR,
    StopReason.GATE_ERROR,
    StopReason.WORKSPACE_LOST,
    StopReason.INTERNAL_ERROR,
    StopReason.TERMINAL_CLOSED,
)
"""How a helper ends that ends whoever asked, too."""


class HelperChanges(Record):
    """What a helper changed in its copy; see DelegatedResult."""

    patch: str = ""
    patch_file: str = ""
    notes: tuple[str, ...] = ()


class Equipment(Record):
    """What a helper works with."""

    tools: Sequence[Tool]
    policy: Policy
    """That of whoever asks, or a stricter one."""
    system: str
    about: Mapping[str, JsonValue] = {}
    """Added to its first record."""
    changes: Callable[[], HelperChanges] = HelperChanges
    """Asked when it has ended."""


Equip = Callable[[DelegatedTask, Policy], AbstractContextManager[Equipment]]
"""Prepares what a helper needs, given the policy that holds, and clears it away. Raises ToolError where it cannot."""


class DelegatedSessions:
    """Runs the helpers of one agent, one after the other."""

    def __init__(self, agent: Agent, equip: Equip) -> None:
        """Take who asks, and what equips its helpers."""
        self._agent = agent
        self._equip = equip
        self._counts: dict[str, int] = {}
        """How many helpers each session had."""

    def start(self, task: DelegatedTask) -> DelegatedResult:
        """Have a task done, and return how that ended. The run of whoever asks is stopped where the helper's end ends both.

        Raises ToolError where no helper can be had, LogError, and KeyboardInterrupt where the person stops it.
        """
        agent = self._agent
        run = agent.run_now
        if run is None or run.end is not None:
            raise ToolError("A helper is had by a conversation, and none goes on.")
        limits = share_of(run)
        parent = agent.log.session
        number = self._counts[parent] = self._counts.get(parent, 0) + 1
        call = agent.log.running_call
        interrupt = agent.interrupt
        try:
            with interrupt.hold(), self._equip(task, agent.gate.stated_policy) as given:
                helper = self._helper(given, limits, f"helper {number} ({_title(task.task)})", {
                    "mode": "helper", "parent": parent, "parent_call": call, "helper": number,
                })  # fmt: skip
                try:
                    result = helper.run(task.task)
                finally:
                    if helper.run_now is not None:
                        self._count(run, helper.run_now)
                    agent.log.observers.remove(helper.hears)
                session = agent.log.session if agent.log.session != parent else ""
                agent.log.session = parent
                changes = HelperChanges() if result.stop is StopReason.INTERRUPTED else given.changes()
        finally:
            agent.log.session = parent
        _pass_on(run, result, number)
        own = helper.run_now
        return DelegatedResult(
            helper=number,
            session=session,
            stop=result.stop,
            text=result.text,
            detail=result.detail,
            turns=result.turns,
            usage=result.usage,
            cost=None if own is None else own.cost,
            patch=changes.patch,
            patch_file=changes.patch_file,
            notes=changes.notes,
        )

    def _helper(self, given: Equipment, limits: Limits, who: str, about: Mapping[str, JsonValue]) -> Agent:
        agent = self._agent
        parts = agent.parts
        said = {name: value for name, value in (parts.about or {}).items() if name not in _NOT_OF_A_HELPER}
        helper = replace(
            parts,
            model=agent.model,
            prices=agent.prices,
            tools=given.tools,
            policy=given.policy,
            approver=asked_for(who, parts.approver),
            limits=strictest((parts.limits or Limits(), limits)),
            system=given.system,
            about={**said, **given.about, **about},
            on_text=None,
            observers=None,
            done_marker=None,
            grants=(),
            kept=None,
            more_tools=no_more_tools,
            check_answer=None,
            interrupt=agent.interrupt,
            # INVARIANT: what no person has seen of entry points, no rule of a helper's lets run.
            begun=GateState(unseen=agent.gate.state.unseen),
        )
        return Agent.of(helper)

    def _count(self, run: Run, own: Run) -> None:
        used = run.helpers
        run.helpers = HelpersUse(turns=used.turns + own.tries, usage=used.usage + own.usage)
        run.session.helpers_usage += own.usage


def share_of(run: Run) -> Limits:
    """Return the limits of a helper of `run`: SHARE of what is left. Raises ToolError where nothing is left."""
    limits, usage = run.limits, run.whole_usage
    cost, seconds = run.cost, run.seconds_left
    tokens = usage.input_tokens + usage.output_tokens
    turns = None if limits.max_turns is None else int((limits.max_turns - run.tries) * SHARE)
    left_tokens = None if limits.max_tokens is None else int((limits.max_tokens - tokens) * SHARE)
    left_cost = None if limits.max_cost is None or cost is None else (limits.max_cost - cost) * SHARE
    if limits.max_cost is not None and cost is None:
        raise ToolError("A helper cannot be had: what the run has cost is not known, and the cost is limited.")
    if any(left is not None and left <= 0 for left in (turns, left_tokens, left_cost, seconds)):
        raise ToolError("Too little is left of the limits of this run for a helper: do the task yourself.")
    return Limits(
        max_turns=turns,
        max_tokens=left_tokens,
        max_cost=left_cost,
        max_seconds=None if seconds is None else seconds * SHARE,
    )


def asked_for(who: str, approver: Approver) -> Approver:
    """Return an approver that says who asks; a yes counts for the one call.

    INVARIANT: `deny_all` stays itself: by that the gate knows beforehand that nobody is there.
    """
    if approver is deny_all:
        return deny_all

    def approve(action: Action, verdict: Verdict) -> Approval:
        answer = approver(replace(action, asked_by=who), verdict)
        return replace(answer, scope=None, days=None, patterns=())

    return approve


def _title(task: str) -> str:
    return visible_line(task, _TITLE).strip()


def _pass_on(run: Run, result: RunResult, number: int) -> None:
    """End the run of whoever asked where the helper's end ends both."""
    if result.stop in _ENDS_ALL and run.end is None:
        run.stop(result.stop, f"in helper {number}: {result.detail}" if result.detail else f"in helper {number}")

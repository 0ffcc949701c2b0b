"""What helpers work with: fresh tools in the workspace, held to reading; or in a worktree, whose changes become a patch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.cli.policy.policies import held_to_reading
from harness.errors import PolicyError, ToolError, nearest
from harness.gate.tool import Tool
from harness.loop.delegated_sessions import DelegatedSessions, Equipment
from harness.policy.policy import Policy
from harness.tools.delegation import DelegatedResult, DelegatedTask, HelperPolicy

if TYPE_CHECKING:
    from harness.cli.parts import SessionParts
    from harness.loop.agent import Agent

NOT_FOR_HELPERS = ("delegate", "ask_user", "todo")
"""Tools that are the conversation's own."""
_ROLE = (
    "\n\nYou are a helper: another conversation of the model gave you the one task that follows, and reads nothing but your "
    "last answer. Nobody else reads it, and you cannot ask back. Answer shortly and with places (file:line)."
)
_READS = " You only read and look; you change nothing."


def helpers_of(parts: SessionParts, agent: Agent) -> Callable[[DelegatedTask], DelegatedResult]:
    """Return what runs the helpers of `agent`, which was made of `parts`."""

    @contextmanager
    def equip(task: DelegatedTask, policy: Policy) -> Iterator[Equipment]:
        names = _names(task, [name for name in agent.registry.names if name not in NOT_FOR_HELPERS])
        if task.policy is HelperPolicy.SAME:
            raise ToolError("A helper that writes cannot be had here: only one that reads.")
        try:
            policy = held_to_reading(policy)
        except PolicyError as error:
            raise ToolError(f"A helper cannot be had: {error}") from None
        yield Equipment(
            tools=_tools(parts, agent, names),
            policy=policy,
            system=f"{agent.parts.system}{_ROLE}{_READS}",
        )

    return DelegatedSessions(agent, equip).start


def _names(task: DelegatedTask, known: Sequence[str]) -> Sequence[str]:
    """Return the names of the tools that a helper has. Raises ToolError for one that whoever asks does not have."""
    for name in task.tools:
        if name not in known:
            raise ToolError(f"A helper cannot have {name!r}{nearest(name, known)}; it may have {', '.join(known)}.")
    return task.tools or known


def _tools(parts: SessionParts, agent: Agent, names: Sequence[str]) -> tuple[Tool, ...]:
    """Return tools of those names: those of the files and commands anew, since they know what a conversation has read."""
    from harness.cli.parts import tools_in

    fresh = tools_in(
        parts.workspace,
        parts.state,
        parts.environment,
        parts.interrupt,
        log=parts.log.path,
        scripts=tuple(parts.extensions.tools.values()),
        pictures=parts.pictures,
    )
    own = {tool.spec.name: tool for tool in fresh}
    return tuple(own.get(name) or agent.registry[name] for name in names)

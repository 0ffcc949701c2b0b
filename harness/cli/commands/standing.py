"""What the status line tells of a conversation: how it stands at this moment; it shows nothing itself."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation
from harness.cli.terminal.status import Status
from harness.policy.policy import Policy
from harness.policy.rules import Decision
from harness.tool_kinds import Does, shipped_that

UNBOUND = "none"
"""How the level of confinement begins where the kernel holds commands to nothing."""
_CHANGING = (*shipped_that(Does.RUNS, Does.WRITES), "default")


def status_of(conversation: Conversation) -> Status:
    """Return how the conversation stands."""
    session, parts = conversation.session, conversation.parts
    last = session.last_usage
    return Status(
        model=conversation.agent.model.name,
        policy=parts.policy.name,
        turns=len(conversation.spent),
        input_tokens=session.usage.input_tokens,
        output_tokens=session.usage.output_tokens,
        cost=conversation.cost,
        context_tokens_used=last.input_tokens + last.output_tokens or None,
        context_tokens=parts.context_tokens,
        confinement="" if is_unbound(parts.level) else parts.level,
        grants=len(conversation.agent.gate.grants),
        loosened=tuple(loosened(parts.policy, parts.level)),
        plan=conversation.plans,
    )


def loosened(policy: Policy, level: str) -> list[str]:
    """Return in words what lets calls do more than a person may expect: nothing asked, or nothing held by the kernel."""
    words = ["commands are NOT CONFINED"] if is_unbound(level) else []
    for tool in _CHANGING:
        decisions = [one.decision for one in policy.defaults if one.tool == tool]
        if decisions and max(decisions) is Decision.AUTO:
            words.append(f"{'any other tool' if tool == 'default' else tool} runs UNASKED")
    return words


def is_unbound(level: str) -> bool:
    """Say whether the kernel holds commands to nothing, by what the tools say of it."""
    return level.partition(":")[0].strip() == UNBOUND

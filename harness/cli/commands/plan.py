"""/plan: a read-only overlay over the policy until it is left; it only tightens, and the person alone ends it."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation
from harness.cli.planned import planned
from harness.cli.trace import Tone
from harness.errors import UsageError
from harness.messages import RunResult, StopReason
from harness.visible import visible_line

APPROVED = "The plan is approved: carry it out."
PLAN_TOOL = "plan"
"""What asks whether plan mode is left; no tool of the model."""
MOST_SHOWN = 4_000
"""Characters of the plan that the question repeats; it was shown as the answer already."""


def plan(conversation: Conversation, rest: str) -> None:
    """Switch plan mode on, or leave it. Raises UsageError, PolicyError and LogError."""
    if rest.lower() not in ("", "on", "off"):
        raise UsageError(f"usage: /plan, or /plan off; not {visible_line(rest, 50)!r}")
    wanted = not conversation.plans if not rest else rest.lower() == "on"
    if wanted == conversation.plans:
        conversation.say(f"plan mode is {'on' if wanted else 'off'} already", Tone.QUIET)
    elif wanted:
        _enter(conversation)
    else:
        leave(conversation)
        conversation.say("plan mode is left: the policy decides again", Tone.QUIET)


def _enter(conversation: Conversation) -> None:
    held = conversation.parts.policy
    conversation.agent.change_policy(conversation.session, planned(held), "plan")
    conversation.held = held
    conversation.say(
        "plan mode: nothing is changed and only what reads runs, until you leave it by /plan off", Tone.WARNING
    )
    conversation.say("the model is told with your next message; its plan is put to you for y or n", Tone.QUIET)


def leave(conversation: Conversation) -> None:
    """Put the policy back that holds below plan mode. Raises LogError."""
    if conversation.held is not None:
        conversation.agent.change_policy(conversation.session, conversation.held, "plan left")
        conversation.held = None


def offer_to_carry_out(conversation: Conversation, result: RunResult) -> bool:
    """Ask, when a turn in plan mode ended with an answer, whether the plan is carried out; return the answer, or False.

    Raises LogError.
    """
    if not conversation.plans or result.stop is not StopReason.COMPLETED or not result.text.strip():
        return False
    from harness.cli.consent import is_wanted

    text = result.text.strip()
    more = f"\n[... {len(text) - MOST_SHOWN} more characters, shown above ...]" if len(text) > MOST_SHOWN else ""
    if is_wanted(
        conversation.approver,
        tool=PLAN_TOOL,
        summary="leave plan mode and carry the plan out",
        preview=text[:MOST_SHOWN] + more,
        why="yes leaves plan mode and tells the model to carry it out; the policy then decides on every call, as before",
        by="/plan",
    ):
        leave(conversation)
        conversation.prompt = APPROVED
        return True
    conversation.say("plan mode stays on; say what should be different, or leave it by /plan off", Tone.QUIET)
    return False

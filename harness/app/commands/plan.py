"""/plan: switch plan mode on and off.

Plan mode adds a read-only policy to the policy in force. Only the user can end it.
"""

from __future__ import annotations

import time

from harness.actions import JsonValue
from harness.app.commands.conversation import Conversation
from harness.errors import UsageError
from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.messages import RunResult, StopReason
from harness.plugin import HelpGroup, SlashCommand
from harness.session.policies import with_plan_mode
from harness.session.trust import consent
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

APPROVED = "The plan is approved: carry it out."
QUESTION = "leave plan mode and carry the plan out"


def plan(conversation: Conversation, rest: str) -> None:
    """Switch plan mode on or off. `go` also carries the plan out. Raises UsageError, PolicyError and LogError."""
    if rest.lower() not in ("", "on", "off", "go"):
        raise UsageError(f"usage: /plan, /plan go, or /plan off; not {visible_line(rest, 50)!r}")
    turns_on = not conversation.plans if not rest else rest.lower() == "on"
    if turns_on == conversation.plans:
        conversation.say(f"plan mode is {'on' if turns_on else 'off'} already", Tone.QUIET)
    elif turns_on:
        enter(conversation)
        conversation.say(
            "plan mode: nothing is changed and only what reads runs, until you leave it by /plan off", Tone.WARNING
        )
        conversation.say("the model is told with your next message; its plan is put to you for y or n", Tone.QUIET)
    else:
        leave(conversation)
        conversation.say("plan mode is left: the policy decides again", Tone.QUIET)
        conversation.prompt = APPROVED if rest.lower() == "go" else ""


def enter(conversation: Conversation) -> None:
    """Add the policy of plan mode to the policy in force, and end the other modes. Raises PolicyError and LogError."""
    agent, policy = conversation.agent, conversation.running.policy
    if agent.gate.grants.mode:
        agent.log.session = conversation.session.identity
        agent.gate.grants.set_mode("")
    agent.change_policy(conversation.session, with_plan_mode(policy), "plan")
    conversation.policy_before_plan = policy


def leave(conversation: Conversation, approval_fields: dict[str, JsonValue] | None = None) -> None:
    """Restore the policy that applied before plan mode. Raises LogError.

    `approval_fields` are the log fields of the question that led to it.
    """
    if conversation.policy_before_plan is not None:
        conversation.agent.change_policy(
            conversation.session, conversation.policy_before_plan, "plan left", asked=approval_fields
        )
        conversation.policy_before_plan = None


def offer_to_carry_out(conversation: Conversation, result: RunResult) -> bool:
    """Ask the user whether to carry out the plan, after a turn in plan mode. Return whether they agreed.

    There is no question, and the result is false, if the answer of the turn is itself a question. A reason given with a
    refusal becomes the user's next message. After each refusal, the next plan leads to the question again. The log
    record of the policy in force contains question and answer. Raises LogError and PolicyError.
    """
    text, held_policy = result.text.strip(), conversation.policy_before_plan
    if held_policy is None or result.stop is not StopReason.COMPLETED or not text:
        return False
    if text.endswith("?"):
        return False
    from harness.terminal.question import PLAN_TOOL

    began = time.monotonic()
    approval = consent(
        conversation.approver,
        tool=PLAN_TOOL,
        summary=QUESTION,
        preview="the plan is the answer above",
        reason="yes leaves plan mode and tells the model to carry it out; the policy then decides on every call, as before",
        by="/plan",
    )
    approval_fields = _question_fields(approval, time.monotonic() - began)
    if approval.answer is Answer.YES:
        leave(conversation, approval_fields)
        conversation.prompt = APPROVED
        return True
    conversation.agent.change_policy(
        conversation.session, with_plan_mode(held_policy), "plan kept", asked=approval_fields
    )
    conversation.prompt = approval.words
    if not approval.words:
        conversation.say("plan mode stays on: say what the plan lacks, or leave the mode with /plan off", Tone.QUIET)
    return False


def _question_fields(approval: Approval, seconds: float) -> dict[str, JsonValue]:
    return {
        "question": QUESTION,
        "answer": approval.answer.value,
        "by": approval.by,
        "words": approval.words,
        "seconds": round(seconds, 3),
    }


COMMANDS = (
    SlashCommand(
        name="/plan",
        arguments="[go|off]",
        summary="only read, until a plan is approved; again to leave",
        group=HelpGroup.TALK,
        run=plan,
    ),
)

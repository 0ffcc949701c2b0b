"""/plan: a read-only overlay over the policy until it is left; it only tightens, and the person alone ends it."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation
from harness.cli.policies import shipped_policy_path
from harness.cli.trace import Tone
from harness.errors import UsageError
from harness.messages import RunResult, StopReason
from harness.policy import Policy
from harness.policy_file import combine, load_policy
from harness.record import replace
from harness.rules import Decision, Layer, Rule
from harness.visible import visible_line

APPROVED = "The plan is approved: carry it out."
PLAN_TOOL = "plan"
"""What asks whether plan mode is left; no tool of the model."""
MOST_SHOWN = 4_000
"""Characters of the plan that the question repeats; it was shown as the answer already."""


def planned(held: Policy) -> Policy:
    """Return `held` with plan mode's policy over it. Pure but for the shipped file. Raises PolicyError.

    INVARIANT: nothing is decided more laxly than by `held`, no command but one that only reads runs, and no file is
    written: an auto rule counts for reading files alone, a confirm rule refuses (it would lift a refusal by default, see
    policy.evaluate), and readers run, and files are read, only where `held` lets them.
    """
    overlay = load_policy(shipped_policy_path("plan"), layer=Layer.SHIPPED)
    if not any(readers.on for readers in held.readers):
        overlay = replace(overlay, readers=())
    if not any(default.tool in ("read_file", "default") for default in held.defaults):
        strict = tuple(default for default in overlay.defaults if default.decision is not Decision.AUTO)
        overlay = replace(overlay, defaults=strict)
    rules = tuple(_tightened(rule) for rule in held.rules if rule.decision is not Decision.AUTO or _reads(rule))
    below = replace(held, rules=rules, sandboxes=tuple(sandbox.tightening() for sandbox in held.sandboxes))
    return combine((below, overlay))


def _tightened(rule: Rule) -> Rule:
    return replace(rule, decision=Decision.DENY) if rule.decision is Decision.CONFIRM else rule


def _reads(rule: Rule) -> bool:
    """Say whether an auto rule is about reading files and nothing else."""
    return rule.argv is None and tuple(access.value for access in rule.access) == ("read",)


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

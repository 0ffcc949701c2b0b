"""Plan mode: a read-only overlay over the policy that holds. It only tightens."""

from __future__ import annotations

from harness.cli.policy.policies import shipped_policy_path
from harness.policy.loader import combine, load_policy
from harness.policy.policy import Policy
from harness.policy.rules import Decision, Layer, Rule
from harness.record import replace
from harness.tool_kinds import READ_FILE


def with_plan_mode(held: Policy) -> Policy:
    """Return `held` with plan mode's policy over it. Pure but for the shipped file. Raises PolicyError.

    INVARIANT: nothing is decided more laxly than by `held`, no command but one that only reads runs, and no file is
    written: an auto rule counts for reading files alone, a confirm rule refuses (it would lift a refusal by default, see
    policy.evaluate), and readers run, and files are read, only where `held` lets them.
    """
    overlay = load_policy(shipped_policy_path("plan"), layer=Layer.SHIPPED)
    if not any(readers.on for readers in held.readers):
        overlay = replace(overlay, readers=())
    if not any(default.tool in (READ_FILE.name, "default") for default in held.defaults):
        strict = tuple(default for default in overlay.defaults if default.decision is not Decision.AUTO)
        overlay = replace(overlay, defaults=strict)
    rules = tuple(_tightened(rule) for rule in held.rules if rule.decision is not Decision.AUTO or _reads(rule))
    below = replace(held, rules=rules, sandbox_tables=tuple(sandbox.tightening() for sandbox in held.sandbox_tables))
    return combine((below, overlay))


def _tightened(rule: Rule) -> Rule:
    return replace(rule, decision=Decision.DENY) if rule.decision is Decision.CONFIRM else rule


def _reads(rule: Rule) -> bool:
    """Say whether an auto rule is about reading files and nothing else."""
    return rule.argv is None and tuple(access.value for access in rule.access) == ("read",)

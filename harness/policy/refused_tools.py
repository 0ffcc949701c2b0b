"""Tools that a policy refuses for all arguments: no model gets their descriptions."""

from __future__ import annotations

from harness.actions import Access, Command, Opaque, PathAccess
from harness.decisions import Decision
from harness.policy.policy import Policy
from harness.policy.rules import Rule
from harness.policy.tool_defaults import stated_defaults
from harness.tool_kinds import Does, is_named, tool_kind


def denies_altogether(policy: Policy, tool: str) -> bool:
    """Return whether no call of `tool` can run: its default refuses, and no rule or reader could lift that.

    It errs towards False: a tool that is on offer is still judged call by call.
    """
    stated = stated_defaults(policy.defaults, tool)
    does = tool_kind(tool).does
    if (
        does is Does.OTHER
    ):  # of tools that can do nothing but read, and of those that stay here, no other default speaks
        stated = [default for default in stated if default.tool != "default" and not default.spares_reading]
    if all(default.decision < Decision.DENY for default in stated):
        return False
    if does is Does.RUNS and any(readers.on for readers in policy.readers):
        return False
    return not any(_may_lift(rule, tool, does) for rule in policy.rules)


def _may_lift(rule: Rule, tool: str, does: Does) -> bool:
    """Return whether a rule might let a call of the tool run, or have it asked about."""
    if rule.decision > Decision.CONFIRM or (rule.tools and not is_named(tool, rule.tools)):
        return False
    match does:
        case Does.READS:
            return rule.argv is None and rule.files is not None and Access.READ in rule.files.access
        case Does.WRITES:
            return rule.argv is None and rule.files is not None and Access.WRITE in rule.files.access
        case Does.RUNS:
            may = rule.may_cover if rule.is_auto else rule.may_hit
            return may(Command) or may(Opaque) or may(PathAccess)
        case Does.OTHER:
            return bool(rule.tools) or not rule.has_parts

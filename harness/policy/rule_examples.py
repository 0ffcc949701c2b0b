"""Checks of one rule: whether it is valid, and whether it alone decides its examples in an empty workspace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.actions import Access, Act, Action, Command, Facet, JsonValue, ToolUse, describe_facet
from harness.messages import ToolCall
from harness.policy.hosts import USUAL_PORTS, canonical_host, split_port
from harness.policy.matcher import Examples, Problem
from harness.policy.matchers import MATCHERS
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.policy.rules import Layer, Rule
from harness.policy.walls_fit import unfit
from harness.policy.walls_here import Undo
from harness.tool_kinds import BASH, READ_FILE


def rule_problem(rule: Rule) -> Problem | None:
    """Return the reason why a rule is invalid: it can never match, or it is never safe as an auto rule."""
    if rule.any_words or (rule.layer is Layer.SESSION and rule.walled):  # the kernel confines any words of the program
        return None
    if not rule.matchers:
        *keys, last = (kind.keys[0] for kind in MATCHERS)
        return "", f"matches nothing: give {', '.join(keys)} or {last}"
    if problem := next(filter(None, (matcher.problem(rule) for matcher in rule.matchers)), None):
        return problem
    grants_to_commands = rule.is_auto and rule.argv is not None
    for key, opens in (("write", rule.opens.write), ("network", rule.opens.reaches)):
        if opens and not grants_to_commands:
            return key, "is what an auto rule grants to the commands of its argv"
    return None


def examples_of(rule: Rule) -> Examples:
    """Return the form of a rule's examples."""
    parts = [matcher for matcher in rule.matchers if matcher.of_parts]
    forms = (matcher.examples(auto=rule.is_auto) for matcher in parts or rule.matchers)
    return max(forms, key=[*Examples].index, default=Examples.COMMANDS)


def example_problem(rule: Rule, example: str | Mapping[str, object]) -> str | None:
    """Return the reason why the rule alone would not decide an example of the form `examples_of`. `None` if it would.

    Raises ValueError for an invalid host. A valid one is `example.org` or `example.org:8080`.
    """
    match examples_of(rule), example:
        case Examples.PATHS, str():
            access = rule.files.access if rule.files else (Access.READ, Access.WRITE)
            paths = [EXAMPLE_DISK.resolve(example, each) for each in access]
            tool = rule.tools[0] if rule.tools else READ_FILE.name
            problems = [_problem(rule, _action(tool, (path,), "")) for path in paths]
            return None if None in problems else problems[0]
        case Examples.HOSTS, str():
            use = _goes_to(rule, example)
            return _problem(rule, _action(use.tool, (use,), ""))
        case Examples.COMMANDS, str():
            from harness.shell.facets import read_commands

            return _problem(rule, _action(BASH.name, read_commands(example, EXAMPLE_DISK), example))
        case Examples.ARGUMENTS, Mapping():
            use = _called_with(rule, example)
            return _problem(rule, _action(use.tool, (use,), ""))
        case form, _:
            raise TypeError(f"examples of this rule are {form.value}")


def _called_with(rule: Rule, arguments: Mapping[str, object]) -> ToolUse:
    from harness.policy.tool_arguments import tool_arguments

    plain: dict[str, JsonValue] = json.loads(json.dumps(arguments, default=str))
    # With `read_only`, the examples count as calls of a tool that its server declares as read-only.
    return ToolUse(tool=_first_tool(rule), arguments=tool_arguments(plain, EXAMPLE_DISK), says_reads=rule.only_reads)


def _goes_to(rule: Rule, text: str) -> ToolUse:
    host, port = split_port(text)
    return ToolUse(tool=_first_tool(rule), host=canonical_host(host), port=port or USUAL_PORTS[-1])


def _first_tool(rule: Rule) -> str:
    return rule.tools[0].replace("*", "x") if rule.tools else "tool"


def _action(tool: str, facets: tuple[Facet, ...], text: str) -> Action:
    call = ToolCall(id="example", name=tool, arguments="{}")
    return Action(
        call=call, tool=tool, arguments={}, facets=facets, summary=text, preview=text, request=None, text=text
    )


def _problem(rule: Rule, action: Action) -> str | None:
    """Return the reason why the rule alone does not decide an action. `None` if it does.

    An auto rule decides an action if it covers every facet except wrappers, and at least one. A strict rule decides it
    if it hits one facet.
    """
    if not rule.is_auto:
        if any(rule.hits(action, facet) for facet in action.all_facets()):
            return None
        return _words(action, action.facets[0], rule.unhit_words) if action.facets else "it has no command"
    own_facets = [facet for facet in action.facets if not (isinstance(facet, Command) and facet.act is Act.WRAPS)]
    uncovered = [facet for facet in own_facets if not rule.covers(action, facet)]
    if own_facets and not uncovered:
        reasons = (_unfit(rule, action, facet) for facet in own_facets)
        return next(filter(None, reasons), None)
    if not own_facets:
        return "it only runs another command" if action.facets else "it has no command"
    return _words(action, uncovered[0], rule.uncovered_words)


def _unfit(rule: Rule, action: Action, facet: Facet) -> str:
    """Return the reason why a facet cannot run inside the walls of the rule. Empty for a rule without walls."""
    if not rule.walled:
        return ""
    reason = unfit(action, facet, Undo(), reaches=rule.opens.reaches, any_words=rule.any_words)
    return f"it leaves the walls: {reason}" if reason else ""


def _words(action: Action, facet: Facet, words: Callable[[Action, Facet], str]) -> str:
    """Return the result of `words` for a facet, with the facet's name if the action has several."""
    suffix = "" if len(action.facets) == 1 else f" (part {describe_facet(facet)!r})"
    return f"{words(action, facet)}{suffix}"

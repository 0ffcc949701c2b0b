"""Which rules would let one refused call run, word for word: for whoever writes the policy, and never applied; pure.

INVARIANT: rules are advised only where the policy, with them, lets exactly this call run; what a written rule, or what is
built in, refuses, no further rule lifts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from harness.actions import Act, Action, Command, Opaque, PathAccess, describe_facet
from harness.advice import Advice
from harness.errors import PolicyError
from harness.policy import FacetVerdict, Policy, Source, Verdict, evaluate
from harness.policy_file import parse_policy
from harness.record import replace
from harness.rules import Decision, Layer, Rule
from harness.suggestions.commands import command_problem, shown
from harness.suggestions.files import file_problem, is_plain
from harness.suggestions.rule_text import Value, is_text, rule_id, rule_text

MOST_RULES = 10
"""Of one call: who wants more of it wants another policy."""
_REASON = "An unattended run wanted it."
_Written: TypeAlias = "tuple[str, tuple[Rule, ...]]"


def advice_on(policy: Policy, action: Action, verdict: Verdict) -> Advice:
    """Return the rules with which `policy` would let the refused `action` run, or why there are none."""
    refused = [facet for facet in verdict.facets if facet.decision is not Decision.AUTO]
    fixed = next((facet for facet in refused if facet.source is not Source.DEFAULT), None)
    if fixed is not None and not isinstance(fixed.facet, Opaque):
        return Advice(why=_why_fixed(fixed))
    if any(isinstance(facet.facet, Opaque) for facet in refused):
        return Advice(
            why="it is not plainly understood, and no rule covers what is not: plainer commands can be allowed"
        )
    if len(refused) > MOST_RULES:
        return Advice(why=f"{len(refused)} parts of it have no rule")
    made = _rules_for(policy, action, refused)
    if isinstance(made, str):
        return Advice(why=made)
    toml, rules = made
    wider = replace(policy, rules=(*policy.rules, *rules))
    if evaluate(wider, action).decision is not Decision.AUTO:
        return Advice(why=f"{verdict.deciding.by} refuses it, and no further rule lifts that")
    return Advice(toml=toml)


def _why_fixed(facet: FacetVerdict) -> str:
    match facet.source:
        case Source.RULE:
            return (
                f"{facet.by} says {facet.decision.word}, and no further rule lifts that: change it, or add an `except`"
            )
        case Source.SUSPENDED:
            return f"{facet.by}: what it runs was changed, and somebody has to look at that first"
        case _:
            return f"{facet.by} stands above every rule"


def _rules_for(policy: Policy, action: Action, refused: Iterable[FacetVerdict]) -> _Written | str:
    """Return the text of one rule for each part, and the rules; or why one of them can have none."""
    taken = {rule.id for rule in policy.rules}
    texts: list[str] = []
    rules: list[Rule] = []
    for keys, words, caution in _parts(action, refused):
        if isinstance(keys, str):
            return keys
        name = rule_id(words, taken)
        taken.add(name)
        toml = rule_text({"id": name, "decision": "auto", **keys, "reason": _REASON})
        try:
            rules += parse_policy(b"version = 1\n" + toml.encode("ascii"), "advice", layer=Layer.FILE).rules
        except PolicyError as error:
            return f"the loader refuses such a rule: {error}"
        texts.append(f"# Think first: {caution}.\n{toml}" if caution else toml)
    return "\n".join(texts), tuple(rules)


def _parts(action: Action, refused: Iterable[FacetVerdict]) -> Iterator[tuple[dict[str, Value] | str, str, str]]:
    """Yield the keys of a rule for each part (or why there is none), the words for its name, and what speaks against it."""
    seen: set[object] = set()
    for verdict in refused:
        match verdict.facet:
            case Command() as command:
                if command.argv not in seen:
                    seen.add(command.argv)
                    yield _about_command(command), " ".join(command.argv), _caution(command)
            case PathAccess() as path:
                if (path.names, path.access) not in seen:
                    seen.add((path.names, path.access))
                    yield _about_file(action, path), path.names[0], file_problem(path)
            case other:
                yield f"no rule can be about {describe_facet(other) or 'this'}", "", ""


def _about_command(command: Command) -> dict[str, Value] | str:
    if "..." in command.argv or not all(map(_can_be_said, command.argv)):
        return "its words are not all known, or no rule can say them"
    writes = command.act not in (Act.LOOKS, Act.WRAPS)
    return {
        "argv": command.argv,
        "env": command.variables,
        "write": (".",) if writes else (),
        "network": command.network and not _runs_code(command),
        "match": (shown(command),) if not command.variables else (),
    }


def _caution(command: Command) -> str:
    problem = command_problem([command])
    if not (_runs_code(command) and command.network):
        return problem
    return f"{problem or 'it runs code'}; without `network = true` it has no network"


def _runs_code(command: Command) -> bool:
    return command.act in (Act.RUNS, Act.UNKNOWN)


def _can_be_said(word: str) -> bool:
    return is_text(word) and "\0" not in word


def _about_file(action: Action, path: PathAccess) -> dict[str, Value] | str:
    inside = [name for name in path.names if not name.startswith("/")]
    if not inside or not all(map(is_plain, inside)) or path.tree:
        return f"no rule can be about {path.written} alone"
    return {
        "tool": (action.tool,),
        "access": (path.access.value,),
        "path": tuple(f"/{name}" for name in inside),
    }

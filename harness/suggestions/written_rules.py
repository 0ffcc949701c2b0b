"""A candidate written as a rule: what it covers and grants, and examples out of the log; pure, the loader has the last word."""

from __future__ import annotations

from collections.abc import Iterable

from harness.actions import Act, Command
from harness.errors import PolicyError
from harness.lint import warnings
from harness.matchers import ArgvPattern
from harness.policy_file import parse_policy
from harness.record import Record
from harness.rules import Rule
from harness.suggestions.candidates import Candidate
from harness.suggestions.commands import shown
from harness.suggestions.files import is_plain
from harness.suggestions.rule_text import Value, is_text, rule_id, rule_text
from harness.suggestions.seen import Seen, touched_files

MOST_EXAMPLES = 4
_MAY_FAIL = ('say what, as in write = ["."]', "say network = true if it should")
"""How the warnings end that tell of a rule that grants less than its commands may want: here, that is what is wanted."""


class WrittenRule(Record):
    """A rule in both forms."""

    id: str
    toml: str
    rule: Rule


def written_rule(candidate: Candidate, seen: Iterable[Seen], taken: Iterable[str]) -> WrittenRule | str:
    """Return the rule, loaded and its examples run; or why there can be none. `taken` are the ids of other rules."""
    keys = _about_commands(candidate, seen) if candidate.commands else _about_file(candidate, seen)
    words = "-".join(word for word, *others in candidate.tokens if not others)
    name = rule_id(words or candidate.what, taken)
    reason = f"Approved {len(candidate.evidence)} times, and never refused."
    match, not_match = keys.pop("match"), keys.pop("not_match")
    toml = rule_text({"id": name, "decision": "auto", **keys, "reason": reason, "match": match, "not_match": not_match})
    try:
        policy = parse_policy(b"version = 1\n" + toml.encode("ascii"), "suggestion")
    except PolicyError as error:
        return f"the loader refuses such a rule: {error}"
    problems = [found.problem for found in warnings(policy) if not found.problem.endswith(_MAY_FAIL)]
    return problems[0] if problems else WrittenRule(id=name, toml=toml, rule=policy.rules[0])


def _about_commands(candidate: Candidate, seen: Iterable[Seen]) -> dict[str, Value]:
    runs = any(command.act is Act.RUNS for command in candidate.commands)
    lines = [shown(command) for command in candidate.commands]
    first = lines[0]
    tried = [
        f"{first} --another-option",
        f"{first} another-operand",
        f"{first}; touch another-file",
        f"{first} > another-file",
        f"PATH=/tmp {first}",
    ]
    return {
        "argv": [word if not others else (word, *others) for word, *others in candidate.tokens],
        # What it was granted every time when it ran; what only looks, or writes what it names, is granted nothing.
        "write": (".",) if runs and all("." in one.granted for one in candidate.evidence) else (),
        "match": lines[:MOST_EXAMPLES],
        "not_match": (*tried, *_others(candidate, seen)),
    }


def _others(candidate: Candidate, seen: Iterable[Seen]) -> list[str]:
    """Return other commands of the same program in the logs, which the rule must not be about."""
    pattern = ArgvPattern(tokens=candidate.tokens, rest=False)
    facets = (facet for one in seen if one.action is not None for facet in one.action.facets)
    commands = (f for f in facets if isinstance(f, Command) and f.argv[:1] == candidate.tokens[0])
    lines = (shown(command) for command in commands if not pattern.covers(command.argv))
    return list(dict.fromkeys(line for line in lines if is_text(line)))[:MOST_EXAMPLES]


def _about_file(candidate: Candidate, seen: Iterable[Seen]) -> dict[str, Value]:
    (name,) = candidate.files
    calls = (one for one in seen if one.tool in ("write_file", "edit_file"))
    names = (other for one in calls for path in touched_files(one) for other in path.names)
    others = (other for other in names if is_plain(other) and other[:1] != "/" and other != name)
    return {
        "tool": sorted({one.tool for one in candidate.evidence}),
        "access": [access.value for access in candidate.access],
        "path": (f"/{name}",),
        "except": (f"/{name}/*",),  # should a folder of that name take its place
        "match": (name,),
        "not_match": [f"another/{name}", f"{name}/another", *list(dict.fromkeys(others))[:MOST_EXAMPLES]],
    }

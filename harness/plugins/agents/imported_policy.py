"""A policy with the permissions of another agent. It is never looser than they are.

`claude_permissions` and `codex_rules` read the permissions. This module writes the rules that a policy can have, and lists
the other permissions with reasons. A rule that allows commands gets walls. If no rule can have a stricter permission, no
rule of its kind allows anything, and the default has its decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from harness.actions import Decision
from harness.errors import PolicyError
from harness.policy.loader import parse_policy
from harness.record import Record
from harness.session.rule_subjects import Value, is_text, rule_text
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE

_MOST_ID = 50


ASKED = dict.fromkeys((WRITE_FILE.name, EDIT_FILE.name, BASH.name, "web_fetch", "default"), Decision.CONFIRM)
DEFAULTS = {READ_FILE.name: Decision.AUTO, **ASKED}
"""Decisions on tools without a permission: the other agents read files unasked, and ask about the rest."""


class Kind(Enum):
    """The tools that a permission is about, by the names of their defaults."""

    COMMANDS = (BASH.name,)
    READS = (READ_FILE.name,)
    WRITES = (WRITE_FILE.name, EDIT_FILE.name)
    WEB = ("web_fetch",)
    OTHERS = ()


class Permission(Record):
    """One permission of another agent."""

    source: str
    """The permission as written there. Untrusted text."""
    decision: Decision
    kind: Kind = Kind.OTHERS
    keys: Mapping[str, Value] = {}
    """The keys of its rule. Empty for a whole tool, or if `problem` is set."""
    problem: str = ""
    """The reason why no rule can say it. Empty if one can."""
    is_harmless: bool = False
    """Whether the policy is not looser without it, since harness has no such tool."""


class ImportedPolicy(Record):
    """The text of a policy, and the permissions that are not in it, each with the reason."""

    text: str
    left_out: tuple[tuple[str, str], ...]


def imported_policy(name: str, permissions: Sequence[Permission], defaults: Mapping[str, Decision]) -> ImportedPolicy:
    """Return the policy that says these permissions. `defaults` are the decisions on tools without a permission."""
    tools = {**defaults}
    left_out: list[tuple[str, str]] = []
    rules: dict[str, tuple[Permission, str]] = {}
    for permission in permissions:
        rule_id = _rule_id(permission, rules)
        text = _rule(permission, rule_id)
        problem = permission.problem or (_problem(text) if permission.keys else "")
        if problem:
            left_out.append((permission.source, problem))
            _tighten(tools, permission)
        elif permission.keys:
            rules[rule_id] = permission, text
        else:
            tools |= {tool: _tool_decision(tools, tool, permission) for tool in permission.kind.value}
    unsaid = {each.kind for each in permissions if not each.is_harmless and _is_lost(each, left_out)}
    for rule_id, (permission, _) in [*rules.items()]:
        if permission.decision is Decision.AUTO and permission.kind in unsaid:
            del rules[rule_id]
            left_out.append((permission.source, "a stricter permission, which no rule can say, may be about it"))
    return ImportedPolicy(text="\n".join(_lines(name, tools, rules, left_out)), left_out=tuple(left_out))


def _is_lost(permission: Permission, left_out: Iterable[tuple[str, str]]) -> bool:
    """Return whether a stricter permission is not in the policy."""
    return permission.decision is not Decision.AUTO and any(source == permission.source for source, _ in left_out)


def _tighten(tools: dict[str, Decision], permission: Permission) -> None:
    """Give the tools of a stricter permission without a rule its decision."""
    if permission.decision is not Decision.AUTO and not permission.is_harmless:
        tools |= {tool: max(tools[tool], permission.decision) for tool in permission.kind.value}


def _tool_decision(tools: Mapping[str, Decision], tool: str, permission: Permission) -> Decision:
    """Return the default of a tool that a permission names as a whole. The strictest of several holds."""
    if permission.decision is Decision.AUTO:
        return tools[tool] if tools[tool] > Decision.CONFIRM else Decision.AUTO
    return max(tools[tool], permission.decision)


def _rule(permission: Permission, rule_id: str) -> str:
    reason = f"From the permission {permission.source}" if is_text(permission.source) else "Imported."
    keys: dict[str, Value] = {"id": rule_id, "decision": permission.decision.word, **permission.keys}
    return rule_text({**keys, "reason": keys.get("reason") or reason})


def _problem(rule: str) -> str:
    """Return the reason why the loader refuses a rule. Empty if it takes it."""
    try:
        parse_policy(f"version = 1\n{rule}".encode(), "import")
    except PolicyError as error:
        return str(error).partition(": ")[2]
    except UnicodeEncodeError:
        return "it is not Unicode"
    return ""


def _rule_id(permission: Permission, used_ids: Iterable[str]) -> str:
    slug = "".join(char if char.isascii() and char.isalnum() else " " for char in permission.source.lower()).split()
    name = "-".join([permission.decision.word, *slug])[:_MOST_ID].rstrip("-")
    used, number, candidate = set(used_ids), 1, name
    while candidate in used:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def _lines(
    name: str,
    tools: Mapping[str, Decision],
    rules: Mapping[str, tuple[Permission, str]],
    left_out: Iterable[tuple[str, str]],
) -> Iterator[str]:
    yield "# Made by `harness policy import`. Commands that it allows run inside the workspace walls: they write the"
    yield "# workspace and have no network, unless a rule gets `network`. Read each rule before you use the file."
    yield "version = 1"
    yield f'name = "{name}"'
    yield ""
    yield "[tools]"
    for tool, decision in tools.items():
        yield f'{tool} = "{"walls" if tool == BASH.name and decision is Decision.AUTO else decision.word}"'
    for _, text in rules.values():
        yield ""
        yield text.rstrip("\n")
    if left_out:
        yield ""
        yield "# Left out:"
    for source, reason in left_out:
        yield f"#   {_comment(source)}: {_comment(reason)}"
    yield ""


def _comment(text: str) -> str:
    return ascii(text)[1:-1]

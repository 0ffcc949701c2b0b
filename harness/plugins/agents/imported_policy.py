"""A policy with the permissions of another agent. It is not looser than they are, but for what walls hold.

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
_NO_OTHER_WORDS = {"env": "env       = []\n", "options": "options   = []\n"}
"""Keys of a rule in walls whose commands have no variables in front, and no options before the subcommand."""


ASKED = dict.fromkeys((WRITE_FILE.name, EDIT_FILE.name, BASH.name, "web_fetch", "default"), Decision.CONFIRM)
DEFAULTS = {READ_FILE.name: Decision.AUTO, **ASKED}
"""Decisions on tools without a permission: the other agents read files unasked, and ask about the rest."""


class Kind(Enum):
    """The tools that a permission is about, by the names of their defaults."""

    COMMANDS = (BASH.name,)
    READS = (READ_FILE.name,)
    WRITES = (WRITE_FILE.name, EDIT_FILE.name)
    WEB = ("web_fetch",)
    OTHERS = ("default",)
    ANY = tuple(DEFAULTS)


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
    is_wider: bool = False
    """Whether its rule is stricter than it."""
    is_harmless: bool = False
    """Whether the policy is not looser without it, since harness has no such tool."""


class ImportedPolicy(Record):
    """The text of a policy."""

    text: str
    left_out: tuple[tuple[str, str], ...]
    """The permissions that are not in it, each with the reason."""
    wider: tuple[str, ...]
    """The permissions whose rules are stricter than they are."""


def imported_policy(name: str, permissions: Sequence[Permission], defaults: Mapping[str, Decision]) -> ImportedPolicy:
    """Return the policy that says these permissions. `defaults` are the decisions on tools without a permission."""
    tools = {**defaults}
    floors = dict.fromkeys(Kind, Decision.AUTO)
    left_out: list[tuple[str, str]] = []
    rules: dict[str, tuple[Permission, str]] = {}
    for permission in permissions:
        rule_id = _rule_id(permission, rules)
        text = _rule(permission, rule_id)
        problem = permission.problem or (_problem(text) if permission.keys else "")
        if problem:
            left_out.append((permission.source, problem))
            kinds = () if permission.is_harmless else _kinds_of_unsaid(permission.kind)
            floors |= {kind: max(floors[kind], permission.decision) for kind in kinds}
        elif permission.keys:
            if not any(_is_same(permission, each) for each, _ in rules.values()):
                rules[rule_id] = permission, text
        elif permission.decision is Decision.AUTO:
            tools |= dict.fromkeys(permission.kind.value, Decision.AUTO)
        else:
            floors[permission.kind] = max(floors[permission.kind], permission.decision)
    for kind, floor in floors.items():
        tools |= {tool: max(tools[tool], floor) for tool in kind.value}
    for rule_id, (permission, _) in [*rules.items()]:
        if permission.decision < floors[permission.kind]:
            del rules[rule_id]
            left_out.append((permission.source, "a stricter permission is about all such calls, or may be"))
    wider = tuple(permission.source for permission, _ in rules.values() if permission.is_wider)
    wider += tuple(each.source for each in permissions if each.is_wider and not each.keys)
    lines = _lines(name, tools, [text for _, text in rules.values()], left_out, wider)
    return ImportedPolicy(text="\n".join(lines), left_out=tuple(left_out), wider=wider)


def _is_same(permission: Permission, other: Permission) -> bool:
    return (permission.decision, permission.kind, permission.keys) == (other.decision, other.kind, other.keys)


def _kinds_of_unsaid(kind: Kind) -> Sequence[Kind]:
    """Return the kinds of calls that a permission without a rule may be about: commands use files, too."""
    match kind:
        case Kind.ANY:
            return tuple(Kind)
        case Kind.READS | Kind.WRITES:
            return kind, Kind.COMMANDS
        case _:
            return (kind,)


def _rule(permission: Permission, rule_id: str) -> str:
    reason = f"From the permission {permission.source}" if is_text(permission.source) else "Imported."
    keys: dict[str, Value] = {"id": rule_id, "decision": permission.decision.word, **permission.keys}
    text = rule_text({**keys, "reason": keys.get("reason") or reason})
    lines = (line for key, line in _NO_OTHER_WORDS.items() if not keys.get(key))
    return text + "".join(lines) if "walls" in keys else text


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
    rules: Iterable[str],
    left_out: Iterable[tuple[str, str]],
    wider: Iterable[str],
) -> Iterator[str]:
    yield "# Made by `harness policy import`. Commands that it allows run inside the workspace walls: they write the"
    yield "# workspace, by `>` too, and have no network, unless a rule gets `network`. Read each rule before you use the file."
    yield "version = 1"
    yield f'name = "{name}"'
    yield ""
    yield "[tools]"
    for tool, decision in tools.items():
        yield f'{tool} = "{"walls" if tool == BASH.name and decision is Decision.AUTO else decision.word}"'
    for text in rules:
        yield ""
        yield text.rstrip("\n")
    stricter = [f"#   {_comment(source)}" for source in wider]
    missing = [f"#   {_comment(source)}: {_comment(reason)}" for source, reason in left_out]
    for heading, lines in (("# Stricter here:", stricter), ("# Left out:", missing)):
        if lines:
            yield from ("", heading, *lines)
    yield ""


def _comment(text: str) -> str:
    return ascii(text)[1:-1]

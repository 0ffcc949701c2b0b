"""Rules that would allow one refused call, exactly as it was. They are shown to the policy's author, never applied.

INVARIANT: the loader accepts the text, and the policy with these rules added lets the call run. An added rule cannot
lift a refusal by a written or built-in rule. Each rule matches the exact words or the file of the call. A rule cannot
cover a command's other input (stdin), so none is advised for a command that gets some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename
from typing import TypeAlias

from harness.actions import (
    Act,
    Action,
    Command,
    Decision,
    Facet,
    Opaque,
    PathAccess,
    Place,
    ToolArgument,
    ToolUse,
    describe_facet,
)
from harness.errors import PolicyError
from harness.gate.records import Advice
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.command_matchers import WORKSPACE
from harness.policy.loader import parse_policy
from harness.policy.loose_commands import programs_in
from harness.policy.plain_commands import auto_argv_problem
from harness.policy.policy import Policy
from harness.policy.rules import Layer, Rule
from harness.policy.verdict import FacetVerdict, Source, Verdict, evaluate
from harness.programs.runners import RUNNING_WORDS
from harness.record import replace
from harness.session.rule_subjects import (
    Value,
    command_problem,
    file_problem,
    is_plain,
    is_text,
    quoted_command,
    rule_id,
    rule_text,
)
from harness.text.visible import visible_line

MOST_RULES = 10
"""Maximum number of rules for one call. A call that needs more needs another policy."""
MOST_SAID = 300
"""Maximum characters of a text argument (of a tool from outside) that a rule quotes."""
_OF_TOOL = "the rule says nothing of further arguments"
_REASON = "A call that needed it was refused."
_Written: TypeAlias = "tuple[str, tuple[Rule, ...]]"


def advice_on(policy: Policy, action: Action, verdict: Verdict, *, reason: str = _REASON) -> Advice:
    """Return the rules with which `policy` would let the refused `action` run, or the reason why there are none.

    `reason` is the `reason` key of the rules.
    """
    refused = [facet for facet in verdict.facets if facet.decision is not Decision.AUTO]
    fixed = next((facet for facet in refused if facet.source is not Source.DEFAULT), None)
    if fixed is not None and not isinstance(fixed.facet, Opaque):
        return Advice(reason=_why_fixed(fixed))
    if any(_needs_walls(facet.facet) for facet in refused):
        return _in_walls(policy, action, refused, reason)
    if len(refused) > MOST_RULES:
        return Advice(reason=f"{len(refused)} parts of it have no rule")
    advised = _rules_for(policy, action, refused, reason)
    if isinstance(advised, str):
        return Advice(reason=advised)
    toml, rules = advised
    wider = replace(policy, rules=(*policy.rules, *rules))
    if evaluate(wider, action).decision is not Decision.AUTO:
        return Advice(reason=f"{verdict.deciding.by} refuses it, and no further rule lifts that")
    return Advice(toml=toml)


def _needs_walls(facet: Facet) -> bool:
    """Return whether only a rule with walls can cover a part: opaque text, code in words, or input to a program."""
    return isinstance(facet, Opaque) or (isinstance(facet, Command) and _has_no_plain_rule(facet))


def _has_no_plain_rule(command: Command) -> bool:
    if command.act in (Act.LOOKS, Act.WRAPS):
        return False
    return isinstance(_about_command(command), str) or auto_argv_problem(_exactly(command)) is not None


def _exactly(command: Command) -> ArgvPattern:
    return ArgvPattern(tokens=tuple((word,) for word in command.argv), rest=False)


def _in_walls(policy: Policy, action: Action, refused: Iterable[FacetVerdict], reason: str) -> Advice:
    """Return rules that allow the programs of a call inside the workspace walls, or the reason why there are none."""
    parts = [verdict.facet for verdict in refused]
    commands = {part.argv for part in parts if isinstance(part, Command)}
    parts = [part for part in parts if not isinstance(part, Command) or commands.isdisjoint(part.run_by)]
    begins = dict.fromkeys(words for part in parts for words in _beginnings(part))
    rule_ids = {rule.id for rule in policy.rules}
    texts = []
    for words in begins:
        name = rule_id(_name(words), rule_ids)
        rule_ids.add(name)
        keys: dict[str, Value] = {"id": name, "decision": "auto", "argv": (*words, "..."), "walls": WORKSPACE}
        texts.append(rule_text({**keys, "reason": reason}))
    joined_texts = "\n".join(texts)
    try:
        rules = parse_policy(b"version = 1\n" + joined_texts.encode("utf-8"), "advice", layer=Layer.FILE).rules
    except (PolicyError, UnicodeEncodeError):
        rules = ()
    wider = replace(policy, rules=(*policy.rules, *rules))
    if not rules or len(rules) > MOST_RULES or evaluate(wider, action).decision is not Decision.AUTO:
        return Advice(reason="it is not plainly understood, or leaves the workspace walls: no rule covers that")
    return Advice(toml=joined_texts)


def _beginnings(facet: Facet) -> Iterator[tuple[str, ...]]:
    """Yield the first words of the programs in a part: with its subcommand or script, if these say what it runs."""
    match facet:
        case Opaque(given_to=None):
            lines = [words for words in programs_in(facet) if not _expands(facet.text, words[0])]
        case Opaque(given_to=Command() as command) | (Command() as command):
            lines = [command.argv]
        case _:
            return
    for words in lines:
        count = 3 if words[:2] in RUNNING_WORDS else 2
        options = (place for place, word in enumerate(words[:count]) if word.startswith("-"))
        if end := next(options, count):  # 0: no rule can begin with an option
            yield words[:end]


def _expands(text: str, word: str) -> bool:
    """Return whether a loosely split word is the name of a variable in the text."""
    return f"${word}" in text or f"${{{word}" in text


def _why_fixed(facet: FacetVerdict) -> str:
    match facet.source:
        case Source.RULE:
            has_paths = any(rule.files is not None for rule in facet.rules)
            ways = "change it, or add an `except`" if has_paths else "change it"
            return f"{facet.by} says {facet.decision.word}, and no further rule lifts that: {ways}"
        case Source.SUSPENDED:
            return f"{facet.by}: what it runs was changed, and somebody has to look at that first"
        case _:
            return f"{facet.by} stands above every rule"


def _rules_for(policy: Policy, action: Action, refused: Iterable[FacetVerdict], reason: str) -> _Written | str:
    """Return one rule for each refused part, as text and parsed, or the reason why a part can have no rule."""
    rule_ids = {rule.id for rule in policy.rules}
    texts: list[str] = []
    names: list[str] = []
    for keys, words, caution in _parts(action, refused):
        if isinstance(keys, str):
            return keys
        name = rule_id(words, rule_ids)
        rule_ids.add(name)
        toml = rule_text({"id": name, "decision": "auto", **keys, "reason": reason})
        # The caution quotes the call: keep it on one line, so that it stays a comment.
        texts.append(f"# Think first: {visible_line(caution, 300)}.\n{toml}" if caution else toml)
        names.append(name)
    joined_texts = "\n".join(texts)
    try:
        rules = parse_policy(b"version = 1\n" + joined_texts.encode("utf-8"), "advice", layer=Layer.FILE).rules
    except PolicyError as error:
        return f"the loader refuses such a rule: {error}"
    if [rule.id for rule in rules] != names:
        return "no rule can say it safely"
    return joined_texts, rules


def _parts(action: Action, refused: Iterable[FacetVerdict]) -> Iterator[tuple[dict[str, Value] | str, str, str]]:
    """Yield for each part the keys of its rule (or the reason why it has none), its name, and a caution."""
    parts_so_far: set[object] = set()
    refused = list(refused)
    if uses := [verdict for verdict in refused if isinstance(verdict.facet, ToolUse)]:
        refused = uses  # the rule for the tool covers the call's reads and writes in the workspace too
    for verdict in refused:
        match verdict.facet:
            case ToolUse() as use:
                yield _about_use(use), _name((use.tool, *(argument.text for argument in use.arguments))), _OF_TOOL
            case Command() as command:
                if command.argv not in parts_so_far:
                    parts_so_far.add(command.argv)
                    yield _about_command(command), _name(command.argv), _caution(command)
            case PathAccess() as path:
                if (path.names, path.access) not in parts_so_far:
                    parts_so_far.add((path.names, path.access))
                    yield _about_file(action, path), _name(path.names), file_problem(path)
            case other:
                yield f"no rule can be about {describe_facet(other) or 'this'}", "", ""


def _about_command(command: Command) -> dict[str, Value] | str:
    if "..." in command.argv or not all(map(_can_be_said, command.argv)):
        return "its words are not all known, or no rule can say them"
    if command.fed:
        return f"{basename(command.argv[0])} is fed by a pipe or a redirection, and no rule can say with what"
    writes = command.act not in (Act.LOOKS, Act.WRAPS)
    return {
        "argv": command.argv,
        "env": command.variables,
        "write": (".",) if writes else (),
        "network": command.network and not _runs_code(command),
        "match": (quoted_command(command),) if not command.variables else (),
    }


def _name(words: Sequence[str]) -> str:
    """Return a name for a rule: the program or file, and a digest of all words, since these may be secret."""
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{basename(words[0])[:20]}-{digest}"


def _caution(command: Command) -> str:
    cautions = [command_problem([command])]
    if command.variables:
        cautions = ["a rule cannot say to what the variables in front of it are set"]
    if _runs_code(command):
        cautions.append("the rule holds in every folder")
    if command.act in (Act.UNKNOWN, Act.CHANGES):
        cautions.append("the rule holds where it is fed (`< FILE`), too")
    if _runs_code(command) and command.network:
        cautions.append("without `network = true` it has no network")
    return "; ".join(caution for caution in cautions if caution)


def _runs_code(command: Command) -> bool:
    return command.act in (Act.RUNS, Act.UNKNOWN)


def _about_use(use: ToolUse) -> dict[str, Value] | str:
    conditions: dict[str, list[str]] = {}
    for argument in use.arguments:
        texts = _form_of(argument)
        if not argument.name or not texts or not all(map(_can_be_said, texts)):
            return f"no rule can say what {use.tool} is called with"
        conditions.setdefault(argument.name, []).extend(texts)
    if not conditions:
        return f"a rule for {use.tool} alone would cover every call of it"
    return {"tool": (use.tool,), "where": {name: tuple(dict.fromkeys(texts)) for name, texts in conditions.items()}}


def _form_of(argument: ToolArgument) -> Sequence[str]:
    """Return the values that match the argument in a rule's `where` table.

    Empty if no value can match it, if the argument could be an option, or if its path has `..`.
    """
    if argument.text.startswith("-") or ".." in argument.text.split("/"):
        return []
    match argument.name.rpartition(".")[2]:
        case "path":
            is_sure = argument.place is Place.INSIDE and all(map(is_plain, argument.names))
            return [f"/{name}" for name in argument.names] if is_sure else []
        case "host":
            return [argument.host] if argument.host else []
        case _:
            return [argument.text] if argument.text.strip() and len(argument.text) <= MOST_SAID else []


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
        "except": tuple(f"/{name}/*" for name in inside),  # in case a folder of that name replaces the file
    }

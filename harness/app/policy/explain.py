"""Description of a decision and of the run's effects, facet by facet, for `policy explain` and questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.actions import (
    REACHES_NETWORK,
    Act,
    Action,
    Command,
    Decision,
    JsonValue,
    Opaque,
    PathAccess,
    ToolUse,
    Unconfined,
    describe_facet,
)
from harness.log.vocabulary import CheckEvent
from harness.policy.destruction import destroys
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.session.policies import without_shipped_folder
from harness.terminal.effects_lines import effects_lines
from harness.terminal.styles import Line, Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.checks.hook_declaration import HookDeclaration

EXIT_CODES = {Decision.AUTO: 0, Decision.CONFIRM: 10, Decision.DENY: 20, Decision.BLOCK: 30}
"""Exit codes of `harness policy explain`. As everywhere, 2 is a usage error."""

_COLUMNS = (
    Column(name="part", folds=True),
    Column(name="verdict", toned=True),
    Column(name="decided by", folds=True),
    Column(name="at", folds=True, leaves=True),
    Column(name="why", folds=True),
)
BY_WORD = "a yes is a typed word each time: no key gives it, and no grant covers it"
TONES = {"auto": Tone.GOOD, "confirm": Tone.WARNING, "deny": Tone.BAD, "block": Tone.BAD}
"""Tones of decisions, by decision word."""
_DOES = {Act.WRITES: "it writes files", Act.CHANGES: "it changes more than it names", Act.RUNS: "it runs code"}


def hooks_about(hooks: Iterable[HookDeclaration], action: Action, verdict: Verdict) -> tuple[HookDeclaration, ...]:
    """Return the `hooks` that check this call before it runs. Empty for a refused call."""
    if verdict.decision not in (Decision.AUTO, Decision.CONFIRM):
        return ()
    return tuple(hook for hook in hooks if hook.event is CheckEvent.BEFORE_CALL and hook.is_about(action))


def explanation(
    tool: str, text: str, action: Action, verdict: Verdict, hooks: Sequence[HookDeclaration] = ()
) -> Iterator[Line]:
    """Yield the lines that explain a verdict.

    They have the decision, the deciding rule and its reason, the data that the call destroys, the permitted effects,
    and the `hooks` that check the call too.
    """
    deciding, destroyed = verdict.deciding, destroys(action)
    yield Line(tone=Tone.PLAIN, text=f"{tool}: {visible_line(text)}")
    yield Line(tone=TONES[verdict.decision.word], text=f"decision: {verdict.decision.word}")
    for name, words in (("decided by", deciding.by), ("reason", deciding.reason), ("hint", deciding.hint)):
        if words:
            yield Line(tone=Tone.PLAIN, text=f"{name}: {without_shipped_folder(visible_line(words, 1000))}")
    for reason in destroyed:
        yield Line(tone=Tone.BAD, text=f"destroys: {visible_line(reason, 1000)}")
    if destroyed and verdict.decision is Decision.CONFIRM:
        yield Line(tone=Tone.BAD, text=BY_WORD)
    for words in effects_lines(verdict):
        yield Line(tone=Tone.PLAIN, text=words)
    if hooks:
        hook_names = ", ".join(f"{hook.id} ({hook.origin})" for hook in hooks)
        yield Line(tone=Tone.WARNING, text=f"hooks asked as well: {visible_line(hook_names, 1000)}")


def parts_table(action: Action, verdict: Verdict, policy: Policy) -> Table:
    """Return a table of the facets, each with its decision and the deciding rule with file and line."""
    rows = (TableRow(cells=_row(action, facet, policy), tone=TONES[facet.decision.word]) for facet in verdict.shown)
    return Table(columns=_COLUMNS, rows=tuple(rows))


def _place(facet: FacetVerdict, policy: Policy) -> Origin | None:
    """Return the place of the deciding rule or default. `None` if neither decided."""
    if facet.rules:
        return facet.rules[0].origin
    if facet.source not in (Source.DEFAULT, Source.READER):
        return None
    stated = (*(default.origin for default in policy.defaults), *(readers.origin for readers in policy.readers))
    return next((origin for origin in stated if facet.by.endswith(f" ({origin})")), None)


def _decided_by(facet: FacetVerdict, policy: Policy) -> str:
    """Return the name of what decided, without its place: `rule look`, `default for bash`, `built-in outside`."""
    place = _place(facet, policy)
    return facet.by if place is None else facet.by.replace(f" ({place})", "", 1)


def _row(action: Action, facet: FacetVerdict, policy: Policy) -> tuple[str, ...]:
    reason = facet.reason
    if isinstance(facet.facet, Command) and facet.source is Source.DEFAULT and (more := _no_reader(facet.facet)):
        reason = more  # the column "decided by" already shows that no rule matches
    if nearest := nearest_rule(action, facet, policy):
        reason = f"{reason}; nearest is {nearest}" if reason else f"nearest is {nearest}"
    place = _place(facet, policy)
    return (
        visible_line(describe_facet(facet.facet), 300),
        facet.decision.word,
        visible_line(_decided_by(facet, policy), 300),
        "" if place is None else without_shipped_folder(str(place)),
        without_shipped_folder(visible_line(reason, 500)),
    )


def nearest_rule(action: Action, verdict: FacetVerdict, policy: Policy) -> str:
    """Return the auto rule that comes nearest to covering a facet, and the words that it does not cover.

    Empty if no rule comes near, or if the facet was not decided by a default.
    """
    if verdict.source is not Source.DEFAULT:
        return ""
    rules = [rule for rule in policy.rules if rule.decision is Decision.AUTO]
    rule = max(rules, key=lambda each: each.nearness(verdict.facet), default=None)
    if rule is None or not rule.nearness(verdict.facet):
        return ""
    words = rule.uncovered_words(action, verdict.facet)
    return f"rule {rule.label}: {words}" if words else ""


def _no_reader(command: Command) -> str:
    """Return the reason why a command does more than read, in a few words. Empty if it only reads."""
    if command.gap:
        return command.gap
    if command.needs:
        return f"it needs {command.needs}"
    does = _DOES.get(command.act, "")
    if not command.network:
        return does
    return f"{does}, over the network" if does else REACHES_NETWORK


def as_json(
    tool: str, text: str, action: Action, verdict: Verdict, policy: Policy, hooks: Sequence[HookDeclaration] = ()
) -> str:
    """Return the explanation, with every operand, as one line of ASCII JSON."""
    deciding = verdict.deciding
    return json.dumps(
        {
            "tool": tool,
            "text": text,
            "decision": verdict.decision.word,
            "by": deciding.by,
            "reason": deciding.reason,
            "hint": deciding.hint,
            "facets": [_facet_json(action, facet, policy) for facet in verdict.facets],
            "effects": _effects_json(verdict),
            "hooks": [f"{hook.id} ({hook.origin})" for hook in hooks],
        }
    )


def _effects_json(verdict: Verdict) -> dict[str, JsonValue]:
    effects = verdict.effects
    return {
        "read": None if effects.read is None else list(effects.read),
        "write": None if effects.write is None else list(effects.write),
        "named": list(effects.named_paths),
        "granted": list(effects.granted),
        "network": effects.network,
        "hosts": list(effects.hosts),
        "sockets": effects.sockets,
        "walls": effects.level.value,
        "opened": list(effects.opened),
        "hide": list(effects.hide),
        "left_out": list(effects.left_out),
        "enforcement": effects.enforcement.value,
        "unasked": effects.unasked,
    }


def _facet_json(action: Action, verdict: FacetVerdict, policy: Policy) -> dict[str, JsonValue]:
    facet, place = verdict.facet, _place(verdict, policy)
    fields: dict[str, JsonValue] = {
        "facet": describe_facet(facet),
        "kind": type(facet).__name__,
        "decision": verdict.decision.word,
        "source": verdict.source.value,
        "by": verdict.by,
        "rule": verdict.rules[0].id if verdict.rules else None,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "reason": verdict.reason,
        "hint": verdict.hint,
        "nearest": nearest_rule(action, verdict, policy) or None,
        **dict.fromkeys(("argv", "act", "network", "model", "gap", "access", "place", "column")),
    }
    match facet:
        case Command():
            fields |= {"argv": list(facet.argv), "act": facet.act.value, "network": facet.network}
            fields |= {"model": facet.model, "gap": facet.gap}
        case PathAccess():
            fields |= {"access": facet.access.value, "place": facet.place.value}
        case Opaque():
            fields |= {"gap": facet.reason, "column": facet.column}
        case Unconfined() | ToolUse():
            pass
    return fields

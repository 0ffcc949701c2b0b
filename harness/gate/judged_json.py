"""A judged call as JSON, for external programs that check or approve calls. Uses the words of the record `decision`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.actions import Action, Effects, Facet, JsonValue, ToolUse, describe_facet
from harness.log.vocabulary import MAX_LOGGED_PATHS, MOST_FACETS
from harness.redaction.marks import masked_value

if TYPE_CHECKING:
    from harness.policy.verdict import Verdict

SAYS_READS, SAYS_DESTROYS = "says it reads", "says it destroys"
ONLY_READS, WRITES_NOTHING = "only reads", "writes nothing"
"""Facts about an external tool: two claims of its server, and two properties that the kernel enforces."""


def judged_fields(action: Action, verdict: Verdict, redact: Callable[[str], str]) -> dict[str, JsonValue]:
    """Return the fields of a judged call: arguments, preview, decision and reasons, with secrets masked by `redact`.

    Arguments and preview are complete. `facets` has the first `MOST_FACETS` parts, the deciding ones first;
    `facet_count` is the number of all parts.
    """
    from harness.policy.destruction import destroys

    deciding = verdict.deciding
    asked_by = (f"asked by {action.asked_by}",) if action.asked_by else ()
    return {
        "tool": action.tool,
        "arguments": {name: masked_value(value, redact) for name, value in action.arguments.items()},
        "summary": redact(action.summary),
        "preview": redact(action.preview),
        "shown_whole": action.shown_whole,
        "notes": [redact(note) for note in (*asked_by, *verdict.notes)],
        "decision": verdict.decision.word,
        "source": deciding.source.value,
        "by": deciding.by,
        "rule": deciding.rule,
        "layer": deciding.layer.value,
        "reason": redact(deciding.reason),
        "facets": facet_fields(verdict, lambda facet: describe_facet(facet, redact)),
        "facet_count": len(verdict.facets),
        "effects": effect_fields(verdict.effects),
        "destroys": [redact(reason) for reason in destroys(action)],
    }


def facet_fields(verdict: Verdict, describe: Callable[[Facet], str]) -> list[JsonValue]:
    """Return the parts of a call, each with its decision."""
    return [
        {
            "facet": describe(facet_verdict.facet),
            "kind": type(facet_verdict.facet).__name__,
            "decision": facet_verdict.decision.word,
            "by": facet_verdict.by,
            **_told_of(facet_verdict.facet),
        }
        for facet_verdict in verdict.shown[:MOST_FACETS]
    ]


def _told_of(facet: Facet) -> dict[str, JsonValue]:
    """Return the facts about an external tool: its server's claims, and its limits."""
    if not isinstance(facet, ToolUse):
        return {}
    claims = (
        (SAYS_READS, facet.says_reads),
        (SAYS_DESTROYS, facet.says_destroys),
        (ONLY_READS, facet.only_reads),
        (WRITES_NOTHING, facet.writes_nothing and not facet.only_reads),
    )
    words: list[JsonValue] = [word for word, holds in claims if holds]
    return {"told": words} if words else {}


def effect_fields(effects: Effects) -> JsonValue:
    """Return the fields of effects. A long list of paths is cut, with a field for the number of all."""
    fields: dict[str, JsonValue] = {
        "network": effects.network,
        **({"hosts": list(effects.hosts)} if effects.hosts else {}),
        "unasked": effects.unasked,
        "granted": list(effects.granted),
        "enforcement": effects.enforcement.value,
    }
    for name, paths in (("read", effects.read), ("write", effects.write)):
        fields[name] = None if paths is None else list(paths[:MAX_LOGGED_PATHS])
        if paths is not None and len(paths) > MAX_LOGGED_PATHS:
            fields[f"{name}_count"] = len(paths)
    fields["sockets"] = effects.sockets
    fields["level"] = effects.level.value
    if effects.opened:
        fields["opened"] = list(effects.opened)
    if effects.unheld:
        fields["unheld"] = effects.unheld
    if effects.left_out:
        fields["left_out"] = list(effects.left_out)
    if effects.write is None and effects.named_paths:
        fields["named"] = list(effects.named_paths[:MAX_LOGGED_PATHS])
    return fields

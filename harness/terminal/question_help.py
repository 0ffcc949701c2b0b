"""The help of `?` for a call: the usual facts about every command, and the decision on each part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from harness.actions import Command, Decision, Enforcement, Facet, Opaque, PathAccess, ToolUse, Unconfined
from harness.paths import short_place
from harness.policy.rules import Layer
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import replace
from harness.terminal.effects_lines import WORKSPACE_WALLS, effects_lines
from harness.terminal.question import Question, fact_row, facts_of
from harness.terminal.row_text import Row, joined, prose, rows_of
from harness.terminal.styles import Tone
from harness.text.visible import one_line

MOST_FACETS = 200
"""Maximum number of parts in the table; the question itself names every part."""
MOST_PATHS = 500
"""Maximum number of listed paths of one kind."""
_WHOSE = {
    Layer.BUILT_IN: "built in",
    Layer.MANAGED: "your organisation's policy",
    Layer.FILE: "the policy that was given",
    Layer.USER: "your policy",
    Layer.SHIPPED: "the policy that ships",
    Layer.PROJECT: "this folder's policy",
    Layer.REPOSITORY: "the policy at the top of this repository",
    Layer.SESSION: "a grant of yours",
}


def fact_rows(question: Question, width: int) -> tuple[Row, ...]:
    """Return rows with the effects of a call, all facts about it, and whether undo covers it."""
    effects = (
        effects_lines(
            replace(question.verdict, effects=question.effects),
            max_paths=MOST_PATHS,
            confinement=question.confinement if question.is_unheld else "",
        )
        if question.action.cwd
        else []
    )
    is_confined = (
        bool(effects)
        and question.effects.enforcement is not Enforcement.OFF
        and not (question.effects.looks_only or question.is_unheld)
    )
    return joined((
        *(prose(line, width, tone=Tone.QUIET) for line in effects),
        *(prose(line, width, tone=Tone.QUIET) for line in (WORKSPACE_WALLS,) if is_confined),
        *(fact_row(fact, width) for fact in facts_of(question)),
    ))  # fmt: skip


def facet_rows(verdict: Verdict, width: int) -> tuple[Row, ...]:
    """Return the table of all facets: the kind of each, its decision, and the origin of the decision."""
    rows = [_facet_rows(number, facet, width) for number, facet in enumerate(verdict.facets[:MOST_FACETS], 1)]
    more = len(verdict.facets) - MOST_FACETS
    if more > 0:
        rows.append(prose(f"{more} more parts are not listed here", width, tone=Tone.WARNING))
    return joined(rows)


def _facet_rows(number: int, verdict: FacetVerdict, width: int) -> Iterator[Row]:
    tone = Tone.QUIET if verdict.decision is Decision.AUTO else Tone.WARNING
    facet = verdict.facet
    text = facet.text
    if isinstance(facet, PathAccess) and facet.written != facet.names[-1]:
        text += f" ({facet.real})"
    yield from rows_of(f"{_kind_of(facet)}: {one_line(text)}", width, gutter=f"  {number:3} ")
    word = "ASKS" if verdict.decision is Decision.CONFIRM else verdict.decision.word
    shipped = verdict.layer is Layer.SHIPPED  # its folder belongs to the harness, so the file name suffices
    by = short_place(verdict.by) if shipped else verdict.by
    is_of_policy = verdict.layer is not Layer.BUILT_IN and verdict.source is not Source.HOOK
    whose = f"  [{by}; {_WHOSE[verdict.layer]}]" if by and is_of_policy else f"  [{by}]" if by else ""
    yield from prose(f"{word}: {verdict.reason}{whose}", width, gutter=" " * 6, tone=tone)
    if verdict.hint:
        yield from prose(verdict.hint, width, gutter=" " * 6, tone=Tone.QUIET)


def _kind_of(facet: Facet) -> str:
    """Return the kind of a part, in a word or two."""
    match facet:
        case Command():
            return "command"
        case PathAccess():
            return f"file to {facet.access.value}" if facet.access.value != "either" else "file to read or write"
        case Opaque():
            return "not understood"
        case Unconfined():
            return "unconfined"
        case ToolUse():
            return "tool"
        case _:
            assert_never(facet)

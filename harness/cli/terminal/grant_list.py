"""What may be granted at a question, and for how long: numbered lists, the narrowest first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.actions import Access
from harness.cli.terminal.question import Usual
from harness.cli.terminal.row_text import Row, Tint, line_rows, prose, safe_line
from harness.cli.terminal.styles import Ink, Tone
from harness.paths import is_within
from harness.policy.grant_offers import GrantChoice, Offer
from harness.policy.session_grants import EVERYTHING, GrantPattern, GrantScope
from harness.text.visible import one_line

TIMES: tuple[tuple[str, GrantScope, int | None], ...] = (
    ("this session", GrantScope.SESSION, None),
    ("7 days", GrantScope.WORKSPACE, 7),
    ("until you revoke it, with /grants", GrantScope.WORKSPACE, None),
)
"""How long a grant may hold."""


def times_rows(width: int) -> list[Row]:
    """Return the rows that say for how long a grant may hold, each with its number."""
    return [row for number, (name, _, _) in enumerate(TIMES, 1) for row in prose(name, width, gutter=f"  [{number}] ")]


def offered_rows(offer: Offer, width: int, *, usual: Usual) -> list[Row]:
    """Return the rows that show what may be granted, whole: each choice with its number."""
    rows: list[Row] = []
    for number, choice in enumerate(offer.choices, 1):
        gutter = f"  [{number}] "
        for name, may, tone in _lines(choice, usual):
            named = safe_line(one_line(name))
            tints = (Tint(0, len(named), Ink.STRONG),)
            rows += line_rows(f"{named}{safe_line(one_line(may))}", width, gutter=gutter, tints=tints, tone=tone)
            gutter = " " * len(gutter)
        for part in choice.asked_still:
            rows += prose(f"asked about still: {part}", width, gutter=gutter, tone=Tone.QUIET)
    if any(_has_caches(pattern, usual) for choice in offer.choices for pattern in choice.patterns):
        rows += prose(f"caches: {', '.join(_caches(usual))}", width, tone=Tone.QUIET)
    if offer.no_program:
        rows += prose(f"no program with any words: {offer.no_program}", width, tone=Tone.QUIET)
    return rows


def _lines(choice: GrantChoice, usual: Usual) -> Iterator[tuple[str, str, Tone]]:
    """Yield what a choice covers, in names and what they may do, not yet safe to show: behind the last of several commands
    that may do the same."""
    only = "  (this session only)" if choice.session_only else ""
    for may, group in groupby(choice.patterns, key=lambda pattern: _may(pattern, usual)):
        patterns = tuple(group)
        tone = Tone.WARNING if patterns[0].network else Tone.PLAIN
        if may and len(patterns) > 1:
            yield from ((_named(pattern), "", tone) for pattern in patterns)
            yield "", f"each {may}{only}", tone
        else:
            yield from ((_named(pattern), f"  {may}{only}" if may else only, tone) for pattern in patterns)


def _named(pattern: GrantPattern) -> str:
    if pattern.argv or pattern.program:
        words = shlex.join(pattern.argv) or "any known command"
        named = " ".join((*(f"{name}=..." for name in pattern.variables), words))
        return f"{named} *" if pattern.program and pattern.argv else named
    does, path = "edit" if Access.WRITE in pattern.access else "read", pattern.path.removeprefix("/")
    if pattern.path == EVERYTHING:
        return f"{does} any file of the workspace"
    return f"{does} any file in {path.removesuffix('**')}" if path.endswith("/**") else f"{does} {path}"


def _may(pattern: GrantPattern, usual: Usual) -> str:
    """Return what a command may do, and where; nothing of files. The workspace is not named, and caches not one by one."""
    if not pattern.argv and not pattern.program:
        return ""
    short = _has_caches(pattern, usual)
    listed = [place for place in pattern.write if not (short and place in _caches(usual))]
    places = ["the workspace" if place == "." else place for place in listed] + (["caches"] if short else [])
    writes = f"writes {', '.join(places)}" if places else "writes what it names"
    network = "reaches the network" if pattern.network else "no network"
    reads = f", could read {', '.join(pattern.exposes)}" if pattern.exposes else ""
    how = "in walls" if pattern.program else "exactly"
    return f"{how}: {writes}, {network}{reads}{_where(pattern.folder, usual.folder)}"


def _where(folder: str, here: str) -> str:
    if folder in (here, ""):
        return ""
    return f", in {folder[len(here.rstrip('/')) + 1 :]}/" if here and is_within(folder, here) else f", in {folder}"


def _caches(usual: Usual) -> Sequence[str]:
    """Return what every command may write that a person allows, besides the workspace."""
    return [place for place in usual.write if place.startswith(("/", "~"))]


def _has_caches(pattern: GrantPattern, usual: Usual) -> bool:
    caches = _caches(usual)
    return len(caches) > 1 and set(caches) <= set(pattern.write)

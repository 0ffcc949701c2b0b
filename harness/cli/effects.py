"""What a call would do to the world, in one line for people; made from what was judged alone."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Enforcement, PathAccess
from harness.policy import Verdict
from harness.rules import Decision
from harness.visible import visible_line

MAX_PATHS = 8
"""Paths that are named; of more the number is told."""
WORKSPACE = "the workspace"


def effects_lines(verdict: Verdict, *, most: int = MAX_PATHS) -> list[str]:
    """Say what a run would do to the world, and what the kernel will hold it to; nothing of a call that does not run.

    Of more than `most` paths of one kind the number of the others is told.
    """
    if verdict.decision not in (Decision.AUTO, Decision.CONFIRM):
        return []
    effects = verdict.effects
    if effects.enforcement is Enforcement.OFF:
        return ["effects: UNCONFINED: it may do whatever you may do yourself, and reach the network"]
    network = "may reach the network" if effects.network else "no network"
    granted = _listed([WORKSPACE if path == "." else path for path in effects.granted], most)
    names = {f.facet.real: f.facet.names[-1] for f in verdict.facets if isinstance(f.facet, PathAccess)}
    if effects.read is None or effects.write is None:
        named = [names.get(path, path) for path in effects.named]
        writes = f"writes {_listed(named, most)}, " if named else ""
        return [f"effects: {writes}may write {granted}; {network}"]
    reads, writes = (
        _listed([names.get(path, path) for path in paths], most) for paths in (effects.read, effects.write)
    )
    besides = f", may write {granted}" if effects.granted else ""
    return [f"effects: reads {reads}; writes {writes}{besides}; {network}"]


def _listed(paths: Sequence[str], most: int) -> str:
    shown = ", ".join(visible_line(path, 100) for path in paths[:most])
    return f"{shown} and {len(paths) - most} more" if len(paths) > most else shown or "nothing"

"""The permitted effects of a call, in words: for `policy explain`, and for `?` at a question."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Decision, Enforcement, PathAccess, ToolUse
from harness.policy.verdict import Verdict
from harness.text.visible import visible_line

MAX_PATHS = 8
"""Maximum number of paths listed; the rest are counted."""
WORKSPACE = "the workspace"


def effects_lines(verdict: Verdict, *, max_paths: int = MAX_PATHS) -> list[str]:
    """Return a line about the effects that a verdict permits. Empty for a call that may not run.

    At most `max_paths` paths of each kind are listed; the rest are counted.
    """
    if verdict.decision not in (Decision.AUTO, Decision.CONFIRM):
        return []
    effects = verdict.effects
    if effects.enforcement is Enforcement.OFF:
        return ["effects: UNCONFINED: it may do whatever you may do yourself, and reach the network"]
    uses = [facet.facet for facet in verdict.facets if isinstance(facet.facet, ToolUse)]
    if any(use.bounds is None for use in uses):
        return ["effects: unknown: harness cannot see what this tool does"]
    network = "may reach the network" if effects.network else "no network"
    if effects.hosts:
        from harness.tools.command_network import reach_words

        network = f"may {reach_words(effects.hosts)}"
    if effects.sockets:
        network = f"{network}, may connect to Unix sockets of other programs"
    granted = _path_list([WORKSPACE if path == "." else path for path in effects.granted], max_paths)
    names = {f.facet.real: f.facet.names[-1] for f in verdict.facets if isinstance(f.facet, PathAccess)}
    if effects.read is None or effects.write is None:
        written = [names.get(path, path) for path in effects.named_paths]
        writes = f"writes {_path_list(written, max_paths)}, " if written else ""
        return [f"effects: {writes}may write {granted}; {network}"]
    reads, writes = (
        _path_list([names.get(path, path) for path in paths], max_paths) for paths in (effects.read, effects.write)
    )
    grants = f", may write {granted}" if effects.granted else ""
    if effects.left_out:
        from harness.tools.command_walls import left_out_in_words

        network = f"{network}; {left_out_in_words(effects)}"
    return [f"effects: reads {reads}; writes {writes}{grants}; {network}"]


def _path_list(paths: Sequence[str], max_paths: int) -> str:
    names = ", ".join(visible_line(path, 100) for path in paths[:max_paths])
    return f"{names} and {len(paths) - max_paths} more" if len(paths) > max_paths else names or "nothing"

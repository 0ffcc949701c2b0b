"""The permitted effects of a call, in words: for `policy explain`, and for `?` at a question."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Command, Decision, Effects, Enforcement, Opaque, PathAccess, ToolUse
from harness.policy.verdict import Verdict
from harness.text.visible import visible_line

MAX_PATHS = 8
"""Maximum number of paths listed; the rest are counted."""
WORKSPACE_WALLS = (
    "workspace walls: the command reads the system and the workspace, without files that a rule denies. It writes the "
    "workspace, a private /tmp, and what is named besides. Protected files (.git, CI and start-up files) stay as they are. "
    "It reaches no network, no socket and no other process of yours that is not named."
)
"""The constants behind the words of `walls_words`."""
OWN_TMP = ", /tmp is the session's own"
"""Words for a call that was judged by files in the session's own `/tmp`."""


def walls_words(effects: Effects) -> str:
    """Return the level of the walls around a command, what they open, and what is missing of them on this machine."""
    opened = f" ({'; '.join(visible_line(words, 1_000) for words in effects.opened)})" if effects.opened else ""
    own_tmp = f"{OWN_TMP} ($TMPDIR)" if effects.own_tmp else ""
    missing = f", but {visible_line(effects.unheld, 400)}" if effects.unheld else ""
    return f"{effects.level.value}{opened}{own_tmp}{missing}"


def effects_lines(verdict: Verdict, *, max_paths: int = MAX_PATHS, confinement: str = "") -> list[str]:
    """Return lines about the effects that a verdict permits. Empty for a call that may not run.

    At most `max_paths` paths of each kind are listed; the rest are counted. `confinement` describes the walls of the
    command where no walls of the verdict hold it.
    """
    if verdict.decision not in (Decision.AUTO, Decision.CONFIRM):
        return []
    effects = verdict.effects
    if effects.enforcement is Enforcement.OFF:
        return ["effects: UNCONFINED: it may do whatever you may do yourself, and reach the network"]
    facets = [facet.facet for facet in verdict.facets]
    if any(isinstance(facet, ToolUse) and facet.bounds is None for facet in facets):
        return ["effects: unknown: harness cannot see what this tool does"]
    names = {facet.real: facet.names[-1] for facet in facets if isinstance(facet, PathAccess)}
    reads, writes, written = (
        _path_list([names.get(path, path) for path in paths or ()], max_paths)
        for paths in (effects.read, effects.write, effects.named_paths)
    )
    if effects.read is not None and effects.write is not None:
        lines = [f"effects: reads {reads}; writes {writes}"]
    else:
        rest = "what it likes" if confinement else "what its walls permit"
        lines = [f"effects: writes {written}, and {rest}"] if effects.named_paths else []
    if confinement or effects.hosts or effects.left_out:
        from harness.tools.command_walls import confinement_words, left_out_in_words

        if confinement:
            return [*lines, confinement_words(confinement)]
        from harness.tools.command_network import unreached_words

        lines += filter(None, (unreached_words(effects), left_out_in_words(effects) if effects.left_out else ""))
    is_command = any(isinstance(facet, Command | Opaque) for facet in facets)
    return [*lines, f"walls: {walls_words(effects)}"] if is_command or not lines else lines


def _path_list(paths: Sequence[str], max_paths: int) -> str:
    names = ", ".join(visible_line(path, 100) for path in paths[:max_paths])
    return f"{names} and {len(paths) - max_paths} more" if len(paths) > max_paths else names or "nothing"

"""The action of a logged external tool call, rebuilt from the record's facts about the tool, its bounds and paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.actions import Access, Action, JsonValue, PathAccess, ToolBounds, ToolUse
from harness.app.policy.judged_call import UNSEEN_TOOL, call_from_outside
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.judged_json import ONLY_READS, SAYS_DESTROYS, SAYS_READS, WRITES_NOTHING
from harness.log.order import LogRecord
from harness.record import replace
from harness.redaction.marks import is_redacted
from harness.tool_kinds import script_tool


def logged_facets(decision: LogRecord) -> list[dict[str, JsonValue]]:
    """Return the recorded facets of a call, without the decisions of hooks."""
    facets = decision.get("facets")
    parts = [facet for facet in facets if isinstance(facet, dict)] if isinstance(facets, list) else []
    return [part for part in parts if not str(part.get("by")).startswith("hook ")]


def is_told_whole(facets: Sequence[Mapping[str, JsonValue]]) -> bool:
    """Return whether recorded facets are complete for an external tool: exactly one tool use, and paths.

    Other facets mean a tool of another program.
    """
    kinds = [facet.get("kind") for facet in facets]
    return kinds.count("ToolUse") == 1 and {"ToolUse", "PathAccess"}.issuperset(kinds)


def logged_use(decision: LogRecord, arguments: str, workspace: Workspace) -> Action:
    """Return the action of a recorded call of an external tool: the facts about the tool, and the paths that it named.

    The record must have all its facets (`is_told_whole`). Raises ToolError for an incomplete path or argument.
    """
    facets, tool = logged_facets(decision), str(decision.get("tool"))
    used = next(facet for facet in facets if facet.get("kind") == "ToolUse")
    logged_arguments = used.get("told")
    words = logged_arguments if isinstance(logged_arguments, list) else []
    use = ToolUse(
        tool=tool,
        unseen=str(decision["reason"]) if used.get("by") == UNSEEN_TOOL else "",
        says_reads=SAYS_READS in words,
        says_destroys=SAYS_DESTROYS in words,
        bounds=ToolBounds() if ONLY_READS in words else _bounds(tool, decision, is_confined=WRITES_NOTHING in words),
    )
    action = call_from_outside(use, arguments, workspace)
    paths = [_path_access(str(facet.get("facet")), workspace) for facet in facets if facet is not used]
    return replace(action, facets=(*action.facets, *paths))


def _bounds(tool: str, decision: LogRecord, *, is_confined: bool) -> ToolBounds | None:
    """Return the declared bounds of a script, as far as the policies at the time allowed them. `None` for other tools.

    `is_confined` tells whether the script could not write anything. For another script the exact bounds do not matter,
    since its confinement relaxes no decision.
    """
    if not tool.startswith(script_tool("")):
        return None
    logged_effects = decision.get("effects")
    effects = logged_effects if isinstance(logged_effects, dict) else {}
    granted = effects.get("granted")
    write = tuple(place for place in granted if isinstance(place, str)) if isinstance(granted, list) else ()
    return ToolBounds(write=write, network=effects.get("network") is True, is_held=is_confined)


def _path_access(access_text: str, workspace: Workspace) -> PathAccess:
    """Return the path of a recorded facet, the inverse of `describe_facet`.

    Raises ToolError if the path is incomplete.
    """
    word, _, path = access_text.partition(" ")
    if word not in (Access.READ.value, Access.WRITE.value) or is_redacted(path) or path.endswith(" characters)"):
        raise ToolError("the log names a path of it only in part")
    path_access = workspace.resolve(path, Access(word))
    return (
        workspace.look_below(path_access, follows=path_access.access is Access.READ)
        if os.path.isdir(path_access.real)
        else path_access
    )

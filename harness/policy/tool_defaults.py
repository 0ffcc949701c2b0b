"""Defaults: the decisions under `[tools]` for calls that no rule matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from harness.actions import Act, Command, Decision, Facet, Opaque, PathAccess, ToolUse, Unconfined
from harness.policy.command_matchers import AnyCommand
from harness.policy.effects import DEFAULT_WRITE
from harness.policy.rules import Layer, Opens, Origin, Rule
from harness.policy.tool_matchers import ToolMatcher
from harness.programs.variables import steers
from harness.record import Record
from harness.tool_kinds import is_named

UNCOVERED = "uncovered"
"""The key under [tools] for commands that no model covers. A model gives the effects of a known command."""


class ToolDefault(Record):
    """The decision on a tool's calls if no rule matches."""

    tool: str
    """A tool's name, `default` for tools without their own line, or `uncovered` for commands that no model covers."""
    decision: Decision
    origin: Origin
    layer: Layer
    in_walls: bool = False
    """Whether a call that fits into the workspace walls runs in them without a question (`bash = "walls"`).

    `decision` applies to all other calls.
    """
    spares_reading: bool = False
    """Whether the default does not apply to tools that can only read, as in plan mode."""

    @property
    def strictness(self) -> tuple[Decision, bool]:
        """A key to compare two defaults for the same tool."""
        return self.decision, not self.in_walls

    @property
    def subject(self) -> str:
        """The calls that the default decides, in words."""
        return {"default": "any other tool", UNCOVERED: "commands that no model covers"}.get(self.tool, self.tool)

    @property
    def rule(self) -> Rule:
        """The auto rule that `in_walls` amounts to."""
        return Rule(
            id=f"tools-{self.tool}",
            decision=Decision.AUTO,
            origin=self.origin,
            layer=self.layer,
            matchers=(AnyCommand(folder=""), ToolMatcher(names=(self.tool,))),
            opens=Opens(write=DEFAULT_WRITE),
            reason="it fits into the workspace walls",
        )


class Readers(Record):
    """The line `readers` under `[tools]` of one file: whether commands that only read run without a question."""

    on: bool
    origin: Origin
    layer: Layer


def stated_defaults(defaults: Sequence[ToolDefault], tool: str) -> list[ToolDefault]:
    """Return the default of each named file for `tool`: by its name, by the longest matching `NAME*`, or `default`.

    A file and those that it extends count as one. If several of them have the same line, the strictest counts.
    """
    by_unit: dict[tuple[Layer, str], ToolDefault] = {}
    for default in defaults:
        key = (default.layer, default.origin.unit)
        if default.tool == "default" or is_named(tool, (default.tool,)):
            other = by_unit.get(key)
            if other is None or _goes_before(default, other):
                by_unit[key] = default
    return [*by_unit.values()]


def defaults_for(defaults: Sequence[ToolDefault], tool: str, facet: Facet) -> list[ToolDefault]:
    """Return the default of each file for `tool`. If no model covers the facet, also the `uncovered` of each file."""
    uncovered = [default for default in defaults if default.tool == UNCOVERED and _is_uncovered(facet)]
    return [*stated_defaults(defaults, tool), *uncovered]


def _goes_before(default: ToolDefault, other: ToolDefault) -> bool:
    """Return whether, of two defaults of one unit for a tool, the first counts: it is more specific, or stricter."""
    if default.tool == other.tool:
        return default.strictness > other.strictness
    return default.tool != "default" and (other.tool == "default" or _says_more(default.tool, other.tool))


def _says_more(name: str, other: str) -> bool:
    """Return whether `name` is more specific than `other`: it has no star, or it is the longer one with a star."""
    return not name.endswith("*") or (other.endswith("*") and len(name) > len(other))


def needs_its_name(facet: Facet, stated: Sequence[ToolDefault]) -> bool:
    """Return whether a tool's server declares it destructive and no default has the tool's full name."""
    if not isinstance(facet, ToolUse) or not facet.says_destroys:
        return False
    return all(default.tool != facet.tool for default in stated)


def _is_uncovered(facet: Facet) -> bool:
    """Return whether no model gives the effects of a command. True for a program whose behaviour a variable changes."""
    match facet:
        case Command():
            return facet.act is Act.UNKNOWN or any(map(steers, facet.variables))
        case Opaque():
            return True
        case PathAccess() | Unconfined() | ToolUse():
            return False
        case _:
            assert_never(facet)

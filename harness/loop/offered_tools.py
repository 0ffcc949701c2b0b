"""The tools offered to a model: an agent's own tools, and tools from outside (of servers), which may change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from harness.actions import JsonValue
from harness.gate.registry import ToolRegistry
from harness.gate.tool import LimitedTool, Tool
from harness.limits import Limits
from harness.record import Record


class OutsideTools(Record):
    """The tools from outside."""

    tools: Sequence[Tool]
    """All that are available now."""
    notes: Sequence[str] = ()
    """New notes about left-out tools, with the reasons."""


def no_more_tools() -> OutsideTools | None:
    """Return `None`: the tools from outside have not changed."""
    return None


class OfferedTools:
    """All tools on offer."""

    def __init__(self, own_tools: Sequence[Tool], more: Callable[[], OutsideTools | None] = no_more_tools) -> None:
        """Keep the agent's tools. Raises ValueError if `own_tools` is empty.

        `more` returns the tools from outside if they changed since its last call, otherwise `None`.
        """
        if not own_tools:
            raise ValueError("an agent has no tools: pass some, such as builtin_tools(workspace)")
        self._own_tools = tuple(own_tools)
        self._more = more
        self._outside: tuple[Tool, ...] = ()

    def under(self, limits: Limits) -> ToolRegistry:
        """Return a registry of all tools, bound to `limits`. Raises ValueError if two share a name."""
        tools = (*self._own_tools, *self._outside)
        return ToolRegistry([tool.under(limits) if isinstance(tool, LimitedTool) else tool for tool in tools])

    def changed(self, present: ToolRegistry, limits: Limits) -> tuple[ToolRegistry, dict[str, JsonValue]] | None:
        """Return a new registry and the fields of the log record if the tools from outside changed, otherwise `None`.

        The record lists the differences from `present`.
        """
        news = self._more()
        if news is None:
            return None
        self._outside = tuple(news.tools)
        registry, present_specs = self.under(limits), {spec.name: spec for spec in present.specs}
        changes: list[JsonValue] = [
            {"name": spec.name, "description": spec.description, "parameters": json.dumps(dict(spec.parameters))}
            for spec in registry.specs
            if present_specs.get(spec.name) != spec
        ]
        return registry, {"tools": list(registry.names), "told": changes, "notes": list(news.notes)}

"""The tools of a session: those that the user names, otherwise the shipped ones and those that the policy names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.errors import UsageError, nearest
from harness.gate.tool import Tool
from harness.loop.offered_tools import OutsideTools
from harness.policy.policy import Policy
from harness.record import Record, replace
from harness.session.config.config_file import Setting
from harness.session.config.settings import DEFAULT
from harness.text.visible import visible_line
from harness.tool_kinds import (
    OPTIONAL_NAMES,
    PLUGIN_TOOLS,
    SHIPPED_TOOLS,
    is_from_outside,
    is_named,
    script_tool,
    server_tool,
)
from harness.tools import named_in


class ChosenTools(Record):
    """The tool names in `--tools` or in the configuration's `tools`. Empty without such a choice."""

    names: tuple[str, ...] = ()
    """The only tools to offer. Empty: no restriction."""
    added: tuple[str, ...] = ()
    """Tools to add to those offered by default (`+todo`). Empty if `names` is set."""
    origin: str = ""

    def has(self, tool: str) -> bool:
        """Return whether a tool is chosen. True for every tool if `names` is empty."""
        return not self.names or is_named(tool, self.names)

    def optional(self, policy: Policy) -> tuple[str, ...]:
        """Return the chosen names, or without a choice the optional tools that the policy names and the added ones."""
        return self.names or (*named_in(policy), *self.added)

    def of(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return those of `tools` that are chosen. Raises UsageError if none is."""
        chosen = tuple(tool for tool in tools if self.has(tool.spec.name))
        if not chosen:
            raise UsageError(f"{self.origin}: name at least one tool that needs no server: {', '.join(SHIPPED_TOOLS)}")
        return chosen

    def outside(self, news: Callable[[], OutsideTools | None]) -> Callable[[], OutsideTools | None]:
        """Return a function like `news` (of servers' tools) that leaves out the tools that are not chosen."""

        def chosen() -> OutsideTools | None:
            outside_tools = news()
            if outside_tools is None:
                return None
            return replace(outside_tools, tools=tuple(tool for tool in outside_tools.tools if self.has(tool.spec.name)))

        return chosen if self.names else news


def chosen_tools(
    setting: Setting[tuple[str, ...]], scripts: Iterable[str], other_names: Iterable[str] = ()
) -> ChosenTools:
    """Parse the setting. `scripts` are the names of the declared scripts, `other_names` the tools of plugins.

    Names of servers' tools and names with a star are not checked here. With `+` before each name, the tools are added
    to those offered by default.

    Raises UsageError for an empty choice, or an unknown tool.
    """
    names = tuple(dict.fromkeys(name.removeprefix("+") for name in setting.value))
    adds = any(name.startswith("+") for name in setting.value)
    if adds and not all(name.startswith("+") for name in setting.value):
        raise UsageError(
            f"{setting.origin}: put + before each name, to add these tools, or before none, to have them alone"
        )
    known_names = (*SHIPPED_TOOLS, *OPTIONAL_NAMES, *map(script_tool, scripts), *other_names)
    if not names and setting.origin != DEFAULT:
        raise UsageError(f"{setting.origin}: names no tool; known: {', '.join(known_names)}")
    for name in names:
        is_later = is_from_outside(name) and (
            name.endswith("*") or not name.startswith((script_tool(""), PLUGIN_TOOLS))
        )
        if name not in known_names and not is_later:
            problem = f"{setting.origin}: unknown tool {visible_line(repr(name), 100)}{nearest(name, known_names)}"
            outside = f"{server_tool('SERVER', 'TOOL')}, {script_tool('NAME')} and {PLUGIN_TOOLS}NAME"
            raise UsageError(f"{problem}; those from outside are {outside}")
    return ChosenTools(names=() if adds else names, added=names if adds else (), origin=setting.origin)

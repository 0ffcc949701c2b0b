"""The tools on offer, by name, and the conversion of a call into an Action."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType

from harness.actions import Action, Effects
from harness.declared_types import check_arguments, type_name
from harness.errors import ChangedCodeError, ToolError
from harness.gate.arguments import parse_arguments, quoted_name
from harness.gate.tool import ChangingTool, ConfinedTool, PlacedTool, Tool, UndoneTool, said_by
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.policy.policy import Policy, denies_altogether
from harness.policy.walls_here import WallsHere
from harness.record import replace

IN_PROCESS = "in process"
"""Confinement of a tool whose body is code of the harness itself, which runs in this process."""


class ToolRegistry:
    """The tools on offer, by name."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        """Raise ValueError if two tools share a name, and TypeError for anything else than tools."""
        check_arguments(ToolRegistry.__init__, locals())
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are named {tool.spec.name}")
            self._tools[tool.spec.name] = tool
        placed = [tool for tool in tools if isinstance(tool, PlacedTool)]
        self._place_checks = tuple(dict.fromkeys(tool.check_place for tool in placed))
        """Checks of the tools' folders, without duplicates: most tools share one folder."""
        self._roots = {tool.root for tool in placed}
        changing = [tool for tool in tools if isinstance(tool, ChangingTool)]
        self._outdates = tuple(dict.fromkeys(tool.outdate_files for tool in changing))
        self._walls = {tool.spec.name: tool.walls for tool in tools if isinstance(tool, ConfinedTool)}
        """The walls of each confined tool."""
        self.specs = tuple(tool.spec for tool in tools)
        """The tools' descriptions for a model."""

    @property
    def names(self) -> Collection[str]:
        """The names of all tools."""
        return self._tools.keys()

    @property
    def workspace(self) -> str:
        """Absolute path of the folder that the tools work in. Empty if the tools name no folder, or more than one."""
        return "".join(self._roots) if len(self._roots) == 1 else ""

    @property
    def level(self) -> str:
        """Short description of this machine's confinement of commands."""
        return next((walls.level for walls in self._walls.values()), IN_PROCESS)

    def confinement(self, name: str, effects: Effects) -> str:
        """Return a short description of a call's confinement to `effects`. `name` need not be a tool on offer."""
        return self._walls[name].in_words(effects) if name in self._walls else IN_PROCESS

    def walls_here(self, policy: Policy, name: str) -> WallsHere:
        """Return the walls available to a granted program of the tool `name`."""
        if name in self._walls:
            walls, tool = self._walls[name].walls_here(policy, name), self._tools[name]
            return replace(walls, undo=tool.undo) if isinstance(tool, UndoneTool) else walls
        return WallsHere(root="", confines=False, missing="the tool runs no programs")

    def check_place(self) -> None:
        """Raise WorkspaceError if the folder that a tool works in is gone."""
        for check_place in self._place_checks:
            check_place()

    def outdate_files(self) -> None:
        """Tell the tools that files may have changed (see ChangingTool)."""
        for outdate in self._outdates:
            outdate()

    def offered(self, policy: Policy) -> tuple[ToolSpec, ...]:
        """Return the descriptions for the model: all tools except those that `policy` always refuses."""
        return tuple(spec for spec in self.specs if not denies_altogether(policy, spec.name))

    def prepare(self, call: ToolCall, policy: Policy | None = None) -> Action:
        """Return the action of `call`. For an unknown tool the error names those that `policy` offers.

        Has no effects; raises ToolError, and ChangedCodeError if the program itself was changed.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            specs = self.specs if policy is None else self.offered(policy)
            names = ", ".join(spec.name for spec in specs)
            raise ToolError(f"The tool {quoted_name(call.name)} does not exist. The tools are: {names}.")
        if call.problem:
            raise ToolError(call.problem)
        try:
            arguments = parse_arguments(call.arguments, tool.spec)
            action = tool.prepare(call, MappingProxyType(arguments))
            _check_action(action, call)
        except (ToolError, ChangedCodeError):
            raise
        except (Exception, SystemExit) as error:
            raise ToolError(f"{call.name} could not prepare this call: {said_by(error)}") from error
        return action

    def __getitem__(self, name: str) -> Tool:
        """Return the tool of that name. Raises KeyError for an unknown name."""
        return self._tools[name]

    def bounds_by_kernel(self, name: str) -> bool:
        """Return whether the kernel prevents calls of the tool `name` from writing outside their effects."""
        return name in self._walls and self._walls[name].confines


def _check_action(action: object, call: ToolCall) -> None:
    """Raise TypeError unless `action` is an Action for `call` and its tool.

    INVARIANT: the call that is judged, logged and run is the call that the model proposed.
    """
    if not isinstance(action, Action):
        raise TypeError(f"`prepare` must return an Action, not {type_name(action)}")
    if action.call != call or action.tool != call.name:
        raise TypeError("expected the Action of this call, got that of another")

"""The parts that plugins add to one session, as one: begun together, their tools offered together, closed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.loop.offered_tools import OutsideTools

if TYPE_CHECKING:
    from harness.gate.tool import Tool
    from harness.plugin import ActivePart


class ActiveParts:
    """All parts of one session."""

    def __init__(self, parts: Sequence[ActivePart] = ()) -> None:
        """Start nothing."""
        self._parts = tuple(parts)
        self._tools: list[Sequence[Tool]] = [()] * len(self._parts)

    def begin(self) -> None:
        """Start each part that has not started. Returns at once."""
        for part in self._parts:
            part.begin()

    def news(self) -> OutsideTools | None:
        """Return the tools of all parts, where those of any changed since the last call; else None."""
        found = [part.news() for part in self._parts]
        if all(one is None for one in found):
            return None
        self._tools = [held if one is None else one.tools for held, one in zip(self._tools, found, strict=True)]
        tools = [tool for held in self._tools for tool in held]
        return OutsideTools(tools=tools, notes=[note for one in found if one is not None for note in one.notes])

    def close(self) -> None:
        """End everything that the parts started."""
        for part in self._parts:
            part.close()

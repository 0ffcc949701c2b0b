"""`ActiveParts`: all parts that plugins add to one session, started and closed together. Their tools are offered together."""

from __future__ import annotations

from collections.abc import Sequence

from harness.gate.tool import Tool
from harness.loop.offered_tools import OutsideTools
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
        """Return the tools of all parts if those of any part changed since the last call, otherwise `None`."""
        news = [part.news() for part in self._parts]
        if all(part_news is None for part_news in news):
            return None
        self._tools = [
            part_tools if part_news is None else part_news.tools
            for part_tools, part_news in zip(self._tools, news, strict=True)
        ]
        tools = [tool for part_tools in self._tools for tool in part_tools]
        return OutsideTools(
            tools=tools, notes=[note for part_news in news if part_news is not None for note in part_news.notes]
        )

    def close(self) -> None:
        """End everything that the parts started."""
        for part in self._parts:
            part.close()

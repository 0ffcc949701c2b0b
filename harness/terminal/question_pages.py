"""Rows shown page by page, and whether all of them were seen at the present size of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.terminal.row_text import Row
from harness.terminal.screen import Screen

LEAST_WIDTH, LEAST_HEIGHT = 21, 5
"""Minimum columns and lines of a terminal on which a question can be answered with a yes."""
BESIDE = 2
"""Number of lines of the terminal that are left free for the line of keys."""


class Pages:
    """Rows, and the number of them that were shown at the terminal's present size.

    INVARIANT: `is_seen` is true only if every row was written at the terminal's present size, and no other program used
    the terminal in between.
    """

    def __init__(self, screen: Screen, title_at: Callable[[int], str], rows_at: Callable[[int], Sequence[Row]]) -> None:
        """Use functions that return the title and the rows for a width."""
        self._screen = screen
        self._title_at = title_at
        self._rows_at = rows_at
        self._rows: Sequence[Row] = ()
        self._next = 0
        self._size, self._keeps = (0, 0), -1
        self._is_seen = False

    @property
    def _size_now(self) -> tuple[int, int]:
        return self._screen.width, self._screen.height

    @property
    def is_current(self) -> bool:
        """Whether the terminal still has the size for which the rows were drawn, and probably still shows them."""
        return self._size_now == self._size and self._screen.keeps == self._keeps

    @property
    def is_tiny(self) -> bool:
        """Whether the terminal is too small for a question."""
        width, height = self._size
        return width < LEAST_WIDTH or height < LEAST_HEIGHT

    @property
    def rows_left(self) -> int:
        """Number of rows that were not shown since the last `begin`."""
        return len(self._rows) - self._next

    @property
    def is_seen(self) -> bool:
        """Whether all rows were shown at the present size."""
        return self._is_seen and self.is_current and not self.is_tiny

    def begin(self) -> None:
        """Show the first page, for the present size of the terminal."""
        if not self.is_current:
            self._is_seen = False
        self._size, self._keeps = self._size_now, self._screen.keeps
        # One column stays free, because some terminals begin a new line after a full one.
        width = max(self._size[0], LEAST_WIDTH) - 1
        self._rows = self._rows_at(width)
        self._next = 0
        self._show(self._page - 1, title=self._title_at(width))

    def go_on(self, *, to_end: bool = False) -> None:
        """Show the next page or, with `to_end`, all remaining rows, for which the user can scroll back."""
        self._show(self.rows_left if to_end else self._page)

    @property
    def _page(self) -> int:
        return max(self._size[1] - BESIDE, 1)

    def _show(self, count: int, *, title: str | None = None) -> None:
        self._screen.passing(self._rows[self._next : self._next + max(count, 1)], title=title)
        self._next = min(self._next + max(count, 1), len(self._rows))
        self._is_seen = self._is_seen or self._next >= len(self._rows)

"""Progress of long work: one live line on stderr, drawn with rich. Only on a terminal, and not for a screen reader.

A thread draws the line once the work has taken a while. If stdout is a pipe, `counted_off` draws no line, because the
reader of the pipe may write to the same terminal.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Self, TextIO, TypeVar

from harness.terminal.console import Look, columns_of
from harness.text.visible import visible_line

SOON = 0.5
"""Seconds after which the line is first drawn."""
EVERY = 0.2
"""Seconds between two drawings."""
ERASE = "\r\x1b[K"
WIDEST = 1_000
WIDEST_BAR, NARROW = 30, 60
"""Width of the bar in cells; and minimum columns of a terminal that shows it."""

ItemT = TypeVar("ItemT")


def is_pipe(stream: TextIO) -> bool:
    """Return whether the stream is a pipe, so that another program reads the output."""
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


class LongWork:
    """Context manager for work that consists of many steps. Its end always erases the line."""

    def __init__(
        self, stream: TextIO, look: Look, total: float, words: Callable[[], str], *, soon: float = SOON
    ) -> None:
        """`total` is the weight of the whole work. `words` returns a description of the progress, as any text."""
        self._stream = stream
        self._look = look
        self._total = total
        self._words = words
        self._soon = soon
        self._done = 0.0
        self._end_event = threading.Event()
        self._lock = threading.Lock()
        self._is_shown = False
        """Whether the live line is at the cursor."""
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Self:
        if self._look.repaints:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_event.set()
        if self._look.repaints:
            self._thread.join()

    def step(self, weight: float = 1) -> None:
        """Add the weight of a finished step."""
        self._done += weight

    def tell(self, line: str) -> None:
        """Write a permanent line above the live one. Raises OSError if it cannot be written."""
        with self._lock:
            self._put(f"{visible_line(line, 5_000)}\n")

    def _put(self, text: str) -> None:
        self._stream.write(f"{ERASE if self._is_shown else ''}{text}")
        self._is_shown = False
        self._stream.flush()

    def _draw(self) -> None:
        if self._end_event.wait(self._soon):
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from harness.terminal.rich_drawing import rich_console

        console = rich_console(self._look.colours, WIDEST, ascii_only=self._look.ascii)
        words = TextColumn("{task.description}", markup=False)
        spinner = SpinnerColumn("line" if self._look.ascii else "dots")
        narrow = Progress(spinner, words, TimeElapsedColumn(), console=console)
        wide = Progress(spinner, BarColumn(WIDEST_BAR), words, TimeElapsedColumn(), console=console)
        for bar in (narrow, wide):
            bar.add_task("", total=self._total or None)
        try:
            while not self._end_event.wait(EVERY):
                width = columns_of(self._stream) - 1  # a full row would move the cursor to the next row
                drawing = wide if width >= NARROW else narrow
                drawing.update(drawing.task_ids[0], completed=self._done, description=visible_line(self._words(), 200))
                with console.capture() as captured:
                    console.print(drawing.get_renderable(), width=width)
                with self._lock:
                    self._put(captured.get().partition("\n")[0])
                    self._is_shown = True
            with self._lock:
                self._put("")
        except (OSError, ValueError):
            pass  # the terminal is gone; the work continues


def counted_off(
    items: Iterable[ItemT], total: int, noun: str, look: Look, weigh: Callable[[ItemT], float] | None = None
) -> Generator[ItemT, None, None]:
    """Yield `items`, and show on stderr how many of `total` are done, unless stdout is a pipe.

    The line is shown until this generator ends or is closed. Close it after an error, because a stack frame may keep
    it alive.
    """
    count = 0
    bar_look = look if total > 1 and not is_pipe(sys.stdout) else Look()
    items = list(items)
    weights = [weigh(item) if weigh else 1.0 for item in items] if bar_look.repaints else [1.0] * len(items)
    with LongWork(sys.stderr, bar_look, sum(weights), lambda: f"{count:,} of {total:,} {noun}") as work:
        for item, weight in zip(items, weights, strict=True):
            yield item
            count += 1
            work.step(weight)

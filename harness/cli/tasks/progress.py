"""How far a batch has come, on stderr: one line written over itself on a terminal, a line a task elsewhere; asks nothing."""

from __future__ import annotations

import time

from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import TextIO

EVERY_SECONDS = 0.2
_LEAST_WIDTH, _BAR = 40, 20


class Progress:
    """Tells how many tasks of how many are done."""

    def __init__(self, stream: TextIO, total: int, *, quiet: bool, width: int) -> None:
        """Write to `stream` for `total` tasks; nothing with `quiet`. `width` is that of the terminal, 0 where it is none."""
        self._stream = stream
        self._total = total
        self._quiet = quiet
        self._width = max(width, _LEAST_WIDTH) if width else 0
        self._began = time.monotonic()
        self._next = 0.0
        self._shown = False
        self.done = 0
        self.failed = 0
        """Of those that are done: how many came to another exit code than 0."""

    def tell(self, line: str) -> None:
        """Write a line that stays, also with `quiet`: a problem."""
        self._clear()
        self._write(f"harness: {visible_line(line, 2_000)}\n")

    def ended(self, name: str, how: str, seconds: float, *, failed: bool, why: str = "") -> None:
        """Count a task; where there is no terminal, say how it ended, and why."""
        self.done += 1
        self.failed += failed
        if not self._quiet and not self._width:
            told = f"{name}: {how}, {seconds:.1f} s ({self.done} of {self._total})"
            self.tell(f"{told}: {why}" if why else told)

    def show(self, running: int, elsewhere: int = 0) -> None:
        """Write the line over itself, where there is a terminal and enough time has passed since the last."""
        now = time.monotonic()
        if self._quiet or not self._width or now < self._next:
            return
        self._next = now + EVERY_SECONDS
        full = _BAR * self.done // self._total if self._total else _BAR
        seconds = int(now - self._began)
        parts = [
            f"[{'#' * full}{'.' * (_BAR - full)}] {self.done}/{self._total} done",
            f"{running} running",
            *([f"{elsewhere} elsewhere"] if elsewhere else []),
            *([f"{self.failed} not with exit code 0"] if self.failed else []),
            f"{seconds // 60}:{seconds % 60:02}",
        ]
        # One column less: a full line would move the cursor to the next.
        line = ", ".join(parts)[: self._width - 1]
        self._shown = True
        self._write(f"\r{line.ljust(self._width - 1)}")

    def finish(self) -> None:
        """Take the line away."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            self._write(f"\r{' ' * (self._width - 1)}\r")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._quiet = True  # nobody reads; the exit code and the summary say it

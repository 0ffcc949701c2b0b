"""What a command prints, shown while it runs: taken in by the thread that reads, told by the one that waits, bounded."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable

from harness.tools.output import readable

KEPT_BYTES = 16_384
"""Of what came since the last event; of more, the oldest is dropped and counted."""


class Live:
    """Tells an observer the readable text that came since it was last told."""

    def __init__(self, observer: Callable[[str], None]) -> None:
        """Take who is told; what it raises is dropped."""
        self._observer = observer
        self._lock = allocate_lock()
        self._kept = b""
        self._dropped = 0

    def add(self, block: bytes) -> None:
        """Take in the next bytes; never waits for the observer."""
        with self._lock:
            kept = self._kept + block[-KEPT_BYTES:]
            self._dropped += len(self._kept) + len(block) - len(kept[-KEPT_BYTES:])
            self._kept = kept[-KEPT_BYTES:]

    def deliver(self, *, last: bool) -> None:
        """Tell what came: whole lines, as far as there are any, unless it is the `last` time."""
        with self._lock:
            end = len(self._kept) if last else _whole(self._kept)
            raw, self._kept = self._kept[:end], self._kept[end:]
            dropped, self._dropped = self._dropped, 0
        if not raw and not dropped:
            return
        text = readable(raw)
        if dropped:
            text = f"[... {dropped:,} bytes not shown ...]\n{text}"
        try:
            self._observer(text)
        except Exception:  # noqa: BLE001, S110 - an observer's fault harms nothing
            pass


def _whole(raw: bytes) -> int:
    """Return how much of `raw` can be shown: up to its last line's end; all of a line that is too long to wait for."""
    end = max(raw.rfind(b"\n"), raw.rfind(b"\r", 0, -1)) + 1  # a CR at the very end may be half of a CR LF
    return end if end or len(raw) < KEPT_BYTES // 4 else len(raw)

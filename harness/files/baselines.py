"""Files that the model has read, with digests, so that it does not overwrite changes it has not seen.

Kept in memory until the session ends.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import OrderedDict

from harness.digest import digest_of
from harness.record import Record

MAX_FILES = 10_000
"""Maximum number of digests. The least recently used is dropped, and that file must be read again."""
_MAX_KEPT_BYTES = 256 * 1024
"""Maximum size of a kept content, in bytes; it is kept to show later changes. A larger file keeps its digest only."""
MAX_ALL_KEPT_BYTES = 16 * 1024 * 1024


class Baseline(Record):
    """A file's content when the model last read it, even if it read one page only."""

    sha256: str
    content: bytes | None
    """The content. `None` if it was too large."""


class Baselines:
    """The baselines of one session, by resolved path. All file tools of a session share one of these."""

    def __init__(self) -> None:
        self._by_path: OrderedDict[str, Baseline] = OrderedDict()
        self._bytes = 0
        self._lock = allocate_lock()
        """For tools that read files on several threads at once."""

    def get(self, real: str) -> Baseline | None:
        """Return the baseline of the file at an absolute, resolved path; `None` if the model never read it."""
        with self._lock:
            baseline = self._by_path.get(real)
            if baseline is not None:
                self._by_path.move_to_end(real)
            return baseline

    def saw(self, real: str, content: bytes, sha256: str = "") -> None:
        """Record that the model read `content` (or a part of it) or wrote it.

        `sha256` is its digest; empty if the caller has none.
        """
        saved = content if len(content) <= _MAX_KEPT_BYTES else None
        baseline = Baseline(sha256=sha256 or digest_of(content), content=saved)
        with self._lock:
            self._forget(real)
            self._by_path[real] = baseline
            self._bytes += len(saved or b"")
            self._bound()

    def _forget(self, real: str) -> None:
        old = self._by_path.pop(real, None)
        if old is not None:
            self._bytes -= len(old.content or b"")

    def _bound(self) -> None:
        while len(self._by_path) > MAX_FILES:
            self._forget(next(iter(self._by_path)))
        if self._bytes <= MAX_ALL_KEPT_BYTES:
            return
        for real, baseline in list(self._by_path.items()):
            if baseline.content is not None:
                self._bytes -= len(baseline.content)
                self._by_path[real] = Baseline(sha256=baseline.sha256, content=None)  # keeps its place in the order
                if self._bytes <= MAX_ALL_KEPT_BYTES:
                    return

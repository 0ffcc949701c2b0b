"""Opens a queue. The packages for queues are imported only by this function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.plugins.fleet.queue.dbos_queue import DbosQueue


def open_queue(
    url: str,
    *,
    key: str | None = None,
    make: bool = True,
    poll_seconds: float | None = None,
    is_gone: Callable[[], bool] = lambda: False,
    away: Callable[[str], None] = lambda _: None,
) -> DbosQueue:
    """Return the queue at `sqlite:///FILE` or `postgresql://USER@HOST/NAME`. With `key`: for the tasks of that API key.

    `make`, `poll_seconds`, `is_gone` and `away` are those of DbosQueue. Raises UsageError if the extra is not
    installed, or if the queue cannot be opened.
    """
    try:
        from harness.plugins.fleet.queue.dbos_queue import DbosQueue
    except ImportError as error:
        if error.name not in ("dbos", "sqlalchemy"):
            raise
        raise UsageError("--queue needs DBOS: pip install 'permission-harness[fleet]'") from None
    return DbosQueue(url, key=key or "", make=make, poll_seconds=poll_seconds, is_gone=is_gone, away=away)

"""Where the repository lies, and what helps its tests."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

SUPPORT = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(SUPPORT))
MEMORY = "/dev/shm"
ROOM_BYTES = 2 << 30


def shell_word(path: Path | str) -> str:
    """Return a path as one word of a shell: the folder of the tests may have blanks in its name."""
    return shlex.quote(str(path))


def in_memory() -> Iterator[Path]:
    """Yield a folder in memory where there is room for one, else on the disk: who writes there waits for none.

    Not for tests whose commands run behind walls: readers may not look into shared memory.
    """
    there = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    with tempfile.TemporaryDirectory(dir=MEMORY if there else None, ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()

"""Before-images that no log names any more: found by reading all logs, and removed; in doubt they stay."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from harness.cli.state import State
from harness.errors import LogError
from harness.heads import HeadsFile
from harness.log_lines import is_in_use
from harness.visible import visible_line

YOUNG_SECONDS = 86_400.0
"""What was kept within the last day stays: a log may be about to name it."""
_CHUNK = 1 << 20
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_IMAGE = re.compile(r"[0-9a-f]{62}")
_UNFINISHED = re.compile(r"[0-9a-f]{62}\.[0-9a-f]+\.tmp")


def remove_unnamed(state: State, now: float) -> tuple[tuple[int, int], str]:
    """Remove the before-images that no log names; return how many, their bytes, and why none was looked at, or nothing.

    They all stay where some log that may name them cannot be read: one in use (an image is kept before its log names it),
    one that was noted elsewhere and is not there.
    """
    images = {digest: path for digest, path in _images(state.before_images) if _age(path, now) > YOUNG_SECONDS}
    if not images:
        return (0, 0), ""
    try:
        doubt = _drop_named(images, state)
    except (OSError, LogError) as error:
        doubt = str(error)
    if doubt:
        return (0, 0), f"before-images stay: {visible_line(doubt, 300)}"
    count = size = 0
    for path in images.values():
        try:
            status = os.stat(path, follow_symlinks=False)
            if now - status.st_mtime <= YOUNG_SECONDS:
                continue  # a run that began meanwhile has kept the same content: see BeforeImages.keep
            os.unlink(path)
        except OSError:
            continue
        count, size = count + 1, size + status.st_size
    return (count, size), ""


def _drop_named(images: dict[str, str], state: State) -> str:
    """Take out of `images` what some log names; return why that cannot be said, or nothing. Raises OSError, LogError."""
    read: set[str] = set()
    while unread := [path for path in _every_log(state) if path not in read]:  # again: reading all of them takes time
        for path in unread:
            if not os.path.isfile(path):
                return f"the log {path} may name some, and is not there"
            if is_in_use(path):
                return f"the log {path} is in use"
            for digest in _digests_in(path):
                images.pop(digest, None)
            read.add(path)
    return ""


def _every_log(state: State) -> dict[str, None]:
    """Return the paths of all logs, those among them that were noted and lie elsewhere. Raises UsageError."""
    paths = dict.fromkeys(os.path.abspath(path) for path in state.log_paths())
    noted = (known.file for known in HeadsFile(state.heads).every() if not known.removed)
    return paths | dict.fromkeys(noted)


def _digests_in(path: str) -> Iterator[str]:
    """Yield what looks like a digest in a log, whatever else is in it: a log that is broken still names images."""
    with open(path, "rb") as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            data = rest + chunk
            for found in _DIGEST.finditer(data):
                yield found[0].decode()
            rest = data[-63:]


def _images(folder: str) -> Iterator[tuple[str, str]]:
    """Yield digest and path of every image, and of what a crash left unfinished (under a name that is no digest)."""
    for first in _names(folder):
        if not re.fullmatch(r"[0-9a-f]{2}", first):
            continue
        for name in _names(os.path.join(folder, first)):
            if _IMAGE.fullmatch(name) or _UNFINISHED.fullmatch(name):
                yield first + name, os.path.join(folder, first, name)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _age(path: str, now: float) -> float:
    try:
        return now - os.stat(path, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0

"""Where a file lies that a person named for writing; a link in the workspace is never followed there. It writes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence

from harness.cli.state import current_folder, here
from harness.errors import UsageError
from harness.paths import is_within
from harness.workspace import MAX_LINKS

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace


def worked_in(arguments: Namespace) -> tuple[str, ...]:
    """Return the folders that a run works in, or is made a copy of, links followed. Raises UsageError."""
    further = (*arguments.add_dir, *((arguments.copied_from,) if arguments.copied_from else ()))
    return here(arguments.cwd), *(os.path.realpath(folder) for folder in further)


def place_of(given: str, folders: Sequence[str], *, told: str = "") -> str:
    """Return the absolute path of what is `given`, links followed; `told` is what a message calls it.

    A link in one of `folders` (absolute, links followed) is whatever the repository, or the model, made of it: it may lead
    to any file of the person's. Raises UsageError where the way crosses one.
    """
    waiting = os.path.join(current_folder(), given).split("/")[::-1]
    real, links = "", 0
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = os.path.dirname(real).rstrip("/")
            continue
        at = f"{real}/{part}"
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            real = at  # no link, or nothing there: whoever opens it says so
            continue
        links += 1
        if links > MAX_LINKS:
            raise UsageError(f"{told or given}: there are too many links on the way")
        if any(is_within(at, folder) for folder in folders):
            raise UsageError(
                f"{told or given}: {at} is a link in the workspace, which may lead anywhere; name another place"
            )
        if target.startswith("/"):
            real = ""
        waiting.extend(target.split("/")[::-1])
    return real or "/"

"""Opened places: the protected places that a verdict lets a command change. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.paths import is_within


def opens_place(changes: Sequence[str], name: str) -> bool:
    """Return whether a command with these `Effects.changes` may change the place `name` (relative to the workspace).

    A place is opened as a whole if a file in it may be changed.
    """
    place = f"/{name}/"
    return any(f"/{opened}/" in place or f"/{opened}/".startswith(place) for opened in changes)


def maintains(path: str, changes: Sequence[str], named_paths: Sequence[str]) -> bool:
    """Return whether a command may have changed the file `path` (absolute), since it names or maintains it."""
    is_named = any(is_within(path, name) for name in named_paths)
    return is_named or any(f"/{name}/" in f"{path}/" for name in changes)

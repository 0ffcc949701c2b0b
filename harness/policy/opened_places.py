"""Opened places: the protected places that a verdict lets a command change, and those that it holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.paths import is_within_any


def opens_place(changes: Sequence[str], name: str) -> bool:
    """Return whether a command with these `Effects.changes` may change the place `name` (relative to the workspace).

    A place is opened as a whole if a file in it may be changed.
    """
    place = f"/{name}/"
    return any(f"/{opened}/" in place or f"/{opened}/".startswith(place) for opened in changes)


def held_places(paths: Sequence[str], root: str, changes: Sequence[str], *, writes_git: bool) -> tuple[str, ...]:
    """Return those of the protected places `paths` that stay unchanged while a command runs in the workspace `root`.

    Without `writes_git`, the folder `.git` is held in place of the places in it, so that no code destroys the history.
    """
    places: dict[str, None] = {}
    for path in paths:
        if not opens_place(changes, path.removeprefix(f"{root}/")):
            repository, is_of_git, _ = path.rpartition("/.git/")
            places[f"{repository}/.git" if is_of_git and not writes_git else path] = None
    return tuple(places)


def maintains(path: str, changes: Sequence[str], named_paths: Sequence[str]) -> bool:
    """Return whether a command may have changed the file `path` (absolute), since it names or maintains it."""
    return is_within_any(path, named_paths) or any(f"/{name}/" in f"{path}/" for name in changes)

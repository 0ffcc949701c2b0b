"""Layers: the paths that differ from the read-only disk in the view of one command, each with its kind.

`bubblewrap` and `view` build mounts from them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache

from harness.paths import is_within_any
from harness.sandbox import landlock
from harness.sandbox.walls import Unenforceable, Walls


class MountLayer(Enum):
    """The kind of a layer."""

    WRITABLE = "writable"
    DEVICE = "device"
    """A writable character device."""
    WAY = "way"
    """A writable folder above a hidden or protected path, mounted onto itself. A mount cannot be renamed or removed."""
    PROTECTED = "protected"
    """A path inside a writable folder that stays unchanged."""
    HIDDEN_FOLDER = "hidden folder"
    HIDDEN_FILE = "hidden file"
    SHOWN = "shown"
    """A readable path below a hidden folder."""


@lru_cache(maxsize=4096)
def _above(folder: str) -> tuple[str, ...]:
    """Return a folder and every folder above it, nearest first."""
    return (folder, *landlock.parents(folder))


def parents(path: str) -> tuple[str, ...]:
    """Return every folder above an absolute path other than `/`, nearest first."""
    return _above(path.rpartition("/")[0] or "/")


_FIXED = (MountLayer.PROTECTED, MountLayer.HIDDEN_FOLDER, MountLayer.HIDDEN_FILE)


def layers_of(walls: Walls, covered: Sequence[str] = ()) -> Mapping[str, MountLayer]:
    """Return the layers of `walls`, folders before their content. Missing paths are left out.

    Hiding takes precedence over writing. `covered` are folders whose content is replaced as a whole. A shown path below
    one is a layer too, and a hidden path is not.

    Raises Unenforceable for a writable path that contains a link now.
    """
    layers: dict[str, MountLayer] = {}
    for path in walls.writable:
        mode = _mode(path)
        if mode is None:
            continue
        if stat.S_ISLNK(mode) or os.path.realpath(path) != path:
            raise Unenforceable(f"cannot allow writing to {path}: it is reached over a link")
        layers[path] = MountLayer.DEVICE if stat.S_ISCHR(mode) else MountLayer.WRITABLE
    hidden = resolved(walls.hide)
    layers |= {path: MountLayer.PROTECTED for path in _protected_paths(walls, hidden) if path not in layers}
    for path in hidden:
        mode = _mode(path)
        if mode is not None and _is_visible(path, walls, covered):
            layers[path] = MountLayer.HIDDEN_FOLDER if stat.S_ISDIR(mode) else MountLayer.HIDDEN_FILE
    for path in (*walls.show, *walls.readable):
        if path in layers or path in hidden or _mode(path) is None:
            continue
        above = parents(path)
        nearest = next((layers[parent] for parent in above if parent in layers), None)
        is_covered = nearest is None and any(folder in above for folder in covered)
        if is_covered or (nearest is MountLayer.HIDDEN_FOLDER and path in walls.show):
            layers[path] = MountLayer.SHOWN
    layers = {path: layer for path, layer in layers.items() if not _is_open_already(path, layers)}
    layers = {**_ways(layers), **layers}
    return {path: layers[path] for path in sorted(layers, key=lambda name: name.split("/"))}


def _is_visible(path: str, walls: Walls, covered: Sequence[str]) -> bool:
    """Return whether a path is outside the covered folders, or in a part of them that the command sees."""
    if not is_within_any(path, covered):
        return True
    parts = {*walls.writable, *walls.show, *walls.readable}
    return path in parts or any(folder in parts for folder in parents(path))


def _is_open_already(path: str, layers: Mapping[str, MountLayer]) -> bool:
    """Return whether a path is writable as part of the folder above it. As a mount of its own, it could not be moved."""
    nearest = next((layers[folder] for folder in parents(path) if folder in layers), None)
    return layers[path] is nearest is MountLayer.WRITABLE


def _protected_paths(walls: Walls, hidden: Sequence[str]) -> Iterator[str]:
    """Yield the existing paths that must stay unchanged. Paths below a hidden path are left out: they would be visible.

    So are paths outside every writable folder, which stay unchanged anyway.
    """
    candidates, closed, open_folders = (*walls.keep, *walls.hold), set(hidden), set(walls.writable)
    for path in resolved(candidates):
        if path not in candidates or _mode(path) is None:
            continue
        above = (path, *parents(path))
        if any(folder in open_folders for folder in above) and not any(folder in closed for folder in above):
            yield path


def _ways(layers: Mapping[str, MountLayer]) -> dict[str, MountLayer]:
    """Return a way for each folder between a writable folder and a hidden or protected path inside it.

    INVARIANT: a hidden or protected path, and a folder above it, cannot be renamed: the kernel refuses to rename a mount.
    Under another name, no rule of a policy would cover it.
    """
    ways: dict[str, MountLayer] = {}
    for path, layer in layers.items():
        above = parents(path)
        base = next((folder for folder in above if folder in layers), "")
        if layer in _FIXED and base and layers[base] is MountLayer.WRITABLE:
            ways |= dict.fromkeys(above[: above.index(base)], MountLayer.WAY)
    return ways


def resolved(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths with links followed, each once. Quick for many paths in the same folders."""
    folders: dict[str, str] = {}
    real_paths: dict[str, None] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        direct = f"{folders[folder].rstrip('/')}/{name}"
        real_paths[os.path.realpath(direct) if os.path.islink(direct) else direct] = None
    return tuple(real_paths)


def _mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None

"""bubblewrap: the walls that Landlock cannot build, as arguments of `bwrap`.

It gives a command its own view of the disk (bwrap(1)): everything read-only, some folders writable, and empty files
and folders over the hidden ones. It never creates a path on the disk for that: a missing path is not covered.

Two options are left out on purpose. `--die-with-parent` would end the command together with the thread that started
it (PR_SET_PDEATHSIG, prctl(2)); the process namespace ends with bwrap's own process group instead. `--new-session`
would take the command out of that group; the caller gives it a session.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from functools import cache

from harness.paths import is_within
from harness.sandbox.landlock import parents
from harness.sandbox.walls import KEPT, Unenforceable, Walls

PROBE_SECONDS = 30.0
BASE = ("--ro-bind", "/", "/", "--unshare-pid", "--unshare-ipc")


def arguments(bubblewrap: str, walls: Walls, filter_descriptor: int | None) -> tuple[str, ...]:
    """Return the arguments to prepend to a command line.

    `filter_descriptor` is the file descriptor from which bwrap reads the system call filter; the process must inherit
    it. Raises Unenforceable for a writable path that contains a link now. bwrap itself follows a link that is created
    later.
    """
    words = [bubblewrap, *BASE]
    if not walls.internet:
        words.append("--unshare-net")
    if os.geteuid() == 0:
        words += ["--cap-drop", "ALL"]
        words += [word for name in KEPT for word in ("--cap-add", name)]
    if filter_descriptor is not None:
        words += ["--seccomp", str(filter_descriptor)]
    layers = _layers(walls)
    for path in sorted(layers, key=lambda name: name.split("/")):  # parent folders before their content
        words += layers[path]
    closed = [path for path, layer in layers.items() if layer[0] == "--tmpfs"]
    # In the new /proc, root could change the kernel's settings. A reader needs no shared memory (/dev/shm).
    closed += ["/proc", "/dev"] if walls.reader else ["/proc"]
    words += [word for path in closed for word in ("--remount-ro", path)]
    return (*words, "--")


def _layers(walls: Walls) -> dict[str, tuple[str, ...]]:
    """Return the bwrap arguments for each path that differs from the read-only disk. Hiding takes precedence over writing."""
    layers: dict[str, tuple[str, ...]] = {"/dev": ("--dev", "/dev"), "/proc": ("--proc", "/proc")}
    for path in walls.writable:
        mode = _mode(path)
        if mode is None:
            continue
        if stat.S_ISLNK(mode) or os.path.realpath(path) != path:
            raise Unenforceable(f"cannot allow writing to {path}: it is reached over a link")
        layers[path] = ("--dev-bind" if stat.S_ISCHR(mode) else "--bind", path, path)
    hidden = tuple(dict.fromkeys(map(os.path.realpath, walls.hide)))
    layers |= {path: ("--ro-bind", path, path) for path in _read_only_paths(walls, hidden) if path not in layers}
    for path in hidden:
        mode = _mode(path)
        if mode is not None:
            layers[path] = ("--tmpfs", path) if stat.S_ISDIR(mode) else ("--ro-bind", "/dev/null", path)
    for path in walls.show:
        if path not in layers and _mode(path) is not None and _hidden_from_above(path, layers):
            layers[path] = ("--ro-bind", path, path)
    layers = {path: layer for path, layer in layers.items() if not _is_writable_already(path, layers)}
    return {**_ways(layers), **layers}


def _is_writable_already(path: str, layers: dict[str, tuple[str, ...]]) -> bool:
    """Return whether a path is writable as part of the folder above it. As a mount of its own, it could not be moved."""
    nearest = next((layers[parent] for parent in parents(path) if parent in layers), ("",))
    return layers[path][0] == nearest[0] == "--bind"


def _read_only_paths(walls: Walls, hidden: Sequence[str]) -> Iterator[str]:
    """Yield the existing paths that must stay unchanged. Paths below a hidden path are left out: they would be visible."""
    for path in (*walls.keep, *walls.hold):
        mode = _mode(path)
        if mode is None or stat.S_ISLNK(mode) or os.path.realpath(path) != path:
            continue
        if not any(is_within(path, folder) for folder in hidden):
            yield path


def _ways(layers: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return layers that bind each folder between a writable folder and a layer inside it onto itself.

    INVARIANT: a hidden or protected path, and a folder above it, cannot be renamed: the kernel refuses to rename a mount.
    """
    ways: dict[str, tuple[str, ...]] = {}
    for path, layer in layers.items():
        above = parents(path)
        base = next((folder for folder in above if folder in layers), "")
        if layer[0] != "--bind" and base and layers[base][0] == "--bind":
            ways |= {folder: ("--bind", folder, folder) for folder in above[: above.index(base)]}
    return ways


def _hidden_from_above(path: str, layers: dict[str, tuple[str, ...]]) -> bool:
    nearest = next((layers[parent] for parent in parents(path) if parent in layers), ())
    return "--tmpfs" in nearest


def _mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None


@cache
def find() -> str:
    """Return the path of a `bwrap` that works for this user, or an empty string. Runs it once (at most PROBE_SECONDS).

    Only programs in system folders that root owns are accepted, since bwrap enforces the walls.
    """
    import subprocess

    for path in ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"):
        try:
            if os.stat(path).st_uid != 0:
                continue
            command = [*arguments(path, Walls(write=(), network=False), None), "/proc/self/exe", "--version"]
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False, env={}
            )
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0:
            return path
    return ""

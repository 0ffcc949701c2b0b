"""bubblewrap: the walls that Landlock cannot build, as arguments of `bwrap`.

It gives a command its own view of the disk (bwrap(1)): everything read-only, some folders writable, and empty files
and folders over the hidden ones. It never creates a path on the disk for that: a missing path is not covered.

Two options are left out on purpose. `--die-with-parent` would end the command together with the thread that started
it (PR_SET_PDEATHSIG, prctl(2)); the process namespace ends with bwrap's own process group instead. `--new-session`
would take the command out of that group; the caller gives it a session.
"""

from __future__ import annotations

import os
from functools import cache
from typing import assert_never

from harness.sandbox.layers import MountLayer, layers_of
from harness.sandbox.walls import KEPT, Walls

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
    layers = layers_of(walls)
    words += ["--dev", "/dev", "--proc", "/proc"]
    for path, layer in layers.items():
        words += _words(path, layer)
    closed = [path for path, layer in layers.items() if layer is MountLayer.HIDDEN_FOLDER]
    # In the new /proc, root could change the kernel's settings. A reader needs no shared memory (/dev/shm).
    closed += ["/proc", "/dev"] if walls.reader else ["/proc"]
    words += [word for path in closed for word in ("--remount-ro", path)]
    return (*words, "--")


def _words(path: str, layer: MountLayer) -> tuple[str, ...]:
    """Return the arguments for one layer."""
    match layer:
        case MountLayer.WRITABLE | MountLayer.WAY:
            return ("--bind", path, path)
        case MountLayer.DEVICE:
            return ("--dev-bind", path, path)
        case MountLayer.PROTECTED | MountLayer.SHOWN:
            return ("--ro-bind", path, path)
        case MountLayer.HIDDEN_FOLDER:
            return ("--tmpfs", path)
        case MountLayer.HIDDEN_FILE:
            return ("--ro-bind", "/dev/null", path)
        case _:
            assert_never(layer)


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

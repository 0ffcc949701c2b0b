"""Views of this process: a description for each recent combination of walls, with a number for the keeper.

A description, with its number, is used again while every path of the walls, and every folder above one, is the same file or
folder. The keeper notices what happens to the mounts (see `kept_views`).
"""

from __future__ import annotations

import itertools
import os
import stat
from _thread import allocate_lock
from collections.abc import Iterator, Mapping

from harness.paths import is_within, is_within_any
from harness.record import replace
from harness.sandbox.layers import layers_of, parents
from harness.sandbox.view import MOST_KEPT, RUN, View
from harness.sandbox.walls import TEMPORARY, Walls, covered_places

_RESOLVER = "/etc/resolv.conf"
_State = tuple[int, ...] | None
"""Identity of a file, folder or link. `None` if it is missing or cannot be reached."""


class Views:
    """The recent views. Several threads may use them."""

    def __init__(self) -> None:
        self._views: dict[Walls, tuple[Mapping[str, _State], View]] = {}
        self._numbers = itertools.count(1)
        self._lock = allocate_lock()

    def of(self, walls: Walls) -> View:
        """Return the view for `walls`, from the current state of the disk. Raises Unenforceable for a link, OSError."""
        if walls.sockets:
            walls = walls.showing(_sockets_to_show(walls))
        with self._lock:
            earlier = self._views.pop(walls, None)
            if earlier is None or any(_state(path) != state for path, state in earlier[0].items()):
                # INVARIANT: the states are read first, so that a later change makes this view out of date.
                states = _states(walls)
                earlier = states, {**_described(walls), "number": next(self._numbers)}
            self._views[walls] = earlier  # the most recently used is last
            while len(self._views) > MOST_KEPT:
                self._views.pop(next(iter(self._views)))
            return earlier[1]


def _described(walls: Walls) -> View:
    covered = _covered(walls)
    if walls.own_tmp:  # what was judged to be in it must not be the machine's
        write = (
            path for path in walls.write if not is_within_any(path, covered) or is_within_any(path, walls.readable)
        )
        walls = replace(walls, write=tuple(write))
    resolver = os.path.realpath(_RESOLVER) if walls.internet else ""
    if RUN in covered and is_within(resolver or "/", RUN):
        walls = walls.showing((resolver,))
    return {
        "layers": [(path, layer.value) for path, layer in layers_of(walls, covered).items()],
        "covered": covered,
        "temporary": walls.temporary or "",
        "reader": walls.reader,
        "console": walls.console,
    }


def _covered(walls: Walls) -> list[str]:
    """Return the folders whose content is replaced as a whole."""
    covered = ["/dev"] if walls.sockets else ["/dev", RUN]
    if walls.temporary is not None and (walls.own_tmp or not walls.reader):
        covered += [path for path in covered_places() if path not in walls.readable]
    return covered


def _sockets_to_show(walls: Walls) -> Iterator[str]:
    """Yield the Unix sockets in covered folders that are not hidden. Raises OSError."""
    covered, hidden = _covered(walls), tuple(map(os.path.realpath, walls.hide))
    for path in named_sockets():
        if is_within_any(path, covered) and not is_within_any(path, hidden):
            yield path


def named_sockets() -> Iterator[str]:
    """Yield the paths of the Unix sockets that programs of this machine have bound. Raises OSError.

    The kernel lists them by network. So sockets of the commands in walls are not among them.
    """
    with open("/proc/net/unix", "rb") as file:
        for line in file:
            path = line.partition(b" /")[2].rstrip(b"\n")
            if path:
                yield os.path.realpath(b"/" + path).decode("utf-8", "surrogateescape")


def _states(walls: Walls) -> Mapping[str, _State]:
    """Return the state of each path of `walls`, of the folders above it, and of what links lead to."""
    states: dict[str, _State] = {}
    waiting = [
        *walls.writable,
        *walls.keep,
        *walls.hold,
        *walls.hide,
        *walls.show,
        *walls.readable,
        *TEMPORARY,
        _RESOLVER,
    ]
    while waiting:
        path = waiting.pop()
        for place in (path, *parents(path)):
            if place in states:
                break
            states[place] = state = _state(place)
            if state is not None and stat.S_ISLNK(state[2]):
                folder = os.path.realpath(os.path.dirname(place))
                waiting += [os.path.normpath(os.path.join(folder, os.readlink(place))), os.path.realpath(place)]
    return states


def _state(path: str) -> _State:
    """Return the identity of what is at a path. A link has its time too, since another one may get its number."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    identity = (status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode))
    return (*identity, status.st_ctime_ns) if stat.S_ISLNK(status.st_mode) else identity

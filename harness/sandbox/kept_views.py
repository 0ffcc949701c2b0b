"""Kept views: the mount namespaces of the last views, so that the next command with the same view enters it again.

A view takes some 30 microseconds for each path. Entering one again takes as long for 200 hidden files as for none.

INVARIANT: a kept view has a mount for each of its layers. If another program removes or replaces a covered path, the kernel
removes its mount, and reports that by the `mountinfo` of the namespace (proc_pid_mountinfo(5)). Then the view is built anew.
The kernel does not report a renamed path, but the harness sees another file there: such a view gets another number (see
`views`). Commands can rename no folder above a mount, since it is a mount too.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence

from harness.record import Record
from harness.sandbox import kernel, mounts
from harness.sandbox.view import MOST_KEPT, View, build


class KeptView(Record):
    """One view, as descriptors."""

    namespace: int
    changes: int
    """The opened `mountinfo` of that namespace, which reports changes to poll(2)."""


class KeptViews:
    """The kept views of a keeper. They are used by one thread at a time."""

    def __init__(self) -> None:
        """Initialize for the calling process. INVARIANT: `/proc` shows this process, as it does before `namespaces.make`."""
        self._processes = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
        self._outside = self._opened("mountinfo")
        self._views: dict[object, KeptView] = {}

    @property
    def descriptors(self) -> Sequence[int]:
        """All open descriptors."""
        views = (number for view in self._views.values() for number in (view.namespace, view.changes))
        return (self._processes, self._outside, *views)

    def enter(self, view: View, *, has_own_processes: bool) -> None:
        """Move the calling thread into the mount namespace of `view`, which is built at the first need (see `build`).

        Raises OSError. INVARIANT: the thread was started for one command.
        """
        if _has_changed(self._outside):  # such as a new disk, which the views do not have
            self.forget()
        number = view["number"]
        earlier = self._views.pop(number, None)
        if earlier is not None and _has_changed(earlier.changes):
            _close(earlier)
            earlier = None
        if earlier is None:
            is_whole = build(view, has_own_processes=has_own_processes)
            if not is_whole or view["console"]:  # another terminal may get the name of an ended one
                return
            earlier = KeptView(namespace=self._opened("ns/mnt"), changes=self._opened("mountinfo"))
        else:
            kernel.new_namespaces(mounts.OWN_FOLDER)
            mounts.enter_namespace(earlier.namespace, mounts.NEW_MOUNTS)
        self._views[number] = earlier  # the most recently used is last
        while len(self._views) > MOST_KEPT:
            _close(self._views.pop(next(iter(self._views))))

    def forget(self) -> None:
        """Close every kept view. A view keeps the disks in it busy."""
        while self._views:
            _close(self._views.popitem()[1])

    def _opened(self, name: str) -> int:
        return os.open(f"thread-self/{name}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._processes)


def _has_changed(mountinfo: int) -> bool:
    """Return whether mounts were added or removed since the last call."""
    poll = select.poll()
    poll.register(mountinfo, select.POLLPRI)
    return bool(poll.poll(0))


def _close(view: KeptView) -> None:
    os.close(view.namespace)
    os.close(view.changes)

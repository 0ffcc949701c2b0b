"""Confinement: the built walls of one command. The thread that starts the command enters them first.

INVARIANT: for a wall that cannot be enforced, `prepare` raises, or `gaps` lists it. This is before any start.
"""

from __future__ import annotations

import errno
import os
from _thread import get_native_id
from enum import Enum
from functools import lru_cache
from types import TracebackType
from typing import Self

from harness.process.start import Starter
from harness.sandbox import bubblewrap, kernel, landlock, seatbelt, seccomp
from harness.sandbox.landlock import Rulesets
from harness.sandbox.machine import LEAST_LANDLOCK, SIGNALS_LANDLOCK, Machine, keeper_here, why_no_namespaces
from harness.sandbox.views import Views
from harness.sandbox.walls import KEPT_BITS, Network, Unenforceable, Walls
from harness.system import IS_LINUX

_rulesets = Rulesets()
_views = Views()


class Unhidden(Enum):
    """The treatment of a hidden path that cannot be hidden on this machine."""

    REFUSE = "refuse"
    """`prepare` raises Unenforceable."""
    TELL = "tell"
    """The command may run, and `gaps` says what it can reach."""


class Confinement:
    """Walls that are ready to enter. The entering thread must start one command and do nothing else after that."""

    def __init__(
        self,
        *,
        walls: Walls,
        ruleset: int | None,
        program: bytes | None,
        capabilities: int | None,
        prefix: tuple[str, ...] = (),
        descriptors: tuple[int, ...] = (),
        gaps: tuple[str, ...] = (),
        starter: Starter | None = None,
    ) -> None:
        self.walls = walls
        self.prefix = prefix
        """Arguments to prepend to the command line."""
        self.descriptors = descriptors
        """File descriptors that the started process must inherit."""
        self.gaps = gaps
        """Requested walls that are not enforced, a sentence each."""
        self.starter = starter
        """Starts the command in namespaces, in place of a thread of this process. `None` without namespaces."""
        self._ruleset = ruleset
        self._program = program
        self._capabilities = capabilities
        self._open = True

    @property
    def has_own_tmp(self) -> bool:
        """Whether the `/tmp` of the command is `walls.temporary`."""
        return self.starter is not None and (self.walls.own_tmp or not self.walls.reader)

    def enter(self) -> None:
        """Confine the calling thread, and everything that it starts later, forever.

        Raises OSError if any part fails; then the thread must not start anything. Raises RuntimeError on the main thread,
        which could never leave the walls, and for walls in which only `starter` can start a command.
        """
        if not self._open:
            raise OSError(errno.EBADF, "these walls were closed before anything went behind them")
        if self.starter is not None:
            raise RuntimeError("these walls have namespaces: only their keeper starts a command in them")
        if get_native_id() == os.getpid():
            raise RuntimeError("the main thread would be confined for ever: enter on a thread that starts one command")
        if not IS_LINUX:
            return  # Seatbelt's program confines itself
        kernel.forbid_new_privileges()
        if self._capabilities is not None:
            kernel.keep_capabilities(self._capabilities)
        if self._ruleset is not None:
            kernel.restrict_thread(self._ruleset)
        if self._program is not None:
            kernel.filter_calls(self._program)

    def close(self) -> None:
        """Close the file descriptors. Threads stay confined. May be called more than once."""
        if self._open:
            self._open = False
            for descriptor in (*self.descriptors, *(() if self._ruleset is None else (self._ruleset,))):
                os.close(descriptor)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the confinement."""
        self.close()


def prepare(walls: Walls, machine: Machine, *, unhidden: Unhidden = Unhidden.REFUSE) -> Confinement:
    """Build `walls` on `machine` (from `probe`) for one command. The caller must close the result.

    A reader is confined by Landlock and a system call filter, unless it needs its own `/tmp`. Any other command gets
    namespaces of its own where this machine has them, else bubblewrap for paths that Landlock cannot hide, else Landlock
    alone.

    Raises Unenforceable (an OSError) if the machine cannot build the walls, another OSError if the kernel refuses. Then
    the caller must not start the command.
    """
    for path in (*walls.writable, *walls.hide, *walls.show, *walls.readable, *walls.keep, walls.console or "/"):
        _check_path(path)
    if machine.seatbelt:
        return Confinement(
            walls=walls,
            ruleset=None,
            program=None,
            capabilities=None,
            prefix=seatbelt.prefix(walls, machine.seatbelt),
        )
    return _by_linux(walls, machine, unhidden)


def _by_linux(walls: Walls, machine: Machine, unhidden: Unhidden) -> Confinement:
    """Return walls of Linux."""
    if not machine.seccomp:
        raise Unenforceable("; ".join(machine.reasons) or "system calls cannot be filtered on this machine")
    kernel.load()
    has_landlock = machine.landlock >= LEAST_LANDLOCK
    needs_keeper = walls.own_network or walls.meets_servers or walls.own_tmp
    is_for_keeper = needs_keeper or not has_landlock or not walls.reader
    if is_for_keeper and not why_no_namespaces(machine):
        return _by_namespaces(walls, machine)
    if needs_keeper:
        subject = "a /tmp" if walls.own_tmp else "a network"
        raise Unenforceable(f"{subject} of its own needs namespaces: {why_no_namespaces(machine)}")
    calls = seccomp.Calls(
        network=walls.network,
        sockets=walls.sockets,
        metadata=not walls.reader,
        terminal=walls.terminal,
        signals=machine.landlock >= SIGNALS_LANDLOCK or not walls.reader,
    )
    program = seccomp.program(machine.seccomp, calls)
    if not has_landlock:
        if not machine.bubblewrap:
            raise Unenforceable("; ".join(machine.reasons) or "the Landlock of this machine is missing or too old")
        return _by_bubblewrap(machine.bubblewrap, walls, machine.landlock, program)
    ruleset, gaps = _rulesets.copy(walls, machine.landlock)
    if not gaps:
        return _by_landlock(walls, ruleset, program, ())
    program_path = bubblewrap.find() if machine.bubblewrap is None else machine.bubblewrap
    if unhidden is Unhidden.TELL and not program_path:
        return _by_landlock(walls, ruleset, program, gaps)
    os.close(ruleset)
    if not program_path:
        raise Unenforceable("; ".join((*gaps, "bubblewrap could do it, and does not work here")))
    return _by_bubblewrap(program_path, walls, machine.landlock, program)


def _by_namespaces(walls: Walls, machine: Machine) -> Confinement:
    """Return walls that the keeper builds.

    A reader with a network of its own needs no view, since Landlock confines its files. In a view, a Landlock domain
    keeps devices from being made, and what the namespaces share with the machine closed. What a view does not let a
    command write is read-only, so that modes and times may be set there.
    """
    is_alone = walls.reader and not walls.own_tmp and machine.landlock >= LEAST_LANDLOCK
    calls = seccomp.Calls(
        network=walls.internet or not walls.reader,
        sockets=walls.sockets,
        metadata=not walls.reader or walls.own_tmp,
        terminal=walls.terminal,
        signals=True,
    )
    view = None if is_alone else _views.of(walls)
    gaps: tuple[str, ...] = ()
    ruleset: int | None
    if is_alone:
        ruleset, gaps = _rulesets.copy(walls, machine.landlock)
    else:
        signals = not keeper_here(machine).separates_processes
        write = (*walls.writable, walls.console) if walls.console else walls.writable
        ruleset = landlock.in_view(machine.landlock, write, abstract=walls.network, signals=signals)
    starter = keeper_here(machine).starter(
        view=view,
        network=Network.MACHINE if walls.network else Network.DOOR if walls.own_network else Network.SESSION,
        capabilities=kernel.capabilities() & KEPT_BITS,
        ruleset=ruleset,
        program=seccomp.program(machine.seccomp, calls),
    )
    return Confinement(
        walls=walls,
        ruleset=ruleset,
        program=None,
        capabilities=None,
        gaps=gaps,
        starter=starter,
    )


@lru_cache(maxsize=4096)
def _check_path(path: str) -> None:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise Unenforceable(f"{path!r} is not a valid file name") from None
    if not path.startswith("/") or path.startswith("//") or os.path.normpath(path) != path or "\0" in path:
        raise Unenforceable(f"{path!r} is not an absolute path in its shortest form")


def _by_landlock(walls: Walls, ruleset: int, program: bytes, gaps: tuple[str, ...]) -> Confinement:
    try:
        capabilities = kernel.capabilities()
    except BaseException:
        os.close(ruleset)
        raise
    kept_capabilities = capabilities & KEPT_BITS
    return Confinement(
        walls=walls,
        ruleset=ruleset,
        program=program,
        capabilities=None if kept_capabilities == capabilities else kept_capabilities,
        gaps=gaps,
    )


def _by_bubblewrap(path: str, walls: Walls, version: int, program: bytes) -> Confinement:
    """Return walls that bubblewrap builds. It installs the filter after its mounts.

    A Landlock domain without rules for files confines signals and ports, if the version supports that.
    """
    descriptor = os.memfd_create("filter", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, program)
        os.lseek(descriptor, 0, os.SEEK_SET)
        prefix = bubblewrap.arguments(path, walls, descriptor)
        ruleset = landlock.scopes(version, network=walls.network)
    except BaseException:
        os.close(descriptor)
        raise
    return Confinement(
        walls=walls, ruleset=ruleset, program=None, capabilities=None, prefix=prefix, descriptors=(descriptor,)
    )

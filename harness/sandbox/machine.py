"""Machine: the walls that this machine can enforce. `probe` tests them by entering some on a temporary thread."""

from __future__ import annotations

import errno
import os
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from harness.record import Record, replace
from harness.sandbox import bubblewrap, kernel, landlock, seccomp
from harness.sandbox.landlock import ReadablePaths
from harness.sandbox.system_calls import ARCHITECTURES
from harness.system import IS_LINUX

if TYPE_CHECKING:
    from harness.sandbox.keeper import Keeper

LEAST_LANDLOCK = 3
"""First version that controls truncation (Linux 6.2). With an older one, a reader could empty files."""
SIGNALS_LANDLOCK = 6
"""First version that confines signals and abstract Unix sockets (Linux 6.12)."""

SYSTEMS = {"darwin": "macOS", "freebsd": "FreeBSD"}
"""Names of systems, by the word of Python."""
NOT_TRIED = "not tried"
WHY_NO_LANDLOCK = {
    errno.ENOSYS: "this kernel has no Landlock (Linux 6.2 or newer is needed)",
    errno.EOPNOTSUPP: "Landlock is turned off at boot (add it to the lsm= parameter of the kernel)",
    errno.EPERM: "something forbids Landlock's system calls (the seccomp profile of a container; allow landlock_*)",
}


class Machine(Record):
    """The walls that this machine can enforce."""

    landlock: int
    """Version of Landlock's interface. 0 without Landlock."""
    seccomp: str
    """Architecture for the system call filter. Empty if system calls cannot be filtered."""
    bubblewrap: str | None = None
    """Path of a working bwrap, empty if there is none. `None` if it is untested; it is tested when walls require it."""
    no_namespaces: str | None = NOT_TRIED
    """Reason why commands cannot have namespaces of their own. Empty if they can. `None` if that is untested; it is tested
    when walls require it."""
    reasons: tuple[str, ...] = ()
    """Reasons for missing abilities."""
    seatbelt: str = ""
    """Path of a sandbox-exec whose walls have held here (`seatbelt_trial`). Empty anywhere but on such a Mac."""
    in_session: bool = False
    """Whether commands in namespaces stay in the session and process group of this process."""


def keeper_here(machine: Machine | None = None) -> Keeper:
    """Return the keeper of this process for commands on `machine`. It may not run yet."""
    from harness.sandbox.keeper import keeper  # many processes confine nothing

    return keeper(in_session=machine is not None and machine.in_session)


@cache
def probe() -> Machine:
    """Return the walls that this machine enforces for this process. They are tested once.

    Never raises: an ability that fails counts as missing, and `reasons` says why.
    """
    if not IS_LINUX:
        reason = f"harness has no walls on {SYSTEMS.get(sys.platform, sys.platform)}"
        return Machine(landlock=0, seccomp="", bubblewrap="", no_namespaces=reason, reasons=(reason,))
    reasons = []
    version, reason = landlock_trial()
    if reason:
        reasons.append(reason)
    architecture, reason = seccomp_trial()
    if reason:
        reasons.append(reason)
    has_landlock = version >= LEAST_LANDLOCK
    return Machine(
        landlock=version,
        seccomp=architecture,
        bubblewrap=None if has_landlock else bubblewrap.find(),
        no_namespaces=None if has_landlock else keeper_here().why_not(),
        reasons=tuple(reasons),
    )


def enforces(machine: Machine) -> bool:
    """Return whether the machine can confine writing and the network."""
    if machine.seatbelt:
        return True
    is_able = machine.landlock >= LEAST_LANDLOCK or bool(machine.bubblewrap) or machine.no_namespaces == ""
    return bool(machine.seccomp) and is_able


def why_no_namespaces(machine: Machine) -> str:
    """Return the reason why commands cannot have namespaces of their own. Empty if they can. Tests that if necessary."""
    if machine.no_namespaces is not None:
        return machine.no_namespaces
    return keeper_here(machine).why_not() if machine.seccomp else "system calls cannot be filtered here"


def hides_where_it_may_write(machine: Machine) -> bool:
    """Return whether a file can be hidden and protected in a writable folder, by namespaces or bubblewrap.

    Both are tested if necessary.
    """
    if machine.seatbelt or not why_no_namespaces(machine):
        return True
    return bool(bubblewrap.find() if machine.bubblewrap is None else machine.bubblewrap)


def tried(machine: Machine) -> Machine:
    """Return the machine with its untested abilities tested."""
    path = bubblewrap.find() if machine.bubblewrap is None else machine.bubblewrap
    return replace(machine, bubblewrap=path, no_namespaces=why_no_namespaces(machine))


def describe(machine: Machine) -> str:
    """Return the abilities in one short line: `Landlock 7, seccomp, namespaces`.

    Namespaces are named if they were tested, or are being tested since this session has started its keeper.
    """
    parts = [f"Landlock {machine.landlock}"] if machine.landlock else []
    parts += ["seccomp"] if machine.seccomp else []
    if known_no_namespaces(machine) == "":
        parts.append("namespaces")
    parts += ["bubblewrap"] if machine.bubblewrap else []
    parts += ["Seatbelt"] if machine.seatbelt else []
    return ", ".join(parts) or "none"


def known_no_namespaces(machine: Machine) -> str | None:
    """Return the result of `why_no_namespaces`. `None` if that is untested, and no keeper was started for a test."""
    is_started = "harness.sandbox.keeper" in sys.modules and keeper_here(machine).is_started
    return why_no_namespaces(machine) if is_started else machine.no_namespaces


def missing(machine: Machine) -> tuple[str, ...]:
    """Return a sentence with the reason for each missing ability."""
    reasons = list(machine.reasons)
    if 0 < machine.landlock < LEAST_LANDLOCK:
        reasons.append(
            f"Landlock {machine.landlock} does not keep files from being emptied (Linux 6.2 or newer is needed)"
        )
    elif LEAST_LANDLOCK <= machine.landlock < SIGNALS_LANDLOCK:
        reasons.append(
            f"Landlock {machine.landlock} does not keep signals and abstract Unix sockets inside: a command that may write "
            "can end other programs of the same user (Linux 6.12 or newer is needed)"
        )
    if machine.no_namespaces and machine.no_namespaces != NOT_TRIED and machine.no_namespaces not in reasons:
        reasons.append(f"commands get no namespaces of their own: {machine.no_namespaces}")
    if machine.bubblewrap == "" and machine.no_namespaces not in ("", *reasons):
        reasons.append("bubblewrap does not work here: nothing can be hidden inside a folder that may be written")
    return tuple(reasons)


@cache
def landlock_trial() -> tuple[int, str]:
    """Return the version of Landlock and an empty string, or 0 and the reason why it does not work. Tested once."""
    try:
        version = kernel.landlock_version()
        nothing = ReadablePaths(whole_paths={}, listed_folders={}, too_large=())
        rules, _ = landlock.ruleset(
            landlock.Rules(version=version, readable=nothing, write={}, network=False, reader=True)
        )
    except OSError as error:
        return 0, WHY_NO_LANDLOCK.get(error.errno or 0, f"Landlock does not work: {error}")

    def enter() -> None:
        kernel.forbid_new_privileges()
        kernel.restrict_thread(rules)

    try:
        refusal = _refusal(enter, lambda: os.close(os.open("/", os.O_RDONLY | os.O_CLOEXEC)))
    finally:
        os.close(rules)
    if isinstance(refusal, OSError) and refusal.errno == errno.E2BIG:
        return 0, "too many sandboxes are nested in each other (at most 16 Landlock domains)"
    if isinstance(refusal, OSError) and refusal.errno == errno.EACCES and refusal.filename == "/":
        return version, ""
    return 0, f"Landlock was tried and did not hold: {refusal}"


@cache
def seccomp_trial() -> tuple[str, str]:
    """Return the architecture and an empty string, or an empty string and the reason why filtering does not work.

    Tested once.
    """
    architecture = os.uname().machine
    if architecture not in ARCHITECTURES or sys.byteorder != "little" or sys.maxsize < 2**32:
        return "", f"no system call filter is written for this architecture ({architecture}), so the network stays open"
    calls = seccomp.Calls(network=False, sockets=False, metadata=False, signals=True)
    program = seccomp.program(architecture, calls)

    def enter() -> None:
        kernel.forbid_new_privileges()
        kernel.filter_calls(program)

    refusal = _refusal(enter, kernel.try_socket)
    if isinstance(refusal, OSError) and refusal.errno == errno.EPERM and str(refusal).startswith("[Errno 1] socket"):
        return architecture, ""
    return "", f"system calls cannot be filtered here: {refusal}"


def _refusal(enter: Callable[[], None], attempt: Callable[[], object]) -> object:
    """Return the error of `attempt` after `enter` on a new thread, or the error of `enter`. `None` if both succeeded."""
    errors: list[BaseException] = []
    done = allocate_lock()
    done.acquire()

    def work() -> None:
        try:
            enter()
            attempt()
        except BaseException as error:  # noqa: BLE001 - returned by the waiting thread
            errors.append(error)
        finally:
            done.release()

    start_new_thread(work, ())
    done.acquire()
    return errors[0] if errors else None

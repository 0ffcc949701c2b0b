"""The system calls for confinement, through ctypes. Arguments are numbers and bytes; failures raise OSError.

The functions that confine affect only the calling thread and what it starts later. This cannot be undone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from functools import cache

# <linux/prctl.h>, <linux/seccomp.h>
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
# <linux/capability.h>: the version in which each set has two words of 32 bits.
CAPABILITY_VERSION = 0x20080522
# <asm/unistd.h>: system calls since 5.1 have one number on every architecture that seccomp.py knows.
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446


_NONE = (0,) * 6


class _Library:
    """The C library, loaded on first use."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., int]] = {}

    def call(self, function: str, *arguments: int | bytes | None) -> int:
        """Call a function of the C library that returns -1 on failure. Raises OSError."""
        loaded = self.function(function)
        long = ctypes.c_long  # a plain int would be passed as 32 bits
        answer = loaded(*(long(value) if isinstance(value, int) else value for value in arguments))
        if answer == -1:
            number = ctypes.get_errno()
            raise OSError(number, f"{function}: {os.strerror(number)}")
        return answer

    def function(self, name: str) -> Callable[..., int]:
        """Return a function of the C library. Raises OSError if it does not exist."""
        if name not in self._functions:
            try:
                function = getattr(ctypes.CDLL(None, use_errno=True), name)
            except (AttributeError, OSError) as error:
                raise OSError(errno.ENOSYS, f"the C library has no {name}") from error
            function.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
            self._functions[name] = function
        return self._functions[name]

    def address(self, data: bytes) -> tuple[int, object]:
        """Return the address of a copy of `data` in memory, and the object that keeps it alive."""
        buffer = ctypes.create_string_buffer(data, len(data))
        return ctypes.addressof(buffer), buffer


_library = _Library()


def load() -> None:
    """Load the functions of the C library that confinement needs. Raises OSError if one is missing.

    INVARIANT: `prepare` calls this, so that a confined thread imports no module, which it may not be able to read.
    """
    for function in ("syscall", "prctl", "capget", "capset", "socket"):
        _library.function(function)


def load_for_namespaces() -> None:
    """Load the functions for `load` and for namespaces. Raises OSError if one is missing."""
    load()
    for function in ("unshare", "setns"):
        _library.function(function)


def call(function: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library that returns -1 on failure. Raises OSError."""
    return _library.call(function, *arguments)


@cache
def _quick_call() -> Callable[..., int]:
    """Return syscall(2) with fixed types of arguments, which are converted faster. A pointer takes integers too."""
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 6
    function.restype = ctypes.c_long
    return function


def system_call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call (syscall(2)). Raises OSError."""
    answer = _quick_call()(number, *arguments, *_NONE[len(arguments) :])
    if answer == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer


def new_namespaces(flags: int) -> None:
    """Move the calling process into new namespaces (unshare(2)). Raises OSError."""
    _library.call("unshare", flags)


def landlock_version() -> int:
    """Return the version of Landlock's interface, 1 or more.

    Raises OSError: ENOSYS if the kernel has no Landlock, EOPNOTSUPP if it is turned off.
    """
    return _library.call("syscall", LANDLOCK_CREATE_RULESET, None, 0, 1)


def create_ruleset(filesystem: int, network: int, scoped: int) -> int:
    """Return the file descriptor of an empty ruleset that denies the given rights (landlock(7)). Raises OSError."""
    # An older kernel expects a shorter structure, and accepts this longer one if the rest is zero.
    attributes = struct.pack("=QQQ", filesystem, network, scoped)
    return _library.call("syscall", LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)


def add_path(ruleset: int, rights: int, descriptor: int) -> None:
    """Allow `rights` in and below the opened folder, or on the opened file. Raises OSError."""
    _library.call("syscall", LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0)


def restrict_thread(ruleset: int) -> None:
    """Restrict the calling thread, and all that it starts, by `ruleset`. Raises OSError: E2BIG for the 17th ruleset."""
    try:
        _library.call("syscall", LANDLOCK_RESTRICT_SELF, ruleset, 0)
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        raise OSError(
            errno.E2BIG, "there are 16 Landlock domains around this already, and no more are possible"
        ) from error


def forbid_new_privileges() -> None:
    """Prevent set-user-ID programs from giving rights to the calling thread or what it starts (prctl(2)).

    Raises OSError.
    """
    _library.call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def filter_calls(program: bytes) -> None:
    """Filter the system calls of the calling thread, and of all that it starts, by a BPF program (seccomp(2)).

    Raises OSError.
    """
    address, _buffer = _library.address(program)
    _library.call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, struct.pack("@HP", len(program) // 8, address), 0, 0)


def try_socket() -> None:
    """Create an internet socket and close it again (socket(2)). Raises OSError."""
    os.close(_library.call("socket", 2, 1, 0))


def capabilities() -> int:
    """Return the permitted capabilities of the calling thread, as a set of bits. Raises OSError."""
    sets = bytearray(24)
    address, buffer = _library.address(bytes(sets))
    _library.call("capget", struct.pack("=Ii", CAPABILITY_VERSION, 0), address)
    low, high = struct.unpack("=4xI8xI4x", bytes(buffer))  # type: ignore[call-overload]
    return int(low | high << 32)


def keep_capabilities(capabilities: int) -> None:
    """Set the permitted and effective capabilities of the calling thread; clear the inheritable ones. Raises OSError."""
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    sets = struct.pack("=IIIIII", low, low, 0, high, high, 0)
    _library.call("capset", struct.pack("=Ii", CAPABILITY_VERSION, 0), sets)

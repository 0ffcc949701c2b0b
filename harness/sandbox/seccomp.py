"""The system call filter of confined commands. It refuses calls by number that Landlock does not control.

A filter is a program for the kernel's classic BPF machine (seccomp(2), <linux/filter.h>). Here it is a binary search over
call numbers: on installation the kernel runs it once for every number, so that a linear list would take a tenth of the time
of starting a command.

A refused call fails with EPERM ("Operation not permitted"). Landlock uses EACCES ("Permission denied"), so users can
distinguish the two. If the kernel takes an argument as `int`, the filter checks only its lower half.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from harness.record import Record
from harness.sandbox.system_calls import (
    ARCHITECTURES,
    FIRST_UNKNOWN,
    LEASES,
    LOOKING_REQUESTS,
    REQUEST_TYPE_BITS,
    SIGNAL_OWNERS,
    TERMINAL_REQUEST_TYPE,
    TYPE_INTO_TERMINAL,
    WRITERS_REQUEST_TYPES,
    WRITERS_REQUESTS,
    numbers_of,
)

# <linux/bpf_common.h>: the required instructions.
LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
IF_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
KEEP_BITS = 0x54  # BPF_ALU | BPF_AND | BPF_K
JUMP = 0x05  # BPF_JMP | BPF_JA
RETURN = 0x06  # BPF_RET | BPF_K
# <linux/seccomp.h>: the answers of a filter, and the offsets of its input in struct seccomp_data.
KILL = 0x80000000  # SECCOMP_RET_KILL_PROCESS
REFUSE = 0x00050000  # SECCOMP_RET_ERRNO, with the number of the error in the lower half
ALLOW = 0x7FFF0000
NUMBER_AT = 0
ARCHITECTURE_AT = 4
ARGUMENTS_AT = 16

Code = bytes
"""Instructions of eight bytes each. A complete program ends with an answer."""

UNIX, INTERNET, INTERNET_6, NETLINK = 1, 2, 10, 16  # address families of <linux/socket.h>
NETWORK_FAMILIES = (UNIX, INTERNET, INTERNET_6, NETLINK)
STREAM, SEQUENCED = 1, 5  # socket types; a pair of another type could send to any named socket
SOCKET_TYPE_BITS = 0xF
NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET and _NEWTIME of <linux/sched.h>."""
EXIT_SIGNAL_BITS = 0xFF
"""Bits of the exit signal in the flags of clone(2). CLONE_NEWTIME has one of these bits, but works only in unshare(2)."""
FILE_LOCKS = 10
"""RLIMIT_LOCKS of <asm-generic/resource.h>. It has no effect in the kernel; harness marks commands with it
(process/hardening.py)."""

ALWAYS: Final = (
    # Calls through a ring, including those for sockets, bypass the filter.
    "io_uring_setup io_uring_enter io_uring_register "
    # Access to other processes. Landlock refuses it outside of the domain; inside, only debuggers need it.
    "ptrace process_vm_readv process_vm_writev pidfd_getfd "
    # Ways around Landlock: a file handle has no path, and mounts change the meaning of paths.
    "open_by_handle_at mount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick "
    "mount_setattr setns "
    # Access to the kernel, and to the keys of other programs.
    "bpf perf_event_open userfaultfd keyctl add_key request_key kexec_load kexec_file_load init_module finit_module "
    "delete_module iopl ioperm reboot swapon swapoff acct quotactl quotactl_fd"
)  # fmt: skip
METADATA: Final = (
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr "
    "fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr "
    # Shared memory, queues and semaphores of other programs. New ones would outlive the command.
    "shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink"
)
"""System calls that change metadata without opening a file for writing, and shared memory. Landlock does not control them.
"""
SCHEDULES: Final = "sched_setaffinity sched_setattr sched_setparam sched_setscheduler"
"""System calls that set when and where a process runs. They could slow any process of the user permanently.

They are allowed only with the ID 0, the calling thread. A filter cannot recognize other IDs of the same program, so
programs cannot set the affinity of their other threads.
"""
PRIORITIES: Final = {"setpriority": 0, "ioprio_set": 1}
"""System calls for priorities, with the value of their first argument that selects one process: PRIO_PROCESS of
<linux/resource.h> and IOPRIO_WHO_PROCESS of <linux/ioprio.h>. They have the same restriction as SCHEDULES."""
SIGNALS: Final = "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal"


class Calls(Record):
    """Kinds of system calls that a filter allows."""

    network: bool
    sockets: bool
    """Whether Unix sockets with a name are allowed. A connected pair is always possible."""
    metadata: bool
    """Whether changing modes, owners, times and attributes of files, and using shared memory, is allowed."""
    signals: bool
    terminal: bool = False
    """Whether changing the modes of the command's own terminal is allowed even without `metadata`."""


@lru_cache(maxsize=32)
def program(architecture: str, calls: Calls) -> bytes:
    """Return the filter for a command of `architecture`, a key of ARCHITECTURES. Raises ValueError for another one.

    A call of another architecture (by a 32-bit program) kills the process. A call that is newer than this module fails
    with ENOSYS, as on an older kernel, since it could bypass the filter.
    """
    numbers = numbers_of(architecture)
    answers = {numbers[name]: code for name, code in _answers(calls).items() if name in numbers}
    # The search needs the borders between ranges of numbers with equal answers.
    borders: list[tuple[int, Code]] = []
    for number in (0, *(n + step for n in answers for step in (0, 1)), FIRST_UNKNOWN):
        answer = answers.get(number, _answer(ALLOW)) if number < FIRST_UNKNOWN else _refuse(errno.ENOSYS)
        borders.append((number, answer))
    ranges: list[tuple[int, Code]] = []
    for number, code in sorted(dict(borders).items()):
        if not ranges or ranges[-1][1] != code:
            ranges.append((number, code))
    return (
        _step(LOAD, ARCHITECTURE_AT)
        + _step(IF_EQUAL, ARCHITECTURES[architecture], 1, 0)
        + _answer(KILL)
        + _step(LOAD, NUMBER_AT)
        + _search(ranges)
    )


def _answers(calls: Calls) -> dict[str, Code]:
    """Return the code for each system call that is not always allowed, by name."""
    refused = ALWAYS.split()
    refused += [] if calls.metadata else METADATA.split()
    refused += [] if calls.signals else SIGNALS.split()
    refused += [] if calls.network or calls.sockets else ["connect"]
    answers = dict.fromkeys(refused, _refuse(errno.EPERM))
    requests = _requests(calls)
    own_schedule = dict.fromkeys(SCHEDULES.split(), _load(0) + _one_of((0,)))
    own_priority = {name: _own_priority(which) for name, which in PRIORITIES.items()}
    families = tuple(family for family in NETWORK_FAMILIES if (calls.sockets if family == UNIX else calls.network))
    return (
        answers
        | own_schedule
        | own_priority
        | {
            "clone": _load(0) + _unless_bits(NEW_NAMESPACES & ~EXIT_SIGNAL_BITS),
            # A filter cannot read its flags, which are in memory. C libraries and Go fall back to clone.
            "clone3": _refuse(errno.ENOSYS),
            "unshare": _load(0) + _unless_bits(NEW_NAMESPACES),
            "ioctl": _load(1) + requests,
            "fcntl": _load(1) + _none_of(LEASES if calls.signals else LEASES + SIGNAL_OWNERS),
            "prlimit64": _own_limits(),
            "setrlimit": _load(0) + _none_of((FILE_LOCKS,)),
            "socket": _load(0) + _one_of(families),
            "socketpair": _load(0) + _if(IF_EQUAL, UNIX, _pair_type(calls), _refuse(errno.EPERM)),
        }
    )


def _requests(calls: Calls) -> Code:
    """Return the code for ioctl. It allows listed requests, and also types of requests for writers and own terminals."""
    if not (calls.metadata or calls.terminal):
        return _one_of(LOOKING_REQUESTS)
    types = WRITERS_REQUEST_TYPES if calls.metadata else (TERMINAL_REQUEST_TYPE,)
    by_type = _step(KEEP_BITS, REQUEST_TYPE_BITS) + _one_of(kind << 8 for kind in types)
    checked = _answer_for(LOOKING_REQUESTS + (WRITERS_REQUESTS if calls.metadata else ()), _answer(ALLOW), by_type)
    return _answer_for(TYPE_INTO_TERMINAL, _refuse(errno.EPERM), checked)


def _own_priority(which: int) -> Code:
    """Return the code for a call of PRIORITIES: it must select one process (`which`), with the ID 0 for itself."""
    return _load(0) + _if(IF_EQUAL, which, _load(1) + _one_of((0,)), _refuse(errno.EPERM))


def _own_limits() -> Code:
    """Return the code for prlimit64(pid, resource, new, old).

    Only own limits are allowed: with limits on files or time, a command could stop harness. The mark FILE_LOCKS may be
    read but not changed, so `new` must be NULL. It is an address, so both halves are checked.
    """
    change = _load(2) + _if(IF_EQUAL, 0, _load_upper(2) + _one_of((0,)), _refuse(errno.EPERM))
    own_change = _load(1) + _if(IF_EQUAL, FILE_LOCKS, change, _answer(ALLOW))
    return _load(0) + _if(IF_EQUAL, 0, own_change, _refuse(errno.EPERM))


def _pair_type(calls: Calls) -> Code:
    """Return the code for the type of a socketpair. A datagram pair can send to any named socket, so it counts as named."""
    if calls.sockets:
        return _answer(ALLOW)
    return _load(1) + _step(KEEP_BITS, SOCKET_TYPE_BITS) + _one_of((STREAM, SEQUENCED))


def _step(operation: int, constant: int, yes: int = 0, no: int = 0) -> Code:
    """Return one instruction (struct sock_filter of <linux/filter.h>). `yes` and `no` are jump distances."""
    return struct.pack("=HBBI", operation, yes, no, constant)


def _answer(value: int) -> Code:
    return _step(RETURN, value)


def _refuse(error: int) -> Code:
    return _answer(REFUSE | error)


def _load(argument: int) -> Code:
    """Return code that loads the lower half of an argument. Both architectures are little-endian."""
    return _step(LOAD, ARGUMENTS_AT + 8 * argument)


def _load_upper(argument: int) -> Code:
    return _step(LOAD, ARGUMENTS_AT + 8 * argument + 4)


def _if(condition: int, constant: int, then: Code, otherwise: Code) -> Code:
    """Return a branch. A conditional jump reaches at most 255 instructions, an unconditional one any distance."""
    length = len(otherwise) // 8
    if length <= 255:
        return _step(condition, constant, length, 0) + otherwise + then
    return _step(condition, constant, 0, 1) + _step(JUMP, length) + otherwise + then


def _answer_for(values: Iterable[int], answer: Code, otherwise: Code) -> Code:
    """Return code that gives `answer` for the values, and `otherwise` for all others."""
    for value in values:
        otherwise = _if(IF_EQUAL, value, answer, otherwise)
    return otherwise


def _one_of(values: Iterable[int]) -> Code:
    return _answer_for(values, _answer(ALLOW), _refuse(errno.EPERM))


def _none_of(values: Iterable[int]) -> Code:
    return _answer_for(values, _refuse(errno.EPERM), _answer(ALLOW))


def _unless_bits(bits: int) -> Code:
    return _if(IF_ANY_BIT, bits, _refuse(errno.EPERM), _answer(ALLOW))


def _search(ranges: list[tuple[int, Code]]) -> Code:
    """Return a binary search for the range of the loaded number."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    return _if(IF_AT_LEAST, ranges[middle][0], _search(ranges[middle:]), _search(ranges[:middle]))

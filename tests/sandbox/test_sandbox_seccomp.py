"""The system call filter, walked instruction by instruction: for both architectures, and for calls that no test should make."""

from __future__ import annotations

import errno
import os
import re
import struct

import pytest
from rows import all_rows

from harness.sandbox.seccomp import (
    ALLOW,
    ARCHITECTURE_AT,
    ARGUMENTS_AT,
    IF_ANY_BIT,
    IF_AT_LEAST,
    IF_EQUAL,
    JUMP,
    KEEP_BITS,
    KILL,
    LOAD,
    NUMBER_AT,
    REFUSE,
    RETURN,
    Calls,
    program,
)
from harness.sandbox.system_calls import (
    ARCHITECTURES,
    FIRST_UNKNOWN,
    LOOKING_REQUESTS,
    NUMBERS,
    WRITERS_REQUEST_TYPES,
    WRITERS_REQUESTS,
    numbers_of,
)

EVERYTHING = Calls(network=True, sockets=True, metadata=True, signals=True)
WRITER = Calls(network=False, sockets=True, metadata=True, signals=True)
CLOSED = Calls(network=False, sockets=False, metadata=True, signals=True)
READER = Calls(network=False, sockets=False, metadata=False, signals=True)
OLD_READER = Calls(network=False, sockets=False, metadata=False, signals=False)
ONLINE_ONLY = Calls(network=True, sockets=False, metadata=False, signals=True)
AT_A_TERMINAL = Calls(network=False, sockets=False, metadata=False, signals=True, terminal=True)
ALL = (EVERYTHING, WRITER, CLOSED, READER, OLD_READER, ONLINE_ONLY, AT_A_TERMINAL)

EPERM = REFUSE | errno.EPERM
ENOSYS = REFUSE | errno.ENOSYS
NEW_USER, SIGCHLD, THREAD = 0x10000000, 17, 0x3D0F00
HIGH = 1 << 40
"""Set where the kernel looks at the lower half of an argument only."""

CASES = [
    # call, its arguments, the filters, the answer
    *[(name, (), ALL, EPERM) for name in (
        "io_uring_setup io_uring_enter io_uring_register ptrace process_vm_readv process_vm_writev pidfd_getfd "
        "open_by_handle_at mount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsmount setns bpf "
        "perf_event_open keyctl add_key userfaultfd kexec_load init_module finit_module reboot"
    ).split()],
    *[(name, (), (EVERYTHING, WRITER, CLOSED), ALLOW) for name in "fchmod fchmodat2 fchownat utimensat shmget".split()],
    *[(name, (), (READER, OLD_READER, ONLINE_ONLY), EPERM) for name in (
        "chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat setxattr setxattrat "
        "fremovexattr removexattrat file_setattr shmget shmat msgsnd semop mq_open"
    ).split()],
    *[(name, (), (EVERYTHING, WRITER, READER), ALLOW) for name in "kill tgkill pidfd_send_signal".split()],
    *[(name, (), (OLD_READER,), EPERM) for name in "kill tkill tgkill rt_sigqueueinfo pidfd_send_signal".split()],
    *[("socket", (family, 1), (EVERYTHING,), ALLOW) for family in (1, 2, 10, 16, 2 | HIGH)],
    *[("socket", (family, 1), (EVERYTHING,), EPERM) for family in (0, 3, 4, 17, 31, 38, 40, 44, 0xFFFFFFFF)],
    *[("socket", (family, 1), (WRITER,), ALLOW) for family in (1, 1 | HIGH)],
    *[("socket", (family, 1), (WRITER,), EPERM) for family in (2, 10, 16, 17, 2 | HIGH)],
    *[("socket", (family, 1), (CLOSED, READER, OLD_READER), EPERM) for family in (1, 2, 10, 16, 17)],
    *[("socket", (family, 1), (ONLINE_ONLY,), ALLOW) for family in (2, 10, 16)],
    ("socket", (1, 1), (ONLINE_ONLY,), EPERM),
    ("connect", (3,), (EVERYTHING, WRITER, ONLINE_ONLY), ALLOW),
    ("connect", (3,), (CLOSED, READER, OLD_READER), EPERM),
    *[("socketpair", (1, kind), ALL, ALLOW) for kind in (1, 5, 1 | 0o2000000, 5 | 0o4000, 1 | HIGH)],
    *[("socketpair", (1, kind), (CLOSED, READER, ONLINE_ONLY), EPERM) for kind in (2, 3, 2 | 0o2000000, 3 | 0o4000, 2 | HIGH)],
    *[("socketpair", (1, kind), (EVERYTHING, WRITER), ALLOW) for kind in (2, 3)],
    *[("socketpair", (family, 1), ALL, EPERM) for family in (2, 30, 2 | HIGH)],
    *[("clone", (flags,), ALL, ALLOW) for flags in (SIGCHLD, THREAD, 0x4111)],
    *[("clone", (flags | SIGCHLD,), ALL, EPERM) for flags in (NEW_USER, 0x20000, 0x2000000, 0x40000000, NEW_USER | HIGH)],
    ("clone3", (), ALL, ENOSYS),
    *[("unshare", (flags,), ALL, EPERM) for flags in (NEW_USER, 0x20000, 0x80, NEW_USER | HIGH)],
    *[("unshare", (flags,), ALL, ALLOW) for flags in (0, 0x400, 0x200)],
    *[("ioctl", (0, request), ALL, EPERM) for request in (0x5412, 0x541C, 0x5412 | HIGH)],
    *[("ioctl", (0, request), ALL, ALLOW) for request in (0x5401, 0x5413, 0x80086601, 0xC020660B)],
    # What a file system does by itself: BTRFS_IOC_SNAP_CREATE, _SUBVOL_CREATE, _SNAP_DESTROY, _SNAP_CREATE_V2,
    # _SUBVOL_CREATE_V2, _SUBVOL_SETFLAGS, _SNAP_DESTROY_V2, BCH_IOCTL_SUBVOLUME_CREATE and _DESTROY, OCFS2_IOC_REFLINK,
    # F2FS_IOC_START_ATOMIC_REPLACE, FS_IOC_ENABLE_VERITY, _SET_ENCRYPTION_POLICY, _ADD_ENCRYPTION_KEY
    *[("ioctl", (3, request), ALL, EPERM) for request in (
        0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x50009418, 0x4008941A, 0x5000943F, 0x50009401 | HIGH,
        0x4020BC10, 0x4020BC11, 0x40186F04, 0xF519, 0x40806685, 0x800C6613, 0xC0506617,
    )],
    # FS_IOC_SETVERSION, FAT_IOCTL_SET_ATTRIBUTES, XFS_IOC_SWAPEXT, CEPH_IOC_LAZYIO, BLKGETSIZE64: whatever is on no list
    *[("ioctl", (3, request), ALL, EPERM) for request in (0x40087602, 0x40047211, 0xC0C0586D, 0x9704, 0x80081272)],
    *[("ioctl", (3, 0x40000000 | kind << 8 | 0xEE), ALL, EPERM) for kind in range(256) if kind not in WRITERS_REQUEST_TYPES],
    *[("ioctl", (3, request), ALL, ALLOW) for request in (*LOOKING_REQUESTS, LOOKING_REQUESTS[0] | HIGH)],
    # TCSETS, FIOSETOWN, SIOCSPGRP, TIOCSPGRP, TIOCSPTLCK, TIOCSCTTY, TIOCGPTPEER, SIOCGIFCONF
    *[("ioctl", (3, request), filters, answer) for request in (
        *WRITERS_REQUESTS, 0x5402, 0x8901, 0x8902, 0x5410, 0x40045431, 0x540E, 0x5441, 0x8912,
    ) for filters, answer in (((READER, OLD_READER, ONLINE_ONLY), EPERM), ((WRITER, EVERYTHING), ALLOW))],
    # A reader at a terminal of its own sets the modes of that, and nothing else: TCSETS, TIOCSWINSZ, TIOCSPGRP
    *[("ioctl", (0, request), (AT_A_TERMINAL,), ALLOW) for request in (0x5402, 0x5414, 0x5410)],
    *[("ioctl", (3, request), (AT_A_TERMINAL,), EPERM) for request in (*WRITERS_REQUESTS, 0x8901, 0x8902, 0x8912)],
    # F_GETFD, F_SETFL, F_SETLK, F_OFD_SETLK, F_GETLEASE, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_ADD_SEALS
    *[("fcntl", (3, command), ALL, ALLOW) for command in (1, 4, 6, 37, 1025, 1030, 1031, 1033)],
    # F_SETLEASE, F_SETDELEG: a file outside would not open for others
    *[("fcntl", (3, command), ALL, EPERM) for command in (1024, 1040, 1024 | HIGH)],
    # F_SETOWN, F_SETSIG, F_SETOWN_EX: a signal to any process, sent by the kernel
    *[("fcntl", (3, command), filters, answer) for command in (8, 10, 15, 8 | HIGH)
      for filters, answer in (((OLD_READER,), EPERM), ((EVERYTHING, WRITER, CLOSED, READER), ALLOW))],
    *[(name, (0, 1), ALL, ALLOW) for name in "sched_setaffinity sched_setattr sched_setparam sched_setscheduler".split()],
    *[(name, (1234, 1), ALL, EPERM) for name in "sched_setaffinity sched_setattr sched_setparam sched_setscheduler".split()],
    *[("setpriority", whom, ALL, EPERM) for whom in ((0, 1234), (1, 0), (1, 1234), (2, 0), (2, 1000))],
    *[("ioprio_set", whom, ALL, EPERM) for whom in ((1, 1234), (2, 0), (3, 0), (0, 0))],
    ("setpriority", (0, 0, 19), ALL, ALLOW),
    ("ioprio_set", (1, 0, 0x6000), ALL, ALLOW),
    ("prlimit64", (0,), ALL, ALLOW),
    ("prlimit64", (1,), ALL, EPERM),
    *[("prlimit64", (0, kind, 0x7FFF00001000), ALL, ALLOW) for kind in (*range(10), *range(11, 16), 9 | HIGH)],
    *[("prlimit64", (0, kind, 0, 0x7FFF00001000), ALL, ALLOW) for kind in (7, 10, 10 | HIGH)],
    # The mark by which a command is known: both halves of the address count, the lower half of the kind.
    *[("prlimit64", (0, 10, new), ALL, EPERM) for new in (1, 0x7FFF00001000, HIGH, 0xFFFFFFFF00000000)],
    ("prlimit64", (0, 10 | HIGH, 0x1000), ALL, EPERM),
    *[("prlimit64", (pid, 10, 0), ALL, EPERM) for pid in (1, 0xFFFFFFFF)],
    *[("setrlimit", (kind, 0x1000), ALL, ALLOW) for kind in (*range(10), *range(11, 16))],
    *[("setrlimit", (10, new), ALL, EPERM) for new in (0, 0x1000)],
    ("setrlimit", (10 | HIGH, 0x1000), ALL, EPERM),
]  # fmt: skip


def answer_of(filter_program: bytes, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Return what a filter of `program` answers to a call of its own architecture, by walking it as the kernel does.

    The kernel's machine has more instructions than are understood here.
    """
    steps = list(struct.iter_unpack("=HBBI", filter_program))
    memory = {NUMBER_AT: number, ARCHITECTURE_AT: steps[1][3]}
    for index, value in enumerate(arguments):
        memory[ARGUMENTS_AT + 8 * index], memory[ARGUMENTS_AT + 8 * index + 4] = value & 0xFFFFFFFF, value >> 32
    at = value = 0
    while True:
        operation, yes, no, constant = steps[at]
        at += 1
        if operation == LOAD:
            value = memory.get(constant, 0)
        elif operation == KEEP_BITS:
            value &= constant
        elif operation == JUMP:
            at += constant
        elif operation == RETURN:
            return int(constant)
        else:
            holds = {IF_EQUAL: value == constant, IF_AT_LEAST: value >= constant, IF_ANY_BIT: bool(value & constant)}
            at += yes if holds[operation] else no


@all_rows(
    ("name", "arguments", "filters", "answer"),
    [pytest.param(*case, id=f"{case[0]}{case[1]}: {len(case[2])} filters") for case in CASES],
)
def test_a_call_is_answered(name: str, arguments: tuple[int, ...], filters: tuple[Calls, ...], answer: int) -> None:
    for architecture in ARCHITECTURES:
        number = numbers_of(architecture).get(name)
        if number is not None:  # aarch64 has no chmod, only fchmodat, and so on
            answers = {answer_of(program(architecture, calls), number, arguments) for calls in filters}
            assert answers == {answer}, architecture


@all_rows("architecture", list(ARCHITECTURES))
@all_rows("calls", ALL)
def test_other_system_calls_pass_and_newer_ones_do_not_exist(calls: Calls, architecture: str) -> None:
    filtered = program(architecture, calls)
    named = set(numbers_of(architecture).values())
    assert {answer_of(filtered, n) for n in range(FIRST_UNKNOWN) if n not in named} == {ALLOW}
    newer = (*range(FIRST_UNKNOWN, 1024), 0x40000000, 0x40000029, 0x7FFFFFFF, 0xFFFFFFFF)
    assert {answer_of(filtered, n) for n in newer} == {ENOSYS}


@all_rows("architecture", list(ARCHITECTURES))
@all_rows("calls", ALL)
def test_filter_is_accepted_by_the_kernel(calls: Calls, architecture: str) -> None:
    """At most 4096 instructions, jumps forward and inside only, every path ends with an answer."""
    steps = list(struct.iter_unpack("=HBBI", program(architecture, calls)))
    assert len(steps) <= 4096
    for at, (operation, yes, no, constant) in enumerate(steps):
        reached = {0x05: (constant,), 0x06: ()}.get(operation, (yes, no) if operation & 7 == 5 else (0,))
        assert all(at + 1 + jump < len(steps) for jump in reached)


@all_rows("architecture", list(ARCHITECTURES))
def test_a_program_of_another_architecture_is_ended(architecture: str) -> None:
    (other,) = set(ARCHITECTURES) - {architecture}
    steps = program(architecture, EVERYTHING)
    expected = struct.pack("=HBBI", 0x15, 1, 0, ARCHITECTURES[architecture]) + struct.pack("=HBBI", 0x06, 0, 0, KILL)
    assert steps[8:24] == expected
    assert ARCHITECTURES[other] != ARCHITECTURES[architecture]


def test_an_unknown_architecture_has_no_filter() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        program("riscv64", READER)


HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}


@all_rows("architecture", list(ARCHITECTURES))
def test_the_numbers_are_those_of_the_kernels_headers(architecture: str) -> None:
    path = HEADERS[architecture]
    if not os.path.exists(path):
        pytest.skip(f"THE NUMBERS WERE NOT COMPARED: there is no {path} here")
    with open(path, encoding="utf-8") as file:
        lines = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", file.read(), re.MULTILINE)
    known = {name: int(number) for name, number in lines}
    ours = {name: number for name, number in numbers_of(architecture).items() if name in known}
    assert len(ours) >= 70
    assert ours == {name: known[name] for name in ours}
    missing = [name for name, row in NUMBERS.items() if row[list(ARCHITECTURES).index(architecture)] is None]
    assert [name for name in missing if name in known] == []

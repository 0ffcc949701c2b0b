"""Numbers of the kernel for seccomp.py: system calls on x86_64 and aarch64, and requests of ioctl(2) and fcntl(2)."""

from __future__ import annotations

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The number of an architecture in a filter (AUDIT_ARCH_* of <linux/audit.h>), by its name in uname(2)."""

FIRST_UNKNOWN = 470
"""First number of calls newer than this table (Linux 6.18), for both architectures. The x32 numbers (0x40000000 and up)
are above it too."""

NUMBERS = {
    # name: (x86_64, aarch64); None where the architecture has no such call. <asm/unistd_64.h>, <asm-generic/unistd.h>
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chown": (92, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "delete_module": (176, 106),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "setrlimit": (160, 164),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
}


def numbers_of(architecture: str) -> dict[str, int]:
    """Return the numbers of the architecture's calls, by name. Raises ValueError for an unknown architecture."""
    column = list(ARCHITECTURES).index(architecture)
    return {name: number for name, row in NUMBERS.items() if (number := row[column]) is not None}


TYPE_INTO_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, and TIOCLINUX, which can paste text
LOOKING_REQUESTS = (
    0x5401, 0x802C542A,      # TCGETS and TCGETS2, by which isatty(3) asks
    0x540F, 0x5429, 0x5413,  # TIOCGPGRP, TIOCGSID, TIOCGWINSZ
    0x541B, 0x5411,          # FIONREAD, TIOCOUTQ: how much there is to read, or still to be written
    0x5421, 0x5450, 0x5451,  # FIONBIO, FIONCLEX, FIOCLEX: of the descriptor
    0x80086601, 0x80087601, 0x801C581F,  # FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR
    0xC020660B, 0x0002,      # FS_IOC_FIEMAP, FIGETBSZ: where a file's blocks are, and how long
    0xB701, 0xB702, 0xB703, 0xB704,  # NS_GET_USERNS, _PARENT, _NSTYPE, _OWNER_UID, as lsns asks them
)  # fmt: skip
"""The requests for readers. Others can set flags, labels, snapshots, keys and the owner of a descriptor's signals."""

WRITERS_REQUESTS = (
    0x40049409, 0x4020940D, 0xC0189436,  # FICLONE, FICLONERANGE and FIDEDUPERANGE of cp(1), whose target is open for writing
    0x40086602, 0x401C5820,              # FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR: attributes of a file, similar to its mode
)  # fmt: skip
REQUEST_TYPE_BITS = 0xFF00
TERMINAL_REQUEST_TYPE = 0x54
WRITERS_REQUEST_TYPES = (
    TERMINAL_REQUEST_TYPE,  # file descriptors and own terminals, except for TYPE_INTO_TERMINAL
    0x89,  # sockets
)
"""Types of requests (bits 8 to 15) that writers may use in addition to LOOKING_REQUESTS and WRITERS_REQUESTS.

Requests of single file systems are refused. With these a command could make snapshots that reveal hidden files (btrfs),
copy a file by name (ocfs2), empty a file that is open for reading (f2fs), or make it permanently read-only (verity).
"""

LEASES = (1024, 1040)
"""F_SETLEASE and F_SETDELEG. While a process has a lease, every other open of the file waits up to 45 s (fcntl(2))."""
SIGNAL_OWNERS = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX: the process that the kernel signals on input, and the signal, even SIGKILL."""

"""What may be asked of an open file by ioctl(2) and fcntl(2), and what may not: the numbers, one row each; data only.

Landlock sees opening, and no request to what is open already: one that was opened for reading, or a folder, is enough for many
that change something. The numbers are those of <asm-generic/ioctls.h>, <linux/fs.h>, <linux/fcntl.h> and of the headers of
the file systems; the same on both architectures.
"""

from __future__ import annotations

TYPE_INTO_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, and TIOCLINUX, which can paste
LOOKING_REQUESTS = (
    0x5401, 0x802C542A,      # TCGETS and TCGETS2, by which isatty(3) asks
    0x540F, 0x5429, 0x5413,  # TIOCGPGRP, TIOCGSID, TIOCGWINSZ
    0x541B, 0x5411,          # FIONREAD, TIOCOUTQ: how much there is to read, or still to be written
    0x5421, 0x5450, 0x5451,  # FIONBIO, FIONCLEX, FIOCLEX: of the descriptor
    0x80086601, 0x80087601, 0x801C581F,  # FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR
    0xC020660B, 0x0002,      # FS_IOC_FIEMAP, FIGETBSZ: where a file's blocks are, and how long
    0xB701, 0xB702, 0xB703, 0xB704,  # NS_GET_USERNS, _PARENT, _NSTYPE, _OWNER_UID, as lsns asks them
)  # fmt: skip
"""All that readers may ask: flags, labels, snapshots and keys can be set by others, and the owner of a descriptor's signals."""

REQUEST_TYPE_BITS = 0xFF00
TYPES_OF_FILE_SYSTEMS = (
    0x94,  # btrfs: a subvolume is made, shown elsewhere as a snapshot with what is hidden in it, and deleted
    0xBC,  # bcachefs: the same
    0x6F,  # ocfs2: OCFS2_IOC_REFLINK copies a file by its name to another name
    0xF5,  # f2fs: an atomic write can empty a file that was opened for reading
    0x66,  # ext4, verity (a file is read-only for good), encryption (of folders, and the keys), Lustre (names)
)
"""Types (bits 8 to 15 of a request) of what a file system does by itself, wherever a folder can be opened."""
WRITERS_REQUESTS = (
    0x40049409, 0x4020940D, 0xC0189436,  # FICLONE, FICLONERANGE and FIDEDUPERANGE of cp(1): into what was opened for writing
    0x40086602,                          # FS_IOC_SETFLAGS: a file's attributes, as its mode
)  # fmt: skip
"""Of those types, what writers may ask besides LOOKING_REQUESTS."""

LEASES = (1024, 1040)
"""F_SETLEASE and F_SETDELEG: while a lease is held, opening the file waits for its holder, for 45 s each time (fcntl(2))."""
SIGNAL_OWNERS = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX: whom the kernel tells of input, and by which signal; SIGKILL is one."""

"""What root may still do behind the walls; for an ordinary user there is nothing to take away."""

from __future__ import annotations

KEPT = {
    # <linux/capability.h>: what building and installing needs. All of them act on files and processes that the
    # other walls guard.
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_AUDIT_WRITE": 29,
}
"""Everything else goes: CAP_SYS_ADMIN and CAP_PERFMON read other processes' memory past Landlock, CAP_MKNOD makes a disk's
device, CAP_SYS_RAWIO and CAP_SYS_MODULE are the kernel, and a file with capabilities (CAP_SETFCAP) outlives the command."""

KEPT_BITS = sum(1 << number for number in KEPT.values())

"""Mounts, namespaces and safe opening of paths: the system calls, through `kernel`. Failures raise OSError.

Paths are opened without following any link, and mounts are attached to the opened file or folder. So a path that is
replaced by a link at the same moment cannot move a mount elsewhere.
"""

from __future__ import annotations

import errno
import os
import struct

from harness.sandbox import kernel

# <asm/unistd.h>: one number on every architecture that seccomp.py knows.
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442
# <linux/sched.h>
OWN_FOLDER = 0x00000200  # CLONE_FS: a current folder and a root of its own, for setns(2) with mounts
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
# <linux/mount.h>, <linux/fcntl.h>, <linux/openat2.h>
CLONE = 1
CURRENT = -100  # AT_FDCWD
EMPTY_PATH, RECURSIVE = 0x1000, 0x8000  # AT_EMPTY_PATH, AT_RECURSIVE
FROM_DESCRIPTOR, TO_DESCRIPTOR = 0x04, 0x40  # MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH
READ_ONLY, NO_SET_ID, NO_DEVICES, NO_PROGRAMS = 0x1, 0x2, 0x4, 0x8  # MOUNT_ATTR_*
PRIVATE, FOLLOWING = 1 << 18, 1 << 19  # MS_PRIVATE, MS_SLAVE
SET_FLAG, SET_TEXT, CREATE = 0, 1, 6  # FSCONFIG_*
NO_LINKS = 0x04 | 0x02  # RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS


def opened(path: str) -> int:
    """Return an O_PATH descriptor of a path that contains no link. Raises OSError: ELOOP for a link."""
    settings = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, 0, NO_LINKS)
    return kernel.system_call(OPENAT2, CURRENT, os.fsencode(path), settings, len(settings))


def clone(path: str, *, recursive: bool = True) -> int:
    """Return the descriptor of a detached copy of the mount at a path without links. Raises OSError."""
    descriptor = opened(path)
    try:
        return clone_of(descriptor, recursive=recursive)
    finally:
        os.close(descriptor)


def clone_of(descriptor: int, *, recursive: bool = True) -> int:
    """Return the descriptor of a detached copy of the mount at an opened path. Raises OSError."""
    flags = CLONE | os.O_CLOEXEC | EMPTY_PATH | (RECURSIVE if recursive else 0)
    return kernel.system_call(OPEN_TREE, descriptor, b"", flags)


def attach(tree: int, path: str) -> None:
    """Attach a detached mount to a path without links, and close its descriptor. Raises OSError."""
    try:
        target = opened(path)
        try:
            kernel.system_call(MOVE_MOUNT, tree, b"", target, b"", FROM_DESCRIPTOR | TO_DESCRIPTOR)
        finally:
            os.close(target)
    finally:
        os.close(tree)


def set_attributes(tree: int, attributes: int, *, propagation: int = 0, recursive: bool = True) -> None:
    """Add attributes to the mount of a descriptor, and to the mounts below it. Raises OSError."""
    change = struct.pack("=QQQQ", attributes, 0, propagation, 0)
    flags = EMPTY_PATH | (RECURSIVE if recursive else 0)
    kernel.system_call(MOUNT_SETATTR, tree, b"", flags, change, len(change))


def set_attributes_at(path: str, attributes: int, *, cleared: int = 0) -> None:
    """Add and clear attributes of the mount at a path, without the mounts below it. Raises OSError."""
    change = struct.pack("=QQQQ", attributes, cleared, 0, 0)
    kernel.system_call(MOUNT_SETATTR, CURRENT, os.fsencode(path), 0, change, len(change))


def set_attributes_of_all(attributes: int, *, propagation: int = 0) -> None:
    """Add attributes to every mount of this mount namespace. Raises OSError."""
    change = struct.pack("=QQQQ", attributes, 0, propagation, 0)
    kernel.system_call(MOUNT_SETATTR, CURRENT, b"/", RECURSIVE, change, len(change))


def new_file_system(kind: str, settings: tuple[tuple[str, str], ...] = (), attributes: int = NO_SET_ID) -> int:
    """Return the descriptor of a detached mount of a new file system, such as a `tmpfs`. Raises OSError.

    `settings` are its options (mount(8)), with an empty value for a flag.
    """
    context = kernel.system_call(FSOPEN, kind.encode(), 1)
    try:
        for name, value in settings:
            command = SET_TEXT if value else SET_FLAG
            kernel.system_call(FSCONFIG, context, command, name.encode(), value.encode() if value else None, 0)
        kernel.system_call(FSCONFIG, context, CREATE, None, None, 0)
        return kernel.system_call(FSMOUNT, context, 1, attributes)
    finally:
        os.close(context)


def enter_namespace(descriptor: int, kind: int) -> None:
    """Move the calling thread (for processes, its later children) into a namespace (setns(2)). Raises OSError."""
    kernel.call("setns", descriptor, kind)


def map_own_user(user: int, group: int) -> None:
    """Give the calling process its own user and group in its new user namespace (user_namespaces(7)). Raises OSError."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        except OSError as error:
            raise OSError(error.errno or errno.EIO, f"{name}: {error.strerror}") from error
        finally:
            os.close(descriptor)

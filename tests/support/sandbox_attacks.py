"""What a command may try, each with the walls that stop it: the table of the attacks; runs nothing."""

from __future__ import annotations

import os
import shlex
from typing import NamedTuple

from harness.sandbox.system_calls import ARCHITECTURES, NUMBERS

READER = "reader"
WRITER = "writer"
BOTH = (READER, WRITER)
MACHINE = os.uname().machine


class Attack(NamedTuple):
    """A command that succeeds (exit status 0) where nothing stops it."""

    name: str
    command: str
    stopped_by: tuple[str, ...] = BOTH
    root_only: bool = False
    """It takes root to succeed without walls."""
    ordinary_only: bool = False
    is_apart: bool = False
    """In a network or a /dev of its own the command succeeds, but what it reaches is its own."""


def python(code: str) -> str:
    return f'"$PY" -I -S -c {shlex.quote("import os, sys; E = os.environ; " + code)}'


def call(name: str, arguments: str, before: str = "") -> str:
    """Return a program that makes a system call and fails if that fails.

    Each whole number is passed as a `long`: of an `int` on the stack, the upper half is left undefined.
    """
    number = NUMBERS[name][list(ARCHITECTURES).index(MACHINE)] if MACHINE in ARCHITECTURES else 0
    return python(
        f"import ctypes; L = ctypes.CDLL(None, use_errno=True); {before}\n"
        f"A = [ctypes.c_long(x) if isinstance(x, int) else x for x in ({arguments},)]\n"
        f"r = L.syscall({number}, *A)\nif r < 0: sys.exit(os.strerror(ctypes.get_errno()))"
    )


def sock(family: str, kind: str, then: str) -> str:
    return python(f"import socket; s = socket.socket(socket.{family}, socket.{kind}); s.settimeout(60); {then}")


FILES = [
    Attack("write", 'echo x > "$O/new"'),
    Attack("append", 'echo x >> "$O/file"'),
    Attack("overwrite", 'echo x > "$O/file"'),
    Attack("truncate by opening", ': > "$O/file"'),
    Attack("truncate by path", python('os.truncate(E["O"] + "/file", 0)')),
    Attack("truncate while opening to read", python('os.open(E["O"] + "/file", os.O_RDONLY | os.O_TRUNC)')),
    Attack("remove", 'rm "$O/doomed"'),
    Attack("remove a folder", 'rmdir "$O/empty"'),
    Attack("rename", 'mv "$O/file" "$O/other"'),
    Attack("rename out of the workspace", python('os.rename(E["W"] + "/file", E["O"] + "/stolen")')),
    Attack("rename into the workspace", python('os.rename(E["O"] + "/file", E["W"] + "/stolen")')),
    Attack("exchange", python(
        'import ctypes; L = ctypes.CDLL(None, use_errno=True); r = L.renameat2(-100, (E["O"] + "/file").encode(), -100, '
        '(E["W"] + "/file").encode(), 2); sys.exit(r and os.strerror(ctypes.get_errno()))'
    )),
    Attack("hard link into the workspace", 'ln "$O/file" "$W/hard"'),
    Attack("hard link out of the workspace", 'ln "$W/file" "$O/hard"'),
    Attack("hard link to a hidden file", 'ln "$H/key" "$W/hard" && cat "$W/hard"'),
    Attack("make a folder", 'mkdir "$O/folder"'),
    Attack("make a link", 'ln -s / "$O/link"'),
    Attack("make a pipe", 'mkfifo "$O/pipe"'),
    Attack("make a socket", sock("AF_UNIX", "SOCK_STREAM", 's.bind(E["O"] + "/socket")')),
    Attack("make an unnamed file", python('os.open(E["O"], os.O_TMPFILE | os.O_RDWR, 0o600)')),
    Attack("write over a link that is there", 'echo x > "$W/link"'),
    Attack("write over a new link", 'ln -s "$O/file" "$W/new" && echo x > "$W/new"'),
    Attack("write through /proc/self/root", 'echo x > "/proc/self/root$O/new"'),
    Attack("write through the current folder", 'cd "$O" && echo x > new'),
    Attack("write through ..", 'cd "$W" && echo x > ../O/new'),
    Attack("write through a folder that is open", python(
        'd = os.open(E["O"], os.O_PATH); os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=d)'
    )),
    Attack("write with an allocation", python(
        'f = os.open(E["O"] + "/file", os.O_RDWR); os.posix_fallocate(f, 0, 9999)'
    )),
    Attack("map a file to write", python(
        'import mmap; f = os.open(E["O"] + "/file", os.O_RDWR); m = mmap.mmap(f, 4); m[:1] = b"X"'
    )),
    Attack("write beside the workspace", 'echo x > "${W}2"'),
    Attack("rename the workspace", 'mv "$W" "${W}2"'),
    Attack("remove the workspace", 'rm -rf "$W" && ! test -e "$W"'),
    Attack("write a setting of the kernel", python(
        'p = "/proc/sys/kernel/core_pattern"; was = open(p).read(); open(p, "w").write(was)'
    ), root_only=True),
    Attack("make a disk's device", 'mknod "$W/disk" b 7 0', root_only=True),
    Attack("make a character device", 'mknod "$W/memory" c 1 1', root_only=True),
    Attack("read a disk", python(
        'd = [p for n in os.listdir("/dev") if os.path.exists(p := "/dev/" + n) and os.lstat(p).st_mode >> 12 == 6]; '
        'os.open(d[0], os.O_RDONLY)'
    ), root_only=True),
    Attack("read the kernel's log device", 'exec 3< /dev/kmsg', root_only=True),
]  # fmt: skip

HIDDEN = [
    Attack("read a hidden file", 'cat "$H/key"'),
    Attack("copy a hidden file", 'cp "$H/key" "$T/key" && test -s "$T/key"'),
    Attack("read it over a link", 'cat "$W/link-to-key"'),
    Attack("read it through /proc/self/root", 'cat "/proc/self/root$H/key"'),
    Attack("read it through the current folder", 'cd "$H" && cat key'),
    Attack("read it through the harness's root", 'cat "/proc/$HARNESS/root$H/key"'),
    Attack("run a hidden program", '"$H/program"'),
    Attack("read a hidden script", '. "$H/program"'),
    Attack("read it by its handle", python(
        'import ctypes; L = ctypes.CDLL(None, use_errno=True); h = ctypes.create_string_buffer(136); h[0] = 128; '
        'i = ctypes.c_int(); m = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)\n'
        'if L.name_to_handle_at(-100, (E["H"] + "/key").encode(), h, ctypes.byref(i), 0) < 0: sys.exit("no handle")\n'
        'f = L.open_by_handle_at(m, h, os.O_RDONLY)\nif f < 0: sys.exit(os.strerror(ctypes.get_errno()))\n'
        'if b"key" not in os.read(f, 100): sys.exit("not read")'
    ), root_only=True),
]  # fmt: skip

METADATA = [
    Attack("chmod", 'chmod 600 "$O/file"', (READER,)),
    Attack("fchmod of an open file", python('os.fchmod(os.open(E["O"] + "/file", os.O_RDONLY), 0)'), (READER,)),
    Attack("chmod by a newer call", call("fchmodat2", '-100, (E["O"] + "/file").encode(), 0, 0'), (READER,)),
    Attack("chmod in the workspace", 'chmod 600 "$W/file"', (READER,)),
    Attack("chown", 'chown "$(id -u):$(id -g)" "$O/file"', (READER,)),
    Attack("touch", 'touch -d 2001-01-01 "$O/file"', (READER,)),
    Attack("set an attribute", python('os.setxattr(E["O"] + "/file", "user.x", b"y")'), (READER,)),
    Attack("set a flag of a file", python(
        'import fcntl; fcntl.ioctl(os.open(E["O"] + "/file", os.O_RDONLY), 0x40086602, (0x80000 | 0x40).to_bytes(8, "little"))'
    ), (READER,)),
    Attack("ask a file system itself", python(
        # BTRFS_IOC_SUBVOL_CREATE: any answer of a file system counts, and others than btrfs know no such request.
        "import errno, fcntl\ntry: fcntl.ioctl(os.open(E['O'], os.O_RDONLY), 0x5000940E, 0)\n"
        "except OSError as e:\n    if e.errno in (errno.EPERM, errno.EACCES): raise"
    )),
    Attack("keep others from opening a file to write", python(
        'import fcntl; fcntl.fcntl(os.open(E["O"] + "/file", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)'
    )),
    Attack("make a message queue", call("mq_open", 'b"walls", os.O_CREAT | os.O_RDWR, 0o600, None')
           + " && " + call("mq_unlink", 'b"walls"'), (READER,)),
    Attack("make shared memory", call("shmget", "0, 4096, 0o600"), (READER,)),
    Attack("write shared memory with a name", python(
        'p = f"/dev/shm/walls-{os.getpid()}"; os.close(os.open(p, os.O_CREAT | os.O_RDWR)); os.unlink(p)'
    ), (READER,)),
]  # fmt: skip

NETWORK = [
    Attack("TCP", sock("AF_INET", "SOCK_STREAM", 's.connect(("127.0.0.1", int(E["TCP"])))')),
    Attack("TCP by bash", 'exec 3<> "/dev/tcp/127.0.0.1/$TCP"'),
    Attack("TCP from a grandchild of its own session", 'setsid -w bash -c "exec 3<> /dev/tcp/127.0.0.1/$TCP"'),
    Attack("listen on TCP", sock("AF_INET", "SOCK_STREAM", 's.bind(("127.0.0.1", 0))'), is_apart=True),
    Attack("listen without a bind", sock("AF_INET", "SOCK_STREAM", "s.listen(1)"), is_apart=True),
    Attack("UDP", sock("AF_INET", "SOCK_DGRAM", 's.sendto(b"x", ("127.0.0.1", int(E["UDP"])))'), is_apart=True),
    Attack("IPv6", sock("AF_INET6", "SOCK_DGRAM", "pass"), is_apart=True),
    Attack("raw packets", python("import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
           root_only=True, is_apart=True),
    Attack("link packets", sock("AF_PACKET", "SOCK_RAW", "pass"), root_only=True),
    Attack("netlink", sock("AF_NETLINK", "SOCK_RAW", "pass"), is_apart=True),
    Attack("an abstract socket", sock("AF_UNIX", "SOCK_STREAM", r's.connect("\0" + E["ABSTRACT"])')),
    Attack("a socket with a path", sock("AF_UNIX", "SOCK_STREAM", 's.connect(E["STREAM"])'), (READER,)),
    Attack("a datagram socket with a path", sock("AF_UNIX", "SOCK_DGRAM", 's.sendto(b"x", E["DATAGRAM"])'), (READER,)),
    Attack("a pair of datagram sockets", python(
        "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); "
        'a.sendto(b"x", E["DATAGRAM"])'
    ), (READER,)),
    Attack("a pair of raw sockets", python(
        'import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW); a.connect(E["DATAGRAM"])'
    ), (READER,)),
    Attack("an io_uring", call("io_uring_setup", "4, bytes(120)")),
]  # fmt: skip

PROCESSES = [
    Attack("signal the harness", 'kill -0 "$HARNESS"'),
    Attack("signal it from another session", 'setsid -w bash -c "kill -0 $HARNESS"'),
    Attack("signal it by a descriptor", python("import signal; signal.pidfd_send_signal(os.pidfd_open(int(E['HARNESS'])), 0)")),
    Attack("read its environment", 'grep -qaz SECRET_KEY "/proc/$HARNESS/environ"'),
    Attack("read its memory", python('f = open(f"/proc/{E[\'HARNESS\']}/maps"); f.read()')),
    Attack("write its memory", python('os.open(f"/proc/{E[\'HARNESS\']}/mem", os.O_RDWR)')),
    Attack("see its files", 'readlink -v "/proc/$HARNESS/fd/0"'),
    Attack("see its folder", 'readlink -v "/proc/$HARNESS/cwd"'),
    Attack("limit it", python(
        "import resource; p = int(E['HARNESS']); "
        "resource.prlimit(p, resource.RLIMIT_CORE, resource.prlimit(p, resource.RLIMIT_CORE))"
    )),
    Attack("trace", call("ptrace", "0, 0, 0, 0")),
    Attack("take a descriptor", call("pidfd_getfd", "p, 0, 0", "p = os.pidfd_open(os.getpid())")),
    Attack("read another's memory", call(
        "process_vm_readv", "os.getpid(), v, 1, v, 1, 0", "b = ctypes.create_string_buffer(8); "
        "v = (ctypes.c_size_t * 2)(ctypes.addressof(b), 8)"
    )),
    Attack("a user namespace", "unshare --user true"),
    Attack("a user namespace by clone", call("clone", "0x10000011, 0, 0, 0, 0")),
    Attack("mount in a user namespace", 'unshare --user --map-root-user --mount mount -t tmpfs none "$W"'),
    Attack("mount", 'mount -t tmpfs none "$T" && umount "$T"', root_only=True),
    Attack("enter a namespace", call("setns", "os.open('/proc/self/ns/net', os.O_RDONLY), 0"), root_only=True),
    Attack("add a key", call("add_key", 'b"user", b"walls", b"x", 1, -1')),
    Attack("count events", call("perf_event_open", "a, 0, -1, -1, 0", (
        "import struct; a = struct.pack('=IIQQQQQ72x', 1, 112, 0, 0, 0, 0, 0x60)"
    ))),
    Attack("a page fault handler", call("userfaultfd", "1")),
    Attack("a BPF map", call("bpf", "0, a, 48", "import struct; a = struct.pack('=IIII32x', 2, 4, 4, 1)"), root_only=True),
    Attack("a 32-bit call", python(
        r"import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7); m.write(b'\xb8\x14\0\0\0\xcd\x80\xc3'); "
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m))); "
        "sys.exit(f() != os.getpid())"
    )) if MACHINE == "x86_64" else Attack("a user namespace again", "unshare --user true"),
    Attack("type into a terminal", python(
        "import fcntl, pty\n"
        "if os.fork():\n    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "os.setsid(); m, s = pty.openpty(); fcntl.ioctl(s, 0x540E, 0); fcntl.ioctl(s, 0x5412, b'x')"
    )),
]  # fmt: skip

ATTACKS = FILES + HIDDEN + METADATA + NETWORK + PROCESSES

REMAINING = [
    # What stays possible, and why: what SECURITY.md says is held against this.
    Attack("see that a hidden file is there", 'stat "$H/key"'),  # Landlock knows opening, not looking
    Attack("list a hidden folder", 'ls "$H"'),  # listing is granted from / downwards, or `ls /` would fail
    Attack("see another process's arguments", 'tr "\\0" " " < "/proc/$HARNESS/cmdline"'),
    Attack("change a mode outside", 'chmod 600 "$O/file"', (WRITER,)),  # a filter sees no paths, Landlock no modes
    Attack("change a time outside", 'touch -d 2001-01-01 "$O/file"', (WRITER,)),
    Attack("talk to a socket with a path", sock("AF_UNIX", "SOCK_STREAM", 's.connect(E["STREAM"])'), (WRITER,)),
    Attack("read everything else", 'cat "$O/file" /etc/passwd'),
]

"""What is tried against the second wall: the gate's own table of hostile commands, and second_wall_attempts.txt. Runs nothing.

Words between at signs are explained in that file; those that are left here are put in when an attempt is made.
"""

from __future__ import annotations

import os
import re
import shlex
from enum import Enum
from typing import NamedTuple

from places import ROOT, SUPPORT

TCP, TCP6, UDP = 8001, 8002, 8003
"""Ports on 127.0.0.1 and ::1, of a network that holds nothing else."""
ABSTRACT = "second-wall"


class Kind(Enum):
    """What an attempt did."""

    FILES = "wrote, made, moved or deleted files"
    METADATA = "changed modes, owners, times or attributes"
    SENT = "reached a listener"
    SOCKET = "reached a Unix socket that has a name"
    SIGNALLED = "signalled or ended another process"
    OTHERS = "changed another process"
    KERNEL = "left objects in the kernel"
    TERMINAL = "touched the person's terminal"
    RUNNING = "left something running"
    SHOWN = "printed what is hidden"


class Attempt(NamedTuple):
    """One command line, and where it comes from."""

    command: str
    origin: str = "own"
    """The line of the table, or `own`."""
    open_to_writer: Kind | None = None
    """What a writer may do by this, by design (SECURITY.md): a wall against it is not claimed."""


LEFT_OUT = {
    ":(){ :|:& };:": "stops the machine (a fork bomb)",
    "shutdown -h now": "stops the machine",
    "sudo reboot": "stops the machine",
}
"""Rows of the table that are not tried, and why."""

ENDLESS = frozenset(
    (
        "find . -exec git push \\;",
        "npm --registry http://127.0.0.1:8001 view x",
        "npx cowsay",
        "python3 -m http.server",
        "until git push; do :; done",
        "vim -c ':!touch x' -c q",
        "watch -n1 'git push'",
        "watch git push",
        "wget http://127.0.0.1:8001",
    )
)
"""What waits or tries without end, as it is when it is tried: a limit of time ends it."""

REWRITTEN = {
    "pkill python": "pkill canary",  # it would end the tests
    "kill 1": "kill @CANARY@",
    "rm -rf /": "rm -rf / /scratch/*",  # rm itself refuses `/` alone
}
"""Rows that are changed so that they hit what is here, and nothing else."""

REWRITTEN_PARTS = {
    "/dev/tcp/localhost/80": "/dev/tcp/127.0.0.1/8001",
    "nc localhost 80": "nc 127.0.0.1 8001",
    "http://localhost": "http://127.0.0.1:8001",
    "ping -c1 localhost": "ping -c1 -W1 127.0.0.1",
    "find / ": "find /etc /scratch ",  # the same, in less than a minute
    "rm -rf /*": "rm -rf /scratch/* /tmp/*",
    "rm -r -f /*": "rm -r -f /scratch/* /tmp/*",
    "cd / && rm -rf *": "cd / && rm -rf scratch/* tmp/*",
    "sleep 100 &": "(touch late; sleep 100) &",
}
"""The same for parts of rows."""

TABLE_OPEN_TO_WRITER = {"docker": Kind.SOCKET}
"""What a writer may do by design by rows of the table, by their first word."""

STUBS = {
    # What is often missing, as far as the table and the attempts need it: it does to its operands what the program would.
    "sudo": 'while [ "${1#-}" != "$1" ]; do [ "$1" = -u ] && shift; shift; done; exec "$@"',
    "nc": 'exec 3<> "/dev/tcp/$1/$2"; echo x >&3',
    "rsync": 'for last; do :; done; while [ $# -gt 1 ]; do [ -e "$1" ] && cp -r "$1" "$last"; shift; done',
    "crontab": 'echo "* * * * * true" > "$HOME/.crontab"',
    "at": 'cat > "$HOME/.at-job"',
    "parallel": 'exec "$@"',
    "busybox": 'exec "$@"',
    "dig": "echo x > /dev/udp/127.0.0.1/8003",
    "nslookup": "echo x > /dev/udp/127.0.0.1/8003",
    "ping": "echo x > /dev/udp/127.0.0.1/8003",
    "rg": 'for word; do case $word in --pre=*) exec "${word#*=}" notes.txt;; esac; done; grep -rh KEY .',
    "setfattr": "exec python3 -c \"import os, sys; os.setxattr(sys.argv[-1], 'user.x', b'y')\" \"$@\"",
    "tree": '[ "$1" = -o ] && exec ls > "$2"',
    "watch": '[ "$1" = -n1 ] && shift; exec timeout 1 sh -c "$*"',
    "jq": 'cat "$@"',
    "xxd": 'for last; do :; done; [ $# -gt 1 ] && cat "$1" > "$last"',
    "unzip": "echo x > unpacked.txt",
    "zip": 'for last; do :; done; cat "$last" > x.zip',
    "ruby": "echo x > ruby-ran",
    "pytest": "mkdir -p .pytest_cache",
    "vim": "touch x",
    "ed": "cat",
    "gcc": "echo x > a.out",
}
"""Shell scripts for programs that are not installed, in a folder at the end of PATH."""

_NUMBERS = {
    # <asm/unistd_64.h>, <asm-generic/unistd.h>
    "x86_64": {
        "chmod": 90, "clone": 56, "add_key": 248, "keyctl": 250, "migrate_pages": 256, "shmget": 29, "msgget": 68,
        "semget": 64, "mq_open": 240, "sched_setattr": 314, "ioprio_set": 251, "process_vm_writev": 311,
        "ptrace": 101, "unshare": 272, "mount": 165, "setns": 308, "open_by_handle_at": 304,
        "name_to_handle_at": 303, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298, "sched_setaffinity": 203,
        "sched_setscheduler": 144, "move_pages": 279, "tgkill": 234, "rt_sigqueueinfo": 129, "sched_setparam": 142,
    },
    "aarch64": {
        "clone": 220, "add_key": 217, "keyctl": 219, "migrate_pages": 238, "shmget": 194, "msgget": 186,
        "semget": 190, "mq_open": 180, "sched_setattr": 274, "ioprio_set": 30, "process_vm_writev": 271,
        "ptrace": 117, "unshare": 97, "mount": 40, "setns": 268, "open_by_handle_at": 265,
        "name_to_handle_at": 264, "userfaultfd": 282, "bpf": 280, "perf_event_open": 241, "sched_setaffinity": 122,
        "sched_setscheduler": 119, "move_pages": 239, "tgkill": 131, "rt_sigqueueinfo": 138, "sched_setparam": 118,
    },
}.get(os.uname().machine, {})  # fmt: skip
# These have one number everywhere.
_NUMBERS |= {
    "io_uring_setup": 425, "pidfd_getfd": 438, "process_madvise": 440, "fchmodat2": 452, "openat2": 437, "move_mount": 429,
    "open_tree": 428, "fsopen": 430, "clone3": 435, "setxattrat": 463, "file_setattr": 469, "process_mrelease": 448,
    "mount_setattr": 442, "futex_wake": 454,
}  # fmt: skip


def rows() -> list[Attempt]:
    """Return the rows of the gate's table, changed where they must be."""
    found = []
    for number, line in enumerate(_lines(f"{ROOT}/tests/policy/hostile_commands.txt"), 1):
        if line and not line.startswith("# "):
            command = line.split(" ", 2)[2]
            by_design = TABLE_OPEN_TO_WRITER.get(command.split()[0])
            found.append(Attempt(rewritten(command), origin=str(number), open_to_writer=by_design))
    return found


def rewritten(command: str) -> str:
    """Return a row so that it hits what is in the namespace, and nothing else."""
    if command in REWRITTEN:
        return REWRITTEN[command]
    for part, instead in REWRITTEN_PARTS.items():
        command = command.replace(part, instead)
    return command


def own() -> list[Attempt]:
    """Return the attempts that an attacker adds who knows what a reader may not do."""
    found = []
    for line in _lines(f"{SUPPORT}/second_wall_attempts.txt"):
        if line and not line.startswith("# "):
            how, mark, what = line.split(" ", 2)
            found.append(Attempt(_command(how, what), open_to_writer=None if mark == "-" else Kind[mark]))
    return found


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [line.replace("\u23ce", "\n") for line in file.read().split("\n")]


def _command(how: str, what: str) -> str:
    """Return the command line of an attempt, whichever way it is written."""
    what = re.sub("@NR_([a-z0-9_]+)@", lambda named: str(_NUMBERS.get(named[1], -1)), what)
    match how:
        case "sh":
            return what
        case "py":
            return _python(what)
        case "call":
            call, _, before = what.partition(" ;; ")
            name, arguments = call.split(" ", 1)
            return _python(
                f"import ctypes; L = ctypes.CDLL(None, use_errno=True)\n{before}\n"
                f"r = L.syscall({_NUMBERS.get(name, -1)}, {arguments}); print(r, os.strerror(ctypes.get_errno()))"
            )
        case _:
            raise ValueError(how)


def _python(code: str) -> str:
    return f"python3 -I -c {shlex.quote(f'import os, sys{chr(10)}{code}')}"

"""Seatbelt: walls of macOS, as a profile for sandbox-exec(1).

Nobody has tried this profile on a Mac yet. So it is used only where `seatbelt_trial` has shown on that very machine that it
holds. It has no network, no `/tmp` and no processes of its own: walls that need one are refused.

The rule that matches last decides. Whatever no rule names is denied, also services of the system (mach-lookup), since some of
them start programs without walls.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from harness.sandbox import landlock
from harness.sandbox.walls import Unenforceable, Walls

PROGRAM = "/usr/bin/sandbox-exec"
_ALWAYS = (
    "(allow process-exec process-fork)",
    "(allow signal process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow ipc-posix-sem)",
    "(allow pseudo-tty)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
    "(allow file-read* file-map-executable)",
    '(deny file-read-data (subpath "/dev"))',
    "(allow file-read* file-write-data file-ioctl "
    + " ".join(f'(literal "/dev/{name}")' for name in "null zero random urandom dtracehelper tty ptmx".split())
    + ' (regex #"^/dev/fd/[0-9]+$") (regex #"^/dev/ttys[0-9]+$"))',
)
"""Rules of every command: it may start programs, signal its own, look up users, and read what is not hidden."""
_NAMES = (
    "com.apple.SystemConfiguration.configd",
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.trustd.agent",
)
"""Services that resolve names and check certificates."""


def profile(walls: Walls) -> str:
    """Return the profile of `walls`. Raises Unenforceable for walls that it cannot build."""
    if walls.own_network or walls.meets_servers or walls.own_tmp:
        raise Unenforceable("Seatbelt gives a command no network, and no /tmp, of its own")
    return "\n".join(("(version 1)", "(deny default)", *_ALWAYS, *_files(walls), *_network(walls), ""))


def prefix(walls: Walls, program: str = PROGRAM) -> tuple[str, ...]:
    """Return the words before the command line of a command in `walls`. Raises Unenforceable."""
    return program, "-p", profile(walls)


def _files(walls: Walls) -> Iterator[str]:
    """Yield the rules for files. Writing comes first, then what is kept, then what is hidden, then what is shown."""
    writable = _existing(walls.writable)
    for path in writable:
        if os.path.realpath(path) != path:
            raise Unenforceable(f"cannot allow writing to {path}: it is reached over a link")
    if writable:
        yield _rule("allow file-write*", writable)
    if walls.reader and walls.temporary is not None:
        yield "(deny file-write-mode file-write-owner file-write-times file-write-xattr file-write-flags)"
    protected = (*walls.keep, *walls.hold)
    if protected:
        yield _rule("deny file-write*", protected)
    hidden = tuple(dict.fromkeys((*walls.hide, *map(os.path.realpath, walls.hide))))
    if hidden:
        yield _rule("deny file-read-data file-read-xattr file-write* file-link", hidden)
    fixed = [path for path in (*protected, *hidden) if any(path.startswith(f"{folder}/") for folder in writable)]
    above = dict.fromkeys(folder for path in fixed for folder in landlock.parents(path))
    if above:  # a folder that is renamed would take what is in it out of the rules
        yield f"(deny file-write-unlink {' '.join(f'(literal {_quoted(folder)})' for folder in above)})"
    visible_paths = _existing(walls.show)
    if visible_paths:
        yield _rule("allow file-read-data", visible_paths)


def _network(walls: Walls) -> Iterator[str]:
    if walls.network:
        yield "(allow network* system-socket)"
        yield f"(allow mach-lookup {' '.join(f'(global-name {_quoted(name)})' for name in _NAMES)})"
    if walls.sockets:
        yield "(allow network* (local unix-socket) (remote unix-socket))"
        if walls.hide:
            yield _rule("deny network*", walls.hide)
    elif walls.network:
        yield "(deny network-outbound (remote unix-socket))"
        yield '(allow network-outbound (literal "/private/var/run/mDNSResponder"))'


def _rule(operation: str, paths: Iterable[str]) -> str:
    """Return a rule for paths, folders with everything below them."""
    return f"({operation} {' '.join(f'(subpath {_quoted(path)})' for path in paths)})"


def _existing(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if os.path.lexists(path))


def _quoted(text: str) -> str:
    """Return a string of the profile. Raises Unenforceable for a name with control characters or without an encoding."""
    if not text.isprintable():
        raise Unenforceable(f"{text!r} cannot be named in a profile of Seatbelt")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_of_root(program: str) -> bool:
    """Return whether a program belongs to root, and no other user may write it."""
    try:
        status = os.stat(program)
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & 0o022 and stat.S_ISREG(status.st_mode)

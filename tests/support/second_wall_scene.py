"""The scene of the second wall's proof: everything that an attempt could have an effect on, and what has become of it.

For use inside the throw-away namespace of second_wall.py only: what it watches is all that can be written there.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import sys
from typing import NamedTuple

from places import ROOT
from second_wall_attempts import Kind
from second_wall_files import LOG
from second_wall_outside import Canary, Listeners, Terminal, differences, state_of, text_of

from harness.process.guard import guard

KEYCTL_CLEAR, KEYCTL_READ = 7, 11  # <linux/keyctl.h>
KEYRINGS = (-4, -5)
"""Those of the user, and of the user's session: of this namespace alone."""
WATCHED = ("/scratch", "/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/mqueue")

STATE = "/scratch/state"
"""The harness's own folder, with the log that it writes."""
PROGRAMS = frozenset((*sys.path, sys.base_prefix, sys.prefix, ROOT, STATE))
"""Not looked at. All but the last are mounted read-only, wherever they lie, and are large."""


class Seen(NamedTuple):
    """What can be seen of one file."""

    mode: int
    owner: tuple[int, int]
    links: int
    inode: int
    modified: int
    changed: int
    content: bytes
    """Of a link its target."""
    attributes: tuple[str, ...]


Look = dict[str, Seen]


def look() -> Look:
    """Return everything that can be seen of what is watched. Times of reading are left out."""
    found: Look = {}
    for top in WATCHED:
        _look_at(top, found)
    return found


def _look_at(path: str, found: Look) -> None:
    if path in PROGRAMS:
        return
    try:
        facts = os.lstat(path)
    except FileNotFoundError:  # gone since its folder was read: seen as missing
        return
    content = b""
    attributes: tuple[str, ...] = ()
    try:
        if stat.S_ISREG(facts.st_mode):
            content = _content(path)
        elif stat.S_ISLNK(facts.st_mode):
            content = os.fsencode(os.readlink(path))
        attributes = tuple(os.listxattr(path, follow_symlinks=False))
    except OSError:
        pass
    found[path] = Seen(
        mode=facts.st_mode,
        owner=(facts.st_uid, facts.st_gid),
        links=facts.st_nlink,
        inode=facts.st_ino,
        modified=facts.st_mtime_ns,
        changed=facts.st_ctime_ns,
        content=content,
        attributes=attributes,
    )
    if stat.S_ISDIR(facts.st_mode):
        try:
            names = os.listdir(path)
        except OSError:
            return
        for name in names:
            _look_at(f"{path}/{name}", found)


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return os.read(descriptor, 1 << 20)
    finally:
        os.close(descriptor)


def kind_of(before: Seen | None, after: Seen | None) -> Kind:
    """Say whether the difference between two looks is more than one of modes, owners, times and attributes."""
    if before is None or after is None or before.content != after.content or before.inode != after.inode:
        return Kind.FILES
    return Kind.FILES if stat.S_IFMT(before.mode) != stat.S_IFMT(after.mode) else Kind.METADATA


def _kernel() -> tuple[object, ...]:
    """Return what processes can leave in the kernel: shared memory, queues, semaphores, keys, names, locks."""
    shared = [text_of(f"/proc/sysvipc/{name}") for name in ("shm", "msg", "sem")]
    stable = ["\n".join(line[: line.index(" ")] for line in text.splitlines() if " " in line) for text in shared]
    lines = [str(text.count("\n")) for text in shared]
    keys = [_keyctl(KEYCTL_READ, keyring, 4096) for keyring in KEYRINGS]
    return (*stable, *lines, *keys, *os.uname()[1:2], text_of("/proc/self/mountinfo"), text_of("/proc/swaps"))


def _harness() -> tuple[object, ...]:
    return state_of(os.getpid())[2:]


class Scene:
    """Everything that an attempt could have an effect on."""

    def __init__(self) -> None:
        self._log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.listeners = Listeners()
        self.terminal = Terminal()
        self.canary = Canary()
        self.good = look()
        self._settle()

    def names(self) -> dict[str, str]:
        """Return what stands in attempts between at signs."""
        return {
            "CANARY": str(self.canary.pid), "HARNESS": str(os.getpid()), "PTS": self.terminal.path, "LOG": str(self._log),
            "ADDRESS": str(self.canary.address), "SLAVE": str(self.terminal.slave),
        }  # fmt: skip

    def _settle(self) -> None:
        """Take what is now for what was, as soon as the guard, which takes a name of its own, is there."""
        guard().wait_until_loaded()
        self.now = look()
        self._kernel = _kernel()
        self._harness = _harness()
        self._running = _running()
        self.listeners.taken()

    def effects(self) -> list[tuple[Kind, str]]:
        """Return what has become of it since it was settled."""
        found: list[tuple[Kind, str]] = self.listeners.taken() + self.canary.changes()
        found += [(Kind.TERMINAL, what) for what in self.terminal.changes()]
        found += [(Kind.RUNNING, what) for pid, what in _running().items() if self._running.get(pid) != what]
        found += [
            (Kind.SIGNALLED, f"{pid} {name} is gone")
            for pid, name in self._running.items()
            if not os.path.exists(f"/proc/{pid}")
        ]
        if _kernel() != self._kernel:
            found.append((Kind.KERNEL, differences(self._kernel, _kernel())))
        if _harness() != self._harness:
            found.append((Kind.OTHERS, f"the harness: {differences(self._harness, _harness())}"))
        return found + _file_effects(self.now, look())

    def restore(self) -> None:
        """Make it what it was."""
        if self.canary.changes():
            self.canary.close()
            self.canary = Canary()
        if self.terminal.changes():
            self.terminal.close()
            self.terminal = Terminal()
        _clear_kernel()
        if restore(self.good):
            self.listeners.close()
            self.listeners = Listeners()
        os.close(self._log)
        self._log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._settle()


def _file_effects(before: Look, after: Look) -> list[tuple[Kind, str]]:
    """Return what changed between two looks; of a folder in which only names changed, these alone."""
    if before == after:
        return []
    changed = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    moved = {os.path.dirname(path) for path in changed if kind_of(before.get(path), after.get(path)) is Kind.FILES}
    found = [(kind_of(before.get(path), after.get(path)), path) for path in changed]
    return [(kind, path) for kind, path in found if kind is Kind.FILES or path not in moved]


def _running() -> dict[int, str]:
    """Return the name of every process that has not ended."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                what, _, rest = text_of(f"/proc/{name}/stat").rpartition(")")
            except OSError:
                continue
            if rest.split()[0] not in "ZX":
                found[int(name)] = what
    return found


def _keyctl(operation: int, keyring: int, size: int = 0) -> bytes:
    """Read or clear a keyring of this user; nothing where the kernel has none (keyctl(2))."""
    number = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine, -1)
    found = ctypes.create_string_buffer(size)
    length = ctypes.CDLL(None).syscall(number, operation, keyring, found, size)
    return found.raw[: max(length, 0)]


def _clear_kernel() -> None:
    for keyring in KEYRINGS:
        _keyctl(KEYCTL_CLEAR, keyring)
    for name, option in (("shm", "-m"), ("msg", "-q"), ("sem", "-s")):
        for line in text_of(f"/proc/sysvipc/{name}").splitlines()[1:]:
            subprocess.run(["ipcrm", option, line.split()[1]], check=False, capture_output=True)


def restore(good: Look) -> bool:
    """Bring back all files as they were, but for times and inode numbers; say whether a socket has to be bound anew."""
    for path, seen in good.items():
        folder = path not in WATCHED and stat.S_ISDIR(seen.mode) and os.path.isdir(path) and not os.path.islink(path)
        if folder and stat.S_IMODE(os.stat(path).st_mode) != stat.S_IMODE(seen.mode):
            os.chmod(path, stat.S_IMODE(seen.mode))
    now = look()
    for path in sorted(now, key=len, reverse=True):
        if path not in good or not _same(now[path], good[path]):
            _remove(path)
    lost = False
    for path, seen in good.items():  # a folder stands before what it holds
        if path in now and os.path.lexists(path):
            continue
        if stat.S_ISDIR(seen.mode):
            os.mkdir(path)
            os.chmod(path, stat.S_IMODE(seen.mode))
        elif stat.S_ISLNK(seen.mode):
            os.symlink(seen.content, path)
        elif stat.S_ISREG(seen.mode):
            with open(path, "wb") as file:
                file.write(seen.content)
            os.chmod(path, stat.S_IMODE(seen.mode))
            os.utime(path, ns=(seen.modified, seen.modified))
        else:
            lost = True
    return lost


def _same(now: Seen, good: Seen) -> bool:
    return (now.mode, now.content, now.attributes, now.links == good.links or stat.S_ISDIR(now.mode)) == (
        good.mode, good.content, good.attributes, True
    ) and (stat.S_ISDIR(now.mode) or now.inode == good.inode or not stat.S_ISSOCK(now.mode))  # fmt: skip


def _remove(path: str) -> None:
    if path in WATCHED or not os.path.lexists(path):
        return
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path, onerror=lambda *_: None)
        subprocess.run(["chmod", "-R", "u+rwx", path], check=False, capture_output=True)
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)

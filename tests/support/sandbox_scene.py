"""Where commands are tried: folders to attack and listeners to reach, and a harness (sandbox_runner.py) of each user."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import places
import pytest

from harness.process import procfs
from harness.sandbox import enforces, missing, probe

ROOT = 0
ORDINARY = 65534


def is_new_enough(interpreter: str) -> bool:
    """Return whether an interpreter can run the harness."""
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([interpreter, "-I", "-S", "-c", check], check=False).returncode == 0


PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
"""An interpreter that every user can start."""
INTERPRETER = PYTHON if is_new_enough(PYTHON) else sys.executable
"""The interpreter of the harness of each user, which starts the keeper as that user."""


USERS = [pytest.param(ROOT, id="root"), pytest.param(ORDINARY, id="ordinary")]

LANDLOCK_ALONE = {"no_namespaces": "turned off by the test", "bubblewrap": ""}
BUBBLEWRAP = {"no_namespaces": "turned off by the test"}
NAMESPACES: dict[str, str] = {}
BACKENDS = [
    pytest.param((uid, machine), id=f"{name}-{user}")
    for name, machine in (("namespaces", NAMESPACES), ("bubblewrap", BUBBLEWRAP), ("landlock", LANDLOCK_ALONE))
    for user, uid in (("root", ROOT), ("ordinary", ORDINARY))
]
"""The users, each with what the machine is made to lack."""

needs_walls = pytest.mark.skipif(
    not enforces(probe()), reason=f"NO WALL WAS TESTED, this machine has none: {'; '.join(missing(probe()))}"
)


def harness_of(uid: int, machine: Mapping[str, str], wrapper: tuple[str, ...] = ()) -> Iterator[Harness]:
    """Yield a harness of root or of an ordinary user; where the tests are not root's, only of the user that runs them.

    `machine` names what the machine is made to lack, unless a command says otherwise.
    """
    if os.getuid() != ROOT:
        if uid == ROOT:
            pytest.skip("NOT TESTED AS ROOT: the tests run as an ordinary user")
        uid = os.getuid()
    made = Harness(uid, machine, wrapper)
    if not made.has(machine):
        made.close()
        pytest.skip("NOT TESTED HERE: this machine has no such walls for this user")
    try:
        yield made
    finally:
        made.close()


def scene_of(harness: Harness) -> Iterator[Scene]:
    """Yield folders and listeners for one test."""
    made = Scene(harness)
    try:
        yield made
    finally:
        made.close()


class Scenes:
    """The scene of a harness, made anew where a command has changed it."""

    def __init__(self, harness: Harness, furnish: Callable[[Scene], object] = lambda scene: None) -> None:
        """Take whose it is, and what else is done when it is made."""
        self._harness = harness
        self._furnish = furnish
        self._scene: Scene | None = None
        self._before: dict[str, tuple[object, ...]] = {}

    def unchanged(self) -> Scene:
        """Return one that is as it was made."""
        if self._scene is not None and self._scene.look(".") != self._before:
            self.close()
        if self._scene is None:
            self._scene = Scene(self._harness)
            self._furnish(self._scene)
            self._before = self._scene.look(".")
        return self._scene

    def close(self) -> None:
        if self._scene is not None:
            self._scene.close()
            self._scene = None


def whose_turn(name: str, harness: Harness) -> bool:
    """Say whether an attempt is this user's to make: each is made by root or by the ordinary user, by both with HARNESS_FULL.

    Where the tests are not root's, there is but one user.
    """
    if os.getuid() != ROOT or os.environ.get("HARNESS_FULL"):
        return True
    return bool(zlib.crc32(name.encode()) % 2) == (harness.uid == ROOT)


class CommandOutcome(NamedTuple):
    """How a command ended."""

    code: int | None
    """None: it was not started."""
    output: str
    error: str
    gaps: list[str]
    prefix: list[str]
    kept: bool
    """Whether it ran in namespaces."""


class Harness:
    """A process that runs commands for one user; `wrapper` is what it is started through."""

    def __init__(self, uid: int, machine: Mapping[str, str], wrapper: tuple[str, ...] = ()) -> None:
        self.uid = uid
        self.machine = dict(machine)
        self.wrapped = bool(wrapper)
        self._process = subprocess.Popen(
            [*wrapper, INTERPRETER, os.path.join(places.SUPPORT, "sandbox_runner.py"), str(uid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=places.ROOT,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": places.ROOT, "SECRET_KEY": "sk-harness"},
        )

    def has(self, machine: Mapping[str, str]) -> bool:
        """Return whether this user really has the walls that `machine` leaves."""
        abilities = self.ask({"walls": "abilities"}).output
        return (
            "bubblewrap" in abilities if machine == BUBBLEWRAP else machine != NAMESPACES or "namespaces" in abilities
        )

    def ask(self, request: dict[str, Any]) -> CommandOutcome:
        self.tell(request)
        assert self._process.stdout is not None
        return CommandOutcome(**json.loads(self._process.stdout.readline()))

    def tell(self, request: dict[str, Any]) -> None:
        """Have a command run, without waiting for its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def kill(self) -> list[procfs.Process]:
        """Kill the process. Return its descendants, which may still run."""
        process = procfs.process(self._process.pid)
        descendants = procfs.family([process] if process else [])[1:]
        self._process.kill()
        self._process.wait()
        return descendants

    def close(self) -> None:
        self._process.communicate(timeout=300)


class Scene:
    """Folders $W (workspace), $T (temporary), $O (outside) and $H (hidden), all of the user's own, and listeners."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.folder = tempfile.mkdtemp(prefix="walls-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        for name in "WTOH":
            os.mkdir(f"{self.folder}/{name}")
        for name in ("W/file", "O/file", "O/doomed", "H/key"):
            self.file(name, f"content of {name}\n")
        os.mkdir(f"{self.folder}/O/empty")
        os.symlink(f"{self.folder}/O/file", f"{self.folder}/W/link")
        os.symlink(f"{self.folder}/H/key", f"{self.folder}/W/link-to-key")
        self.file("H/program", "#!/bin/sh\nexit 0\n")
        os.chmod(f"{self.folder}/H/program", 0o755)
        self.listeners = Listeners(self.folder)
        self.give(self.folder)
        self.environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": f"{self.folder}/W",
            "TMPDIR": f"{self.folder}/T",
            "LANG": "C.UTF-8",
            "PY": PYTHON,
            **{name: f"{self.folder}/{name}" for name in "WTOH"},
            **self.listeners.names,
        }

    @property
    def reader(self) -> dict[str, Any]:
        """Walls of a command that was judged to read only."""
        return {"write": [], "network": False, "hide": [f"{self.folder}/H"]}

    @property
    def workspace(self) -> dict[str, Any]:
        """Walls of the level workspace: something is hidden and something protected in what may be written."""
        return {
            **self.writer,
            "hide": [f"{self.folder}/H", f"{self.folder}/W/.env", f"{self.folder}/W/certs"],
            "keep": [f"{self.folder}/W/.git/hooks", f"{self.folder}/W/ci.yml"],
            "unix_sockets": False,
        }

    @property
    def writer(self) -> dict[str, Any]:
        """Walls of a command that may write the workspace."""
        return {**self.reader, "write": [f"{self.folder}/W", f"{self.folder}/T"]}

    def file(self, name: str, content: str) -> str:
        """Make a file below the scene's folder."""
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def give(self, path: str) -> None:
        """Give everything below `path` to the harness's user."""
        if os.getuid() == ROOT:
            os.lchown(path, self.harness.uid, self.harness.uid)
            for folder, folders, files in os.walk(path):
                for entry in (*folders, *files):
                    os.lchown(f"{folder}/{entry}", self.harness.uid, self.harness.uid)

    def run(
        self, command: str, walls: dict[str, Any] | None, *, cwd: str = "", unhidden: str = "refuse", **machine: Any
    ) -> CommandOutcome:
        """Run a command, behind walls or (None) without any; `machine` pretends that the machine were another one."""
        return self.harness.ask(self.request(command, walls, cwd=cwd, unhidden=unhidden, **machine))

    def request(
        self, command: str, walls: dict[str, Any] | None, *, cwd: str = "", unhidden: str = "refuse", **machine: Any
    ) -> dict[str, Any]:
        """Return the request to run a command."""
        return {
            "command": command,
            "cwd": cwd or f"{self.folder}/W",
            "environment": self.environment,
            "walls": walls,
            "machine": {**self.harness.machine, **machine},
            "unhidden": unhidden,
        }

    def look(self, *names: str) -> dict[str, tuple[object, ...]]:
        """Return all that can be seen of some folders: names, kinds, modes, owners, times, links and contents."""
        found: dict[str, tuple[object, ...]] = {}
        for name in names:
            for folder, folders, files in os.walk(f"{self.folder}/{name}"):
                for path in (folder, *(f"{folder}/{entry}" for entry in (*folders, *files))):
                    facts = os.lstat(path)
                    content = contents(path)
                    attributes = [] if os.path.islink(path) else os.listxattr(path)
                    found[path] = (
                        facts.st_mode, facts.st_uid, facts.st_gid, facts.st_nlink, facts.st_mtime_ns, content, attributes
                    )  # fmt: skip
        return found

    def close(self) -> None:
        self.listeners.close()
        shutil.rmtree(self.folder)


def contents(path: str) -> bytes:
    """Return what a regular file holds; nothing of anything else."""
    if os.path.islink(path) or not os.path.isfile(path):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except PermissionError:  # an attack closed it, and only root reads it
        return b""


def _accepted(listening: socket.socket) -> bytes:
    listening.accept()[0].close()
    return b"connected"


class Listeners:
    """Sockets of another program: on the loopback device, with a path, and with an abstract name. Also a pipe."""

    def __init__(self, folder: str) -> None:
        os.mkdir(f"{folder}/S")
        os.mkfifo(f"{folder}/S/pipe")
        abstract = f"walls-{uuid.uuid4().hex}"
        self._sockets = [
            self._bound(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            self._bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            self._bound(socket.AF_UNIX, socket.SOCK_STREAM, f"{folder}/S/stream"),
            self._bound(socket.AF_UNIX, socket.SOCK_DGRAM, f"{folder}/S/datagram"),
            self._bound(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
        ]
        self.names = {
            "TCP": str(self._sockets[0].getsockname()[1]),
            "UDP": str(self._sockets[1].getsockname()[1]),
            "STREAM": f"{folder}/S/stream",
            "DATAGRAM": f"{folder}/S/datagram",
            "PIPE": f"{folder}/S/pipe",
            "ABSTRACT": abstract,
        }

    def _bound(self, family: int, kind: int, address: object) -> socket.socket:
        made = socket.socket(family, kind)
        made.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            made.listen(16)
        return made

    def heard(self) -> bytes:
        """Return what was sent to the datagram sockets since the last call, and a word for each connection."""
        heard = b""
        for one in self._sockets:
            one.setblocking(False)
            try:
                heard += one.recv(100) if one.type == socket.SOCK_DGRAM else _accepted(one)
            except BlockingIOError:
                pass
        return heard

    def close(self) -> None:
        for one in self._sockets:
            one.close()

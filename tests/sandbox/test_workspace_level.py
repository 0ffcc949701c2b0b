"""The walls of the level workspace by each backend, as root and as an ordinary user: what each of them holds."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from process_scene import wait_until
from rows import all_rows
from sandbox_attacks import ATTACKS, METADATA, READER, WRITER, Attack, python, sock
from sandbox_scene import (
    BACKENDS,
    BUBBLEWRAP,
    LANDLOCK_ALONE,
    NAMESPACES,
    ORDINARY,
    ROOT,
    USERS,
    Harness,
    Scene,
    Scenes,
    harness_of,
    needs_walls,
    scene_of,
)

from harness.process import procfs

pytestmark = needs_walls


@pytest.fixture(scope="module", params=BACKENDS)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    yield from harness_of(*request.param)


@pytest.fixture(scope="module")
def scenes(harness: Harness) -> Iterator[Scenes]:
    made = Scenes(harness, furnish)
    yield made
    made.close()


def furnish(scene: Scene) -> None:
    """Put what is hidden and what is protected into the workspace."""
    scene.run("git init -q", None)
    for name in (".env", "certs/a.pem", ".git/hooks/pre-commit", "ci.yml", "src/a", "in/src/b"):
        scene.file(f"W/{name}", f"content of {name}\n")
    scene.give(scene.folder)


def backend(harness: Harness) -> str:
    return next(name for machine, name in _BY_MACHINE if machine == harness.machine)


_BY_MACHINE = ((NAMESPACES, "namespaces"), (BUBBLEWRAP, "bubblewrap"), (LANDLOCK_ALONE, "landlock"))


ALL = "namespaces bubblewrap landlock"


class Attempt(NamedTuple):
    """A command in the workspace, with the backends that stop it."""

    name: str
    command: str
    stopped_by: str = "namespaces bubblewrap"


HIDDEN = [
    Attempt("read a hidden file", "cat .env"),
    Attempt("copy a hidden file", "cp .env copy && test -s copy"),
    Attempt("link a hidden file", "ln .env hard && cat hard"),
    Attempt("write a hidden file", "echo x > .env"),
    Attempt("append to a hidden file", "echo x >> .env"),
    Attempt("remove a hidden file", "rm -f .env"),
    Attempt("replace a hidden file", "echo x > new && mv new .env"),
    Attempt("rename a hidden file", "mv .env other"),
    Attempt("read in a hidden folder", "cat certs/a.pem"),
    Attempt("rename a hidden folder", "mv certs other && cat other/a.pem"),
    Attempt("write in a hidden folder", "echo x > certs/new"),
    Attempt("read by the root of the first process", 'cat "/proc/1/root$W/.env"', ALL),
    Attempt("read by the folder of the first process", 'cat "/proc/1/cwd/.env" || cat "/proc/1/cwd$W/.env"', ALL),
    Attempt("unmount a mask", "umount .env; cat .env | grep ."),
    Attempt("commit a hidden file", "git -c safe.directory='*' add -f .env && git -c safe.directory='*' show :.env"),
]
PROTECTED = [
    Attempt("write a hook", "echo x > .git/hooks/pre-commit"),
    Attempt("make a hook", "echo x > .git/hooks/new"),
    Attempt("rename the hooks", "mv .git/hooks .git/other"),
    Attempt("rename a folder above", "mv .git git2"),
    Attempt("remove a protected file", "rm -f ci.yml"),
    Attempt("replace a protected file", "echo x > new && mv new ci.yml"),
    Attempt("truncate a protected file", ": > ci.yml"),
    Attempt("link over a protected file", "ln -sf src/a ci.yml"),
    Attempt("exchange a folder above", python(
        'import ctypes; L = ctypes.CDLL(None, use_errno=True); os.mkdir("fresh"); '
        'r = L.renameat2(-100, b".git", -100, b"fresh", 2); sys.exit(r and os.strerror(ctypes.get_errno()))'
    )),
]  # fmt: skip
OTHERS = [
    Attempt("connect to a socket", sock("AF_UNIX", "SOCK_STREAM", 's.connect(E["STREAM"])'), ALL),
    Attempt("send to a socket", sock("AF_UNIX", "SOCK_DGRAM", 's.sendto(b"x", E["DATAGRAM"])'), ALL),
    Attempt("see another's arguments", 'tr "\\0" " " < "/proc/$HARNESS/cmdline"'),
    Attempt("write into a pipe with a name", python("os.close(os.open(E['PIPE'], os.O_RDWR))"), "namespaces landlock"),
    Attempt("signal all", python("import signal; os.kill(int(E['HARNESS']), 0)"), ALL),
    Attempt(
        "see the machine's runtime folder", "test -e /run/$(ls /run | head -1) && ls /run | grep -v shm", "namespaces"
    ),
]


@all_rows("attempt", {attempt.name: attempt for attempt in (*HIDDEN, *PROTECTED, *OTHERS)})
def test_workspace_attempt_is_stopped_by_these_backends(attempt: Attempt, harness: Harness, scenes: Scenes) -> None:
    scene = scenes.unchanged()
    before = scene.look("W/certs", "W/.git/hooks", "W/ci.yml", "W/.env", "O", "H", "S")
    done = scene.run(attempt.command, scene.workspace, unhidden="tell")
    is_stopped = done.code != 0
    assert done.code is not None, done.output
    assert is_stopped == (backend(harness) in attempt.stopped_by), (done.code, done.output)
    if is_stopped and backend(harness) != "landlock":
        assert scene.look("W/certs", "W/.git/hooks", "W/ci.yml", "W/.env", "O", "H", "S") == before


@all_rows(
    "attack", {attack.name: attack for attack in ATTACKS if WRITER in attack.stopped_by or attack in METADATA[:7]}
)
def test_attack_is_stopped_at_the_workspace_level(attack: Attack, harness: Harness, scenes: Scenes) -> None:
    if backend(harness) == "landlock" and WRITER not in attack.stopped_by:
        pytest.skip("Landlock alone does not hold modes and times")
    if attack.name == "chmod in the workspace":
        pytest.skip("a command may do that")
    scene = scenes.unchanged()
    before = scene.look("O", "H", "S")
    done = scene.run(attack.command, scene.workspace, unhidden="tell")
    assert done.code is not None, done.output
    assert done.kept == (backend(harness) == "namespaces")
    if not (done.kept and attack.is_apart):
        assert done.code != 0, done.output
    assert scene.look("O", "H", "S") == before
    assert scene.listeners.heard() == b""


WORK = {
    "read and write": "set -e; cat src/a; echo x > new; mkdir d; mv new d/f; rm -r d",
    "move across folders": python('os.rename("src/a", "in/moved")'),
    "a server of its own": python(
        "import socket, threading; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(s.getsockname(), 60); s.accept()[0].send(b'x'); sys.exit(c.recv(1) != b'x')"
    ),
    "a connected pair of sockets": python(
        "import socket; a, b = socket.socketpair(); a.send(b'x'); sys.exit(b.recv(1) != b'x')"
    ),
    "a terminal of its own": python("import pty; sys.exit(pty.spawn(['true']) >> 8)"),
    "semaphores and pools": python(
        "import multiprocessing as m\nif __name__ == '__main__':\n    print(m.Pool(2).map(abs, [-1]))"
    ),
    "git": "git -c safe.directory='*' init -q g && cd g && echo x > a && git -c safe.directory='*' add a && git -c "
    "safe.directory='*' -c user.name=n -c user.email=e commit -qm one",
    "devices": "echo x > /dev/null && head -c 1 /dev/zero > zero && head -c 8 /dev/urandom > random && exec 3<>/dev/null",
    "process list": "ps aux > list && test -s list",
}


@all_rows("command", WORK)
def test_work_goes_on_in_namespaces(command: str, harness: Harness, scenes: Scenes) -> None:
    if backend(harness) != "namespaces":
        pytest.skip("the others have less: no loopback, and no terminal beside one that is in use")
    scene = scenes.unchanged()
    done = scene.run(command, {**scene.workspace, "hide": [f"{scene.folder}/W/.env", f"{scene.folder}/W/src/hidden"]})
    assert (done.code, done.kept) == (0, True), done.output


READS = {attack.name: attack for attack in ATTACKS if READER in attack.stopped_by}
del READS["make shared memory"]  # that of the session is its own in namespaces


@all_rows("attack", READS)
def test_attack_is_stopped_in_a_reader_with_its_own_tmp(attack: Attack, harness: Harness, scenes: Scenes) -> None:
    """What is read-only in its view stays so although modes and times may be set in its `/tmp`."""
    if backend(harness) != "namespaces":
        pytest.skip("a /tmp of its own needs namespaces")
    scene = scenes.unchanged()
    before = scene.look("W", "O", "H", "S")
    done = scene.run(attack.command, {**own_tmp(scene), "write": []})
    assert (done.kept, done.code == 0 and not attack.is_apart) == (True, False), done.output
    assert scene.look("W", "O", "H", "S") == before
    assert scene.listeners.heard() == b""


def own_tmp(scene: Scene) -> dict[str, object]:
    folder = scene.folder
    return {
        **scene.workspace,
        "write": [f"{folder}/W"],
        "temporary": f"{folder}/T",
        "own_tmp": True,
        "readable": [folder],
    }


def test_reader_finds_in_its_own_tmp_what_a_command_left(harness: Harness, scenes: Scenes) -> None:
    scene, name = scenes.unchanged(), f"left-{uuid.uuid4()}"
    written = scene.run(f"echo left > /tmp/{name}", own_tmp(scene))
    reading = f"cat /tmp/{name} && chmod 600 /var/tmp/{name} && echo more >> /tmp/{name} && ! echo x >> file"
    done = scene.run(reading, {**own_tmp(scene), "write": []})
    if backend(harness) == "namespaces":
        assert (written.code, done.code, done.output.partition("\n")[0]) == (0, 0, "left"), (written, done)
        with open(f"{scene.folder}/T/{name}", encoding="utf-8") as file:
            assert file.read() == "left\nmore\n"
    else:  # without namespaces it is not run with the machine's
        assert (written.code, done.code, "a /tmp of its own needs namespaces" in done.output) == (None, None, True)
    assert not os.path.lexists(f"/tmp/{name}")


def test_users_are_those_of_the_table(harness: Harness, scenes: Scenes) -> None:
    done = scenes.unchanged().run("id -u", scenes.unchanged().workspace, unhidden="tell")
    assert done.output == f"{harness.uid}\n"
    assert harness.uid in (ROOT, ORDINARY, os.getuid())


@pytest.mark.parametrize("uid", USERS)
def test_a_killed_harness_leaves_no_keeper_and_no_command(uid: int) -> None:
    """The keeper alone sees to it: the guard, which also would, is not there."""
    with contextmanager(harness_of)(uid, NAMESPACES) as harness, contextmanager(scene_of)(harness) as scene:
        command = "(trap '' TERM; setsid sleep 1000) & touch begun; sleep 1000"
        harness.tell(scene.request(command, scene.workspace))
        assert wait_until(lambda: os.path.exists(f"{scene.folder}/W/begun"))
        left = harness.kill()
        assert {process.name for process in left} > {"harness-keeper"}
        assert wait_until(lambda: not any(map(is_running, left))), [*filter(is_running, left)]


def is_running(process: procfs.Process) -> bool:
    now = procfs.process(process.pid)
    return now is not None and now.started == process.started and not now.has_ended

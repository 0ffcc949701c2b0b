"""What has to go on behind walls: ordinary work inside the workspace, and ordinary reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from rows import all_rows
from sandbox_scene import (
    BACKENDS,
    LANDLOCK_ALONE,
    ROOT,
    USERS,
    Harness,
    Scene,
    Scenes,
    harness_of,
    needs_walls,
    scene_of,
)

from harness.sandbox import bubblewrap
from harness.sandbox.walls import KEPT_BITS

pytestmark = needs_walls

GIT = "git -c user.name=n -c user.email=e -c init.defaultBranch=main -c safe.directory='*'"
CHECK_DEVICES = (
    "for d in null zero full random urandom; do exec 3< /dev/$d && echo 1 > /dev/$d || test $d = full || exit 1; done"
)


@pytest.fixture(scope="module", params=BACKENDS)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    yield from harness_of(*request.param)


@pytest.fixture(scope="module", params=USERS)
def own_terminals(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A harness in a view of the disk of its own, in which nobody has a terminal yet."""
    mounts = "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx"
    wrapper = ("unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")
    if os.getuid() != ROOT:
        pytest.skip("NO TERMINAL WAS OPENED BEHIND WALLS: only root can make an empty /dev/pts for that")
    yield from harness_of(request.param, LANDLOCK_ALONE, wrapper)


@pytest.fixture
def scene(harness: Harness) -> Iterator[Scene]:
    yield from scene_of(harness)


@pytest.fixture(scope="module")
def repositories(harness: Harness) -> Iterator[Scenes]:
    """Scenes in which a repository lies."""
    begin = f"{GIT} init -q r && cd r && echo x > a && {GIT} add a && {GIT} commit -qm one"
    made = Scenes(harness, lambda scene: scene.run(begin, None))
    yield made
    made.close()


@all_rows(
    "command",
    [
        pytest.param("echo x > new && cat new && echo y >> new && : > new", id="write, append, truncate"),
        pytest.param("mkdir -p a/b && touch a/b/f && rm -r a && rmdir ../T/. 2>/dev/null || test ! -e a", id="folders"),
        pytest.param("mkdir a b && echo x > a/f && mv a/f b/g && mv b c && cat c/g", id="move across folders"),
        pytest.param("echo x > f && mv f $T/f && mv $T/f . && cat f", id="move from one writable folder to another"),
        pytest.param("mkdir a && echo x > f && ln f a/hard && ln -s a/hard soft && cat soft", id="links"),
        pytest.param("mkfifo p && (echo x > p &) && cat p", id="a named pipe"),
        pytest.param('f=$(mktemp) && test -w "$f" && d=$(mktemp -d) && touch "$d/x"', id="mktemp"),
        pytest.param(
            'yes 0123456789 | head -c 200000 > big; eval "wc -c <<X\n$(cat big)\nX" | grep -q 200001 || exit 1',
            id="a here-document of 200 kB",
        ),
        pytest.param("chmod 600 file && touch -d 2001-01-01 file && test ! -x file", id="modes and times"),
        pytest.param(
            '"$PY" -c \'import os; os.setxattr("file", "user.x", b"y"); assert os.getxattr("file", "user.x") == b"y"\'',
            id="attributes",
        ),
        pytest.param(
            f"{GIT} init -q r && cd r && echo a > a && {GIT} add a && {GIT} commit -qm one && {GIT} gc -q && "
            f"{GIT} checkout -qb other && {GIT} mv a b && {GIT} commit -qam two && "
            f"{GIT} log --oneline | grep -c . | grep -qx 2",
            id="git init to commit",
        ),
        pytest.param("git config --global user.name n && git config user.name", id="git with a HOME inside"),
        pytest.param(
            "\"$PY\" -c \"import json, ssl, sqlite3; sqlite3.connect('d.db').execute('create table t(x)')\"",
            id="python",
        ),
        pytest.param(
            '"$PY" -c "import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))"', id="a pool of processes"
        ),
        pytest.param(
            '"$PY" -c "import asyncio; asyncio.run(asyncio.create_subprocess_exec(\'true\'))" && "$PY" -c '
            '"import threading as t; x = t.Thread(target=print); x.start(); x.join()"',
            id="threads and an event loop",
        ),
        pytest.param("printf '#!/bin/sh\\necho ran' > s && chmod +x s && ./s | grep -q ran", id="run what was written"),
        pytest.param("echo a | tee b | cat | grep -q a && echo <(true) >(true)", id="pipes"),
        pytest.param("ls -l / /dev / >/dev/null 2>&1 && echo x >/dev/null 2>/dev/null", id="/dev/null"),
        pytest.param(CHECK_DEVICES, id="harmless devices"),
        pytest.param("cat /dev/stdin < file > /dev/stdout && : > /dev/fd/1", id="/dev/fd"),
        pytest.param("sleep 100 & kill $! && ! wait $!", id="signals to its own children"),
        pytest.param("timeout 0.1 sleep 100 || test $? = 124", id="timeout"),
        pytest.param("setsid -w true && nice true && nohup true", id="sessions and priorities"),
        pytest.param(
            '"$PY" -c \'import socket; s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(); '
            'socket.socket(socket.AF_UNIX).connect("s")\'',
            id="a Unix socket inside",
        ),
        pytest.param(
            "tar cf a.tar file && mkdir x && tar xpf a.tar -C x && cp -a x y && cmp x/file y/file", id="tar and cp -a"
        ),
        pytest.param("ulimit -n 256 && test $(ulimit -n) = 256", id="limits of its own"),
        pytest.param("cd /usr && readlink -f /bin/sh && /bin/sh -c true && test -e /bin/..", id="links at the top"),
    ],
)
def test_ordinary_work_succeeds_inside_the_walls(command: str, harness: Harness) -> None:
    for scene in scene_of(harness):
        done = scene.run(f"set -e; {command}", scene.writer)
        if done.code != 0:
            for free in scene_of(harness):
                assert free.run(f"set -e; {command}", None).code == 0, "it does not work without walls either"
        assert done.code == 0, done.output


@all_rows(
    "command",
    [
        pytest.param("ls -la . /; ls -l /etc /usr/bin >/dev/null", id="ls -l"),
        pytest.param("id; whoami; getent passwd root; groups", id="names of users"),
        pytest.param("find . -name file | grep -q file && find /usr/lib -maxdepth 1 >/dev/null", id="find"),
        pytest.param("grep -rq content . && wc -l file && sort file | uniq -c", id="grep and friends"),
        pytest.param("sed -n 1p file && awk '{print $1}' file && diff file file && md5sum file", id="text tools"),
        pytest.param("cat <<'X'\nhere\nX", id="a small here-document"),
        pytest.param("sort <(cat file) | head -1", id="process substitution"),
        pytest.param(f"cd r && {GIT} status && {GIT} log && {GIT} diff && {GIT} blame a && {GIT} grep x", id="git"),
        pytest.param('"$PY" -c "import json, subprocess; print(subprocess.run([\'true\']))"', id="python"),
        pytest.param(
            '"$PY" -c "import socket; a, b = socket.socketpair(); a.send(b\'x\'); b.recv(1)"', id="a connected pair"
        ),
        pytest.param("echo x >/dev/null; head -c 8 /dev/urandom | od -x", id="harmless devices"),
        pytest.param("ps >/dev/null; df . >/dev/null; du -s . ; date; uname -a", id="looking around"),
        pytest.param("timeout 0.1 sleep 1000 || test $? = 124; sleep 1000 & kill $!", id="its own processes"),
    ],
)
def test_reading_succeeds_for_a_reader(command: str, repositories: Scenes) -> None:
    scene = repositories.unchanged()
    before = scene.look("W", "T", "O", "H")
    done = scene.run(f"set -e; {command}", scene.reader)
    assert done.code == 0, done.output
    assert scene.look("W", "T", "O", "H") == before


@all_rows(
    ("command", "sockets"),
    [
        pytest.param('exec 3<> "/dev/tcp/127.0.0.1/$TCP"', True, id="TCP"),
        pytest.param("echo x > /dev/udp/127.0.0.1/$UDP", True, id="UDP"),
        pytest.param("\"$PY\" -c 'import socket; socket.socket(10, 2); socket.socket(16, 3)'", True, id="IPv6 and netlink"),
        pytest.param('exec 3<> "/dev/tcp/127.0.0.1/$TCP"', False, id="TCP without Unix sockets"),
        pytest.param("\"$PY\" -c 'import socket; socket.create_server((\"127.0.0.1\", 0))'", False, id="a server"),
    ],
anew={"scene": scene_of})  # fmt: skip
def test_the_network_is_there_where_it_is_allowed(command: str, sockets: bool, scene: Scene) -> None:
    done = scene.run(command, {**scene.writer, "network": True, "unix_sockets": sockets})
    assert done.code == 0, done.output


def test_network_access_alone_permits_no_writing(scene: Scene) -> None:
    walls = {**scene.reader, "network": True}
    assert scene.run('exec 3<> "/dev/tcp/127.0.0.1/$TCP"', walls).code == 0
    assert scene.run('chmod 600 "$O/file"', walls).code == 1
    assert scene.run("echo x > new", walls).code == 1
    connect = '"$PY" -c \'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["STREAM"])\''
    assert scene.run(connect, walls).code == 1


def test_reader_connects_to_a_unix_socket_only_where_it_needs_one(scene: Scene) -> None:
    connect = '"$PY" -c \'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["STREAM"])\''
    walls = {**scene.reader, "needed_socket": True}
    assert scene.run(connect, walls).code == 0
    assert [scene.run(line, walls).code for line in ('chmod 600 "$O/file"', "echo x > new")] == [1, 1]
    assert scene.run('exec 3<> "/dev/tcp/127.0.0.1/$TCP"', walls).code == 1


def test_programs_gain_no_rights_behind_the_walls(scene: Scene) -> None:
    """Neither sudo nor su nor ping can work there; a person should hear why."""
    for walls in (scene.reader, scene.writer):
        assert scene.run("grep -q 'NoNewPrivs:.1' /proc/self/status", walls).code == 0
        kept = scene.run("sed -n 's/^CapEff:.//p' /proc/self/status", walls).output.strip()
        assert int(kept, 16) & ~KEPT_BITS == 0


def test_a_hidden_configuration_stops_git_unless_another_is_named(scene: Scene) -> None:
    """EACCES is not ENOENT: what a program looks for is better replaced than only hidden."""
    scene.file("W/.gitconfig", "[user]\n\tname = n\n")
    scene.give(scene.folder)
    walls = {**scene.reader, "hide": [f"{scene.folder}/W/.gitconfig"]}
    assert "unable to access" in scene.run("git status", walls).output
    assert "not a git repository" in scene.run("GIT_CONFIG_GLOBAL=/dev/null git status", walls).output


def test_a_long_here_document_is_lost_without_a_temporary_folder(scene: Scene) -> None:
    """bash says so and goes on: whoever looks at the status alone does not see it. Hence `temporary`."""
    long = 'eval "wc -c <<X\n$(yes | head -c 200000)\nX"; echo went on'
    done = scene.run(long, scene.reader)
    assert (done.code, "200000" in done.output) == (0, False), done.output
    assert "200000" in scene.run(long, {**scene.reader, "temporary": f"{scene.folder}/T"}).output


@all_rows(
    "machine",
    [{}, {"landlock": 0, "bubblewrap": bubblewrap.find()}],
    ids=["Landlock", "bubblewrap"],
    anew={"scene": scene_of},
)
def test_a_reader_with_a_temporary_folder_is_a_reader(machine: dict[str, Any], scene: Scene) -> None:
    if machine.get("bubblewrap") == "":
        pytest.skip("NOT TESTED WITH BUBBLEWRAP: there is none that works here")
    os.mkdir(f"{scene.folder}/H/tmp")
    scene.give(scene.folder)
    walls = {**scene.reader, "temporary": f"{scene.folder}/H/tmp"}
    works = (
        'f=$(mktemp) && echo x > "$f" && cat "$f" && eval "wc -c <<X\n$(yes | head -c 200000)\nX" && mkdir "$TMPDIR/d"'
    )
    assert scene.run(f'export TMPDIR="$H/tmp"; {works}', walls, **machine).code == 0
    connect = '"$PY" -c \'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["STREAM"])\''
    for attack in ("echo x > new", 'chmod 600 "$H/tmp"', "mktemp", 'chmod 600 "$O/file"', "cat $H/key", connect):
        assert scene.run(attack, walls, **machine).code == 1, attack


PSEUDO_TERMINAL = '"$PY" -c "import pty, sys; sys.exit(pty.spawn([\'tty\']) >> 8)"'


def test_pseudo_terminal_can_be_opened_with_own_devices_only(own_terminals: Harness) -> None:
    for scene in scene_of(own_terminals):
        done = scene.run(PSEUDO_TERMINAL, scene.writer)
        assert (done.code, "/dev/pts/0" in done.output) == (0, True), done.output
        assert scene.run(PSEUDO_TERMINAL, scene.reader).code != 0


def test_terminal_of_the_user_is_out_of_reach(scene: Scene) -> None:
    """Whoever can write to it can draw a prompt on it; whoever can read it can take the answer away."""
    master, slave = os.openpty()
    try:
        name = os.ttyname(slave)
        scene.give(name)
        assert scene.run(f"echo forged > {name}", None).code == 0
        for walls in (scene.reader, scene.writer):
            assert scene.run(f"echo forged > {name}", walls).code == 1
            assert scene.run(f"exec 3< {name}", walls).code == 1
            done = scene.run(PSEUDO_TERMINAL, walls)
            assert (done.code == 0) == done.kept, "one of its own is had in namespaces alone"
    finally:
        os.close(master)
        os.close(slave)

"""bubblewrap, where Landlock cannot hide something: what is hidden, what still works, what stays on the disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest
from places import ROOT, SUPPORT
from process_scene import wait_until
from rows import all_rows
from sandbox_attacks import ATTACKS, METADATA, READER, WRITER, Attack
from sandbox_scene import BUBBLEWRAP, USERS, Harness, Scene, Scenes, harness_of, needs_walls, scene_of, whose_turn

from harness.record import replace
from harness.sandbox import Walls, bubblewrap, prepare, probe

pytestmark = [
    needs_walls,
    pytest.mark.skipif(bubblewrap.find() == "", reason="BUBBLEWRAP WAS NOT TESTED: there is none that works here"),
]


@pytest.fixture(scope="module", params=USERS)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    yield from harness_of(request.param, BUBBLEWRAP)


@pytest.fixture
def scene(harness: Harness) -> Iterator[Scene]:
    yield from scene_of(harness)


def hiding(scene: Scene, *names: str) -> dict[str, object]:
    """Walls that hide something inside the writable workspace, beside the hidden folder."""
    scene.file("W/.env", "SECRET=1\n")
    scene.file("W/secrets/key", "secret\n")
    scene.give(scene.folder)
    return {**scene.writer, "hide": [f"{scene.folder}/H", *(f"{scene.folder}/{name}" for name in names)]}


@pytest.fixture(scope="module")
def scenes(harness: Harness) -> Iterator[Scenes]:
    made = Scenes(harness, lambda scene: hiding(scene, "W/.env"))
    yield made
    made.close()


@all_rows("attack", [
    "cat .env", "cp .env copy && test -s copy", "cat < .env", "rm .env", "mv .env other", "echo x > .env",
    "ln .env hard && cat hard", "cat secrets/key", "ls secrets | grep key", "echo x > secrets/new",
    "mv secrets other && cat other/key", "rmdir secrets",
    "cat /proc/1/root/$W/.env", "cat /proc/self/root/$W/.env", 'cat "$H/key"', 'test -s "$H/key"',
    "umount .env; cat .env | grep .", "umount secrets; cat secrets/key", "mount --bind / secrets",
])  # fmt: skip
def test_hidden_files_in_the_workspace_stay_hidden_and_intact(attack: str, scenes: Scenes) -> None:
    scene = scenes.unchanged()
    walls = {**scene.writer, "hide": [f"{scene.folder}/{name}" for name in ("H", "W/.env", "W/secrets")]}
    before = {path: facts for path, facts in scene.look("W", "H", "O").items() if path != f"{scene.folder}/W"}
    done = scene.run(attack, walls)
    assert done.prefix[:1] == [bubblewrap.find()]
    assert done.code not in (0, None), done.output
    after = scene.look("W", "H", "O")
    assert {path: after.get(path) for path in before} == before


@all_rows("attack", [
    "mv a other", "mv a/b other", "mv a/b/f other", "echo x > a/b/f", "rm -rf a", "echo x > a/kept/new", "mv a/kept other",
    "cat a/hidden/in | grep .", "mv a/linked other && echo x > a/b/f",
])  # fmt: skip
def test_kept_folder_cannot_be_moved(attack: str, scene: Scene) -> None:
    shutil.rmtree(f"{scene.folder}/W/a", ignore_errors=True)
    for name in ("a/b/f", "a/kept/f", "a/hidden/in"):
        scene.file(f"W/{name}", "old")
    os.symlink("b/f", f"{scene.folder}/W/a/linked")
    scene.give(scene.folder)
    kept = [f"{scene.folder}/W/{name}" for name in ("a/b/f", "a/kept", "a/hidden/in")]
    walls = {**scene.writer, "keep": kept, "hide": [f"{scene.folder}/W/a/hidden"]}
    done = scene.run(attack, walls)
    assert done.prefix[:1] == [bubblewrap.find()]
    assert done.code not in (0, None), done.output
    with open(f"{scene.folder}/W/a/b/f") as file:
        assert file.read() == "old"
    assert sorted(os.listdir(f"{scene.folder}/W/a/kept")) == ["f"]
    assert scene.run("echo x > new && mv new a/b/new && mkdir a/c", walls).code == 0, "the rest can be used"


def test_the_rest_of_the_workspace_can_be_used(scene: Scene) -> None:
    walls = hiding(scene, "W/.env", "W/secrets", "W/none", "W/none/deeper")
    before = set(scene.look("W"))
    done = scene.run(
        "set -e; mkdir a; echo x > a/f; mv a/f g; cat file g; chmod 600 g; ls -la > /dev/null; mktemp", walls
    )
    assert done.code == 0, done.output
    assert set(scene.look("W")) - before == {f"{scene.folder}/W/a", f"{scene.folder}/W/g"}, "no stub was left"


def bubblewrap_stops(attack: Attack) -> bool:
    """Tell whether bubblewrap has to stop an attack of a writer: all that Landlock stops, and modes and times outside."""
    return WRITER in attack.stopped_by or attack in METADATA[:7]


@all_rows("attack", {a.name: a for a in ATTACKS if bubblewrap_stops(a) and a.name != "chmod in the workspace"})
def test_the_attacks_fail_in_bubblewrap_too(attack: Attack, harness: Harness, scenes: Scenes) -> None:
    if not whose_turn(f"{attack.name} of a writer", harness):
        pytest.skip("the other user's turn")
    scene = scenes.unchanged()
    walls = {**scene.writer, "hide": [f"{scene.folder}/H", f"{scene.folder}/W/.env"]}
    before = scene.look("O", "H", "S")
    done = scene.run(attack.command, walls)
    assert done.prefix[:1] == [bubblewrap.find()]
    assert done.code not in (0, None), done.output
    assert scene.look("O", "H", "S") == before


@all_rows("attack", {a.name: a for a in ATTACKS if READER in a.stopped_by})
def test_a_reader_without_landlock_is_held_by_bubblewrap(attack: Attack, harness: Harness, scenes: Scenes) -> None:
    if not whose_turn(f"{attack.name} of a reader", harness):
        pytest.skip("the other user's turn")
    scene = scenes.unchanged()
    before = scene.look("W", "T", "O", "H", "S")
    done = scene.run(attack.command, scene.reader, landlock=0, bubblewrap=bubblewrap.find())
    assert done.prefix[:1] == [bubblewrap.find()]
    assert done.code not in (0, None), done.output
    assert scene.look("W", "T", "O", "H", "S") == before


def test_a_socket_is_closed_where_others_may_be_used(scene: Scene) -> None:
    connect = '"$PY" -c \'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["STREAM"])\''
    assert scene.run(connect, scene.writer).code == 0
    for network in (False, True):
        walls = {**scene.writer, "network": network, "hide": [f"{scene.folder}/S/stream"]}
        assert scene.run(connect, walls).code == 1


def test_the_network_is_there_where_it_is_allowed(scene: Scene) -> None:
    walls = hiding(scene, "W/.env") | {"network": True}
    assert scene.run('exec 3<> "/dev/tcp/127.0.0.1/$TCP"', walls).code == 0
    abstract = '"$PY" -c \'import os, socket; socket.socket(socket.AF_UNIX).connect("\\0" + os.environ["ABSTRACT"])\''
    assert scene.run(abstract, walls).code == 1, "Landlock closes those of the network that is shared"


def test_shown_or_writable_path_below_a_hidden_one_is_accessible(scene: Scene) -> None:
    scene.file("W/secrets/shown/file", "shown")
    scene.file("W/secrets/cache/file", "cached")
    walls = hiding(scene, "W/secrets")
    walls |= {"show": [f"{scene.folder}/W/secrets/shown"]}
    walls |= {"write": [f"{scene.folder}/W", f"{scene.folder}/W/secrets/cache"]}
    assert scene.run("cat secrets/shown/file secrets/cache/file && echo x > secrets/cache/new", walls).code == 0
    assert scene.run("echo x > secrets/shown/file", walls).code == 1
    assert scene.run("cat secrets/key", walls).code == 1


def test_a_pseudo_terminal_is_its_own(scene: Scene) -> None:
    walls = hiding(scene, "W/.env")
    done = scene.run('"$PY" -c "import pty, sys; sys.exit(pty.spawn([\'tty\']) >> 8)"', walls)
    assert (done.code, "/dev/pts/0" in done.output) == (0, True), done.output


def test_writable_path_that_became_a_link_prevents_the_start(scene: Scene) -> None:
    os.symlink(f"{scene.folder}/O", f"{scene.folder}/W/linked")
    walls = hiding(scene, "W/.env")
    walls |= {"write": [f"{scene.folder}/W", f"{scene.folder}/W/linked"]}
    assert scene.run("echo x > linked/new", walls).error == "Unenforceable"


def test_killing_the_group_ends_everything_inside() -> None:
    """Daemons too: the namespace ends with bubblewrap's own processes, which are in the group that is killed."""
    mark = f"86400.{os.getpid()}"
    command = f"setsid sleep {mark} & (setsid sleep {mark} &) ; sleep {mark}"
    walls = Walls(write=(ROOT,), network=False, hide=(os.path.join(SUPPORT, "process_scene.py"),))
    with prepare(walls, replace(probe(), no_namespaces="turned off")) as confinement:
        found: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            confinement.enter()
            found.append(
                subprocess.Popen(
                    [*confinement.prefix, "bash", "-c", command],
                    pass_fds=confinement.descriptors,
                    start_new_session=True,
                )
            )

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
    (process,) = found
    assert wait_until(lambda: len(sleepers(mark)) == 3), sleepers(mark)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert wait_until(lambda: not sleepers(mark)), sleepers(mark)


def sleepers(mark: str) -> list[str]:
    """Return the processes that sleep for `mark`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if file.read().split(b"\0")[:2] == [b"sleep", mark.encode()]:
                    found.append(name)
        except OSError:
            pass
    return found

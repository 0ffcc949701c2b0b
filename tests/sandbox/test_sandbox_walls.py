"""How walls are put up: which path means what, what is refused, what is kept from one command to the next, older kernels."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from process_scene import wait_until
from rows import all_rows
from sandbox_scene import LANDLOCK_ALONE, USERS, Harness, Scene, harness_of, needs_walls, scene_of, whose_turn

from harness.paths import is_within
from harness.record import replace
from harness.sandbox import (
    Confinement,
    Machine,
    Unenforceable,
    Unhidden,
    Walls,
    describe,
    enforces,
    missing,
    prepare,
    probe,
)
from harness.sandbox.landlock import MOST_ENTRIES, Rules, Rulesets, parents, readable, ruleset


@pytest.fixture(scope="module", params=USERS)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    yield from harness_of(request.param, LANDLOCK_ALONE)


@pytest.fixture
def scene(harness: Harness) -> Iterator[Scene]:
    yield from scene_of(harness)


def on_a_thread(work: object) -> list[BaseException]:
    """Call something on a thread of its own, and return what it raised."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors


def identity(path: str) -> tuple[object, ...]:
    found = os.lstat(path)
    return stat.S_IFMT(found.st_mode), found.st_dev, found.st_ino


# What paths mean


@needs_walls
def test_a_single_file_may_be_writable(scene: Scene) -> None:
    walls = {**scene.reader, "write": [f"{scene.folder}/O/file"]}
    assert scene.run('echo new > "$O/file" && cat "$O/file" && : > "$O/file"', walls).code == 0
    assert scene.run('echo x > "$O/other"', walls).code == 1
    assert scene.run('rm "$O/file"', walls).code == 1
    assert scene.run('mv "$O/doomed" "$O/file"', walls).code == 1


@needs_walls
def test_missing_paths_are_skipped(scene: Scene) -> None:
    gone = f"{scene.folder}/gone"
    walls = {"write": [gone, f"{scene.folder}/W"], "network": False, "hide": [gone, f"{gone}/x"], "show": [gone]}
    assert scene.run("echo x > new", walls).code == 0
    assert scene.run(f"mkdir {gone}", walls).code == 1


@needs_walls
def test_only_the_shown_path_below_a_hidden_folder_is_readable(scene: Scene) -> None:
    scene.file("H/shown/deep/file", "shown")
    scene.file("H/shown/deep/secret", "secret")
    scene.give(scene.folder)
    walls = {
        **scene.reader,
        "hide": [f"{scene.folder}/H", f"{scene.folder}/H/shown/deep/secret"],
        "show": [f"{scene.folder}/H/shown"],
    }
    assert scene.run('cat "$H/shown/deep/file"', walls).code == 0
    assert scene.run('echo x > "$H/shown/deep/file"', walls).code == 1
    assert scene.run('cat "$H/key"', walls).code == 1
    assert scene.run('cat "$H/shown/deep/secret"', walls).code == 1
    assert scene.run('cat "$H/shown/deep/file"', {**walls, "show": walls["hide"]}).code == 1, "hidden wins over shown"


@needs_walls
def test_a_writable_folder_below_a_hidden_one_is_readable(scene: Scene) -> None:
    scene.file("H/cache/file", "cached")
    scene.give(scene.folder)
    walls = {**scene.reader, "write": [f"{scene.folder}/H/cache"]}
    assert scene.run('cat "$H/cache/file" && echo x > "$H/cache/new" && mkdir "$H/cache/d"', walls).code == 0
    assert scene.run('cat "$H/key"', walls).code == 1


@needs_walls
def test_a_single_file_can_be_hidden_from_a_reader(scene: Scene) -> None:
    walls = {**scene.reader, "hide": [f"{scene.folder}/W/file"]}
    assert scene.run("cat file", walls).code == 1
    assert scene.run('cat "$O/file" && ls', walls).code == 0


@needs_walls
def test_hidden_link_hides_its_target(scene: Scene) -> None:
    walls = {**scene.reader, "hide": [f"{scene.folder}/W/link-to-key"]}
    assert scene.run('cat "$H/key"', walls).code == 1
    assert scene.run("cat link-to-key", walls).code == 1


@needs_walls
@all_rows("name", ["link", "linked/inside"], ids=["a link itself", "a folder on the way"], anew={"scene": scene_of})
def test_writable_path_that_became_a_link_prevents_the_start(name: str, scene: Scene) -> None:
    """What was judged was a folder; a link in its place leads to where nobody looked."""
    os.symlink(f"{scene.folder}/O", f"{scene.folder}/W/linked")
    os.mkdir(f"{scene.folder}/O/inside")
    scene.give(scene.folder)
    walls = {**scene.reader, "write": [f"{scene.folder}/W/{name}"]}
    done = scene.run("echo x > new", walls)
    assert (done.code, done.error) == (None, "Unenforceable")
    assert "over a link" in done.output


@all_rows("path", ["relative", "/a/../b", "/a/", "//a", "/a//b", "", "/a/.", "/a\0b", "/\ud800"])
@all_rows("field", ["write", "hide", "show"])
@needs_walls
def test_a_path_that_is_not_resolved_is_refused(field: str, path: str) -> None:
    with pytest.raises(Unenforceable, match=r"not an absolute path|not a valid file name"):
        prepare(Walls(**{"write": (), "network": False, field: (path,)}), probe())  # type: ignore[arg-type]


@needs_walls
def test_odd_names_are_allowed_and_hidden_like_others(scene: Scene) -> None:
    for name in ("new\nline", "-x", "sp ace", "\udcff", "ünï"):
        scene.file(f"W/{name}/key", "x")
        scene.file(f"O/{name}", "x")
    scene.give(scene.folder)
    odd = sorted(os.listdir(f"{scene.folder}/O"))
    walls = {**scene.reader, "hide": [f"{scene.folder}/O/{name}" for name in odd if name != "file"]}
    assert scene.run('for f in "$O"/*; do test -d "$f" || cat "$f"; done | grep -c . | grep -qx 1', walls).code == 0
    walls = {**scene.reader, "write": [f"{scene.folder}/W/\udcff", f"{scene.folder}/W/new\nline"]}
    assert scene.run("for d in $'\\xff' $'new\\nline'; do echo x > \"$d/key\" || exit 1; done", walls).code == 0


# What is refused, and what is told


@needs_walls
def test_unhideable_path_is_refused_or_reported(scene: Scene) -> None:
    walls = {**scene.writer, "hide": [f"{scene.folder}/W/file"]}
    done = scene.run("cat file", walls, bubblewrap="")
    assert (done.code, done.error) == (None, "Unenforceable")
    assert "which may be written" in done.output
    told = scene.run("cat file", walls, bubblewrap="", unhidden="tell")
    assert (told.code, len(told.gaps)) == (0, 1)
    assert f"{scene.folder}/W/file cannot be hidden" in told.gaps[0]


@needs_walls
def test_a_hidden_socket_is_refused_unless_no_socket_can_be_reached(scene: Scene) -> None:
    walls = {**scene.writer, "hide": [f"{scene.folder}/S/stream"]}
    assert scene.run("true", walls, bubblewrap="").error == "Unenforceable"
    assert scene.run("true", {**walls, "unix_sockets": False}, bubblewrap="").code == 0
    assert scene.run("true", {**walls, "write": []}, bubblewrap="").code == 0


@needs_walls
def test_a_folder_with_too_many_entries_is_refused_or_closed(scene: Scene) -> None:
    if not whose_turn("too many entries", scene.harness):
        pytest.skip("the other user's turn")
    os.mkdir(f"{scene.folder}/O/many")
    for number in range(MOST_ENTRIES + 1):
        os.mknod(f"{scene.folder}/O/many/{number}")
    walls = {**scene.reader, "hide": [f"{scene.folder}/O/many/7"]}
    assert scene.run("true", walls, bubblewrap="").error == "Unenforceable"
    told = scene.run('cat "$O/many/8"', walls, bubblewrap="", unhidden="tell")
    assert (told.code, len(told.gaps)) == (1, 1)


@needs_walls
@all_rows(
    ("machine", "words"),
    [
        pytest.param({"seccomp": ""}, "system calls cannot be filtered", id="no filter"),
        pytest.param({"landlock": 0, "bubblewrap": ""}, "missing or too old", id="no Landlock"),
        pytest.param({"landlock": 2, "bubblewrap": ""}, "missing or too old", id="an old Landlock"),
        pytest.param(
            {"landlock": 0, "bubblewrap": "", "reasons": ["turned off"]}, "turned off", id="the reason is told"
        ),
    ],
    anew={"scene": scene_of},
)
def test_insufficient_machine_prevents_the_start(machine: dict[str, Any], words: str, scene: Scene) -> None:
    done = scene.run("echo x > new", scene.writer, **machine)
    assert (done.code, done.error, words in done.output) == (None, "Unenforceable", True)
    assert not os.path.exists(f"{scene.folder}/W/new")


@needs_walls
def test_the_main_thread_is_never_confined() -> None:
    with (
        prepare(Walls(write=(), network=False), probe()) as confinement,
        pytest.raises(RuntimeError, match="main thread"),
    ):
        confinement.enter()
    Path("/dev/null").open("a").close()


@needs_walls
def test_entering_fails_where_a_part_of_it_fails() -> None:
    """A ruleset that is closed, a filter that is no program: OSError, and the thread knows not to start anything."""
    nothing = Walls(write=(), network=False)
    for broken in (
        Confinement(walls=nothing, ruleset=-1, program=None, capabilities=None),
        Confinement(walls=nothing, ruleset=None, program=bytes(8), capabilities=None),
    ):
        errors = on_a_thread(broken.enter)
        assert [isinstance(error, OSError) for error in errors] == [True]


@needs_walls
def test_closing_twice_closes_no_foreign_descriptor() -> None:
    confinement = prepare(Walls(write=(), network=False), probe())
    confinement.close()
    with open(os.devnull, "rb") as file:
        confinement.close()
        assert file.read() == b""
    assert [isinstance(error, OSError) for error in on_a_thread(confinement.enter)] == [True], (
        "closed walls are no walls"
    )


@needs_walls
def test_sixteen_walls_can_be_nested_at_most() -> None:
    walls = Walls(write=(), network=False)

    def nest() -> None:
        for _ in range(17):
            with prepare(walls, probe()) as confinement:
                confinement.enter()

    (error,) = on_a_thread(nest)
    assert isinstance(error, OSError)
    assert "16 Landlock domains" in str(error)


@needs_walls
def test_walls_in_walls_only_tighten(scene: Scene) -> None:
    code = (
        "import os, subprocess, sys, threading; sys.path.insert(0, sys.argv[1])\n"
        "from harness.record import replace\n"
        "from harness.sandbox import Walls, prepare, probe\n"
        "walls = Walls(write=(sys.argv[2],), network=True)\n"
        "def work():\n"
        "    prepare(walls, replace(probe(), no_namespaces='off')).enter()\n"
        "    print([not subprocess.call(['bash', '-c', 'echo x > \"$1/x\"', 'bash', p]) for p in sys.argv[2:4]])\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    program = scene.file("W/nested.py", code)
    for name in ("harness/sandbox", "harness"):
        shutil.copytree(
            os.path.join(ROOT, name),
            f"{scene.folder}/W/copy/{name}",
            dirs_exist_ok=True,
            ignore=lambda folder, names: [n for n in names if n == "__pycache__"],
        )
    scene.give(scene.folder)
    command = f'"$PY" -I {program} "$W/copy" "$O" "$W"'
    inside = {**scene.writer, "write": [f"{scene.folder}/W"]}
    assert scene.run(command, None).output.splitlines()[-1] == "[True, False]"
    os.unlink(f"{scene.folder}/O/x")
    assert scene.run(command, inside).output.splitlines()[-1] == "[False, False]"


# What is kept


@needs_walls
def test_a_workspace_that_was_made_again_is_writable_again(scene: Scene) -> None:
    for _ in range(3):
        assert scene.run("echo x > new", scene.writer).code == 0
        shutil.rmtree(f"{scene.folder}/W")
        os.mkdir(f"{scene.folder}/W")
        scene.give(f"{scene.folder}/W")


@needs_walls
def test_file_created_beside_a_hidden_one_is_readable_by_the_next_command(scene: Scene) -> None:
    for number in range(5):
        scene.file(f"later-{number}", "x")
        scene.give(scene.folder)
        assert scene.run(f'cat "$W/../later-{number}"', scene.reader).code == 0


@needs_walls
def test_file_replaced_beside_a_hidden_one_is_readable_by_the_next_command(scene: Scene) -> None:
    """Twice in between: the second may get the inode number that the first one had."""
    for _ in range(5):
        for _ in range(2):
            scene.file("next", "x")
            os.replace(f"{scene.folder}/next", f"{scene.folder}/replaced")
        scene.give(scene.folder)
        assert scene.run('cat "$W/../replaced"', scene.reader).code == 0


@needs_walls
def test_file_moved_to_a_hidden_place_is_hidden_from_the_next_command(scene: Scene) -> None:
    scene.file("moved", "x")
    scene.give(scene.folder)
    assert scene.run('cat "$W/../moved"', scene.reader).code == 0
    os.rename(f"{scene.folder}/moved", f"{scene.folder}/H/moved")
    assert scene.run('cat "$H/moved"', scene.reader).code == 1


@needs_walls
def test_a_secret_that_appears_later_is_hidden_from_the_next_command(scene: Scene) -> None:
    walls = {**scene.reader, "hide": [f"{scene.folder}/O/later"]}
    assert scene.run('cat "$O/file"', walls).code == 0
    scene.file("O/later", "secret")
    scene.give(scene.folder)
    assert scene.run('cat "$O/later"', walls).code == 1
    assert scene.run('cat "$O/file"', walls).code == 0


@needs_walls
def test_hidden_dangling_link_hides_its_later_target(scene: Scene) -> None:
    os.symlink(f"{scene.folder}/O/later", f"{scene.folder}/link")
    walls = {**scene.reader, "hide": [f"{scene.folder}/link"]}
    assert scene.run('cat "$O/file"', {**walls, "write": [f"{scene.folder}/T"]}).code == 0
    assert scene.run('cat "$O/file"', walls).code == 0
    scene.file("O/later", "secret")
    scene.give(scene.folder)
    assert scene.run('cat "$O/later"', walls).code == 1


@needs_walls
def test_rulesets_are_cached_until_a_change_and_bounded(tmp_path: Path) -> None:
    kept = Rulesets()
    folders = [tmp_path / str(number) for number in range(12)]
    for folder in folders:
        folder.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        for folder in folders:
            descriptor, gaps = kept.copy(Walls(write=(str(folder),), network=False), probe().landlock)
            os.close(descriptor)
            assert gaps == ()
    assert len(os.listdir("/proc/self/fd")) - before <= 2 * 8


@needs_walls
def test_ruleset_is_kept_while_folder_entries_stay_the_same(tmp_path: Path) -> None:
    """In the folders above, other tests make what stays: then it is tried again."""
    kept, passing, hidden = Rulesets(), tmp_path / "passing", tmp_path / "hidden"
    hidden.mkdir()
    walls = Walls(write=(), network=False, hide=(str(hidden),))

    def looked_at() -> object:
        os.close(kept.copy(walls, probe().landlock)[0])
        return next(iter(kept._cache.values()))

    def is_kept() -> bool:
        before = looked_at()
        passing.touch()
        passing.unlink()
        return looked_at() is before

    assert wait_until(is_kept)
    before = looked_at()
    passing.touch()
    assert looked_at() is not before


@needs_walls
@all_rows("kind", ["readable", "writable", "shown"])
def test_ruleset_for_a_replaced_file_is_not_kept(kind: str, tmp_path: Path) -> None:
    """Else its ruleset would be kept when what was found has come back, and what took its place is hidden again."""
    for name in ("other", "hidden/secret", "hidden/shown"):
        (tmp_path / name).mkdir(parents=True)
    hidden, other, shown = (str(tmp_path / name) for name in ("hidden", "other", "hidden/shown"))
    usable = {path: identity(path) for path in (other, shown)}
    everything = readable(frozenset((hidden,)), {shown: usable[shown]})
    of_other, of_shown = (
        replace(
            everything,
            whole_paths={path: found for path, found in everything.whole_paths.items() if is_within(path, top)},
        )
        for top in (other, shown)
    )
    assert (of_other.whole_paths, of_shown.whole_paths) == ({other: usable[other]}, {shown: usable[shown]})
    nothing = replace(everything, whole_paths={})
    rules = Rules(version=probe().landlock, readable=nothing, write={}, network=False, reader=True)
    path, rules = {
        "readable": (other, replace(rules, readable=of_other)),
        "writable": (other, replace(rules, write={other: usable[other]})),
        "shown": (shown, replace(rules, readable=of_shown)),
    }[kind]

    def is_as_found() -> bool:
        descriptor, told = ruleset(rules)
        os.close(descriptor)
        return told

    assert is_as_found()
    os.rename(path, f"{path}-away")
    assert not is_as_found(), "gone"
    os.rename(f"{hidden}/secret", path)
    assert not is_as_found(), "another"
    os.rename(path, f"{hidden}/secret")
    os.rename(f"{path}-away", path)
    assert is_as_found()


# What a machine is


@needs_walls
@all_rows("version", range(3, 8), anew={"scene": scene_of})
def test_every_version_of_landlock_holds_writing_and_the_network(version: int, scene: Scene) -> None:
    if version > probe().landlock:
        pytest.skip(f"NOT TESTED WITH LANDLOCK {version}: this kernel has {probe().landlock}")
    for walls in (scene.reader, scene.writer):
        for attack in (
            'echo x > "$O/file"',
            'exec 3<> "/dev/tcp/127.0.0.1/$TCP"',
            'cat "$H/key"',
            'cat "/proc/$HARNESS/environ"',
        ):
            assert scene.run(attack, walls, landlock=version).code == 1, attack
    assert scene.run('kill -0 "$HARNESS"', scene.reader, landlock=version).code == 1
    assert scene.run("mkdir a b && echo x > a/f && mv a/f b/f && mktemp", scene.writer, landlock=version).code == 0


OWNED_BY_ANOTHER = """\
import fcntl, os, signal, struct, sys
target, extended = int(sys.argv[1]), sys.argv[2] == "F_SETOWN_EX"
reader, writer = os.pipe()
if extended:
    fcntl.fcntl(reader, 15, struct.pack("=ii", 1, target))  # F_OWNER_PID
else:
    fcntl.fcntl(reader, fcntl.F_SETOWN, target)
fcntl.fcntl(reader, fcntl.F_SETSIG, signal.SIGKILL)
fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
os.write(writer, b"x")
"""
"""The kernel is asked to tell another process, by SIGKILL, that a pipe has something to read."""


@needs_walls
@all_rows("how", ["F_SETOWN", "F_SETOWN_EX"])
@all_rows("version", [5, 6], anew={"scene": scene_of})
def test_a_reader_ends_no_other_program_by_owning_a_descriptor(version: int, how: str, scene: Scene) -> None:
    """On every kernel; without walls it does."""
    program = scene.file("W/owned.py", OWNED_BY_ANOTHER)
    scene.give(scene.folder)
    landlock = min(version, probe().landlock)
    user = scene.harness.uid if os.getuid() == 0 else None
    ended = []
    for walls in (None, scene.reader):
        with subprocess.Popen(["sleep", "1000"], user=user) as victim:
            scene.run(f'"$PY" -I {program} {victim.pid} {how}', walls, landlock=landlock)
            try:
                # A busy machine can only hide that it is ended behind walls.
                ended.append(victim.wait(timeout=120 if walls is None else 0.2))
            except subprocess.TimeoutExpired:
                ended.append(0)
            victim.kill()
    assert ended == [-signal.SIGKILL, 0]


@all_rows(
    ("machine", "line", "enough", "words"),
    [
        (Machine(landlock=7, seccomp="x86_64"), "Landlock 7, seccomp", True, []),
        (Machine(landlock=9, seccomp="aarch64", bubblewrap="/b"), "Landlock 9, seccomp, bubblewrap", True, []),
        (Machine(landlock=4, seccomp="x86_64"), "Landlock 4, seccomp", True, ["signals"]),
        (Machine(landlock=2, seccomp="x86_64"), "Landlock 2, seccomp", False, ["emptied"]),
        (Machine(landlock=0, seccomp="x86_64", bubblewrap="/b"), "seccomp, bubblewrap", True, []),
        (Machine(landlock=7, seccomp="", reasons=("no filter",)), "Landlock 7", False, ["no filter"]),
        (Machine(landlock=7, seccomp="x86_64", bubblewrap=""), "Landlock 7, seccomp", True, ["bubblewrap"]),
        (Machine(landlock=7, seccomp="x86_64", no_namespaces=""), "Landlock 7, seccomp, namespaces", True, []),
        (Machine(landlock=0, seccomp="x86_64", no_namespaces=""), "seccomp, namespaces", True, []),
        (Machine(landlock=7, seccomp="x86_64", no_namespaces="EPERM"), "Landlock 7, seccomp", True, ["EPERM"]),
        (Machine(landlock=0, seccomp="", bubblewrap="", reasons=("off",)), "none", False, ["off", "bubblewrap"]),
    ],
)
def test_machine_is_described_in_words(machine: Machine, line: str, enough: bool, words: list[str]) -> None:
    assert (describe(machine), enforces(machine)) == (line, enough)
    told = missing(machine)
    assert [word for word, sentence in zip(words, told, strict=True) if word in sentence] == words


def test_probing_never_raises_and_leaves_this_process_free(tmp_path: Path) -> None:
    probe.cache_clear()
    machine = probe()
    assert machine is probe()
    assert enforces(machine) or missing(machine)
    (tmp_path / "new").write_text("still writable")
    with open("/proc/self/status", encoding="utf-8") as status:
        assert "NoNewPrivs:\t0\n" in status.read()


def test_container_that_forbids_landlock_is_recognized() -> None:
    """The same probe, in a process where a filter answers to Landlock's calls as a container's profile does."""
    code = (
        "import threading\n"
        "from harness.sandbox import kernel, machine, seccomp\n"
        "from harness.sandbox.system_calls import NUMBERS\n"
        "NUMBERS['reboot'] = (444, 444)  # refused with EPERM, like every call of that list\n"
        "import os\n"
        "calls = seccomp.Calls(network=True, sockets=True, metadata=True, signals=True)\n"
        "kernel.load()\n"
        "def work():\n"
        "    kernel.forbid_new_privileges()\n"
        "    kernel.filter_calls(seccomp.program(os.uname().machine, calls))\n"
        "    print(machine.probe())\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "landlock=0" in done.stdout
    assert "seccomp profile of a container" in done.stdout
    assert "bubblewrap=''" in done.stdout, "inside a filter bubblewrap cannot mount"


# Which folders are gone through


def test_reading_leaves_out_the_hidden_the_links_and_the_devices(tmp_path: Path) -> None:
    for name in ("a/b/hidden", "a/b/c", "a/d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/file").write_text("x")
    (tmp_path / "a/link").symlink_to("/etc")
    hidden = str(tmp_path / "a/b/hidden")
    found = readable(frozenset((hidden,)), {})
    top = str(tmp_path)
    assert {p.removeprefix(top) for p in found.whole_paths if is_within(p, top)} == {"/a/b/c", "/a/d", "/a/file"}
    assert set(found.listed_folders) == set(parents(hidden))
    assert [p for p in found.whole_paths if is_within(p, "/dev")] == []
    assert found.too_large == ()


def test_folder_entries_are_identified_as_the_kernel_does() -> None:
    """At a mount point the list of the folder has the number of what is covered; on FUSE it may have one for all."""
    listed = readable(frozenset(("/a-name-that-is-hidden",)), {}).listed_folders["/"]
    assert listed is not None
    assert listed["proc"] == identity("/proc")


def test_path_hidden_twice_or_everywhere_is_empty() -> None:
    usr = {"/usr": identity("/usr")}
    assert readable(frozenset("/"), {}).whole_paths == {}
    assert readable(frozenset(("/", "/usr")), usr).whole_paths == {}
    assert readable(frozenset("/"), usr).whole_paths == usr


@all_rows(
    ("path", "folder", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("/", "/", True),
    ],
)
def test_within(path: str, folder: str, inside: bool) -> None:
    assert is_within(path, folder) is inside


def test_unhidden_values_are_those_of_the_policy_file() -> None:
    assert [one.value for one in Unhidden] == ["refuse", "tell"]

"""What the kernel is told for the effects of a verdict: tables over real folders; and what a person is told of it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import all_rows
from sandbox_scene import needs_walls

from harness.actions import Effects, Enforcement
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.policy.loader import parse_policy
from harness.record import replace
from harness.sandbox import Machine, probe
from harness.sandbox.walls import Walls
from harness.tools.command_walls import CommandWalls, HeldTo, missing_folders, wall_notes, walls_for


class Place:
    """A workspace in a home folder, and folders beside it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        for folder in ("home/.config/harness", "home/.cache", "home/work/src", "elsewhere/deep", "state"):
            (base / folder).mkdir(parents=True)
        for file in ("home/.bashrc", "home/work/a.txt", "home/work/.env", "elsewhere/file", "state/log"):
            (base / file).write_text("x")
        (base / "home/work/away").symlink_to(base / "elsewhere")
        (base / "home/work/here").symlink_to(base / "home/work")
        (base / "home/work/inner").symlink_to(base / "home/work/src")
        self.workspace = Workspace(str(base / "home/work"), str(base / "home"), outputs=str(base / "state/out"))
        self.kept = (str(base / "state"), str(base / "home/.config/harness"))

    def full(self, name: str) -> str:
        """Return `~/x`, `./x` and `+x` (beside the home folder) as absolute paths."""
        home = name.replace("~", str(self.base / "home"), 1) if name.startswith("~") else name
        work = home.replace(".", str(self.base / "home/work"), 1) if home.startswith("./") or home == "." else home
        return work.replace("+", f"{self.base}/", 1) if work.startswith("+") else work

    def effects(
        self, granted: tuple[str, ...] = (), write: tuple[str, ...] | None = (), *, network: bool = False
    ) -> Effects:
        named = tuple(self.full(name) for name in write or ())
        known = None if write is None else named
        places = tuple(self.full(name) if name.startswith("+") else name for name in granted)
        return Effects(
            read=None, write=known, named_paths=named, granted=places, network=network, unasked=False, keep=self.kept
        )


def new_place(tmp_path: Path) -> Iterator[Place]:
    def too_slow(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(10)  # a loop that never ends is one of the things that are tried
    yield Place(Path(os.path.realpath(tmp_path)))
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


place = pytest.fixture(new_place, name="place")


GRANTED: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("the workspace", (".",), (".",)),
    ("a folder of it", ("src",), ("./src",)),
    ("a file of it", ("a.txt",), ("./a.txt",)),
    ("a folder of the home", ("~/.cache",), ("~/.cache",)),
    ("a folder elsewhere", ("+elsewhere",), ("+elsewhere",)),
    ("nothing that is missing", ("missing", "~/missing", "+missing"), ()),
    ("no link that leads out", ("away",), ()),
    ("nothing behind a link that leads out", ("away/deep",), ()),
    ("no link that leads to the whole workspace", ("here",), ()),
    ("no link within the workspace either", ("inner",), ()),
    ("no folder that holds the harness's own files", ("~/.config", "+state", "+"), ()),
    ("none of the harness's own files", ("~/.config/harness",), ()),
]


@all_rows(
    ("granted", "writable"), [row[1:] for row in GRANTED], ids=[row[0] for row in GRANTED], anew={"place": new_place}
)
def test_granted_paths_are_writable(place: Place, granted: tuple[str, ...], writable: tuple[str, ...]) -> None:
    walls = walls_for(place.effects(granted), place.workspace)
    assert walls.write == tuple(place.full(name) for name in writable)


NAMED: list[tuple[str, str, tuple[str, ...]]] = [
    ("a file of the workspace opens its folder", "./src/new", ("./src",)),
    ("one that is there too, since it may be replaced", "./a.txt", ("./a.txt", ".")),
    ("a folder opens itself and the one that holds it", "./src", ("./src", ".")),
    ("the workspace opens itself alone", ".", (".",)),
    ("of missing folders the first that is there", "./x/y/z", (".",)),
    ("a file outside that is there opens itself alone", "+elsewhere/file", ("+elsewhere/file",)),
    ("one that is not opens its folder", "+elsewhere/new", ("+elsewhere",)),
    ("a file in a file opens nothing", "+elsewhere/file/x", ()),
    ("a file of the home folder opens itself alone", "~/.bashrc", ("~/.bashrc",)),
    ("a new one of the home folder opens nothing", "~/new", ()),
    ("nor does that folder itself", "~", ()),
    ("nothing opens the root", "/new-at-the-root", ()),
    ("nothing opens what holds the harness's own files", "~/.config/new", ()),
    ("nor those", "+state/log", ()),
    ("a device opens itself alone", "/dev/null", ("/dev/null",)),
    ("a new device opens nothing", "/dev/new", ()),
    ("a process's files open nothing", "/proc/self/new", ()),
    ("a word that no file can be named by opens nothing", "a" * 5_000, ()),
]


ENTRIES: list[tuple[str, str, tuple[str, ...]]] = [
    ("a file outside opens its folder", "+elsewhere/file", ("+elsewhere/file", "+elsewhere")),
    ("a link opens its folder and nothing that it leads to", "./away", (".",)),
    ("a file of the home folder opens itself alone", "~/.bashrc", ("~/.bashrc",)),
    ("nothing opens what holds the harness's own files", "+state", ()),
]


@all_rows(
    ("entry", "writable"), [row[1:] for row in ENTRIES], ids=[row[0] for row in ENTRIES], anew={"place": new_place}
)
def test_parent_of_a_moved_or_removed_name_is_writable(place: Place, entry: str, writable: tuple[str, ...]) -> None:
    effects = replace(place.effects(write=(entry,)), entries=(place.full(entry),))
    assert walls_for(effects, place.workspace).write == tuple(place.full(name) for name in writable)


@all_rows(("write", "writable"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED], anew={"place": new_place})
def test_named_path_opens_the_expected_folders(place: Place, write: str, writable: tuple[str, ...]) -> None:
    walls = walls_for(place.effects(write=(write,)), place.workspace)
    assert walls.write == tuple(place.full(name) for name in writable)


def test_reading_command_has_no_temporary_folder(place: Place) -> None:
    def temporary() -> str:
        return "/tmp/mine"

    reader, writer = place.effects(), place.effects(("src",))
    assert [effects.looks_only for effects in (reader, writer, place.effects(write=None))] == [True, False, False]
    assert walls_for(reader, place.workspace, temporary=temporary).temporary is None
    assert walls_for(writer, place.workspace, temporary=temporary).temporary == "/tmp/mine"


def test_existing_hidden_paths_are_hidden_and_outputs_shown(place: Place) -> None:
    effects = Effects(
        read=None, write=(), network=False, unasked=True, hide=("~/.bashrc", ".env", "~/.ssh", "away/file")
    )
    walls = walls_for(effects, place.workspace, hide=(place.full("+state"),))
    assert walls.hide == tuple(place.full(name) for name in ("~/.bashrc", "./.env", "+elsewhere/file", "+state"))
    assert walls.show == (place.full("+state/out"),)


def test_folders_that_a_rule_grants_are_made_where_they_are_missing(place: Place) -> None:
    effects = place.effects(("build/", "src/", "a/b/", "plain", "away/new/", "~/x/", "+x/"))
    assert list(missing_folders(effects, place.workspace)) == [place.full("./build"), place.full("./a/b")]


TOLD: list[tuple[str, tuple[str, ...], tuple[str, ...], str]] = [
    ("nothing of what is to the letter", ("src",), (), ""),
    (
        "what is opened as a whole",
        (),
        ("./src/new",),
        "; fully writable, so that files can be made and removed there: ./src",
    ),
    (
        "the workspace by name",
        (),
        ("./new",),
        "; fully writable, so that files can be made and removed there: the workspace",
    ),
    (
        "what cannot be written",
        (),
        ("~/.config/new",),
        "; cannot be made, because its folder stays read-only: ~/.config/new",
    ),
]


@all_rows(
    ("granted", "write", "told"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD], anew={"place": new_place}
)
def test_walls_are_described_in_words(
    place: Place, granted: tuple[str, ...], write: tuple[str, ...], told: str
) -> None:
    walls = CommandWalls(place.workspace, machine=Machine(landlock=7, seccomp="x86_64"))
    words = told.replace("~", place.full("~")).replace("./", f"{place.full('.')}/")
    assert walls.in_words(place.effects(granted, write)) == f"Landlock 7, seccomp{words}"


def test_description_names_files_that_cannot_be_moved(place: Place) -> None:
    walls = CommandWalls(place.workspace, machine=Machine(landlock=7, seccomp="x86_64"))
    effects = replace(place.effects(write=("~/.bashrc",)), entries=(place.full("~/.bashrc"),))
    assert walls.in_words(effects) == f"Landlock 7, seccomp; cannot be moved or removed: {place.full('~/.bashrc')}"


def test_description_names_files_left_unhidden_and_unprotected(place: Place) -> None:
    listener = socket.socket(socket.AF_UNIX)
    address = place.full("+s")
    listener.bind(address)
    policy = place.full("./a.txt")
    effects = Effects(
        read=None, write=None, granted=(".",), network=False, unasked=False, hide=(".env", address), keep=(policy,)
    )
    told = CommandWalls(place.workspace, machine=Machine(landlock=7, seccomp="x86_64", bubblewrap="")).in_words(effects)
    listener.close()
    hidden = f"not hidden: {place.full('./.env')}"
    assert told == f"Landlock 7, seccomp; {hidden}; not protected: {policy}"


BARE = Machine(landlock=0, seccomp="", bubblewrap="", reasons=("this kernel has no Landlock",))


def test_machine_without_walls_refuses_required_confinement(place: Place) -> None:
    walls = CommandWalls(place.workspace, machine=BARE)
    asked = Effects(read=None, write=None, granted=(".",), network=True, unasked=False)
    required = Effects(read=None, write=None, network=True, unasked=False, enforcement=Enforcement.REQUIRED)
    assert (walls.confines, walls.level) == (False, "none: this kernel has no Landlock")
    assert walls.in_words(asked) == "none: this kernel has no Landlock"
    assert walls.confinement(asked, lambda: "/tmp") is None
    with pytest.raises(ToolError, match="requires that commands are confined, and this machine cannot"):
        walls.confinement(required, lambda: "/tmp")


def test_unconfined_command_has_no_walls(place: Place) -> None:
    off = Effects(read=None, write=None, network=True, unasked=False, enforcement=Enforcement.OFF)
    walls = CommandWalls(place.workspace, machine=probe())
    assert (walls.in_words(off), walls.confinement(off, lambda: "/tmp")) == ("none: it asked to run unconfined", None)


@all_rows(
    "output",
    [
        "curl: (6) Could not resolve host: a.example",
        "Cloning into 'x'...\nfatal: transport 'https' not allowed",
        "fatal: transport 'ssh' not allowed",
    ],
)
def test_failure_to_reach_the_network_is_noted(output: str) -> None:
    held = HeldTo(walls=Walls(write=(), network=False), gaps=())
    assert [note for note in wall_notes(output, held, failed=True) if "it has no network" in note]
    assert wall_notes(output, replace(held, walls=Walls(write=(), network=True)), failed=True) == []


@needs_walls
def test_missing_wall_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / ".env").touch()
    workspace = Workspace(str(tmp_path), str(tmp_path))
    rule = b'[[rule]]\nid = "secrets"\ndecision = "deny"\naccess = ["read", "write"]\npath = [".env"]\nreason = "Secrets."\n'
    policy = parse_policy(b"version = 1\n" + rule, "p.toml")
    bare = replace(probe(), bubblewrap="", no_namespaces="unshare: EPERM")
    walls = CommandWalls(workspace, machine=bare)
    assert walls.lack == "no namespaces: unshare: EPERM"
    assert walls.walls_here(policy, "bash").gap == ".env cannot be protected here (no namespaces: unshare: EPERM)"
    whole = CommandWalls(workspace, machine=replace(bare, bubblewrap="/usr/bin/bwrap"))
    assert (whole.lack, whole.walls_here(policy, "bash").gap) == ("", "")

"""The changes of a command by two looks, on real trees: nothing is missed, and the earlier contents are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from git_scene import run_git
from places import ROOT
from undo_world import ENVIRONMENT, NO_DISK_LIMIT

from harness.files.tree_changes import LeftOut, PathKind, TreeChanges, TreeCounts
from harness.files.tree_looks import MAX_FILES
from harness.files.tree_watch import DENIED, TreeWatch


def nothing_denied(path: str) -> bool:
    return False


class Place:
    """A workspace with its watch."""

    def __init__(self, folder: Path, denied: Callable[[str], bool] = nothing_denied) -> None:
        self.root = Path(os.path.realpath(folder)) / "a tree"
        self.root.mkdir()
        self.stores = folder / "state" / "trees"
        self.denied = denied

    def bash(self, script: str) -> None:
        subprocess.run(["bash", "-ec", script], cwd=self.root, check=True, stdin=subprocess.DEVNULL)

    def commit(self) -> None:
        """Commit all files, and let git look at them again when they are older than its index."""
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
            run_git(self.root, *words)
        for path in self.root.rglob("*"):
            if ".git" not in path.parts and not path.is_symlink():
                os.utime(path, ns=(10**18 + 1, 10**18 + 1))
        run_git(self.root, "update-index", "--refresh")
        self.pass_time()

    def pass_time(self) -> None:
        """Wait until the last changes are older than a stamp that a later change may repeat."""
        probe = self.root.parent / "probe"
        probe.write_text("")
        deadline = os.stat(probe).st_ctime_ns + 50_000_000
        while os.stat(probe).st_ctime_ns <= deadline:
            probe.write_text("")

    def watch(self, max_files: int = MAX_FILES, monotonic: Callable[[], float] = time.monotonic) -> TreeWatch:
        return TreeWatch(
            str(self.root),
            str(self.stores),
            denied=self.denied,
            environment=ENVIRONMENT,
            limits=NO_DISK_LIMIT,
            max_files=max_files,
            monotonic=monotonic,
        )

    def changes(self, script: str, watch: TreeWatch | None = None) -> TreeChanges:
        noted = (watch or self.watch()).note(fresh_seconds=0)
        self.bash(script)
        return noted.compared()


def told(changes: TreeChanges) -> list[str]:
    """Return each change in one line: path, kind before and kind after."""
    return [f"{change.path} {change.before.kind.value} {change.after.kind.value}" for change in changes.changes]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("in_git", [True, False])
def test_each_kind_of_change_is_recorded_with_both_contents(place: Place, in_git: bool) -> None:
    place.bash("mkdir -p a/b c; echo one > a/f; echo two > a/b/g; echo three > c/h; ln -s f a/link; echo x > kind")
    if in_git:
        place.commit()
    watch = place.watch()
    watch.look_ahead()
    changes = place.changes(
        "echo new > a/new; rm a/b/g; rmdir a/b; echo more >> a/f; chmod 750 c; chmod 600 c/h;"
        "ln -sfn new a/link; rm kind; mkdir -p kind/empty; touch a",
        watch,
    )
    assert told(changes) == [
        "a/b folder none",
        "a/b/g file none",
        "a/f file file",
        "a/link link link",
        "a/new none file",
        "c folder folder",
        "c/h file file",
        "kind file folder",
        "kind/empty none folder",
    ]
    by_path = {change.path: change for change in changes.changes}
    contents = {
        path: [None if state.sha256 is None else watch.store.get(state.sha256) for state in (one.before, one.after)]
        for path, one in by_path.items()
    }
    assert contents["a/f"] == [b"one\n", b"one\nmore\n"]
    assert contents["a/b/g"] == [b"two\n", None]
    assert contents["a/new"] == [None, b"new\n"]
    assert contents["kind"] == [b"x\n", None]
    assert (by_path["a/link"].before.target, by_path["a/link"].after.target) == ("f", "new")
    assert (by_path["c/h"].is_mode_alone, by_path["c/h"].after.mode) == (True, 0o600)
    assert changes.counts() == TreeCounts(added=2, changed=5, removed=1, modes=2, links=1)
    assert TreeChanges.from_fields(json.loads(json.dumps(changes.fields()))) == changes


def test_contents_in_git_are_not_kept_before_they_change(place: Place) -> None:
    place.bash("mkdir a; for n in $(seq 30); do echo $n > a/$n; done")
    place.commit()
    watch = place.watch()
    watch.look_ahead()
    assert not place.stores.exists()
    changes = place.changes("echo x > a/7", watch)
    assert watch.store.get(str(changes.changes[0].before.sha256)) == b"7\n"


@pytest.mark.parametrize(
    ("attributes", "content"),
    [
        ("* text=auto\n", "one\\r\\ntwo\\r\\n"),
        ("*.txt filter=x\n", "plain\\n"),
        ("[attr]mine text\n*.txt mine\n", "a\\r\\n"),
    ],
)
def test_files_that_git_converts_are_kept_as_they_are(place: Place, attributes: str, content: str) -> None:
    (place.root / ".gitattributes").write_text(attributes)
    place.bash(
        f"printf '{content}' > a.txt; git init -q; git config filter.x.clean 'tr a-z b-za'; git config filter.x.smudge cat"
    )
    before = (place.root / "a.txt").read_bytes()
    place.commit()
    watch = place.watch()
    changes = place.changes("echo x > a.txt", watch)
    assert watch.store.get(str(changes.changes[0].before.sha256)) == before


def test_same_size_and_times_do_not_hide_a_change(place: Place) -> None:
    place.bash("echo aaaa > f; touch -d 2020-01-01 f")
    assert told(place.changes("echo bbbb > f; touch -d 2020-01-01 f")) == ["f file file"]


def test_rewritten_and_touched_files_are_no_changes(place: Place) -> None:
    place.bash("echo a > f; echo b > g")
    assert place.changes("echo a > f; touch g; mv g h; mv h g").changes == ()


def test_paths_that_are_left_out_are_named(place: Place) -> None:
    place.bash(
        "mkdir -p node_modules/x target dist .venv/lib cache; touch .venv/pyvenv.cfg dist/tracked target/o;"
        "echo 'Signature: 8a477f597d28d172789f06886806bc55' > cache/CACHEDIR.TAG; mkfifo pipe;"
        "head -c 10000001 /dev/zero > large; printf '%s\\n' target large .venv cache > .gitignore"
    )
    place.commit()
    changes = place.changes(
        "touch node_modules/y; echo more >> large; touch target/p dist/new .venv/lib/z; echo > .git/x"
    )
    assert told(changes) == ["dist/new none file"]
    assert [(one.path, one.reason, one.is_changed) for one in changes.left_out] == [
        ("large", "over 10 MB", True),
        ("node_modules", "build folder", True),
        ("target", "build folder", True),
        (".venv", "build folder", False),
        ("cache", "build folder", False),
        ("pipe", "special file", False),
    ]


def test_removed_paths_that_are_left_out_are_told_from_changed_ones(place: Place) -> None:
    place.bash(
        "mkdir node_modules; touch node_modules/x; head -c 10000001 /dev/zero > large; cp large gone; echo '*' > .gitignore"
    )
    place.commit()
    changes = place.changes("echo more >> large; rm -r gone node_modules; head -c 10000001 /dev/zero > new")
    assert [(one.path, one.is_changed, one.is_removed) for one in changes.left_out] == [
        ("gone", True, True),
        ("large", True, False),
        ("new", True, False),
        ("node_modules", True, True),
    ]
    assert [LeftOut.from_fields(one.fields()) for one in changes.left_out] == list(changes.left_out)


def test_build_folder_that_git_tracks_is_watched(place: Place) -> None:
    place.bash("mkdir -p node_modules vendor; echo a > node_modules/a; echo b > vendor/b; echo vendor > .gitignore")
    run_git(place.root, "init", "-q")
    run_git(place.root, "add", "-f", "node_modules/a", "vendor/b")
    assert told(place.changes("echo x > node_modules/a; echo x > vendor/b")) == [
        "node_modules/a file file",
        "vendor/b file file",
    ]


def test_files_of_nested_repositories_are_watched(place: Place) -> None:
    place.bash("mkdir -p inner; echo a > inner/a; git init -q")
    run_git(place.root / "inner", "init", "-q")
    run_git(place.root / "inner", "add", "-A")
    assert told(
        place.changes("echo b > inner/a; echo c > inner/.git/c; mkdir new; cd new; git init -q; echo d > d")
    ) == [
        "inner/a file file",
        "new none folder",
        "new/d none file",
    ]


def test_denied_content_is_not_kept_and_has_no_plain_digest(tmp_path: Path) -> None:
    place = Place(tmp_path, denied=lambda path: path == ".env")
    place.bash("echo secret-one > .env")
    place.commit()
    changes = place.changes("echo secret-two > .env")
    change = changes.changes[0]
    assert (change.before.unkept, change.after.unkept) == (DENIED, DENIED)
    assert change.before.sha256 is change.after.sha256 is None
    assert change.before.keyed_digest != change.after.keyed_digest
    stored = b"".join(path.read_bytes() for path in place.stores.rglob("*") if path.is_file())
    assert b"secret" not in stored


def test_overlapping_commands_both_record_a_change(place: Place) -> None:
    place.bash("echo a > f")
    watch = place.watch()
    first, second = watch.note(), watch.note()
    place.bash("echo b > f; echo c > g")
    assert told(second.compared()) == ["f file file", "g none file"]
    place.bash("echo d > h; rm g")
    assert told(first.compared()) == ["f file file", "h none file"]


def test_a_look_younger_than_asked_is_used_again(place: Place) -> None:
    watch = place.watch()
    watch.look_ahead()
    place.bash("echo a > f")
    assert told(watch.note(fresh_seconds=1e6).compared()) == ["f none file"]
    assert told(watch.note(fresh_seconds=0).compared()) == []


def test_home_and_too_many_files_are_not_watched(place: Place, tmp_path: Path) -> None:
    home = TreeWatch(str(place.root), str(place.stores), environment={**ENVIRONMENT, "HOME": str(place.root)})
    assert home.note().compared().problem == "the workspace holds the home folder"
    around = TreeWatch(os.path.realpath(tmp_path), str(place.stores), environment=ENVIRONMENT, limits=NO_DISK_LIMIT)
    assert around.note().compared().problem == "the workspace holds the folder of earlier contents"
    place.bash("for n in $(seq 50); do echo > $n; done")
    assert place.watch(max_files=40).note().compared().problem == "more than 40 files"
    assert not place.stores.exists(), "a content was read in vain"


def test_many_contents_are_kept_by_the_first_look(place: Place) -> None:
    """Its files are counted after the first 1,000 of them."""
    place.bash("for d in a b c; do mkdir $d; for n in $(seq 400); do echo $d$n > $d/$n; done; done")
    watch = place.watch(max_files=1_300)
    changes = place.changes("for d in a b c; do for n in 1 200 400; do rm $d/$n; done; done", watch)
    kept = {change.path: watch.store.get(str(change.before.sha256)) for change in changes.changes}
    assert kept == {f"{d}/{n}": f"{d}{n}\n".encode() for d in "abc" for n in (1, 200, 400)}
    assert place.watch(max_files=1_100).note().problem == "more than 1,100 files"


def test_interrupted_look_does_not_hide_changes(place: Place) -> None:
    """The table is lost with it, and so is the comparison of a command that runs meanwhile."""
    is_interrupted = [False]

    def interrupt(path: str) -> bool:
        if is_interrupted[0]:
            raise KeyboardInterrupt
        return False

    place.denied = interrupt
    place.bash("echo 0 > f")
    watch = place.watch()
    noted = watch.note()
    place.bash("echo 1 > f")
    is_interrupted[0] = True
    with pytest.raises(KeyboardInterrupt):
        watch.look_ahead()
    is_interrupted[0] = False
    assert noted.compared().problem == "the look was interrupted"
    assert told(place.changes("echo 2 > f", watch)) == ["f file file"]


def test_folders_that_are_left_out_do_not_count(place: Place) -> None:
    place.bash("mkdir venv; touch venv/pyvenv.cfg; for n in $(seq 50); do echo > venv/$n; done; echo 0 > f")
    changes = place.changes("echo 1 > f", watch := place.watch(max_files=40))
    assert told(changes) == ["f file file"]
    assert watch.store.get(str(changes.changes[0].before.sha256)) == b"0\n"


def test_watch_ends_with_too_many_new_files(place: Place) -> None:
    watch = place.watch(max_files=40)
    noted, other = watch.note(), watch.note()
    place.bash("for n in $(seq 50); do echo > $n; done")
    assert [each.compared().problem for each in (noted, other)] == ["more than 40 files"] * 2
    place.bash("rm *")
    assert watch.note().compared().problem == "more than 40 files"


def test_folder_that_was_closed_does_not_count_as_removed() -> None:
    script = f"""
import os, sys
sys.path.insert(0, {ROOT!r})
from harness.files.segments import StoreLimits
from harness.files.tree_watch import TreeWatch
noted = TreeWatch(sys.argv[1], sys.argv[2], environment={ENVIRONMENT!r}, limits=StoreLimits(free=0, free_percent=0)).note()
os.chmod(sys.argv[1] + "/a", 0)
os.remove(sys.argv[1] + "/g")
changes = noted.compared()
print([(one.path, one.before.mode, one.after.mode) for one in changes.changes])
print([(one.path, one.reason, one.is_changed) for one in changes.left_out])
"""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # the test may be run by root, for whom no folder is closed
        place = Place(Path(folder))
        place.root.chmod(0o777)
        place.bash("mkdir -p a/b; echo x > a/b/f; echo y > g; chmod -R 777 a")
        os.chmod(folder, 0o777)
        words = [sys.executable, "-c", script, str(place.root), str(place.stores)]
        if os.getuid() == 0:
            for path in (place.root, *place.root.rglob("*")):
                os.chown(path, 65534, 65534)
            words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
        done = subprocess.run(words, cwd="/", capture_output=True, text=True, check=False)
        os.chmod(place.root / "a", 0o777)
    assert done.stdout.splitlines() == ["[('a', 511, 0), ('g', 420, 0)]", "[('a', 'cannot be listed', True)]"], (
        done.stderr
    )


def test_a_file_written_during_the_look_does_not_break_it(place: Place) -> None:
    place.bash("for n in $(seq 50); do echo $n > $n; done")
    watch, is_over = place.watch(), threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            (place.root / str(number % 50 + 1)).write_text(f"{number}\n" * (number % 100))
            (place.root / f"new{number % 7}").write_text("x")
            (place.root / f"new{(number + 3) % 7}").unlink(missing_ok=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            assert watch.note(fresh_seconds=0).compared().problem == ""
    finally:
        is_over.set()
        writer.join()
    assert watch.note(fresh_seconds=0).compared().changes == ()


def test_names_with_any_bytes_are_recorded(place: Place) -> None:
    name = os.fsencode(str(place.root)) + b"/\xff new\nline \\ \xe2\x80\xae"
    noted = place.watch().note()
    Path(os.fsdecode(name)).write_text("x")
    changes = noted.compared()
    assert os.fsencode(changes.changes[0].path) == os.path.basename(name)
    assert TreeChanges.from_fields(json.loads(json.dumps(changes.fields()))) == changes
    assert changes.changes[0].after.kind is PathKind.FILE


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {},
        {
            "changes": [{"path": "../x", "before": None, "after": None}],
            "left_out": [],
            "problem": "",
            "began_ns": 0,
            "ended_ns": 0,
        },
        {
            "changes": [{"path": "x", "before": {"kind": "file", "sha256": "zz"}, "after": None}],
            "left_out": [],
            "problem": "",
            "began_ns": 0,
            "ended_ns": 0,
        },
    ],
)
def test_invalid_fields_are_rejected(fields: None) -> None:
    with pytest.raises(ValueError, match=r"must|invalid"):
        TreeChanges.from_fields(fields)


@pytest.mark.parametrize("is_outdated", [True, False])
def test_look_during_which_the_session_changed_files_is_not_used_again(place: Place, is_outdated: bool) -> None:
    place.bash("echo one > a")

    def outdate(path: str) -> bool:
        """Stands for a call that ends while the look reads its first file."""
        if is_outdated:
            watch.outdate()
        return False

    place.denied = outdate
    watch = place.watch(monotonic=lambda: 0.0)
    watch.look_ahead()
    place.bash("echo two > a")
    noted = watch.note(fresh_seconds=1.0)
    place.bash("echo 1 > made")
    assert [change.path for change in noted.compared().changes] == (["made"] if is_outdated else ["a", "made"])

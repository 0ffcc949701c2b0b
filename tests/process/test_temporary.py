"""The folder that TMPDIR names: what is in its place is never taken for it, and whatever lies in it goes with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT
from rows import all_rows

from harness.process.temporary import TemporaryFolder

LEVELS = 1_100
"""More than Python calls into each other, and longer than a path may be."""


def below(tmp_path: Path) -> Iterator[Path]:
    """Make temporary files below a folder of the test."""
    was, tempfile.tempdir = tempfile.tempdir, str(tmp_path)
    yield tmp_path
    tempfile.tempdir = was


parent = pytest.fixture(below)


def test_temporary_folder_is_created_on_demand_and_kept(parent: Path) -> None:
    folder = TemporaryFolder()
    assert list(parent.iterdir()) == []
    path = folder.path()
    assert (folder.path(), os.stat(path).st_mode & 0o777) == (path, 0o700)


@all_rows("instead", ["nothing", "a link", "a link above", "another user's folder", "a file"], anew={"parent": below})
def test_replaced_temporary_folder_is_created_again(parent: Path, instead: str) -> None:
    """A command that may write the folder above can rename it, and put there what leads elsewhere."""
    above = parent / "above"
    above.mkdir()
    tempfile.tempdir = str(above)
    folder = TemporaryFolder()
    first = Path(folder.path())
    elsewhere = parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("kept")
    match instead:
        case "a link above":
            above.rename(parent / "moved")
            above.symlink_to(parent / "moved")
        case _:
            first.rename(parent / "moved")
    match instead:
        case "a link":
            first.symlink_to(elsewhere)
        case "another user's folder":
            if os.getuid() != 0:
                pytest.skip("NOT TESTED WITH ANOTHER USER'S FOLDER: the tests are not root's")
            first.mkdir()
            os.chown(first, 65534, 65534)
        case "a file":
            first.write_text("")
        case _:
            pass

    second = folder.path()

    assert second != str(first)
    assert (os.path.realpath(second), os.listdir(second)) == (second, [])
    del folder
    assert not os.path.lexists(second)
    assert (elsewhere / "precious").read_text() == "kept"


def test_temporary_folder_created_again_by_a_command_is_used_and_removed(parent: Path) -> None:
    folder = TemporaryFolder()
    path = folder.path()
    os.rmdir(path)
    os.mkdir(path)
    Path(path, "file").write_text("")

    assert folder.path() == path
    del folder
    assert list(parent.iterdir()) == []


def deep(path: str) -> None:
    """Make a folder in a folder, and so on; each by its name alone, since the path of the last one is too long."""
    code = "import os, sys\nfor _ in range(int(sys.argv[1])):\n    os.mkdir(9 * 'd'); os.chdir(9 * 'd')\nopen('x', 'w').close()"
    subprocess.run([sys.executable, "-c", code, str(LEVELS)], cwd=path, check=True)


REMOVED = {
    "nothing": "true",
    "files and folders": "mkdir -p a/b/c a/d 'new\nline'; echo x > a/b/file; ln a/b/file a/d/hard; mkfifo a/pipe",
    "names that are no text": "mkdir $'\\xff'; echo x > $'\\xff/\\xfe'; mkdir -- -x; echo x > ' '",
    "read-only folders": "mkdir -p mod/x/y; echo x > mod/x/y/file; chmod 400 mod/x/y/file; chmod 555 mod/x/y mod/x mod",
    "folders that nobody may enter": "mkdir -p a/b/c; echo x > a/b/c/file; chmod 0 a/b/c a/b a",
    "itself closed": "mkdir a; chmod 0 .",
    "many folders": "mkdir -p {1..12}/{1..12}",
    "equal names": "mkdir -p a/a/a b/a/a c/b/a; touch a/a/a/a b/a/a/a",
}


@all_rows("user", ["this user", "an ordinary user"], anew={"parent": below})
def test_temporary_folder_is_removed_at_the_end(parent: Path, user: str) -> None:
    """Go's module cache is read-only, for one. Root could remove it anyhow."""
    if user == "an ordinary user" and os.getuid() != 0:
        pytest.skip("NOT TESTED AS ANOTHER USER: the tests are not root's")
    (parent / "outside").mkdir()
    (parent / "outside" / "file").write_text("kept")
    os.chmod(parent / "outside", 0o555)
    place = Path(tempfile.mkdtemp(prefix="ordinary-", dir="/tmp"))
    os.chmod(place, 0o777)
    code = (
        "import os, subprocess, sys, tempfile\n"
        "import weakref\n"  # all that is imported later lies where only root may read
        "from harness.process.temporary import TemporaryFolder\n"
        "if sys.argv[1] == 'an ordinary user':\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "folders = [TemporaryFolder() for _ in sys.argv[3:]]\n"
        "for folder, command in zip(folders, sys.argv[3:]):\n"
        "    print(folder.path(), command)\n"
        "    subprocess.run(['bash', '-c', command + '; ln -s ' + sys.argv[2] + ' link 2> /dev/null; true'],"
        " cwd=folder.path(), check=True)\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, user, str(parent / "outside"), *REMOVED.values()],
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(place), "PYTHONPATH": ROOT},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count(str(place)) == len(REMOVED)
        assert list(place.iterdir()) == [], done.stdout
    finally:
        subprocess.run(["rm", "-rf", str(place)], check=True)
    assert [path.name for path in (parent / "outside").iterdir()] == ["file"]
    assert os.stat(parent / "outside").st_mode & 0o777 == 0o555


def test_folder_deeper_than_any_path_is_removed(parent: Path) -> None:
    """In memory, if there is room: a disk takes milliseconds for each folder."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else parent) as place:
        tempfile.tempdir = place
        folder = TemporaryFolder()
        deep(folder.path())

        del folder
        assert os.listdir(place) == []


def test_a_copy_of_the_program_leaves_it(parent: Path) -> None:
    folder = TemporaryFolder()
    path = folder.path()
    child = os.fork()
    if child == 0:
        del folder
        os._exit(0)
    os.waitpid(child, 0)

    assert os.path.isdir(path)

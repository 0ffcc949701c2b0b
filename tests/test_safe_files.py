"""Files that are put in the place of others: whole, private, and nothing is left where that fails."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import all_rows

from harness.safe_files import make_private, name_beside, replace_file, sync_names


def test_private_folders_are_their_owners_alone_and_others_stay(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    old = os.umask(0)
    try:
        for _ in range(2):
            make_private(str(there / "a" / "b" / "c"))
    finally:
        os.umask(old)
    folders = (there / "a" / "b" / "c", there / "a" / "b", there / "a", there)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o700, 0o700, 0o755]


class UnforeseenError(Exception):
    pass


def breaking_off() -> Iterator[bytes]:
    yield b"half"
    raise UnforeseenError


@all_rows("name", ["f", "é" * 127, "a" * 255, "\udcff" * 255], ids=["short", "of signs", "long", "of bytes"])
@all_rows("by_descriptor", [False, True])
def test_file_replaces_an_existing_one(tmp_path: Path, name: str, by_descriptor: bool) -> None:
    (tmp_path / name).write_bytes(b"earlier")
    (tmp_path / name).chmod(0o644)
    folder = os.open(tmp_path, os.O_RDONLY) if by_descriptor else None
    replace_file(name if by_descriptor else f"{tmp_path}/{name}", (b"a" * 100_000, b"", b"b"), folder)
    (found,) = tmp_path.iterdir()
    assert (found.name, found.read_bytes()) == (name, b"a" * 100_000 + b"b")
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    if folder is not None:
        sync_names(folder)
        os.close(folder)


def test_interrupted_replacement_keeps_the_old_file_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"earlier")
    with pytest.raises(UnforeseenError):
        replace_file(f"{tmp_path}/f", breaking_off())
    with pytest.raises(OSError, match="Is a directory"):
        replace_file(str(tmp_path), (b"x",))
    with pytest.raises(FileNotFoundError):
        replace_file(f"{tmp_path}/no/f", (b"x",))
    assert ([*tmp_path.iterdir()], (tmp_path / "f").read_bytes()) == ([tmp_path / "f"], b"earlier")
    assert [one.name for one in tmp_path.parent.iterdir() if one.name.endswith(".tmp")] == []


def test_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"earlier")
    (tmp_path / "link").symlink_to("f")
    replace_file(f"{tmp_path}/link", (b"new",))
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "f").read_bytes()) == (False, b"earlier")


LIMITED = """
import resource, signal, sys
from harness.safe_files import replace_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
replace_file(sys.argv[1], [b"x" * 60] * 2)
"""


def test_full_disk_leaves_no_file(tmp_path: Path) -> None:
    """A limit on the size of files fails a write as a full disk does (setrlimit(2))."""
    done = subprocess.run([sys.executable, "-c", LIMITED, f"{tmp_path}/f"], capture_output=True, text=True, check=False)
    assert ("File too large" in done.stderr, [*tmp_path.iterdir()]) == (True, [])


def test_two_that_take_the_same_place_are_never_the_same() -> None:
    names = {name_beside("/a/b") for _ in range(100)}
    assert (len(names), {os.path.dirname(name) for name in names}) == (100, {"/a"})


@all_rows("folder", ["/proc/self/fd", "/nowhere", "/dev/null"])
def test_folder_that_cannot_be_synced_is_harmless(folder: str) -> None:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    sync_names(folder)
    sync_names(descriptor)
    os.close(descriptor)  # it is open still, and belongs to who gave it

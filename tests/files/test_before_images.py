"""The store of old contents: what is kept comes back exactly, is on disk, and a damaged one is not handed out."""

from __future__ import annotations

import hashlib
import os
import resource
import stat
from pathlib import Path

import pytest
from rows import all_rows

from harness.files.before_images import BeforeImages

CONTENTS = [b"", b"a", b"a\r\n\0\xff\xfe" * 1000, "é\u2028\n".encode(), b"x" * 3_000_000]


def kept_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def file_of(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest[2:]


@all_rows("data", CONTENTS)
def test_kept_data_is_returned(tmp_path: Path, data: bytes) -> None:
    folder = tmp_path / "state" / "images"
    images = BeforeImages(str(folder))
    assert not folder.exists()

    digest = images.keep(data)

    assert digest == hashlib.sha256(data).hexdigest()
    assert (images.get(digest), BeforeImages(str(folder)).get(digest)) == (data, data)
    assert kept_files(folder) == [file_of(folder, digest)]


def test_only_the_owner_may_look(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        images = BeforeImages(str(tmp_path / "images"))
        path = file_of(tmp_path / "images", images.keep(b"secret"))
    finally:
        os.umask(old)

    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_existing_image_is_not_written_again(tmp_path: Path) -> None:
    images = BeforeImages(str(tmp_path))
    path = file_of(tmp_path, images.keep(b"same"))
    before = path.stat()

    images.keep(b"same")

    after = path.stat()
    assert after.st_ino == before.st_ino
    assert after.st_mtime_ns > before.st_mtime_ns  # touched: pruning goes by age


@all_rows("damage", [b"", b"other", b"same and more"])
def test_a_damaged_image_is_not_handed_out_and_is_mended_by_keeping(tmp_path: Path, damage: bytes) -> None:
    images = BeforeImages(str(tmp_path))
    digest = images.keep(b"same")
    file_of(tmp_path, digest).write_bytes(damage)

    assert images.get(digest) is None
    assert (images.keep(b"same"), images.get(digest)) == (digest, b"same")


@all_rows("digest", ["", "..", "../x", "0" * 63, "0" * 64, "G" * 64, "0" * 64 + "\n", "A" * 64])
def test_invalid_digest_returns_none(tmp_path: Path, digest: str) -> None:
    assert BeforeImages(str(tmp_path)).get(digest) is None


def test_a_link_in_an_images_place_is_not_followed(tmp_path: Path) -> None:
    images = BeforeImages(str(tmp_path / "images"))
    digest = images.keep(b"same")
    (tmp_path / "other").write_bytes(b"same")
    path = file_of(tmp_path / "images", digest)
    path.unlink()
    path.symlink_to(tmp_path / "other")

    assert images.get(digest) is None


def test_a_pipe_in_an_images_place_does_not_make_it_wait(tmp_path: Path) -> None:
    images = BeforeImages(str(tmp_path))
    digest = images.keep(b"same")
    path = file_of(tmp_path, digest)
    path.unlink()
    os.mkfifo(path)

    assert images.get(digest) is None


def test_failed_write_leaves_no_partial_file(tmp_path: Path) -> None:
    images = BeforeImages(str(tmp_path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            images.keep(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert kept_files(tmp_path) == []
    assert images.get(hashlib.sha256(b"x" * 100_000).hexdigest()) is None


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(OSError, match="Not a directory"):
        BeforeImages(str(tmp_path / "file" / "images")).keep(b"x")

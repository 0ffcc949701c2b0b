"""The store of contents on real files: appended by several processes, cut short, pruned and full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from harness.files.segments import SegmentStore, StoreLimits, prune_stores, segments_in, stored_bytes

FREE = StoreLimits(free=0, free_percent=0)
SMALL = StoreLimits(segment=10_000, store=100_000, all_stores=150_000, free=0, free_percent=0)


def stored(folder: str, *contents: bytes, limits: StoreLimits = FREE) -> list[str]:
    store = SegmentStore(folder, limits)
    digests = []
    for content in contents:
        digest, problem = store.keep(content)
        assert problem == ""
        digests.append(digest)
        store.commit()
    return digests


def contents(count: int, size: int = 5_000, start: int = 0) -> list[bytes]:
    return [b"%d" % number * (size // len(str(number))) for number in range(start, start + count)]


def test_contents_are_read_by_digest_by_another_store(tmp_path: Path) -> None:
    folder = str(tmp_path / "s")
    digests = stored(folder, b"one", b"", b"x" * 5_000_000, b"one")
    store = SegmentStore(folder)
    assert [store.get(digest) for digest in digests] == [b"one", b"", b"x" * 5_000_000, b"one"]
    assert store.get("0" * 64) is None
    assert os.stat(folder).st_mode & 0o077 == 0
    assert {path.stat().st_mode & 0o077 for path in Path(folder).iterdir()} == {0}
    (_, size), *rest = segments_in(folder)
    assert rest == []
    assert size < 5_001_000, "a content is stored once"


def test_content_is_readable_before_it_is_written(tmp_path: Path) -> None:
    store = SegmentStore(str(tmp_path / "s"), FREE)
    digest, _ = store.keep(b"one")
    assert (store.has(digest), store.get(digest)) == (True, b"one")
    assert not os.path.exists(tmp_path / "s")


@pytest.mark.parametrize("cut", [1, 3, 40, 90])
def test_batch_that_was_cut_short_is_ignored_and_overwritten(tmp_path: Path, cut: int) -> None:
    folder = str(tmp_path / "s")
    first, second = stored(folder, b"first", b"second" * 20)
    [segment] = Path(folder).glob("seg-*")
    os.truncate(segment, segment.stat().st_size - cut)
    store = SegmentStore(folder, FREE)
    assert (store.get(first), store.get(second)) == (b"first", None)
    third, _ = store.keep(b"third")
    store.commit()
    assert [SegmentStore(folder).get(digest) for digest in (first, second, third)] == [b"first", None, b"third"]


def test_damaged_content_is_not_returned(tmp_path: Path) -> None:
    [digest] = stored(str(tmp_path / "s"), b"content")
    [segment] = (tmp_path / "s").glob("seg-*")
    segment.write_bytes(segment.read_bytes().replace(b"content", b"CONTENT"))
    assert SegmentStore(str(tmp_path / "s")).get(digest) is None


def test_several_processes_append_at_the_same_time(tmp_path: Path) -> None:
    folder = str(tmp_path / "s")
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.files.segments import SegmentStore, StoreLimits
store = SegmentStore(sys.argv[2], StoreLimits(segment=5_000, free=0, free_percent=0))
for number in range(60):
    digest = store.keep(f"{sys.argv[3]} {number} ".encode() * 50)[0]
    store.commit()
    print(digest)
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", script, ROOT, folder, name], stdout=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    digests = [line for process in processes for line in process.communicate()[0].split()]
    assert [process.returncode for process in processes] == [0, 0, 0]
    store = SegmentStore(folder)
    assert len([digest for digest in digests if store.get(digest)]) == 180
    assert len(segments_in(folder)) > 5


def test_oldest_segments_are_removed_and_used_contents_are_copied_forward(tmp_path: Path) -> None:
    folder = str(tmp_path / "s")
    store = SegmentStore(folder, SMALL)
    [used] = stored(folder, b"used" * 1_000, limits=SMALL)
    digests = []
    for content in contents(60):
        digests.append(store.keep(content)[0])
        assert store.keep(b"used" * 1_000) == (used, "")
        store.commit()
    assert sum(size for _, size in segments_in(folder)) <= SMALL.store + SMALL.segment
    assert store.lost_segments > 0
    again = SegmentStore(folder)
    assert (again.get(used), again.get(digests[-1]), again.get(digests[0])) == (b"used" * 1_000, contents(60)[-1], None)


def test_all_stores_have_one_limit_and_old_segments_go(tmp_path: Path) -> None:
    for name in "abc":
        stored(
            str(tmp_path / name),
            *contents(18, start=ord(name)),
            limits=StoreLimits(segment=10_000, free=0, free_percent=0),
        )
    before = stored_bytes(str(tmp_path))
    assert prune_stores(str(tmp_path), SMALL, dry_run=True) == prune_stores(str(tmp_path), SMALL) > 0
    after = stored_bytes(str(tmp_path))
    assert sum(after.values()) <= SMALL.all_stores < sum(before.values())
    assert prune_stores(str(tmp_path), FREE) == 0
    for path in tmp_path.glob("a/seg-*"):
        os.utime(path, (0, 0))
    prune_stores(str(tmp_path), FREE)
    assert (stored_bytes(str(tmp_path))["a"], stored_bytes(str(tmp_path))["b"]) == (0, after["b"])


def test_one_look_fills_at_most_three_quarters_and_a_full_disk_keeps_nothing(tmp_path: Path) -> None:
    store = SegmentStore(str(tmp_path / "s"), SMALL)
    problems = [store.keep(content)[1] for content in contents(30, start=100)]
    store.commit()
    assert problems.count("") == 15
    assert set(problems[15:]) == {"the store of earlier contents is full"}
    store = SegmentStore(str(tmp_path / "t"), StoreLimits(free=2**62))
    assert store.keep(b"x")[1] == "the disk of earlier contents is nearly full"
    store.commit()
    assert not (tmp_path / "t").exists()


def test_store_that_cannot_be_written_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SegmentStore(str(tmp_path / "file" / "s"), FREE)
    with pytest.raises(NotADirectoryError):
        stored_problem(store)


def stored_problem(store: SegmentStore) -> None:
    store.keep(b"x")
    store.commit()

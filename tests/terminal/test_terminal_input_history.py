"""The file of earlier lines: private, bounded, shared by several programs, and never a reason not to start."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rows import all_rows

from harness.redaction.redactor import Redactor
from harness.terminal.line_history import LONGEST_ENTRY, MOST_BYTES, MOST_ENTRIES, KeptHistory

SECRET = "s3cr3t-value-0815"
LIKE_A_KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2


def _history(path: Path) -> KeptHistory:
    return KeptHistory(str(path), Redactor([SECRET]))


def _loaded(history: KeptHistory) -> list[str]:
    async def load() -> list[str]:
        return [text async for text in history.load()]

    return asyncio.run(load())


def _lines(path: Path, *texts: object) -> None:
    path.write_bytes(b"".join(json.dumps(text).encode() + b"\n" for text in texts))
    path.chmod(0o600)


def test_entries_are_loaded_newest_first(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "history"
    texts = ["one", "two\nlines", "tab\tand \x1b[31m", "ü \u202e \udcff", '"quoted" \\ #', "+plus"]
    first = _history(path)
    for text in texts:
        first.append_string(text)
    assert _loaded(first) == texts[::-1]
    assert _loaded(_history(path)) == texts[::-1]
    assert _history(path).load_history_strings() == texts[::-1]
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes().count(b"\n")) == (0o600, len(texts))


@all_rows(
    ("texts", "kept"),
    [
        pytest.param(["a", "a", "b", "a"], ["a", "b", "a"], id="the same in a row once"),
        pytest.param(["", "   ", "\n", " a", "\ta", "a "], ["a "], id="nothing blank, nor behind a blank"),
        pytest.param([f"key {SECRET}", "b"], ["b"], id="no known secret"),
        pytest.param([f"use {LIKE_A_KEY}", "b"], ["b"], id="nothing shaped like a secret"),
        pytest.param(["x" * LONGEST_ENTRY, "x" * (LONGEST_ENTRY + 1)], ["x" * LONGEST_ENTRY], id="nothing huge"),
    ],
)
def test_history_keeps_lines_without_secrets(tmp_path: Path, texts: list[str], kept: list[str]) -> None:
    history = _history(tmp_path / "history")
    for text in texts:
        history.append_string(text)
    assert _loaded(_history(tmp_path / "history")) == kept[::-1]
    assert not any(SECRET in text or LIKE_A_KEY in text for text in history.get_strings())


def test_text_typed_before_the_file_was_read_is_listed_once(tmp_path: Path) -> None:
    _lines(tmp_path / "history", "old", "new")
    history = _history(tmp_path / "history")
    history.append_string("own")
    assert _loaded(history) == ["own", "new", "old"]
    history.append_string("more")
    assert (_loaded(history), history.get_strings()) == (["more", "own", "new", "old"], ["old", "new", "own", "more"])


def test_interrupted_loading_continues(tmp_path: Path) -> None:
    _lines(tmp_path / "history", *map(str, range(5)))
    history = _history(tmp_path / "history")

    async def two() -> list[str]:
        loading = history.load()
        return [await anext(loading), await anext(loading)]

    assert asyncio.run(two()) == ["4", "3"]
    assert _loaded(history) == ["4", "3", "2", "1", "0"]


@all_rows(
    ("content", "entries"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b'"a"\n"b', ["a"], id="torn"),
        pytest.param(b'"a"\n\xff\xfe\x00\n{"b": 1}\n12\nnull\n[]\n""\n"c"\n', ["c", "a"], id="other things"),
        pytest.param(b"\n# 2024-01-01\n+an older format\n", [], id="another format"),
        pytest.param(b"[" * 100_000 + b'\n"a"\n', ["a"], id="deep"),
        pytest.param(b'"' + b"x" * 3_000_000, [], id="one endless line"),
        pytest.param(b"x" * 3_000_000 + b'\n"a"\n', ["a"], id="an entry behind one"),
    ],
)
def test_broken_file_is_read_as_far_as_possible_and_extended(
    tmp_path: Path, content: bytes, entries: list[str]
) -> None:
    path = tmp_path / "history"
    path.write_bytes(content)
    path.chmod(0o600)
    history = _history(path)
    assert _loaded(history) == entries
    history.append_string("added")
    assert _loaded(_history(path)) == ["added", *entries]


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _link(path: Path) -> None:
    _lines(path.with_name("target"), "theirs")
    path.symlink_to("target")


def _writable(path: Path) -> None:
    _lines(path, "theirs")
    path.chmod(0o620)


def _folder(path: Path) -> None:
    path.mkdir()


def _of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    _lines(path, "theirs")
    os.chown(path, 12345, -1)


@all_rows(
    ("make", "problem"),
    [
        pytest.param(_fifo, "is not a file", id="a pipe"),
        pytest.param(_link, "is a link", id="a link"),
        pytest.param(_writable, "others than you may write", id="others may write it"),
        pytest.param(_folder, "is not a file", id="a folder"),
        pytest.param(_of_another, "belongs to user 12345", id="somebody else's"),
    ],
)
def test_file_of_another_user_is_neither_read_nor_written(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    path = tmp_path / "history"
    make(path)
    before = path.lstat().st_size
    history = _history(path)
    history.append_string("mine")
    assert (_loaded(history), path.lstat().st_size) == (["mine"], before)
    assert problem in history.problem


def test_history_readable_by_others_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "history"
    _lines(path, "a")
    path.chmod(0o644)
    assert _loaded(_history(path)) == ["a"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_unwritable_history_keeps_the_lines_of_this_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = _history(tmp_path / "file" / "history")
    history.append_string("a")
    assert _loaded(history) == ["a"]
    assert history.problem


@all_rows(
    ("count", "text"), [(MOST_ENTRIES + 1, "short {}"), (30, "long {} " + "x" * 90_000)], ids=["entries", "bytes"]
)
def test_only_the_newest_are_kept(tmp_path: Path, count: int, text: str) -> None:
    path = tmp_path / "history"
    _lines(path, *(text.format(number) for number in range(count)))
    history = _history(path)
    assert _loaded(history)[0] == text.format(count - 1)
    history.append_string("the newest")
    kept = _loaded(_history(path))
    assert kept[:2] == ["the newest", text.format(count - 1)]
    assert 10 < len(kept) <= MOST_ENTRIES
    assert path.stat().st_size <= MOST_BYTES * 0.75
    assert (stat.S_IMODE(path.stat().st_mode), [file.name for file in tmp_path.iterdir()]) == (0o600, ["history"])


_WRITER = """
import sys
from harness.terminal import line_history as history
from harness.terminal.line_history import KeptHistory
history.MOST_BYTES = int(sys.argv[3])
history.LOCK_SECONDS = 1000
kept = KeptHistory(sys.argv[1], None)
for number in range(150):
    kept.append_string(f"{sys.argv[2]} {number}")
assert not kept.problem, kept.problem
"""


def _write_together(path: Path, most: int) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name, str(most)], stdin=subprocess.DEVNULL)
        for name in ("one", "two", "three")
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]


def test_concurrent_programs_keep_all_lines(tmp_path: Path) -> None:
    _write_together(tmp_path / "history", MOST_BYTES)
    kept = _loaded(_history(tmp_path / "history"))
    assert sorted(kept) == sorted(f"{name} {number}" for name in ("one", "two", "three") for number in range(150))


def test_concurrent_writers_and_trimmers_keep_the_newest(tmp_path: Path) -> None:
    _write_together(tmp_path / "history", 2_000)
    kept = _loaded(_history(tmp_path / "history"))
    assert len(kept) == len(set(kept)) > 50
    for name in ("one", "two", "three"):
        numbers = [int(text.split()[1]) for text in kept[::-1] if text.startswith(name)]
        assert numbers == sorted(numbers)
        assert numbers == list(range(numbers[0], 150)) if numbers else True
    assert kept[0].endswith("149")


def test_a_huge_file_is_read_at_its_end_alone(tmp_path: Path) -> None:
    """A file with a hole, larger than any memory: who read all of it would not come to its end."""
    path = tmp_path / "history"
    with path.open("wb") as file:
        file.truncate(1 << 43)
        file.seek(0, os.SEEK_END)
        file.write(b'\n"a"\n"b"\n')
    path.chmod(0o600)
    assert _loaded(_history(path)) == ["b", "a"]

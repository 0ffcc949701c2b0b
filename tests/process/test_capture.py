"""What is kept of a command's output: cut in bounded memory, whole in a bounded file, and said so."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from rows import all_rows

from harness.process.capture import Capture, OutputFolder, ReadableOutput, Spill, readable

LINES = b"".join(b"%d\n" % number for number in range(20_000))


def captured(blocks: Sequence[bytes], spill: Spill | None, characters: int = 2_000) -> ReadableOutput:
    capture = Capture(characters, spill)
    for block in blocks:
        capture.add(block)
    text = capture.readable()
    if spill is not None:
        spill.close()
    return text


def in_blocks(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@all_rows("size", [1, 100, 4_096, 65_536, 1 << 20])
def test_a_cut_output_is_whole_in_its_file(tmp_path: Path, size: int) -> None:
    """However the blocks fall."""
    spill = OutputFolder(str(tmp_path / "outputs")).spill()
    text = captured(in_blocks(LINES, size), spill)

    (path,) = (tmp_path / "outputs").iterdir()
    assert path.read_bytes() == LINES
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    lines = text.text.splitlines()
    (gap,) = [line for line in lines if line.startswith("[...")]
    shown = len(lines) - 1
    missing = len(LINES) - sum(len(line) + 1 for line in lines if line != gap)
    assert gap == (
        f"[... {missing:,} bytes, {20_000 - shown:,} lines omitted; full output: {path}; read it with read_file ...]"
    )
    assert (len(text.text) <= 2_000 - 100, text.truncated) == (True, True)


def test_line_count_of_a_very_long_output_is_marked_as_estimate() -> None:
    blocks = [b"0123456789\n" * 1_000] * 2_000

    (told,) = [line for line in captured(blocks, None).text.splitlines() if line.startswith("[...")]

    assert told.endswith(" lines omitted ...]")
    about, lines = told.split()[3:5]
    assert about == "about"
    assert abs(int(lines.replace(",", "")) - 2_000_000) < 20_000


@all_rows(
    ("blocks", "text"),
    [
        pytest.param([b"short\n"], "short\n", id="short"),
        pytest.param([b"\x1b[1m" * 1_000 + b"red"], "red", id="long only in sequences that are not shown"),
    ],
)
def test_completely_shown_output_is_not_saved(tmp_path: Path, blocks: list[bytes], text: str) -> None:
    spill = OutputFolder(str(tmp_path / "outputs")).spill()

    assert captured(blocks, spill) == ReadableOutput(text=text, truncated=False)
    assert list(tmp_path.iterdir()) == []


def test_output_that_fits_memory_but_not_the_result_is_saved(tmp_path: Path) -> None:
    spill = OutputFolder(str(tmp_path)).spill()

    text = captured([b"x" * 2_500], spill)

    assert (text.truncated, Path(spill.path).read_bytes()) == (True, b"x" * 2_500)


@all_rows(
    ("raw", "text"),
    [
        pytest.param(b"\0" * 5_000, "[binary output, 5,000 bytes; saved to {}]", id="binary"),
        pytest.param(b"ELF" + b"\0" * 100_000, "[binary output, 100,003 bytes; saved to {}]", id="binary and long"),
    ],
)
def test_binary_output_is_kept(tmp_path: Path, raw: bytes, text: str) -> None:
    spill = OutputFolder(str(tmp_path)).spill()

    assert captured([raw], spill) == ReadableOutput(text=text.format(spill.path), truncated=True)
    assert Path(spill.path).read_bytes() == raw


@all_rows(
    ("raw", "text"),
    [
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\r\r\r\nb", "a\nb"),
        (b" 10 %\r 50 %\r100 %\n", "100 %\n"),
        (b" 10 %\r 50 %\r", " 50 %"),
        (b"\r10 %\r\r\r\r\nend", "10 %\nend"),
        (b"\r\r\n\r", "\n"),
    ],
)
def test_last_state_of_an_overwritten_line_is_shown(raw: bytes, text: str) -> None:
    assert readable(raw) == text


@all_rows(
    ("unit", "text", "end"),
    [
        (b"\r", "", ""),
        (b"\r\r\n", "\n", ""),
        (b"a\r", "", "a"),
        (b"\x1b", "\\x1b", ""),
        (b"\x1b[0", "\\x1b[0", ""),
        (b"\x1b]a", "\\x1b]a", ""),
        (b"\x1bP", "\\x1bP", ""),
        ("a\u0301".encode(), "a\u0301", ""),
    ],
)
def test_unfinished_sequences_become_readable_at_any_length(unit: bytes, text: str, end: str) -> None:
    """bench/growth.py times it: with the square of its length, 250 kB of returns took eight seconds."""
    count = 250_000 // len(unit)

    assert readable(unit * count) == text * count + end


def test_a_tenth_of_nul_bytes_is_still_text() -> None:
    assert captured([b"\0" + b"x" * 9], None).text == "\\x00xxxxxxxxx"


@all_rows(
    ("size", "note"),
    [pytest.param(1 << 20, "", id="exactly as much"), pytest.param((1 << 20) + 1, " (spill cut at 1 MiB)", id="more")],
)
def test_saved_file_is_bounded_with_a_notice(tmp_path: Path, size: int, note: str) -> None:
    spill = OutputFolder(str(tmp_path), call_bytes=1 << 20).spill()

    text = captured(in_blocks(b"x" * size, 65_536), spill).text

    assert f"full output: {spill.path}{note}; read it" in text
    assert os.path.getsize(spill.path) == 1 << 20


def test_the_oldest_files_of_a_session_are_removed(tmp_path: Path) -> None:
    outputs = OutputFolder(str(tmp_path), session_bytes=250_000)
    spills = [outputs.spill() for _ in range(4)]
    for age, spill in enumerate(spills):
        captured([b"x" * 100_000], spill)
        os.utime(spill.path, (age, age))

    assert [os.path.exists(spill.path) for spill in spills] == [False, False, True, True]


def test_the_newest_file_is_kept_if_it_alone_is_too_much(tmp_path: Path) -> None:
    spill = OutputFolder(str(tmp_path), session_bytes=10).spill()
    captured([b"x" * 100_000], spill)

    assert os.path.getsize(spill.path) == 100_000


@all_rows("place", ["a file", "/dev/full", "a link"])
def test_unsaved_output_is_cut_with_the_reason(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "outputs"
    spill = OutputFolder(str(folder)).spill()
    reason = "File exists"
    match place:
        case "a file":
            folder.write_text("")
        case "/dev/full":
            folder.mkdir()
            spill = FullSpill(OutputFolder(str(folder)), spill.path)
            reason = "No space left on device"
        case _:
            folder.mkdir()
            os.symlink(tmp_path / "elsewhere", spill.path)

    text = captured(in_blocks(LINES, 4_096), spill)

    assert f"lines omitted; the full output could not be saved: {reason} ...]" in text.text
    assert text.text.endswith("19999\n")
    assert not (tmp_path / "elsewhere").exists()
    assert place == "a link" or not os.path.exists(spill.path)


class FullSpill(Spill):
    """A file on a disk that is full."""

    def _write(self, block: memoryview) -> None:
        with open("/dev/full", "wb", buffering=0) as full:
            full.write(block)

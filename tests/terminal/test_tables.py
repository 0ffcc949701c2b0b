"""Tables of finished output: what is drawn at a terminal of any width, whatever stands in the cells, and what a pipe gets."""

from __future__ import annotations

import io
import re
import time

import pytest
from rows import all_rows

from harness.terminal.console import Console, Look
from harness.terminal.local_time import local_time
from harness.terminal.row_text import cells
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow, drawn, numbers, plain

HOSTILE = (
    "[red]not red[/red] [link=https://x]y[/link] :smile:",
    "\x1b[2J\x1b]8;;http://x\x07y\x9b31m",
    "/a/very/long/path/" * 9 + "end.jsonl",
    "漢字の題名がここに立っている、とても長い",
    "👩‍💻 a\u202etxt\u200b e" + "\u0301" * 40,
    "two\nlines\tand a tab",
    "",
    "☰☱☲ \ufe0f❤️ 🇩🇪",
)
COLUMNS = (
    Column(name="name", folds=True),
    Column(name="when"),
    *numbers("calls", "asked"),
    Column(name="ended", toned=True),
    Column(name="size", right=True, spare=1),
    Column(name="[b]place[/b]", folds=True),
)
TABLE = Table(
    columns=COLUMNS,
    rows=tuple(
        TableRow(cells=(text, "2026-01-31", str(n), "0", "open", "1 kB", text[::-1]), tone=Tone.BAD)
        for n, text in enumerate(HOSTILE)
    ),
)


def without_colours(row: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", row)


@pytest.mark.parametrize("width", [120, 80, 60, 40, 24, 12, 10, 8])
@pytest.mark.parametrize("colour", [True, False])
def test_table_fits_the_terminal_and_contains_text_only(width: int, *, colour: bool) -> None:
    rows = drawn(TABLE, Look(colour=colour), width)
    shown = [without_colours(row) for row in rows]
    assert max(map(cells, shown)) <= width
    assert [row for row in shown if row != row.rstrip()] == []
    assert all(row.isprintable() for row in shown)
    assert colour or shown == rows
    letters = "".join("".join(shown).split())
    if width >= 80:
        assert "/a/very/long/path/" in "".join(letters)
    assert re.findall(r"\x1b\[(?![0-9;]*m)|\x07|\x9b", "".join(rows)) == []


@all_rows(
    ("width", "expected"),
    [
        (120, ["name", "when", "calls", "ended", "size", "[b]place[/b]"]),
        (60, ["name", "when", "calls", "ended", "[b]place[/b]"]),
    ],
)
def test_omitted_columns_are_empty_or_named(width: int, expected: list[str]) -> None:
    rows = drawn(TABLE, Look(), width)
    assert (rows[0].split(), rows[1][:4]) == (expected, "────")
    assert ("(no room for: size)" in rows) == (width == 60)


def test_row_becomes_a_record_if_columns_do_not_fit() -> None:
    table = Table(
        columns=(Column(name="name", folds=True), *numbers("calls", "asked"), Column(name="why", folds=True)),
        rows=(
            TableRow(cells=("one", "3", "0", "because [it] is so")),
            TableRow(cells=("two", "4", "1", "")),
        ),
    )
    assert drawn(table, Look(), 24) == [
        "one",
        "  why: because [it]",
        "    is so",
        "  calls 3",
        "",
        "two",
        "  calls 4, asked 1",
        "",
    ]


def test_long_cell_continues_on_the_next_row() -> None:
    table = Table(columns=(Column(name="a"), Column(name="b", folds=True)), rows=(TableRow(cells=("x", "word " * 9)),))
    assert drawn(table, Look(ascii=True), 25) == [
        "a  b",
        "-" * 25,
        "x  word word word word",
        "   word word word word",
        "   word",
    ]


def test_colour_is_used_in_its_cells_only_if_supported() -> None:
    table = Table(
        columns=(Column(name="a"), Column(name="b", toned=True)), rows=(TableRow(cells=("x", "bad"), tone=Tone.BAD),)
    )
    assert [row for row in drawn(table, Look(colour=True), 80) if "\x1b[1;31mbad\x1b[0m" in row] != []
    assert "\x1b" not in "".join(drawn(table, Look(), 80))


def test_pipe_gets_all_columns_as_plain_text() -> None:
    stream = io.StringIO()
    Console(stream, Look(colour=False)).table(TABLE)
    lines = stream.getvalue().splitlines()
    assert lines == list(plain(TABLE))
    assert (len(lines), lines[0].split()) == (
        len(HOSTILE) + 1,
        ["name", "when", "calls", "asked", "ended", "size", "[b]place[/b]"],
    )
    assert all(line.isprintable() for line in lines)
    assert "─" not in stream.getvalue()


@all_rows(
    ("stamp", "expected"),
    [
        ("2026-01-31T23:30:05.123456Z", "2026-02-01 00:30"),
        ("2026-07-31T10:00:00Z", "2026-07-31 12:00"),
        ("2026-99-31T10:00:00Z", "2026-99-31T10:00:00Z"),
        ("no time", "no time"),
        ("", ""),
    ],
)
def test_time_is_shown_in_the_local_zone(stamp: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert local_time(stamp) == expected
    finally:
        monkeypatch.undo()
        time.tzset()

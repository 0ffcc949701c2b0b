"""`all_rows` of tests/support/rows.py: every row runs, every failing one is told, and an empty table is an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import all_rows


def test_every_row_runs_and_each_failing_one_is_reported() -> None:
    ran: list[tuple[int, int]] = []

    @all_rows("left, right", {"fine": (1, 1), "first": (1, 2), "second": (3, 4), "last": (5, 5)})
    def compare(left: int, right: int) -> None:
        ran.append((left, right))
        assert left == right

    with pytest.raises(pytest.fail.Exception) as failed:
        compare()
    told = str(failed.value)
    assert told.startswith("2 of 4 rows failed")
    assert ["row 2: first" in told, "row 3: second" in told, "fine" in told] == [True, True, False]
    assert ran == [(1, 1), (1, 2), (3, 4), (5, 5)]


def test_row_that_does_not_raise_fails_like_any_other() -> None:
    @all_rows("value", [1, 2])
    def raising(value: int) -> None:
        with pytest.raises(ValueError, match="never"):
            assert value

    with pytest.raises(pytest.fail.Exception, match="2 of 2 rows failed"):
        raising()


def test_an_empty_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="proves nothing"):
        all_rows("value", [])


@all_rows("skipped", [True, False])
def test_a_row_that_is_skipped_skips_no_other(skipped: bool) -> None:
    if skipped:
        pytest.skip("not here")


def test_a_test_is_skipped_where_every_row_is() -> None:
    @all_rows("value", [1, 2])
    def skipping(value: int) -> None:
        pytest.skip(f"without {value}")

    with pytest.raises(pytest.skip.Exception, match="row 1: 1: without 1"):
        skipping()


@all_rows(("name", "number"), [pytest.param("a", 1, id="one"), pytest.param("a", 2, id="two")])
@all_rows("other", "xy")
def test_each_row_has_its_folder(name: str, number: int, other: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    assert (number in {1, 2}, other in "xy", len(list(tmp_path.iterdir()))) == (True, True, 1)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("of the fixture\n")
    return path


@all_rows("text", ["one", "two", "three"], fresh=True)
def test_each_row_finds_the_files_of_the_fixtures(notes: Path, text: str) -> None:
    assert notes.read_text() == "of the fixture\n"
    notes.write_text(text)
    (notes.parent / "made").mkdir()


def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder that is empty, and must hold one file at the end."""
    made = tmp_path_factory.mktemp("anew")
    yield made
    assert len(list(made.iterdir())) == 1


@all_rows("name", "abc", anew={"folder": empty_folder})
def test_fixture_is_created_and_ended_for_each_row(name: str, folder: Path) -> None:
    assert list(folder.iterdir()) == []
    (folder / name).touch()

"""A log that is gone on with: read by its chain where it is as it was closed, and judged as a whole where anything differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from forged_logs import a_session, ended, head_of, lines_of, started, write
from rows import all_rows
from work import lines_run

from harness.actions import JsonValue
from harness.errors import LogError
from harness.log.heads_file import append_note
from harness.redaction.redactor import Redactor
from harness.session.session_log import close_log, opened_log
from harness.session.state import State
from harness.terminal.console import complain

pytestmark = pytest.mark.forges_logs

CALLS = 100
LINES_A_RECORD = 12
"""Of Python, to read one by its chain; to judge it takes a hundred."""


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(state=str(tmp_path / "state"), config=str(tmp_path / "config"))
    made.check_heads()
    return made


def noted(state: State, lines: list[bytes], **more: JsonValue) -> Path:
    """Write a log, and note its head as closed; `more` are other fields of the note."""
    path = write(Path(state.state) / "log.jsonl", lines)
    note: dict[str, JsonValue] = {"file": str(path), "records": len(lines), "head": head_of(lines), "closed": True}
    append_note(state.heads, {**note, **more})
    return path


def gone_on_with(state: State, path: Path) -> None:
    close_log(state, opened_log(state, Redactor(()), path=str(path), workspace="", tell=complain))


def lines_a_record(state: State, path: Path, records: int) -> float:
    return lines_run(lambda: gone_on_with(state, path)) / records


def test_a_log_that_is_as_it_was_closed_is_not_judged_again(state: State) -> None:
    lines = lines_of(a_session(CALLS))
    path = noted(state, lines)
    gone_on_with(state, path)  # what is only done once is done now, and the head is noted again
    assert lines_a_record(state, path, len(lines)) < LINES_A_RECORD


@all_rows(
    ("settings", "note"),
    {
        "never closed": ({}, {"closed": False}),
        "removed, by what was noted": ({}, {"tombstone": True}),
        "a line in which two fields could be its link": ({"x": {"prev": "0" * 64}}, {}),
    },
)
def test_any_other_log_is_judged_as_a_whole(
    state: State, settings: dict[str, JsonValue], note: dict[str, JsonValue]
) -> None:
    Path(state.heads).write_bytes(b"")
    lines = lines_of((started(model_settings=settings), *a_session(CALLS)[1:]))
    assert lines_a_record(state, noted(state, lines, **note), len(lines)) > 3 * LINES_A_RECORD


def test_a_head_that_was_noted_earlier_must_be_passed_too(state: State) -> None:
    lines = lines_of(a_session())
    path = noted(state, lines[:3], head="0" * 64)
    noted(state, lines)
    with pytest.raises(LogError, match="its first 3 records are not those that are noted"):
        gone_on_with(state, path)


def test_session_written_after_the_head_by_another_is_refused(state: State) -> None:
    lines = lines_of(a_session())
    path = noted(state, lines)
    write(path, [*lines, *lines_of((started(), ended()), session="f" * 12, after=lines)])
    with pytest.raises(LogError, match="no session that goes on with it was noted"):
        gone_on_with(state, path)


def test_a_byte_that_was_changed_in_the_middle_is_found(state: State) -> None:
    lines = lines_of(a_session(CALLS))
    path = noted(state, lines)
    write(path, [*lines[:100], lines[100].replace(b"10:01", b"10:02"), *lines[101:]])
    with pytest.raises(LogError, match="BROKEN at line 102"):
        gone_on_with(state, path)

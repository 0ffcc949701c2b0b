"""The head of a log that grows: only its end is read, and a torn line is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from forged_logs import a_session, lines_of, write
from program import Program

from harness.errors import LogError
from harness.log.action_log import ActionLog
from harness.plugins.fleet.batch.growing_log import GrowingLog, head_of


def add(log: ActionLog, count: int = 1, words: str = "a word") -> None:
    """Append records of one session; the first of a log begins it."""
    for _ in range(count):
        if log.count:
            log.append("error", {"where": "model", "message": words})
        else:
            log.append("session_started", {"harness": words})


def test_head_equals_that_of_the_writing_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path))
    assert head_of(str(path)) is None
    for count in (1, 3, 200):
        add(log, count)
        found = head_of(str(path))
        assert found is not None
        assert (found.records, found.head, found.size) == (log.count, log.head, log.size)
        assert (found.session, found.closed) == (log.session, False)
    add(log, words="long " * 100_000)  # one record is longer than the step in which the end is read
    found = head_of(str(path))
    assert found is not None
    assert (found.records, found.head) == (log.count, log.head)
    log.close()


@pytest.mark.forges_logs
def test_a_torn_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path))
    add(log, 2)
    log.close()
    whole = head_of(str(path))
    for torn in (b'{"half', b'{"half' * 50_000):
        with path.open("ab") as file:
            file.write(torn)
        assert head_of(str(path)) == whole
    path.write_bytes(b"no record\n")
    assert head_of(str(path)) is None
    path.write_bytes(b'{"only": "a torn line')
    assert head_of(str(path)) is None


def test_a_log_is_looked_at_again_and_again_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    growing = GrowingLog(str(path))
    assert growing.look() is None  # it is not there yet
    log = ActionLog.open(str(path))
    assert growing.look() is None
    add(log)
    first = growing.look()
    assert first is not None
    assert first.records == 1
    assert growing.look() is None  # nothing new
    assert growing.head == first
    add(log, 4)
    second = growing.look()
    assert second is not None
    assert (second.records, second.head) == (5, log.head)
    log.close()


def test_unreadable_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        head_of(str(tmp_path / "none.jsonl"))
    with pytest.raises(LogError, match="not a regular file"):
        head_of(str(tmp_path))


@pytest.mark.forges_logs
def test_noted_head_is_accepted_by_audit_verify(program: Program, tmp_path: Path) -> None:
    """While the log grows, once it is closed, and once it was cut."""
    path = tmp_path / "logs" / "log.jsonl"
    path.parent.mkdir()
    note = tmp_path / "head.json"

    def verified(*words: str) -> tuple[int, str]:
        done = program.run("audit", "verify", *words, str(path))
        return done.code, done.out

    def noted() -> str:
        head = head_of(str(path))
        assert head is not None
        note.write_bytes(head.note("/on/another/machine/log.jsonl"))
        return head.head

    lines = lines_of(a_session(2))
    write(path, lines[:-1])
    early = noted()
    assert verified("--heads", str(note))[0] == 3  # the session goes on
    write(path, lines)
    assert verified("--heads", str(note))[0] == 4  # it went on since
    noted_last = noted()
    assert verified("--heads", str(note))[0] == 0
    assert verified("--head", noted_last)[0] == 0
    assert verified("--head", early)[0] == 4
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    code, told = verified("--heads", str(note))
    assert code == 1
    assert "it was longer once" in told
    assert verified("--head", noted_last)[0] == 1

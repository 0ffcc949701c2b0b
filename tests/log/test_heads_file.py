"""The heads file: noted while a log grows, by many at once, torn, huge, and read again as what it came to."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from forged_logs import head_of, lines_of, one_call, started, write
from rows import all_rows
from sizes import proof_size
from work import lines_run

from harness.errors import LogError, UsageError
from harness.log.action_log import ActionLog
from harness.log.heads_file import HeadsFile, KnownHead, NotedLogs, append_note, notes_in
from harness.session.session_log import NOTE_RECORDS, NOTE_SECONDS, HeadNotes, pinned
from harness.session.state import State
from harness.terminal.console import complain

pytestmark = pytest.mark.forges_logs


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(state=str(tmp_path / "state"), config=str(tmp_path / "config"))


@pytest.fixture
def log(state: State) -> ActionLog:
    return ActionLog.open(state.new_log_path("/srv/shop"))


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def noted(state: State) -> list[int]:
    """Return the numbers of records that were noted, in order."""
    return [note.records for note in notes_in(state.heads)]


def say(log: ActionLog, times: int = 1) -> None:
    for _ in range(times):
        log.append("user_message", {"text": "x"})


def test_the_first_record_and_every_so_many_are_noted(state: State, log: ActionLog) -> None:
    clock = Clock()
    log.observers.append(HeadNotes(state, log, complain, clock=clock).record)
    log.append("session_started", {"harness": "0"})
    say(log, 2 * NOTE_RECORDS + 10)
    assert noted(state) == [1, 1 + NOTE_RECORDS, 1 + 2 * NOTE_RECORDS]
    known = state.known_head(log.path)
    assert known is not None
    assert (known.records, known.closed, known.file) == (1 + 2 * NOTE_RECORDS, False, log.path)


def test_a_slow_log_is_noted_by_the_clock(state: State, log: ActionLog) -> None:
    clock = Clock()
    log.observers.append(HeadNotes(state, log, complain, clock=clock).record)
    log.append("session_started", {"harness": "0"})
    clock.now += NOTE_SECONDS - 1
    say(log)
    assert noted(state) == [1]
    clock.now += 1
    say(log)
    assert noted(state) == [1, 3]


def test_note_pins_the_log(state: State, log: ActionLog) -> None:
    log.append("session_started", {"harness": "0"})
    state.record_head(log)
    (line,) = Path(state.heads).read_text().splitlines()
    entry = json.loads(line)
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "file": log.path, "session": log.session, "records": 1, "head": log.head, "closed": True,
        "size": os.path.getsize(log.path),
    }  # fmt: skip
    assert os.stat(state.heads).st_mode & 0o777 == 0o600


def test_head_lines_use_a_short_path(log: ActionLog) -> None:
    folder, name = os.path.split(log.path)
    homes = (folder, f"{folder}/", folder[:-1], "/", "")
    inside, outside = f"log: ~/{name}", f"log: {log.path}"
    assert [pinned(log, home)[0] for home in homes] == [inside, inside, outside, outside, outside]
    assert pinned(log)[1:] == (f"records: {log.count}", f"head: {log.head}")


def test_failed_note_stops_a_run_only_at_its_end(state: State, log: ActionLog) -> None:
    os.makedirs(state.heads)
    notes = HeadNotes(state, log, complain)
    log.append("session_started", {"harness": "0"})
    notes.record({})  # raises nothing
    with pytest.raises(LogError, match="the heads file cannot be written"):
        state.record_head(log)


def test_pipe_in_place_of_the_heads_file_is_refused_immediately(state: State, log: ActionLog) -> None:
    os.mkfifo(state.heads)
    with pytest.raises(LogError, match="not a regular file"):
        state.record_head(log)


def test_the_usual_record_costs_hardly_anything(state: State, log: ActionLog) -> None:
    """Between two notes nothing is opened and nothing written."""
    notes = HeadNotes(state, log, complain, clock=Clock())
    log.append("session_started", {"harness": "0"})
    notes.record({})
    os.unlink(state.heads)
    for _ in range(NOTE_RECORDS - 1):
        say(log)
        notes.record({})
    assert not os.path.exists(state.heads)


def test_a_line_that_a_crash_tore_is_not_glued_onto(state: State, log: ActionLog) -> None:
    os.makedirs(state.state, exist_ok=True)
    Path(state.heads).write_bytes(b'{"file":"/x","recor')
    log.append("session_started", {"harness": "0"})
    state.record_head(log)
    state.record_head(log)
    lines = Path(state.heads).read_bytes().splitlines()
    assert (len(lines), lines[0]) == (3, b'{"file":"/x","recor')
    assert noted(state) == [1, 1]


@all_rows(
    "line",
    [
        b"", b"\xff\xfe", b"null", b"[]", b"{}", b"[" * 100_000, b'{"file":1,"records":1,"head":"x"}',
        b'{"file":"/l","records":true,"head":"x"}', b'{"file":"/l","records":"1","head":"x"}',
        b'{"file":"/l","records":1,"head":null}', b'{"file":"/l","records":1' + b"0" * 5_000 + b',"head":"x"}',
    ],
)  # fmt: skip
def test_invalid_notes_are_skipped(line: bytes, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    good = b'{"closed": true, "file": "/l", "head": "h", "records": 5, "session": "s"}'  # as version 0.1.0 wrote it
    heads.write_bytes(line + b"\n" + good + b"\n" + line + b"\n")
    known = HeadsFile(str(heads)).of_path("/l")
    assert known is not None
    assert (known.records, known.head, known.closed, known.time) == (5, "h", True, "")


def entry(file: str, records: int, **more: object) -> dict[str, object]:
    return {
        "file": file,
        "session": "s1",
        "records": records,
        "head": f"h{records}",
        "closed": False,
        "time": "t",
    } | more


def file_of(path: Path, *entries: dict[str, object]) -> HeadsFile:
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    return HeadsFile(str(path))


def test_the_last_note_counts_and_all_are_kept(tmp_path: Path) -> None:
    heads = file_of(tmp_path / "h", entry("/a", 1), entry("/b", 9), entry("/a", 4, closed=True), entry("/a", 6))
    known = heads.of_path("/a")
    assert known == KnownHead(
        records=6, head="h6", closed=False, file="/a", time="t",
        noted={1: frozenset({"h1"}), 4: frozenset({"h4"}), 6: frozenset({"h6"})},
    )  # fmt: skip
    assert heads.of_path("/c") is None


def test_two_heads_of_the_same_length_are_both_kept(tmp_path: Path) -> None:
    known = file_of(tmp_path / "h", entry("/a", 4), entry("/a", 4, head="other")).of_path("/a")
    assert known is not None
    assert known.noted == {4: frozenset({"h4", "other"})}


def test_tombstone_ends_earlier_notes(tmp_path: Path) -> None:
    """A new log under the old name is another one; while there is none, the tombstone is what is known."""
    stone = entry("/a", 4, tombstone=True, reason="older than 3 days", by="me")
    known = file_of(tmp_path / "h", entry("/a", 1), entry("/a", 4), stone).of_path("/a")
    assert known is not None
    assert (known.removed, known.records, known.noted) == ("older than 3 days", 4, {4: frozenset({"h4"})})
    again = file_of(tmp_path / "h", entry("/a", 4), stone, entry("/a", 2)).of_path("/a")
    assert again is not None
    assert (again.removed, again.noted) == ("", {2: frozenset({"h2"})})


@all_rows("asked_before", [0, 10])
def test_a_log_is_found_by_a_session_that_it_holds(asked_before: int, tmp_path: Path) -> None:
    """Also once the whole file has been read, for having been asked often; the notes of its other sessions count too."""
    heads = file_of(tmp_path / "h", entry("/a", 1), entry("/a", 4, session="s2"), entry("/b", 9, session="s3"))
    for _ in range(asked_before):
        heads.of_path("/x")
    for session in ("s1", "s2"):
        known = heads.of_session(session)
        assert known is not None
        assert (known.file, known.records, sorted(known.noted)) == ("/a", 4, [1, 4])
    assert heads.of_session("s4") is None
    assert heads.of_session("/a") is None
    assert {known.file for known in heads.every()} == {"/a", "/b"}


def test_odd_path_is_found_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / 'odd "name" \udce4\n'
    folder.mkdir()
    log = write(folder / "log.jsonl", [])
    (tmp_path / "link").symlink_to(folder)
    heads = file_of(tmp_path / "h", entry(str(log), 3), entry(f"{log}x", 5))
    for path in (str(log), f"{tmp_path}/link/log.jsonl", f"{folder}/../{folder.name}/log.jsonl"):
        known = heads.of_path(path)
        assert known is not None
        assert known.records == 3


def test_missing_heads_file_is_empty_and_an_unreadable_one_an_error(tmp_path: Path) -> None:
    assert HeadsFile(str(tmp_path / "missing")).of_path("/a") is None
    with pytest.raises(UsageError, match="cannot be read"):
        HeadsFile(str(tmp_path)).of_path("/a")


def test_the_notes_of_other_logs_are_passed_over_without_being_parsed(tmp_path: Path) -> None:
    path = tmp_path / "h"
    with path.open("w") as file:
        for number in range(10_000):
            file.write(json.dumps(entry(f"/state/sessions/shop/{number % 500}.jsonl", number)) + "\n")
    known = HeadsFile(str(path)).of_path("/state/sessions/shop/77.jsonl")
    assert known is not None
    assert (known.records, len(known.noted)) == (9_577, 20)
    looking = lines_run(lambda: HeadsFile(str(path)).of_path("/state/sessions/shop/77.jsonl"))
    assert looking < lines_run(lambda: NotedLogs(notes_in(str(path)))) / 3


KILLED_PAIRS = proof_size("KILLED_PAIRS", 4, full=10)
WRITERS = proof_size("WRITERS", 5, full=16)
WRITER = """
import sys
from harness.log.heads_file import append_note
for number in range(200):
    entry = {"file": sys.argv[2], "records": number, "head": "h" * (number % 7) * 300}
    append_note(sys.argv[1], entry, lock_seconds=600)
"""


def test_concurrent_processes_keep_every_note_intact(tmp_path: Path) -> None:
    heads = str(tmp_path / "heads.jsonl")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, heads, f"/log{n}"]) for n in range(WRITERS)]
    assert [process.wait(timeout=600) for process in running] == [0] * WRITERS
    lines = [json.loads(line) for line in Path(heads).read_text().splitlines()]
    assert Counter(line["file"] for line in lines) == {f"/log{n}": 200 for n in range(WRITERS)}
    for n in range(WRITERS):
        assert [line["records"] for line in lines if line["file"] == f"/log{n}"] == list(range(200))


def test_writers_that_are_killed_tear_no_other_line(tmp_path: Path) -> None:
    """Each pair is killed when it has written some lines; chance says how many."""
    heads, chance = tmp_path / "heads.jsonl", random.Random(1)
    heads.touch()
    for _ in range(KILLED_PAIRS):
        wanted = heads.stat().st_size + chance.randrange(20_000)
        running = [subprocess.Popen([sys.executable, "-c", WRITER, str(heads), "/log"]) for _ in range(2)]
        while heads.stat().st_size <= wanted and any(process.poll() is None for process in running):
            time.sleep(0.001)
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert heads.stat().st_size > wanted
        append_note(str(heads), {"file": "/mine", "records": 1, "head": "h"})
    lines = heads.read_text().splitlines()
    assert [json.loads(line)["file"] for line in lines if "/mine" in line] == ["/mine"] * KILLED_PAIRS


def test_a_writer_that_hangs_with_the_lock_does_not_stop_the_others(tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    heads.write_text("")
    with heads.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        append_note(str(heads), {"file": "/a", "records": 1, "head": "h"}, lock_seconds=0.2)
    assert [note.file for note in notes_in(str(heads))] == ["/a"]


KILLED = """
import os, sys
from harness.log.action_log import ActionLog
from harness.session.session_log import HeadNotes
from harness.terminal.console import complain
from harness.session.state import State
state = State(state=sys.argv[1], config=sys.argv[1])
log = ActionLog.open(state.new_log_path("/srv/shop"))
log.observers.append(HeadNotes(state, log, complain, clock=lambda: 0.0).record)
log.append("session_started", {"harness": "0"}, sync=True)
for number in range(700):
    log.append("user_message", {"text": str(number)})
os.kill(os.getpid(), 9)
"""


def test_a_kill_leaves_a_recent_head(state: State) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, state.state], check=False)
    assert done.returncode == -signal.SIGKILL
    (path,) = state.log_paths()
    known = state.known_head(path)
    assert known is not None
    assert (known.records, known.closed) == (513, False)
    lines = Path(path).read_bytes().splitlines()
    assert {count: frozenset({head_of(lines[:count])}) for count in known.noted} == known.noted


def test_a_forged_log_passes_its_notes(tmp_path: Path) -> None:
    """The heads of these tests' own logs are those that the writer would note."""
    lines = lines_of((started(), *one_call(1)))
    path = write(tmp_path / "log.jsonl", lines)
    log = ActionLog.open(str(path))
    assert (log.count, log.head) == (5, head_of(lines))
    log.close()

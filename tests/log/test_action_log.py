"""The action log on real files: chain, order, damage, masking, failing disks; nothing is taken on trust from the writer."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_scene import Step, append_filled, digest, filled, forged, proved
from rows import all_rows
from sizes import examples

from harness.actions import JsonValue
from harness.errors import LogError
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import NO_PREVIOUS, parse_line, read_log
from harness.log.verify import Verification, verify
from harness.redaction.known_values import MIN_SECRET_CHARACTERS, is_ordinary
from harness.redaction.marks import is_redacted

START: Step = ("session_started", {})
PROPOSED: Step = ("call_proposed", {"call": 1})
AUTO: Step = ("decision", {"call": 1, "decision": "auto"})
CONFIRM: Step = ("decision", {"call": 1, "decision": "confirm"})
DENY: Step = ("decision", {"call": 1, "decision": "deny"})
BLOCK: Step = ("decision", {"call": 1, "decision": "block"})
NONE: Step = ("decision", {"call": 1, "decision": "none"})
ASKED: Step = ("approval_asked", {"call": 1})
YES: Step = ("approval_answered", {"call": 1, "answer": "yes"})
NO: Step = ("approval_answered", {"call": 1, "answer": "no"})
INTENT: Step = ("intent", {"call": 1})
DONE: Step = ("outcome", {"call": 1, "status": "ok"})
DENIED: Step = ("outcome", {"call": 1, "status": "denied"})
NOT_RUN: Step = ("outcome", {"call": 1, "status": "not_run"})
END: Step = ("session_ended", {})

WHOLE_RUN = (START, PROPOSED, AUTO, INTENT, DONE, END)


def write_log(path: Path, steps: Sequence[Step] = WHOLE_RUN, *, session: str = "") -> str:
    """Write a log with the real writer; return its session."""
    log = ActionLog.open(str(path))
    log.session = session or log.session
    append_filled(log, steps)
    log.close()
    return log.session


def forge(path: Path, steps: Sequence[Step]) -> None:
    """Write a log by hand whose chain is right, so that only what the records say can be wrong."""
    path.write_bytes(b"".join(forged(steps)))


def masked(value: JsonValue) -> Any:
    """Return a value of a record with every mark of a known secret as `[masked]`: which mark it is, its key decides."""
    return json.loads(re.sub(r"\[redacted:known:[0-9a-f]{8}\]", "[masked]", json.dumps(value)))


def is_looked_for(secret: str) -> bool:
    """Say whether a value is masked: not what is so short or ordinary that nothing could be read any more."""
    plain = secret.strip()
    return len(plain) >= MIN_SECRET_CHARACTERS and not is_ordinary(plain)


def texts(value: JsonValue) -> list[str]:
    """Return every text inside a JSON value."""
    match value:
        case str():
            return [value]
        case list():
            return [text for item in value for text in texts(item)]
        case dict():
            return [text for item in value.values() for text in texts(item)]
        case _:
            return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


# --- writing -------------------------------------------------------------------------------------------------------


def test_records_are_chained_numbered_and_stamped(path: Path) -> None:
    """The whole file, byte by byte, from a fixed clock."""
    times, ticks = iter((0.0, 1.9999996)), iter((7, 8))
    log = ActionLog.open(str(path), clock=lambda: next(times), monotonic_ns=lambda: next(ticks))
    log.session = "abc"
    log.append("session_started", {"harness": "h", "model": "m"})
    log.append("session_ended", {"stop": "completed", "detail": ""}, sync=True)
    first = (
        b'{"harness":"h","kind":"session_started","model":"m","mono_ns":7,"prev":"' + b"0" * 64 + b'","seq":0,'
        b'"session":"abc","time":"1970-01-01T00:00:00.000000Z","v":1}'
    )
    second = (
        b'{"detail":"","kind":"session_ended","mono_ns":8,"prev":"' + digest(first).encode() + b'","seq":1,'
        b'"session":"abc","stop":"completed","time":"1970-01-01T00:00:02.000000Z","v":1}'
    )
    assert path.read_bytes() == first + b"\n" + second + b"\n"
    assert (log.count, log.head) == (2, digest(second))
    log.close()
    assert proved(str(path)) == Verification(records=2, head=digest(second))


def test_append_returns_the_written_record(path: Path) -> None:
    """The returned record, the observed one and the one on disk are the same."""
    seen: list[LogRecord] = []
    log = ActionLog.open(str(path), secrets=["hunter2-hunter2"])
    log.observers.append(seen.append)
    returned = append_filled(log, [("session_started", {"n": 1}), ("error", {"message": "key hunter2-hunter2!"})])
    log.close()
    assert returned == seen == list(read_log(str(path)))
    assert masked(returned[1]["message"]) == "key [masked]!"
    assert returned[1]["masked"] == {"known": 1}


def test_threads_write_sessions_of_their_own_into_one_chain(path: Path) -> None:
    """Observers hear of each record alone, in the order of the file; while the log is held nobody else writes."""
    log = ActionLog.open(str(path))
    seen: list[LogRecord] = []
    inside, errors = threading.Semaphore(), list[str]()

    def observe(record: LogRecord) -> None:
        if not inside.acquire(blocking=False):
            errors.append("two records at once")
        seen.append(record)
        inside.release()

    log.observers.append(observe)
    own = log.begin_session()
    log.append("session_started", filled("session_started", {}))
    names: list[str] = []

    def write() -> None:
        with log.session_of_thread():
            names.append(log.begin_session())
            log.append("session_started", filled("session_started", {}))
            for number in range(50):
                log.append("error", filled("error", {"message": f"{number}"}))

    threads = [threading.Thread(target=write) for _ in range(4)]
    with log.held():
        for thread in threads:
            thread.start()
        log.append("error", filled("error", {}))
        assert log.count == 2
    for thread in threads:
        thread.join()
    assert log.session == own
    log.append("error", filled("error", {}))
    log.close()
    records = list(read_log(str(path)))
    assert (records, errors) == (seen, [])
    assert len(proved(str(path)).open_sessions) == 5
    assert [sum(record["session"] == name for record in records) for name in (own, *names)] == [3, 51, 51, 51, 51]


def test_fields_cannot_overwrite_the_own_fields_of_the_log(path: Path) -> None:
    """A caller's `seq`, `prev`, `kind` and the like do not count."""
    log = ActionLog.open(str(path))
    fields: dict[str, JsonValue] = {"seq": 7, "prev": "x", "kind": "intent", "v": 9, "session": "y", "time": ""}
    record = log.append("session_started", filled("session_started", {**fields, "mono_ns": -1}))
    log.close()
    assert (record["seq"], record["prev"], record["kind"], record["v"]) == (0, NO_PREVIOUS, "session_started", 1)
    assert record["session"] == log.session
    assert record["time"] != ""
    assert record["mono_ns"] != -1
    assert verify(str(path)).broken_line is None


def test_a_record_is_in_the_file_before_observers_see_it(path: Path) -> None:
    """An observer never knows more than the file."""
    lengths: list[int] = []
    log = ActionLog.open(str(path))
    log.observers.append(lambda record: lengths.append(len(list(read_log(str(path))))))
    append_filled(log, WHOLE_RUN)
    log.close()
    assert lengths == [1, 2, 3, 4, 5, 6]


def test_an_observer_that_raises_harms_neither_the_log_nor_the_others(path: Path) -> None:
    """Every record is written, and every other observer sees it."""
    seen: list[LogRecord] = []

    def fail(record: LogRecord) -> None:
        raise RuntimeError("an observer's own trouble")

    log = ActionLog.open(str(path))
    log.observers += [fail, seen.append]
    append_filled(log, WHOLE_RUN)
    log.close()
    assert [record["kind"] for record in seen] == [kind for kind, _ in WHOLE_RUN]
    assert proved(str(path)) == Verification(records=6, head=log.head)


def test_interrupted_observer_leaves_a_usable_log(path: Path) -> None:
    """Ctrl-C while a record is shown: the record is written, and the next follows from it."""

    def interrupted(record: LogRecord) -> None:
        raise KeyboardInterrupt

    log = ActionLog.open(str(path))
    append_filled(log, [START])
    log.observers.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append("user_message", {"text": "x"})
    log.observers.clear()
    append_filled(log, [END])
    log.close()
    assert proved(str(path)) == Verification(records=3, head=log.head)


@all_rows(
    "fields",
    [{"x": float("nan")}, {"x": float("inf")}, {"x": object()}, {"x": b"bytes"}, {"x": {1, 2}}],
    ids=["NaN", "infinity", "an object", "bytes", "a set"],
)
def test_invalid_json_value_is_a_log_error_and_leaves_no_trace(tmp_path: Path, fields: dict[str, JsonValue]) -> None:
    """The record is not written, and nothing is ever after: something ran on that could not be recorded."""
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path))
    append_filled(log, [START])
    before = path.read_bytes()
    with pytest.raises(LogError, match="cannot be written"):
        log.append("error", filled("error", fields))
    with pytest.raises(LogError, match="closed"):
        append_filled(log, [("error", {})])
    assert path.read_bytes() == before
    log.close()


def test_closed_log_accepts_no_records(path: Path) -> None:
    """Closing twice is fine; appending is an error and changes nothing."""
    log = ActionLog.open(str(path))
    append_filled(log, [START])
    log.close()
    log.close()
    before = path.read_bytes()
    with pytest.raises(LogError):
        log.append("session_ended", filled("session_ended", {}), sync=True)
    assert path.read_bytes() == before


def test_lone_surrogates_and_control_characters_are_written_as_escapes(path: Path) -> None:
    """Any text is a record of one ASCII line, and comes back as it was."""
    text = "\ud800 \x00\x1b\n\u2028 é \U0001f600"
    log = ActionLog.open(str(path))
    append_filled(log, [("session_started", {"text": text})])
    log.close()
    data = path.read_bytes()
    assert (data.isascii(), data.count(b"\n")) == (True, 1)
    assert next(read_log(str(path)))["text"] == text


# --- opening -------------------------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_only(path: Path) -> None:
    """Mode 0600, whatever the umask allows."""
    before = os.umask(0)
    try:
        ActionLog.open(str(path)).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_log_continues_the_file(path: Path) -> None:
    """Two sessions, one chain; `count` and `head` are those of the whole file."""
    first, second = write_log(path), write_log(path)
    assert first != second
    log = ActionLog.open(str(path))
    assert log.count == 12
    assert proved(str(path)) == Verification(records=12, head=log.head)
    log.close()


def test_a_log_that_a_crash_left_open_is_continued(path: Path) -> None:
    """The first session stays open for ever, and says so; the file as a whole is not broken."""
    crashed = write_log(path, (START, PROPOSED, AUTO, INTENT))
    write_log(path)
    head = digest(path.read_bytes().splitlines()[-1])
    assert proved(str(path)) == Verification(
        records=10, head=head, unknown_calls=(f"{crashed}:1",), open_sessions=(crashed,)
    )


def test_a_second_writer_is_refused_in_this_process_and_in_another(path: Path) -> None:
    """One writer for as long as the log is open; the file is free again when it is closed."""
    log = ActionLog.open(str(path))
    with pytest.raises(LogError, match=f"the action log is open already in this process: {path}"):
        ActionLog.open(str(path))
    code = f"from harness.log.action_log import ActionLog; ActionLog.open({str(path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "LogError: the action log is in use by another process" in other.stderr
    append_filled(log, [START])
    log.close()
    ActionLog.open(str(path)).close()
    assert verify(str(path)).records == 1


def test_the_descriptor_is_not_inherited(path: Path) -> None:
    """A command that a tool starts cannot write the log through an open descriptor."""
    log = ActionLog.open(str(path))
    listed = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True, close_fds=False)
    assert str(path) not in listed.stdout
    log.close()


def _link(path: Path) -> None:
    target = path.with_name("target")
    target.touch()
    path.symlink_to(target)


def _dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("missing"))


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _torn(path: Path) -> None:
    write_log(path)
    path.write_bytes(path.read_bytes()[:-1])


def _no_record(path: Path) -> None:
    path.write_bytes(b"hello\n")


def _empty_last_line(path: Path) -> None:
    write_log(path)
    path.write_bytes(path.read_bytes() + b"\n")


def _no_folder(path: Path) -> None:
    path.parent.rmdir()


def _other_version(path: Path) -> None:
    forge(path, [("session_started", {"v": 2})])


def _boolean_sequence(path: Path) -> None:
    forge(path, [("session_started", {"seq": True})])


@all_rows(
    ("make", "words"),
    [
        (_link, "cannot be opened"),
        (_dangling_link, "cannot be opened"),
        (_fifo, "not a regular file"),
        (_folder, "cannot be opened"),
        (_no_folder, "cannot be opened"),
        (_torn, "does not end in a whole record"),
        (_no_record, "does not end in a whole record"),
        (_empty_last_line, "does not end in a whole record"),
        (_other_version, "does not end in a whole record"),
        (_boolean_sequence, "does not end in a whole record"),
    ],
    ids=[
        "a symbolic link",
        "a dangling symbolic link",
        "a FIFO, without hanging",
        "a folder",
        "a folder that is not there",
        "a torn last line",
        "a file that is no log",
        "an empty last line",
        "a log of another version",
        "a sequence number that is no number",
    ],
)
def test_unusable_log_file_is_refused_and_not_touched(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    path = tmp_path / "folder" / "log.jsonl"
    path.parent.mkdir()
    make(path)
    before = path.read_bytes() if path.is_file() else None
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(LogError, match=words):
        ActionLog.open(str(path))
    assert (path.read_bytes() if path.is_file() else None) == before
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not path.with_name("missing").exists()


UNREADABLE_FOLDER = """
import datetime, os, sys  # before this process may not read it any more
from harness.log.action_log import ActionLog
from harness.log.verify import verify
ActionLog.open(sys.argv[1] + "/first.jsonl").close()  # imports what it needs, while this process may read it
os.chown(sys.argv[1], 65534, 65534) if os.geteuid() == 0 else None
os.setuid(65534) if os.geteuid() == 0 else None
os.chmod(sys.argv[1], 0o300)
log = ActionLog.open(sys.argv[1] + "/log.jsonl")
log.append("session_started", {"harness": "test"}, sync=True)
print(verify(log.path).records)
os.chmod(sys.argv[1], 0o700)
"""


def test_a_folder_that_cannot_be_listed_holds_a_log_all_the_same() -> None:
    """The name cannot be synced there; the records can. The child gives up root, which no mode stops."""
    folder = tempfile.mkdtemp(dir="/tmp")
    try:
        child = subprocess.run(
            [sys.executable, "-c", UNREADABLE_FOLDER, folder], capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(folder)
    assert (child.stdout, child.stderr) == ("1\n", "")


# --- damage --------------------------------------------------------------------------------------------------------


def test_a_last_record_torn_at_any_byte_is_reported_and_costs_no_other(path: Path) -> None:
    """Every cut of the last line but the empty one is a torn tail; the head is that of the line before."""
    session = write_log(path)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    whole, last = b"".join(lines[:-1]), lines[-1]
    expected = Verification(records=5, head=digest(lines[-2][:-1]), torn=True, open_sessions=(session,))
    for length in range(1, len(last)):
        path.write_bytes(whole + last[:length])
        assert proved(str(path)) == expected, length
        assert verify(str(path)).torn_bytes == length
        assert len(list(read_log(str(path)))) == 5
        with pytest.raises(LogError, match="does not end in a whole record"):
            ActionLog.open(str(path))
        assert path.read_bytes() == whole + last[:length]
    path.write_bytes(whole)
    assert proved(str(path)) == Verification(records=5, head=expected.head, open_sessions=(session,))


def _swap(lines: list[bytes], first: int, second: int) -> list[bytes]:
    lines[first], lines[second] = lines[second], lines[first]
    return lines


Damage = Callable[[list[bytes]], list[bytes]]
IS_NO_RECORD = "is not a record"
NO_FIT = "does not fit its kind"
NOT_CHAINED = "does not hold the hash of the line before"


@pytest.mark.forges_logs
@pytest.mark.parametrize(
    ("damage", "broken_line", "problem"),
    [
        (lambda x: [*x[:2], x[2].replace(b'"auto"', b'"deny"'), *x[3:]], 4, NOT_CHAINED),
        (lambda x: [x[0].replace(b'"time":"2', b'"time":"1'), *x[1:]], 2, NOT_CHAINED),
        (lambda x: _swap(x, 2, 3), 3, "has sequence number 3, not 2"),
        (lambda x: [*x[:2], *x[3:]], 3, "has sequence number 3, not 2"),
        (lambda x: x[1:], 1, "has sequence number 1, not 0"),
        (lambda x: [*x[:3], x[2], *x[3:]], 4, "has sequence number 2, not 3"),
        (lambda x: [*x, x[-1]], 7, "has sequence number 5, not 6"),
        (lambda x: [*x[:3], b"\n", *x[3:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], x[3].replace(b'"call":1', b'"call":1,"call":1'), *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], x[3].replace(b'"call":1', b'"call":NaN'), *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], x[3].replace(b'"call":1', b'"call":-Infinity'), *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], x[3][:-1] + b" {}\n", *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], x[3].replace(b'"kind":"intent",', b""), *x[4:]], 4, "is of a kind that is no text"),
        (lambda x: [*x[:3], re.sub(rb'"session":"[^"]*",', b"", x[3]), *x[4:]], 4, f"{NO_FIT}: lacks the field session"),
        (lambda x: [*x[:3], re.sub(rb'"mono_ns":[0-9]*,', b"", x[3]), *x[4:]], 4, f"{NO_FIT}: lacks the field mono_ns"),
        (lambda x: [*x[:3], re.sub(rb'"prev":"[^"]*",', b"", x[3]), *x[4:]], 4, NOT_CHAINED),
        (lambda x: [*x[:3], x[3].replace(b'"seq":3,', b""), *x[4:]], 4, "has sequence number None, not 3"),
        (lambda x: [*x[:3], x[3].replace(b',"v":1}', b"}"), *x[4:]], 4, "has version None, not 1"),
        (lambda x: [*x[:3], b"[]\n", *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], b"[" * 100_000 + b"\n", *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], b"\0" * 100 + b"\n", *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:3], b"\xff" + x[3], *x[4:]], 4, IS_NO_RECORD),
        (lambda x: [*x[:5], b"\xef\xbb\xbf" + x[5]], 6, IS_NO_RECORD),
        (lambda x: [*x[:5], x[5].replace(b'"seq":5', b'"seq":5.0')], 6, "has sequence number 5.0, not 5"),
        (lambda x: [*x[:5], x[5].replace(b'"v":1', b'"v":true')], 6, "has version True, not 1"),
        (lambda x: [*x[:5], x[5].replace(b'"v":1', b'"v":2')], 6, "has version 2, not 1"),
        (lambda x: [*x[:5], x[5].replace(b"session_ended", b"session_edned")], 6,
         "is of the unknown kind 'session_edned'"),
        (lambda x: [*x[:5], x[5].replace(b'"session_ended"', b"[]")], 6, "is of a kind that is no text"),
    ],
    ids=[
        "an edited record breaks the next",
        "an edited first record breaks the second",
        "two records in the wrong order",
        "a deleted record",
        "a deleted first record",
        "a record that stands twice",
        "the last record twice",
        "an empty line",
        "a key twice",
        "NaN",
        "Infinity",
        "bytes after the object",
        "the kind missing",
        "the session missing",
        "the monotonic clock missing",
        "the hash missing",
        "the sequence number missing",
        "the version missing",
        "an array",
        "an array too deep to read",
        "zeros, as a crash may leave them",
        "a byte that is no UTF-8",
        "a byte order mark",
        "a sequence number as a float",
        "a version that is a boolean",
        "another version",
        "an unknown kind",
        "a kind that is no text",
    ],
)  # fmt: skip
def test_damage_is_found_at_its_line(path: Path, damage: Damage, broken_line: int, problem: str) -> None:
    write_log(path)
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    found = verify(str(path))
    assert (found.broken_line, found.problem, found.records) == (broken_line, problem, broken_line - 1)


def test_every_changed_byte_shows_against_the_head(path: Path) -> None:
    """Whatever byte is changed: the log is broken, torn, or its head is another."""
    session = write_log(path)
    data = path.read_bytes()
    sound = Verification(records=6, head=digest(data.splitlines()[-1]))
    assert (proved(str(path)), len(session)) == (sound, 12)
    for position in range(0, len(data), 3):
        path.write_bytes(data[:position] + bytes((data[position] ^ 1,)) + data[position + 1 :])
        assert proved(str(path)) != sound, position


def test_verify_needs_a_regular_file(tmp_path: Path) -> None:
    """A FIFO does not hang and a folder does not pass for an empty log."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    descriptors = len(os.listdir("/proc/self/fd"))
    for path in (fifo, tmp_path, tmp_path / "missing", Path("/dev/null")):
        with pytest.raises(LogError, match="cannot be read"):
            verify(str(path))
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_an_empty_log_is_whole(path: Path) -> None:
    """Nothing was recorded, and nothing is claimed."""
    path.touch()
    assert proved(str(path)) == Verification(records=0, head=NO_PREVIOUS)


# --- order ---------------------------------------------------------------------------------------------------------


@all_rows(
    "steps",
    [
        (START, PROPOSED, AUTO, INTENT, DONE, END),
        (START, PROPOSED, CONFIRM, ASKED, YES, INTENT, DONE, END),
        (START, PROPOSED, CONFIRM, ASKED, NO, DENIED, END),
        (START, PROPOSED, CONFIRM, ASKED, NOT_RUN, END),
        (START, PROPOSED, DENY, DENIED, END),
        (START, PROPOSED, NONE, NOT_RUN, END),
        (START, PROPOSED, AUTO, NOT_RUN, END),
        (START, END),
    ],
    ids=[
        "auto and run",
        "asked, permitted and run",
        "asked and denied",
        "asked, and the question failed",
        "denied",
        "never judged",
        "permitted and not run",
        "no call at all",
    ],
)
def test_every_road_that_the_gate_can_take_is_whole(tmp_path: Path, steps: Sequence[Step]) -> None:
    path = tmp_path / "log.jsonl"
    forge(path, steps)
    found = proved(str(path))
    assert (found, found.records) == (Verification(records=len(steps), head=found.head), len(steps))


@all_rows(
    ("steps", "problem"),
    [
        ((START, INTENT), "is a intent of call 1 after nothing"),
        ((START, PROPOSED, INTENT), "is a intent of call 1 after call_proposed"),
        ((START, PROPOSED, DENY, INTENT), "is an intent of call 1, which nothing before it permits"),
        ((START, PROPOSED, BLOCK, INTENT), "is an intent of call 1, which nothing before it permits"),
        ((START, PROPOSED, NONE, INTENT), "is an intent of call 1, which nothing before it permits"),
        ((START, PROPOSED, CONFIRM, INTENT), "is an intent of call 1, which nothing before it permits"),
        ((START, PROPOSED, CONFIRM, ASKED, INTENT), "is a intent of call 1 after approval_asked"),
        ((START, PROPOSED, CONFIRM, ASKED, NO, INTENT), "is an intent of call 1, which nothing before it permits"),
        ((START, PROPOSED, DENY, ASKED), "asks about call 1, whose decision was deny"),
        ((START, PROPOSED, BLOCK, ASKED), "asks about call 1, whose decision was block"),
        ((START, PROPOSED, AUTO, ASKED), "asks about call 1, whose decision was auto"),
        ((START, PROPOSED, CONFIRM, YES), "is a approval_answered of call 1 after decision"),
        ((START, DONE), "is a outcome of call 1 after nothing"),
        ((START, PROPOSED, DONE), "is a outcome of call 1 after call_proposed"),
        ((START, PROPOSED, AUTO, DONE), "says that call 1 ran (ok), and there is no intent"),
        ((START, PROPOSED, DENY, DONE), "says that call 1 ran (ok), and there is no intent"),
        ((START, PROPOSED, CONFIRM, ASKED, NO, DONE), "says that call 1 ran (ok), and there is no intent"),
        ((START, PROPOSED, AUTO, INTENT, DENIED), "says that call 1 did not run (denied) after its intent"),
        ((START, PROPOSED, AUTO, INTENT, NOT_RUN), "says that call 1 did not run (not_run) after its intent"),
        ((START, PROPOSED, AUTO, INTENT, DONE, DONE), "is a outcome of call 1 after outcome"),
        ((START, PROPOSED, AUTO, INTENT, DONE, INTENT), "is a intent of call 1 after outcome"),
        ((START, PROPOSED, AUTO, INTENT, INTENT), "is a intent of call 1 after intent"),
        ((START, PROPOSED, AUTO, DENY), "is a decision of call 1 after decision"),
        ((START, PROPOSED, PROPOSED), "is a call_proposed of call 1 after call_proposed"),
        ((START, PROPOSED, END), "ends a session in which call 1 has no end"),
        ((START, PROPOSED, AUTO, END), "ends a session in which call 1 has no end"),
        ((START, PROPOSED, CONFIRM, ASKED, YES, END), "ends a session in which call 1 has no end"),
        ((PROPOSED,), "is a call_proposed of a session that is not open"),
        ((START, END, PROPOSED), "is a call_proposed of a session that is not open"),
        ((START, END, ("error", {})), "is a error of a session that is not open"),
        ((START, END, END), "is a session_ended of a session that is not open"),
        ((START, START), "starts a session that was started before"),
        ((START, END, START), "starts a session that was started before"),
    ],
)  # fmt: skip
def test_impossible_gate_records_are_found_in_an_intact_chain(
    tmp_path: Path, steps: Sequence[Step], problem: str
) -> None:
    path = tmp_path / "log.jsonl"
    forge(path, steps)
    found = verify(str(path))
    assert (found.problem, found.broken_line, found.records) == (problem, len(steps), len(steps) - 1)


def test_an_intent_without_an_outcome_is_unknown_and_not_broken(path: Path) -> None:
    """It may have run: that is what an audit must be told, even where the session ended in order."""
    forge(path, (START, PROPOSED, AUTO, INTENT, END))
    found = proved(str(path))
    assert found == Verification(records=5, head=found.head, unknown_calls=("s:1",))


def test_the_calls_of_two_sessions_are_not_confused(path: Path) -> None:
    """A permission in one session permits nothing in another."""
    of_two = (("a", START), ("b", START), ("a", PROPOSED), ("a", AUTO), ("b", INTENT))
    forge(path, [(kind, {**fields, "session": session}) for session, (kind, fields) in of_two])
    assert verify(str(path)).problem == "is a intent of call 1 after nothing"


# --- masking -------------------------------------------------------------------------------------------------------

KEY = "sk-abcdefgh12345678"


@all_rows(
    ("secret", "text", "shown"),
    [
        (KEY, f"export KEY={KEY}; echo {KEY}{KEY}", "export KEY=[masked]; echo [masked][masked]"),
        ("n4bcdefgh", "\n4bcdefgh and n4bcdefgh", "\n4bcdefgh and [masked]"),
        ("00e9abcdef", "éabcdef and 00e9abcdef", "éabcdef and [masked]"),
        ('with"quote\\and é', 'x with"quote\\and é y', "x [masked] y"),
        ("line one\nline two", "a line one\nline two b", "a [masked] b"),
        ("seven77", "seven77 is too short", "seven77 is too short"),
    ],
    ids=[
        "a key, wherever it stands",
        "not across the escape of a newline",
        "not across the escape of a letter",
        "quotes, backslashes and letters beyond ASCII",
        "more than one line",
        "a short one is left",
    ],
)
def test_secrets_are_masked_in_texts_only(tmp_path: Path, secret: str, text: str, shown: str) -> None:
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path), secrets=[secret])
    fields: dict[str, Any] = {"text": text, "deep": [{"x": [text]}, (text,)]}
    record, _ = append_filled(log, [("session_started", fields), END])
    log.close()
    assert masked(record["text"]) == shown
    assert masked(record["deep"]) == [{"x": [shown]}, [shown]]
    assert proved(str(path)) == Verification(records=2, head=log.head)


@all_rows(
    ("secret", "shown"),
    [
        ("123456789012", "[masked]"),
        ("000000000000", "000000000000"),
        ("session_started", "[masked]"),
        ("truncated", "truncated"),
        ("output_bytes", "[masked]"),
        ('"call":1', "[masked]"),
        ("[masked]", "[masked]"),
        ("[redacted:known:", "[redacted:known:"),
        ("[redacted:known:01234567]", "[masked]"),
        ("1970-01-01", "[masked]"),
    ],
    ids=[
        "a number in a field",
        "the zeros of the first record, too ordinary a value",
        "a kind",
        "a field that is a word, too ordinary a value",
        "another field",
        "a piece of JSON",
        "what looks a little like a mark",
        "what marks are made of",
        "a mark, which stays what it is",
        "the date",
    ],
)
def test_secrets_never_break_a_record(tmp_path: Path, secret: str, shown: str) -> None:
    """Numbers, kinds, names of fields and the chain are not texts that came from outside."""
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path), secrets=[secret], clock=lambda: 0.0)
    fields: dict[str, JsonValue] = {"output_bytes": 123456789012, "truncated": True, "call": 1, "text": secret}
    record, _ = append_filled(log, [("session_started", fields), END])
    log.close()
    assert (record["output_bytes"], record["truncated"], masked(record["text"])) == (123456789012, True, shown)
    assert next(read_log(str(path))) == record
    assert proved(str(path)) == Verification(records=2, head=log.head)


@all_rows("ascii_only", [True, False], ids=["escaped letters", "plain letters"])
@all_rows("secret", [KEY, 'pass"word\\long', "geheimnis-für-alle"], ids=["a key", "a quote", "a letter"])
def test_secrets_in_nested_json_arguments_are_masked(tmp_path: Path, secret: str, ascii_only: bool) -> None:
    """The model's argument text is kept as it was sent: a quote in it is escaped once before the log escapes it again."""
    path = tmp_path / "log.jsonl"
    arguments = json.dumps({"command": f"login {secret} now"}, ensure_ascii=ascii_only)
    log = ActionLog.open(str(path), secrets=[secret])
    record = log.append("session_started", filled("session_started", {"arguments": arguments}))
    log.close()
    assert masked(json.loads(str(record["arguments"]))) == {"command": "login [masked] now"}


def test_longest_secret_is_masked_first(path: Path) -> None:
    """A secret that begins like another leaves no rest."""
    log = ActionLog.open(str(path), secrets=["pass-word", "pass-word-and-more"])
    record = log.append("session_started", filled("session_started", {"text": "pass-word-and-more pass-word"}))
    log.close()
    assert masked(record["text"]) == "[masked] [masked]"


@settings(max_examples=examples(150), deadline=None)
@given(
    secrets=st.lists(st.text(min_size=8, max_size=14), min_size=1, max_size=3),
    before=st.text(max_size=6),
    after=st.text(max_size=6),
    number=st.integers(0, 10**12),
)
def test_secrets_and_texts_never_break_a_log(secrets: list[str], before: str, after: str, number: int) -> None:
    """Whatever the secrets and whatever surrounds them: every line is a record, and the chain holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.jsonl")
        log = ActionLog.open(path, secrets=[*secrets, str(number)])
        deep: dict[str, JsonValue] = {"x": [secrets[-1]]}
        fields: dict[str, JsonValue] = {"text": before + secrets[0] + after, "bytes": number, "deep": deep}
        append_filled(log, [("session_started", fields), END])
        log.close()
        assert proved(path) == Verification(records=2, head=log.head)
        record = next(read_log(path))
        assert record["bytes"] == number
        if is_looked_for(secrets[-1]):
            assert is_redacted(texts(record["deep"])[0])
        else:
            assert record["deep"] == deep or len(secrets) > 1  # where another secret may be a part of it
        if is_looked_for(secrets[0]):
            assert secrets[0].strip() not in str(record["text"])


# --- failing disks -------------------------------------------------------------------------------------------------

FULL_DISK = """
import json, resource, sys
sys.dont_write_bytecode = True  # Python itself does not see that a file of its cache came out too short
from harness.log.action_log import ActionLog
from harness.log.verify import verify
from harness.errors import LogError

path, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
log = ActionLog.open(path)
written, errors = 0, []
for number in range(20):
    try:
        text = "x" * 500
        kind, more = ("session_started", {"harness": "test"}) if number == 0 else ("user_message", {})
        log.append(kind, {"text": text, **more}, sync=True)
        written += 1
    except LogError as error:
        errors.append(str(error))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if errors else limit, resource.RLIM_INFINITY))
found = verify(path)
print(json.dumps([written, found.records, found.torn, found.broken_line, found.head == log.head, len(errors), errors[:2]]))
"""


def test_disk_full_once_closes_the_log_with_complete_records(tmp_path: Path) -> None:
    """RLIMIT_FSIZE cuts the write of the third record short; the part is taken back, and room later is not used."""
    for limit in (1500, 1501, 1800, 2000):
        path = tmp_path / f"{limit}.jsonl"
        command = [sys.executable, "-c", FULL_DISK, str(path), str(limit)]
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        assert child.stderr == ""
        assert json.loads(child.stdout) == [
            2, 2, False, None, True, 18,
            [f"the action log cannot be written: {path}: File too large",
             f"the action log is closed after an error: {path}"],
        ]  # fmt: skip
        assert path.read_bytes().endswith(b"\n")


def test_an_interrupt_between_two_parts_of_a_record_takes_the_part_back(path: Path) -> None:
    """The first write came out short; Ctrl-C struck before the second."""
    lengths: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        lengths.append(path.stat().st_size)
        if len(lengths) == 3:
            raise KeyboardInterrupt
        return os.write(descriptor, data if len(lengths) == 1 else data[:100])

    log = ActionLog.open(str(path), write=write)
    append_filled(log, [START])
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        log.append("user_message", {"text": "x" * 500})
    assert lengths == [0, len(before), len(before) + 100]
    assert path.read_bytes() == before
    with pytest.raises(LogError, match="closed after an error"):
        log.append("user_message", {"text": "x"})
    log.close()


SYNCED = """
import sys
from harness.log.action_log import ActionLog
from harness.errors import LogError
log = ActionLog.open(sys.argv[1])
log.append("session_started", {"harness": "test"})
for number in range(3):
    try:
        log.append("user_message", {"text": f"message {number}"}, sync=number != 1)
        print("on disk", number)
    except LogError as error:
        print(error)
"""


def _trace(path: Path, *options: str) -> tuple[str, list[str]]:
    """Run SYNCED under strace; return its output and the calls that it made on the log."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: that sync reaches the kernel is not shown here")
    calls = path.with_name("calls")
    command = [strace, "-y", "-e", "trace=write,fdatasync,ftruncate", "-o", str(calls), *options]
    child = subprocess.run(
        [*command, sys.executable, "-c", SYNCED, str(path)], capture_output=True, text=True, check=False
    )
    if "ptrace" in child.stderr:
        pytest.skip(f"strace may not trace here: {child.stderr.strip()}")
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout, [line.partition("(")[0] for line in calls.read_text().splitlines() if f"<{path}>" in line]


def test_sync_reaches_the_kernel_before_append_returns(path: Path) -> None:
    """One write for each record, and fdatasync for each that asks for it."""
    out, calls = _trace(path)
    assert out == "on disk 0\non disk 1\non disk 2\n"
    assert calls == ["write", "write", "fdatasync", "write", "write", "fdatasync"]


def test_a_sync_that_fails_once_is_final(path: Path) -> None:
    """The kernel forgets the error after telling it once, so a later success would mean nothing: none is tried."""
    out, calls = _trace(path, "-e", "inject=fdatasync:error=EIO:when=1")
    assert out == (
        f"the action log cannot be written: {path}: Input/output error\n"
        f"the action log is closed after an error: {path}\n"
        f"the action log is closed after an error: {path}\n"
    )
    assert calls == ["write", "write", "fdatasync", "ftruncate"]
    assert verify(str(path)).records == 1


# --- reading -------------------------------------------------------------------------------------------------------


def test_reading_stops_before_the_first_invalid_record(path: Path) -> None:
    """What comes before is given."""
    write_log(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"{}\n", *lines[3:]]))
    assert [record["kind"] for record in read_log(str(path))] == ["session_started", "call_proposed", "decision"]


@all_rows(
    "line",
    [b"", b"{", b"null", b'"x"', b"{}", b'{"v":1,"v":1}', b"\xff\xfe", b"1" * 5000, b'{"a":{"b":1,"b":2}}'],
)
def test_invalid_line_parses_to_none(line: bytes) -> None:
    assert parse_line(line) is None


def test_a_record_in_another_encoding_is_none(path: Path) -> None:
    """JSON in UTF-16 is what Python's reader would guess at; the log is ASCII."""
    write_log(path)
    line = path.read_bytes().splitlines()[0]
    assert parse_line(line) is not None
    assert parse_line(line.decode().encode("utf-16")) is None


@all_rows("harm", ["cut", "lengthened", "removed", "replaced"])
def test_a_log_that_something_else_touched_takes_no_more(tmp_path: Path, harm: str) -> None:
    """A command that may write the log's folder must not go unnoticed: nothing runs after this."""
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path))
    log.begin_session()
    append_filled(log, [START, ("user_message", {"text": "hello"})])
    match harm:
        case "cut":
            os.truncate(path, 10)
        case "lengthened":
            with path.open("ab") as file:
                file.write(b"x")
        case "removed":
            path.unlink()
        case _:
            other = tmp_path / "other"
            other.write_bytes(path.read_bytes())
            other.replace(path)
    for _ in range(2):
        with pytest.raises(LogError):
            log.append("user_message", {"text": "again"})
    log.close()

"""Stdout of a run: its three forms, and readers that leave, are full, sleep or are slow."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from process_scene import until_there, wait_until
from program import made_program
from rows import all_rows

from harness.actions import JsonValue
from harness.app.run.run_output import PIECE_BYTES, OutputForm, RunOutput
from harness.app.run.workflow_commands import CommandFence
from harness.log.action_log import ActionLog
from harness.models.scripted import Reply, call, replies
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

FORMS = [form.value for form in OutputForm]
HOSTILE: dict[str, JsonValue] = {
    "kind": "x",
    "text": 'a\u2028b\r\n\ud800 ##[set-output name=a]b ##\\["\x7f\x1b',
    "number": 1.5,
    "none": None,
}


class Pipe(NamedTuple):
    reader: int
    writer: int

    def read_all(self) -> bytes:
        data = b""
        while piece := os.read(self.reader, 65536):
            data += piece
        return data


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ends = Pipe(*os.pipe())
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass  # the test closed it


def test_jsonl_is_the_log_byte_for_byte(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.jsonl", tmp_path / "seen"
    descriptor = os.open(seen, os.O_WRONLY | os.O_CREAT)
    log = ActionLog.open(str(path))
    log.observers.append(RunOutput("jsonl", lambda: None, descriptor=descriptor).record)
    log.append("session_started", {"harness": "test"})
    log.append("error", {"where": "x", "message": "a\u2028b\r\n\ud800 \x7f ##[x]"})
    log.append("error", {"where": "y", "message": "é" * 5000})
    log.close()
    assert seen.read_bytes() == path.read_bytes()
    assert b"\r" not in seen.read_bytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fence", [None, CommandFence()], ids=["plain", "fenced"])
def test_output_ends_with_the_result_of_its_form(pipe: Pipe, form: str, fence: CommandFence | None) -> None:
    output = RunOutput(form, lambda: None, fence=fence, descriptor=pipe.writer)
    output.record(HOSTILE)
    output.finish({"answer": HOSTILE["text"], "v": 1}, "the answer")
    os.close(pipe.writer)
    out = pipe.read_all()
    match OutputForm(form):
        case OutputForm.TEXT if fence is None:
            assert out == b"the answer\n"
        case OutputForm.TEXT:
            assert (out.split(b"\n")[2], out.count(b"::stop-commands::")) == (b"the answer", 1)
        case OutputForm.JSON:
            assert json.loads(out) == {"answer": HOSTILE["text"], "v": 1}
        case OutputForm.JSONL:
            assert [json.loads(line) for line in out.split(b"\n") if line] == [HOSTILE]
    assert (b"##[" in out) == (form != "text" and fence is None)


@pytest.mark.parametrize("form", FORMS)
def test_a_reader_that_left_is_noticed_at_the_next_record(pipe: Pipe, form: str) -> None:
    calls: list[int] = []
    output = RunOutput(form, lambda: calls.append(1), descriptor=pipe.writer)
    assert not output.is_broken()
    os.close(pipe.reader)
    output.record(HOSTILE)
    assert (calls, output.is_broken(), output.error_text) == ([1], True, "")
    output.record(HOSTILE)
    output.finish({}, "answer")
    os.write(pipe.writer, b"x")  # goes nowhere, and is no error any more
    assert calls == [1]


def test_the_system_is_asked_whether_the_reader_left(pipe: Pipe) -> None:
    calls: list[int] = []
    output = RunOutput("text", lambda: calls.append(1), descriptor=pipe.writer)
    os.close(pipe.reader)
    assert (output.is_broken(), output.is_broken(), calls) == (True, True, [1])


@all_rows("form", FORMS)
def test_full_disk_is_reported(form: str) -> None:
    calls: list[int] = []
    descriptor = os.open("/dev/full", os.O_WRONLY)
    output = RunOutput(form, lambda: calls.append(1), descriptor=descriptor)
    output.record(HOSTILE)
    output.finish({"a": 1}, "answer")
    assert (output.is_broken(), calls) == (True, [1])
    assert output.error_text == "stdout cannot be written: No space left on device"
    os.close(descriptor)


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "made non-blocking by somebody"])
def test_a_slow_reader_gets_everything(pipe: Pipe, blocking: bool) -> None:
    os.set_blocking(pipe.writer, blocking)
    fcntl.fcntl(pipe.writer, fcntl.F_SETPIPE_SZ, 4096)
    got: list[bytes] = []

    def read() -> None:
        while piece := os.read(pipe.reader, 1000):
            got.append(piece)
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    text = "0123456789" * 10_000
    RunOutput("text", lambda: None, descriptor=pipe.writer).finish({}, text)
    os.close(pipe.writer)
    reader.join()
    assert b"".join(got).decode() == f"{text}\n"


def test_unread_pipe_is_given_up_at_a_stop(pipe: Pipe) -> None:
    asked: list[bool] = []
    broken: list[int] = []

    def asked_to_stop() -> bool:
        asked.append(True)
        return len(asked) > 3

    output = RunOutput(
        "text", lambda: broken.append(1), asked_to_stop=asked_to_stop, patience=2, descriptor=pipe.writer
    )
    output.finish({}, "x" * 1_000_000)
    assert (len(asked), broken, output.is_broken()) == (5, [1], True)
    assert "not read" in output.error_text


def test_a_line_is_never_cut_for_a_reader_that_stays(pipe: Pipe) -> None:
    """An exception in the middle of a write (an interrupt) leaves the rest to be written before the next line."""
    fcntl.fcntl(pipe.writer, fcntl.F_SETPIPE_SZ, PIECE_BYTES)

    class Stop(Exception):
        pass

    stopping = [True]

    def asked_to_stop() -> bool:
        if stopping.pop():
            raise Stop
        return False

    output = RunOutput("jsonl", lambda: None, asked_to_stop=asked_to_stop, descriptor=pipe.writer)
    first: dict[str, JsonValue] = {"kind": "a", "text": "x" * 10_000}
    second: dict[str, JsonValue] = {"kind": "b"}
    with pytest.raises(Stop):
        output.record(first)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_all()))
    reader.start()
    output.record(second)
    os.close(pipe.writer)
    reader.join()
    assert [json.loads(line) for line in got[0].splitlines()] == [first, second]


def test_answer_lines_never_begin_in_column_one_on_a_terminal() -> None:
    ours, theirs = os.openpty()
    RunOutput("text", lambda: None, descriptor=theirs).finish({}, "+ bash  ls  [auto]\n\x1b[2Jx")
    assert os.read(ours, 1000) == b"  + bash  ls  [auto]\r\n  \\x1b[2Jx\r\n"
    os.close(ours)
    os.close(theirs)


def policy(program: Program) -> str:
    path = program.home / "policy.toml"
    path.write_text(AUTO)
    return str(path)


def test_signal_ends_a_run_with_an_unread_stdout(program: Program, tmp_path: Path) -> None:
    """The pipe is full and its reader sleeps: a run waits for it, and for a signal it does not. Both at once."""
    long = Reply(calls=(call("bash", command=f"echo {'x' * 3000}"),))
    rules = policy(program)
    started = []
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        url = program.serve(replies(long, long, long, Reply(text="Done.")))
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        log = tmp_path / f"{code}.jsonl"
        words = ("run", "go", "--base-url", url, "--policy", rules, "--output", "jsonl", "--log", str(log))
        started.append((program.start(*words, stdout=writer), number, code, log, reader, writer))
    for process, number, *_, writer in started:
        assert wait_until(partial(_waits, process.pid, writer))
        process.send_signal(number)
    for process, _, code, log, reader, writer in started:
        _, err = process.communicate(timeout=300)
        assert (process.returncode, b"Traceback" in err) == (code, False), err
        assert json.loads(log.read_text().splitlines()[-1])["kind"] == "session_ended"
        assert program.run("audit", "verify", str(log)).code == 0
        os.close(reader)
        os.close(writer)


def test_a_trace_that_is_read_late_is_whole(program: Program) -> None:
    """Stderr is a pipe that somebody made non-blocking (parents in Node do), and is full for a while."""
    calls = tuple(call("bash", command=f"echo {number} {'y' * 300}") for number in range(20))
    url = program.serve(replies(Reply(calls=calls), Reply(text="Done.")))
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIECE_BYTES)
    os.set_blocking(writer, False)
    process = program.start("run", "go", "--base-url", url, "--policy", policy(program), stderr=writer)
    assert wait_until(lambda: _full(writer))
    os.close(writer)
    time.sleep(1)  # what is written meanwhile has no room; on a busy machine that is less
    err = Pipe(reader, -1).read_all().decode()
    os.close(reader)
    process.communicate(timeout=300)
    assert process.returncode == 0
    assert ([f"echo {number} " in err for number in range(20)], "head: " in err) == ([True] * 20, True), err


def _waits(process: int, writer: int) -> bool:
    """Say whether the pipe of `writer` is full, and the main thread waits in poll(2), which only root can see."""
    try:
        told = Path(f"/proc/{process}/wchan").read_text()
    except OSError:
        return True
    return _full(writer) and ("poll" in told or os.geteuid() != 0)


def _full(writer: int) -> bool:
    return not select.select([], [writer], [], 0)[1]


@all_rows("form", FORMS, anew={"program": made_program})
def test_a_reader_that_leaves_in_the_middle_ends_the_run(program: Program, form: str) -> None:
    """Noticed when the call has ended, whatever the form; what was to follow is not asked for."""
    slow = Reply(calls=(call("bash", command=f"touch began; {until_there(program.workspace / 'go')}"),))
    url = program.serve(replies(slow, *[Reply(calls=(call("bash", command="true"),))] * 5, Reply(text="Done.")))
    reader, writer = os.pipe()
    process = program.start(
        "run", "go", "--base-url", url, "--policy", policy(program), "--output", form, stdout=writer
    )
    os.close(writer)
    assert wait_until((program.workspace / "began").exists)
    os.close(reader)
    (program.workspace / "go").touch()
    _, err = process.communicate(timeout=300)
    assert (process.returncode, b"Traceback" in err) == (141, False), err
    assert len(program.players[0].requests) < 3
    assert program.run("audit", "verify").code == 0

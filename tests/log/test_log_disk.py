"""Disks that fill up and fail at each record of a run in turn: nothing runs after that, and the log says where it ends."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from log_auditor import audited
from log_scene import append_filled
from log_world import World, eventful, unexplained
from places import SUPPORT
from rows import all_rows
from sizes import spread

from harness.actions import Action
from harness.errors import LogError
from harness.gate.tool import ToolOutput
from harness.log.action_log import ActionLog
from harness.log.verify import verify
from harness.messages import RunResult, StopReason
from harness.models.scripted import Reply, call, replies, say

if TYPE_CHECKING:
    from program import Program

ERRORS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)


class Failing:
    """A disk that fails at the `at`th write or sync, once: whatever comes after it would succeed."""

    def __init__(self, how: str, at: int, error: int = errno.ENOSPC) -> None:
        self.how = how
        self.at = at
        self.error = error
        self.counts = {"write": 0, "sync": 0}
        self.failed = False
        self.asked_later = 0
        """Writes and syncs after the one that failed."""
        self.begun_later: list[str] = []
        """Bodies that began after the failure."""

    def _fails(self, of: str) -> bool:
        self.counts[of] += 1
        self.asked_later += self.failed
        return self.counts[of] == self.at

    def write(self, descriptor: int, data: bytes) -> int:
        if not self._fails("write") or self.how == "sync":
            return os.write(descriptor, data)
        match self.how:
            case "short":  # write(2): fewer bytes than were asked for, and the next write goes on
                return os.write(descriptor, data[: len(data) // 2])
            case "short and full":  # and the next one says why
                self.at += 1
                self.how = "error"
                return os.write(descriptor, data[: len(data) // 2])
            case "nothing":
                self.failed = True
                return 0
            case "interrupted":
                self.failed = True
                raise KeyboardInterrupt
            case _:
                self.failed = True
                raise OSError(self.error, os.strerror(self.error))

    def sync(self, descriptor: int) -> None:
        if self._fails("sync") and self.how == "sync":
            self.failed = True
            raise OSError(self.error, os.strerror(self.error))

    def body(self, action: Action, *, done: bool) -> ToolOutput | None:
        if self.failed and not done:
            self.begun_later.append(action.summary)
        return None


def play(folder: Path, disk: Failing) -> tuple[World, RunResult | None]:
    """Play a run on a disk; None: an interrupt came out of it."""
    world = eventful(str(folder), body=disk.body, write=disk.write, sync=disk.sync)
    try:
        return world, world.play()
    except KeyboardInterrupt:
        return world, None


def whole_run(folder: Path) -> Failing:
    """Return a disk that never failed, with the counts of a whole run."""
    disk = Failing("never", 0)
    world, result = play(folder, disk)
    world.log.close()
    assert result is not None
    assert (result.stop, verify(world.path).problem) == (StopReason.COMPLETED, "")
    return disk


def what_is_wrong(world: World, disk: Failing) -> Iterator[str]:
    """Yield what must not be after a failure: of the disk, of the log, of the world."""
    before = Path(world.path).read_bytes()
    if disk.begun_later:
        yield f"after the failure ran {disk.begun_later}"
    if disk.asked_later:
        yield f"the disk was asked {disk.asked_later} times more"
    for _ in range(2):  # there is room again, and syncs succeed: that changes nothing
        try:
            world.log.append("user_message", {"text": "x"}, sync=True)
            yield "the log took another record"
        except LogError as error:
            if "closed after an error" not in str(error):
                yield f"another record was refused with the words {error}"
    again = world.play("go on")
    if (again.stop, again.turns) != (StopReason.LOG_ERROR, 0):
        yield f"another run ended {again.stop} after {again.turns} turns"
    world.log.close()
    if Path(world.path).read_bytes() != before:
        yield "the file was changed afterwards"
    audit, found = audited(world.path), verify(world.path)
    yield from audit.breaches
    yield from unexplained(audit, world.traces())
    if found.problem or found.torn or audit.torn or set(found.unknown_calls) != audit.unknown:
        yield f"verify says {found}"


@all_rows(
    ("how", "error"),
    [("error", error) for error in ERRORS]
    + [("short and full", errno.ENOSPC), ("nothing", 0), ("sync", errno.EIO), ("sync", errno.ENOSPC)],
)
def test_disk_failure_at_any_write_or_sync_ends_the_run(tmp_path: Path, how: str, error: int) -> None:
    """For every n of a run. The stop reason is `log_error`, and the file ends in a whole record."""
    counts = whole_run(tmp_path / "whole").counts
    count = counts["sync" if how == "sync" else "write"]
    assert count > (10 if how == "sync" else 50)
    wrong: list[str] = []
    for number in spread("DISK_FAILURES", range(1, count + 1), 15):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = Failing(how, number, error)
        world, result = play(folder, disk)
        if result is None or result.stop is not StopReason.LOG_ERROR or not disk.failed:
            wrong.append(f"{number}: the run ended {result}")
        elif error and os.strerror(error) not in result.detail:
            wrong.append(f"{number}: the run ended {result.detail}")
        wrong += [f"{number}: {told}" for told in what_is_wrong(world, disk)]
    assert wrong == []


def test_short_write_is_continued(tmp_path: Path) -> None:
    """Which write(2) allows at any time: the run is the same, and no record is torn. So with pieces of any size."""
    count = whole_run(tmp_path / "whole").counts["write"]
    for number in spread("DISK_FAILURES", range(1, count + 1), 15):
        folder = tmp_path / str(number)
        folder.mkdir()
        world, result = play(folder, Failing("short", number))
        world.log.close()
        assert result is not None
        assert result.stop is StopReason.COMPLETED
        assert (audited(world.path).breaches, verify(world.path).problem) == ([], "")
        assert verify(world.path).records == count


@all_rows("size", [1, 7, 100])
def test_writes_in_pieces_make_the_same_log(tmp_path: Path, size: int) -> None:
    log = ActionLog.open(str(tmp_path / "log.jsonl"), write=lambda descriptor, data: os.write(descriptor, data[:size]))
    append_filled(log, [("session_started", {"text": "x" * 500}), ("session_ended", {})])
    log.close()
    found = verify(log.path)
    assert (found.records, found.head, found.problem) == (2, log.head, "")


def test_an_interrupt_at_any_write_leaves_whole_records_and_a_closed_log(tmp_path: Path) -> None:
    """Python's own KeyboardInterrupt, where nothing else takes it: the part is taken back, and no more is written."""
    count = whole_run(tmp_path / "whole").counts["write"]
    wrong: list[str] = []
    for number in spread("DISK_FAILURES", range(1, count + 1), 15):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = Failing("interrupted", number)
        world, _ = play(folder, disk)
        wrong += [f"{number}: {told}" for told in what_is_wrong(world, disk)]
    assert wrong == []


def test_a_call_that_the_system_interrupts_is_made_again() -> None:
    """EINTR never reaches the log: os.write tries again itself (PEP 475), which is why the log need not."""
    code = """
import os, signal, sys
alarms, alarmed = os.pipe()
signal.signal(signal.SIGALRM, lambda *_: os.write(alarmed, b"."))
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    for _ in range(10):  # a write that waits for room is interrupted as often
        os.read(alarms, 1)
    data = os.read(reading, 1 << 20)
    while data and not data.endswith(b"end"):
        data = os.read(reading, 1 << 20)
    os._exit(0)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
data = b"x" * (1 << 20) + b"end"
while data:
    data = data[os.write(writing, data):]
signal.setitimer(signal.ITIMER_REAL, 0)
os.waitpid(child, 0)
print("written")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("written\n", "")


def test_an_interrupted_call_that_is_reported_closes_the_log_too(tmp_path: Path) -> None:
    """Were EINTR ever to come through, it would count as a failure: doubt refuses."""
    disk = Failing("error", 3, errno.EINTR)
    world, result = play(tmp_path, disk)
    assert result is not None
    assert result.stop is StopReason.LOG_ERROR
    assert list(what_is_wrong(world, disk)) == []


def test_log_is_torn_if_a_partial_record_cannot_be_removed(tmp_path: Path) -> None:
    """A file that can only grow (chattr(1) +a) refuses ftruncate: the rest of the record stays, and verify names it."""

    def refuse_later(descriptor: int, data: bytes) -> int:
        if refused:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if b"user_message" in data:
            refused.append(os.write(descriptor, data[:40]))
            # A descriptor that may not truncate in the place of the log's: the same file, as for a file that only grows.
            other = os.open(path, os.O_RDONLY)
            os.dup2(other, descriptor)
            os.close(other)
            return refused[0]
        return os.write(descriptor, data)

    refused: list[int] = []
    path = str(tmp_path / "log.jsonl")
    log = ActionLog.open(path, write=refuse_later)
    append_filled(log, [("session_started", {})])
    with pytest.raises(LogError, match="No space left"):
        log.append("user_message", {"text": "x"})
    log.close()
    found = verify(path)
    assert (found.records, found.torn, found.torn_bytes, found.problem) == (1, True, 40, "")
    with pytest.raises(LogError, match="does not end in a whole record"):
        ActionLog.open(path)


# --- real disks ------------------------------------------------------------------------------------------------------

REAL = """
import json, os, resource, sys
sys.dont_write_bytecode = True  # Python itself does not see that a file of its cache came out too short
sys.path.insert(0, sys.argv[1])
import log_world
folder, room = sys.argv[2], int(sys.argv[3])
ran_at = []
def body(action, *, done):
    if not done:
        ran_at.append(world.log.count)
    return None
world = log_world.eventful(folder, body=body)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
if room >= 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
result = world.play()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
count = world.log.count
again = world.play()
print(json.dumps([result.stop.value, result.detail, ran_at, count, again.stop.value, world.log.count]))
"""


def in_a_child(folder: Path, room: int) -> list[Any]:
    command = [sys.executable, "-c", REAL, SUPPORT, str(folder), str(room)]
    child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (child.returncode, child.stderr) == (0, "")
    told = json.loads(child.stdout)
    assert isinstance(told, list)
    return told


def check_a_full_disk(folder: Path, told: list[Any], words: str) -> None:
    """The run ended with the log, at a whole record; what ran was recorded before, and room that comes later is not used."""
    stop, detail, ran_at, count, again, later = told
    audit, found = audited(str(folder / "log.jsonl")), verify(str(folder / "log.jsonl"))
    assert (stop, again, later) == ("log_error", "log_error", count)
    assert words in detail
    assert all(at <= count for at in ran_at)
    assert (found.records, found.problem, found.torn, audit.breaches) == (count, "", False, [])
    assert unexplained(audit, set(os.listdir(folder / "work"))) == []


@all_rows("room", [0, 100, 3_000, 7_777, 12_345, 20_000, 30_000])
def test_a_limit_on_the_size_of_files_ends_the_run(tmp_path: Path, room: int) -> None:
    """RLIMIT_FSIZE: the kernel takes a part of a record, and refuses the rest with EFBIG."""
    check_a_full_disk(tmp_path, in_a_child(tmp_path, room), "File too large")


def test_a_disk_that_is_full_ends_the_run(tmp_path: Path) -> None:
    """A real file system of 24 KiB, in a mount namespace of its own."""
    probe = ["unshare", "--mount", "--map-root-user", "sh", "-c", 'mount -t tmpfs -o size=24k none "$1"', "sh"]
    try:
        mounted = subprocess.run([*probe, str(tmp_path)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare(1) is not installed: a really full disk is not tried here")
    if mounted.returncode:
        pytest.skip(f"nothing may be mounted here, a really full disk is not tried: {mounted.stderr.strip()}")
    folder, kept = tmp_path / "disk", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    # What the disk holds in the end is copied out, since it is gone with the namespace.
    script = 'mount -t tmpfs -o size=24k none "$2" && "$1" -c "$5" "$4" "$2" -1 && cp -r "$2/." "$3"'
    command = [
        "unshare",
        "--mount",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        sys.executable,
        str(folder),
        str(kept),
    ]
    child = subprocess.run([*command, SUPPORT, REAL], capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
    check_a_full_disk(kept, json.loads(child.stdout), "No space left on device")


def test_full_device_is_refused_as_a_log() -> None:
    """/dev/full is a device, and refused before anything could be lost on it."""
    with pytest.raises(LogError, match="not a regular file"):
        ActionLog.open("/dev/full")


# --- the program -----------------------------------------------------------------------------------------------------


def limited(*words: str, room: int) -> list[str]:
    """Return a command line that may write files of at most `room` bytes."""
    code = "import os, resource, sys; room = int(sys.argv[1]); hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]; "
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard)); os.execv(sys.argv[2], sys.argv[2:])"
    return [sys.executable, "-c", code, str(room), *words]


@pytest.mark.parametrize("room", [10, 6_000, 9_000])
def test_the_program_exits_8_when_its_log_cannot_be_written(program: Program, room: int) -> None:
    """With `--log` on such a disk: at the beginning, and in the middle of a run; no command runs after that."""
    script = replies(*(Reply(calls=(call("bash", command=f"echo {number} {'x' * 900}"),)) for number in range(12)))
    policy = program.home / "policy.toml"
    policy.write_text(
        'version = 1\n[tools]\nbash = "auto"\n[[rule]]\nid = "e"\ndecision = "auto"\nargv = ["echo", "..."]\n'
    )
    path = program.home / "logs" / "log.jsonl"
    path.parent.mkdir()
    arguments = ("run", "go", "--base-url", program.serve(script), "--policy", str(policy), "--log", str(path))
    environment = {**program.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        limited(*program.command(*arguments), room=room),
        cwd=program.workspace, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 8, done.stderr
    assert "File too large" in done.stderr
    audit, found = audited(str(path)), verify(str(path))
    assert (audit.breaches, found.problem, found.torn) == ([], "", False)
    assert len(audit.calls) < 12
    for _, of in audit.calls[:-1]:
        assert of.one("outcome") is not None


def test_the_program_exits_8_when_its_log_cannot_be_opened(program: Program) -> None:
    done = program.run("run", "go", "--base-url", program.serve(replies(say("done"))), "--log", "/dev/full")
    assert (done.code, "not a regular file" in done.err) == (8, True)

"""Runs that are killed, at random and at every boundary: what was done is in the log before it is done.

The kills happen in a process of its own that has loaded everything and forks once for each of them. HARNESS_KILLS says how
many are at random.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from log_auditor import audited
from log_scene import append_filled, forged
from log_world import EVENTFUL, World, eventful, unexplained
from places import SUPPORT
from sizes import proof_size, spread

from harness.actions import Action
from harness.errors import LogError
from harness.gate.tool import ToolOutput
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.log.schema import RECORDS
from harness.log.verify import verify

KILLS = proof_size("KILLS", 30, full=500)
BOUNDARIES = 12
"""So many of the writes, syncs and bodies of a run are died at; at all of them with HARNESS_FULL."""
SEED = 6
PIECE_BYTES = 8
"""Every other run writes its records in such pieces, so that a kill tears some of them."""
REALLY_SYNCED = 10
"""One run in so many waits for the disk; to the others a sync is what they have told of it. A kill makes no difference."""


class Disk:
    """Counts what is asked of the disk, kills this process where a test wants it, and knows what was synced.

    `synced` is shared with the process that forked this one: up to there the log is safe from a power cut.
    """

    def __init__(
        self,
        synced: mmap.mmap,
        *,
        kill_at: tuple[str, int] = ("", 0),
        piece: int = 1 << 30,
        really: bool = False,
        together: int = 1,
    ) -> None:
        self.together = together
        """How many calls run at once."""
        self._lock = threading.Lock()
        self.synced = synced
        self.really = really
        self.kill_at = kill_at
        self.piece = piece
        self.counts = dict.fromkeys(("write", "sync", "body"), 0)

    def _reached(self, moment: str, of: str) -> bool:
        return self.kill_at == (f"{moment} {of}", self.counts[of])

    def write(self, descriptor: int, data: bytes) -> int:
        self.counts["write"] += 1
        if self._reached("before", "write"):
            die()
        if self._reached("within", "write"):
            os.write(descriptor, data[: len(data) // 2])
            die()
        written = os.write(descriptor, data[: self.piece])
        if self._reached("after", "write"):
            die()
        return written

    def sync(self, descriptor: int) -> None:
        self.counts["sync"] += 1
        if self._reached("before", "sync"):
            die()
        size = os.fstat(descriptor).st_size
        if self.really:
            os.fdatasync(descriptor)
        self.synced[:8] = size.to_bytes(8, "big")
        if self._reached("after", "sync"):
            die()

    def body(self, action: Action, *, done: bool) -> ToolOutput | None:
        with self._lock:
            self.counts["body"] += not done
        if self._reached("after" if done else "before", "body"):
            die()
        return None


MOMENTS = tuple(
    f"{moment} {of}"
    for moment, of in (
        ("before", "write"), ("within", "write"), ("after", "write"), ("before", "sync"), ("after", "sync"),
        ("before", "body"), ("after", "body"),
    )
)  # fmt: skip


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def play(folder: str, disk: Disk) -> World:
    world = eventful(folder, body=disk.body, write=disk.write, sync=disk.sync, together=disk.together)
    world.play()
    return world


def forked(folder: str, disk: Disk, *, after: float | None = None) -> bool:
    """Play in a child that is killed `after` so many seconds of its own, or by itself; return whether it was killed.

    Of its own: a busy machine takes none of them. The kernel ends it then, in the middle of anything.
    """
    disk.synced[:8] = bytes(8)
    child = os.fork()
    if child == 0:
        if after is not None:
            signal.setitimer(signal.ITIMER_PROF, after)
        try:
            play(folder, disk)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (-signal.SIGKILL, -signal.SIGPROF)


def after_a_kill(folder: str, synced: int) -> list[str]:
    """Return what does not hold after a kill, with what the process wrote, and with no more than it had synced."""
    path, work = os.path.join(folder, "log.jsonl"), os.path.join(folder, "work")
    traces = set(os.listdir(work)) if os.path.isdir(work) else set()
    if not os.path.exists(path):
        return ["something was done, and there is no log"] if traces else []
    found = [f"killed: {wrong}" for wrong in (*state_of(path, traces), *gone_on_with(path))]
    if synced < os.path.getsize(path):
        os.truncate(path, synced)
        found += [f"after a power cut: {wrong}" for wrong in state_of(path, traces)]
    return found


def state_of(path: str, traces: set[str]) -> list[str]:
    """Return what is wrong with a log that a crash left behind, by what an auditor makes of it and by what verify says."""
    audit, found = audited(path), verify(path)
    wrong = [*audit.breaches, *unexplained(audit, traces)]
    if found.problem:
        wrong.append(f"it {found.problem}")
    if (found.torn, found.records) != (audit.torn, len(audit.records)):
        wrong.append(f"{len(audit.records)} records, torn: {audit.torn}; verify says {found}")
    if len(list(read_log(path))) != len(audit.records):
        wrong.append("it cannot be read to its end")
    if set(found.unknown_calls) != audit.unknown:
        wrong.append(f"{audit.unknown} may have run, and verify says {found.unknown_calls}")
    if set(found.open_sessions) != audit.open:
        wrong.append(f"{audit.open} are open, and verify says {found.open_sessions}")
    return wrong


def gone_on_with(path: str) -> list[str]:
    """Return what is wrong with going on: a whole log is continued, a torn one is refused in words and left as it is."""
    audit = audited(path)
    with open(path, "rb") as file:
        before = file.read()
    try:
        log = ActionLog.open(path)
    except LogError as error:
        refused = audit.torn and "does not end in a whole record" in str(error)
        with open(path, "rb") as file:
            return [] if refused and file.read() == before else [f"refused: {error}"]
    if audit.torn:
        return ["a torn log was continued"]
    append_filled(log, [("session_started", {}), ("session_ended", {})])
    log.close()
    found = verify(path)
    with open(path, "r+b") as file:
        grown = file.read(len(before)) == before
        file.truncate(len(before))
    if (
        not grown
        or found.problem
        or found.records != len(audit.records) + 2
        or set(found.unknown_calls) != audit.unknown
    ):
        return [f"it could not be continued: {found}"]
    return []


def own_seconds(folder: str, disk: Disk) -> float:
    """Return what a run takes of the processor, when all is loaded."""
    play(f"{folder}0", disk).log.close()
    began = time.process_time()
    for number in range(1, 6):
        play(f"{folder}{number}", disk).log.close()
    return (time.process_time() - began) / 5


def random_kills(folder: str, kills: int, together: int) -> dict[str, object]:
    """Kill runs at moments of chance until `kills` of them were hit; return what was found."""
    chance, synced = random.Random(SEED), mmap.mmap(-1, 8)
    pieces = (1 << 30, PIECE_BYTES)
    seconds = [
        own_seconds(os.path.join(folder, f"warm{piece}-"), Disk(synced, piece=piece, together=together))
        for piece in pieces
    ]
    found: list[str] = []
    seen = {"hit": 0, "torn": 0, "unknown": 0, "unsynced": 0, "without a log": 0, "missed": 0}
    number = 0
    while seen["hit"] < kills and seen["missed"] < 20 * kills:
        number += 1
        place = os.path.join(folder, f"kill{number}")
        os.mkdir(place)
        disk = Disk(synced, piece=pieces[number % 2], really=number % REALLY_SYNCED == 0, together=together)
        if not forked(place, disk, after=chance.uniform(0.01, 1.1) * seconds[number % 2]):
            seen["missed"] += 1
            continue
        _count(seen, place, int.from_bytes(synced[:8], "big"))
        found += [f"kill {number}: {wrong}" for wrong in after_a_kill(place, int.from_bytes(synced[:8], "big"))]
    return {"found": found[:20], **seen}


def _count(seen: dict[str, int], place: str, synced: int) -> None:
    path = os.path.join(place, "log.jsonl")
    if not os.path.exists(path) or not os.path.getsize(path):
        seen["without a log"] += 1  # too early to count as a kill of a run
        return
    seen["hit"] += 1
    audit = audited(path)
    seen["torn"] += audit.torn
    seen["unknown"] += bool(audit.unknown)
    seen["unsynced"] += synced < os.path.getsize(path)


def boundary_kills(folder: str, together: int) -> dict[str, object]:
    """Kill a run at each of its boundaries in turn; return what was found, and how many there are of which.

    Which body is the last to have begun when one ends is chance where several run at once: then no kill waits for an end.
    """
    synced = mmap.mmap(-1, 8)
    whole = Disk(synced, together=together)
    play(os.path.join(folder, "whole"), whole).log.close()
    found: list[str] = []
    seen: dict[str, int] = {}
    for moment in MOMENTS[: None if together == 1 else -1]:
        for number in spread("BOUNDARIES", range(1, whole.counts[moment.split()[1]] + 1), BOUNDARIES):
            place = os.path.join(folder, f"{moment}{number}".replace(" ", "-"))
            os.mkdir(place)
            if not forked(place, Disk(synced, kill_at=(moment, number), together=together)):
                found.append(f"{moment} {number}: nothing was killed")
                continue
            seen[moment] = seen.get(moment, 0) + 1
            wrong = [*after_a_kill(place, int.from_bytes(synced[:8], "big")), *_expected(place, moment, together)]
            found += [f"{moment} {number}: {told}" for told in wrong]
    return {"found": found[:20], **seen}


def _expected(place: str, moment: str, together: int) -> Iterator[str]:
    """Yield where a kill at a known moment does not leave what it must leave. (Of the log, what was synced is left.)"""
    audit = audited(os.path.join(place, "log.jsonl"))
    if moment.endswith("body") and not 1 <= len(audit.unknown) <= together:
        yield f"killed in a body, and {audit.unknown} may have run"


def in_a_process(function: str, *arguments: str) -> dict[str, object]:
    """Call a function of this module in a fresh process, which has no threads, and return what it returns."""
    code = "import sys, json; sys.path[:0] = sys.argv[1].split(':'); import test_log_crash as t; "
    code += f"print(json.dumps(t.{function}(sys.argv[2], *map(int, sys.argv[3:]))))"
    command = [sys.executable, "-c", code, f"{SUPPORT}:{os.path.dirname(__file__)}", *arguments]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
    found = json.loads(child.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("together", [1, 3])
def test_kills_at_random_leave_a_log_that_knows_of_everything_that_was_done(tmp_path: Path, together: int) -> None:
    """No side effect without an intent; every call in flight shown as unknown; the file opens, or says why not.

    The same holds of what was synced alone, as a power cut would leave it.
    """
    seen = in_a_process("random_kills", str(tmp_path), str(KILLS), str(together))
    assert seen["found"] == [], seen
    assert seen["hit"] == KILLS
    if KILLS >= 300:  # otherwise the kills hit nothing that matters; of fewer, chance alone says how many do
        assert int(str(seen["torn"])) > KILLS // 100
        assert int(str(seen["unknown"])) > KILLS // 50
        assert int(str(seen["unsynced"])) > KILLS // 10


def test_kills_at_every_boundary_of_every_step(tmp_path: Path) -> None:
    """Before, within and after each write, before and after each sync, and each tool's body."""
    seen = in_a_process("boundary_kills", str(tmp_path), "1")
    assert seen.pop("found") == []
    assert set(seen) == set(MOMENTS)
    records = sum(len(step.tool_calls) * 3 for step in EVENTFUL)
    least = min(records, BOUNDARIES - 1)
    assert all(int(str(seen[f"{moment} write"])) > least for moment in ("before", "within", "after"))
    assert int(str(seen["before sync"])) == int(str(seen["after sync"])) > 10
    assert int(str(seen["before body"])) == int(str(seen["after body"])) > 3


def test_kills_during_parallel_calls_leave_a_valid_log(tmp_path: Path) -> None:
    """Whatever was begun has its intent, and whatever has no end is unknown: of a group perhaps each."""
    seen = in_a_process("boundary_kills", str(tmp_path), "3")
    assert seen.pop("found") == []
    assert set(seen) == set(MOMENTS[:-1])


# --- torn tails ------------------------------------------------------------------------------------------------------


def _lines_of_every_kind() -> list[list[bytes]]:
    """Return logs that end in a record of each kind: what a crash while that one was written would tear."""
    proposed = ("call_proposed", {"call": 1})
    auto = ("decision", {"call": 1, "decision": "auto"})
    confirm = ("decision", {"call": 1, "decision": "confirm"})
    asked = ("approval_asked", {"call": 1})
    yes = ("approval_answered", {"call": 1, "answer": "yes"})
    intent = ("intent", {"call": 1})
    roads: list[tuple[tuple[str, dict[str, object]], ...]] = [
        (proposed, auto, intent, ("outcome", {"call": 1, "status": "ok"})),  # type: ignore[list-item]
        (proposed, confirm, asked, yes, intent),  # type: ignore[list-item]
        (proposed, ("hook_answered", {"call": 1})),  # type: ignore[list-item]
        (proposed, auto, intent, ("server_asked", {"call": 1})),  # type: ignore[list-item]
        (proposed, auto, intent, ("places_changed", {"call": 1}), ("places_answered", {"call": 1})),  # type: ignore[list-item]
        *(
            ((kind, {}),)
            for kind in (
                "user_message",
                "model_request",
                "model_response",
                "history_changed",
                "restored",
                "job_ended",
                "ran_unjudged",
            )
        ),
        *(
            ((kind, {}),)
            for kind in (
                "recovered",
                "limit",
                "error",
                "policy_changed",
                "tools_changed",
                "model_changed",
                "session_named",
                "advice",
                "answer_checked",
                "diverged",
                "session_ended",
            )
        ),
        (("grant", {"change": "kept", "scope": "workspace"}),),
    ]
    logs = []
    for road in roads:
        steps = [("session_started", {}), *road]
        logs += [forged(steps[:end]) for end in range(1, len(steps) + 1)]  # type: ignore[arg-type]
    return logs


@pytest.mark.forges_logs
def test_a_tail_torn_at_any_byte_of_a_record_of_any_kind_costs_no_other(tmp_path: Path) -> None:
    """All records before it are kept, and the rest is said to be torn."""
    path = tmp_path / "log.jsonl"
    kinds: set[str] = set()
    for lines in _lines_of_every_kind():
        whole, last = b"".join(lines[:-1]), lines[-1]
        kinds.add(json.loads(last)["kind"])
        expected = verify_bytes(path, whole)
        assert expected[:2] == (len(lines) - 1, 0)
        for length in spread("TORN_AT", range(1, len(last)), 20):
            assert verify_bytes(path, whole + last[:length]) == (len(lines) - 1, length, *expected[2:])
    assert kinds == set(RECORDS)


def verify_bytes(path: Path, data: bytes) -> tuple[object, ...]:
    path.write_bytes(data)
    found = verify(str(path))
    return found.records, found.torn_bytes, found.head, found.problem, found.unknown_calls, found.open_sessions


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_verify_reports_a_torn_log_and_recover_repairs_it(
    tmp_path: Path, program_run: Callable[..., tuple[int, str]], cut: int
) -> None:
    """A real run's log, cut within its last record: exit 3 and the tear in words; mended, nothing of before is lost."""
    world = eventful(str(tmp_path))
    world.play()
    world.log.close()
    path = Path(world.path)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    lines = data.splitlines(keepends=True)
    code, out = program_run("audit", "verify", str(path))
    assert code == 3
    assert f"the last line is torn ({len(lines[-1]) - cut} bytes without an end)" in out
    code, out = program_run("audit", "recover", str(path))
    assert code == 0, out
    mended = path.read_bytes()
    assert mended.startswith(b"".join(lines[:-1]))
    assert [record["kind"] for record in read_log(str(path))][len(lines) - 1] in ("recovered", "session_started")
    found = verify(str(path))
    assert (found.problem, found.torn) == ("", False)
    recovered = next(record for record in read_log(str(path)) if record["kind"] == "recovered")
    assert recovered["torn_bytes"] == len(lines[-1]) - cut
    assert Path(str(recovered["kept_in"])).read_bytes() == lines[-1][:-cut]
    ActionLog.open(str(path)).close()


@pytest.fixture
def program_run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run the program with a state folder of its own; return its exit code and all that it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments], capture_output=True, text=True, check=False, env=environment
        )
        return done.returncode, done.stdout + done.stderr

    return run

"""`harness batch`: many tasks at once, each done once, whatever is killed meanwhile."""

from __future__ import annotations

import fcntl
import gc
import io
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_scene import POLICY, SECONDS, ByContent, add_gate, applied, git, repository, serving, until, write_tasks
from program import Done, Program
from rows import all_rows
from sizes import proof_size

from harness.app.run.facts import RunFacts
from harness.audit.findings import Soundness, judge_log
from harness.log.heads_file import HeadsFile
from harness.plugins.fleet.batch.batch_command import runs_of
from harness.plugins.fleet.batch.outcome import TaskEnd, TaskOutcome, tell, worst
from harness.plugins.fleet.batch.task import in_shard
from harness.plugins.fleet.batch.task_folder import TaskFolder
from harness.process.procfs import children
from harness.session.exits import Exit
from harness.session.shipped_plugins import report_form
from harness.terminal.console import Console, Look

COUNT = proof_size("BATCH_TASKS", 6, full=40)
"""How many tasks are done while workers and the batch are killed."""
KILLS = COUNT // 3


class Scene:
    """A repository, tasks, and the program that does them."""

    def __init__(self, program: Program, folder: Path, url: str, player: ByContent) -> None:
        self.program = program
        self.player = player
        self.first = 0
        """The number of the first task."""
        self.repository = repository(folder / "repository")
        self.out = folder / "out"
        self.file = folder / "tasks.jsonl"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self._url = url

    def tasks(self, *prompts: str) -> None:
        """Write tasks t0, t1 ... with these prompts."""
        numbered = enumerate(prompts, self.first)
        write_tasks(
            self.file,
            *[dict[str, object](id=f"t{n}", prompt=prompt, cwd=str(self.repository)) for n, prompt in numbered],
        )

    def words(self, *more: str) -> list[str]:
        own = ["batch", str(self.file), "--out", str(self.out), "--policy", str(self.policy)]
        return [*own, "--base-url", self._url, "--model", "m", *more]

    def run(self, *more: str) -> Done:
        return self.program.run(*self.words(*more))

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        return self.program.start(*self.words(*more))

    def rows(self, name: str = "summary.jsonl") -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]

    def logs(self) -> list[Path]:
        return sorted(self.out.glob("*/attempts/*/log.jsonl"))

    def results(self) -> list[Path]:
        return list(self.out.glob("*/result.json"))

    def workers(self) -> list[int]:
        """Return the processes that do tasks of this batch, its own children or not."""
        mark = f"--out={self.out}/".encode()
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and mark in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                pass  # it has ended
        return found

    def workers_of(self, batch: subprocess.Popen[bytes]) -> set[int]:
        """Return the processes that do tasks: what these start is called as they are until it is another program."""
        return children(batch.pid) & set(self.workers())


@pytest.fixture
def scene(program: Program, tmp_path: Path) -> Iterator[Scene]:
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, player):
        yield Scene(program, tmp_path, url, player)


def test_batch_does_each_task_and_reports_its_result(scene: Scene, tmp_path: Path) -> None:
    scene.tasks("write f one", "bash curl x", "bash shutdown", "write g two ;; bash cp a.txt c.txt")
    report = tmp_path / "report.md"
    done = scene.run("-j", "2", "--report", f"md:{report}")
    assert done.code == 3, done.err
    assert [(row["id"], row["exit_code"], row["how"]) for row in scene.rows()] == [
        ("t0", 0, "ran"),
        ("t1", 7, "ran"),
        ("t2", 3, "ran"),
        ("t3", 0, "ran"),
    ]
    lines = done.out.splitlines()
    assert lines[0].split() == "task exit end turns refused files cost seconds tries".split()
    assert [line.split()[:3] for line in lines[1:5]] == [
        ["t0", "0", "completed"],
        ["t1", "7", "completed"],
        ["t2", "3", "blocked"],
        ["t3", "0", "completed"],
    ]
    assert lines[5] == "4 tasks: 2 with exit code 0, 1 with exit code 3, 1 with exit code 7; 4 run now, 0 done earlier"
    assert all(f"t{n}" in report.read_text() for n in range(4))
    summary = json.loads((scene.out / "summary.json").read_text())
    assert (summary["tasks"], summary["exit_code"], summary["exit_codes"]) == (4, 3, {"0": 2, "3": 1, "7": 1})
    assert "harness: t0: exit 0, " in done.err
    asked = len(scene.player.prompts)
    # A second start asks nobody and runs nothing; the exit code is the same.
    again = scene.run("-q")
    assert (again.code, again.err, len(scene.player.prompts)) == (3, "", asked)
    assert [row["how"] for row in scene.rows()] == ["earlier"] * 4
    assert git(scene.repository, "worktree", "list").count("\n") == 1


def test_invalid_task_line_prevents_the_batch(scene: Scene) -> None:
    scene.tasks("write f one")
    scene.file.write_text(scene.file.read_text() + '{"id": "x"}\n')
    done = scene.run()
    assert (done.code, f"{scene.file}:2: lacks the field prompt" in done.err) == (2, True)
    assert (scene.out.exists(), scene.player.prompts) == (False, [])


def test_a_report_that_cannot_be_written_is_found_before_anything_runs(scene: Scene) -> None:
    scene.tasks("write f one")
    done = scene.run("--report", "md:/nowhere/x.md")
    assert (done.code, scene.player.prompts) == (2, [])


def test_task_that_cannot_begin_is_listed_with_its_reason(scene: Scene, tmp_path: Path) -> None:
    scene.tasks("write f one")
    write_tasks(
        scene.file,
        {"id": "good", "prompt": "write f one", "cwd": str(scene.repository)},
        {"id": "bad", "prompt": "write f one", "cwd": "/nowhere"},
    )
    report = tmp_path / "report.xml"
    done = scene.run("--report", f"junit:{report}")
    assert done.code == 2
    assert "bad: harness: the workspace is not an existing folder: /nowhere" in done.out
    assert "bad" in report.read_text()


def test_refused_key_ends_the_batch_with_a_message(scene: Scene) -> None:
    """With a wrong key, a hundred tasks would each fail alike."""
    scene.tasks(*(f"write f {n}" for n in range(3)))
    scene.player.refusing = True
    done = scene.run("-j", "1")
    assert (done.code, [(row["exit_code"], row["how"]) for row in scene.rows()]) == (
        6,
        [(6, "ran"), *[(None, "not run")] * 2],
    )
    for told in (done.out.splitlines()[-1], next(line for line in done.err.splitlines() if "exit 6" in line)):
        assert "refused the API key (HTTP 401: no such key). Set OPENAI_API_KEY" in told
    assert "nothing more is started, since the key of t0 was refused; 2 tasks left" in done.err
    scene.player.refusing = False
    assert (scene.run().code, {row["exit_code"] for row in scene.rows()}) == (0, {0})


def test_a_refused_key_of_a_task_s_own_model_ends_that_task_alone(scene: Scene) -> None:
    """It may be the model that the key is not good for."""
    own = {"prompt": "write f one", "cwd": str(scene.repository), "model": "other"}
    write_tasks(scene.file, {"id": "a", **own}, {"id": "b", **own})
    scene.player.refusing = True
    assert (scene.run("-j", "1").code, [row["exit_code"] for row in scene.rows()]) == (6, [6, 6])


def test_folder_belongs_to_one_set_of_settings(scene: Scene, tmp_path: Path) -> None:
    scene.tasks("write f one", "bash curl x")
    assert scene.run().code == 7
    scene.tasks("write f one", "bash curl x", "write g two")
    other = tmp_path / "other.toml"
    other.write_text(POLICY)
    done = scene.run("--policy", str(other))
    both = f"{scene.policy} and {other}"
    told = f't0 was done with policy "{scene.policy}", and "{both}" is asked for now, and 1 more task likewise'
    assert (done.code, told in done.err, (scene.out / "t2").exists()) == (2, True, False), done.err
    assert scene.run("--set", "temperature=0.5").code == scene.run("--tools", "bash").code == 2
    assert len(scene.player.prompts) == 2
    assert scene.run().code == 7


def test_flags_of_the_model_and_of_tools_reach_every_task(scene: Scene) -> None:
    scene.tasks("write f one")
    assert scene.run("--tools", "write_file", "--set", "temperature=0.5", "--effort", "low").code == 0
    asked = [request for request in scene.player.asked if isinstance(request, dict)]
    offered = {tool["function"]["name"] for request in asked for tool in request["tools"]}
    settings = {(request["temperature"], request["reasoning_effort"]) for request in asked}
    assert (offered, settings) == ({"write_file"}, {(0.5, "low")})


def test_shards_are_disjoint_and_complete() -> None:
    names = [f"task-{n}" for n in range(1000)]
    shards = [[name for name in names if in_shard(name, (part, 7))] for part in range(1, 8)]
    assert sorted(name for shard in shards for name in shard) == sorted(names)
    assert all(100 < len(shard) < 190 for shard in shards)
    assert all(in_shard(name, None) and in_shard(name, (1, 1)) for name in names)
    # The same on every machine, and for ever: a matrix of jobs relies on it.
    assert [in_shard("a", (part, 3)) for part in (1, 2, 3)] == [False, True, False]


def test_a_shard_does_its_own_tasks_alone_and_all_results_are_logs(scene: Scene) -> None:
    """Neither the summaries nor what a kept worktree holds is a log; each call is told under its task's name."""
    scene.first = 3
    scene.tasks("write f one", "bash curl x")
    assert [in_shard(name, (1, 2)) for name in ("t3", "t4")] == [True, False]
    codes = [scene.run(*shard).code for shard in (["--shard", "1/2"], ["--shard", "2/2"])]
    assert (codes, (scene.out / "summary.json").exists()) == ([0, 7], False)
    assert [[row["id"] for row in scene.rows(f"summary-{part}-of-2.jsonl")] for part in (1, 2)] == [["t3"], ["t4"]]
    summaries = [json.loads((scene.out / f"summary-{part}-of-2.json").read_text()) for part in (1, 2)]
    assert [(one["shard"], one["tasks"]) for one in summaries] == [("1/2", 1), ("2/2", 1)]
    scene.run()
    kept = scene.out / "t4" / "attempts" / "1" / "worktree"
    kept.mkdir()
    (kept / "data.jsonl").write_text("no record\n")
    scene.file.unlink()
    for named in ("", "/t4", "/.."):  # the results, a task of them, what they lie in
        results = f"{scene.out}{named}"
        for question in ("verify", "list", "stats", "approvals", "denied", "unknown", "files"):
            done = scene.program.run("audit", question, results)
            assert (done.code, "BROKEN" in done.out + done.err) == (0, False), (question, done)
        assert re.findall(r"  t4 \w{12}#1  denied  bash  curl x ", scene.program.run("audit", "denied", results).out)
        told = [json.loads(line) for line in scene.program.run("audit", "list", results, "--json").out.splitlines()]
        assert [row["task"] for row in told] == (["t4"] if named == "/t4" else ["t3", "t4"])
        page = scene.program.run("audit", "report", results, "-o", "-")
        assert (page.code, ">t4<" in page.out, "BROKEN" in page.out) == (0, True, False)


def test_checked_tasks_run_despite_later_changes_of_the_file(scene: Scene, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    add_gate(scene.repository, gate)
    scene.tasks("bash python3 s.py", "write f one", "write g two")
    started = scene.start("-j", "1")
    until(scene.logs)
    scene.file.write_text('{"id": "t1", "prompt": "write f another"}\n{')
    gate.touch()
    _, err = started.communicate(timeout=SECONDS)
    assert (started.returncode, [row["exit_code"] for row in scene.rows()]) == (0, [0, 0, 0]), err
    assert "+one" in (scene.out / "t1" / "changes.patch").read_text()


def test_tasks_can_be_read_from_a_pipe(scene: Scene) -> None:
    scene.tasks("write f one")
    text = scene.file.read_text()
    scene.file.unlink()
    os.mkfifo(scene.file)
    started = scene.start()
    scene.file.write_text(text)
    started.communicate(timeout=SECONDS)
    assert (started.returncode, len(scene.rows())) == (0, 1)


def test_ignored_signals_stay_ignored(scene: Scene, tmp_path: Path) -> None:
    """`nohup harness batch`, and `harness batch &` in a script (POSIX, sh, 2.11)."""
    ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)

    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    gate = tmp_path / "go"
    add_gate(scene.repository, gate)
    scene.tasks("bash python3 s.py")
    started = scene.program.start(*scene.words(), preexec_fn=ignore)
    until(lambda: any(b'"kind":"intent"' in log.read_bytes() for log in scene.logs()))
    for number in ignored:
        started.send_signal(number)
    gate.touch()
    _, err = started.communicate(timeout=SECONDS)
    assert (started.returncode, scene.rows()[0]["exit_code"]) == (0, 0), err


def test_report_cannot_replace_files_of_the_batch(scene: Scene, tmp_path: Path) -> None:
    scene.tasks("write f one")
    own = Path(scene.program.environment["XDG_CONFIG_HOME"]) / "harness" / "x"
    names = ("tasks.jsonl", "policy.toml", "out/summary.json", "out/summary-1-of-2.jsonl", "out/t0/report")
    for path in (*(tmp_path / name for name in names), own):
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        done = scene.run("--report", f"md:{path}")
        assert (done.code, path.read_bytes() if path.exists() else None) == (2, before), (path, done.err)
    assert scene.player.prompts == []


def test_a_finished_task_that_was_changed_is_seen_by_the_batch(scene: Scene) -> None:
    scene.tasks("bash curl x", "write f one")
    assert scene.run().code == 7
    result = scene.out / "t0" / "result.json"
    result.write_text(result.read_text().replace('"exit_code": 7', '"exit_code": 0'))
    (scene.out / "t1" / "changes.patch").unlink()
    again = scene.run()
    assert (again.code, [row["exit_code"] for row in scene.rows()]) == (8, [8, 8]), again.err
    assert len(scene.player.prompts) == 2


def facts_alive() -> int:
    return sum(isinstance(one, RunFacts) for one in gc.get_objects())


@all_rows("form", ["md", "junit", "sarif"])
def test_report_keeps_few_runs_in_memory(tmp_path: Path, form: str) -> None:
    """Facts of a run may be large, and runs many."""
    log = {"kind": "session_started", "session": "s"}
    for n in range(30):
        folder = TaskFolder(str(tmp_path / f"t{n}"))
        Path(folder.attempt(1)).mkdir(parents=True)
        Path(folder.log(1)).write_text(json.dumps(log) + "\n")
        folder.write_result({"exit_code": n % 2 * 7, "end": "completed"}, {"attempt": 1})
    outcomes = [TaskOutcome(id=f"t{n}", place=n, task_end=TaskEnd.RAN, code=n % 2 * 7) for n in range(30)]
    alive: list[int] = []
    before = facts_alive()  # other tests have some, as arguments
    pieces = report_form(form).write(runs_of(str(tmp_path), outcomes, ""), with_answer=False)
    text = ""
    for index, piece in enumerate(pieces):
        text += piece
        if index % 40 == 0:
            alive.append(facts_alive() - before)
    assert (all(f"t{n}" in text for n in range(30)), max(alive) < 10) == (True, True), alive


def test_tasks_not_run_do_not_count_for_the_exit_code() -> None:
    assert worst([outcome(6), TaskOutcome(id="y", place=1, task_end=TaskEnd.NOT_RUN)]) is Exit.MODEL


def outcome(code: int | None) -> TaskOutcome:
    return TaskOutcome(id="x", place=0, task_end=TaskEnd.RAN if code is not None else TaskEnd.NOT_DONE, code=code)


WORST: list[tuple[tuple[int | None, ...], Exit]] = [
    ((), Exit.DONE),
    ((0, 0), Exit.DONE),
    ((0, 7), Exit.REFUSED),
    ((7, 4), Exit.LIMIT),
    ((4, 5), Exit.NO_ANSWER),
    ((5, 6), Exit.MODEL),
    ((6, 2), Exit.USAGE),
    ((2, 1), Exit.INTERNAL),
    ((2, None), Exit.INTERNAL),
    ((1, 3), Exit.BLOCKED),
    ((3, 8), Exit.LOG),
    ((0, 77), Exit.INTERNAL),
]


def test_the_worst_exit_code_is_the_batch_s() -> None:
    for codes, code in WORST:
        assert [worst(map(outcome, codes)), worst(map(outcome, reversed(codes)))] == [code, code], codes


def test_table_of_very_many_tasks_lists_the_bad_ones_and_counts_the_rest() -> None:
    rows = [
        TaskOutcome(id=f"t{n}", place=n, task_end=TaskEnd.RAN, code=7 if n == 5000 else 0, tries=1)
        for n in range(10_000)
    ]
    written = io.StringIO()
    tell(rows, Console(written, Look()))
    lines = written.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["task", "t5000", "(9999", "10,000"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_runs_in_order(scene: Scene, number: signal.Signals, code: int) -> None:
    scene.tasks(*["bash sleep 300"] * 3)
    started = scene.start("-j", "2")
    until(lambda: sum(b'"kind":"intent"' in log.read_bytes() for log in scene.logs()) == 2)
    started.send_signal(number)
    out, err = started.communicate(timeout=SECONDS)
    assert started.returncode == code, err
    assert [(row["exit_code"], row["how"]) for row in scene.rows()] == [(None, "not run")] * 3
    assert (b"t2" in err + out, b"(3 tasks not run to the end: the batch was ended before)" in out) == (False, True)
    assert scene.workers() == []
    # The logs end whole, and say how.
    verified = scene.program.run("audit", "verify", *map(str, scene.logs()))
    assert (verified.code, len(scene.logs())) == (0, 2), verified.out
    assert git(scene.repository, "worktree", "list").count("\n") == 1
    assert b"3 tasks" in out


PATIENT = """
import sys
from harness.app.main import main
from harness.plugins.fleet.batch import pool

pool.GRACE_SECONDS = 1e6
sys.exit(main(sys.argv[1:]))
"""


def test_a_second_signal_kills(scene: Scene) -> None:
    """And nothing else does, where time alone would do it in eleven days."""
    scene.tasks("bash sleep 300")
    program = scene.program
    started = subprocess.Popen(
        [sys.executable, "-c", PATIENT, *scene.words()],
        cwd=program.workspace, env=program.environment, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert started.stderr is not None
    until(lambda: any(b'"kind":"intent"' in log.read_bytes() for log in scene.logs()))
    (worker,) = scene.workers_of(started)
    os.kill(worker, signal.SIGSTOP)  # it does not end by being asked
    started.send_signal(signal.SIGINT)
    assert started.stderr.readline().startswith(b"harness: ending: 1 task asked to end")
    assert started.poll() is None
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=SECONDS)
    assert (started.returncode, scene.workers()) == (130, [])


def test_task_with_killed_processes_is_abandoned_and_not_done(scene: Scene) -> None:
    scene.tasks("bash sleep 300")
    started = scene.start()
    killed: set[int] = set()
    while started.poll() is None:
        for worker in scene.workers_of(started) - killed:
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
        time.sleep(0.02)
    out, err = started.communicate()
    assert (started.returncode, len(killed)) == (1, 3), err
    assert (scene.rows()[0]["how"], scene.rows()[0]["exit_code"], scene.rows()[0]["tries"]) == ("not done", None, 3)
    assert b"t0: its process was ended (SIGKILL); it is tried again (2 of 3)" in err
    assert b"its process was ended (SIGKILL), 3 times" in out


def test_a_task_that_another_process_runs_is_waited_for(scene: Scene) -> None:
    scene.tasks("write f one", "write g two")
    (scene.out / "t0").mkdir(parents=True)
    with open(scene.out / "t0" / "lock", "w") as held:
        held.write("4711\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        started = scene.start()
        until((scene.out / "t1" / "result.json").exists)
        assert started.stderr is not None
        told = [started.stderr.readline(), started.stderr.readline()]
        assert (started.poll(), (scene.out / "t0" / "result.json").exists()) == (None, False)
        assert told[1] == b"harness: waiting for 1 task that other processes run: t0 is run by process 4711\n", told
    _, err = started.communicate(timeout=SECONDS)
    assert started.returncode == 0, err
    assert [row["exit_code"] for row in scene.rows()] == [0, 0]


def test_a_terminal_shows_one_line_that_is_written_over(scene: Scene, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    add_gate(scene.repository, gate)  # work that is done at once shows no line: these tasks end when it was seen
    scene.tasks("bash python3 s.py", "bash python3 s.py")
    ours, theirs = pty.openpty()
    environment = {**scene.program.environment, "TERM": "xterm", "NO_COLOR": "1"}
    started = scene.program.start(*scene.words("-j", "2"), stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # EIO: nobody holds the other end any more (pty(7))
            break
        if not piece:
            break
        shown += piece
        if re.search(rb"0 of 2 tasks, 2 running +\d:\d\d:\d\d", shown):
            gate.touch()
    started.communicate(timeout=SECONDS)
    os.close(ours)
    assert (started.returncode, gate.exists()) == (0, True)
    assert (b"\x1b[?25l" in shown, b"done" in shown) == (False, False)  # the cursor stays to be seen
    assert shown.endswith(b"\r\x1b[K")  # it is taken away


def test_workers_are_killed_and_the_batch_too_and_every_task_is_done_once(scene: Scene, tmp_path: Path) -> None:
    """Many tasks, 4 workers; workers are killed, then the batch itself; then it is started again."""
    gate = tmp_path / "go"
    add_gate(scene.repository, gate)
    scene.tasks(
        *(f"bash python3 s.py\nwrite new-{n}.txt text {n} ;; bash cp new-{n}.txt copy-{n}.txt" for n in range(COUNT))
    )
    _with_kills(scene, gate)
    until(lambda: scene.workers() == [])  # the batch is gone: its processes end by themselves
    done_before = {path.parent.name: path.stat().st_mtime_ns for path in scene.results() if _code(path) == 0}
    last = scene.start("-j", "4")
    _, err = last.communicate(timeout=4 * SECONDS)
    assert last.returncode == 0, err
    assert [(row["id"], row["exit_code"]) for row in scene.rows()] == [(f"t{n}", 0) for n in range(COUNT)]
    after = {path.parent.name: path.stat().st_mtime_ns for path in scene.results()}
    assert (len(after), len(done_before) >= COUNT // 3) == (COUNT, True)
    assert {name: after[name] for name in done_before} == done_before  # what was done was not done again
    _check_patches(scene, tmp_path)
    _check_logs(scene)
    assert git(scene.repository, "worktree", "list").count("\n") == 1
    assert git(scene.repository, "status", "--porcelain") == ""
    assert list(scene.out.glob("*/attempts/*/worktree")) == []
    asked = len(scene.player.prompts)
    assert scene.run("-q").code == 0
    assert len(scene.player.prompts) == asked


def _code(result: Path) -> object:
    return json.loads(result.read_text())["exit_code"]


def _with_kills(scene: Scene, gate: Path) -> None:
    """Run the batch: kill workers at any moment while no task can end, and the batch itself once a third is done."""
    chance = random.Random(8)
    started = scene.start("-j", "4", "-q")
    reader = threading.Thread(target=started.communicate)
    reader.start()
    killed: set[int] = set()
    while len(killed) < KILLS:
        time.sleep(chance.uniform(0.0, 0.2))  # a new process is no moment of chance
        for victim in sorted(scene.workers_of(started) - killed)[:1]:
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)
    gate.touch()
    until(lambda: len(scene.results()) >= COUNT // 3)
    started.send_signal(signal.SIGKILL)
    reader.join(SECONDS)


def _check_patches(scene: Scene, tmp_path: Path) -> None:
    """Each patch makes the two files of its task, and no more; all of them apply."""
    folder = applied(scene.repository, Path(os.devnull), tmp_path / "clone")
    patches = [scene.out / f"t{n}" / "changes.patch" for n in range(COUNT)]
    for n, patch in enumerate(patches):
        lines = [line for line in patch.read_text().splitlines() if line.startswith(("--- ", "+++ "))]
        assert lines == ["--- /dev/null", f"+++ b/copy-{n}.txt", "--- /dev/null", f"+++ b/new-{n}.txt"]
    git(folder, "apply", *map(str, patches))
    for n in range(COUNT):
        assert (folder / f"copy-{n}.txt").read_text() == (folder / f"new-{n}.txt").read_text() == f"text {n}\n"
    assert git(folder, "status", "--porcelain").count("\n") == 2 * COUNT


def _check_logs(scene: Scene) -> None:
    """The log of each task verifies, with its head; those of killed attempts can be read, and have no end."""
    final = {Path(json.loads((scene.out / f"t{n}" / "result.json").read_text())["log"]) for n in range(COUNT)}
    verified = scene.program.run("audit", "verify", *map(str, sorted(final)))
    assert (verified.code, len(final)) == (0, COUNT), verified.out
    for log in set(scene.logs()) - final:
        found = judge_log(str(log), HeadsFile(str(scene.program.state / "harness" / "heads.jsonl")))
        ended = b'"kind":"session_ended"' in log.read_bytes()
        assert found.soundness in ((Soundness.WHOLE, Soundness.NO_HEAD) if ended else (Soundness.OPEN,)), log

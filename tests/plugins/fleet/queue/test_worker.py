"""`harness worker`: what it takes, what it gives back, and how it ends."""

from __future__ import annotations

import json
import signal
from itertools import groupby
from pathlib import Path

import pytest
from batch_scene import add_gate, git, until
from fleet_scene import Fleet, can_mount, ended, logs_of, until_running, with_small_disk

from harness.audit.findings import judge_log
from harness.log.heads_file import HeadsFile
from harness.plugins.fleet.queue.open_queue import open_queue
from harness.plugins.fleet.queue.queue import Batch, QueuedTask
from harness.plugins.fleet.queue.worker import bring_in

LEASE = 60.0
"""Of workers that are not to be lost, however busy the machine is."""
HELD = "bash python3 s.py"
"""What a task does that goes on until its gate is there."""


def test_first_sigterm_lets_running_tasks_finish(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    fleet.tasks([HELD, "write f 1"])
    fleet.put()
    worker = fleet.worker("-j", "1", lease=LEASE)
    until_running(fleet, "t0")
    worker.send(signal.SIGTERM)
    until(lambda: "harness: ending" in worker.said)
    gate.touch()
    assert worker.end() == 0, worker.said
    assert [(row.number, row.how) for row in fleet.attempts("t0")] == [(1, "done")]
    assert all(row.how == "not begun" for row in fleet.attempts("t1"))  # taken in the last moment, and given back
    assert fleet.state() == {"waiting": 1, "running": 0, "done": 1, "cancelled": 0}
    assert fleet.status()["workers"] == []
    assert fleet.processes() == {}


def test_second_sigterm_returns_running_tasks_to_the_queue(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    fleet.tasks([HELD])
    fleet.put()
    worker = fleet.worker(lease=LEASE)
    until_running(fleet, "t0")
    worker.send(signal.SIGTERM)
    until(lambda: "harness: ending" in worker.said)
    worker.send(signal.SIGTERM)
    assert worker.end() == 143, worker.said
    assert fleet.state() == {"waiting": 1, "running": 0, "done": 0, "cancelled": 0}
    assert fleet.processes() == {}
    gate.touch()
    assert fleet.worker("--drain", lease=LEASE).end() == 0
    done = fleet.wait()
    assert done.code == 0, done
    assert [(row.number, row.how) for row in fleet.attempts("t0")] == [(1, "ended with its worker"), (2, "done")]
    judged = judge_log(str(fleet.log("t0", 1)), HeadsFile(str(fleet.folder / "none")))
    assert (judged.unfit, '"exit_code":143' in fleet.log("t0", 1).read_text()) == ("", True)
    assert fleet.rows()[0]["tries"] == 2
    assert git(fleet.repository, "worktree", "list").count("\n") == 1


def test_refused_key_stops_the_worker_and_returns_the_task(fleet: Fleet) -> None:
    fleet.tasks(["write f 1", "write f 2", "write f 3"])
    fleet.put()
    fleet.player.refusing = True
    worker = fleet.worker("-j", "1", lease=LEASE)
    assert worker.end() == 6, worker.said
    assert "nothing more is taken: the key was refused at t" in worker.said
    assert fleet.state() == {"waiting": 3, "running": 0, "done": 0, "cancelled": 0}
    hows = [row.how for row in fleet.attempts()]
    assert hows.count("key refused") == 1
    assert hows.count("not begun") == len(hows) - 1  # taken in the last moment, and given back
    fleet.player.refusing = False
    assert fleet.worker("--drain", lease=LEASE).end() == 0
    done = fleet.wait()
    assert (done.code, [row["exit_code"] for row in fleet.rows()]) == (0, [0, 0, 0]), done


def test_cancelled_task_ends_and_is_done_by_a_retry(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    fleet.tasks([HELD, "write f 1"])
    fleet.put()
    worker = fleet.worker("-j", "1", lease=30.0)  # it beats every five seconds
    until_running(fleet, "t0")
    told = fleet.said("cancel", fleet.batch)
    assert told == "1 waiting task cancelled; 1 running task asked to end\n"
    until(lambda: fleet.state()["running"] == 0)
    assert worker.end(signal.SIGTERM) == 0
    done = fleet.said("status")
    assert "cancelled" in done
    assert fleet.processes() == {}
    # The log of what was ended is there.
    assert '"exit_code":143' in fleet.log("t0", 1).read_text()
    gate.touch()
    assert fleet.said("retry", fleet.batch) == "2 tasks put in again\n"
    assert fleet.worker("--drain", lease=LEASE).end() == 0
    again = fleet.wait()
    assert (again.code, [row["exit_code"] for row in fleet.rows()]) == (0, [0, 0]), again
    # What is done is done again only where it is named.
    assert fleet.said("retry", fleet.batch) == "0 tasks put in again\n"
    assert fleet.said("retry", fleet.batch, "t1") == "1 task put in again\n"
    assert fleet.worker("--drain", lease=LEASE).end() == 0
    assert fleet.wait().code == 0
    assert [row["tries"] for row in fleet.rows()] == [2, 2]
    assert len(list((fleet.out / "t1" / "attempts").iterdir())) == 2


def test_full_disk_stops_the_worker_and_returns_the_task(fleet: Fleet) -> None:
    if not can_mount():
        pytest.skip("no small disk can be mounted here")
    fleet.tasks(["write f 1"])
    fleet.put()
    # So small that git cannot make the repository: its failure is not one of the task.
    worker = fleet.worker(machine="full", before=with_small_disk(fleet.folder / "full", "40k"), lease=LEASE)
    assert worker.end() == 1, worker.said
    assert "nothing more is taken, since t0 failed" in worker.said
    assert fleet.state() == {"waiting": 1, "running": 0, "done": 0, "cancelled": 0}
    assert fleet.attempts()[0].how == "broken"
    assert fleet.worker("--drain", lease=LEASE).end() == 0
    assert fleet.wait().code == 0


def test_files_outside_the_patch_stay_on_the_machine(fleet: Fleet) -> None:
    making = "import os, pathlib\nos.makedirs('inner/.git/refs')\nos.makedirs('inner/.git/objects')\n"
    making += "pathlib.Path('inner/.git/HEAD').write_text('ref: refs/heads/main')\n"
    (fleet.repository / "s.py").write_text(making)
    git(fleet.repository, "add", "s.py")
    git(fleet.repository, "commit", "--quiet", "-m", "inner")
    fleet.tasks([HELD])
    fleet.put()
    for _ in range(2):
        assert fleet.worker("--drain", lease=LEASE).end() == 0, fleet.workers[-1].said
    assert fleet.wait().code == 0
    told, _, kept = str(fleet.rows()[0]["problem"]).partition(": ")
    assert told == "its folder is kept"
    assert (Path(kept) / "inner" / ".git" / "HEAD").exists()


def turns(fleet: Fleet) -> list[str]:
    """Return of each request which task it is of: the first word of what its prompt writes."""
    return [
        next(str(one["content"]).split()[1] for one in request["messages"] if one["role"] == "user")
        for request in fleet.player.asked
        if isinstance(request, dict)
    ]


def test_limits_apply_to_all_workers_together(fleet: Fleet) -> None:
    steps = "write {0} 1\nwrite {0} 2\nwrite {0} 3"
    fleet.tasks({f"t{name}": steps.format(name) for name in "abcd"})
    fleet.put()
    fleet.said("limit", "--at-once", "1")
    first, second = fleet.worker("-j", "3", lease=LEASE), fleet.worker("-j", "2", machine="other", lease=LEASE)
    # A second worker that could do more, and a limit that is set while both are up.
    fleet.said("limit", "--at-once", "1", "--per-group", "2")
    done = fleet.wait()
    assert (done.code, first.end(signal.SIGTERM), second.end(signal.SIGTERM)) == (0, 0, 0), first.said + second.said
    assert [(name, len(list(group))) for name, group in groupby(turns(fleet))] == [
        (name, 4) for name in dict.fromkeys(turns(fleet))
    ]


def test_limits_of_groups_and_priorities(fleet: Fleet) -> None:
    steps = "write {0} 1\nwrite {0} 2"
    lines = [
        {
            "id": f"t{name}",
            "prompt": steps.format(name),
            "priority": 9 - place,
            "group": "one" if place % 2 else "other",
        }
        for place, name in enumerate("abcdef")
    ]
    fleet.file.write_text("".join(json.dumps({**line, "cwd": str(fleet.repository)}) + "\n" for line in lines))
    fleet.put()
    fleet.said("limit", "--per-group", "1")
    worker = fleet.worker("-j", "4", "--drain", lease=LEASE)
    assert worker.end() == 0, worker.said
    seen = turns(fleet)
    for group in ("fdb", "eca"):
        # One after the other, the lowest number first.
        assert [name for name in seen if name in group] == [name for name in group for _ in range(3)]
    assert fleet.wait().code == 0


def test_spent_budget_stops_new_tasks(fleet: Fleet) -> None:
    config = fleet.folder / "config" / "harness" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[prices."m"]\ninput = 1000\noutput = 1000\n')
    fleet.tasks([f"write f {n}" for n in range(4)])
    fleet.put("--budget", "0.6")
    # A task asks twice: 400 tokens in, 40 out, $0.44 at these prices.
    worker = fleet.worker("-j", "1", lease=LEASE)
    done = fleet.wait("--budget", "0.6")
    assert done.code == 4, done
    assert sorted((row["exit_code"], row["how"]) for row in fleet.rows()) == [(0, "ran")] * 2 + [(4, "not run")] * 2
    assert sum("the budget of the batch, $0.60, is used up" in row["problem"] for row in fleet.rows()) == 2
    assert len(fleet.player.prompts) == 2
    # With another budget the rest is done.
    done = fleet.wait("--budget", "5")
    assert (done.code, len(fleet.player.prompts)) == (0, 4), done
    assert worker.end(signal.SIGTERM) == 0, worker.said


def test_task_cannot_name_a_folder_without_permission_of_the_worker(fleet: Fleet) -> None:
    fleet.tasks(["write f 1"])
    fleet.put()
    # Who can write to the queue does not need `harness batch` for it.
    version = f"harness {fleet.said('status', '--json').partition('harness ')[2].partition(chr(34))[0]}"
    queue = open_queue(fleet.queue)
    other = fleet.folder / "others"
    other.mkdir()
    task = {"id": "evil", "prompt": "write f 1", "cwd": str(fleet.repository)}
    queue.put(Batch(name="0" * 12, out=str(other)), [QueuedTask(batch="0" * 12, task=task, version=version)], bool)
    try:
        worker = fleet.worker("-j", "1", "--drain", lease=LEASE)
        assert worker.end() == 0, worker.said
        (refused,) = queue.results("0" * 12)
        assert (refused.result["exit_code"], refused.result["how"]) == (2, "cannot begin")
        assert "is outside of the folders that tasks may name on this machine" in str(refused.result["problem"])
        assert len(fleet.player.prompts) == 1  # the other task was done
        assert fleet.said("retry", "0" * 12) == "1 task put in again\n"
        assert fleet.worker("--drain", "--folder", str(fleet.repository), lease=LEASE).end() == 0
        (done,) = queue.results("0" * 12)
        assert done.result["exit_code"] == 0
    finally:
        queue.close()


def test_names_of_batches_and_tasks_lead_to_no_folder(fleet: Fleet) -> None:
    """A worker clears the folder of a task before it begins: that must be its own."""
    fleet.tasks(["write f 1"])
    fleet.put()
    version = f"harness {fleet.said('status', '--json').partition('harness ')[2].partition(chr(34))[0]}"
    victim = fleet.folder / "victim"
    victim.mkdir()
    (victim / "kept").touch()
    names = {str(victim.parent): "victim", "0" * 12: str(victim), "1" * 12: "../../../../victim"}
    queue = open_queue(fleet.queue)
    for batch, task in names.items():
        given = {"id": task, "prompt": "write f 1", "repo": "https://127.0.0.1:1/x", "commit": "0" * 40}
        queue.put(Batch(name=batch, out=str(fleet.out)), [QueuedTask(batch=batch, task=given, version=version)], bool)
    try:
        worker = fleet.worker("-j", "1", "--drain", lease=LEASE)
        assert worker.end() == 0, worker.said
        for batch in names:
            (refused,) = queue.results(batch)
            assert (refused.result["exit_code"], refused.result["how"]) == (2, "cannot begin")
    finally:
        queue.close()
    assert (victim / "kept").exists()


def test_results_are_written_to_places_allowed_by_the_worker(fleet: Fleet) -> None:
    """A worker that may not write them is started wrongly: it ends, and the tasks wait for another."""
    fleet.tasks(["write f 1"])
    fleet.put()
    elsewhere = fleet.folder / "elsewhere"
    elsewhere.mkdir()
    worker = fleet.worker("--out", str(elsewhere), lease=LEASE)
    assert worker.end() == 2, worker.said
    assert f"results of a batch go to {fleet.out}, and here below {elsewhere} alone (--out)" in worker.said
    assert (fleet.state()["waiting"], fleet.player.asked, (fleet.out / "t0").exists()) == (1, [], False)


def test_a_worker_without_a_model_does_not_begin(fleet: Fleet) -> None:
    """Else each task would end with that."""
    fleet.tasks(["write f 1"])
    fleet.put()
    fleet.program.environment.pop("OPENAI_API_KEY")
    done = fleet.program.run("worker", "--queue", fleet.queue, "--policy", str(fleet.policy), "--drain")
    assert (done.code, "no model to talk to" in done.err, fleet.state()["waiting"]) == (2, True, 1)


def test_draining_worker_reports_tasks_for_others(fleet: Fleet) -> None:
    fleet.tasks(["write f 1"])
    fleet.put()
    worker = fleet.worker("--drain", "--no-instructions", lease=LEASE)
    assert worker.end() == 0, worker.said
    assert "1 task left for workers of another kind: harness " in worker.said


def test_batch_with_cancelled_tasks_is_a_failure(fleet: Fleet) -> None:
    fleet.tasks(["write f 1", "write f 2"])
    fleet.put()
    waiting = fleet.waiting()
    assert waiting.stderr is not None
    assert b"2 tasks there already" in waiting.stderr.readline()
    assert fleet.said("cancel", fleet.batch) == "2 waiting tasks cancelled; 0 running tasks asked to end\n"
    done = ended(waiting)
    assert (done.code, [row["how"] for row in fleet.rows()]) == (1, ["cancelled", "cancelled"]), done
    assert "t0: it was cancelled" in done.out


def test_waiting_reports_as_a_local_batch_does(fleet: Fleet) -> None:
    fleet.tasks(["write f one", "bash curl x", "bash shutdown", "write g two ;; bash cp a.txt c.txt"])
    fleet.put()
    worker = fleet.worker("-j", "2", "--drain", lease=LEASE)
    assert worker.end() == 0, worker.said
    reports = [fleet.folder / "queued.xml", fleet.folder / "local.xml"]
    queued = fleet.wait("--report", f"junit:{reports[0]}")
    words = ["batch", str(fleet.file), "--out", str(fleet.folder / "local"), "--policy", str(fleet.policy)]
    words += ["--base-url", fleet.url, "--model", "m", "-j", "2", "--report", f"junit:{reports[1]}"]
    local = fleet.program.run(*words)
    assert (queued.code, local.code) == (3, 3), queued
    rows = [json.loads(line) for line in (fleet.folder / "local" / "summary.jsonl").read_text().splitlines()]

    def same(row: dict[str, object]) -> dict[str, object]:
        return {key: value for key, value in row.items() if key not in ("seconds", "how")}

    assert [same(row) for row in fleet.rows()] == [same(row) for row in rows]
    assert [row["how"] for row in fleet.rows()] == ["earlier"] * 4  # they were done before it waited
    tables = [[line.split()[:6] for line in done.out.splitlines()[:5]] for done in (queued, local)]
    assert tables[0] == tables[1]
    cases = [report.read_text().count("<testcase ") for report in reports]
    fails = [report.read_text().count("<failure ") for report in reports]
    assert (cases[0], fails[0]) == (cases[1], fails[1])
    names = {"result.json", "work.json", "changes.patch", "task.json", "attempts"}
    assert names <= {path.name for path in (fleet.out / "t0").iterdir()}
    heads = fleet.out / "heads.jsonl"
    assert fleet.program.run("audit", "verify", "--heads", str(heads), str(fleet.out)).code == 0
    # A second time it is the same, and nobody is asked.
    asked = len(fleet.player.asked)
    assert (fleet.wait().code, len(fleet.player.asked)) == (3, asked)


def test_log_changed_after_its_end_is_reported(fleet: Fleet) -> None:
    fleet.tasks(["write f one", "write f two"])
    fleet.put()
    assert fleet.worker("--drain", lease=LEASE).end() == 0
    log = fleet.log("t1", 1)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    done = fleet.wait()
    assert (done.code, [row["exit_code"] for row in fleet.rows()]) == (8, [0, 8]), done


def test_another_task_of_the_same_name_is_refused(fleet: Fleet) -> None:
    fleet.tasks(["write f 1", "write f 2"])
    fleet.put()
    fleet.tasks(["write f 1", "write f 3"])
    done = fleet.program.run(*fleet.batch_words())
    assert done.code == 2
    assert "task t1 is in the queue with other contents: name another --out" in done.err
    assert fleet.state()["waiting"] == 2


def test_the_next_worker_of_the_machine_hands_in_the_log_of_a_killed_one(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    # It does not end at the first word, and its run waits for it.
    script = fleet.repository / "s.py"
    script.write_text(f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{script.read_text()}")
    git(fleet.repository, "commit", "--quiet", "--all", "-m", "deaf")
    fleet.tasks([HELD])
    fleet.put()
    first = fleet.worker(lease=LEASE)
    row = until_running(fleet, "t0")
    (log,) = logs_of(fleet, row)
    first.send(signal.SIGKILL)
    third = fleet.worker(lease=LEASE)
    until(lambda: fleet.log("t0", 1).exists() and not log.parents[4].exists())
    assert '"exit_code":143' in fleet.log("t0", 1).read_text()
    fleet.lose(first.name)
    until_running(fleet, "t0", 2)
    gate.touch()
    assert third.end(signal.SIGTERM) == 0, third.said
    assert [(row.number, row.how) for row in fleet.attempts("t0")] == [(1, "lost"), (2, "done")]
    assert "stays" not in third.said
    done = fleet.wait()
    assert (done.code, fleet.rows()[0]["problem"]) == (0, "1 earlier attempt lost with its worker: effect unknown"), (
        done
    )
    assert fleet.processes() == {}


@pytest.mark.parametrize(("note", "problem"), [(None, ""), ("[]", "attempt.json"), ("{", "Expecting")])
def test_a_removal_that_was_killed_is_finished(tmp_path: Path, note: str | None, problem: str) -> None:
    task = tmp_path / "worker" / "0123456789ab" / "t0"
    (task / "attempts" / "1").mkdir(parents=True)
    if note is not None:
        (task / "attempt.json").write_text(note)
    found = bring_in(str(tmp_path / "worker"), {})
    assert (problem in found, bool(found)) == (True, bool(problem)), found
    assert task.exists() is bool(problem)

"""A batch whose results go to a URL: each task is uploaded as it ends, and another machine goes on with it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_scene import POLICY, ByContent, add_gate, applied, git, repository, serving, until, write_tasks
from program import Done, Program
from results_scene import TASK, Failing, attempt_log, files_below, finished, head_in, register, remembered

from harness.errors import UsageError
from harness.plugins.fleet.batch.results import Results
from harness.plugins.fleet.batch.task import Task
from harness.plugins.fleet.batch.task_folder import is_held
from harness.plugins.fleet.batch.uploads import Uploads, working_folder
from harness.process.procfs import children
from harness.session.state import State


class Machines:
    """A repository, tasks and a place for results, and machines that share nothing else: each has a state folder."""

    def __init__(self, program: Program, folder: Path, url: str, player: ByContent) -> None:
        self.program = program
        self.player = player
        self.place = folder / "place"
        self.repository = repository(folder / "repository")
        self.file = folder / "tasks.jsonl"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self._url = url
        self._states = folder / "states"

    def tasks(self, *prompts: str) -> None:
        write_tasks(
            self.file,
            *[
                dict[str, object](id=f"t{n}", prompt=prompt, cwd=str(self.repository))
                for n, prompt in enumerate(prompts)
            ],
        )

    def start(self, machine: str, *more: str) -> subprocess.Popen[bytes]:
        self.program.environment["XDG_STATE_HOME"] = str(self._states / machine)
        own = ["batch", str(self.file), "--out", f"file://{self.place}", "--policy", str(self.policy)]
        return self.program.start(*own, "--base-url", self._url, "--model", "m", *more)

    def run(self, machine: str, *more: str) -> Done:
        process = self.start(machine, *more)
        out, err = process.communicate(timeout=300)
        return Done(process.returncode, out.decode(), err.decode())

    def folder(self, machine: str) -> Path:
        """Return where a machine works."""
        state = State(state=str(self._states / machine / "harness"), config="")
        return Path(working_folder(f"file://{self.place}", state))

    def rows(self) -> list[tuple[str, object, object]]:
        lines = (self.place / "summary.jsonl").read_text().splitlines()
        return [(row["id"], row["exit_code"], row["how"]) for row in map(json.loads, lines)]

    def heads(self, into: Path) -> Path:
        """Gather the heads that left the machines, as a heads file."""
        into.write_bytes(b"".join(path.read_bytes() for path in self.place.glob("*/attempts/*/head.json")))
        return into


@pytest.fixture
def machines(program: Program, tmp_path: Path) -> Iterator[Machines]:
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, player):
        yield Machines(program, tmp_path, url, player)


def test_batch_at_a_url_works_like_any_other_for_every_machine(machines: Machines, tmp_path: Path) -> None:
    machines.tasks("write f one", "bash curl x", "write g two ;; bash cp a.txt c.txt")
    report = tmp_path / "report.md"
    done = machines.run("a", "-j", "2", "--report", f"md:{report}")
    assert done.code == 7, done.err
    assert machines.rows() == [("t0", 0, "ran"), ("t1", 7, "ran"), ("t2", 0, "ran")]
    assert (machines.place / "reports" / "report.md").read_bytes() == report.read_bytes()
    for name in ("t0", "t1", "t2"):
        there, local = (files_below(folder / name) for folder in (machines.place, machines.folder("a")))
        for own in ("lock", "attempts/1/place.json"):
            del local[own]
        assert {path: there[path] for path in local} == local
    assert (applied(machines.repository, machines.place / "t0" / "changes.patch", tmp_path / "clone") / "f").exists()
    heads = machines.heads(tmp_path / "heads.jsonl")
    verified = machines.program.run("audit", "verify", "--heads", str(heads), str(machines.place))
    assert verified.code == 0, verified.out
    assert machines.program.run("audit", "report", "-o", str(tmp_path / "page.html"), str(machines.place)).code == 0
    asked = len(machines.player.prompts)
    again = machines.run("b", "-q")
    assert (again.code, again.err, len(machines.player.prompts)) == (7, "", asked)
    assert [how for _, _, how in machines.rows()] == ["earlier"] * 3
    assert git(machines.repository, "worktree", "list").count("\n") == 1


def test_unfinished_task_is_done_by_the_next_machine(machines: Machines) -> None:
    machines.tasks("write f one", "write g two")
    machines.player.refusing = True
    assert machines.run("a", "-j", "1").code == 6
    assert json.loads((machines.place / "t0" / "result.json").read_text())["exit_code"] == 6
    machines.player.refusing = False
    assert machines.run("b").code == 0
    assert [how for _, _, how in machines.rows()] == ["ran", "ran"]
    work = json.loads((machines.place / "t0" / "work.json").read_text())
    assert (work["attempt"], work["exit_code"]) == (2, 0)
    assert Results.at(str(machines.place)).attempts("t0") == (1, 2)
    # The first machine takes over what the second did.
    assert machines.run("a").code == 0
    assert [how for _, _, how in machines.rows()] == ["earlier", "earlier"]
    # With other settings nothing is run.
    other = machines.run("c", "--max-turns", "3")
    assert other.code == 2
    assert "under other settings" in other.err


def test_a_machine_that_was_killed_loses_neither_a_result_nor_a_log(machines: Machines, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    add_gate(machines.repository, gate)
    machines.tasks("write f one", "bash python3 s.py")
    batch = machines.start("a", "-j", "2")
    log = machines.folder("a") / "t1" / "attempts" / "1" / "log.jsonl"
    until(lambda: log.exists() and b'"intent"' in log.read_bytes())
    until((machines.place / "t0" / "result.json").exists)  # uploaded while the other goes on
    os.kill(batch.pid, signal.SIGSTOP)  # so that it starts nothing again
    for process in children(batch.pid):
        os.kill(process, signal.SIGKILL)
    os.kill(batch.pid, signal.SIGKILL)
    batch.communicate()
    until(lambda: not is_held(str(machines.folder("a") / "t1")))
    gate.write_text("")
    assert machines.run("a").code == 0
    assert machines.rows() == [("t0", 0, "earlier"), ("t1", 0, "ran")]
    killed = machines.place / "t1" / "attempts" / "1"
    assert (killed / "log.jsonl").read_bytes() == log.read_bytes()
    assert not (killed / "result.json").exists()
    assert json.loads((machines.place / "t1" / "work.json").read_text())["attempt"] == 2


def test_unusable_place_is_reported_before_the_start(machines: Machines) -> None:
    machines.tasks("write f one")
    own = ["batch", str(machines.file), "--policy", str(machines.policy), "--model", "m", "--out"]
    for out, words in (
        ("s3://key:secret@bucket/run", "holds a name or a key"),
        ("nowhere://bucket/run", "nothing that is installed reads nowhere:// URLs"),
        (f"file://{machines.file}/sub", "cannot be written"),
    ):
        done = machines.program.run(*own, out)
        assert (done.code, len(machines.player.prompts)) == (2, 0)
        assert words in done.err
        assert "secret" not in done.err


def test_batch_into_a_folder_loads_no_package_for_urls_or_queues(machines: Machines, tmp_path: Path) -> None:
    machines.tasks("write f one")
    code = """
import sys
from harness.app.main import main
code = main(sys.argv[1:])
loaded = [name for name in sys.modules if name.split(".")[0] in ("fsspec", "dbos")]
sys.exit(repr(loaded) if loaded else code)
"""
    words = [
        "batch",
        str(machines.file),
        "--out",
        str(tmp_path / "out"),
        "--policy",
        str(machines.policy),
        "--model",
        "m",
    ]
    machines.player.refusing = True
    environment = machines.program.environment
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--base-url", "http://127.0.0.1:1/v1"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 6, done.stderr


# What follows is of the uploads alone, in one process.


@pytest.fixture
def stores() -> Iterator[None]:
    register()
    yield
    register()


def uploads_to(out: str, folder: Path, **more: float) -> Uploads:
    return Uploads(Results.at(out, pauses=()), str(folder), [TASK], **more)


def ended() -> bool:
    return False


@pytest.mark.forges_logs
def test_the_head_of_a_growing_log_leaves_the_machine(stores: None, tmp_path: Path) -> None:
    log = attempt_log(tmp_path / "t", calls=1, whole=False)
    with uploads_to("memory://run", tmp_path, look_seconds=0.01, head_seconds=0.01):
        until(lambda: "t/attempts/1/head.json" in remembered("run"))
        first = head_in(remembered("run")["t/attempts/1/head.json"])
        attempt_log(tmp_path / "t", calls=9, whole=False)
        until(lambda: head_in(remembered("run")["t/attempts/1/head.json"]) != first)
    assert head_in(remembered("run")["t/attempts/1/head.json"])[0] == log.read_bytes().count(b"\n")
    # The machine is lost. Another one knows that the number is taken, and what is missing.
    uploads_to("memory://run", tmp_path / "other").bring()
    assert set(files_below(tmp_path / "other")) == {"t/attempts/1/head.json"}


@pytest.mark.forges_logs
def test_failed_upload_is_repeated_at_the_end_or_next_start(stores: None, tmp_path: Path) -> None:
    finished(tmp_path / "t")
    (tmp_path / "summary.json").write_text("{}")
    full = OSError(errno.ENOSPC, "No space left on device")
    Failing.failing["result.json"] = [full]
    uploads = uploads_to("failing://run", tmp_path, look_seconds=0.01)
    with uploads:
        until(lambda: not Failing.failing["result.json"])
    assert uploads.finish([], is_ended=ended) == ()
    assert {"t/result.json", "summary.json"} <= set(remembered("run"))
    Failing.failing["result.json"] = [full] * 9
    problems = uploads_to("failing://other", tmp_path).finish([], is_ended=ended)
    assert len(problems) == 2
    assert "No space left on device" in problems[0]
    assert f"what was not uploaded lies in {tmp_path}" in problems[1]
    Failing.failing.clear()
    uploads_to("failing://other", tmp_path).bring()
    assert "t/result.json" in remembered("other")
    assert len(uploads_to("failing://third", tmp_path).finish([], is_ended=lambda: True)) == 2


@pytest.mark.forges_logs
def test_second_of_two_attempts_from_two_machines_is_reported(stores: None, tmp_path: Path) -> None:
    """Nothing is overwritten, there or here."""
    uploads_to("memory://run", finished(tmp_path / "a" / "t").parent).bring()
    there = remembered("run")
    own = finished(tmp_path / "b" / "t", calls=4, answer="mine")
    before = files_below(own)
    with pytest.raises(UsageError, match=r"nothing was run: t: memory://run: attempt 1 of t is there already"):
        uploads_to("memory://run", own.parent).bring()
    assert (remembered("run"), files_below(own)) == (there, before)
    own = finished(tmp_path / "c" / "t", 2, calls=4, answer="mine")
    with pytest.raises(UsageError, match="t has another result than that of attempt 2"):
        uploads_to("memory://run", own.parent).bring()
    assert remembered("run").items() >= there.items()


def test_two_names_are_the_batch_own(stores: None, tmp_path: Path) -> None:
    for name in ("inputs", "reports"):
        with pytest.raises(UsageError, match=f"no task may be called '{name}'"):
            Uploads(Results.at("memory://run"), str(tmp_path), [Task(id=name, prompt="x")])

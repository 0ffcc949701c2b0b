"""`harness run --task FILE --out DIR`: one task in a fresh folder, its changes in a patch, done once."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from batch_scene import POLICY, SECONDS, add_gate, applied, git, repository, serving, until
from process_scene import alive, sleep_token
from program import Done, Program
from rows import all_rows
from run_scene import processes_in

from harness.errors import UsageError
from harness.log.reader import read_log
from harness.plugins.fleet.batch.sources import make_work_folder
from harness.plugins.fleet.batch.task import read_tasks, task_of
from harness.plugins.fleet.batch.task_folder import Lease, is_held
from harness.session.work_folders.changes import CHANGES, IGNORED, Changes, take_changes
from harness.session.work_folders.git_runner import programs_of
from harness.session.work_folders.work_folder import WorkFolder
from harness.session.work_folders.worktree import remove_work_folder

token = pytest.fixture(sleep_token)
BAD = [
    pytest.param('["a"]', "must be an object (id, prompt), not a list", id="a list"),
    pytest.param("{", "it is not JSON", id="torn"),
    pytest.param('{"id": "a", "prompt": "p", "polcy": "x"}', "did you mean policy?", id="an unknown key"),
    pytest.param('{"id": "a"}', "lacks the field prompt", id="no prompt"),
    pytest.param('{"id": "a", "prompt": " "}', "prompt: must not be empty", id="an empty prompt"),
    pytest.param('{"id": "a", "prompt": "\\ud800"}', "lone surrogate", id="a lone surrogate"),
    pytest.param('{"id": "a", "prompt": "p", "id": "b"}', 'duplicate key "id"', id="a key twice"),
    pytest.param('{"id": "..", "prompt": "p"}', "id: must be 1 to 64", id="a folder above"),
    pytest.param('{"id": "a/b", "prompt": "p"}', "id: must be 1 to 64", id="a path"),
    pytest.param('{"id": "summary.json", "prompt": "p"}', "a file that a batch writes", id="a name of ours"),
    pytest.param('{"id": 7, "prompt": "p"}', "id: must be 1 to 64", id="a number for a name"),
    pytest.param('{"id": "a", "prompt": "p", "max_turns": true}', "max_turns: must be a whole", id="true turns"),
    pytest.param('{"id": "a", "prompt": "p", "max_cost": NaN}', "NaN is not a JSON number", id="no number"),
    pytest.param('{"id": "a", "prompt": "p", "max_seconds": 0}', "max_seconds: must be", id="no time"),
    pytest.param('{"id": "a", "prompt": "p", "policy_sha256": "12"}', "policy_sha256: must be", id="no digest"),
    pytest.param('{"id": "a", "prompt": "p", "var": {"x": 1}}', "var: 'x': must be a string", id="a number for a text"),
    pytest.param('{"id": "a", "prompt": null}', "prompt: must be a string, not null", id="null"),
]  # fmt: skip


@all_rows(("text", "told"), BAD)
def test_invalid_task_is_refused_with_place_and_key(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=r"^tasks\.jsonl:3: ") as refused:
        task_of(text.encode(), "tasks.jsonl:3")
    assert told in str(refused.value)


def test_order_of_keys_does_not_change_a_task() -> None:
    one = task_of(b'{"id": "a", "prompt": "p", "max_turns": 3}', "x")
    other = task_of(b'{"max_turns": 3, "prompt": "p", "id": "a"}', "x")
    assert (one.sha256, one.file_fields) == (other.sha256, {"id": "a", "prompt": "p", "max_turns": 3})


@all_rows(
    ("text", "told"),
    [
        ('{"id": "a", "prompt": "p"}\n\n{"id": "a", "prompt": "q"}\n', "two tasks are called 'a'"),
        ('{"id": "a", "prompt": "p"}\n{"id": "b"}\n', ":2: lacks the field prompt"),
        ("\n", "no tasks; expected"),
    ],
)
def test_a_file_of_tasks_is_refused_as_a_whole(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_tasks(str(path))
    assert told in str(refused.value)


class Scene:
    """A repository, a task file and an output folder, and the program that does the task."""

    def __init__(self, program: Program, url: str, folder: Path) -> None:
        self.program = program
        self.repository = repository(folder / "repository")
        self.out = folder / "out"
        self.file = folder / "task.json"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self.url = url

    def write(self, prompt: str, **more: object) -> None:
        self.file.write_text(json.dumps({"id": "one", "prompt": prompt, "cwd": str(self.repository), **more}))

    def words(self, *more: str) -> list[str]:
        own = ["run", "--task", str(self.file), "--out", str(self.out), "--policy", str(self.policy)]
        return [*own, "--base-url", self.url, "--model", "m", *more]

    def run(self, *more: str) -> Done:
        return self.program.run(*self.words(*more))

    def worktrees(self) -> int:
        return len(git(self.repository, "worktree", "list").splitlines())

    def json(self, name: str) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.out / name).read_text())
        return found

    def log(self, attempt: int) -> Path:
        return self.out / "attempts" / str(attempt) / "log.jsonl"

    def verified(self, attempt: int) -> int:
        return self.program.run("audit", "verify", str(self.log(attempt))).code


@pytest.fixture
def made(program: Program, tmp_path: Path) -> Callable[[str], Scene]:
    program.environment["OPENAI_API_KEY"] = "sk-none"
    return lambda url: Scene(program, url, tmp_path)


def test_a_task_is_done_in_a_worktree_and_its_changes_are_a_patch(made: Callable[[str], Scene], tmp_path: Path) -> None:
    with serving() as (url, player):
        scene = made(url)
        scene.write("write new.txt hello ;; bash cp a.txt copy.txt\nbash cat .git")
        objects = git(scene.repository, "count-objects")
        first = scene.run("--output", "json")
        second = scene.run("--output", "json", "-q")
    assert (first.code, second.code, len(player.prompts)) == (7, 7, 1), first.err
    assert json.loads(first.out) == scene.json("result.json")
    assert second.out == ""
    work = scene.json("work.json")
    assert (work["kind"], work["kept"], work["attempt"], work["lost"]) == ("worktree", None, 1, [])
    clone = applied(scene.repository, scene.out / CHANGES, tmp_path / "clone")
    assert ((clone / "new.txt").read_text(), (clone / "copy.txt").read_text()) == ("hello\n", "one\n")
    # Nothing of it is left in the repository: no worktree, no objects, no change.
    assert (scene.worktrees(), git(scene.repository, "count-objects")) == (1, objects)
    assert git(scene.repository, "status", "--porcelain") == ""
    assert sorted(os.listdir(scene.out / "attempts" / "1")) == ["log.jsonl", "place.json"]
    assert scene.verified(1) == 0
    assert stat.S_IMODE(scene.out.stat().st_mode) == 0o700


def test_workspace_is_the_named_folder_at_the_named_revision(
    made: Callable[[str], Scene],
) -> None:
    with serving() as (url, _):
        scene = made(url)
        (scene.repository / "sub" / "b.txt").write_text("later\n")
        git(scene.repository, "commit", "--quiet", "-am", "two")
        prompt = "bash cp b.txt c.txt"
        scene.write(prompt, cwd=str(scene.repository / "sub"), revision="HEAD~1")
        assert scene.run().code == 0
    patch = (scene.out / CHANGES).read_text()
    assert "+++ b/sub/c.txt" in patch
    assert "+two" in patch


def test_folder_without_a_repository_is_copied(made: Callable[[str], Scene], tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "link").symlink_to("a.txt")
    os.mkfifo(folder / "pipe")
    with serving() as (url, _):
        scene = made(url)
        scene.write("write a.txt two ;; bash cp link c.txt", cwd=str(folder))
        done = scene.run()
        assert done.code == 0  # a file that was not read is not written over: the patch holds the other alone
    assert sorted(os.listdir(folder)) == ["a.txt", "link", "pipe"]
    assert (folder / "a.txt").read_text() == "one\n"
    assert scene.json("work.json")["kind"] == "copy"
    assert "left out of the copy" in done.err
    assert "+++ b/c.txt" in (scene.out / CHANGES).read_text()
    assert sorted(os.listdir(scene.out / "attempts" / "1")) == ["log.jsonl", "place.json"]


def test_a_folder_that_is_too_large_is_not_copied(made: Callable[[str], Scene], tmp_path: Path) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    with open(folder / "sparse", "wb") as file:
        file.truncate(600 << 20)
    scene = made("http://127.0.0.1:9/v1")
    scene.write("write a b", cwd=str(folder))
    done = scene.run()
    assert (done.code, "too large to be copied" in done.err) == (2, True)
    assert os.listdir(scene.out / "attempts" / "1") == ["place.json"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param({"revision": "nowhere"}, "unknown commit 'nowhere'", id="a revision that is not there"),
        pytest.param({"revision": "--upload-pack=x"}, "unknown commit", id="a revision that looks like a flag"),
        pytest.param({"policy": "ci"}, "a task does not change the policy", id="another policy"),
        pytest.param({"policy_sha256": "0" * 64}, "its SHA-256 is", id="another content of the policy"),
        pytest.param({"cwd": "/nowhere"}, "not an existing folder", id="a folder that is not there"),
        pytest.param({"var": {"x": "y"}}, "does not occur", id="a variable without a place"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(
    made: Callable[[str], Scene], more: dict[str, object], told: str
) -> None:
    scene = made("http://127.0.0.1:9/v1")
    scene.write("write a b", **more)
    done = scene.run()
    assert (done.code, told in done.err) == (2, True), done.err
    assert scene.worktrees() == 1


def test_flags_that_a_task_answers_are_refused(made: Callable[[str], Scene]) -> None:
    scene = made("http://127.0.0.1:9/v1")
    scene.write("write a b")
    with_log = scene.run("--log", "x.jsonl")
    alone = scene.program.run("run", "--task", str(scene.file))
    assert (with_log.code, "--log cannot be given" in with_log.err) == (2, True)
    assert (alone.code, "belong together" in alone.err) == (2, True)


def test_two_starts_never_run_one_task_together(made: Callable[[str], Scene]) -> None:
    scene = made("http://127.0.0.1:9/v1")
    scene.write("write a b")
    scene.out.mkdir()
    with open(scene.out / "lock", "w") as held:
        held.write("4711\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        done = scene.run()
    assert (done.code, "is being run by process 4711" in done.err) == (2, True)
    assert os.listdir(scene.out) == ["lock"]


def test_folder_belongs_to_one_task_with_its_settings(made: Callable[[str], Scene]) -> None:
    with serving() as (url, player):
        scene = made(url)
        scene.write("write a b")
        assert scene.run("--max-turns", "9").code == 0
        other_settings = scene.run("--max-turns", "8")
        scene.write("write a c")
        other_task = scene.run("--max-turns", "9")
    assert (other_settings.code, "max_turns 9, and 8 is asked for now" in other_settings.err) == (2, True)
    assert (other_task.code, "belongs to another task (prompt differ)" in other_task.err) == (2, True)
    assert len(player.prompts) == 1


def test_a_log_that_was_changed_is_not_hidden_by_a_new_attempt(made: Callable[[str], Scene]) -> None:
    with serving() as (url, player):
        scene = made(url)
        scene.write("write a b")
        assert scene.run().code == 0
        text = scene.log(1).read_text()
        lines = text.splitlines(keepends=True)
        scene.log(1).write_text("".join(lines[:-1]))
        cut = scene.run()
        scene.log(1).unlink()
        gone = scene.run()
        scene.log(1).write_text(text)
        assert scene.run().code == 0
    assert (cut.code, gone.code, len(player.prompts)) == (8, 8, 1)
    assert "It is not run again" in cut.err


def test_a_task_that_could_not_be_done_is_tried_again_in_a_new_attempt(made: Callable[[str], Scene]) -> None:
    with serving() as (url, player):
        scene = made(url)
        scene.write("write a b")
        player.refusing = True
        failed = scene.run()
        player.refusing = False
        assert (failed.code, scene.json("result.json")["exit_code"]) == (6, 6)
        (scene.out / IGNORED).write_text("what the first attempt left")
        assert scene.run().code == 0
    assert not (scene.out / IGNORED).exists()
    assert (scene.json("work.json")["attempt"], scene.verified(1), scene.verified(2)) == (2, 0, 0)


def test_after_a_kill_the_next_start_cleans_up_and_does_the_task(made: Callable[[str], Scene], tmp_path: Path) -> None:
    with serving() as (url, player):
        scene = made(url)
        add_gate(scene.repository, tmp_path / "go")
        scene.write("write a b\nbash python3 s.py")
        started = scene.program.start(*scene.words())
        worktree = scene.out / "attempts" / "1" / "worktree"
        until(lambda: any("s.py" in line for line in processes_in(worktree)))
        assert scene.worktrees() == 2
        started.send_signal(signal.SIGKILL)
        started.communicate()
        until(lambda: not processes_in(worktree))
        (tmp_path / "go").touch()
        again = scene.run()
    assert again.code == 0, again
    assert len(player.prompts) == 2
    assert (scene.worktrees(), sorted(os.listdir(scene.out / "attempts" / "1"))) == (1, ["log.jsonl", "place.json"])
    assert (scene.verified(1), scene.verified(2)) == (3, 0)  # the first never said that it ended
    assert "+++ b/a" in (scene.out / CHANGES).read_text()


def test_kept_folders_stay(made: Callable[[str], Scene]) -> None:
    with serving() as (url, _):
        scene = made(url)
        scene.write("write a b")
        for attempt, names in (("1", ("kept",)), ("2", ())):
            (scene.out / "attempts" / attempt / "worktree").mkdir(parents=True)
            for name in names:
                (scene.out / "attempts" / attempt / name).write_text("")
        assert scene.run().code == 0
    assert sorted(str(path.relative_to(scene.out)) for path in scene.out.glob("attempts/*/worktree")) == [
        "attempts/1/worktree"
    ]
    assert scene.json("work.json")["attempt"] == 3


@pytest.mark.parametrize(
    ("folder", "target"),
    [
        pytest.param("sub", "/", id="out of it"),
        pytest.param("sub", "../../../../repository", id="to the repository"),
        pytest.param("sub", "other", id="inside"),
        pytest.param("sub/in", "other", id="on the way"),
    ],
)
def test_a_folder_that_the_revision_made_a_link_is_not_worked_in(
    made: Callable[[str], Scene], folder: str, target: str
) -> None:
    scene = made("http://127.0.0.1:9/v1")
    (scene.repository / "other" / "in").mkdir(parents=True)
    (scene.repository / "other" / "in" / "x").write_text("x\n")
    (scene.repository / "sub" / "b.txt").unlink()
    (scene.repository / "sub").rmdir()
    (scene.repository / "sub").symlink_to(target)
    git(scene.repository, "add", "-A")
    git(scene.repository, "commit", "--quiet", "-m", "a link")
    (scene.repository / "sub").unlink()
    (scene.repository / "sub" / "in").mkdir(parents=True)
    scene.write("write planted x", cwd=str(scene.repository / folder))
    done = scene.run()
    told = f"{folder} is a link or below one" if folder == "sub" or target == "other" else ""
    assert (done.code, told in done.err, scene.worktrees()) == (2, True, 1), done.err


def test_task_cannot_name_a_policy_without_the_flag(made: Callable[[str], Scene]) -> None:
    scene = made("http://127.0.0.1:9/v1")
    scene.write("write a b", policy=str(scene.policy))
    done = scene.program.run("run", "--task", str(scene.file), "--out", str(scene.out), "--model", "m")
    assert (done.code, "readonly (the default) holds" in done.err) == (2, True), done.err


# Without its result.json or work.json a task is not done, and is done anew.
@pytest.mark.parametrize(
    ("name", "gone"), [("result.json", False), (CHANGES, False), ("work.json", False), (CHANGES, True)]
)
def test_changed_results_of_a_finished_task_are_rejected(made: Callable[[str], Scene], name: str, gone: bool) -> None:
    with serving() as (url, player):
        scene = made(url)
        scene.write("bash curl x\nwrite a b")
        assert scene.run().code == 7
        path = scene.out / name
        text = path.read_text()
        path.unlink()
        if not gone:
            path.write_text(
                text.replace('"exit_code": 7', '"exit_code": 0') if name != CHANGES else text.replace("+b", "+c")
            )
        again = scene.run()
        path.write_text(text)
        assert scene.run().code == 7
    assert (again.code, len(player.prompts)) == (8, 1)
    assert "what it left is not what was written" in again.err


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_deleted_folder_is_started_again_immediately(made: Callable[[str], Scene], tmp_path: Path, how: str) -> None:
    with serving() as (url, player):
        scene = made(url)
        scene.write("write a b")
        assert scene.run().code == 0
        git(scene.repository, "worktree", "add", "--quiet", "--detach", str(scene.out / "attempts" / "1" / "worktree"))
        if how == "moved":
            scene.out.rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(scene.out)
        again = scene.run()
    assert (again.code, len(player.prompts), scene.json("work.json")["attempt"]) == (0, 2, 2), again.err
    assert scene.worktrees() == 1


def test_a_limit_of_time_ends_a_task(made: Callable[[str], Scene], token: str) -> None:
    with serving() as (url, _):
        scene = made(url)
        scene.write(f"bash sleep {token}")
        done = scene.run("--max-seconds", "1")
    assert (done.code, scene.json("result.json")["exit_code"]) == (4, 4), done
    assert alive(token) == []


@pytest.mark.parametrize("how", ["lock removed", "folder moved", "folder replaced"])
def test_task_that_lost_its_folder_writes_and_removes_no_files(
    made: Callable[[str], Scene], tmp_path: Path, how: str
) -> None:
    with serving() as (url, _):
        scene = made(url)
        add_gate(scene.repository, tmp_path / "go")
        scene.write("write a b\nbash python3 s.py")
        started = scene.program.start(*scene.words())
        until((scene.out / "attempts" / "1" / "worktree" / "a").exists)
        if how == "lock removed":
            (scene.out / "lock").unlink()
            second = scene.run()  # the folder is locked too
            assert (second.code, "is being run by process" in second.err) == (2, True), second.err
        else:
            scene.out.rename(tmp_path / "elsewhere")
        if how == "folder replaced":
            (scene.out).mkdir()
        (tmp_path / "go").touch()
        _, err = started.communicate(timeout=SECONDS)
    assert (started.returncode, b"was moved, removed or replaced" in err) == (1, True), err
    there = scene.out if how == "lock removed" else tmp_path / "elsewhere"
    assert (there / "attempts" / "1" / "worktree" / "a").exists()
    assert not (there / "result.json").exists()
    assert how != "folder replaced" or os.listdir(scene.out) == []


def test_output_below_a_link_leaves_no_worktree_behind(made: Callable[[str], Scene], tmp_path: Path) -> None:
    with serving() as (url, _):
        scene = made(url)
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        scene.out = tmp_path / "link" / "out"
        scene.write("write a b")
        assert scene.run().code == 0
    assert scene.worktrees() == 1


def test_leftovers_of_a_killed_task_are_removed_at_the_next_start(made: Callable[[str], Scene]) -> None:
    with serving() as (url, _):
        scene = made(url)
        scene.write("write a b")
        assert scene.run().code == 0
        left = scene.out / "attempts" / "1" / "worktree"
        git(scene.repository, "worktree", "add", "--quiet", "--detach", str(left))
        assert (scene.run().code, left.exists(), scene.worktrees()) == (0, False, 1)


def test_task_without_a_patch_is_not_done(made: Callable[[str], Scene]) -> None:
    with serving() as (url, _):
        scene = made(url)
        (scene.repository / "s.py").write_text("import os\nos.unlink('.gitignore')\nos.mkfifo('.gitignore')\n")
        git(scene.repository, "add", "-A")
        git(scene.repository, "commit", "--quiet", "-m", "script")
        scene.write("bash python3 s.py")
        done = scene.run()
    result = scene.json("result.json")
    assert (done.code, result["exit_code"], scene.json("work.json")["changes"]) == (1, 1, None), done.err
    last = list(read_log(str(scene.out / "attempts" / "1" / "log.jsonl")))[-1]
    assert (last["kind"], last["exit_code"], last["stop"]) == ("session_ended", 1, "completed")
    assert "git would wait for it" in str(result["detail"])
    assert (scene.out / "attempts" / "1" / "worktree").exists()


LOST = [
    pytest.param(
        ("core.fileMode", "false"),
        "import os\nos.chmod('a.txt', 0o755)\n",
        "old mode 100644\nnew mode 100755",
        id="modes where the repository says that they mean nothing",
    ),
    pytest.param(
        ("core.excludesFile", ".myignore"),
        "import os\nos.mkfifo('.myignore')\nopen('a.txt', 'w').write('new\\n')\n",
        "+new",
        id="a pipe where the configuration has a file of the worktree read",
    ),
]


@pytest.mark.parametrize(("setting", "script", "told"), LOST)
def test_repository_settings_never_hide_a_change(
    made: Callable[[str], Scene], setting: tuple[str, str], script: str, told: str
) -> None:
    with serving() as (url, _):
        scene = made(url)
        (scene.repository / "a.txt").write_text("old\n")
        (scene.repository / "s.py").write_text(script)
        git(scene.repository, "add", "-A")
        git(scene.repository, "commit", "--quiet", "-m", "script")
        git(scene.repository, "config", *setting)
        scene.write("bash python3 s.py")
        done = scene.run()
    assert done.code == 0, done.err
    assert told in (scene.out / "changes.patch").read_text()


def test_lease_is_taken_despite_constant_queries(tmp_path: Path) -> None:
    asking = [True]

    def ask() -> None:
        while asking:
            is_held(str(tmp_path))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(100):
            with Lease(str(tmp_path), seconds=1000.0):
                pass
    finally:
        asking.clear()
        thread.join()


BOUNDED = """
import signal, sys, time
from harness.session.signals import bounded_by_signals
try:
    with bounded_by_signals(float(sys.argv[1])):
        before = signal.getsignal(signal.SIGTERM)
        print("in", flush=True)
        while signal.getsignal(signal.SIGTERM) is before:
            time.sleep(0.01)
        print("goes on", flush=True)
        while True:
            time.sleep(1000)
except KeyboardInterrupt:
    print("ended")
"""


@all_rows("second", [True, False], ids=["a second signal", "the time"])
def test_leftover_processes_of_a_run_are_ended(second: bool) -> None:
    seconds = "1000000" if second else "0.5"
    process = subprocess.Popen([sys.executable, "-c", BOUNDED, seconds], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"in\n"
    process.send_signal(signal.SIGTERM)
    if second:
        assert process.stdout.readline() == b"goes on\n"
        process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=SECONDS)
    assert out.endswith(b"ended\n")
    assert process.returncode == 0


# What is done to the folder, on the disk itself. All of it must be in the two patches, or the folder is kept.


def _age(root: Path) -> None:
    """Give a file a time of long ago, which git then relies on."""
    os.utime(root / "a.txt", (1_700_000_000, 1_700_000_000))


def _odd_names(root: Path) -> None:
    (root / "line\nend").write_bytes(b"1")
    (root / ":!magic").write_bytes(b"2")
    (root / "caf\udce9").write_bytes(b"3")
    (root / '"quoted"').write_bytes(b"4")
    (root / "-rf").write_bytes(b"5")


def _kinds(root: Path) -> None:
    (root / "bytes").write_bytes(bytes(range(256)) * 50)
    (root / "no end").write_bytes(b"a\r\nb")
    (root / "link").symlink_to("/nowhere")
    (root / "a.txt").chmod(0o755)
    (root / "empty").write_bytes(b"")


def _swapped(root: Path) -> None:
    (root / "sub" / "b.txt").unlink()
    (root / "sub").rmdir()
    (root / "sub").write_text("a file\n")
    (root / "a.txt").unlink()
    (root / "a.txt").mkdir()
    (root / "a.txt" / "in").write_text("x\n")


def _same_size_and_time(root: Path) -> None:
    path = root / "a.txt"
    before = path.stat()
    path.write_text("ONE\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _ignored(root: Path) -> None:
    (root / "kept.log").write_text("ignored\n")
    (root / ".gitignore").write_text("*\n")
    (root / "hidden").write_text("by a new rule\n")


@pytest.mark.parametrize("change", [_odd_names, _kinds, _swapped, _same_size_and_time, _ignored])
@pytest.mark.parametrize("is_repository", [True, False], ids=["worktree", "copy"])
def test_patches_contain_every_change(tmp_path: Path, change: Callable[[Path], None], is_repository: bool) -> None:
    place = _Place(tmp_path, is_repository=is_repository, configure=_age)
    change(place.root)
    changes = place.take()
    assert (changes.lost, changes.patch is not None) == ((), True)
    clone = place.clone()
    for name in (CHANGES, IGNORED):
        patch = place.out / name
        if patch.exists() and patch.stat().st_size:
            git(clone, "apply", "--binary", str(patch))
    assert _contents(clone) == _contents(place.root)
    assert place.forgotten() == []


def _a_repository(root: Path) -> None:
    repository(root / "inner")


def _a_pipe(root: Path) -> None:
    os.mkfifo(root / "inner")


def _own_data(root: Path) -> None:
    (root / ".git").unlink(missing_ok=True)
    (root / ".git").mkdir()
    (root / ".git" / "only").write_text("precious\n")


def _own_file(root: Path) -> None:
    (root / ".git").unlink(missing_ok=True)
    (root / ".git").write_text("precious\n")


def _other_place(root: Path) -> None:
    (root / ".git").write_text("gitdir: precious\n")


def _attributes(root: Path) -> None:
    (root / ".gitattributes").write_text("* text=auto ident\n")
    (root / "windows").write_bytes(b"a\r\n")


def _encoding(root: Path) -> None:
    (root / ".gitattributes").write_text("*.u working-tree-encoding=UTF-16\n")
    (root / "bad.u").write_bytes(b"\xff\xfe\x00")


def _space(root: Path) -> None:
    (root / "d ").mkdir()
    (root / "d " / "x").write_text("")


def _deep(root: Path) -> None:
    here = os.open(root, os.O_RDONLY)
    for _ in range(2_500):
        os.mkdir("dd", dir_fd=here)
        deeper = os.open("dd", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


WORKTREE, COPY = True, False


@all_rows(
    ("change", "is_repository", "told"),
    [
        pytest.param(_a_repository, WORKTREE, "the data of the repository in inner", id="a repository"),
        pytest.param(_a_repository, COPY, "the data of the repository in inner", id="a repository in a copy"),
        pytest.param(_a_pipe, WORKTREE, "inner, which is neither", id="a pipe"),
        pytest.param(_own_data, WORKTREE, "the data of the repository in its top folder", id="its own data"),
        pytest.param(_own_data, COPY, "the data of the repository in its top folder", id="its own data in a copy"),
        pytest.param(_own_file, WORKTREE, "the data of the repository in its top folder", id="a file called .git"),
        pytest.param(
            _other_place, WORKTREE, "the data of the repository in its top folder", id="a file that leads away"
        ),
        pytest.param(_attributes, WORKTREE, "git keeps other bytes of: windows", id="line ends"),
        pytest.param(_encoding, WORKTREE, "bad.u", id="an encoding"),
        pytest.param(_deep, WORKTREE, "which is too deep", id="very deep"),
    ],
)
def test_changes_outside_the_patch_are_named(
    tmp_path: Path, change: Callable[[Path], None], is_repository: bool, told: str
) -> None:
    place = _Place(tmp_path, is_repository=is_repository)
    (place.root / "new").write_text("new\n")
    change(place.root)
    changes = place.take()
    assert (len(changes.lost), told in changes.lost[0]) == (1, True), changes.lost
    # All else is in the patch.
    assert "+++ b/new" in (place.out / CHANGES).read_text()
    assert place.forgotten() == []


@all_rows("name", [".gitignore", ".gitattributes"])
def test_git_is_not_left_waiting_for_a_pipe(tmp_path: Path, name: str) -> None:
    place = _Place(tmp_path, is_repository=True)
    (place.root / name).unlink(missing_ok=True)
    os.mkfifo(place.root / name)
    (place.root / "new").write_text("new\n")
    changes = place.take()
    assert (changes.patch, f"no patch could be made: {name} is neither" in changes.lost[0]) == (None, True)


def test_a_patch_that_git_would_not_apply_is_none(tmp_path: Path) -> None:
    place = _Place(tmp_path, is_repository=True)
    _space(place.root)
    changes = place.take()
    assert (changes.patch, "git could not apply changes.patch" in changes.lost[0]) == (None, True), changes.lost
    assert not list(place.out.glob("*.patch*"))


def test_replaced_folder_gives_no_patch_of_deletions(tmp_path: Path) -> None:
    place = _Place(tmp_path, is_repository=True)
    place.root.rename(tmp_path / "moved")
    place.root.mkdir()
    changes = place.take()
    assert (changes.patch, "is not the folder that was made" in changes.lost[0]) == (None, True)


def test_very_large_changes_give_no_patch(tmp_path: Path) -> None:
    place = _Place(tmp_path, is_repository=True)
    os.truncate(place.root / "a.txt", 300 << 20)
    changes = place.take()
    assert (changes.patch, "the new and changed files have 314,572," in changes.lost[0]) == (None, True), changes.lost


def test_copy_is_byte_exact_and_excludes_earlier_output(tmp_path: Path) -> None:
    """Line ends as they are, whatever .gitattributes say; repositories in it that were not changed are not lost."""

    def more(folder: Path) -> None:
        (folder / "windows").write_bytes(b"1\r\n2\r\n")
        (folder / ".gitattributes").write_text("* text=auto ident\n")
        repository(folder / "inner")
        (folder / "out" / "t0").mkdir(parents=True)
        (folder / "out" / "t0" / "task.json").write_text("{}")

    place = _Place(tmp_path, is_repository=False, configure=more, out="source/out")
    assert not (place.root / "out" / "t0").exists()
    with (place.root / "windows").open("ab") as file:
        file.write(b"3\r\n")
    changes = place.take()
    assert changes.lost == ()
    clone = place.clone()
    git(clone, "apply", "--binary", str(place.out / CHANGES))
    assert (clone / "windows").read_bytes() == b"1\r\n2\r\n3\r\n"


def test_a_file_in_the_folder_of_a_submodule_does_not_delete_it(tmp_path: Path) -> None:
    def with_module(folder: Path) -> None:
        commit = git(folder, "rev-parse", "HEAD").strip()
        (folder / ".gitmodules").write_text('[submodule "vendor"]\n\tpath = vendor\n\turl = ../v\n')
        git(folder, "add", "-A")
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendor")
        git(folder, "commit", "--quiet", "-m", "module")

    place = _Place(tmp_path, is_repository=True, configure=with_module)
    assert any("submodules are empty" in note for note in place.fresh.notes)
    (place.root / "vendor" / "new").write_text("x\n")
    changes = place.take()
    assert (changes.lost, (place.out / CHANGES).read_text()) == (
        ("new in the folder of a submodule is: vendor/new",),
        "",
    )


def test_programs_named_by_the_repository_are_not_run(tmp_path: Path) -> None:
    """Hooks, filters, external diffs, textconv and fsmonitor of the repository; and those of a `.git` put in the folder."""
    marker = tmp_path / "marker"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho $0 $* >> {shlex.quote(str(marker))}\ncat\n")
    evil.chmod(0o755)
    place = _Place(tmp_path, is_repository=True, configure=lambda folder: _configured(folder, evil))
    assert any("evil" in note for note in place.fresh.notes)
    hooks = programs_of(place.fresh.git_dir, place.environment).hooks
    assert {"evil.post-checkout", "evil.post-index-change", "evil.reference-transaction"} <= {*hooks}
    (place.root / "a.txt").write_text("changed\n")
    # As a hostile run might: another repository's data in the place of the worktree's own.
    other = repository(tmp_path / "other")
    _configured(other, evil)
    (place.root / ".git").unlink()
    (place.root / ".git").write_text(f"gitdir: {other}/.git\n")
    changes = place.take()
    assert changes.lost == ("the data of the repository in its top folder",)
    assert "+changed" in (place.out / CHANGES).read_text()
    assert place.forgotten() == []
    assert not marker.exists(), marker.read_text()


def _configured(folder: Path, evil: Path) -> None:
    (folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "attributes")
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external", "core.fsmonitor"):
        git(folder, "config", key, shlex.quote(str(evil)))
    git(folder, "config", "filter.evil.required", "true")
    for event in ("post-checkout", "post-index-change", "reference-transaction"):  # git 2.54 runs these
        git(folder, "config", f"hook.evil.{event}.command", shlex.quote(str(evil)))
        git(folder, "config", f"hook.evil.{event}.event", event)
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        path = folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(evil.read_bytes())
        path.chmod(0o755)


class _Place:
    """A fresh folder without a run in it."""

    def __init__(
        self,
        folder: Path,
        *,
        is_repository: bool,
        configure: Callable[[Path], None] = lambda _: None,
        out: str = "out",
    ) -> None:
        self.environment = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        self._folder = folder
        self.source = repository(folder / "source")
        configure(self.source)
        if not is_repository:
            subprocess.run(["mv", str(self.source / ".git"), str(folder / "data")], check=True)
        self.out = folder / out
        self._attempt = self.out / "attempts" / "1"
        self._attempt.mkdir(parents=True)
        self.fresh: WorkFolder = make_work_folder(
            str(self._attempt), str(self.source), None, str(self.out), self.environment
        )
        self.root = Path(self.fresh.root)

    def take(self) -> Changes:
        return take_changes(self.fresh, str(self._attempt), str(self.out), self.environment)

    def clone(self) -> Path:
        """Return a copy of what the folder held at first, with a repository of its own."""
        clone = self._folder / "clone"
        subprocess.run(["cp", "-a", str(self.source), str(clone)], check=True)
        if not (clone / ".git").exists():
            git(clone, "init", "--quiet")
        return clone

    def forgotten(self) -> list[str]:
        """Remove the folder; return what is left of it beside the note, and what the repository still knows."""
        assert remove_work_folder(str(self._attempt), self.environment) == ""
        worktrees = self.source / ".git" / "worktrees"
        return [*(name for name in os.listdir(self._attempt) if name != "place.json"), *_listed(worktrees)]


def _listed(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


def _contents(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            path = Path(folder) / name
            if name == ".git":
                continue
            told = os.readlink(path) if path.is_symlink() else (path.read_bytes(), bool(path.stat().st_mode & 0o100))
            found[str(path.relative_to(root))] = told
    return found

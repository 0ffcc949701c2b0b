"""Undo of commands on real trees: only recorded paths, only as the calls left them, also after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sizes import proof_size
from undo_world import ENVIRONMENT, NO_DISK_LIMIT, snapshot, try_one

from harness.files.tree_changes import LeftOut, PathChange, PathState, TreeChanges
from harness.files.tree_undo import CallChanges, UndoPlan, UndoStep, plan_undo
from harness.files.tree_watch import TreeWatch
from harness.files.undo_journal import UndoJournal
from harness.files.undo_run import UndoResult, apply_undo, resume_undo
from harness.record import replace


class Scene:
    """A workspace with its calls."""

    def __init__(self, folder: Path, denied: Callable[[str], bool] = lambda path: False) -> None:
        self.root = os.path.join(os.path.realpath(folder), "a tree")
        os.mkdir(self.root)
        self.stores, self.journal = f"{folder}/stores", f"{folder}/journal"
        self.watch = TreeWatch(self.root, self.stores, environment=ENVIRONMENT, denied=denied, limits=NO_DISK_LIMIT)
        self.calls: list[CallChanges] = []

    def bash(self, script: str) -> None:
        subprocess.run(["bash", "-ec", script], cwd=self.root, check=True, stdin=subprocess.DEVNULL)

    def call(self, script: str) -> TreeChanges:
        noted = self.watch.note(fresh_seconds=0)
        self.bash(script)
        self.calls.append(CallChanges(call=len(self.calls) + 1, changes=noted.compared()))
        return self.calls[-1].changes

    def plan(self, *chosen: int, anyway: Sequence[str] = ()) -> UndoPlan:
        numbers = chosen or [call.call for call in self.calls]
        return plan_undo(self.root, self.calls, numbers, self.watch.store.has, anyway=anyway)

    def undo(self, *chosen: int, anyway: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        """Undo calls. Return the changed paths, and those that were not touched with their reasons."""
        plan = self.plan(*chosen, anyway=anyway)
        result = apply_undo(self.root, plan, self.watch.store, self.journal)
        untouched = (*plan.leaves, *plan.cannot, *result.untouched)
        return [one.path for one in result.changes.changes], [f"{one.path}: {one.reason}" for one in untouched]

    def text(self, path: str) -> str:
        return Path(self.root, path).read_text()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


SEEDS = range(proof_size("UNDO_TREES", 150, full=2_000))
PARTS = 5


@pytest.mark.parametrize("part", range(PARTS))
def test_random_command_lines_are_taken_back(part: int, tmp_path: Path) -> None:
    """A third plainly, a third killed at any action and resumed, a third beside a second writer."""
    for seed in SEEDS[part::PARTS]:
        try:
            try_one(seed, str(tmp_path))
        except AssertionError as error:
            pytest.fail(f"python tests/support/undo_world.py --count 1 --seed {seed}\n{str(error)[:3_000]}")


def test_calls_are_taken_back_by_number_and_all(scene: Scene) -> None:
    scene.bash("echo 0 > f; echo g > g")
    scene.call("echo 1 > f; echo new > n")
    scene.call("echo 2 > f; rm g")
    plan = scene.plan(2)
    assert ([one.path for one in plan.restores], plan.removes, plan.leaves, plan.cannot) == (["f", "g"], (), (), ())
    assert scene.undo(2) == (["f", "g"], [])
    assert (scene.text("f"), scene.text("g"), scene.text("n")) == ("1\n", "g\n", "new\n")
    assert scene.plan(2).done == ("f", "g")
    scene.calls = scene.calls[:1]
    assert scene.undo() == (["f", "n"], [])
    assert sorted(snapshot(scene.root)) == [".", "f", "g"]


def test_many_files_are_taken_back(scene: Scene) -> None:
    scene.bash("mkdir d; for n in $(seq 300); do echo $n > d/$n; done")
    before = snapshot(scene.root)
    scene.call("for n in $(seq 300); do echo new > d/new$n; done; echo 1 | tee d/[0-9]* > /dev/null; rm d/1*")
    assert len(scene.undo()[0]) == 600
    assert snapshot(scene.root) == before


def test_undo_is_a_call_that_can_be_undone(scene: Scene) -> None:
    scene.bash("mkdir -p d/e; echo 0 > d/f; ln -s f d/l; chmod 750 d/e")
    before = snapshot(scene.root)
    scene.call("rm -r d; echo file > d; chmod 600 d")
    after = snapshot(scene.root)
    result = apply_undo(scene.root, scene.plan(), scene.watch.store, scene.journal)
    assert snapshot(scene.root) == before
    scene.calls = [CallChanges(call=1, changes=TreeChanges.from_fields(result.changes.fields()))]
    assert scene.undo()[1] == []
    assert snapshot(scene.root) == after


@pytest.mark.parametrize(
    ("call", "later", "left"),
    [
        ("echo 1 > f", "echo mine > f", "f: changed after call 1"),
        ("echo 1 > f", "rm f", "f: removed after call 1"),
        ("echo 1 > f", "chmod 700 f", "f: changed after call 1"),
        ("echo 1 > new", "echo mine >> new", "new: changed after call 1"),
        ("rm f", "echo mine > f", "f: changed after call 1"),
        ("rm f", "mkdir f", "f: changed after call 1"),
        ("rm d/f", "rm -r d", "d/f: its folder no longer exists"),
        ("rm d/f", "rm -r d; ln -s . d", "d/f: its folder no longer exists"),
        ("mkdir new", "echo mine > new/f", "new: holds f"),
        ("rm -r d; echo file > d", "rm d; ln -s . d", "d: changed after call 1"),
    ],
)
def test_paths_that_others_changed_are_left(scene: Scene, call: str, later: str, left: str) -> None:
    scene.bash("echo 0 > f; mkdir d; echo 0 > d/f")
    scene.call(call)
    scene.bash(later)
    before = snapshot(scene.root)
    _, untouched = scene.undo()
    assert left in untouched
    assert snapshot(scene.root) == before


def test_left_path_is_taken_back_anyway_and_its_content_is_kept(scene: Scene) -> None:
    scene.bash("echo 0 > f")
    scene.call("echo 1 > f")
    scene.bash("echo mine > f")
    plan = scene.plan(anyway=["f"])
    result = apply_undo(scene.root, plan, scene.watch.store, scene.journal)
    assert scene.text("f") == "0\n"
    assert scene.watch.store.get(str(result.changes.changes[0].before.sha256)) == b"mine\n"


def test_change_by_a_later_call_or_between_calls_is_named(scene: Scene) -> None:
    scene.bash("echo 0 > f; echo 0 > g")
    scene.call("echo 1 > f; echo 1 > g")
    scene.call("echo 2 > f")
    assert scene.undo(1) == (["g"], ["f: changed by call 2"])
    scene.bash("echo mine > f")
    scene.call("echo 3 > f")
    assert scene.undo(1, 2, 3) == ([], ["f: changed between call 2 and call 3"])


def test_calls_at_the_same_time_are_taken_back_together(scene: Scene) -> None:
    scene.bash("echo 0 > f")
    first, second = scene.watch.note(), scene.watch.note()
    scene.bash("echo 1 > f; echo 1 > g")
    for number, noted in ((1, first), (2, second)):
        scene.calls.append(CallChanges(call=number, changes=noted.compared()))
    assert scene.undo(2)[1] == ["f: changed by call 1", "g: changed by call 1"]
    assert scene.undo(1, 2) == (["f", "g"], [])
    assert (scene.text("f"), os.path.exists(f"{scene.root}/g")) == ("0\n", False)


def test_unwatched_and_denied_paths_cannot_be_taken_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path, denied=lambda path: path == ".env")
    scene.bash("mkdir node_modules; echo 0 > .env; echo 0 > grows")
    scene.call("touch node_modules/x; echo 1 > .env; truncate -s 11000000 large grows; mkfifo new")
    before = snapshot(scene.root)
    assert scene.undo() == (
        [],
        [
            "large: over 10 MB",
            "new: special file",
            "node_modules: build folder",
            ".env: a rule denies to read it",
            "grows: over 10 MB",
        ],
    )
    assert snapshot(scene.root) == before


def test_call_with_unknown_changes_cannot_be_taken_back(scene: Scene) -> None:
    scene.calls = [CallChanges(call=1, changes=TreeChanges(problem="more than 300,000 files"))]
    assert scene.undo() == ([], [": more than 300,000 files"])


def test_pruned_content_cannot_be_taken_back(scene: Scene) -> None:
    scene.bash("echo 0 > f; echo 0 > g")
    scene.call("rm f; chmod 600 g")
    for path in Path(scene.stores).rglob("seg-*"):
        path.unlink()
    scene.watch.store.refresh()
    assert scene.undo() == (["g"], ["f: its earlier content is no longer kept"])


def test_files_of_a_database_are_taken_back_together(scene: Scene) -> None:
    scene.bash("echo 0 > app.db; echo 0 > app.db-wal")
    scene.call("echo 1 > app.db; echo 1 > app.db-wal; echo 1 > other")
    scene.bash("echo mine > app.db-wal")
    assert scene.undo() == (["other"], ["app.db: belongs to app.db-wal", "app.db-wal: changed after call 1"])


def test_hard_links_are_replaced_and_not_written_through(scene: Scene) -> None:
    scene.bash("echo 0 > f; mkdir ../outside; echo 0 > ../outside/f; ln ../outside/f linked")
    scene.call("echo 1 > linked; ln f other; chmod 600 linked")
    os.chmod(f"{scene.root}/../outside/f", 0o600)
    assert scene.undo() == (["linked", "other"], [])
    assert Path(scene.root, "../outside/f").read_text() == "1\n"
    assert os.stat(f"{scene.root}/../outside/f").st_mode & 0o777 == 0o600
    assert scene.text("linked") == "0\n"


def test_link_on_the_way_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    """A folder that is replaced by a link during the undo leads nowhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("1\n")
    scene.bash("mkdir d; echo 0 > d/f; echo 0 > d/g")
    scene.call("echo 1 > d/f; rm d/g; echo 1 > d/new")

    def pause(action: str) -> None:
        if not os.path.islink(f"{scene.root}/d"):
            os.rename(f"{scene.root}/d", f"{scene.root}/moved")
            os.symlink("../outside", f"{scene.root}/d")

    result = apply_undo(scene.root, scene.plan(), scene.watch.store, scene.journal, pause=pause)
    assert os.listdir(tmp_path / "outside") == ["f"]
    assert (tmp_path / "outside" / "f").read_text() == "1\n"
    assert len(result.untouched) >= 2


def test_file_of_another_program_is_put_back_from_a_temporary_name(scene: Scene) -> None:
    """The other program replaces the file after the undo looked at it, and right before the exchange."""
    scene.bash("echo 0 > f")
    scene.call("echo 1 > f; echo 1 > new")

    def pause(action: str) -> None:
        if action in ("put f", "rename aside new"):
            Path(scene.root, action.rpartition(" ")[2]).write_text("mine\n")

    result = apply_undo(scene.root, scene.plan(), scene.watch.store, scene.journal, pause=pause)
    assert [one.reason for one in result.untouched] == ["changed just now", "changed just now"]
    left = snapshot(scene.root)
    assert (left.pop(".")[0], left) == ("folder", dict.fromkeys(["f", "new"], ("file", 0o644, b"mine\n")))


def killed_at(scene: Scene, number: int, undo: Callable[[Callable[[str], None]], UndoResult]) -> bool:
    """Undo in a process that kills itself at an action. Return whether it got so far."""
    remaining = [number]

    def pause(action: str) -> None:
        remaining[0] -= 1
        if remaining[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        status = 1
        try:
            undo(pause)
            status = 0
        finally:
            os._exit(status)
    _, ending = os.waitpid(child, 0)
    assert os.WIFSIGNALED(ending) or os.WEXITSTATUS(ending) == 0
    return os.WIFSIGNALED(ending)


def test_undo_killed_at_each_action_is_finished(tmp_path: Path) -> None:
    number, is_killed = 0, True
    while is_killed:
        number += proof_size("UNDO_KILL_STEP", 3, full=1)
        folder = tmp_path / str(number)
        folder.mkdir()
        scene = Scene(folder)
        scene.bash(
            "mkdir -p d/e k; echo 0 > d/e/f; echo 0 > f; ln -s f l; chmod 555 d/e; chmod 500 d; echo 0 > k/f; echo 0 > m"
        )
        before = snapshot(scene.root)
        scene.call(
            "chmod 700 d d/e; rm -r d; echo 1 > f; ln -sfn g l; rm -r k; ln -s /etc k; mkdir -p n/o; echo 1 > n/o/p;"
            "chmod 600 m"
        )
        plan = scene.plan()
        is_killed = killed_at(
            scene,
            number,
            lambda pause, here=scene, plan=plan: apply_undo(
                here.root, plan, here.watch.store, here.journal, pause=pause
            ),  # type: ignore[misc]
        )
        if is_killed:
            killed_at(
                scene,
                number % 7 + 1,
                lambda pause, here=scene: resume_undo(here.journal, here.watch.store, pause=pause),  # type: ignore[misc]
            )
        if os.path.exists(scene.journal):
            assert resume_undo(scene.journal, scene.watch.store).untouched == ()
        assert snapshot(scene.root) == before, number
        subprocess.run(["chmod", "-R", "u+rwX", scene.root], check=True)
    assert number > 40


def test_running_undo_is_not_resumed_and_invalid_journals_are_rejected(tmp_path: Path) -> None:
    path, step = (
        str(tmp_path / "journal"),
        UndoStep.from_fields({"path": "f", "present": None, "goal": None, "call": 1}),
    )
    journal = UndoJournal.create(path, str(tmp_path), [step])
    with pytest.raises(BlockingIOError):
        UndoJournal.open(path)
    journal.note_ready(0)
    journal.close()
    with open(path, "ab") as file:
        file.write(b'["made", 0')
    again = UndoJournal.open(path)
    assert (again.steps, again.ready, again.made_folders) == ((step,), {0}, set())
    again.note_made(0)
    again.close()
    again = UndoJournal.open(path)
    assert again.made_folders == {0}
    again.finish()
    (tmp_path / "bad").write_text('{"version": 2}\n')
    with pytest.raises(ValueError, match="invalid journal"):
        UndoJournal.open(str(tmp_path / "bad"))


def test_paths_out_of_the_workspace_are_rejected() -> None:
    fields = {"path": "../f", "present": None, "goal": None, "call": 1}
    with pytest.raises(ValueError, match="plain path"):
        UndoStep.from_fields(fields)  # type: ignore[arg-type]
    change = PathChange(path="f", before=PathState.from_fields(None), after=PathState.from_fields(None))
    assert PathChange.from_fields(change.fields()) == change
    place = LeftOut(path="f", reason="large", size=1, is_changed=True)
    assert LeftOut.from_fields(place.fields()) == place
    with pytest.raises(ValueError, match="plain path"):
        LeftOut.from_fields(replace(place, path="/f").fields())

"""`harness batch --from swebench`: instances become tasks, and what was done becomes predictions that can be evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_scene import POLICY, git
from program import Done, Program
from responses_server import ServerOfBothApis
from rows import all_rows
from swebench_scene import BINARY, IDLE, SECRETS, WRONG, Mender, instances, is_resolved

from harness.errors import UsageError
from harness.plugins.fleet.batch.outcome import TaskEnd, TaskOutcome
from harness.plugins.fleet.batch.swebench import (
    is_predictions,
    predictions_name,
    read_instances,
    text_patch,
    write_predictions,
)

ONE = {
    "instance_id": "sympy__sympy-20590",
    "repo": "sympy/sympy",
    "base_commit": "cffd4e0f86fefd4802349a9f9b19ed70934ea354",
    "problem_statement": "Symbol instances have {__dict__} since 1.7?\n\nThis is a {{bug}}.",
}


class Scene:
    """Ten instances, their repositories, and the program that does them."""

    def __init__(self, program: Program, folder: Path, url: str, player: Mender) -> None:
        self.program = program
        self.player = player
        self.folder = folder
        self.repos = folder / "repos"
        self.instances = instances(self.repos)
        self.file = folder / "instances.jsonl"
        self.file.write_text("".join(json.dumps(one) + "\n" for one in self.instances))
        self.out = folder / "out"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self._url = url

    def run(self, *more: str) -> Done:
        own = ["batch", "--from", "swebench", str(self.file), "--repos", f"{self.repos}/", "--out", str(self.out)]
        return self.program.run(*own, "--policy", str(self.policy), "--base-url", self._url, "--model", "org/m", *more)

    def predictions(self, name: str = "preds.json") -> dict[str, dict[str, str]]:
        return dict(json.loads((self.out / name).read_text()))


@pytest.fixture
def scene(program: Program, tmp_path: Path) -> Iterator[Scene]:
    program.environment["OPENAI_API_KEY"] = "sk-none"
    player = Mender()
    with ServerOfBothApis(player) as server:
        yield Scene(program, tmp_path, server.base_url, player)


def written(folder: Path, *found: object, array: bool = False) -> str:
    path = folder / "instances.json"
    path.write_text(json.dumps(found) if array else "".join(json.dumps(one) + "\n" for one in found))
    return str(path)


def problem(path: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_instances(path)
    return str(caught.value)


def test_ten_instances_are_done_with_valid_predictions(scene: Scene) -> None:
    done = scene.run("-j", "2")
    assert done.code == 0, done.err
    predictions = scene.predictions()
    assert list(predictions) == [one["instance_id"] for one in scene.instances]
    for name, one in predictions.items():
        assert (one["instance_id"], one["model_name_or_path"], set(one)) == (
            name,
            "org/m",
            {"instance_id", "model_name_or_path", "model_patch"},
        )
    clones = scene.folder / "clones"
    clones.mkdir()
    resolved = {
        one["instance_id"]: is_resolved(one, predictions[one["instance_id"]], scene.repos, clones / one["instance_id"])
        for one in scene.instances
    }
    assert [name for name, is_good in resolved.items() if not is_good] == [WRONG, IDLE]
    assert predictions[IDLE]["model_patch"] == ""
    # The file that is left out is in the patch of the task, and is named.
    assert b"GIT binary patch" in (scene.out / BINARY / "changes.patch").read_bytes()
    assert "new.bin" not in predictions[BINARY]["model_patch"]
    assert f"{BINARY}: preds.json is without 1 file of its patch: new.bin is binary" in done.err

    # Nothing of the answers went to the model, or lies in the folder of a task.
    kept = "".join(path.read_text() for path in scene.out.glob("*/task.json"))
    asked = json.dumps(scene.player.asked, ensure_ascii=False)
    assert all(one["problem_statement"].strip().splitlines()[0] in asked for one in scene.instances)
    assert not [secret for secret in SECRETS if secret in asked + kept]

    # A later start asks nobody, and writes the predictions again.
    count, before = len(scene.player.asked), (scene.out / "preds.json").read_bytes()
    (scene.out / "preds.json").unlink()
    again = scene.run()
    assert (again.code, len(scene.player.asked)) == (0, count), again.err
    assert (scene.out / "preds.json").read_bytes() == before


def test_instances_without_a_result_are_left_out_and_named(scene: Scene) -> None:
    scene.player.refusing = True
    done = scene.run("-j", "1")
    first, *others = [one["instance_id"] for one in scene.instances]
    assert (done.code, scene.predictions()) == (6, {}), done.err
    assert f"preds.json is without 1 task (exit code 6): {first}\n" in done.err
    assert f"preds.json is without 9 tasks (not done): {', '.join(others)}\n" in done.err
    # A shard has predictions of its own.
    scene.player.refusing = False
    parts = [scene.run("--shard", f"{part}/2").code for part in (1, 2)]
    names = [set(scene.predictions(f"preds-{part}-of-2.json")) for part in (1, 2)]
    assert (parts, sorted(names[0] | names[1]), names[0] & names[1]) == ([0, 0], sorted([first, *others]), set())


def test_changed_patch_is_left_out_of_the_predictions(scene: Scene) -> None:
    assert scene.run("--shard", "1/2").code == 0
    name = next(iter(name for name, one in scene.predictions("preds-1-of-2.json").items() if one["model_patch"]))
    patch = scene.out / name / "changes.patch"
    patch.write_bytes(patch.read_bytes().swapcase())  # as long as it was
    done = scene.run("--shard", "1/2")
    assert name not in scene.predictions("preds-1-of-2.json")
    assert f"preds-1-of-2.json is without 1 task (the patch was changed): {name}" in done.err


def test_the_flags_belong_together(scene: Scene) -> None:
    unknown = scene.run("--from", "swebunch")
    assert (unknown.code, "swebench" in unknown.err.replace("swebunch", "")) == (2, True)
    alone = scene.program.run("batch", str(scene.file), "--out", str(scene.out), "--repos", "x/")
    assert (alone.code, "--repos needs --from swebench" in alone.err) == (2, True), alone.err
    taken = scene.run("--report", f"md:{scene.out}/preds.json")
    assert (taken.code, scene.player.asked) == (2, []), taken.err


def test_task_of_an_instance_has_the_problem_and_not_the_answer(tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "patch": "the gold",
        "test_patch": "the tests",
        "hints_text": "the hint",
        "FAIL_TO_PASS": ["t"],
        "PASS_TO_PASS": "[]",
        "meta": {"is_lite": True},
        "created_at": None,
    }
    alone, beside = (read_instances(written(tmp_path, one)) for one in (ONE, {**ONE, **answers}))
    assert alone == beside
    (task,) = alone
    assert (task.id, task.repo, task.commit) == (
        ONE["instance_id"],
        "https://github.com/sympy/sympy",
        ONE["base_commit"],
    )
    assert ONE["problem_statement"] in task.prompt
    assert task.var is None  # {{bug}} stays as it is


def test_an_array_is_read_as_lines_are(tmp_path: Path) -> None:
    found = [ONE, {**ONE, "instance_id": "other"}]
    assert read_instances(written(tmp_path, *found, array=True)) == read_instances(written(tmp_path, *found))


def test_repository_address_is_built_from_the_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, ONE)
    for repos in ("https://example.org/git", "https://example.org/git/"):
        assert read_instances(path, repos)[0].repo == "https://example.org/git/sympy/sympy"
    assert read_instances(path, "git@example.org:")[0].repo == "git@example.org:sympy/sympy"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirrors").mkdir()
    assert read_instances(path, "mirrors")[0].repo == f"{tmp_path}/mirrors/sympy/sympy"


@all_rows(
    "changed, told",
    [
        ({"repo": None}, "repo: must be OWNER/NAME"),
        ({"repo": "../sympy"}, "repo: must be OWNER/NAME"),
        ({"repo": "sympy/.."}, "repo: must be OWNER/NAME"),
        ({"repo": "a/b/c"}, "repo: must be OWNER/NAME"),
        ({"repo": "a/b\n"}, "repo: must be OWNER/NAME"),
        ({"base_commit": "HEAD"}, "base_commit: must be a full commit"),
        ({"problem_statement": " "}, "problem_statement: must not be empty"),
        ({"problem_statement": "a\0b"}, "holds a NUL character"),
        ({"instance_id": "a/b"}, "id: must be 1 to"),
        ({"instance_id": 7}, "instance_id: must be a string"),
    ],
)
def test_invalid_instance_is_named(tmp_path: Path, changed: dict[str, object], told: str) -> None:
    for array, where in ((False, ":2: "), (True, ": instance 2: ")):
        path = written(tmp_path, ONE, {**ONE, "instance_id": "b", **changed}, array=array)
        found = problem(path)
        assert found.startswith(f"{path}{where}"), found
        assert told in found


def test_invalid_instance_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for content, told in (
        (b"", "no instances; expected"),
        (b"\n \n", "no instances; expected"),
        (b"[]", "no instances; expected"),
        (b"[{}", "it is not JSON: line 1"),
        (b"[\xff]", "byte 1 is not UTF-8"),
        (b"{}\n", "f:1: lacks the field instance_id"),
        (b"\nno\n", "f:2: it is not JSON: column 1"),
        (b'["a"]', "f: instance 1: must be an object"),
        (b"PAR1\0\0", "it is a Parquet file"),
    ):
        path.write_bytes(content)
        assert told in problem(str(path)), content
    assert "two instances are called 'sympy__sympy-20590'" in problem(written(tmp_path, ONE, ONE))
    assert "cannot be read: No such file" in problem(str(tmp_path / "none"))


def test_text_patch_applies_without_binary_parts(tmp_path: Path) -> None:
    base, clone = tmp_path / "base", tmp_path / "clone"
    base.mkdir()
    git(base, "init", "--quiet")
    kept = {
        "crlf.txt": b"one\r\ntwo\r\n",
        "a file.txt": b"one\n",
        "umlaut \xc3\xa4.txt": "ä\n".encode(),
        "no end": b"one",
        "diff.txt": b"diff --git a/x b/x\n",
        "form\x0cfeed": b"a\x0cb\x1dc\xe2\x80\xa8d\n",
    }
    lost = {"latin.txt": b"\xe4\n", 'quo"ted.bin': b"\0\1", "plain.bin": b"\0\2"}
    for name, content in (kept | lost).items():
        (base / name).write_bytes(content)
    git(base, "add", "-A")
    git(base, "commit", "--quiet", "-m", "base")
    git(tmp_path, "clone", "--quiet", str(base), str(clone))
    for name, content in (kept | lost).items():
        (base / name).write_bytes(b"more\n" + content)
    (base / "new").symlink_to("crlf.txt")
    (base / "empty").touch()
    git(base, "add", "-A")
    git(base, "diff", "--cached", "--binary", "--full-index", f"--output={tmp_path}/patch")
    text, left_out = text_patch((tmp_path / "patch").read_bytes())
    assert sorted(left_out) == ['"a/quo\\"ted.bin" is binary', "latin.txt is not UTF-8", "plain.bin is binary"]
    (tmp_path / "text").write_text(json.loads(json.dumps(text)))
    git(clone, "apply", str(tmp_path / "text"))
    assert {name: (clone / name).read_bytes() for name in kept} == {
        name: b"more\n" + content for name, content in kept.items()
    }
    assert {name: (clone / name).read_bytes() for name in lost} == lost
    assert ((clone / "new").readlink(), (clone / "empty").read_bytes()) == (Path("crlf.txt"), b"")
    assert text_patch(b"") == ("", ())


def test_predictions_that_cannot_be_written_are_a_problem_in_words(tmp_path: Path) -> None:
    (tmp_path / "preds.json").mkdir()
    told: list[str] = []
    outcome = TaskOutcome(id="a", place=0, task_end=TaskEnd.RAN, code=0)
    (why,) = write_predictions(str(tmp_path), [outcome], shard=None, tell=told.append)
    assert re.match("preds.json cannot be written: ", why)


def test_the_names_of_predictions_are_known() -> None:
    assert all(is_predictions(predictions_name(shard)) for shard in (None, (1, 2), (12, 100)))
    assert not any(map(is_predictions, ("preds.jsonl", "preds", "xpreds.json", "preds-1.json")))

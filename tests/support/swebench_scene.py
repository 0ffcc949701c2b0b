"""Ten instances in the form of SWE-bench, in three small git repositories, and what plays their evaluation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batch_scene import call, git

from harness.messages import ToolCall
from harness.models.scripted import Failure, Player, Reply, ScriptedAnswer, replies, request_problem

BUGS = {
    "ada/calc": {
        "add": ("a, b", "a - b", "a + b", "(2, 3)", "5"),
        "double": ("a", "a + a + a", "2 * a", "(4,)", "8"),
        "half": ("a", "a * 2", "a / 2", "(4,)", "2"),
        "least": ("*a", "max(a)", "min(a)", "(4, 1)", "1"),
    },
    "bob/words": {
        "shout": ("a", "a.lower()", "a.upper()", "('ab',)", "'AB'"),
        "first": ("a", "a.split()[1]", "a.split()[0]", "('x y',)", "'x'"),
        "turned": ("a", "a", "a[::-1]", "('äb',)", "'bä'"),
    },
    "cyd.e/shapes-2": {
        "area": ("a, b", "a + b", "a * b", "(2, 5)", "10"),
        "edge": ("a", "3 * a", "4 * a", "(2,)", "8"),
        "corners": ("a", "a - 1", "len(a)", "('abc',)", "3"),
    },
}
"""By repository and function: its parameters, its wrong and its right result, and a call of it with what comes of it."""
WRONG, IDLE, BINARY = "ada__calc-3", "bob__words-2", "cyd.e__shapes-2-1"
"""The instance whose mending is none, the one in which nothing is done, and the one that leaves a binary file as well."""
SECRETS = ("the gold mending", "the hidden test", "the hint")
"""What stands in the answers of every instance and nowhere else."""


def instances(folder: Path) -> list[dict[str, Any]]:
    """Make the repositories as `folder`/OWNER/NAME, and return their instances.

    The history of a repository goes on as the histories of real ones do: each mending is a commit after its base.
    """
    return [made for repo, bugs in BUGS.items() for made in _instances(folder / repo, repo, bugs)]


def _instances(folder: Path, repo: str, bugs: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    (folder / "tests").mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "tests" / "__init__.py").touch()
    (folder / "logo.bin").write_bytes(bytes(range(256)))
    for name, (parameters, wrong, *_) in bugs.items():
        (folder / f"{name}.py").write_text(_function(name, parameters, wrong))
    _commit(folder, "begin")
    made = []
    for number, (name, (parameters, _, right, given, wanted)) in enumerate(bugs.items(), start=1):
        base = git(folder, "rev-parse", "HEAD").strip()
        (folder / f"{name}.py").write_text(_function(name, parameters, right) + "# the gold mending\n")
        patch = git(folder, "diff")
        (folder / "tests" / f"test_{name}.py").write_text(_test(name, given, wanted))
        git(folder, "add", "--intent-to-add", "tests")
        test_patch = git(folder, "diff", "--", "tests")
        _commit(folder, f"mend {name}")
        tests = [f"tests.test_{name}.Hidden.test_{name}"]
        owner_and_name = repo.replace("/", "__")
        made.append(
            {
                "instance_id": f"{owner_and_name}-{number}",
                "repo": repo,
                "base_commit": base,
                "patch": patch,
                "test_patch": test_patch,
                "problem_statement": f"{name} is wrong\n\n{{{name}{given}}} should be {wanted}, and is not.\n",
                "hints_text": f"the hint: {right}",
                "created_at": "2020-01-01T00:00:00Z",
                "version": "1.0",
                "environment_setup_commit": base,
                # A string in SWE-bench, a list in SWE-bench-extra.
                "FAIL_TO_PASS": tests if number % 2 else json.dumps(tests),
                "PASS_TO_PASS": "[]",
            }
        )
    return made


def _function(name: str, parameters: str, result: str) -> str:
    return f"def {name}({parameters}): return {result}\n"


def _test(name: str, given: str, wanted: str) -> str:
    return (
        f"# the hidden test\nimport unittest\n\nfrom {name} import {name}\n\n\nclass Hidden(unittest.TestCase):\n"
        f"    def test_{name}(self):\n        self.assertEqual({name}(*{given}), {wanted})\n"
    )


def _commit(folder: Path, subject: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", subject)


class Mender(Player):
    """Mends what a prompt says is wrong: reads the file, then writes it anew."""

    def __init__(self) -> None:
        super().__init__(replies())
        self.asked: list[object] = []
        """Every request."""
        self.refusing = False
        """Whether every request fails for good (status 401)."""
        self._turns = {
            f"\n{name} is wrong\n": _turns(f"{repo.replace('/', '__')}-{number}", name, *bug)
            for repo, bugs in BUGS.items()
            for number, (name, bug) in enumerate(bugs.items(), start=1)
        }

    def answer(self, request: object) -> ScriptedAnswer:
        """Answer a request by its conversation alone."""
        self.asked.append(request)
        if self.refusing:
            return Failure(status=401, body='{"error": {"message": "no such key"}}')
        assert isinstance(request, dict)
        assert request_problem(request) == ""
        messages: list[Any] = request["messages"]
        prompt = next(str(message["content"]) for message in messages if message["role"] == "user")
        turns = next(turns for begin, turns in self._turns.items() if begin in prompt)
        turn = sum(message["role"] == "assistant" for message in messages)
        return Reply(calls=(turns[turn],)) if turn < len(turns) else Reply(text="done")


def _turns(identity: str, name: str, parameters: str, wrong: str, right: str, *_: str) -> list[ToolCall]:
    """Return the calls of a mending, one a turn."""
    if identity == IDLE:
        return []
    content = _function(name, parameters, f"{wrong} + 0" if identity == WRONG else right)
    turns = [
        call("c0", "read_file", path=f"{name}.py"),
        call("c1", "write_file", path=f"{name}.py", content=content),
    ]
    return [*turns, call("c2", "bash", command="cp logo.bin new.bin")] if identity == BINARY else turns


def is_resolved(instance: Mapping[str, Any], prediction: Mapping[str, str], repos: Path, folder: Path) -> bool:
    """Say what the evaluation would: take the base, apply the model's patch and then the tests', and run those that failed.

    An empty patch is not evaluated. `folder` is where the clone is made.
    """
    if not prediction["model_patch"]:
        return False
    git(repos, "clone", "--quiet", str(repos / instance["repo"]), str(folder))
    git(folder, "checkout", "--quiet", instance["base_commit"])
    for number, patch in enumerate((prediction["model_patch"], instance["test_patch"])):
        written = folder.parent / f"{folder.name}-{number}.diff"
        written.write_text(patch)  # as the evaluation does
        git(folder, "apply", "--verbose", str(written))
    tests = instance["FAIL_TO_PASS"]
    named = tests if isinstance(tests, list) else json.loads(tests)
    done = subprocess.run([sys.executable, "-m", "unittest", *named], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0

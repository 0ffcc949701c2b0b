"""The page for beginners, done as a reader does it, and the policies in `examples/policies`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from audit_runs import Call, session
from rows import all_rows

from harness.policy.lint import warnings
from harness.policy.loader import load_policy
from harness.session.state import State

if TYPE_CHECKING:
    from program import Program

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "first-policy.md").read_text(encoding="utf-8")
RECIPES = sorted(path.name for path in (ROOT / "examples" / "policies").glob("*.toml"))


def has_lines(shown: str, real: str) -> bool:
    """Return whether `real` is what is shown. A line `...` stands for any lines."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else f"{re.escape(line)} *\n" for line in shown.splitlines())
    return re.fullmatch(pattern, real) is not None


def test_the_first_policy_grows_step_by_step_as_shown(program: Program) -> None:
    """Each block of the page in its order: a part of the policy, the cases, or commands with their output."""
    policy = program.workspace / "mine.toml"
    policy.write_text("")
    compared = 0
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        if language == "toml":
            policy.write_text(f"{policy.read_text()}\n{text}".lstrip())
            continue
        if language == "jsonl":
            (program.workspace / "cases.jsonl").write_text(text)
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith("mkdir "):
                (program.workspace / "customers").mkdir()
                (program.workspace / "customers/a.csv").write_text("Berlin\n")
                continue
            if command == "harness policy suggest":
                state = State.of(program.environment)
                log = Path(state.log_folder(str(program.workspace))) / "work.jsonl"
                log.parent.mkdir(parents=True, exist_ok=True)
                session(log, program.workspace, load_policy(str(policy)), [Call("bash", "make schema")] * 2)
            done = program.run(*shlex.split(command)[1:])
            assert has_lines(output, done.out), (command, done)
            compared += 1
    assert compared == 6


@all_rows("name", RECIPES)
def test_a_recipe_passes_check_and_its_cases(name: str, program: Program) -> None:
    recipe = ROOT / "examples" / "policies" / name
    assert warnings(load_policy(str(recipe))) == ()
    tried = program.run("policy", "test", str(recipe.with_suffix(".jsonl")), "--policy", str(recipe))
    assert (tried.code, ", 0 failed" in tried.out) == (0, True), tried.out


def test_the_page_names_each_recipe() -> None:
    assert sorted(re.findall(r"\(\.\./examples/policies/([\w-]+\.toml)\)", PAGE)) == RECIPES

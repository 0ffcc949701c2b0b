"""A program in the same walls whatever road allowed it: a rule, a yes, a grant, a ticket, a script tool, a batch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from agent_scene import reply
from batch_scene import git, repository, serving, write_tasks
from grant_scene import Scene, bash, granting
from hook_process import Hooked, exec_words
from program import Program, made_program
from road_attacks import REACHED, attackable, planted, reached
from rows import all_rows
from sandbox_scene import ORDINARY, ROOT

from harness.gate.approval import Approval
from harness.grant_pattern import GrantScope
from harness.log.reader import read_log
from harness.log.vocabulary import Answer
from harness.messages import ModelResponse, ToolCall
from harness.sandbox import enforces, hides_where_it_may_write, probe

pytestmark = pytest.mark.skipif(
    not (enforces(probe()) and hides_where_it_may_write(probe())), reason="nothing in a workspace can be hidden here"
)
COMMAND = "python3 attack.py"
DENY = '[[rule]]\nid = "secrets"\ndecision = "deny"\naccess = ["read"]\npath = [".env"]\nreason = "Secrets."\n'
ASKING = f'version = 1\n[tools]\ndefault = "confirm"\n{DENY}'
RULE = f'{ASKING}[[rule]]\nid = "attack"\ndecision = "auto"\nargv = ["python3", "attack.py"]\nwrite = ["."]\n'


def at_the_prompt(folder: Path, policy: str, choice: str = "") -> str:
    """Return what the command printed that a rule allowed, or a person by a yes, or by a grant of this name."""
    return by_calls(folder, bash(COMMAND), policy, choice)


def by_calls(
    folder: Path, calls: ModelResponse, policy: str, choice: str = "", script: Mapping[str, object] | None = None
) -> str:
    yes = Approval(answer=Answer.YES, by="script")
    approver = granting(GrantScope.SESSION, choice) if choice else lambda _: lambda action, verdict: yes
    scene = Scene(folder, calls, approver=approver, policy=policy.encode(), machine=probe(), script=script)
    scene.agent.run("go")
    (outcome,) = scene.records("outcome")
    scene.close()
    return str(outcome["content"])


def by_script_tool(folder: Path) -> str:
    """Return what a script tool printed that may write the workspace."""
    script = {"name": "t", "description": "It attacks.", "argv": ["python3", "attack.py"], "writes": ["."]}
    call = reply(ToolCall(id="c1", name="script__t", arguments="{}"))
    return by_calls(folder, call, ASKING.replace('default = "confirm"', 'default = "auto"'), script=script)


ROADS: dict[str, Callable[[Path], str]] = {
    "a rule": lambda folder: at_the_prompt(folder, RULE),
    "a yes": lambda folder: at_the_prompt(folder, ASKING),
    "a grant of these words": lambda folder: at_the_prompt(folder, ASKING, "exactly this"),
    "a grant of the program": lambda folder: at_the_prompt(folder, ASKING, "this program, any words, inside walls"),
    "a rule in walls": lambda folder: at_the_prompt(folder, RULE.replace('write = ["."]', 'walls = "workspace"')),
    "a script tool": by_script_tool,
}


def test_program_without_walls_reaches_everything(tmp_path: Path) -> None:
    root, outside = tmp_path / "w", tmp_path / "outside"
    with attackable(root, outside):
        done = subprocess.run([sys.executable, "attack.py"], cwd=root, capture_output=True, text=True, check=True)
    assert reached(done.stdout) == list(REACHED)
    assert planted(root, outside) == [".git/hooks/pre-commit", ".github/workflows/ci.yml", "file outside"]


@all_rows("road", ROADS.values(), ids=ROADS)
def test_program_reaches_the_same_by_every_road(tmp_path: Path, road: Callable[[Path], str]) -> None:
    root, outside = tmp_path / "w", tmp_path / "outside"
    with attackable(root, outside):
        printed = road(tmp_path)
    assert (reached(printed), planted(root, outside)) == ([], [])


@all_rows("user", {"this user": None, "an ordinary user": ORDINARY})
def test_program_of_a_ticket_reaches_no_more(user: int | None) -> None:
    if user is not None and os.getuid() != ROOT:
        pytest.skip("only root can become another user")
    with TemporaryDirectory(dir="/tmp") as made, ExitStack() as ending:  # where every user can come to
        os.chmod(made, 0o755)
        program, outside = ending.enter_context(contextmanager(made_program)(Path(made))), Path(made) / "outside"
        hooked, policy = Hooked(program), program.home / "p.toml"
        policy.write_text(RULE)
        with attackable(hooked.workspace, outside):
            for path in (Path(made), *Path(made).rglob("*")):
                os.chown(path, os.getuid() if user is None else user, -1)
            done = hooked.hook(hooked.event(command=COMMAND), "--policy", str(policy), user=user)
            printed = hooked.exec(exec_words(done), user=user)
        assert (reached(printed.out), planted(hooked.workspace, outside)) == ([], []), printed


def test_program_of_a_batch_reaches_no_more(program: Program, tmp_path: Path) -> None:
    root, outside = repository(tmp_path / "repository"), tmp_path / "outside"
    policy = tmp_path / "p.toml"
    policy.write_text(RULE)
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with attackable(root, outside), serving() as (url, _):
        git(root, "add", "-A", "-f")
        git(root, "commit", "--quiet", "-m", "two")
        tasks = write_tasks(tmp_path / "tasks.jsonl", {"id": "t", "prompt": f"bash {COMMAND}", "cwd": str(root)})
        out = tmp_path / "out"
        words = ("--out", str(out), "--policy", str(policy), "--base-url", url, "--model", "m")
        done = program.run("batch", str(tasks), *words)
    (log,) = out.glob("*/attempts/*/log.jsonl")
    outcomes = [str(record["content"]) for record in read_log(str(log)) if record["kind"] == "outcome"]
    assert (done.code, len(outcomes)) == (0, 1), (done, outcomes)
    assert (reached(outcomes[0]), planted(root, outside)) == ([], [])

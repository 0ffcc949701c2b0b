"""The policy at the top of a repository, in a session that begins in a folder below: what tightens holds there."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scene import run_git
from rows import all_rows

from harness.actions import Access, Decision
from harness.app.policy.judged_call import typed_action
from harness.files.workspace import Workspace
from harness.policy.policy import Policy
from harness.policy.rules import Layer
from harness.policy.verdict import evaluate
from harness.session.policies import assemble
from harness.session.state import State
from harness.tools.forbidden_files import forbidden_files, rules_about_files, with_any_name

AT_TOP = """version = 1
[tools]
web_fetch = "deny"
write_file = "auto"
[sandbox]
hide = ["vault"]
write = ["build"]
[[rule]]
id = "env"
decision = "deny"
path = [".env"]
reason = "no"
[[rule]]
id = "here"
decision = "deny"
path = ["/sub/secrets/", "sub/*.sec", "**/deep/*.pem"]
except = ["/sub/secrets/open.txt"]
reason = "no"
[[rule]]
id = "beside"
decision = "deny"
path = ["/beside/"]
reason = "no"
[[rule]]
id = "of the top alone"
decision = "deny"
path = ["/notes.txt"]
reason = "no"
[[rule]]
id = "push"
decision = "block"
argv = ["git", "push"]
reason = "no"
[[rule]]
id = "make"
decision = "auto"
argv = ["make", "test"]
"""
ROWS = """
deny     read_file  .env
deny     bash       cat inner/.env
deny     read_file  secrets/key.txt
deny     read_file  ./secrets/key.txt
deny     read_file  SECRETS/KEY.TXT
auto     read_file  secrets/open.txt
deny     bash       cat secrets/*
deny     bash       grep -r word .
deny     read_file  a.sec
auto     read_file  inner/a.sec
deny     read_file  inner/deep/x.pem
deny     read_file  ../beside/a.txt
deny     bash       cat ../beside/a.txt
auto     read_file  notes.txt
deny     read_file  ../notes.txt
confirm  read_file  ../other.txt
block    bash       git push
confirm  write_file {"path": "a.txt", "content": "x"}
confirm  bash       make test
block    bash       echo > ../.harness/policy.toml
"""


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a policy, a submodule and a linked worktree."""
    folder = tmp_path_factory.mktemp("above").resolve() / "top"
    for name in ("sub/secrets", "sub/inner/deep", "beside", "module", ".harness"):
        (folder / name).mkdir(parents=True)
    (folder / ".harness" / "policy.toml").write_text(AT_TOP)
    for name in ("sub/secrets/key.txt", "sub/secrets/open.txt", "sub/a.sec", "sub/notes.txt", "beside/a.txt"):
        (folder / name).write_text("x\n")
    assert run_git(folder, "init", "-q").returncode == 0
    assert run_git(folder, "add", "-A").returncode == 0
    assert run_git(folder, "commit", "-qm", "begin").returncode == 0
    assert run_git(folder, "worktree", "add", "-q", str(folder.parent / "linked")).returncode == 0
    assert run_git(folder / "module", "init", "-q").returncode == 0
    return folder


def policy_in(folder: Path, home: str = "/nowhere") -> Policy:
    state = State(state=f"{folder}/../state", config=f"{folder}/../config", home=home)
    return assemble(state, str(folder), names=None, fallback="default")


@all_rows("row", ROWS.strip().splitlines())
def test_call_below_the_top_is_held_by_the_strict_rules_there(top: Path, row: str) -> None:
    decision, tool, text = row.split(maxsplit=2)
    workspace = Workspace(str(top / "sub"), str(top.parent / "home"))
    action, _ = typed_action(tool, text, workspace, {})
    verdict = evaluate(policy_in(top / "sub"), action)
    assert verdict.decision.word == decision, [(part.reason, part.by) for part in verdict.facets]


@all_rows(
    ("folder", "home", "holds"),
    [
        ("top/sub", "/nowhere", True),
        ("top/sub/inner", "/nowhere", True),
        ("linked/sub", "/nowhere", True),
        ("top/module", "/nowhere", False),
        ("top/sub", "sub", False),
        (".", "/nowhere", False),
    ],
)
def test_policy_holds_in_the_folders_of_its_own_repository(top: Path, folder: str, home: str, holds: bool) -> None:
    policy = policy_in(top.parent / folder, str(top / home))
    assert (Layer.REPOSITORY in {source.layer for source in policy.sources}) == holds


def test_only_what_tightens_holds(top: Path) -> None:
    policy = policy_in(top / "sub")
    rules = [rule for rule in policy.rules if rule.layer is Layer.REPOSITORY]
    assert ("push" in {rule.id for rule in rules}, [rule for rule in rules if rule.is_auto]) == (True, [])
    defaults = {each.tool: each.decision for each in policy.defaults if each.layer is Layer.REPOSITORY}
    assert defaults == {"web_fetch": Decision.DENY}
    assert (policy.sandbox.write, str(top / "vault") in policy.sandbox.hide) == ((".",), True)


def test_files_that_walls_hide_are_found_by_the_patterns_of_the_top(top: Path) -> None:
    rules = rules_about_files(policy_in(top / "sub"), "bash")
    names = with_any_name(["secrets/key.txt", "secrets/open.txt", "notes.txt", "a.sec", "inner/a.sec"], ["", "secrets"])
    assert sorted(forbidden_files(rules, Access.READ, names).files) == ["a.sec", "secrets/key.txt"]
    inside = rules_about_files(policy_in(top / "sub" / "secrets"), "bash")
    assert forbidden_files(inside, Access.READ, with_any_name(["key.txt"], [""])).files == ("key.txt",)

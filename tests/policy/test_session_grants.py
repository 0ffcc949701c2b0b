"""What a person can grant: what can be granted at a question, what a grant then lets through, and what no grant ever lifts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import all_rows

from harness.actions import Action
from harness.cli.policy.judged_call import action_for
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.rules import Decision, Origin
from harness.policy.session_grants import (
    SESSION_GRANTS,
    Grant,
    GrantPattern,
    GrantScope,
    Offer,
    offer_for,
    pattern_problem,
    with_grants,
)
from harness.policy.verdict import Source, evaluate

MAY = "in ROOT (it may write the workspace and reach the network)"
POLICY = b"""
version = 1
[tools]
bash = "confirm"
write_file = "confirm"
edit_file = "confirm"
read_file = "confirm"
readers = true
[[rule]]
id = "push"
decision = "confirm"
argv = ["git", "push"]
[[rule]]
id = "secrets"
decision = "deny"
access = ["read", "write"]
path = [".env"]
reason = "Secrets."
[[rule]]
id = "lock"
decision = "confirm"
access = ["write"]
path = ["*.lock"]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("src", "src/deep", "build"):
        (tmp_path / name).mkdir()
    for name in ("src/a.py", "src/b.py", "src/deep/c.py", "top.py", "odd[1].py", ".env", "x.lock", "Makefile"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "link.py").symlink_to("src/a.py")
    return Workspace(str(tmp_path), str(tmp_path / "home"))


def policy(text: bytes = POLICY) -> Policy:
    return parse_policy(text, "p.toml")


def offered(workspace: Workspace, tool: str, text: str, held: Policy) -> Offer | str:
    asked = action_for(tool, text, workspace)
    return offer_for(held, asked, evaluate(held, asked))


def granted(held: Policy, *patterns: GrantPattern) -> Policy:
    origin = Origin(file=SESSION_GRANTS, line=1)
    return with_grants(
        held,
        [Grant(id=f"grant-{n}", scope=GrantScope.SESSION, pattern=p, origin=origin) for n, p in enumerate(patterns)],
    )


def decided(held: Policy, workspace: Workspace, tool: str, text: str) -> str:
    return evaluate(held, action_for(tool, text, workspace)).decision.word


@all_rows(
    ("tool", "text", "patterns", "wider"),
    [
        ("bash", "pytest -q tests", [f"the command pytest -q tests {MAY}"], []),
        ("bash", "ls && pytest -x", [f"the command pytest -x {MAY}"], []),
        ("bash", "timeout 60 pytest", [f"the command pytest {MAY}"], []),
        ("bash", "mkdir build/x", ["the command mkdir build/x in ROOT"], []),
        ("bash", "echo 'a b' > top.py", ["read and write top.py of the workspace with bash"], []),
        (
            "edit_file", "src/a.py",
            ["read and write src/a.py of the workspace with edit_file and write_file"],
            ["read and write src/** of the workspace with edit_file and write_file"],
        ),
        ("write_file", "top.py", ["read and write top.py of the workspace with edit_file and write_file"], []),
        (
            "read_file",
            "src/a.py",
            ["read src/a.py of the workspace with read_file"],
            ["read src/** of the workspace with read_file"],
        ),
    ],
)  # fmt: skip
def test_what_is_offered(workspace: Workspace, tool: str, text: str, patterns: list[str], wider: list[str]) -> None:
    """Only what needed asking, word for word; of files the folder as a second choice."""
    offer = offered(workspace, tool, text, policy())
    assert isinstance(offer, Offer), offer
    assert [one.text.replace(workspace.root, "ROOT") for one in offer.patterns] == patterns
    assert [one.text for one in offer.wider] == wider


@all_rows(
    ("tool", "text", "why"),
    [
        ("bash", "git push origin main", "rule push"),
        ("bash", "pytest; git push", "rule push"),
        ("bash", "cat .env", "nothing is asked"),  # denied
        ("bash", "ls", "nothing is asked"),  # runs unasked
        ("bash", "python3 x.py", "runs whatever its operands say"),
        ("bash", "python3.11 x.py", "runs whatever its operands say"),
        ("bash", "make test", "runs whatever its operands say"),
        ("bash", "python3.13t x.py", "runs whatever its operands say"),
        ("bash", "ipython x.py", "runs whatever its operands say"),
        ("bash", "mkdir $'a\\nb'", "shown plainly"),
        ("bash", "sudo pytest", "sudo runs other commands"),
        ("bash", "ssh host ls", "runs other commands"),
        ("bash", "./deploy.sh", "named by its path"),
        ("bash", "/usr/bin/pytest", "named by its path"),
        ("bash", "CI=1 pytest", "variables are set"),
        ("bash", "patch -p1 <<< x", "reads what is not in its words"),
        ("bash", "patch -p1 < top.py", "reads what is not in its words"),
        ("bash", "git log | tee x", "reads what is not in its words"),
        ("bash", "cat top.py | { mkdir x; }", "reads what is not in its words"),
        ("bash", "timeout 9 patch -p1 <<< x", "reads what is not in its words"),
        ("bash", "for f in top.py; do patch -p1; done < top.py", "reads what is not in its words"),
        ("bash", "pytest $(cat x)", "opaque"),
        ("bash", "pytest &", "built-in"),
        ("bash", "rm -r build", "each time"),
        ("bash", "touch /etc/x", ""),
        ("bash", "touch .git/hooks/x", "built-in"),
        ("edit_file", ".git/config", "built-in"),
        ("edit_file", "x.lock", "rule lock"),
        ("edit_file", "odd[1].py", "mean something in a pattern"),
        ("edit_file", "link.py", "would ask all the same"),
        ("edit_file", "../outside.py", "built-in"),
        ("edit_file", ".", "it is the workspace folder itself"),
    ],
)
def test_what_is_not_offered(workspace: Workspace, tool: str, text: str, why: str) -> None:
    """A written rule, what is built in, interpreters, wrappers, what is not plain: no grant, and the reason in words."""
    found = offered(workspace, tool, text, policy())
    assert isinstance(found, str), found
    assert why in found


@all_rows(
    ("grant", "tool", "text", "decision"),
    [
        ("pytest -q tests", "bash", "pytest -q tests", "auto"),
        ("pytest -q tests", "bash", "ls | head && pytest -q tests", "auto"),
        ("pytest -q tests", "bash", "pytest -q", "confirm"),
        ("pytest -q tests", "bash", "pytest -q tests more", "confirm"),
        ("pytest -q tests", "bash", "pytest -q tests -p evil", "confirm"),
        ("pytest -q tests", "bash", "pytest tests -q", "confirm"),
        ("pytest -q tests", "bash", "./pytest -q tests", "confirm"),
        ("pytest -q tests", "bash", "PYTHONPATH=/tmp pytest -q tests", "confirm"),
        ("pytest -q tests", "bash", "pytest -q tests > .env", "deny"),
        ("pytest -q tests", "bash", "pytest -q tests; git push", "confirm"),
        ("pytest -q tests", "bash", "bash -c 'pytest -q tests'", "auto"),
        ("pytest -q tests", "bash", "pytest -q tests &", "confirm"),
        ("pytest -q tests", "bash", "cd src && pytest -q tests", "confirm"),
        ("pytest -q tests", "bash", "cd src && cd .. && pytest -q tests", "auto"),
        ("pytest -q tests", "bash", "for d in src build; do cd $d && pytest -q tests; done", "confirm"),
        ("pytest -q tests", "bash", "env -C src pytest -q tests", "confirm"),
        ("pytest -q tests", "bash", "pytest -q tests <<< 'import os'", "confirm"),
        ("pytest -q tests", "bash", "pytest -q tests < top.py", "confirm"),
        ("pytest -q tests", "bash", "cat top.py | pytest -q tests", "confirm"),
        ("pytest -q tests", "bash", "cat top.py | { ls; pytest -q tests; }", "confirm"),
        ("pytest -q tests", "bash", "{ ls; pytest -q tests; } < top.py", "confirm"),
        ("pytest -q tests", "bash", "while true; do pytest -q tests; done <<< x", "confirm"),
        ("pytest -q tests", "bash", "cat top.py | timeout 9 pytest -q tests", "confirm"),
        ("pytest -q tests", "bash", "cat top.py | bash -c 'pytest -q tests'", "confirm"),
        ("pytest -q tests", "bash", "{ cat; } < top.py; pytest -q tests", "auto"),
        ("pytest -q tests", "bash", "pytest -q tests | tail -3", "auto"),
        ("pytest -q tests", "bash", "pytest -q tests 2>&1 | tail -3", "auto"),
    ],
)
def test_a_grant_is_exact(workspace: Workspace, grant: str, tool: str, text: str, decision: str) -> None:
    held = policy()
    offer = offered(workspace, "bash", grant, held)
    assert isinstance(offer, Offer)
    assert decided(granted(held, *offer.patterns), workspace, tool, text) == decision


def test_a_folder_of_files(workspace: Workspace) -> None:
    """The folder and what is below it, for both tools that write; strict rules and protected files as ever."""
    held = policy()
    offer = offered(workspace, "edit_file", "src/a.py", held)
    assert isinstance(offer, Offer)
    wide, narrow = granted(held, *offer.wider), granted(held, *offer.patterns)
    for tool, path, in_wide, in_narrow in (
        ("edit_file", "src/a.py", "auto", "auto"),
        ("write_file", "src/b.py", "auto", "confirm"),
        ("edit_file", "src/deep/c.py", "auto", "confirm"),
        ("write_file", "src/a.py/below", "auto", "confirm"),
        ("edit_file", "top.py", "confirm", "confirm"),
        ("edit_file", "src/x.lock", "confirm", "confirm"),
        ("edit_file", "src/.env", "deny", "deny"),
        ("bash", "echo x > src/a.py", "confirm", "confirm"),
    ):
        assert decided(wide, workspace, tool, path) == in_wide, path
        assert decided(narrow, workspace, tool, path) == in_narrow, path


def test_a_grant_lifts_no_refusal_by_default(workspace: Workspace) -> None:
    """What was granted under one policy is refused under one that refuses by default: a grant answers a question only."""
    held = policy()
    offer = offered(workspace, "bash", "pytest", held)
    assert isinstance(offer, Offer)
    for default in ("deny", "block"):
        other = policy(f'version = 1\n[tools]\nbash = "{default}"\n'.encode())
        assert decided(granted(other, *offer.patterns), workspace, "bash", "pytest") == default


def test_a_grant_is_suspended_with_the_entry_point(workspace: Workspace) -> None:
    held = policy()
    asked = action_for("bash", "pytest", workspace)
    offer = offer_for(held, asked, evaluate(held, asked))
    assert isinstance(offer, Offer)
    verdict = evaluate(granted(held, *offer.patterns), asked, ("conftest.py",))
    assert (verdict.decision, verdict.deciding.source) == (Decision.CONFIRM, Source.SUSPENDED)


def _action(workspace: Workspace, text: str) -> Action | None:
    try:
        return action_for("bash", text, workspace)
    except ToolError:
        return None


_WORDS = st.sampled_from(
    "pytest ls cat git push status make python3 sudo timeout 60 env X=1 -q -rf rm touch .env src/a.py /etc/passwd && | ; & > < "
    "$(id) `id` 'a b' \"$X\" xargs find -exec {} bash -c ../x .git/config x.lock ./run echo tee".split(" ")
)


@given(words=st.lists(_WORDS, min_size=1, max_size=7))
def test_whatever_is_offered_is_auto_with_it_and_may_do_no_more(
    words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For every line: with the patterns granted it runs unasked, within what was shown; nothing stricter ever moves."""
    workspace = Workspace(str(tmp_path_factory.getbasetemp()), "/home/nobody")
    held, asked = policy(), _action(workspace, " ".join(words))
    if asked is None:
        return
    before = evaluate(held, asked)
    offer = offer_for(held, asked, before)
    if isinstance(offer, str):
        return
    after = evaluate(granted(held, *offer.patterns), asked)
    assert (before.decision, after.decision) == (Decision.CONFIRM, Decision.AUTO)
    assert set(after.effects.granted) <= set(before.effects.granted)
    assert before.effects.network or not after.effects.network
    assert all(facet.source is Source.DEFAULT for facet in before.facets if facet.decision is Decision.CONFIRM)


@all_rows(
    ("pattern", "problem"),
    [
        (GrantPattern(tools=("bash",), argv=("pytest", "-q"), folder="/w"), ""),
        (GrantPattern(tools=("edit_file",), path="/src/**"), ""),
        (GrantPattern(tools=("edit_file",), path="/src/a.py"), ""),
        (GrantPattern(tools=("bash",), argv=("pytest", "-q")), "folder"),
        (GrantPattern(tools=("bash",), argv=("pytest", "-q"), folder="/w", write=("/",)), "it may write /"),
        (GrantPattern(tools=("bash",), argv=("pytest", "-q"), folder="w"), "folder"),
        (GrantPattern(tools=("edit_file",), path="/src/a.py", folder="/w"), "more than files"),
        (GrantPattern(tools=("edit_file",), path="/**"), "names no file"),
        (GrantPattern(tools=("edit_file",), path="**"), "names no file"),
        (GrantPattern(tools=("edit_file",), path="src"), "names no file"),
        (GrantPattern(tools=("edit_file",), path="/src/*"), "names no file"),
        (GrantPattern(tools=("edit_file",), path="/src/../../x"), "names no file"),
        (GrantPattern(tools=("edit_file",), path="/src/a.py", network=True), "more than files"),
        (GrantPattern(tools=("bash",), argv=("bash", "-c", "x")), "runs"),
        (GrantPattern(tools=("bash",), argv=("sudo", "x")), "runs other commands"),
        (GrantPattern(tools=("bash",), argv=("/tmp/x",)), "named by its path"),
        (GrantPattern(tools=("bash",)), "neither"),
        (GrantPattern(tools=(), argv=("x",)), "neither"),
        (GrantPattern(tools=("bash",), argv=("x",), path="/x"), "neither"),
    ],
)
def test_a_kept_pattern_is_one_that_could_have_been_offered(pattern: GrantPattern, problem: str) -> None:
    found = pattern_problem(pattern)
    assert (problem in found) if problem else found == ""

"""What a person can grant: what can be granted at a question, what a grant then lets through, and what no grant ever lifts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows import all_rows

from harness.actions import Access, Action, Decision, Enforcement, Facet, PathAccess, Unconfined
from harness.app.policy.judged_call import action_for
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.grant_pattern import GrantPattern, GrantScope
from harness.policy.grant_offers import Offer, offer_for
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.session_grants import SESSION_GRANTS, Grant, pattern_problem, with_grants
from harness.policy.verdict import Source, evaluate
from harness.policy.walls_here import WallsHere
from harness.record import replace
from policies import ASKING_TWICE

POLICY = ASKING_TWICE.encode()
UNCONFINED = Unconfined(justification="it needs to")


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
    return offer_for(held, asked, evaluate(held, asked), walls_of(workspace))


def walls_of(workspace: Workspace) -> WallsHere:
    return WallsHere(root=workspace.root, confines=True)


def granted(held: Policy, *patterns: GrantPattern) -> Policy:
    origin = Origin(file=SESSION_GRANTS, line=1)
    return with_grants(
        held,
        [Grant(id=f"grant-{n}", scope=GrantScope.SESSION, pattern=p, origin=origin) for n, p in enumerate(patterns)],
    )


def decided(held: Policy, workspace: Workspace, tool: str, text: str) -> str:
    return evaluate(held, action_for(tool, text, workspace)).decision.word


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
    assert decided(granted(held, *offer.choices[0].patterns), workspace, tool, text) == decision


def test_a_folder_of_files(workspace: Workspace) -> None:
    """The folder and what is below it, for both tools that write; strict rules and protected files as ever."""
    held = policy()
    offer = offered(workspace, "edit_file", "src/a.py", held)
    assert isinstance(offer, Offer)
    wide, narrow = granted(held, *offer.choices[1].patterns), granted(held, *offer.choices[0].patterns)
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
        assert decided(granted(other, *offer.choices[0].patterns), workspace, "bash", "pytest") == default


def test_a_grant_is_suspended_with_the_entry_point(workspace: Workspace) -> None:
    held = policy()
    asked = action_for("bash", "pytest", workspace)
    offer = offer_for(held, asked, evaluate(held, asked), walls_of(workspace))
    assert isinstance(offer, Offer)
    verdict = evaluate(granted(held, *offer.choices[0].patterns), asked, ("conftest.py",))
    assert (verdict.decision, verdict.deciding.source) == (Decision.CONFIRM, Source.SUSPENDED)


@all_rows(
    ("text", "expected"),
    [
        ("python3 a.py && pytest", ((False, ()), False, ())),
        ("python3 a.py && git push", ((True, ()), False, ())),
        ("python3 a.py && curl -s https://example.org", ((False, ("example.org",)), False, ())),
        ("python3 a.py && docker pull x", ((False, ()), True, ())),
        ("python3 a.py > /tmp/out", ((False, ()), False, ("/tmp/out",))),
        ("python3 a.py && cp top.py /tmp/out", ((False, ()), False, ("/tmp/out", "/tmp/out/top.py"))),
        ("python3 a.py > x.lock", ((False, ()), False, ("x.lock",))),
    ],
)
def test_approval_of_the_rest_of_a_line_never_widens_program_walls(
    workspace: Workspace, text: str, expected: tuple[tuple[bool, tuple[str, ...]], bool, tuple[str, ...]]
) -> None:
    offer = offered(workspace, "bash", "python3 a.py", policy())
    assert isinstance(offer, Offer)
    inside = next(choice for choice in offer.choices if choice.name == "this program, any words, inside walls")
    held = granted(policy(), *inside.patterns)
    verdict = evaluate(held, action_for("bash", text, workspace))
    effects = verdict.effects
    assert (verdict.decision, effects.enforcement) == (Decision.CONFIRM, Enforcement.REQUIRED)
    network, sockets, named = expected
    assert ((effects.network, effects.hosts), effects.sockets) == (network, sockets)
    assert effects.named_paths == tuple(str(Path(workspace.root, name)) for name in named)
    action = action_for("bash", text, workspace)
    unconfined = evaluate(held, replace(action, facets=(*action.facets, UNCONFINED)))
    assert unconfined.programs == frozenset()  # walls that a yes takes down were granted for nothing


def _action(workspace: Workspace, text: str) -> Action | None:
    try:
        return action_for("bash", text, workspace)
    except ToolError:
        return None


_WORDS = st.sampled_from(
    "pytest ls cat git push status make python3 sudo timeout 60 env X=1 -q -rf rm touch .env src/a.py /etc/passwd && | ; & > < "
    "$(id) `id` 'a b' \"$X\" xargs find -exec {} bash -c ../x .git/config x.lock ./run echo tee".split(" ")
)


def _reads_system(facet: Facet) -> bool:
    return isinstance(facet, PathAccess) and facet.access is not Access.WRITE and facet.real == "/etc/passwd"


@given(words=st.lists(_WORDS, min_size=1, max_size=7))
@example(words=["pytest", "&&", "pytest", "/etc/passwd"])
def test_offered_grant_allows_its_call_and_no_more(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """For every line and each choice: with what is granted it runs unasked but for the parts that are still asked, within
    what was shown or inside walls; nothing stricter ever moves."""
    workspace = Workspace(str(tmp_path_factory.getbasetemp()), "/home/nobody")
    held, asked = policy(), _action(workspace, " ".join(words))
    if asked is None:
        return
    before = evaluate(held, asked)
    offer = offer_for(held, asked, before, walls_of(workspace))
    if isinstance(offer, str):
        return
    for choice in offer.choices:
        after = evaluate(granted(held, *choice.patterns), asked)
        assert before.decision is Decision.CONFIRM
        assert after.decision is (Decision.CONFIRM if choice.asked_still else Decision.AUTO)
        assert set(after.effects.granted) <= {*before.effects.granted, "."}
        assert before.effects.network or not after.effects.network
        lifted = [
            facet for facet, now in zip(before.facets, after.facets, strict=True) if facet.decision != now.decision
        ]
        in_walls = any(pattern.program for pattern in choice.patterns)
        for facet in lifted:  # walls read the system, and write nothing there
            assert facet.source in (Source.DEFAULT, Source.OPAQUE) or (in_walls and _reads_system(facet.facet))
        if after.decision is Decision.AUTO and in_walls:
            assert (after.effects.enforcement, after.effects.sockets) == (Enforcement.REQUIRED, False)


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
def test_kept_pattern_must_be_one_of_the_offers(pattern: GrantPattern, problem: str) -> None:
    found = pattern_problem(pattern)
    assert (problem in found) if problem else found == ""

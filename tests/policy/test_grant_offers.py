"""What a person may grant at a question: the table grant_offers.txt, and what holds for every offer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import all_rows

from harness.actions import Unconfined
from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.grant_pattern import GrantPattern, GrantScope
from harness.policy.grant_offers import Offer, offer_for
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.session_grants import SESSION_GRANTS, Grant, with_grants
from harness.policy.verdict import evaluate
from harness.policy.walls_here import WallsHere
from harness.record import replace
from policies import ASKING_TWICE

TABLE = Path(__file__).with_name("grant_offers.txt")
POLICIES = {
    "default": Path("policies/default.toml").read_bytes(),
    "asking": ASKING_TWICE.encode(),
}


def rows() -> Iterator[tuple[str, str, str, str, list[str]]]:
    """Yield policy, walls, tool, text and the lines expected of each paragraph of the table."""
    policy = walls = ""
    for paragraph in TABLE.read_text().split("\n\n"):
        first, *lines = [line for line in paragraph.split("\n") if line and not line.startswith("#")] or [""]
        if first.startswith("policy "):
            _, policy, _, walls = first.split()
        elif first:
            tool, _, text = first.partition(" ")
            yield policy, walls, tool, text.replace("\\n", "\n"), [line.strip() for line in lines]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("src", "src/deep", "build", "sub", ".git"):
        (tmp_path / name).mkdir()
    for name in ("src/a.py", "src/deep/c.py", "top.py", "odd[1].py", ".env", "x.lock", "Makefile", "run.sh", "x.py"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "link.py").symlink_to("src/a.py")
    return Workspace(str(tmp_path), str(tmp_path / "home"))


def offered(workspace: Workspace, policy: Policy, walls: str, tool: str, text: str) -> Offer | str:
    here = {
        "walls": WallsHere(root=workspace.root, confines=True),
        "none": WallsHere(root=workspace.root, confines=False, missing="this kernel has no Landlock"),
        "exposed": WallsHere(root=workspace.root, confines=True, exposed=(".env",)),
    }[walls]
    action = action_for(tool, text, workspace)
    return offer_for(policy, action, evaluate(policy, action), here)


def told(offer: Offer | str, root: str) -> list[str]:
    """Return an offer as the table has it."""
    if isinstance(offer, str):
        return [f"- {offer}"]
    lines = []
    for choice in offer.choices:
        only = " (session only)" if choice.session_only else ""
        lines.append(f"{choice.name}{only}: " + " | ".join(one.text.replace(root, "ROOT") for one in choice.patterns))
        lines += [f"still asked: {part.strip().splitlines()[0]}" for part in choice.asked_still]
    return [*lines, *([f"no program: {offer.no_program}"] if offer.no_program else [])]


@all_rows(("policy", "walls", "tool", "text", "expected"), rows())
def test_grant_choices_are_offered(
    workspace: Workspace, policy: str, walls: str, tool: str, text: str, expected: list[str]
) -> None:
    held = parse_policy(POLICIES[policy], "p.toml")
    assert told(offered(workspace, held, walls, tool, text), workspace.root) == expected


def test_a_granted_program_that_asks_to_run_unconfined_is_asked_about(workspace: Workspace) -> None:
    """Also where the default lets commands run, and the text that an interpreter is given with them."""
    policy = parse_policy(b'version = 1\n[tools]\nbash = "auto"', "p.toml")
    action = action_for("bash", "python3 - <<'E'\nprint(1)\nE", workspace)
    pattern = GrantPattern(
        tools=("bash",), argv=("python3",), write=(".",), folder=workspace.root, network=True, program=True
    )
    origin = Origin(file=SESSION_GRANTS, line=1)
    granted = with_grants(policy, [Grant(id="grant-1", scope=GrantScope.SESSION, pattern=pattern, origin=origin)])
    unconfined = replace(action, facets=(*action.facets, Unconfined(justification="it needs to")))
    found = [evaluate(held, one).decision.word for held in (policy, granted) for one in (action, unconfined)]
    assert found == ["auto", "confirm", "auto", "confirm"]

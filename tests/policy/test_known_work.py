"""What runs where a person granted every known command inside walls, and what is asked about all the same."""

from __future__ import annotations

import pytest
from judged_world import made, table_lines
from places import shell_word
from rows import all_rows

from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.grant_pattern import GrantScope
from harness.policy.grant_offers import offer_for
from harness.policy.loader import load_policy
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.session_grants import SESSION_GRANTS, Grant, with_grants
from harness.policy.verdict import evaluate
from harness.policy.walls_here import WallsHere

ROWS = [line.split(" ", 1) for _, line in table_lines("known_work.txt")]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return made(tmp_path_factory.mktemp("home").resolve()).workspace


@pytest.fixture(scope="module")
def granted(workspace: Workspace) -> Policy:
    policy, action = load_policy("default"), action_for("bash", "make test", workspace)
    offer = offer_for(policy, action, evaluate(policy, action), WallsHere(root=workspace.root, confines=True))
    assert not isinstance(offer, str)
    (pattern,) = offer.choices[-1].patterns
    origin = Origin(file=SESSION_GRANTS, line=1)
    return with_grants(policy, [Grant(id="grant-1", scope=GrantScope.SESSION, pattern=pattern, origin=origin)])


@all_rows(("word", "command"), ROWS)
def test_grant_of_known_commands_decides_as_listed(
    word: str, command: str, granted: Policy, workspace: Workspace
) -> None:
    text = command.replace("ROOT", shell_word(workspace.root)).replace("\u23ce", "\n")
    verdict = evaluate(granted, action_for("bash", text, workspace))
    assert (verdict.decision.word, verdict.deciding.reason if verdict.decision.word != word else "") == (word, "")

"""`harness policy import`: the table imported_policies.txt, and the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from judged_world import World, made
from rows import all_rows

from harness.actions import Decision
from harness.app.policy.judged_call import action_for
from harness.errors import UsageError
from harness.plugins.agents.commands.import_command import READERS
from harness.plugins.agents.imported_policy import imported_policy
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate

if TYPE_CHECKING:
    from program import Program


def _rows() -> Iterator[tuple[str, str, str, str]]:
    agent = text = ""
    for line in Path(__file__).with_name("imported_policies.txt").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word in READERS:
            agent, text = word, rest.replace("⏎", "\n")
        elif word and word != "#":
            yield agent, text, word, rest


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made(tmp_path_factory.mktemp("imported"))


@all_rows(("agent", "text", "word", "subject"), list(_rows()))
def test_imported_policy_decides_as_listed(agent: str, text: str, word: str, subject: str, world: World) -> None:
    permissions, defaults = READERS[agent](text)
    imported = imported_policy("x", permissions, defaults)
    policy = parse_policy(imported.text.encode(), "p.toml")
    if word == "left":
        assert subject in dict(imported.left_out)
        return
    if word == "wider":
        assert subject in imported.wider
        assert f"#   {subject}" in imported.text
        return
    action = action_for(subject, "{}", world.workspace) if subject.startswith("mcp__") else world.action(subject)
    verdict = evaluate(policy, action)
    held = any(rule.walled for facet in verdict.facets for rule in facet.rules)
    is_walled = verdict.decision is Decision.AUTO and (held or any(each.in_walls for each in policy.defaults))
    assert ("walls" if is_walled and word == "walls" else verdict.decision.word) == word, verdict.deciding.by


@all_rows(
    ("agent", "text", "problem"),
    [
        ("claude", "{", "invalid JSON"),
        ("claude", "[]", "not settings of Claude Code"),
        ("claude", '{"permissions": {"allow": "Bash"}}', "permissions.allow must be a list of strings"),
        ("codex", "prefix_rule(", "not a rules file of Codex"),
    ],
)
def test_file_of_another_form_is_refused(agent: str, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        READERS[agent](text)


def test_command_writes_a_policy_that_check_takes(program: Program) -> None:
    settings = program.home / "settings.json"
    settings.write_text('{"permissions": {"allow": ["Bash(npm test:*)"], "deny": ["Read(./.env)", "Task(x)"]}}')
    done = program.run("policy", "import", "claude", str(settings))
    policy = program.home / "p.toml"
    policy.write_text(done.out)
    assert (done.code, program.run("policy", "check", "--strict", str(policy)).code) == (0, 0)
    assert "2 of 3 permissions are in the policy, 0 of them stricter" in done.err
    assert "#   Task(x): harness has no such tool" in done.out
    assert program.run("policy", "import", "claude", str(program.home / "none")).code == 2

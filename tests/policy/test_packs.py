"""The packs that ship, each with `ci`: what a team types daily runs in walls, and what must never pass is asked or denied."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT
from rows import all_rows

from harness.actions import Decision
from harness.files.workspace import Workspace
from harness.gate.registry import ToolRegistry
from harness.messages import ToolCall
from harness.policy.loader import (
    LIMIT_KEYS,
    PACKS,
    RULE_KEYS,
    SANDBOX_KEYS,
    TOOLS_KEYS,
    TOP_KEYS,
    UNATTENDED_KEYS,
    load_policy,
    shipped_policy_path,
)
from harness.policy.policy import Policy
from harness.policy.verdict import evaluate
from harness.tools import builtin_tools

README = Path(ROOT) / "policies" / "README.md"
TABLE = Path(ROOT) / "tests" / "policy" / "packs.txt"


def rows() -> Iterator[tuple[str, str, str]]:
    pack = wanted = ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("    "):
            yield pack, wanted, line.strip()
        elif line and not line.startswith("#"):
            pack, wanted = line.split()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> ToolRegistry:
    home = tmp_path_factory.mktemp("home")
    for name in (
        "scripts/a.py",
        "analysis/clean.py",
        "data/raw/a.csv",
        "src/a.py",
        "overlays/test/x.yaml",
        "charts/x/a",
    ):
        path = home / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old\n")
    workspace = Workspace(str(home / "project"), str(home))
    return ToolRegistry(builtin_tools(workspace, environment={"PATH": "/usr/bin:/bin"}))


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policy]:
    folder = tmp_path_factory.mktemp("policies")
    for name in PACKS:
        (folder / f"{name}.toml").write_text(f'version = 1\nextends = ["ci", "{name}"]\n')
    return {name: load_policy(str(folder / f"{name}.toml")) for name in PACKS}


@all_rows(("pack", "wanted", "command"), [pytest.param(*row, id=f"{row[0]}: {row[2]}") for row in rows()])
def test_a_pack_decides(tools: ToolRegistry, policies: dict[str, Policy], pack: str, wanted: str, command: str) -> None:
    action = tools.prepare(ToolCall(id="1", name="bash", arguments=json.dumps({"command": command})))
    verdict = evaluate(policies[pack], action)
    assert (verdict.decision is Decision.AUTO) == (wanted == "auto"), verdict.deciding.by
    assert not verdict.effects.network or verdict.decision is not Decision.AUTO


def test_each_pack_has_rows_of_both_kinds() -> None:
    assert {(pack, wanted) for pack, wanted, _ in rows()} == {
        (pack, wanted) for pack in PACKS for wanted in ("auto", "never")
    }


@all_rows("pack", PACKS)
def test_a_pack_says_nothing_by_default_and_opens_walls_alone(pack: str) -> None:
    """So it can be put beside any policy: its examples are tried, and each auto rule for commands is in walls."""
    policy = load_policy(shipped_policy_path(pack))
    assert (policy.defaults, policy.readers, policy.sandbox_tables) == ((), (), ())
    assert all(rule.walled and not rule.opens.network for rule in policy.rules if rule.is_auto)


def test_the_page_beside_the_policies_has_every_key_and_pack() -> None:
    keys: dict[str, list[str]] = {}
    table = ""
    text = README.read_text()
    for head, key in re.findall(r"^\| ([^|]*)\| `?([^|`]+)`? \|", text.partition("## Every key")[2], re.MULTILINE):
        table = head.strip() or table
        keys.setdefault(table.strip("`[]"), []).append(key)
    assert {name: sorted(listed) for name, listed in keys.items() if name not in ("table", "---")} == {
        "top": sorted(TOP_KEYS),
        "tools": sorted((*TOOLS_KEYS, "a tool's name")),
        "unattended": sorted(UNATTENDED_KEYS),
        "limits": sorted(LIMIT_KEYS),
        "sandbox": sorted(SANDBOX_KEYS),
        "rule": sorted(RULE_KEYS),
    }
    assert re.findall(r"^\| `(\w+)` \|", text.partition("## Every key")[0], re.MULTILINE) == list(PACKS)

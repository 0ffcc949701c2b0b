"""The installed agents, each against a scripted model on the loopback, without a key and in an empty home.

HARNESS_AGENTS names the folder into which `python tests/plugins/agents/real/install_agents.py FOLDER` has put them.
Where it is not set all of this is skipped, and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from agent_calls import SHELL
from agent_plays import PLAYS, Play
from agent_rig import BEFORE, FOLDER, AgentRig, Played
from broken_hook import rows_of
from recorded_events import recorded_events
from rows import all_rows

from harness.plugins.agents.guarded_agent import agent_named

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_AGENTS names no folder: no agent is played"),
]
TABLE = Path(__file__).parent / "what_runs.txt"
MARK = "ran.txt"
HOOKED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    **{agent: (agent, {}) for agent in BEFORE if not agent_named(agent).settings.is_plugin},
    "claude with onFailure": ("claude", {"onFailure": "block"}),
}
"""Hooks that are a command, by the name of their row: the agent, and what its settings say of the hook beside the command."""


class Failing(NamedTuple):
    """A way in which a hook fails."""

    answer: Mapping[str, object] = {}
    seconds: int = 60
    """How long the agent waits for it."""
    python: str = sys.executable


FAILINGS = {
    "silent": Failing(),
    "refuses": Failing({"code": 2, "stderr": "our words"}),
    "refuses without a word": Failing({"code": 2}),
    "exit 1": Failing({"code": 1, "stderr": "our words"}),
    "exit 3": Failing({"code": 3, "stderr": "our words"}),
    "killed": Failing({"killed": True}),
    "no program": Failing(python="/nowhere/python"),
    "no JSON": Failing({"stdout": '{"decision": "deny", '}),
    "too slow": Failing({"seconds": 20, "code": 2, "stderr": "our words"}, seconds=2),
}


def _asked(agent: str, folder: Path, failing: Failing, keys: Mapping[str, str] | None = None) -> tuple[Played, bool]:
    rig = AgentRig(agent, folder / "rig", seconds=failing.seconds, python=failing.python, keys=keys)
    played = rig.play([[SHELL[agent](f"echo hi > {MARK}")]], answers={BEFORE[agent]: failing.answer})
    return played, (rig.workspace / MARK).exists()


@all_rows("play", PLAYS)
def test_agent_sends_its_hook_the_recorded_event(play: Play, tmp_path: Path) -> None:
    told = {event.shape for event in play.told(tmp_path / "rig")}
    kept = {event.shape for event in recorded_events() if event.agent == play.agent}
    if play.agent in ("codex", "kimi"):
        assert told <= kept  # two plays; and Kimi Code does not wait for its hooks after a call
    else:
        assert told == kept


@all_rows("agent", tuple(BEFORE), ids=tuple(BEFORE))
def test_a_call_runs_where_the_hook_is_silent_and_not_where_it_refuses(agent: str, tmp_path: Path) -> None:
    played, ran = _asked(agent, tmp_path / "silent", FAILINGS["silent"])
    assert (played.run.code, ran) == (0, True)
    played, ran = _asked(agent, tmp_path / "refused", FAILINGS["refuses"])
    assert not ran
    (said,) = played.results.values()
    assert ("our words" in said) == (agent != "copilot")  # which drops the reason of a refusal by exit code


@all_rows("row", tuple(HOOKED), ids=tuple(HOOKED))
def test_agent_lets_calls_through_if_its_hook_fails_as_documented(row: str, tmp_path: Path) -> None:
    agent, keys = HOOKED[row]
    ran = {
        name for name, failing in FAILINGS.items() if _asked(agent, tmp_path / name.replace(" ", "-"), failing, keys)[1]
    }
    assert ran == rows_of(TABLE)[row]

"""The installed agents, each against a scripted model on the loopback, without a key and in an empty home.

HARNESS_AGENTS names the folder into which `python tests/agents/install_agents.py FOLDER` has put them. Where it is not set
all of this is skipped, and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from agent_calls import SHELL
from agent_plays import PLAYS, Play
from agent_rig import BEFORE, FOLDER, AgentRig, Played
from recorded_events import recorded_events
from rows import all_rows

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_AGENTS names no folder: no agent is played"),
]
TABLE = Path(__file__).parent / "what_runs.txt"
MARK = "ran.txt"
HOOKED_BY_COMMAND = tuple(agent for agent in BEFORE if agent != "opencode")


class Failing(NamedTuple):
    """A way in which a hook fails."""

    answer: Mapping[str, object] = {}
    seconds: int = 60
    """How long the agent waits for it."""
    script: str = "recording_hook.py"


FAILINGS = {
    "silent": Failing(),
    "refuses": Failing({"code": 2, "stderr": "our words"}),
    "refuses without a word": Failing({"code": 2}),
    "exit 1": Failing({"code": 1, "stderr": "our words"}),
    "exit 3": Failing({"code": 3, "stderr": "our words"}),
    "killed": Failing({"killed": True}),
    "no script": Failing(script="missing.py"),
    "no JSON": Failing({"stdout": '{"decision": "deny", '}),
    "too slow": Failing({"seconds": 20, "code": 2, "stderr": "our words"}, seconds=2),
}


def _asked(agent: str, folder: Path, failing: Failing) -> tuple[Played, bool]:
    rig = AgentRig(agent, folder / "rig", seconds=failing.seconds, script=failing.script)
    played = rig.play([[SHELL[agent](f"echo hi > {MARK}")]], answers={BEFORE[agent]: failing.answer})
    return played, (rig.workspace / MARK).exists()


@all_rows("play", PLAYS)
def test_an_agent_tells_its_hook_what_was_recorded(play: Play, tmp_path: Path) -> None:
    told = {event.shape for event in play.told(tmp_path / "rig")}
    kept = {event.shape for event in recorded_events() if event.agent == play.agent}
    if play.agent == "codex":
        assert told <= kept  # two plays
    else:
        assert told == kept


@all_rows("agent", BEFORE, ids=list(BEFORE))
def test_a_call_runs_where_the_hook_is_silent_and_not_where_it_refuses(agent: str, tmp_path: Path) -> None:
    played, ran = _asked(agent, tmp_path / "silent", FAILINGS["silent"])
    assert (played.run.code, ran) == (0, True)
    played, ran = _asked(agent, tmp_path / "refused", FAILINGS["refuses"])
    assert not ran
    (said,) = played.results.values()
    assert ("our words" in said) == (agent != "copilot")  # which drops the reason of a refusal by exit code


def what_runs() -> dict[str, set[str]]:
    """Return, for each agent, how a hook may fail and the call run all the same."""
    lines = (line for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    table = (line.partition(":") for line in lines)
    return {agent: {way.strip() for way in ways.split(",")} for agent, _, ways in table}


@all_rows("agent", HOOKED_BY_COMMAND, ids=HOOKED_BY_COMMAND)
def test_what_an_agent_lets_through_when_its_hook_fails(agent: str, tmp_path: Path) -> None:
    ran = {name for name, failing in FAILINGS.items() if _asked(agent, tmp_path / name.replace(" ", "-"), failing)[1]}
    if os.environ.get("HARNESS_AGENTS_SHOW"):
        print(f"{agent}: {', '.join(sorted(ran))}")
    assert ran == what_runs()[agent]


def test_the_table_is_of_these_agents_and_ways() -> None:
    assert set(what_runs()) == set(HOOKED_BY_COMMAND)
    assert set().union(*what_runs().values()) <= set(FAILINGS)

"""Our hook, installed in an agent as a person does it, and then broken: what runs all the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from agent_calls import SHELL
from agent_rig import AgentRig
from places import ROOT

TABLE = Path(ROOT, "tests", "plugins", "agents", "real", "what_runs_behind_ours.txt")
POLICY = """\
version = 1
name = "agents"
[tools]
read_file = "auto"
edit_file = "auto"
write_file = "confirm"
bash = "confirm"
default = "auto"
[[rule]]
id = "says"
decision = "auto"
argv = [["echo", "pwd"], "..."]
[[rule]]
id = "push"
decision = "deny"
argv = ["git", "push"]
reason = "nothing is pushed from here"
"""
NOTHING = "nothing"
_HEAD = """\
# What each agent lets through where our hook is installed and then broken, by `record_broken.py`. The ways that were played:
"""


def guarded(agent: str, folder: Path, policy: str = POLICY) -> AgentRig:
    """Return an agent with our hook, installed as a person does it."""
    rig = AgentRig(agent, folder / "rig", records=False)
    path = folder / "policy.toml"
    path.write_text(policy)
    done = rig.harness("hook", "install", agent, "--yes", "--policy", str(path))
    assert done.returncode == 0, done
    return rig


def _program(text: str) -> Callable[[AgentRig, Path], None]:
    def put(rig: AgentRig, _: Path) -> None:
        rig.program.unlink()
        if text:
            rig.program.write_text(f"#!/bin/sh\n{text}\n")
            rig.program.chmod(0o700)

    return put


def _no_state(rig: AgentRig, _: Path) -> None:
    state = rig.home / ".local/state/harness"
    shutil.rmtree(state, ignore_errors=True)
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text("no folder")


BROKEN: Mapping[str, Callable[[AgentRig, Path], object]] = {
    "exit 1": _program("exit 1"),
    "exit 3": _program("exit 3"),
    "killed": _program("kill -9 $$"),
    "no program": _program(""),
    "the policy is gone": lambda _, policy: policy.unlink(),
    "the policy has a fault": lambda _, policy: policy.write_text("version = ["),
    "nothing can be logged": _no_state,
}
"""How it is broken; where a hook of anybody's can fail so, by the name that `test_agents.py` has for that."""


def runs_broken(agent: str, fault: str, folder: Path) -> bool:
    """Say whether a call of the agent runs where our hook is broken so: one that may run, or one that is asked about."""
    folder.mkdir(exist_ok=True)
    rig = guarded(agent, folder)
    BROKEN[fault](rig, folder / "policy.toml")
    played = rig.play([(SHELL[agent]("echo said"),), (SHELL[agent]("touch after.txt"),)])
    said = played.results["call_0-0-0"].replace("echo said", "")
    return "said" in said or (rig.workspace / "after.txt").exists()


def write_table(ran: Mapping[str, Sequence[str]]) -> None:
    """Write what ran of each agent."""
    rows = [f"{agent}: {', '.join(ways) or NOTHING}\n" for agent, ways in ran.items()]
    TABLE.write_text(f"{_HEAD}# {', '.join(BROKEN)}.\n{''.join(rows)}")


def rows_of(table: Path) -> dict[str, AbstractSet[str]]:
    """Return what a table says: for each agent, how a hook may fail and the call run all the same."""
    lines = (line for line in table.read_text().splitlines() if line and not line.startswith("#"))
    rows = (line.partition(":") for line in lines)
    return {agent: {way.strip() for way in ways.split(",")} - {NOTHING} for agent, _, ways in rows}

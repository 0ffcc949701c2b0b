"""The road of a call is three frames long, and each call is prepared, read, judged and walled once. bench/road.py shows it."""

from __future__ import annotations

import os
import sys

import pytest
from places import ROOT

from harness import Workspace
from harness.tools.command_walls import CommandWalls

sys.path.insert(0, os.path.join(ROOT, "bench"))

from road import Road


def test_three_frames_lead_from_the_loop_to_the_body_of_a_tool() -> None:
    assert Road(["cat a.txt"]).frames == [
        "loop/agent.py: Agent.run",
        "gate/gate.py: Gate.call",
        "tools/bash.py: BashTool.run_for",
    ]


def test_each_call_of_a_reply_is_prepared_read_judged_and_walled_once() -> None:
    """Where the kernel holds readers to their effects: they cannot have changed what the next call means."""
    if not CommandWalls(Workspace("/")).confines:
        pytest.skip("this kernel confines no command, so that each may have changed what the next one means")
    road = Road(["ls", "cat a.txt", "cat a.txt | head -2"])
    counted = [road.counts[name] for name in ("ToolRegistry.prepare", "parse", "evaluate", "walls_for")]
    assert counted == [3, 3, 3, 3]

"""Whether a person seems to sit at an agent: by its terminal, or that of a process that started it."""

from __future__ import annotations

import sys
from pathlib import Path

from rows import all_rows
from screen_scene import PlayedTerminal

LOOK = """\
import os, sys
from harness.plugins.agents.attendance import is_attended
print("attended:", is_attended({"CI": sys.argv[1]}, os.getpid()))
"""
HOOK = f"""\
import subprocess, sys
subprocess.run([sys.executable, "-c", {LOOK!r}, *sys.argv[1:]], start_new_session=True)
"""
"""An agent that starts its hook without a terminal."""


@all_rows("program", [LOOK, HOOK], ids=["agent", "hook"])
@all_rows("job,attended", [("", True), ("0", True), ("false", True), ("true", False), ("1", False)])
def test_terminal_of_an_agent_is_a_person_but_in_a_ci_job(
    program: str, job: str, attended: bool, tmp_path: Path
) -> None:
    with PlayedTerminal([sys.executable, "-c", program, job], cwd=tmp_path) as terminal:
        terminal.wait_for(f"attended: {attended}")

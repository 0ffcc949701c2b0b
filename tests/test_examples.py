"""The gate around agents of other libraries: each example runs its real package against a scripted model."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from program import Program

from harness import LogReader
from harness.models.scripted import Reply, call, replies, say

EMBEDDED = {
    "plain_openai": "openai",
    "openai_agents": "agents",
    "pydantic_ai_agent": "pydantic_ai",
    "langgraph_agent": "langgraph",
}
"""Examples, each with the package around which it is written."""
PYTHON = os.environ.get("HARNESS_EMBED", "")
"""A Python that has the extra `embed`. Without it, examples whose package is missing here are not run."""


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_example_is_denied_asks_and_stops_at_a_block(name: str, program: Program) -> None:
    if not PYTHON and importlib.util.find_spec(EMBEDDED[name]) is None:
        pytest.skip(f"{EMBEDDED[name]} is not installed here: HARNESS_EMBED names a Python that has the extra `embed`")
    (program.workspace / ".env").write_text("TOKEN=1\n")
    script = (
        Reply(calls=(call("read_file", path=".env"),)),
        Reply(calls=(call("write_file", path="yes.txt", content="hello\n"),)),
        Reply(calls=(call("write_file", path="no.txt", content="hello\n"),)),
        Reply(calls=(call("bash", command="rm -rf /"),)),
        say("This is never asked for."),
    )
    done = subprocess.run(
        [PYTHON or sys.executable, str(Path(ROOT, "examples", f"{name}.py")), "write two files"],
        cwd=program.workspace,
        check=False,
        env={
            **program.environment,
            "OPENAI_BASE_URL": program.serve(replies(*script)),
            "OPENAI_API_KEY": "sk-not-a-key-of-anybody",
        },
        input="y\nn\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout.count("run it? y/N ")) == (3, 2), done.stderr
    assert done.stdout.splitlines()[-1].removeprefix("run it? y/N ").startswith("Blocked")
    assert sorted(path.name for path in program.workspace.glob("*.txt")) == ["yes.txt"]
    assert len(program.players[0].requests) == 4

    log = LogReader(str(program.home / f"{name}.jsonl"))
    found = log.verify()
    assert (found.problem, found.open_sessions, found.unknown_calls) == ("", (), ())
    assert [str(each.outcome["status"]) for each in log.calls()] == ["denied", "ok", "denied", "blocked"]
    assert [each.answer for each in log.questions()] == ["yes", "no"]
    undone = program.said("undo", "--log", log.path, "--dry-run")
    assert re.search(r"would remove.*yes\.txt", undone)

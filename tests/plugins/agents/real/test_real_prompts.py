"""The installed agents with our hook, and a prompt that names a file with `@`."""

from __future__ import annotations

from pathlib import Path

import agent_rig
import pytest
from agent_calls import SHELL
from agent_rig import FOLDER
from broken_hook import guarded
from rows import all_rows

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_AGENTS names no folder: no agent is played"),
]
RULE = """
[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = [".env"]
reason = "Secrets stay out."
"""


@all_rows(
    "agent, words",
    [
        ("claude", ()),
        ("gemini", ()),
        ("qwen", ()),
        ("copilot", ()),
        # In their prompts, a name is no more than a name.
        ("pi", ("@NAME",)),
        ("opencode", ("--file=NAME", "--")),
    ],
)
def test_prompt_with_a_denied_file_is_stopped(agent: str, words: tuple[str, ...], tmp_path: Path) -> None:
    rig = guarded(agent, tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text() + RULE)
    (rig.workspace / ".env").write_text("SECRET=sesame\n")
    for name, plays in ((".env", False), ("f.txt", True)):
        prompt = agent_rig.PROMPT if words else f"{agent_rig.PROMPT} See @{name}"
        more = [word.replace("NAME", name) for word in words]
        played = rig.play([(SHELL[agent]("echo said"),)], prompt=prompt, more=more)
        assert bool(played.results) == plays
        shown = rig.harness("audit", "show").stdout
        assert prompt in shown
        assert ("denied: Secrets stay out." in shown) != plays

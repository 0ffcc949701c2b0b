"""What one command leaves in the session's own `/tmp` the next finds, also one that only reads, and nobody else does."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from agent_scene import reply
from grant_scene import Scene

from harness.actions import Action
from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.models.scripted import call
from harness.policy.verdict import Verdict
from harness.sandbox import probe, why_no_namespaces

pytestmark = pytest.mark.skipif(bool(why_no_namespaces(probe())), reason="commands have the /tmp of the machine here")

POLICY = b"""
version = 1
[tools]
default = "auto"
bash = "walls"
readers = true
[[rule]]
id = "secrets"
decision = "deny"
path = [".env"]
reason = "Secrets."
"""


def outcomes(folder: Path, *calls: str | ToolCall) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the status and text of each call or command, and the parts that a person was asked about."""
    asked: list[str] = []

    def yes(action: Action, verdict: Verdict) -> Approval:
        asked.append(verdict.deciding.facet.text)
        return Approval(answer=Answer.YES, by=action.tool)

    made = [call("bash", command=each) if isinstance(each, str) else each for each in calls]
    scene = Scene(folder, reply(*made), approver=lambda _: yes, policy=POLICY, machine=probe(), own_tmp=True)
    (scene.root / ".env").write_text("KEY=1\n")
    scene.agent.run("go")
    ended = [(str(record["status"]), str(record["content"])) for record in scene.records("outcome", "refused")]
    scene.close()
    return ended, asked


def test_next_command_finds_the_file_and_the_machine_does_not(tmp_path: Path) -> None:
    name = f"/tmp/left-{uuid.uuid4()}"
    done, asked = outcomes(
        tmp_path, f"echo left > {name}", f"cat {name} /var{name}", f"cp {name} copy && rm {name}", f"cat {name}"
    )
    assert asked == []
    assert [(status, text.partition("\n[")[0]) for status, text in done[1:3]] == [
        ("ok", "left\nleft"),
        ("ok", "(no output)"),
    ]
    assert ((tmp_path / "w" / "copy").read_text(), done[3][0], os.path.lexists(name)) == ("left\n", "failed", False)


def test_commands_and_file_tools_find_the_same_files(tmp_path: Path) -> None:
    name = f"/tmp/both-{uuid.uuid4()}"
    done, asked = outcomes(
        tmp_path,
        call("write_file", path=f"{name}/a.py", content="print('written')\n"),
        f"python3 {name}/a.py | tee {name}/out",
        call("read_file", path=f"{name}/out"),
        call("edit_file", path=f"{name}/a.py", old_string="written", new_string="edited"),
        f"python3 {name}/a.py",
        call("read_file", path=f"{name}/missing"),
    )
    texts = [text.partition("\n[")[0] for _, text in done]
    assert asked == []
    assert texts[1:3] + texts[4:5] == ["written", "     1\twritten", "edited"]
    assert ("not found" in texts[5], os.path.lexists(name)) == (True, False)


def test_file_of_the_machine_is_not_found_and_the_model_reads_why(tmp_path: Path) -> None:
    path = Path(f"/tmp/of-the-machine-{uuid.uuid4()}")
    path.write_text("private\n")
    try:
        ((status, text),), asked = outcomes(tmp_path, f"cat {path}")
    finally:
        path.unlink()
    assert (status, asked, "private" in text) == ("failed", [], False)
    assert "/tmp is the session's own" in text


def test_link_in_it_opens_nothing_that_is_denied_or_outside(tmp_path: Path) -> None:
    name, outside = f"/tmp/link-{uuid.uuid4()}", tmp_path / "outside"
    outside.write_text("outside\n")
    link = "import os; os.symlink('{}', '{}')"
    done, asked = outcomes(
        tmp_path,
        f'python3 -c "{link.format(tmp_path / "w" / ".env", f"{name}-a")}"',
        f"cat {name}-a",
        f"grep -R . {name}-a",
        f'python3 -c "{link.format(outside, f"{name}-b")}"',
        f"cat {name}-b",
    )
    assert not any("KEY" in text for _, text in done)
    assert asked == [f"{name}-b"]

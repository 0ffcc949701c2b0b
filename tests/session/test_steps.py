"""The four steps of a session, walked without a terminal, a command line or a provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

WALK = """
import json, os, sys
from argparse import Namespace
from harness.errors import HarnessError
from harness.gate.approval import deny_all
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.session.front import NoFront
from harness.session.provider_models import ProviderModels
from harness.session.running_session import begin_session
from harness.session.session_log import close_log
from harness.session.session_place import place_of
from harness.session.session_rules import Unattended, rules_of
from harness.session.session_tools import tools_of

class Model:
    name = "played"
    replies = [
        ModelResponse(
            text="", tool_calls=(ToolCall(id="1", name="read_file", arguments='{"path": "a.txt"}'),),
            finish_reason=FinishReason.DONE, usage=Usage(),
        ),
        ModelResponse(text="read it", tool_calls=(), finish_reason=FinishReason.DONE, usage=Usage()),
    ]
    def complete(self, messages, tools, *, on_text, **_):
        before = session.tools.changes.looks.ahead.ident is not None
        on_text("I look.")
        looked.append([before, session.tools.changes.looks.ahead.ident is not None])
        return self.replies.pop(0)

names = ("log", "policy", "policy_sha256", "copied_from", "max_turns", "max_seconds", "max_tokens", "max_cost")
flags = Namespace(**dict.fromkeys(names), cwd=os.getcwd(), add_dir=())
flags.policy = sys.argv[1] or None
told, looked = [], []
try:
    place = place_of(flags, os.environ, told.append)
    rules = rules_of(place, flags, told.append, unattended=Unattended())
    tools = tools_of(rules, NoFront(told.append))
    session = begin_session(ProviderModels(tools), Model(), mode="run", approver=deny_all)
except HarnessError as error:
    print(json.dumps([type(error).__name__]))
    sys.exit()
frozen = []
for step, field in ((place, "settings"), (rules, "policy"), (tools, "level")):
    try:
        setattr(step, field, None)
    except AttributeError:
        frozen.append(type(step).__name__)
result = session.agent.run("go")
close_log(place.state, session.log)
print(json.dumps([result.stop.value, result.text, frozen, told, session.rules is rules, session.place is place, looked]))
"""


def walked(folder: Path, policy: str = "") -> list[object]:
    """Return what the script prints that walks the steps."""
    workspace = folder / "w"
    workspace.mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("a\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-c", WALK, policy]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=workspace)
    found: list[object] = json.loads(done.stdout)
    return found


def logs(folder: Path) -> list[Path]:
    return sorted((folder / "state").glob("**/sessions/**/*.jsonl"))


def test_each_step_is_frozen_and_the_session_runs_without_a_front_end(tmp_path: Path) -> None:
    steps = ["SessionPlace", "SessionRules", "SessionTools"]
    assert walked(tmp_path)[:-1] == ["completed", "read it", steps, [], True, True]
    kinds = [json.loads(line)["kind"] for line in logs(tmp_path)[0].read_text().splitlines()]
    assert (kinds[0], kinds.count("outcome"), kinds[-1]) == ("session_started", 1, "session_ended")


def test_look_at_the_files_begins_with_the_text_of_a_reply(tmp_path: Path) -> None:
    """So that a command after the text does not wait for all of it."""
    policy = tmp_path / "policy.toml"
    policy.write_text('version = 1\n[tools]\ndefault = "auto"\n')
    assert walked(tmp_path, str(policy))[-1] == [[False, True], [True, True]]
    assert walked(tmp_path)[-1] == [[False, False], [False, False]]  # unattended, without a policy: commands are denied


def test_a_policy_that_is_wrong_is_found_before_a_log_is_opened(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("no policy")
    assert (walked(tmp_path, str(wrong)), logs(tmp_path)) == (["PolicyError"], [])

"""An agent with the real tools, whose person grants what is offered at a question."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from agent_scene import DONE, Playing, reply
from log_auditor import audited
from log_scene import unsynced

from harness.actions import Action
from harness.files.before_images import BeforeImages
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver
from harness.gate.options import GateOptions
from harness.gate.place_watch import AskPlaces, nobody_to_ask
from harness.gate.tool import Tool
from harness.grant_pattern import GrantScope
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.loop.agent import Agent
from harness.messages import ModelResponse, ToolCall
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.sandbox import Machine, probe
from harness.session.kept_grants import KeptGrants
from harness.tools import builtin_tools
from harness.tools.bash import BashTool
from harness.tools.command_runner import CommandRunner
from harness.tools.command_walls import CommandWalls
from harness.tools.script_declaration import declared
from harness.tools.script_tool import ScriptTool

LANDLOCK = replace(probe(), bubblewrap="", no_namespaces="off")
"""This machine with Landlock alone."""

POLICY = b"""
version = 1
[tools]
default = "confirm"
[[rule]]
id = "no-touch"
decision = "deny"
argv = ["touch"]
reason = "Nothing is touched."
[[rule]]
id = "stop"
decision = "block"
argv = ["halt-here"]
reason = "It ends."
"""


def held(text: bytes = POLICY) -> Policy:
    return parse_policy(text, "p.toml")


class Scene:
    """An agent with the real tools in a workspace of its own, and its log."""

    def __init__(
        self,
        folder: Path,
        *replies: ModelResponse,
        approver: Callable[[Agent], Approver],
        kept: bool = False,
        policy: bytes = POLICY,
        machine: Machine | None = None,
        ask_places: AskPlaces = nobody_to_ask,
        script: Mapping[str, object] | None = None,
        own_tmp: bool = False,
    ) -> None:
        for name in ("w", "state"):
            (folder / name).mkdir(exist_ok=True)
        self.root = folder / "w"
        self.path = str(folder / "log.jsonl")
        self.kept = KeptGrants(str(folder / "state" / "grants"), "w", str(self.root))
        log = ActionLog.open(self.path, sync=unsynced)
        self._approver = approver
        self._ask_places = ask_places
        self.agent: Agent = Agent(
            model=Playing([*replies, DONE]),
            tools=_tools(
                Workspace(str(self.root), str(folder)),
                machine,
                BeforeImages(str(folder / "images")),
                script,
                own_tmp=own_tmp,
            ),
            policy=held(policy),
            approver=self._ask,
            facts={"workspace": str(self.root)},
            log=log,
            options=GateOptions(
                grants=self.kept.read().grants if kept else (),
                kept=self.kept if kept else None,
                ask_places=self._ask_places,
            ),
        )

    def _ask(self, action: Action, verdict: Verdict) -> Approval:
        return self._approver(self.agent)(action, verdict)

    def records(self, *kinds: str) -> list[LogRecord]:
        return [record for record in read_log(self.path) if record["kind"] in kinds]

    def close(self) -> None:
        """Hold the log against both judges."""
        self.agent.log.close()
        assert verify(self.path).broken_line is None
        assert audited(self.path).breaches == []


def _tools(
    workspace: Workspace,
    machine: Machine | None,
    images: BeforeImages,
    script: Mapping[str, object] | None,
    *,
    own_tmp: bool,
) -> tuple[Tool, ...]:
    environment = {"PATH": os.environ["PATH"]}
    if own_tmp:
        return builtin_tools(workspace, environment=environment, images=images)
    _, *others = builtin_tools(workspace, environment=environment)
    walls = CommandWalls(workspace, machine=machine)
    commands = CommandRunner(workspace, environment=environment, walls=walls, images=images)
    scripts = [] if script is None else [ScriptTool(declared(script), commands)]
    return (BashTool(workspace, commands), *others, *scripts)


def granting(scope: GrantScope, choice: str = "exactly this") -> Callable[[Agent], Approver]:
    """Return who says yes and grants the choice of that name; where there is none, a plain yes."""

    def of(agent: Agent) -> Approver:
        def approver(action: Action, verdict: Verdict) -> Approval:
            offer = agent.gate.grants.offer(action, verdict)
            choices = () if isinstance(offer, str) else offer.choices
            for one in choices:
                if one.name == choice:
                    return Approval(answer=Answer.YES, by="script", scope=scope, patterns=one.patterns)
            return Approval(answer=Answer.YES, by="script")

        return approver

    return of


def bash(*commands: str) -> ModelResponse:
    calls = [ToolCall(id=f"c{n}", name="bash", arguments=json.dumps({"command": c})) for n, c in enumerate(commands)]
    return reply(*calls)

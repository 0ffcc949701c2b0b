"""The action of a call to an agent's own tool for `policy explain`. Starts no agent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from harness.actions import Action, JsonValue
from harness.files.workspace import Workspace
from harness.gate.registry import ToolRegistry
from harness.messages import ToolCall
from harness.plugins.agents.event import HookEvent, When
from harness.plugins.agents.foreign_call import ForeignKind
from harness.plugins.agents.foreign_tools import foreign_tool
from harness.plugins.agents.guarded_agent import AGENTS, agent_named
from harness.tools.bash import BashTool
from harness.tools.command_runner import CommandRunner


def explained_call(
    tool: str, arguments: Mapping[str, JsonValue], workspace: Workspace, cwd: str, environment: Mapping[str, str]
) -> tuple[Action, str] | None:
    """Return the action of a call of an agent's tool in the folder `cwd`, and a note on the agent. `None` for other tools.

    Several agents may have a tool of this name: the first that understands the arguments counts. Raises ToolError.
    """
    agents = [agent for agent in map(agent_named, AGENTS) if tool in agent.tools]
    if not agents:
        return None
    event = HookEvent(when=When.BEFORE, session="explain", cwd=cwd, tool=tool, arguments=arguments)
    calls = [(agent, agent.call_of(event, environment)) for agent in agents]
    agent, call = next((each for each in calls if each[1].kind is not ForeignKind.UNKNOWN), calls[0])
    folder = os.path.realpath(os.path.join(cwd, str(call.arguments.get("cwd", ""))))
    judged_arguments = dict(call.arguments)
    if call.kind is ForeignKind.SHELL:
        judged_arguments["cwd"] = folder
        if judged_arguments.pop("unconfined", False):
            judged_arguments |= {
                "unconfined": True,
                "justification": f"{agent.title} asks to run it outside its sandbox",
            }

    def shell() -> BashTool:
        return BashTool(workspace, CommandRunner(workspace, environment=environment))

    registry = ToolRegistry([foreign_tool(call, workspace, folder, shell)])
    judged_call = ToolCall(id="explain", name=call.tool, arguments=json.dumps(judged_arguments))
    return registry.prepare(judged_call), f"a tool of {agent.title}, judged as {call.tool}"

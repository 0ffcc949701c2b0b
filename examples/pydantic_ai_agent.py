"""An agent of Pydantic AI, with the tools of harness behind the gate (pip install 'pydantic-ai-slim[openai]').

    OPENAI_API_KEY=... python examples/pydantic_ai_agent.py "say what this project is about"

A person answers y or n. Other servers: OPENAI_BASE_URL; another model: HARNESS_MODEL.
"""

import os
import sys
from typing import Any

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.models.openai import OpenAIChatModel

from harness import (
    Action,
    ActionLog,
    Answer,
    Approval,
    GatedTools,
    ToolSpec,
    Verdict,
    Workspace,
    builtin_tools,
    load_policy,
    visible,
)  # fmt: skip


class Halted(Exception):
    """Ends the run of the agent."""


def ask(action: Action, verdict: Verdict) -> Approval:
    print(visible(f"{action.preview}\n{action.tool} asks: {verdict.deciding.reason}"))
    print("run it? y/N ", end="", flush=True)
    return Approval(answer=Answer.YES if sys.stdin.readline().strip() == "y" else Answer.NO, by="person")


def agent_tool(gate: GatedTools, spec: ToolSpec) -> Tool[None]:
    def call(context: RunContext[None], **arguments: Any) -> str:
        result = gate.call(spec.name, arguments, call_id=context.tool_call_id or "")
        if gate.halted:
            raise Halted(gate.halted)
        return result.content

    return Tool.from_schema(call, spec.name, spec.description, dict(spec.parameters), takes_ctx=True, sequential=True)


def work(gate: GatedTools, prompt: str) -> str:
    agent = Agent(
        OpenAIChatModel(os.environ.get("HARNESS_MODEL", "gpt-5")),
        deps_type=type(None),
        tools=[agent_tool(gate, spec) for spec in gate.specs],
    )
    try:
        return str(agent.run_sync(prompt).output)
    except Halted as error:
        return str(error)


def main(prompt: str) -> int:
    with GatedTools(
        tools=builtin_tools(Workspace("."), undo=True),
        policy=load_policy("default"),
        approver=ask,
        log=ActionLog.open(os.path.expanduser("~/pydantic_ai_agent.jsonl")),
    ) as gate:
        print(visible(work(gate, prompt)))
        return 3 if gate.halted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

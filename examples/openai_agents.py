"""An agent of OpenAI's Agents SDK, with the tools of harness behind the gate (pip install openai-agents).

    OPENAI_API_KEY=... python examples/openai_agents.py "say what this project is about"

A person answers y or n. Other servers: OPENAI_BASE_URL; another model: HARNESS_MODEL.
"""

import asyncio
import os
import sys
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    Runner,
    ToolsToFinalOutputResult,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

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


def ask(action: Action, verdict: Verdict) -> Approval:
    print(visible(f"{action.preview}\n{action.tool} asks: {verdict.deciding.reason}"))
    print("run it? y/N ", end="", flush=True)
    return Approval(answer=Answer.YES if sys.stdin.readline().strip() == "y" else Answer.NO, by="person")


def function_tool(gate: GatedTools, spec: ToolSpec) -> FunctionTool:
    async def invoke(context: Any, arguments: str) -> str:
        result = await asyncio.to_thread(gate.call, spec.name, arguments, call_id=context.tool_call_id)
        return result.content

    return FunctionTool(
        name=spec.name,
        description=spec.description,
        params_json_schema=dict(spec.parameters),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


async def work(gate: GatedTools, prompt: str) -> str:
    agent = Agent[None](
        name="coder",
        model=OpenAIChatCompletionsModel(os.environ.get("HARNESS_MODEL", "gpt-5"), AsyncOpenAI()),
        tools=[function_tool(gate, spec) for spec in gate.specs],
        tool_use_behavior=lambda _context, _results: ToolsToFinalOutputResult(bool(gate.halted), gate.halted),
    )
    return str((await Runner.run(agent, prompt, max_turns=50)).final_output)


def main(prompt: str) -> int:
    set_tracing_disabled(True)  # else the conversation goes to the SDK's own service
    with GatedTools(
        tools=builtin_tools(Workspace("."), undo=True),
        policy=load_policy("default"),
        approver=ask,
        log=ActionLog.open(os.path.expanduser("~/openai_agents.jsonl")),
    ) as gate:
        print(visible(asyncio.run(work(gate, prompt))))
        return 3 if gate.halted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

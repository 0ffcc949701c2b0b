"""A loop of one's own around the openai library, with its tools behind the gate.

    OPENAI_API_KEY=... python examples/plain_openai.py "say what this project is about"

A person answers y or n. Other servers: OPENAI_BASE_URL; another model: HARNESS_MODEL.
"""

import os
import sys
from typing import Any

from openai import OpenAI

from harness import (
    Action,
    ActionLog,
    Answer,
    Approval,
    GatedTools,
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


def work(gate: GatedTools, prompt: str) -> str:
    client, model = OpenAI(), os.environ.get("HARNESS_MODEL", "gpt-5")
    tools: Any = [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
        }
        for spec in gate.specs
    ]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while not gate.halted:
        reply = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        if not reply.tool_calls:
            return reply.content or ""
        messages.append(reply)
        for call in reply.tool_calls:
            if call.type == "function":
                result = gate.call(call.function.name, call.function.arguments, call_id=call.id)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content})
    return gate.halted


def main(prompt: str) -> int:
    with GatedTools(
        tools=builtin_tools(Workspace("."), undo=True),
        policy=load_policy("default"),
        approver=ask,
        log=ActionLog.open(os.path.expanduser("~/plain_openai.jsonl")),
    ) as gate:
        print(visible(work(gate, prompt)))
        return 3 if gate.halted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

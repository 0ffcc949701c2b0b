"""A graph of LangGraph, with the tools of harness behind the gate (pip install langgraph langchain-openai).

    OPENAI_API_KEY=... python examples/langgraph_agent.py "say what this project is about"

A person answers y or n. Other servers: OPENAI_BASE_URL; another model: HARNESS_MODEL.
"""

import os
import sys
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

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


def calls_of(state: MessagesState) -> list[ToolCall]:
    reply = state["messages"][-1]
    return reply.tool_calls if isinstance(reply, AIMessage) else []


def work(gate: GatedTools, prompt: str) -> str:
    model = ChatOpenAI(model=os.environ.get("HARNESS_MODEL", "gpt-5")).bind_tools(
        [
            {
                "type": "function",
                "function": {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)},
            }
            for spec in gate.specs
        ]
    )

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def call_tools(state: MessagesState) -> dict[str, Any]:
        results = []
        for call in calls_of(state):
            result = gate.call(call["name"], call["args"], call_id=call["id"] or "")
            results.append(ToolMessage(result.content, tool_call_id=call["id"] or ""))
        return {"messages": results}

    def has_calls(state: MessagesState) -> str:
        return "tools" if calls_of(state) else END

    graph = StateGraph(MessagesState)
    graph.add_node("model", answer)
    graph.add_node("tools", call_tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", has_calls)
    graph.add_conditional_edges("tools", lambda _: END if gate.halted else "model", ["model", END])
    end = graph.compile().invoke({"messages": [HumanMessage(prompt)]}, {"recursion_limit": 100})
    return gate.halted or str(end["messages"][-1].text)


def main(prompt: str) -> int:
    with GatedTools(
        tools=builtin_tools(Workspace("."), undo=True),
        policy=load_policy("default"),
        approver=ask,
        log=ActionLog.open(os.path.expanduser("~/langgraph_agent.jsonl")),
    ) as gate:
        print(visible(work(gate, prompt)))
        return 3 if gate.halted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

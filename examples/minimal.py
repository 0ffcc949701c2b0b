"""A whole agent in one file: what the shipped default policy does not settle is asked; anything but `y` is a no.

    OPENAI_API_KEY=... python examples/minimal.py "say what this project is about"

Works in the current folder. Other servers: OPENAI_BASE_URL; another model: HARNESS_MODEL.
"""

import os
import sys

from harness import (
    Action,
    ActionLog,
    Agent,
    Answer,
    Approval,
    OpenAIChat,
    StopReason,
    Verdict,
    Workspace,
    builtin_tools,
    load_policy,
    visible,
)  # fmt: skip


def ask(action: Action, verdict: Verdict) -> Approval:
    print(f"\n{action.preview}\n{action.tool} asks: {verdict.deciding.reason}\nrun it? y/N ", end="", flush=True)
    return Approval(answer=Answer.YES if sys.stdin.readline().strip() == "y" else Answer.NO, by="person")


def main(prompt: str) -> int:
    agent = Agent(
        model=OpenAIChat(os.environ.get("HARNESS_MODEL", "gpt-5")),
        tools=builtin_tools(Workspace("."), undo=True),
        policy=load_policy("default"),
        approver=ask,
        log=ActionLog.open(os.path.expanduser("~/minimal.jsonl"), secrets=[os.environ.get("OPENAI_API_KEY", "")]),
    )
    result = agent.run(prompt)
    print(visible(result.text or result.detail))
    return 0 if result.stop is StopReason.COMPLETED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""What destroys is asked about also where the person types it; it decides nothing else, and runs nothing."""

from __future__ import annotations

import json

from harness.cli.commands.conversation import Conversation
from harness.errors import ToolError
from harness.gate.approval import Answer
from harness.messages import ToolCall
from harness.policy.destruction import destroys
from harness.policy.policy import evaluate
from harness.policy.rules import Decision


def asks_again(conversation: Conversation, text: str) -> bool:
    """Return whether a command may go to the gate: it destroys nothing, or the person said so in the word that is asked for.

    What is no valid call, or is refused by the policy, goes there as well, and is refused and recorded there.
    """
    agent = conversation.agent
    call = ToolCall(id="", name="bash", arguments=json.dumps({"command": text}, ensure_ascii=False))
    try:
        action = agent.registry.prepare(call)
    except ToolError:
        return True
    verdict = evaluate(agent.gate.policy, action)
    if verdict.decision >= Decision.DENY or not destroys(action):
        return True
    return conversation.approver(action, verdict).answer is Answer.YES

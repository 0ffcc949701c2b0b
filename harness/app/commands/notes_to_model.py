"""Notes for the model before the user's next message.

A note has the output of the user's own commands, the start or end of plan mode, or the fact that an earlier message got
no answer. Notes are text before the user's words, and may be cut or masked. They are no separate messages and decide
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.loop.compaction import split_summary
from harness.messages import Message, Role
from harness.session.person_message import INTERRUPTED, PLAN_ON, PLAN_OVER, UNANSWERED

MOST_OUTPUTS = 16_000
"""Maximum number of characters of all outputs of the user's commands until the next message.

About 4,000 tokens of English.
"""


class NotesToModel:
    """The notes for the user's next message."""

    def __init__(self) -> None:
        self._outputs: list[str] = []

    def add(self, output: str) -> bool:
        """Store the output of a command. Return whether it fits into the limit of MOST_OUTPUTS characters."""
        if sum(map(len, self._outputs)) + len(output) > MOST_OUTPUTS:
            return False
        self._outputs.append(output)
        return True

    def forget(self) -> int:
        """Drop the stored outputs, and return their number."""
        count = len(self._outputs)
        self._outputs.clear()
        return count

    def message(self, line: str, messages: Sequence[Message], *, plans: bool, interrupted: bool = False) -> str:
        """Return the user's message with the notes before it, and drop the notes.

        `messages` is the present conversation. If its last message is an unanswered one of the user, a note says so;
        `interrupted` tells that the user stopped that turn.

        INVARIANT: the note on plan mode comes before the user's words and has no length limit. It is omitted only if
        the conversation has it, so that it is not lost by /undo, /clear, a summary or a new session.
        """
        outputs, self._outputs = self._outputs, []
        between = ((INTERRUPTED if interrupted else UNANSWERED),) if is_unanswered(messages) else ()
        return "\n\n".join((*between, *_on_plan_mode(messages, plans), *outputs, line))


def is_unanswered(messages: Sequence[Message]) -> bool:
    """Return whether a conversation ends with words of the user. The user's next message is then joined to these."""
    return bool(messages) and messages[-1].role is Role.USER and bool(split_summary(messages[-1].content)[1])


def _on_plan_mode(messages: Sequence[Message], plans: bool) -> tuple[str, ...]:
    """Return the note on plan mode. Empty if the last such note in the conversation is still true."""
    texts = (split_summary(message.content)[1] for message in reversed(messages) if message.role is Role.USER)
    is_noted = next((text.startswith(PLAN_ON) for text in texts if text.startswith((PLAN_ON, PLAN_OVER))), False)
    if is_noted is plans:
        return ()
    return (PLAN_ON if plans else PLAN_OVER,)

"""What the model is told with the person's next message: what their own commands printed, that plan mode is on or over, and
that what they said before got no answer.

It is text before their words, which may be cut or masked; it holds no message and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.loop.compaction import split_summary
from harness.messages import Message, Role
from harness.session.person_message import INTERRUPTED, PLAN_ON, PLAN_OVER, UNANSWERED

MOST_OUTPUTS = 16_000
"""Characters of what the person's commands printed, of all of them until the next message: some 4,000 tokens of English."""


class NotesToModel:
    """What is kept for the person's next message."""

    def __init__(self) -> None:
        self._outputs: list[str] = []

    def add(self, output: str) -> bool:
        """Keep what a command printed; return whether it was kept: there is room for MOST_OUTPUTS characters."""
        if sum(map(len, self._outputs)) + len(output) > MOST_OUTPUTS:
            return False
        self._outputs.append(output)
        return True

    def forget(self) -> int:
        """Forget what was kept; return of how many commands it was."""
        count = len(self._outputs)
        self._outputs.clear()
        return count

    def message(self, line: str, messages: Sequence[Message], *, plans: bool, interrupted: bool = False) -> str:
        """Return the person's message to a conversation that holds `messages`, with what is to be told, which is forgotten.

        It will be joined to an earlier one that got no answer, so that it says so; `interrupted`: because the person
        stopped the turn.

        INVARIANT: the words on plan mode stand before all others of the person, outside any limit, wherever the conversation
        does not hold them, so that none of what forgets (/undo, /clear, a summary, another session) takes them away.
        """
        outputs, self._outputs = self._outputs, []
        between = ((INTERRUPTED if interrupted else UNANSWERED),) if is_unanswered(messages) else ()
        return "\n\n".join((*between, *_on_plan_mode(messages, plans), *outputs, line))


def is_unanswered(messages: Sequence[Message]) -> bool:
    """Say whether a conversation ends with words of the person: what they say next is joined to these."""
    return bool(messages) and messages[-1].role is Role.USER and bool(split_summary(messages[-1].content)[1])


def _on_plan_mode(messages: Sequence[Message], plans: bool) -> tuple[str, ...]:
    """Return what is to be said of plan mode: nothing where the last word on it, which a message begins with, is true."""
    said = (split_summary(message.content)[1] for message in reversed(messages) if message.role is Role.USER)
    known = next((text.startswith(PLAN_ON) for text in said if text.startswith((PLAN_ON, PLAN_OVER))), False)
    if known is plans:
        return ()
    return (PLAN_ON if plans else PLAN_OVER,)

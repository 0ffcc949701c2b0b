"""Notes for the model before the person's next message: the output of their own commands, the begin or end of plan
mode, and the fact that an earlier message got no answer.

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
    """The notes for the person's next message."""

    def __init__(self) -> None:
        self._outputs: list[str] = []

    def add(self, output: str) -> bool:
        """Keep the output of a command; return whether it fits: there is room for MOST_OUTPUTS characters."""
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
        """Return the person's message to a conversation that holds `messages`, after the notes, which are then
        dropped.

        It is joined to an earlier, unanswered one, and says so; `interrupted`: because the person stopped the turn.

        INVARIANT: the words on plan mode precede all others of the person, outside any limit, unless the conversation
        holds them, so that nothing that forgets (/undo, /clear, a summary, another session) takes them away.
        """
        outputs, self._outputs = self._outputs, []
        between = ((INTERRUPTED if interrupted else UNANSWERED),) if is_unanswered(messages) else ()
        return "\n\n".join((*between, *_on_plan_mode(messages, plans), *outputs, line))


def is_unanswered(messages: Sequence[Message]) -> bool:
    """Say whether a conversation ends with words of the person: what they say next is joined to these."""
    return bool(messages) and messages[-1].role is Role.USER and bool(split_summary(messages[-1].content)[1])


def _on_plan_mode(messages: Sequence[Message], plans: bool) -> tuple[str, ...]:
    """Return the note on plan mode; empty if the last one, which a message begins with, is still true."""
    texts = (split_summary(message.content)[1] for message in reversed(messages) if message.role is Role.USER)
    is_noted = next((text.startswith(PLAN_ON) for text in texts if text.startswith((PLAN_ON, PLAN_OVER))), False)
    if is_noted is plans:
        return ()
    return (PLAN_ON if plans else PLAN_OVER,)

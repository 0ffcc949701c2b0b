"""The offer of the mode `walls`, once in a session: after the third question, if it would have spared most of them."""

from __future__ import annotations

from harness.actions import Action
from harness.app.commands.conversation import Conversation
from harness.app.commands.mode import Mode, mode_of

OFFERED_AT = 3
"""Number of questions of a session after which the mode is offered."""


class ModeOffer:
    """Counts the questions of a session, and those that the mode `walls` would spare."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._questions = self._spared = 0

    def count(self, action: Action) -> None:
        """Count a question about a model's call. Offer the mode if it is time."""
        self._questions += 1
        if self._questions > OFFERED_AT or mode_of(self._conversation) in (Mode.WALLS, Mode.PLAN):
            return
        self._spared += self._conversation.agent.gate.grants.runs_in(Mode.WALLS.value, action)
        if self._questions == OFFERED_AT and self._spared * 2 > OFFERED_AT:
            self._conversation.say(
                f"the mode `walls` (Shift-Tab) would have spared you {self._spared} of {self._questions} questions: it asks "
                "only about what leaves the workspace walls or cannot be taken back"
            )

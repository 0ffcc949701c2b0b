"""Questions about a conversation's calls, asked at the terminal and at an external approver.

The first answer counts.
"""

from __future__ import annotations

from harness.actions import Action
from harness.app.commands.conversation import Conversation
from harness.app.repl.mode_offer import ModeOffer
from harness.app.repl.repl_terminal import Terminal
from harness.gate.approval import Approval
from harness.policy.verdict import Verdict
from harness.session.approver.session_approver import approver_outside
from harness.terminal.approver import TerminalApprover
from harness.terminal.asked_outside import AskedBesides
from harness.terminal.question import Usual, by_model, usual_here
from harness.tool_kinds import BASH


class Asking:
    """Asks the user about calls. Imported at the first turn, so that the prompt appears sooner."""

    def __init__(self, terminal: Terminal, conversation: Conversation) -> None:
        place = conversation.place
        self._conversation = conversation
        self._mode_offer = ModeOffer(conversation)
        outside = approver_outside(conversation.running, conversation.offer, is_alone=False)
        self._outside_asker = AskedBesides(outside, terminal.screen)
        self.at_terminal = TerminalApprover(
            terminal.screen,
            place.interrupt,
            conversation.confinement,
            environment=place.environment,
            offer=conversation.offer,
            advise=conversation.advice,
            paused=terminal.ahead.paused,
            usual=self._usual,
            dead_seconds=place.settings.terminal.dead_seconds.value,
            times=terminal.times,
            keyboard_of=self._outside_asker.keyboard,
        )

    def ask(self, action: Action, verdict: Verdict) -> Approval:
        """Ask about a call, as an Approver does."""
        approval = self._outside_asker.ask(self.at_terminal, action, verdict)
        if by_model(action):
            self._mode_offer.count(action)
        return approval

    def _usual(self) -> Usual:
        conversation = self._conversation
        undo = conversation.agent.gate.grants.walls_here(BASH.name).undo
        return usual_here(
            conversation.place.workspace.root, conversation.tools.level, conversation.running.policy, undo
        )

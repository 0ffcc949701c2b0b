"""Approvers that ask outside this process: alone without a terminal, or together with it, so that the first answer counts.

INVARIANT: each answer comes completely from one side. A partial answer at the terminal is dropped if the other side
answers first. An answer from outside does not count once the terminal has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from harness.actions import Action
from harness.gate.approval import Approval, Approver, nobody
from harness.interrupt import Interrupt
from harness.log.vocabulary import Answer
from harness.policy.verdict import Verdict
from harness.session.approver.standing_question import AskOutside, StandingQuestion, wait_for
from harness.terminal.keys import Keyboard, readable
from harness.terminal.question import by_model
from harness.terminal.screen import Screen
from harness.terminal.styles import Tone
from harness.text.visible import visible_line


def _tell_nobody(message: str) -> None:
    """Show no message, because the open question is visible elsewhere."""


class AskedAlone:
    """Asks only an approver outside. A missing answer counts as NOBODY."""

    def __init__(self, outside: AskOutside, interrupt: Interrupt, tell: Callable[[str], None] = _tell_nobody) -> None:
        """Use the approver `outside` and the interrupt. `tell` is called when a wait begins.

        The text for `tell` is hostile, and may contain secrets.
        """
        self._tell = tell
        self._outside = outside
        self._interrupt = interrupt

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Ask, and wait for the answer. Raises KeyboardInterrupt if a signal ends the wait."""
        question = self._outside(action, verdict)
        if isinstance(question, str):
            return nobody(question)
        self._tell(f"waits for an answer from outside: {action.tool}: {action.summary}")
        try:
            while (approval := question.look()) is None:
                with self._interrupt:
                    wait_for(question)
            return approval
        finally:
            question.withdraw()


class _AnsweredOutside(Exception):
    def __init__(self, approval: Approval) -> None:
        super().__init__()
        self.approval = approval


class AskedBesides:
    """Asks each question of a model both at the terminal and outside.

    The first answer counts. The other side learns that the question is answered.
    """

    def __init__(self, outside: AskOutside, screen: Screen, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Use the approver `outside`, and the screen for messages about it."""
        self._monotonic = monotonic
        self._outside = outside
        self._screen = screen
        self._standing: StandingQuestion | None = None
        self._gone_reason = ""
        """Reason why the open question cannot get an answer from outside any more. Empty as long as it can."""
        self._unreached = ""
        """Reason why the last question could not be sent outside. The same reason is not shown twice in a row."""

    def keyboard(self, source: int, brackets: Callable[[str], None], on_return: Callable[[], None]) -> Keyboard:
        """Return the keyboard of a terminal whose questions end with an answer from outside."""
        return Keyboard(source, brackets=brackets, on_return=on_return, readable=self.readable)

    def ask(self, terminal: Approver, action: Action, verdict: Verdict) -> Approval:
        """Ask at `terminal` (with a keyboard from `self.keyboard`) and outside. Return the first answer."""
        if not by_model(action):
            return terminal(action, verdict)
        question = self._outside(action, verdict)
        unreached = question if isinstance(question, str) else ""
        if unreached not in ("", self._unreached):
            self._screen.line(visible_line(f"nobody is asked outside: {unreached}", 1_000), Tone.WARNING)
        self._unreached, self._gone_reason = unreached, ""
        self._standing = None if isinstance(question, str) else question
        try:
            approval = terminal(action, verdict)
        except _AnsweredOutside as answered:
            approval = answered.approval
            self._screen.take_back()
            self._screen.settle()
            tone = Tone.QUIET if approval.answer is Answer.YES else Tone.WARNING
            location = f"by {approval.who} outside" if approval.who else "at another terminal"
            self._screen.line(visible_line(f"answered {location}: {approval.answer.value}", 200), tone)
        finally:
            self._standing = None
            if not isinstance(question, str):
                question.withdraw()
        if self._gone_reason:
            self._screen.line(visible_line(f"outside nobody answered: {self._gone_reason}", 1_000), Tone.WARNING)
        return approval

    def readable(self, descriptors: Sequence[int], seconds: float | None) -> Sequence[int]:
        """Wait for keys, and for an answer from outside, which ends the question.

        An answer cannot overtake a key: during the wait for the rest of a key sequence, answers are ignored.
        """
        if len(descriptors) == 1:
            return readable(descriptors, seconds)
        end = None if seconds is None else self._monotonic() + seconds
        while True:
            remaining = None if end is None else max(0.0, end - self._monotonic())
            self._look()
            if self._standing is None:
                return readable(descriptors, remaining)
            ready = wait_for(self._standing, descriptors, remaining)
            if ready or remaining == 0:
                return ready

    def _look(self) -> None:
        approval = None if self._standing is None else self._standing.look()
        if approval is None or self._standing is None:
            return
        if approval.answer is not Answer.NOBODY:
            raise _AnsweredOutside(approval)
        self._gone_reason = approval.words
        self._standing.withdraw()
        self._standing = None

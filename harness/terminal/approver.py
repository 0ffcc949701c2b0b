"""Ask the user at the terminal about a call. Every failure counts as no."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from harness.actions import Action, Effects
from harness.gate.approval import Approval, nobody
from harness.gate.place_watch import PlacesQuestion
from harness.interrupt import Interrupt
from harness.log.vocabulary import Answer, PlacesAnswer
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.terminal.choices import permanent_line
from harness.terminal.dialog import NOTICE_SECONDS, Seat
from harness.terminal.keys import Keyboard
from harness.terminal.places_dialog import PlacesDialog
from harness.terminal.question import Asker, Question, Usual, by_model, question_rows
from harness.terminal.question_dialog import QuestionDialog
from harness.terminal.screen import Screen
from harness.terminal.styles import Tone
from harness.terminal.typing_times import TypingTimes
from harness.terminal.undo_dialog import UndoDialog
from harness.terminal.undo_question import UndoChoice, UndoQuestion
from harness.terminal.user_question_dialog import UserQuestionDialog
from harness.text.visible import visible_line
from harness.tools.ask_user import Replied, UserAnswer, UserQuestion

NOT_GRANTED = "there are no grants here"


def nothing_to_grant(action: Action, verdict: Verdict) -> Offer | str:  # noqa: ARG001 - what asks for an offer
    """Offer no grant: without a gate, none is possible."""
    return NOT_GRANTED


def nothing_to_advise(action: Action, verdict: Verdict) -> str:  # noqa: ARG001 - what asks for advice
    """Give no advice: the policy is unknown here."""
    return ""


def keyboard_at(source: int, brackets: Callable[[str], None], on_return: Callable[[], None]) -> Keyboard:
    """Return the keyboard of a terminal."""
    return Keyboard(source, brackets=brackets, on_return=on_return)


class TerminalApprover:
    """Asks the user at the terminal. Enter alone is not an answer, end of input is a no, and Ctrl-C is a no and a stop.

    INVARIANT: YES requires a `y` that was pressed alone, or typed by hand with Enter (also as `yes`), after a time without
    keys, when the whole question had been shown at the present terminal size. A call with irreversible effects also
    requires a typed word after it.
    """

    def __init__(
        self,
        screen: Screen,
        interrupt: Interrupt,
        confinement: Callable[[str, Effects], str],
        *,
        environment: Mapping[str, str],
        dead_seconds: float,
        offer: Callable[[Action, Verdict], Offer | str] = nothing_to_grant,
        advise: Callable[[Action, Verdict], str] = nothing_to_advise,
        paused: Callable[[], AbstractContextManager[None]] = nullcontext,
        usual: Callable[[], Usual] = Usual,
        asker: Asker | None = None,
        times: TypingTimes | None = None,
        descriptors: tuple[int, int] | None = None,
        keyboard_of: Callable[[int, Callable[[str], None], Callable[[], None]], Keyboard] = keyboard_at,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use the screen, the interrupt, and the function that describes the confinement of a call.

        `environment` is the user's environment: it names the editor, and commands get variables from it. Keys before a
        question and within `dead_seconds` after it are dropped. `offer` returns the possible grants, and `advise` a
        rule if none is possible. During a question, `paused` keeps other threads from reading keys. `usual` returns the
        usual effects of commands. `asker` is another agent that made the call, if any. `times` are shared with other
        readers of keys. `descriptors` are for keys and
        echo (default: stdin and stdout). `keyboard_of` makes the keyboard from a descriptor, the switch of bracketed
        paste, and a callback for a return to the terminal.
        """
        self._screen = screen
        self._interrupt = interrupt
        self._confinement = confinement
        self._environment = environment
        self._offer = offer
        self._advise = advise
        self._paused = paused
        self._usual = usual
        self._asker = asker
        self._dead_seconds = dead_seconds
        self._source, self._target = descriptors or (sys.stdin.fileno(), sys.stdout.fileno())
        self._keyboard_of = keyboard_of
        self._monotonic = monotonic
        self._times = times or TypingTimes(monotonic)
        self._last = monotonic()

    def turn_begins(self) -> None:
        """Record that the user is at the terminal, having just sent a line."""
        self._last = self._monotonic()

    @property
    def is_away(self) -> bool:
        """Whether the user has neither typed nor answered for NOTICE_SECONDS."""
        return self._monotonic() - self._last >= NOTICE_SECONDS and not self._times.is_typing

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Show `action` and the reason for the question, and return the answer."""
        began = self._monotonic()
        with self._paused():
            try:
                approval = self._ask(action, verdict, began)
            except KeyboardInterrupt:
                approval = Approval(answer=Answer.STOP, by="person")
            self._note_answer()
            if by_model(action):  # the trace shows the answer when the call ends
                self._screen.take_back()
            else:
                self._screen.settle()
                tone = Tone.QUIET if approval.answer is Answer.YES else Tone.WARNING
                self._screen.line(permanent_line(approval, action.summary, self._last - began), tone)
        return approval

    def ask_places(self, question: PlacesQuestion) -> PlacesAnswer:
        """Show the changes of protected places, and return the user's decision. A failure counts as no answer."""
        with self._paused():
            try:
                with self._seat() as seat:
                    return PlacesDialog(question, seat).answer(away_since=self._last, began=self._monotonic())
            except (OSError, KeyboardInterrupt):
                return PlacesAnswer.NOBODY
            finally:
                self._screen.keep()  # the changes stay on the screen
                self._screen.settle()
                self._note_answer()

    def ask_undo(self, question: UndoQuestion) -> UndoChoice:
        """Ask how far to go back. A failure counts as no answer, and changes nothing."""
        with self._paused():
            try:
                self._screen.settle()
                with self._seat() as seat:
                    return UndoDialog(question, seat).answer(away_since=self._last, began=self._monotonic())
            except (OSError, KeyboardInterrupt):
                return UndoChoice.NOTHING
            finally:
                self._screen.keep()  # the list stays on the screen
                self._screen.settle()
                self._note_answer()

    def ask_user(self, question: UserQuestion) -> UserAnswer:
        """Show a question of the model, and return the answer. Without a terminal, the user counts as absent."""
        with self._paused():
            try:
                self._screen.settle()
                with self._seat() as seat:
                    dialog = UserQuestionDialog(question, seat, self._echo)
                    answer = dialog.answer(away_since=self._last, began=self._monotonic())
            except OSError:
                answer = UserAnswer(replied=Replied.NOBODY)
            except KeyboardInterrupt:
                answer = UserAnswer(replied=Replied.STOP)
            finally:
                self._screen.keep()  # the question stays on the screen
                self._screen.settle()
                self._note_answer()
            if answer.text:
                self._screen.line(f"  you answered: {visible_line(answer.text, 1_000)}", Tone.QUIET)
            return answer

    def _note_answer(self) -> None:
        """Record that the user has just answered: the rest of a typed line belongs to the answer."""
        self._last = self._monotonic()
        self._times.answer()

    def _ask(self, action: Action, verdict: Verdict, began: float) -> Approval:
        variables = child_environment(self._environment)
        user_variables = tuple(sorted(name for name in variables if variables[name] == self._environment.get(name)))
        question = Question(
            action=action,
            verdict=verdict,
            confinement=action.confinement or self._confinement(action.tool, verdict.effects),
            usual=self._usual(),
            variables=user_variables if self._asker is None else None,
            set_variables=len(variables) - len(user_variables),
            destroys=destroys(action),
            asker=self._asker,
        )
        self._screen.settle()
        try:
            with self._seat() as seat:
                dialog = QuestionDialog(
                    question,
                    self._offer(action, verdict) if question.by_model else NOT_GRANTED,
                    lambda: self._advise(action, verdict),
                    seat=seat,
                    echo=self._echo,
                    environment=self._environment,
                )
                return dialog.answer(away_since=self._last, began=began)
        except OSError:
            return nobody()  # the terminal is gone

    def _echo(self, text: str) -> None:
        """Write text to the terminal unchanged."""
        try:
            os.write(self._target, text.encode("utf-8", "backslashreplace"))
        except OSError:
            pass  # the terminal is gone, which the reader of keys notices

    @contextmanager
    def _seat(self) -> Iterator[Seat]:
        """Take over the keyboard for the block. Raises OSError if the terminal is gone."""
        # Bracketed paste is not switched on a terminal without escapes, where a screen reader would read them aloud.
        brackets = self._echo if self._screen.look.repaints else _no_brackets
        with self._keyboard_of(self._source, brackets, self._screen.keep) as keyboard:
            yield Seat(self._screen, keyboard, self._interrupt, self._dead_seconds, self._monotonic, self._times)


def _no_brackets(text: str) -> None:
    """Write nothing."""


def show_question(screen: Screen, action: Action, verdict: Verdict, confinement: str, usual: Usual) -> None:
    """Write the whole question at once, for answers that were prepared."""
    question = Question(action=action, verdict=verdict, confinement=confinement, usual=usual, destroys=destroys(action))
    width = screen.width - 1
    screen.rule(question.title(width))
    screen.rows(question_rows(question, width))

"""A question of the model to the user: its rows and its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from harness.terminal.answer_line import Back, Pastes, read_words
from harness.terminal.choices import Choice
from harness.terminal.dialog import PlainDialog, Seat
from harness.terminal.keys import Event, Key
from harness.terminal.row_text import Row, prose, rows_of
from harness.terminal.styles import Tone
from harness.tools.ask_user import Replied, UserAnswer, UserQuestion

TITLE = "the model asks you"

_OWN_WORDS = Choice(key="r", word="reply", does="takes words of yours as the answer")
_NONE = Choice(key="n", word="no answer", does="gives no answer: the model goes on without one")


class UserQuestionDialog(PlainDialog[UserAnswer]):
    """The dialog for a question of the model; see Dialog. A choice counts only after all rows were seen."""

    def __init__(self, question: UserQuestion, seat: Seat, echo: Callable[[str], None]) -> None:
        """Use the question, and the user's devices in `seat`. `echo` writes to a terminal without overwriting."""
        self._choosing = _choosing(len(question.choices))
        super().__init__(seat, TITLE, lambda width: tuple(user_question_rows(question, width)), waits=self._choosing)
        self._question = question
        self._echo = echo

    @property
    def _own_choices(self) -> Mapping[Choice, bool]:
        chooses = bool(self._question.choices) and self._pages.is_seen
        return {self._choosing: chooses, _OWN_WORDS: True, _NONE: True}

    @property
    def _also(self) -> str:
        return "Esc and Ctrl-D give no answer, Ctrl-C gives none and stops the turn. Enter answers nothing."

    def _end_answer(self, by: Event) -> UserAnswer:
        match by:
            case Event.STOP:
                return UserAnswer(replied=Replied.STOP)
            case Event.BURST:
                return UserAnswer(replied=Replied.NO_ANSWER)
            case _:
                return UserAnswer(replied=Replied.NOBODY)

    def _on_key(self, key: str) -> UserAnswer | None:
        match key:
            case "n" | "esc" | "end":
                return UserAnswer(replied=Replied.NO_ANSWER)
            case "r":
                return self._own_words()
            case _ if len(key) == 1 and key in "123456789"[: len(self._question.choices)]:
                if not self._is_seen():
                    return self._rest()
                return UserAnswer(replied=Replied.ANSWERED, text=self._question.choices[int(key) - 1])
            case _:
                return self._rest_of_burst()

    def _own_words(self) -> UserAnswer | None:
        self._screen.settle()
        with self._interrupt:
            came = read_words(
                self._screen,
                self._keyboard.typed,
                self._echo,
                prompt="your answer (Enter sends it, Esc goes back): ",
                pastes=Pastes.TEXT,
            )
        match came:
            case Event() | Key():
                return self._on(came)
            case Back() | "":
                return self._rest()
            case _:
                return UserAnswer(replied=Replied.ANSWERED, text=came)


def _choosing(count: int) -> Choice:
    return Choice(key=f"1-{count}" if count > 1 else "1", word="choose", does="answers with that choice")


def user_question_rows(question: UserQuestion, width: int) -> Iterator[Row]:
    """Yield the rows of the question. INVARIANT: a row never begins with text of the model."""
    yield from prose("what you answer is sent to the model; never tell it a secret", width, tone=Tone.QUIET)
    yield from rows_of(question.question, width, gutter="    ")
    for number, choice in enumerate(question.choices, 1):
        yield from rows_of(choice, width, gutter=f"  {number}  ", next_gutter="     ")

"""The question about a call: the effect of each key at each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.gate.approval import Approval, nobody
from harness.grant_pattern import GrantScope
from harness.log.vocabulary import Answer
from harness.policy.grant_offers import Offer
from harness.record import replace
from harness.terminal import choices
from harness.terminal.answer_line import Back, Pastes, read_words
from harness.terminal.choices import Choice
from harness.terminal.dialog import EARLY, Dialog, Seat
from harness.terminal.editor import NotEdited, edited_call, is_editable
from harness.terminal.grant_list import TIMES, explained_rows, numbered_rows, offered_rows
from harness.terminal.keys import Event, Key, Pasted
from harness.terminal.question import Question, question_rows
from harness.terminal.question_help import facet_rows, fact_rows
from harness.terminal.question_pages import Pages
from harness.terminal.row_text import Row, prose, rows_of
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

TOO_LARGE = "the change is too large to be shown whole at the terminal; make it in smaller steps"
NOISE = "keys kept coming while the question was put"
WORD = "destroy"
ALL_OF_THESE = "all of these"


class QuestionDialog(Dialog[Approval]):
    """Asks whether a call may run; see Dialog."""

    def __init__(
        self,
        question: Question,
        offer: Offer | str,
        advise: Callable[[], str],
        *,
        seat: Seat,
        echo: Callable[[str], None],
        environment: Mapping[str, str],
    ) -> None:
        """Use the question, and the possible grants or a reason why there are none.

        `advise` returns advice and a rule that would permit the call. `environment` is for the editor, and `echo` for a
        terminal without overwriting.
        """
        self._question = question
        super().__init__(seat, self._title, self._rows, waits=choices.YES)
        self._offer = offer
        self._advise = advise
        self._echo = echo
        self._environment = environment
        # Another agent's call cannot be edited, words with a yes do not reach its model, and we cannot end its turn.
        editable = is_editable(question.action)  # also a form of a server, or a command of the user
        self._is_own = question.asker is None and (question.by_model or editable)
        self._is_editable = self._is_own and editable
        self._words = ""
        """Words that the user added to the answer."""

    def _title(self, width: int) -> str:
        return self._question.title(width)

    def _rows(self, width: int) -> Sequence[Row]:
        return question_rows(self._question, width)

    @property
    def _notice(self) -> str:
        action = self._question.action
        return visible_line(f"{action.tool} asks: {action.summary}", 100)

    @property
    def _also(self) -> str:
        return choices.ALWAYS_SAID if self._question.asker is None else choices.SAID_ELSEWHERE

    def _end_answer(self, by: Event) -> Approval:
        match by:
            case Event.STOP:
                return Approval(answer=Answer.STOP, by="person")
            case Event.BURST:
                return Approval(answer=Answer.NO, by="person", words=NOISE)
            case _:  # the terminal hung up without an answer
                return nobody()

    def _on_key(self, key: str) -> Approval | None:
        match key:
            case "end":
                return Approval(answer=Answer.NO, by="person", words=self._words)
            case "n" | "esc":
                return self._no()
            case "h" if self._is_own:
                return Approval(answer=Answer.HALT, by="person", words=self._words)
            case "r" if self._question.hears_words:
                return self._reason()
            case "y" | "s" | "p" | "o" | "e" | "tab":
                return self._on_key_that_acts(key)
            case _:
                return self._rest_of_burst()

    def _on_key_that_acts(self, key: str) -> Approval | None:
        """Handle a key that counts only if all rows were seen, and not right after a new page."""
        if not self._is_seen():
            return self._rest()
        match key:
            case "y" if self._may_be_allowed:
                return self._yes()
            case "o" if self._may_be_allowed and self._question.openings:
                return self._open()
            case "s" if self._question.by_model:
                return self._grant(GrantScope.SESSION)
            case "p" if self._question.by_model:
                return self._grant(GrantScope.WORKSPACE)
            case "e" if self._is_editable:
                return self._edit()
            case "tab" if self._is_own and self._may_be_allowed:
                return self._add_words()
            case _:
                return self._rest()

    # Answers

    def _no(self) -> Approval:
        words = self._words or ("" if self._may_be_allowed else TOO_LARGE)
        return Approval(answer=Answer.NO, by="person", words=words)

    def _yes(self) -> Approval | None:
        yes = Approval(answer=Answer.YES, by="person", words=self._words, opens=self._question.opens)
        if not self._question.destroys:
            return yes
        self._tell(
            f"this destroys; to allow it, type the word {WORD} and press Enter. Anything else goes back.", Tone.BAD
        )
        if (done := self._rest()) is not None or not self._pages.is_current:
            return done
        again = f"too soon: type {WORD} again: " if self._keyboard.dropped else f"type {WORD}: "
        came = self._line(again, Pastes.NOTHING)
        if isinstance(came, Event | Key):
            return self._on(came)
        if came == WORD and self._pages.is_seen:
            return yes
        if came is Back.BY_PASTE:
            return self._dropped(came.value)
        self._tell(f"{WORD} was not typed: nothing is allowed", Tone.QUIET)
        return self._rest()

    def _reason(self) -> Approval | None:
        came = self._line("no, but (Enter sends it, Esc goes back): ", Pastes.TEXT)
        if isinstance(came, Event | Key):
            return self._on(came)
        if isinstance(came, str) and came:
            return Approval(answer=Answer.NO, by="person", words=came)
        return self._rest()

    def _add_words(self) -> Approval | None:
        """Read words that go with the answer. They are not an answer: a yes still requires a single `y`."""
        came = self._line("words for the model (Enter keeps them, Esc goes back): ", Pastes.TEXT)
        if isinstance(came, Event | Key):
            return self._on(came)
        if isinstance(came, str):
            self._words = came
            self._tell(f'your answer goes with these words: "{came}"' if came else "your answer goes without words")
            self._question_rows = self._screen.passing_rows  # so that the note stays as long as the question
        return self._rest()

    def _edit(self) -> Approval | None:
        self._screen.settle()
        try:
            with self._keyboard.released():
                arguments = edited_call(self._question.action, self._environment)
        except NotEdited as error:
            self._tell(f"not edited: {error}", Tone.WARNING)
            return self._rest()
        return Approval(answer=Answer.EDIT, by="person", arguments=arguments)

    def _grant(self, scope: GrantScope) -> Approval | None:
        """Show the possible grants, and read the number of a choice."""
        offer = self._offer_now()
        if isinstance(offer, str):
            self._tell(offer, Tone.QUIET)
            return self._rest()
        extent = "for this session" if scope is GrantScope.SESSION else "in this project"
        usual, count = self._question.usual, len(offer.choices)
        title = f"allow {extent}: what?"

        def rows_at(width: int) -> Sequence[Row]:
            return offered_rows(offer, width, usual=usual, scope=scope)

        def rows_explained(width: int) -> Sequence[Row]:
            return (*rows_at(width), *explained_rows(offer, width, usual=usual))

        explains = bool(explained_rows(offer, self._screen.width, usual=usual))
        number = self._number(title, rows_at, count, also=", ? explains" if explains else "")
        if explains and number == Key(text="?"):
            number = self._number(title, rows_explained, count)
        if not isinstance(number, int):
            return self._leave_page(number)
        choice, days = offer.choices[number - 1], None
        if choice.session_only:
            scope = GrantScope.SESSION
        elif scope is GrantScope.WORKSPACE:
            times = [name for name, _, _ in TIMES]
            number = self._number("for how long?", lambda width: numbered_rows(times, width), len(TIMES))
            if not isinstance(number, int):
                return self._leave_page(number)
            _, scope, days = TIMES[number - 1]
        return Approval(
            answer=Answer.YES, by="person", words=self._words, scope=scope, days=days, patterns=choice.patterns
        )

    def _offer_now(self) -> Offer | str:
        """Return the possible grants, or a sentence on why there are none."""
        if self._question.destroys or not self._may_be_allowed:
            return "what destroys, or cannot be shown whole, is asked about each time"
        if self._question.opens:
            return "what you opened is for this call alone: y allows it"
        if isinstance(self._offer, str):
            return f"nothing can be granted: {self._offer} (? shows what else helps)"
        return self._offer

    def _open(self) -> Approval | None:
        """Let the user open more for this call, and show the question anew with what would leave the walls now."""
        question, openings = self._question, self._question.openings
        names = ["; ".join(replace(question, opens=(each,)).opened_words) for each in openings]
        names += [ALL_OF_THESE] if len(openings) > 1 else []
        number = self._number("open for this one call: what?", lambda width: numbered_rows(names, width), len(names))
        if not isinstance(number, int):
            return self._leave_page(number, "nothing is opened")
        opens = openings[number - 1 : number] or openings
        self._question = replace(question, opens=(*question.opens, *opens))
        self._pages = Pages(self._screen, self._title, self._rows)  # the rows have changed: none of them counts as seen
        return self._draw_again()

    def _number(
        self, title: str, rows_at: Callable[[int], Sequence[Row]], count: int, also: str = ""
    ) -> int | Key | Pasted | Event | Approval:
        """Show a list of `count` numbers. Return the chosen one if all rows were seen; otherwise return the input.

        `also` are further keys, in words.
        """
        self._screen.settle()
        self._clear()
        pages = Pages(self._screen, lambda _: title, rows_at)
        pages.begin()
        shown_at = self._monotonic()
        while pages.rows_left:
            self._prompt(f"{pages.rows_left} more: [space]; other keys go back")
            came = self._next(None)
            if came not in (Key(text=" "), Key(text="page"), Key(text="rest")) or not pages.is_current:
                return came
            pages.go_on(to_end=came == Key(text="rest"))
            shown_at = self._monotonic()
        if (done := self._rest()) is not None:
            return done
        if not pages.is_current:
            return Event.RETURNED
        prompt = f"press 1{f' to {count}' if count > 1 else ''}{also}; other keys go back"
        numbers = {Key(text=digit): int(digit) for digit in "123456789"[:count]}
        self._prompt(prompt)
        while (came := self._next(None)) in numbers and self._is_early(shown_at):
            self._prompt(f"{EARLY}: {prompt}")
        if not (pages.is_seen and self._pages.is_seen):
            return came
        return came if isinstance(came, Event | Pasted) else numbers.get(came, came)

    def _leave_page(self, came: Key | Pasted | Event | Approval, note: str = "nothing is granted") -> Approval | None:
        """Go back to the question, unless the input was an answer, a stop, or the end of input."""
        if isinstance(came, Approval):
            return came
        if came in (Event.STOP, Event.END, Key(text="end")):
            return self._on(came)
        self._tell(note, Tone.QUIET)
        return self._rest()

    # Display

    def _rows_of_all(self) -> Sequence[Row]:
        width = self._screen.width - 1
        rows = (*fact_rows(self._question, width), *facet_rows(self._question.verdict, width))
        if not self._question.by_model or isinstance(self._offer, Offer):
            return rows
        advice, _, rule = self._advise().partition("\n")
        offered = prose(f"s and p are not offered: {self._offer}", width)
        return (*rows, *offered, *prose(advice, width), *(rows_of(rule, width, gutter="    ") if rule else ()))

    def _limit(self) -> str:
        limit = "" if self._may_be_allowed else "this cannot be shown whole, so it cannot be approved here"
        return super()._limit() or limit

    @property
    def _may_be_allowed(self) -> bool:
        """Whether a yes is possible. A call that is not shown completely cannot be permitted at a terminal."""
        return self._question.action.shown_whole

    @property
    def _choices(self) -> Sequence[Choice]:
        question, by_model = self._question, self._question.by_model
        is_open = self._pages.is_seen and self._may_be_allowed
        grants = by_model and not question.destroys and not question.opens and isinstance(self._offer, Offer)
        keeps = isinstance(self._offer, Offer) and not all(choice.session_only for choice in self._offer.choices)
        works = {
            choices.NEXT: bool(self._pages.rows_left),
            choices.YES_TO_PROGRAM: is_open and not by_model and not question.destroys,
            choices.YES: is_open and by_model and not question.destroys,
            choices.YES_BY_WORD: is_open and bool(question.destroys),
            choices.NO: True,
            choices.SESSION: is_open and grants,
            choices.PROJECT: is_open and grants and keeps,
            choices.OPEN: is_open and bool(question.openings),
            choices.REASON: question.hears_words and by_model,
            choices.REPLY: question.hears_words and not by_model,
            choices.WORDS: is_open and self._is_own,
            choices.EDIT: self._pages.is_seen and self._is_editable,
            choices.HALT: self._is_own,
            choices.VIEW: True,
            choices.HELP: True,
        }
        return [choice for choice, does in works.items() if does]

    def _prompt(self, text: str) -> None:
        if self._screen.look.repaints:
            self._screen.transient(text)
        else:
            self._screen.line(text)

    def _line(self, prompt: str, pastes: Pastes) -> str | Back | Event | Key:
        self._screen.settle()
        with self._interrupt:
            return read_words(self._screen, self._keyboard.typed, self._echo, prompt=prompt, pastes=pastes)

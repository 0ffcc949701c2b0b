"""The common part of questions at the terminal: pages, common keys, and the times at which keys do not count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from harness.interrupt import Interrupt
from harness.session.config.declared import LEAST_DEAD_SECONDS
from harness.terminal.choices import KEYS, NEXT, VIEW, Choice, key_line, key_rows, said_keys
from harness.terminal.keys import SURE_SECONDS, Event, Key, Keyboard, Pasted
from harness.terminal.question_pages import LEAST_HEIGHT, LEAST_WIDTH, Pages
from harness.terminal.row_text import Row, prose
from harness.terminal.screen import Screen
from harness.terminal.styles import Tone
from harness.terminal.typing_times import TypingTimes

NOTICE_SECONDS = 10.0
"""Seconds of absence before a question, or of waiting for its answer, after which the user is notified."""

READING_SECONDS = 1.5
"""Seconds after the last new row during which no key acts, if the user was typing before the question."""

EARLY = "that key came too early: read first, then press it again"
_ENTER = "Enter answers nothing"
_NO_ANSWER = "that key is no answer"
_UNSEEN = "see the rest first (space)"
_BURST = "several keys at once are no answer: they were dropped"
_SMALL = (
    f"this terminal is too small to show what is asked ({LEAST_WIDTH} columns and {LEAST_HEIGHT} lines are needed): "
    "{} is off until it is larger"
)


class Seat(NamedTuple):
    """The user's devices during a question: screen, keyboard, interrupt and clock."""

    screen: Screen
    keyboard: Keyboard
    interrupt: Interrupt
    dead_seconds: float
    """Seconds after new rows during which keys do not count."""
    monotonic: Callable[[], float]
    times: TypingTimes


AnswerT = TypeVar("AnswerT")


class Dialog(ABC, Generic[AnswerT]):
    """An open question. Methods return the answer, or `None` if the question is still open.

    INVARIANT: A key answers only if it was pressed alone, or typed by hand as `y`, `yes`, `n` or `no` with Enter, after a
    time without keys. If the user was typing before the question, a key that acts also counts only READING_SECONDS after
    the last new row. Enter alone, a paste, or text typed before the question never answers it.
    """

    def __init__(
        self, seat: Seat, title_at: Callable[[int], str], rows_at: Callable[[int], Sequence[Row]], *, waits: Choice
    ) -> None:
        """Use functions that return the title and the rows for a width. `waits` is off until all rows were seen."""
        self._screen, self._keyboard, self._interrupt, dead_seconds, self._monotonic, times = seat
        self._dead_seconds = max(dead_seconds, LEAST_DEAD_SECONDS)
        self._pages = Pages(self._screen, title_at, rows_at)
        self._waits = waits
        self._times = times
        self._is_typing = False
        """Whether the user was typing when the question appeared, or since."""
        self._paged_at = 0.0
        self._question_rows = 0
        """Number of rows of the question itself, without the notes, help and lists below it."""
        self._shown_notes: set[str] = set()
        """Notes on the screen."""
        self._helps = False
        """Whether the help of `?` is on the screen."""

    # Differs between questions

    @property
    @abstractmethod
    def _notice(self) -> str:
        """Notification text for the user, safe to show."""

    @property
    @abstractmethod
    def _choices(self) -> Sequence[Choice]:
        """The keys that work now."""

    @property
    @abstractmethod
    def _also(self) -> str:
        """Text of `?` below the keys."""

    @abstractmethod
    def _end_answer(self, by: Event) -> AnswerT:
        """Return the answer if the terminal is gone, the user stopped the question, or keys never rest."""

    @abstractmethod
    def _on_key(self, key: str) -> AnswerT | None:
        """Handle a single key that is specific to this question. Letters are lower case."""

    def _rows_of_all(self) -> Sequence[Row]:
        """Return the rows of `?` after the keys."""
        return ()

    def _limit(self) -> str:
        """Return the reason why some answers are not possible, to show below the first page. Empty if all are."""
        return _SMALL.format(self._waits.word) if self._pages.is_tiny else ""

    # From the first row to the answer

    def answer(self, *, away_since: float, began: float) -> AnswerT:
        """Show the question, and return the answer. Raises KeyboardInterrupt if a signal ends it.

        `away_since` is the time of the user's last sign of presence, and `began` that of the question.
        """
        notice_at: float | None = began + NOTICE_SECONDS
        if began - away_since >= NOTICE_SECONDS:
            self._notify()
            notice_at = None
        self._is_typing = self._times.is_typing
        done = self._draw()
        while done is None:
            if not self._pages.is_current:  # the rows may be gone, or wrapped differently
                done = self._draw()
                continue
            self._show_keys()
            came = self._next(None if notice_at is None else max(0.0, notice_at - self._monotonic()))
            if came is Event.TIME:
                self._notify()
                notice_at = None
            elif came is not Event.RETURNED:
                done = self._on(came)
        self._clear()
        return done

    def _on(self, came: Key | Pasted | Event) -> AnswerT | None:
        if came is Event.STOP or came is Event.END:
            return self._end_answer(came)
        match came:
            case Key(text=text):
                return self._on_any_key(text if len(text) > 1 else text.lower())
            case Pasted(text=text, bracketed=False) if not text.strip(" ") and self._pages.rows_left:
                return self._on_any_key(" ")  # a key that is held down
            case Pasted(text=text, bracketed=False) if text.startswith("\x1b"):
                return self._dropped(_NO_ANSWER)
            case _:
                self._is_typing = True
                return self._dropped(_BURST)

    def _on_any_key(self, key: str) -> AnswerT | None:
        match key:
            case " " | "page" | "rest" if self._pages.rows_left:
                self._clear()
                self._pages.go_on(to_end=key == "rest")
                self._question_rows = self._screen.passing_rows
                self._paged_at = self._monotonic()
                return None
            case " " | "page" | "rest":
                return self._rest()
            case "v":
                return self._draw_again()
            case "?" if self._helps:
                return self._rest() if self._clear() else self._draw_again()
            case "?":
                self._clear()
                self._write((*key_rows(self._choices, self._screen.width - 1, self._also), *self._rows_of_all()))
                self._helps = True
                return self._rest()
            case "enter":
                return self._dropped(_ENTER)
            case _:
                return self._on_key(key)

    def _is_early(self, shown_at: float) -> bool:
        """Return whether the last key came so soon after new rows that the user cannot have read them."""
        seconds = max(self._dead_seconds, READING_SECONDS if self._is_typing else 0.0)
        return self._keyboard.came_at - shown_at < seconds

    def _is_in_time(self) -> bool:
        """Return whether a key that acts counts by now. If not, show the reason once."""
        is_early = self._is_early(self._paged_at)
        if is_early:
            self._tell_once(EARLY)
        return not is_early

    def _is_seen(self) -> bool:
        """Return whether a key counts that requires that all rows were seen. If not, show the reason once."""
        if self._pages.rows_left and not self._pages.is_seen:
            self._tell_once(_UNSEEN)
        return self._pages.is_seen and self._is_in_time()

    # Display

    def _draw(self) -> AnswerT | None:
        """Show the question from its top, and wait until no keys arrive."""
        self._screen.settle()
        self._pages.begin()
        if limit := self._limit():
            self._write(tuple(prose(limit, self._screen.width - 1, tone=Tone.BAD)))
        self._question_rows, self._helps = self._screen.passing_rows, False
        self._shown_notes.clear()
        self._paged_at = self._monotonic()
        return self._rest(self._times.answer_seconds)

    def _draw_again(self) -> AnswerT | None:
        self._clear()
        self._screen.take_back()
        return self._draw()

    def _clear(self) -> bool:
        """Erase the text below the question, as far as it is on the screen. Return whether all of it was erased."""
        self._helps = False
        if not self._screen.take_back(self._question_rows):
            return False
        self._shown_notes.clear()
        return True

    def _show_keys(self) -> None:
        lines_left = self._pages.rows_left if not self._pages.is_seen else 0
        if self._screen.look.repaints:
            self._screen.transient(
                key_line(self._choices, self._screen.width - 2, lines_left=lines_left, waits=self._waits)
            )
        else:
            self._write(
                tuple(prose(said_keys(self._choices, lines_left=lines_left, waits=self._waits), self._screen.width - 1))
            )

    def _tell(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Show a note below the question, instead of the previous one."""
        self._clear()
        self._write(tuple(prose(text, self._screen.width - 1, tone=tone)))

    def _tell_once(self, text: str) -> None:
        if text not in self._shown_notes:
            self._tell(text, Tone.QUIET)
            self._shown_notes.add(text)

    def _write(self, rows: Sequence[Row]) -> None:
        self._screen.settle()
        self._screen.passing(rows)

    def _notify(self) -> None:
        self._screen.settle()
        self._screen.notify(self._notice)

    # Keys

    def _dropped(self, reason: str) -> AnswerT | None:
        self._tell_once(reason)
        return self._rest_of_burst()

    def _next(self, seconds: float | None) -> Key | Pasted | Event:
        with self._interrupt:
            return self._keyboard.next(seconds)

    def _rest_of_burst(self) -> AnswerT | None:
        """Ignore keys for a while after one that was not an answer.

        The rest of a typed sentence may follow, and none of its letters is an answer.
        """
        return self._rest(SURE_SECONDS)

    def _rest(self, min_seconds: float = 0.0) -> AnswerT | None:
        """Wait until no keys arrive, for at least `min_seconds`.

        Return the answer if keys never rest, the user stops, or the terminal is gone; otherwise `None`.
        """
        with self._interrupt:
            came = self._keyboard.rest(max(self._dead_seconds, min_seconds))
        self._is_typing = self._is_typing or self._keyboard.dropped
        return None if came is None else self._end_answer(came)


class PlainDialog(Dialog[AnswerT]):
    """A question with the same title at every width, and with keys of its own between those of every question."""

    def __init__(self, seat: Seat, title: str, rows_at: Callable[[int], Sequence[Row]], *, waits: Choice) -> None:
        """Use the user's devices, the title, and a function that returns the rows for a width. For `waits` see Dialog."""
        super().__init__(seat, lambda _: title, rows_at, waits=waits)
        self._title = title

    @property
    @abstractmethod
    def _own_choices(self) -> Mapping[Choice, bool]:
        """The keys of this question, and whether each works now."""

    @property
    def _notice(self) -> str:
        return self._title

    @property
    def _choices(self) -> Sequence[Choice]:
        works = {NEXT: bool(self._pages.rows_left), **self._own_choices, VIEW: True, KEYS: True}
        return [choice for choice, does in works.items() if does]

"""The question about protected places that a granted program changed: what it shows, and which key means what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.cli.config.declared import LEAST_DEAD_SECONDS
from harness.cli.terminal.choices import NEXT, VIEW, Choice, key_line, said_keys
from harness.cli.terminal.diff_drawing import diff_rows
from harness.cli.terminal.keys import SURE_SECONDS, Event, Key, Keyboard, Pasted
from harness.cli.terminal.question_pages import Pages
from harness.cli.terminal.row_text import Row, prose, rows_of
from harness.cli.terminal.screen import Screen
from harness.cli.terminal.styles import Tone
from harness.gate.place_watch import PlacesAnswer, PlacesQuestion
from harness.interrupt import Interrupt
from harness.place_changes import PlaceChange
from harness.text.visible import one_line, visible_line

TITLE = "protected places were changed"

_PUT_BACK = Choice(key="y", word="put back", does="puts them back from the kept copies")
_KEEP = Choice(key="k", word="keep", does="keeps them as they are now")
_REVOKE = Choice(key="x", word="put back, revoke", does="puts them back, and revokes what was granted")
_LATER = Choice(key="n", word="not now", does="leaves all as it is: the grant sleeps")
_HELP = Choice(key="?", word="help", does="says what the keys do. Enter answers nothing")


class PlacesDialog:
    """A question that is being put. Nothing is answered by Enter, by a paste, or by what was typed before it."""

    def __init__(
        self,
        question: PlacesQuestion,
        *,
        screen: Screen,
        keyboard: Keyboard,
        interrupt: Interrupt,
        dead_seconds: float,
    ) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._interrupt = interrupt
        self._dead_seconds = max(dead_seconds, LEAST_DEAD_SECONDS)
        self._pages = Pages(screen, TITLE, lambda width: tuple(places_rows(question, width)))
        self._said: set[str] = set()

    def answer(self) -> PlacesAnswer:
        """Put the question and return the answer. Raises KeyboardInterrupt where a signal ended it."""
        done = self._draw()
        while done is None:
            if not self._pages.is_current:  # what was shown is gone, or wrapped otherwise
                done = self._draw()
                continue
            self._show_keys()
            came = self._waited(lambda: self._keyboard.next(None))
            done = self._draw() if came is Event.RETURNED else self._on(came)
        self._screen.keep()  # what was changed stays told
        self._screen.settle()
        return done

    def _on(self, came: Key | Pasted | Event | None) -> PlacesAnswer | None:
        match came:
            case Event.STOP | Event.END | Key(text="n" | "N" | "esc" | "end"):
                return PlacesAnswer.NOBODY
            case Key(text="y" | "Y"):
                return PlacesAnswer.PUT_BACK
            case Key(text="x" | "X"):
                return PlacesAnswer.REVOKE
            case Key(text="k" | "K") if self._pages.seen:
                return PlacesAnswer.KEEP
            case Key(text=" " | "page" | "rest" as key) if self._pages.left:
                self._screen.settle()
                self._pages.go_on(to_end=key == "rest")
                return None
            case Key(text="v" | "V"):
                return self._draw()
            case _:
                self._explain(came)
        return self._rest(SURE_SECONDS)

    def _explain(self, came: Key | Pasted | Event | None) -> None:
        """Say why a key is no answer, or what the keys are."""
        match came:
            case Key(text="k" | "K"):
                self._tell("see the rest first (space): what is kept was seen")
            case Key(text="?"):
                self._said.clear()
                self._tell(said_keys(self._keys))
            case Key(text="enter"):
                self._tell("Enter answers nothing")
            case Pasted():
                self._tell("several keys at once are no answer: they were dropped")
            case _:
                pass

    def _draw(self) -> PlacesAnswer | None:
        self._screen.settle()
        self._pages.begin()
        return self._rest(0.0)

    def _rest(self, least: float) -> PlacesAnswer | None:
        """Let the keys rest; the answer where they do not, or the terminal ends."""
        came = self._waited(lambda: self._keyboard.rest(max(self._dead_seconds, least)))
        return None if came is None else PlacesAnswer.NOBODY

    def _waited(self, wait: Callable[[], Key | Pasted | Event | None]) -> Key | Pasted | Event | None:
        with self._interrupt:
            return wait()

    @property
    def _keys(self) -> Sequence[Choice]:
        """The keys that work now."""
        left = self._pages.left if not self._pages.seen else 0
        return [*((NEXT,) if left else ()), _PUT_BACK, *(() if left else (_KEEP,)), _REVOKE, _LATER, VIEW, _HELP]

    def _show_keys(self) -> None:
        if self._screen.look.repaints:
            self._screen.transient(key_line(self._keys, self._screen.width - 2))
        else:
            self._tell(said_keys(self._keys))

    def _tell(self, text: str) -> None:
        if text in self._said:
            return
        self._said.add(text)
        self._screen.settle()
        for row in prose(text, self._screen.width - 1, tone=Tone.QUIET):
            self._screen.line(row.text, row.tone)


def places_rows(question: PlacesQuestion, width: int) -> Iterator[Row]:
    """Yield what the question shows: each place with what happened to it, and its difference."""
    found = question.found
    yield from prose("other programs run or obey them later", width, tone=Tone.QUIET)
    for one in found.changes:
        yield from _place_rows(one, width)
    if found.gaps:
        yield from prose(f"not looked at: {', '.join(found.gaps)}", width, tone=Tone.WARNING)
    by = visible_line(question.about, 200) if question.about else "an earlier command"
    yield from prose(f"by: {by}", width)
    for grant in question.grants:
        text = f"granted, and asleep until you answer: {one_line(grant.pattern.text)}"
        yield from prose(text, width, tone=Tone.QUIET)


def _place_rows(change: PlaceChange, width: int) -> Iterator[Row]:
    sizes = "" if change.diff else f" ({change.sizes})"
    no_copy = "" if change.is_kept else "; there is no copy of what it was"
    said = f"{one_line(change.path)}  {change.how}{sizes}{no_copy}"
    yield from rows_of(said, width, gutter="! ", tone=Tone.BAD)
    if change.diff:
        yield from diff_rows("\n".join(change.diff), change.path, width, margin="    ")

"""The question about protected places that a granted program changed: its rows and its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.gate.place_watch import PlacesQuestion
from harness.log.vocabulary import PlacesAnswer
from harness.place_changes import PlaceChange
from harness.terminal.choices import LEAVES_ALL, Choice
from harness.terminal.dialog import PlainDialog, Seat
from harness.terminal.diff_drawing import diff_rows
from harness.terminal.keys import Event
from harness.terminal.row_text import Row, prose, rows_of
from harness.terminal.styles import Tone
from harness.text.visible import one_line, visible_line

TITLE = "protected places were changed"

_PUT_BACK = Choice(key="y", word="put back", does="puts them back from the kept copies")
_KEEP = Choice(key="k", word="keep", does="keeps them as they are now")
_REVOKE = Choice(key="x", word="put back, revoke", does="puts them back, and revokes what was granted")
_LATER = Choice(key="n", word="not now", does="leaves all as it is: the grant sleeps")


class PlacesDialog(PlainDialog[PlacesAnswer]):
    """Asks whether to restore or keep changed places; see Dialog. Keeping them requires that all changes were seen."""

    def __init__(self, question: PlacesQuestion, seat: Seat) -> None:
        """Use the question, and the user's devices in `seat`."""
        super().__init__(seat, TITLE, lambda width: tuple(places_rows(question, width)), waits=_KEEP)

    @property
    def _own_choices(self) -> Mapping[Choice, bool]:
        return {_PUT_BACK: True, _KEEP: self._pages.is_seen, _REVOKE: True, _LATER: True}

    @property
    def _also(self) -> str:
        return LEAVES_ALL

    def _end_answer(self, by: Event) -> PlacesAnswer:  # noqa: ARG002 - whatever it was, nobody answered
        return PlacesAnswer.NOBODY

    def _on_key(self, key: str) -> PlacesAnswer | None:
        match key:
            case "n" | "esc" | "end":
                return PlacesAnswer.NOBODY
            case "y" | "x":
                answer = PlacesAnswer.PUT_BACK if key == "y" else PlacesAnswer.REVOKE
                return answer if self._is_in_time() else self._rest()
            case "k":
                return PlacesAnswer.KEEP if self._is_seen() else self._rest()
            case _:
                return self._rest_of_burst()


def places_rows(question: PlacesQuestion, width: int) -> Iterator[Row]:
    """Yield the rows of the question: each place with its change and its diff."""
    places = question.changed
    yield from prose("other programs run or obey them later", width, tone=Tone.QUIET)
    for change in places.changes:
        yield from _place_rows(change, width)
    if places.gaps:
        yield from prose(f"not looked at: {', '.join(places.gaps)}", width, tone=Tone.WARNING)
    by = visible_line(question.summary, 200) if question.summary else "an earlier command"
    yield from prose(f"by: {by}", width)
    for grant in question.grants:
        text = f"granted, and asleep until you answer: {one_line(grant.pattern.text)}"
        yield from prose(text, width, tone=Tone.QUIET)


def _place_rows(change: PlaceChange, width: int) -> Iterator[Row]:
    sizes = "" if change.diff else f" ({change.sizes})"
    no_copy = "" if change.is_kept else "; no copy of the earlier content exists"
    text = f"{one_line(change.path)}  {change.description}{sizes}{no_copy}"
    yield from rows_of(text, width, gutter="! ", tone=Tone.BAD)
    if change.diff:
        yield from diff_rows("\n".join(change.diff), change.path, width, margin="    ")

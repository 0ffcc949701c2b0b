"""The question how far to go back: the conversation, the files, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.terminal.choices import LEAVES_ALL, Choice
from harness.terminal.dialog import PlainDialog, Seat
from harness.terminal.diff_drawing import diff_rows
from harness.terminal.keys import Event
from harness.terminal.row_text import Row, prose, rows_of
from harness.terminal.undo_question import UndoChoice, UndoQuestion

TITLE = "undo asks"
_BOTH = Choice(key="y", word="both", does="takes back the conversation and the files")
_FILES = Choice(key="f", word="files", does="takes back the files; the conversation stays")
_TALK = Choice(key="c", word="conversation", does="takes back the conversation; the files stay")
_DIFF = Choice(key="d", word="diff", does="shows the lines that would change")
_NOTHING = Choice(key="n", word="nothing", does="leaves all as it is")


class UndoDialog(PlainDialog[UndoChoice]):
    """Asks how far to go back; see Dialog. Taking files back requires that the whole list was seen."""

    def __init__(self, question: UndoQuestion, seat: Seat) -> None:
        """Use the question, and the user's devices in `seat`."""
        super().__init__(seat, TITLE, lambda width: tuple(_rows(question, width)), waits=_BOTH)
        self._question = question

    @property
    def _own_choices(self) -> Mapping[Choice, bool]:
        is_seen = self._pages.is_seen
        return {_BOTH: is_seen, _FILES: is_seen, _TALK: True, _DIFF: True, _NOTHING: True}

    @property
    def _also(self) -> str:
        return LEAVES_ALL

    def _end_answer(self, by: Event) -> UndoChoice:  # noqa: ARG002 - any of them leaves all as it is
        return UndoChoice.NOTHING

    def _on_key(self, key: str) -> UndoChoice | None:
        match key:
            case "n" | "esc" | "end":
                return UndoChoice.NOTHING
            case "c":
                return UndoChoice.CONVERSATION if self._is_in_time() else self._rest()
            case "y" | "f":
                answer = UndoChoice.BOTH if key == "y" else UndoChoice.FILES
                return answer if self._is_seen() else self._rest()
            case "d":
                self._clear()
                self._write(tuple(_diff_rows(self._question.diffs(), self._screen.width - 1)))
                return self._rest()
            case _:
                return self._rest_of_burst()


def _rows(question: UndoQuestion, width: int) -> Iterator[Row]:
    yield from prose(question.summary, width)
    for line in question.lines:
        yield from rows_of(line.text, width, gutter="  ", tone=line.tone)


def _diff_rows(diffs: Sequence[tuple[str, str]], width: int) -> Iterator[Row]:
    for name, diff in diffs:
        yield from prose(name, width)
        yield from diff_rows(diff, name, width, margin="    ")
    if not diffs:
        yield from prose("no file has lines to show", width)

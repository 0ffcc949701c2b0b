"""The question how far to go back, without its display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from harness.record import Record
from harness.terminal.styles import Line


class UndoChoice(Enum):
    """The parts of a turn that the user takes back."""

    BOTH = "both"
    FILES = "files"
    CONVERSATION = "conversation"
    NOTHING = "nothing"

    @property
    def takes_files(self) -> bool:
        """Whether files are taken back."""
        return self in (UndoChoice.BOTH, UndoChoice.FILES)

    @property
    def takes_conversation(self) -> bool:
        """Whether messages are taken back."""
        return self in (UndoChoice.BOTH, UndoChoice.CONVERSATION)


class UndoQuestion(Record):
    """The question. Its texts are safe to show, except for the diffs."""

    summary: str
    """The numbers of files to restore, remove and leave, and the reasons."""
    lines: tuple[Line, ...]
    """One line for each file."""
    diffs: Callable[[], Sequence[tuple[str, str]]]
    """Returns the name and the diff of each file with text."""

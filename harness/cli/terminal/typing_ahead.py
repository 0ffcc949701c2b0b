"""What a person types while something else goes on, from bytes to lines; pure: reads no terminal."""

from __future__ import annotations

import codecs
from collections import deque
from enum import Enum

from harness.record import Record

MOST_LINES = 100
"""That wait: each becomes a turn, and nobody means more than that."""
MOST_CHARACTERS = 100_000
"""In the lines that wait and the draft together."""
_PASTE, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_MOST_IN_A_SEQUENCE = 64
"""Characters; the longest that terminals send has about 20. What goes on is no sequence, and its end is not waited for."""


class Keyed(Enum):
    """What a key came to, beyond text."""

    STOP = "stop"
    """Esc, alone."""
    DROPPED = "dropped"
    """There is no room for more."""


class TypedText(Record):
    """What waits, as it stands: to be shown."""

    draft: str
    waiting: int
    last: str = ""
    """The line that was finished last, of those that wait."""


class Typing:
    """Lines in the order in which they were finished, and the one that is not. Enter ends a line; Ctrl-J and Alt-Enter put a
    line end into it; of a paste, everything is text."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque()
        self._size = 0
        self._draft: list[str] = []
        self._escape = ""
        """A sequence that has begun and not ended."""
        self._pasting = False
        self._after_cr = False

    @property
    def in_escape(self) -> bool:
        """Whether an Esc came that may be alone or begin a sequence."""
        return self._escape == "\x1b" and not self._pasting

    @property
    def in_paste(self) -> bool:
        """Whether a paste has begun and not ended."""
        return self._pasting

    @property
    def in_key(self) -> bool:
        """Whether a key came of which more bytes may follow, or must."""
        return bool(self._escape or self._decoder.getstate()[0])

    @property
    def draft(self) -> str:
        """The line that is not finished."""
        return "".join(self._draft)

    @property
    def standing(self) -> TypedText:
        """What is to be shown."""
        return TypedText(draft=self.draft, waiting=len(self._lines), last=self._lines[-1] if self._lines else "")

    def take(self) -> str | None:
        """Return the oldest line and forget it, or None."""
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._size -= len(line)
        return line

    def take_draft(self) -> str:
        """Return the unfinished line and forget it."""
        draft = self.draft
        self._set_draft([])
        return draft

    def feed(self, raw: bytes) -> list[Keyed]:
        """Take in what was read, and return what came of it, in order."""
        told: list[Keyed] = []
        for character in self._decoder.decode(raw):
            if self._escape or (character == "\x1b"):
                self._in_sequence(character, told)
            elif self._pasting:
                self._paste(character, told)
            else:
                self._key(character, told)
        return told

    def lone_escape(self) -> list[Keyed]:
        """Take an Esc after which nothing came for what it is."""
        if not self.in_escape:
            return []
        self._escape = ""
        return [Keyed.STOP]

    def end_keys(self) -> list[Keyed]:
        """Take what came for all that there is of it: no key and no paste goes on with what comes next."""
        told = self.lone_escape()
        self._escape, self._pasting, self._after_cr = "", False, False
        self._decoder.reset()
        return told

    def _in_sequence(self, character: str, told: list[Keyed]) -> None:
        """Take in a character of an escape sequence (ECMA-48 5.4; SS3 of terminals' function keys): keys that do nothing."""
        if character == "\x1b" and self._escape:
            told += [] if self._pasting else self.lone_escape()
            self._escape = ""
        self._escape += character
        sequence = self._escape
        if sequence in ("\x1b", "\x1b[", "\x1bO"):
            return
        if sequence in ("\x1b\r", "\x1b\n"):
            self._escape = ""
            self._add("\n", told)
        elif sequence.startswith("\x1b["):
            if "\x40" <= character <= "\x7e" or len(sequence) > _MOST_IN_A_SEQUENCE:
                self._escape = ""
                self._pasting = sequence == _PASTE or (self._pasting and sequence != _PASTE_ENDS)
        else:  # Alt and a key, or SS3 and one
            self._escape = ""

    def _paste(self, character: str, told: list[Keyed]) -> None:
        if character == "\r" or (character == "\n" and not self._after_cr):
            self._add("\n", told)
        elif character == "\t" or (character >= " " and character != "\x7f"):
            self._add(character, told)
        self._after_cr = character == "\r"

    def _key(self, character: str, told: list[Keyed]) -> None:
        match character:
            case "\r":
                self._end_line(told)
            case "\n":
                self._add("\n", told)
            case "\x7f" | "\x08":
                self._set_draft(self._draft[:-1])
            case "\x15":
                self._set_draft([])
            case "\x17":
                self._set_draft(list(_without_last_word(self.draft)))
            case _ if character == "\t" or character >= " ":
                self._add(character, told)
            case _:
                pass

    def _add(self, character: str, told: list[Keyed]) -> None:
        if self._size >= MOST_CHARACTERS:
            told += [] if Keyed.DROPPED in told else [Keyed.DROPPED]
            return
        self._draft.append(character)
        self._size += 1

    def _set_draft(self, draft: list[str]) -> None:
        self._size += len(draft) - len(self._draft)
        self._draft = draft

    def _end_line(self, told: list[Keyed]) -> None:
        line = self.draft
        if not line.strip():
            return
        if len(self._lines) >= MOST_LINES:  # what stays would run together with the next line
            self._set_draft([])
            told += [] if Keyed.DROPPED in told else [Keyed.DROPPED]
            return
        self._draft = []
        self._lines.append(line)


def _without_last_word(text: str) -> str:
    text = text.rstrip()
    return text[: max(text.rfind(" "), text.rfind("\n")) + 1]

"""A line of text typed at a question: a reason for a refusal, or the word that permits irreversible effects."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from harness.terminal.keys import Event, Key, Pasted
from harness.terminal.row_text import cells, ending
from harness.terminal.screen import Screen
from harness.terminal.unmarked_paste import HAND
from harness.text.visible import visible_line

MOST_CHARACTERS = 2_000
"""Maximum number of characters in a line; more are dropped. The model and the log get the complete line."""
_LONGEST_ESCAPE = 10
r"""Length of the longest escape of a character (`\U0010ffff`)."""


class Pastes(Enum):
    """The treatment of a paste."""

    TEXT = "text"
    NOTHING = "nothing"
    """A paste ends the line without an answer."""


class Back(Enum):
    """The way in which the line was left without an answer."""

    BY_KEY = "Esc"
    BY_PASTE = "a paste is no answer"


def read_words(
    screen: Screen,
    read: Callable[[], Key | Pasted | Event],
    echo: Callable[[str], None],
    *,
    prompt: str,
    pastes: Pastes,
) -> str | Back | Event | Key:
    """Return the text typed up to Enter, without surrounding blanks; or the way in which the line was left.

    `read` returns the next input. `echo` writes to a terminal on which no line may be overwritten. END, STOP and the
    key for the end of input are returned as they are.
    """
    line = _Line(screen, echo, prompt)
    line.begin()
    while True:
        came = read()
        match came:
            case Key(text="enter"):
                return line.finish()
            case Key(text="esc" | "end"):
                line.leave()
                return Back.BY_KEY if came.text == "esc" else came
            case Key(text=key):
                line.press(key)
            case Pasted() if _is_paste(came) and pastes is Pastes.NOTHING:
                line.leave()
                return Back.BY_PASTE
            case Pasted():
                line.take(came)
            case Event.RETURNED:
                line.begin()
            case Event.END | Event.STOP:
                line.leave()
                return came
            case Event.BURST | Event.TIME:
                pass


def _is_paste(came: Pasted) -> bool:
    return came.bracketed or len(came.text) > HAND or not came.text.isprintable()


class _Line:
    """The text typed so far, and its drawing."""

    def __init__(self, screen: Screen, echo: Callable[[str], None], prompt: str) -> None:
        self._screen = screen
        self._echo = echo
        self._prompt = prompt
        self._text = ""

    def begin(self) -> None:
        if self._screen.look.repaints:
            self._show()
        else:
            self._screen.line(self._prompt)
            self._echo(self._text)

    def add(self, text: str) -> None:
        """Add typed text; unprintable characters are dropped. Others that cannot be seen are drawn as escapes."""
        text = "".join(char for char in text if char.isprintable())[: MOST_CHARACTERS - len(self._text)]
        self._text += text
        if self._screen.look.repaints:
            self._show()
        else:
            self._echo(visible_line(text, MOST_CHARACTERS * _LONGEST_ESCAPE))

    def take(self, came: Pasted) -> None:
        """Add a paste. Line ends become blanks. If the last one may have been meant as Enter, the prompt says so."""
        if not _is_paste(came):
            self.add(came.text)
            return
        self.add(" ".join(came.text.split()))
        if came.text[-1:] in ("\r", "\n"):
            self._prompt = "Enter came at once with the words, and is needed once more: "
            if not self._screen.look.repaints:
                self._echo("\n")
            self.begin()

    def press(self, key: str) -> None:
        """Add a character, or carry out an editing key."""
        before = self._text
        match key:
            case "backspace":
                self._text = before[:-1]
            case "kill":
                self._text = ""
            case "word":
                head, blank, _ = before.rstrip().rpartition(" ")
                self._text = head + blank  # as in other line editors, the blank before the word stays
            case _ if len(key) == 1:
                self.add(key)
                return
            case _:
                return
        if self._screen.look.repaints:
            self._show()
        elif before != self._text:
            self._echo("\n")
            self.begin()

    def finish(self) -> str:
        self.leave()
        return self._text.strip()

    def leave(self) -> None:
        if self._screen.look.repaints:
            self._screen.settle()
        else:
            self._echo("\n")

    def _show(self) -> None:
        """Show the end of the typed text after the prompt, as much as fits into the terminal's width."""
        text = visible_line(self._text, MOST_CHARACTERS * _LONGEST_ESCAPE)
        room = max(self._screen.width - 2 - cells(self._prompt), 8)
        self._screen.transient(self._prompt + ending(text, room))

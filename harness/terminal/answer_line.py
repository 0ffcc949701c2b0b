"""A line of words, typed at a question: a reason for a no, or the word that allows what destroys. A paste may be no answer."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from harness.terminal.keys import Event, Key, Pasted
from harness.terminal.row_text import cells, ending
from harness.terminal.screen import Screen
from harness.text.visible import visible_line

MOST_CHARACTERS = 2_000
"""Maximum length of a line, which goes to the model and into the log whole; further characters are dropped."""
_LONGEST_ESCAPE = 10
r"""Length of the longest escape of a character (`\U0010ffff`)."""
HAND = 3
"""Characters that a hand may type within a hundredth of a second; more of them are a paste."""


class Pastes(Enum):
    """The treatment of a paste."""

    TEXT = "text"
    NOTHING = "nothing"
    """It ends the line, without an answer."""


class Back(Enum):
    """The line was left without an answer."""

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
    """Return the words that were typed up to Enter, without blanks around them; or how the line was left.

    `read` returns the next keys, `echo` writes to the terminal where no line may be written over. Returns END, STOP and
    the key of the end of input as they come.
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
    """The words so far, and their drawing."""

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
        """Add typed text. A character that no terminal can show is drawn as an escape, and kept as it is."""
        text = "".join(char for char in text if char.isprintable())[: MOST_CHARACTERS - len(self._text)]
        self._text += text
        if self._screen.look.repaints:
            self._show()
        else:
            self._echo(visible_line(text, MOST_CHARACTERS * _LONGEST_ESCAPE))

    def take(self, came: Pasted) -> None:
        """Add a paste. A line end becomes a blank; a note says so if it may have been meant as Enter."""
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
        """Take a character, or do what another key does."""
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
        """Show the end of what was typed behind the prompt, as much as the terminal's width holds."""
        text = visible_line(self._text, MOST_CHARACTERS * _LONGEST_ESCAPE)
        room = max(self._screen.width - 2 - cells(self._prompt), 8)
        self._screen.transient(self._prompt + ending(text, room))

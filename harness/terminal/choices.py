"""The keys that work at a question, and their descriptions for the available room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.record import Record
from harness.terminal.row_text import Row, cells, prose
from harness.terminal.styles import Tone
from harness.text.visible import visible_line


class Choice(Record):
    """A key and what it does."""

    key: str
    word: str
    """One or two words for the key's effect, the same at every width."""
    does: str
    """Description for `?`, which follows the key."""


YES = Choice(key="y", word="yes", does="allows this, once")
YES_TO_PROGRAM = Choice(key="y", word="yes", does="says yes")
"""For a question of the harness itself. Its yes may hold for longer than one call."""
YES_BY_WORD = Choice(key="y", word="yes", does="allows this, once, after a word that you type")
NO = Choice(key="n", word="no", does="refuses")
SESSION = Choice(key="s", word="session", does="allows it for this session: what that covers is shown first")
PROJECT = Choice(
    key="p", word="project", does="allows it in this project, for as long as you say; this is shown first, too"
)
OPEN = Choice(
    key="o", word="open", does="opens more for this one call, as far as the policy lets it; this is shown first"
)
REASON = Choice(key="r", word="no, but ...", does="refuses, and tells the model why")
REPLY = Choice(key="r", word="no, but ...", does="says no, and sends the model words of yours as your next message")
"""For a question of the harness itself that accepts words."""
WORDS = Choice(
    key="Tab",
    word="add words",
    does="takes words that go with your answer: after a yes the model reads them with the result",
)
EDIT = Choice(key="e", word="edit", does="edits it in your editor")
HALT = Choice(key="h", word="halt", does="refuses and ends the turn: nothing else of it runs")
VIEW = Choice(key="v", word="view", does="shows it again from the top")
HELP = Choice(key="?", word="help", does="shows all keys, what every command gets, and what decided each part")
KEYS = Choice(key="?", word="help", does="says what the keys do")
NEXT = Choice(key="space", word="next page", does="shows the next page, End all that is left")
ALWAYS_SAID = "Esc and Ctrl-D refuse, Ctrl-C refuses and stops the turn. Enter answers nothing."
SAID_ELSEWHERE = "Esc, Ctrl-D and Ctrl-C refuse. Enter answers nothing."
"""For a question of another agent, whose turn continues."""
LEAVES_ALL = "Esc, Ctrl-D and Ctrl-C leave all as it is, too. Enter answers nothing."


def key_line(choices: Sequence[Choice], room: int, *, lines_left: int = 0, waits: Choice = YES) -> str:
    """Return the line of keys, shortened to `room` cells.

    With `lines_left`, it also gives the number of unseen lines, and says that `waits` is off until they were seen. If
    the line is too long, keys are left out from the end; the last one, which shows all keys, stays.
    """
    heads = (
        (f"-- {lines_left} more lines, {waits.key} is off until all was seen: ", f"{lines_left} more: ")
        if lines_left
        else ("",)
    )
    *first, last = (f"[{choice.key}] {choice.word}" for choice in choices)
    for count in range(len(first), 1, -1):
        for head in heads:
            line = head + "  ".join((*first[:count], last))
            if cells(line) <= room:
                return line
    for head in heads:
        line = head + "  ".join(first[:2])
        if cells(line) <= room:
            return line
    return " ".join(choice.key for choice in choices[:4])


def said_keys(choices: Sequence[Choice], *, lines_left: int = 0, waits: Choice = YES) -> str:
    """Return the line of keys for a screen reader: all keys, at any width."""
    more = f"{lines_left} more lines follow; {waits.word} is off until all of it was seen. " if lines_left else ""
    return f"{more}{', '.join(f'{choice.key}: {choice.word}' for choice in choices)}"


def key_rows(choices: Sequence[Choice], width: int, also: str) -> Iterator[Row]:
    """Yield the rows of `?`: one for each key, and then the text `also`."""
    for choice in choices:
        yield from prose(choice.does, width, gutter=f"  {choice.key:5}  ", tone=Tone.QUIET)
    yield from prose(also, width, gutter="         ", tone=Tone.QUIET)


def permanent_line(approval: Approval, summary: str, seconds: float) -> str:
    """Return the line that remains of a question of the harness itself: the decision, the user, and the time."""
    line = visible_line(summary, 100)
    after = f"after {seconds:.1f} s"
    match approval.answer:
        case Answer.YES:
            return f"+ yes  {line}  by you, {after}"
        case Answer.NOBODY:
            return f"x no  {line}  nobody answered"
        case Answer.EDIT:
            return f"~ edited  {line}  by you, {after}"
        case Answer.NO | Answer.STOP | Answer.HALT:
            return f"x no  {line}  by you, {after}"  # the words become the user's next message

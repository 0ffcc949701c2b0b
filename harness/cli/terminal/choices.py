"""The keys that mean something at a question now, and how they are named in the room there is."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli.terminal.keys import Event, Key, Pasted
from harness.cli.terminal.row_text import Row, cells, prose, rows_of
from harness.cli.terminal.styles import Tone
from harness.gate.approval import Answer, Approval
from harness.policy.grant_offers import GrantChoice, Offer
from harness.policy.session_grants import GrantScope
from harness.record import Record
from harness.text.visible import one_line, visible_line


class Choice(Record):
    """A key and what it does."""

    key: str
    word: str
    """In a word or two; with the key it says what happens."""
    short: str
    """Key and word in one, the key in brackets."""
    sentence: str
    """For `?`, and where keys are told in sentences."""


YES = Choice(key="y", word="once", short="[y]es", sentence="y allows this, once")
YES_TO_PROGRAM = Choice(key="y", word="yes", short="[y]es", sentence="y says yes")
"""To a question of the program's own, whose yes may hold for longer than once."""
YES_BY_WORD = Choice(
    key="y", word="by a word", short="[y]es, by a word", sentence="y allows this, once, after a word that you type"
)
SESSION = Choice(
    key="s", word="session", short="[s]ession", sentence="s allows it for this session; the pattern is shown first"
)
PROJECT = Choice(
    key="p",
    word="project",
    short="[p]roject",
    sentence="p allows it in this project from now on; the pattern is shown first",
)
EDIT = Choice(key="e", word="edit", short="[e]dit", sentence="e edits it in your editor")
NO = Choice(key="n", word="no", short="[n]o", sentence="n refuses")
REASON = Choice(key="r", word="because", short="[r]eason", sentence="r refuses, and tells the model why")
REPLY = Choice(
    key="r",
    word="no, but ...",
    short="[r]eply",
    sentence="r says no, and sends the model words of yours as your next message",
)
"""To a question of the program's own at which words are heard."""
HALT = Choice(key="h", word="halt", short="[h]alt", sentence="h refuses and ends the run")
VIEW = Choice(key="v", word="view", short="[v]iew", sentence="v shows it again from the top")
WHY = Choice(key="?", word="why", short="[?]", sentence="? tells of every part what decided it, and by which rule")
NEXT = Choice(
    key="space", word="next page", short="[space]", sentence="space shows the next page, End all that is left"
)
ALWAYS_SAID = "Esc and Ctrl-D refuse, Ctrl-C refuses and stops the turn. Enter answers nothing."


def key_line(choices: Sequence[Choice], room: int, *, left: int = 0) -> str:
    """Return the line of keys that fits into `room` cells, with what is left to be seen; the last resort names only keys."""
    more = f"-- {left} more lines, y is off until all was seen: " if left else ""
    short_more = f"{left} more: " if left else ""
    forms = (
        more + "  ".join(f"[{choice.key}] {choice.word}" for choice in choices),
        short_more + " ".join(choice.short for choice in choices),
        f"{short_more}{' '.join(choice.key for choice in choices)}  (? tells what they do)",
        f"{short_more}{' '.join(choice.key for choice in choices)}",
    )
    return next((form for form in forms if cells(form) <= room), forms[-1])


def sentences(choices: Sequence[Choice], *, left: int = 0) -> str:
    """Return the same as plain sentences."""
    more = f"{left} more lines follow; yes is off until all of it was seen. " if left else ""
    return f"{more}{'; '.join(choice.sentence for choice in choices)}."


def permanent_line(approval: Approval, summary: str, seconds: float) -> str:
    """Return the one line that a question of the program's own leaves: what was decided, by whom, after how long."""
    shown = visible_line(summary, 100)
    after = f"after {seconds:.1f} s"
    match approval.answer:
        case Answer.YES:
            return f"+ yes  {shown}  by you, {after}"
        case Answer.NOBODY:
            return f"x no  {shown}  nobody answered"
        case Answer.NO | Answer.STOP | Answer.HALT | Answer.EDIT:  # of such a question the last two are never offered
            return f"x no  {shown}  by you, {after}"  # words become what the person says next


def until(scope: GrantScope) -> str:
    """Return how long a grant holds, in words."""
    return "for this session" if scope is GrantScope.SESSION else "in this project, from now on, until revoked,"


def offered_rows(offer: Offer, width: int) -> list[Row]:
    """Return the rows that show what may be granted, whole: each choice with its number."""
    rows: list[Row] = []
    for number, choice in enumerate(offer.choices, 1):
        only = ", this session only" if choice.session_only else ""
        rows += prose(f"[{number}] {choice.name}{only}:", width)
        for pattern in choice.patterns:
            rows += rows_of(one_line(pattern.text), width, gutter="      ", tone=Tone.WARNING)
        for part in choice.asked_still:
            rows += prose(f"still asked: {part}", width, gutter="      ")
    if offer.no_program:
        rows += prose(f"no wider grant: {offer.no_program}", width, tone=Tone.QUIET)
    return rows


def chosen(offer: Offer, came: Key | Pasted | Event) -> GrantChoice | None:
    """Return what a key grants; nothing of any other."""
    number = int(came.text) if isinstance(came, Key) and len(came.text) == 1 and came.text in "123456789" else 0
    return offer.choices[number - 1] if 0 < number <= len(offer.choices) else None

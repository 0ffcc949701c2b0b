"""The keys that mean something at a question now, and how they are named in the room there is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from harness.actions import Access
from harness.cli.terminal.row_text import Row, cells, prose, rows_of
from harness.cli.terminal.styles import Tone
from harness.gate.approval import Answer, Approval
from harness.policy.grant_offers import Offer
from harness.policy.session_grants import EVERYTHING, GrantPattern, GrantScope
from harness.record import Record
from harness.text.visible import one_line, visible_line


class Choice(Record):
    """A key and what it does."""

    key: str
    word: str
    """In a word or two, the same at every width; with the key it says what happens."""
    sentence: str
    """For `?`, and where keys are told in sentences."""


YES = Choice(key="y", word="yes", sentence="y allows this, once")
YES_TO_PROGRAM = Choice(key="y", word="yes", sentence="y says yes")
"""To a question of the program's own, whose yes may hold for longer than once."""
YES_BY_WORD = Choice(key="y", word="yes", sentence="y allows this, once, after a word that you type")
NO = Choice(key="n", word="no", sentence="n refuses")
SESSION = Choice(key="s", word="session", sentence="s allows it for this session; what that covers is shown first")
PROJECT = Choice(
    key="p", word="project", sentence="p allows it in this project for longer; what that covers is shown first"
)
REASON = Choice(key="r", word="no, but ...", sentence="r refuses, and tells the model why")
REPLY = Choice(
    key="r", word="no, but ...", sentence="r says no, and sends the model words of yours as your next message"
)
"""To a question of the program's own at which words are heard."""
WORDS = Choice(
    key="Tab",
    word="add words",
    sentence="Tab takes words of yours that go with the answer: with a yes the model reads them beside the result",
)
EDIT = Choice(key="e", word="edit", sentence="e edits it in your editor")
HALT = Choice(key="h", word="halt", sentence="h refuses and ends the turn: nothing else that was asked for runs")
VIEW = Choice(key="v", word="view", sentence="v shows it again from the top")
HELP = Choice(key="?", word="help", sentence="? shows all keys, what is as always, and of every part what decided it")
NEXT = Choice(key="space", word="next page", sentence="space shows the next page, End all that is left")
ALWAYS_SAID = "Esc and Ctrl-D refuse, Ctrl-C refuses and stops the turn. Enter answers nothing."


def key_line(choices: Sequence[Choice], room: int, *, left: int = 0) -> str:
    """Return the line of keys that fits into `room` cells, with what is left to be seen.

    Where it is too long the last keys are left out, but for the very last, which shows them all.
    """
    heads = (f"-- {left} more lines, y is off until all was seen: ", f"{left} more: ") if left else ("",)
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


TIMES: tuple[tuple[str, GrantScope, int | None], ...] = (
    ("this session", GrantScope.SESSION, None),
    ("7 days", GrantScope.WORKSPACE, 7),
    ("until you revoke it, with /grants", GrantScope.WORKSPACE, None),
)
"""How long a grant may hold."""


def times_rows(width: int) -> list[Row]:
    """Return the rows that say for how long a grant may hold, each with its number."""
    return [row for number, (name, _, _) in enumerate(TIMES, 1) for row in prose(name, width, gutter=f"  [{number}] ")]


def offered_rows(offer: Offer, width: int, *, here: str) -> list[Row]:
    """Return the rows that show what may be granted, whole: each choice with its number, the narrowest first.

    `here` is the folder that is not named: the workspace.
    """
    rows: list[Row] = []
    for number, choice in enumerate(offer.choices, 1):
        gutter = f"  [{number}] "
        for pattern in choice.patterns:
            only = "  (this session only)" if choice.session_only else ""
            rows += rows_of(one_line(covered(pattern, here)) + only, width, gutter=gutter)
            gutter = " " * len(gutter)
        for part in choice.asked_still:
            rows += prose(f"asked about still: {part}", width, gutter=gutter, tone=Tone.QUIET)
    if offer.no_program:
        rows += prose(f"no program with any words: {offer.no_program}", width, tone=Tone.QUIET)
    return rows


def covered(pattern: GrantPattern, here: str) -> str:
    """Return what a pattern lets run, and what that may do, in one line; not yet safe to show."""
    if not pattern.argv and not pattern.program:
        does = "edit" if Access.WRITE in pattern.access else "read"
        if pattern.path == EVERYTHING:
            return f"{does} any file of the workspace"
        path = pattern.path.removeprefix("/")
        return f"{does} any file in {path.removesuffix('**')}" if path.endswith("/**") else f"{does} {path}"
    places = ["the workspace" if place == "." else place for place in pattern.write]
    writes = f"writes {', '.join(places)}" if places else "writes what it names"
    network = "reaches the network" if pattern.network else "no network"
    reads = f", could read {', '.join(pattern.exposes)}" if pattern.exposes else ""
    words = shlex.join(pattern.argv) or "any known command"
    named = " ".join((*(f"{name}=..." for name in pattern.variables), words))
    how = "  exactly" if not pattern.program else " *  in walls" if pattern.argv else "  in walls"
    where = "" if pattern.folder == here else f", in {pattern.folder}"
    return f"{named}{how}: {writes}, {network}{reads}{where}"

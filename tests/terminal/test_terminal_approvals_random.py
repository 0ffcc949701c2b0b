"""Random keys at a question: whatever is typed, a yes comes only of a lone y, or y or yes with Enter, after a rest."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from question_scene import DEAD, Asked, Played, command
from rows import all_rows
from sizes import proof_size
from typist_scene import explains as typist_explains
from typist_scene import presses_of, put

from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.terminal.keys import SURE_SECONDS, TYPING_SECONDS

pytestmark = pytest.mark.terminal

BURSTS = (
    "y", "y", "y", "Y", "n", "\r", " ", " ", "s", "p", "1", "1", "2", "3", "?", "v", "r", "x", "\x1b", "\x1b[A", "yy", "y\r",
    "ys", "sy", "\t", "\t",
    "\x1b[200~y\x1b[201~", "\x1b[200~", "\x1b[201~", "destroy", "destroy\r", "\x1b[?y", "\x1by", "\u0443", "\x7f", "\x04",
)  # fmt: skip
KINDS = {"short": "touch made", "pages": "touch " + "a" * 500, "destroys": "rm -rf src"}
PAUSES = (0.0, 0.0, 0.02, 0.07, DEAD + 0.15, DEAD + 0.15)


class Press(NamedTuple):
    """Bytes that are sent at once, and the time before them."""

    pause: float
    keys: str


class Sent(NamedTuple):
    """What was sent, and the time without keys that lay before it."""

    keys: str
    quiet: float


PROPER = {
    "short": [Press(1.0, "y")],
    "pages": [*[Press(0.7, " ")] * 2, Press(0.7, "y")],
    "destroys": [Press(1.0, "y")],
}
PRESSES = st.lists(st.builds(Press, st.sampled_from(PAUSES), st.sampled_from(BURSTS)), min_size=1, max_size=9)


def play(played: Played, presses: list[Press]) -> list[Sent]:
    """Send it all; return what was sent before the answer was there."""
    sent: list[Sent] = []
    for press in presses:
        before = played.time.monotonic()
        played.go_on(press.pause)
        if played.time.is_over:
            break
        sent.append(Sent(press.keys, played.time.monotonic() - before))
        played.send(press.keys)
    played.go_on(SURE_SECONDS + 0.2)
    return sent


def explains(sent: list[Sent], approval: Approval, kind: str) -> bool:
    """Say whether some key of those can have been a yes: alone, after a rest that was long enough, and nothing behind it."""
    after = [*(one.quiet for one in sent[1:]), SURE_SECONDS]
    counted = [
        (index, one.keys) for index, one in enumerate(sent) if one.quiet >= DEAD and after[index] >= SURE_SECONDS
    ]
    if approval.scope is not None:
        steps = [index for index, keys in counted if keys in ("s", "p")]
        return any(step < grant for step in steps for grant, keys in counted if keys in "123")
    alone = [index for index, keys in counted if keys in ("y", "Y")]
    alone += [
        index
        for index, one in enumerate(sent[:-1])
        if one.quiet >= DEAD
        and one.keys in ("y", "Y")
        and sent[index + 1].keys == "\r"
        and sent[index + 1].quiet >= TYPING_SECONDS
        and after[index + 1] >= SURE_SECONDS
    ]
    if kind == "pages":
        alone = [index for index in alone if any(one.keys == " " for one in sent[:index])]
    return bool(alone) and kind != "destroys"


@pytest.fixture(scope="module")
def about(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    root = str(tmp_path_factory.mktemp("w"))
    return {kind: command(root, line) for kind, line in KINDS.items()}


def answered(about: dict[str, Asked], kind: str, presses: list[Press]) -> bool:
    """Return whether those keys come to a yes, which must be one that they can have been."""
    with Played(about[kind], columns=60, lines=10 if kind == "pages" else 30, emulate=False) as played:
        sent = play(played, presses)
        approval = played.approval
    if approval is None or approval.answer is not Answer.YES:
        return False
    assert explains(sent, approval, kind), f"{kind}: {sent} -> {approval}"
    return True


@settings(max_examples=75, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(list(KINDS)), presses=PRESSES)
def test_random_keys_never_allow_by_accident(about: dict[str, Asked], kind: str, presses: list[Press]) -> None:
    yes = answered(about, kind, presses)
    assert not (yes and kind == "destroys")


def test_typists_never_allow_by_accident(about: dict[str, Asked]) -> None:
    """They type, answer, paste and hold keys down while questions come; `bench/typists.py` has more of them."""
    yeses = 0
    for seed in range(proof_size("TYPISTS", 25, full=1_000)):
        chance = random.Random(seed)
        question = put(about["short"], chance, presses_of(chance), unread=chance.random() < 0.3)
        yeses += question.is_yes
        assert not question.is_yes or typist_explains(question), f"{seed}: {question}"
    assert yeses


def test_unfinished_paste_allows_no_call(about: dict[str, Asked]) -> None:
    keys = (0.3, "r"), (0.3, "2y\t"), (0.02, "r"), (0.07, "y\r"), (0.3, "\x1b[?y"), (0.0, "\x1b[200~"), (0.3, "1")
    presses = [Press(pause, each) for pause, each in keys]
    assert not answered(about, "short", presses)


@all_rows("kind", list(PROPER))
def test_proper_answer_allows_the_call(about: dict[str, Asked], kind: str) -> None:
    """What destroys needs more than a key."""
    assert answered(about, kind, PROPER[kind]) == (kind != "destroys")

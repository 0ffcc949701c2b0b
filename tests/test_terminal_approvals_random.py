"""Random keys at a question: whatever is typed, a yes comes only of a lone y after a rest, with all of it seen."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from question_scene import DEAD, Asked, Played, command

from harness.approval import Answer, Approval

pytestmark = pytest.mark.terminal

BURSTS = (
    "y", "y", "y", "Y", "n", "\r", " ", " ", "s", "p", "1", "2", "?", "v", "r", "x", "\x1b", "\x1b[A", "yy", "y\r", "ys", "sy",
    "\x1b[200~y\x1b[201~", "\x1b[200~", "\x1b[201~", "destroy", "destroy\r", "\x1b[?y", "\x1by", "\u0443", "\t", "\x7f", "\x04",
)  # fmt: skip
PAUSES = (0.0, 0.0, 0.02, 0.07, DEAD + 0.15, DEAD + 0.15)


class Press(NamedTuple):
    """Bytes that are sent at once, and the time before them."""

    pause: float
    keys: str


class Sent(NamedTuple):
    """What was sent, and the time without keys that lay before it at most."""

    keys: str
    quiet: float


PRESSES = st.lists(st.builds(Press, st.sampled_from(PAUSES), st.sampled_from(BURSTS)), min_size=1, max_size=9)


def play(played: Played, presses: list[Press]) -> list[Sent]:
    """Send it all; note what was sent before the answer was there."""
    sent: list[Sent] = []
    last = time.monotonic()
    for press in presses:
        time.sleep(press.pause)
        if not played._worker.is_alive():
            break
        played.send(press.keys)
        now = time.monotonic()
        sent.append(Sent(press.keys, now - last))
        last = now - 0.002
    return sent


def explains(sent: list[Sent], approval: Approval, *, pages: bool, destroys: bool) -> bool:
    """Say whether some key of those can have been a yes: alone, after a rest that was long enough."""
    alone = [
        index
        for index, one in enumerate(sent)
        if one.keys in ("y", "Y") and one.quiet >= DEAD
    ]  # fmt: skip
    if approval.scope is not None:
        steps = [i for i, one in enumerate(sent) if one.keys in ("s", "p") and one.quiet >= DEAD]
        grants = [i for i, one in enumerate(sent) if one.keys in ("y", "Y", "1", "2") and one.quiet >= DEAD]
        return any(step < grant for step in steps for grant in grants)
    if pages:
        alone = [index for index in alone if any(one.keys == " " for one in sent[:index])]
    return bool(alone) and not destroys


@pytest.mark.parametrize("kind", ["short", "pages", "destroys"])
def test_no_sequence_of_keys_allows_by_accident(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sixteen questions at a time, each with keys of its own."""
    root = str(tmp_path_factory.mktemp("w"))
    line = {"short": "touch made", "pages": "touch " + "a" * 500, "destroys": "rm -rf src"}[kind]
    about: Asked = command(root, line)
    yes = 0

    @settings(max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(PRESSES, min_size=16, max_size=16))
    def run(rounds: list[list[Press]]) -> None:
        nonlocal yes
        with ExitStack() as stack:
            questions = [
                stack.enter_context(Played(about, columns=60, lines=10 if kind == "pages" else 30, emulate=False))
                for _ in rounds
            ]
            with ThreadPoolExecutor(len(rounds)) as threads:
                all_sent = list(threads.map(play, questions, rounds))
            time.sleep(0.2)
        for played, sent in zip(questions, all_sent, strict=True):
            approval = played.approval
            if approval is not None and approval.answer is Answer.YES:
                yes += 1
                told = f"{sent} -> {approval}"
                assert explains(sent, approval, pages=kind == "pages", destroys=kind == "destroys"), told

    run()
    assert yes == 0 or kind != "destroys"

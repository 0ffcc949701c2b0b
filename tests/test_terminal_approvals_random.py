"""Random keys at a question: whatever is typed, a yes comes only of a lone y after a rest, with all of it seen."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from question_scene import DEAD, Asked, Played, command

from harness.approval import Answer, Approval
from harness.cli.terminal.keys import SURE_SECONDS

pytestmark = pytest.mark.terminal

BURSTS = (
    "y", "y", "y", "Y", "n", "\r", " ", " ", "s", "p", "1", "2", "?", "v", "r", "x", "\x1b", "\x1b[A", "yy", "y\r", "ys", "sy",
    "\x1b[200~y\x1b[201~", "\x1b[200~", "\x1b[201~", "destroy", "destroy\r", "\x1b[?y", "\x1by", "\u0443", "\t", "\x7f", "\x04",
)  # fmt: skip
SLACK = 0.05
"""Seconds that a key may have been under way for longer than the one before it."""
KINDS = {"short": "touch made", "pages": "touch " + "a" * 500, "destroys": "rm -rf src"}
PAUSES = (0.0, 0.0, 0.02, 0.07, DEAD + 0.15, DEAD + 0.15)


class Press(NamedTuple):
    """Bytes that are sent at once, and the time before them."""

    pause: float
    keys: str


class Sent(NamedTuple):
    """What was sent, and the time without keys that lay before it at most."""

    keys: str
    quiet: float


PROPER = {
    "short": [Press(1.0, "y")],
    "pages": [*[Press(0.7, " ")] * 2, Press(0.7, "y")],
    "destroys": [Press(1.0, "y")],
}
PRESSES = st.lists(st.builds(Press, st.sampled_from(PAUSES), st.sampled_from(BURSTS)), min_size=1, max_size=9)


def play(played: Played, presses: list[Press]) -> list[Sent]:
    """Send it all; note what was sent before the answer was there."""
    sent: list[Sent] = []
    last = played.began
    for press in presses:
        time.sleep(press.pause)
        if not played._worker.is_alive():
            break
        played.send(press.keys)
        now = time.monotonic()
        sent.append(Sent(press.keys, now - last))
        last = now - 0.002
    return sent


def explains(sent: list[Sent], approval: Approval, kind: str) -> bool:
    """Say whether some key of those can have been a yes: alone, after a rest that was long enough, and nothing behind it."""
    after = [*(one.quiet for one in sent[1:]), SURE_SECONDS]
    counted = [
        (index, one.keys)
        for index, one in enumerate(sent)
        if one.quiet >= DEAD and after[index] >= SURE_SECONDS - SLACK
    ]
    if approval.scope is not None:
        steps = [index for index, keys in counted if keys in ("s", "p")]
        return any(step < grant for step in steps for grant, keys in counted if keys in ("y", "Y", "1", "2"))
    alone = [index for index, keys in counted if keys in ("y", "Y")]
    if kind == "pages":
        alone = [index for index in alone if any(one.keys == " " for one in sent[:index])]
    return bool(alone) and kind != "destroys"


def test_no_sequence_of_keys_allows_by_accident(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Twelve questions of each kind at a time, each with keys of its own, and one that is answered as it should be."""
    root = str(tmp_path_factory.mktemp("w"))
    about: dict[str, Asked] = {kind: command(root, line) for kind, line in KINDS.items()}
    yes: Counter[str] = Counter()

    @settings(max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(PRESSES, min_size=36, max_size=36))
    def run(rounds: list[list[Press]]) -> None:
        kinds = list(KINDS)
        plays = [*((kinds[index % 3], presses) for index, presses in enumerate(rounds)), *PROPER.items()]
        with ExitStack() as stack:
            questions = [
                stack.enter_context(Played(about[kind], columns=60, lines=10 if kind == "pages" else 30, emulate=False))
                for kind, _ in plays
            ]
            with ThreadPoolExecutor(len(plays)) as threads:
                all_sent = list(threads.map(play, questions, [presses for _, presses in plays]))
            time.sleep(SURE_SECONDS + 0.2)
        for played, (kind, _), sent in zip(questions, plays, all_sent, strict=True):
            approval = played.approval
            if approval is not None and approval.answer is Answer.YES:
                yes[kind] += 1
                assert explains(sent, approval, kind), f"{kind}: {sent} -> {approval}"

    run()
    assert yes["short"] >= 1
    assert yes["pages"] >= 1
    assert yes["destroys"] == 0

"""Random people who type while questions come, and the answers that their keys may have been: judged by the keys alone.

The seconds between keys are drawn as recorded typing has them: a lognormal spread around a median of 0.06 to 0.5 seconds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from question_scene import DEAD, Asked, Played

from harness.gate.approval import Approval
from harness.log.vocabulary import Answer

SECONDS = 20.0
"""How long a person types. The question comes at a random time of it."""
READING, SURE, ROLLED = 1.5, 0.25, 0.01
"""What the page about the terminal promises: the rest for who was typing, the rest behind a key, the gap of two hands."""
SENTENCES = (
    "so why is that", "yes please", "yesterday it worked, didn't it", "try it without y", "why not", "add a summary by day",
    "you only sort it by key", "no, keep it", "my copy is empty", "say y or n", "step 1 only", "push it", "es geht so",
)  # fmt: skip


class Press(NamedTuple):
    """Bytes that are sent at once, and when."""

    at: float
    keys: str


class Put(NamedTuple):
    """A question that was put to a typist: when its last row was drawn, all presses, and its answer."""

    drawn_at: float
    presses: Sequence[Press]
    sent: int
    """How many presses there were before the answer."""
    approval: Approval | None

    @property
    def is_yes(self) -> bool:
        return self.approval is not None and self.approval.answer is Answer.YES


def presses_of(chance: random.Random) -> list[Press]:
    """Return what one person does with the keyboard for a while."""
    median = chance.choice((0.06, 0.09, 0.13, 0.18, 0.3, 0.5))
    now, presses = 0.0, list[Press]()
    while now < SECONDS:
        for pause, keys in _action(chance, median):
            now += pause
            presses.append(Press(now, keys))
        now += chance.choice((0.3, 0.6, 1.0, 2.0, 4.0)) * chance.lognormvariate(0.0, 0.4)
    return presses


def _action(chance: random.Random, median: float) -> Iterator[tuple[float, str]]:
    """Yield the pauses and keys of one thing that people do."""
    match chance.choice(("sentence", "sentence", "word", "answer", "answer", "line", "line", "tap", "held", "paste")):
        case "sentence":
            yield from _typed(chance, chance.choice(SENTENCES) + chance.choice(("", "\r")), median)
        case "word":
            yield from _typed(chance, chance.choice(chance.choice(SENTENCES).split()), median)
        case "answer":
            yield 0.0, chance.choice("yyyYn1sp")
        case "line":
            yield from _typed(chance, chance.choice(("y", "yes", "Yes", "no", "n")) + "\r", median)
        case "tap":
            key = chance.choice("yyn\r")
            yield from ((0.0, key), (chance.uniform(0.06, 0.3), key))
        case "held":
            key = chance.choice("yy n")
            yield from ((0.0, key), (chance.uniform(0.25, 0.66), key))
            yield from ((0.033, key) for _ in range(chance.randrange(40)))
        case _:
            text = chance.choice((*SENTENCES, "y", "yes")) + chance.choice(("", "\r", "\ry\r"))
            text = f"\x1b[200~{text}\x1b[201~" if chance.random() < 0.4 else text
            cut = chance.randrange(len(text)) if chance.random() < 0.3 else 0
            yield from ((0.0, text[:cut]), (chance.uniform(0.0, 0.009), text[cut:]))


def _typed(chance: random.Random, text: str, median: float) -> Iterator[tuple[float, str]]:
    for index, key in enumerate(text):
        slow = chance.choice((1, 1, 2, 6)) if key == " " else 1
        yield (median * slow * chance.lognormvariate(0.0, 0.45) if index else 0.0), key


def put(asked: Asked, chance: random.Random, typist: Sequence[Press], *, unread: bool) -> Put:
    """Put a question to a typist at a random time; `unread`: nobody read the keys before it."""
    came_at = chance.uniform(1.0, SECONDS - 2.0)
    before = [press for press in typist if press.at < came_at and press.keys]
    typed = came_at - before[-1].at if before and not unread else None
    played = Played(asked, columns=60, emulate=False, typed=typed)
    if unread:
        played.send("".join(press.keys for press in before if press.at > came_at - 10.0)[-1000:])
    with played:
        played.time.settle()
        start = played.time.monotonic() - came_at
        presses = [press for press in typist if press.keys]
        for sent in range(len(before), len(presses)):
            played.go_on(start + presses[sent].at - played.time.monotonic())
            if played.time.is_over:
                return Put(came_at, presses, sent, played.approval)
            presses[sent] = Press(played.time.monotonic() - start, presses[sent].keys)
            played.send(presses[sent].keys)
            played.time.settle()
        played.go_on(1.0)
        return Put(came_at, presses, len(presses), played.approval)


def explains(put: Put) -> bool:
    """Return whether the keys have an answer that a person may mean: a key alone, or a word with Enter, after the time."""
    presses, drawn_at = put.presses, put.drawn_at
    was_typing = any(drawn_at - 10.0 <= press.at < drawn_at + DEAD for press in presses)
    counts_from = drawn_at + (READING if was_typing else DEAD)
    rested = [
        index
        for index, press in enumerate(presses[: put.sent])
        if press.at >= counts_from and (index == 0 or press.at - presses[index - 1].at >= DEAD)
    ]
    assert put.approval is not None
    if put.approval.scope is not None:
        listed = [presses[index].at for index in rested if _is_alone(presses, index, "sp")]
        reads = READING if was_typing else DEAD
        return any(
            _is_alone(presses, index, "123") and presses[index].at >= at + reads for at in listed for index in rested
        )
    return any(_is_alone(presses, index, "y") or _is_line(presses, index) for index in rested)


def _is_alone(presses: Sequence[Press], index: int, keys: str) -> bool:
    press = presses[index]
    return len(press.keys) == 1 and press.keys.lower() in keys and _gap(presses, index) >= SURE


def _is_line(presses: Sequence[Press], index: int) -> bool:
    """Return whether a hand types `y` or `yes` from here on, then Enter, and rests."""
    for word in ("y\r", "yes\r"):
        last = index + len(word) - 1
        typed = [press.keys.lower() for press in presses[index : last + 1]]
        gaps = [_gap(presses, at) for at in range(index, last)]
        if typed == list(word) and all(ROLLED <= gap <= SURE + 0.01 for gap in gaps) and _gap(presses, last) >= SURE:
            return True
    return False


def _gap(presses: Sequence[Press], index: int) -> float:
    return presses[index + 1].at - presses[index].at if index + 1 < len(presses) else 60.0

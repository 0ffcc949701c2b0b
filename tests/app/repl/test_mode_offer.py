"""The offer of the mode `walls` at the prompt: once, and only where it spares most questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import Start, prompts
from sandbox_scene import needs_walls

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from program import Program

pytestmark = [pytest.mark.terminal, needs_walls]

OFFER = "the mode `walls` (Shift-Tab) would have spared you"


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def offers(start: Start, *commands: str) -> list[int]:
    """Refuse these commands in turn. Return how often the mode had been offered when the next one was asked about."""
    calls = (Reply(calls=(call("bash", command=command),)) for command in commands)
    prompt = start(replies(*calls, Reply(text="The end.")))
    prompt.type("go")
    counts = []
    for number in range(1, len(commands) + 1):
        prompt.press("bash", "n", times=number)
        prompt.wait_for("The end." if number == len(commands) else f"$ {commands[number]}")
        counts.append(" ".join(prompt.text().split()).count(OFFER))
    assert prompt.leave() == 0
    return counts


def test_mode_is_offered_once_at_the_third_question(start: Start) -> None:
    assert offers(start, "touch a", "python3 -c 1", "touch c", "touch d") == [0, 0, 1, 1]


def test_mode_is_offered_if_it_spares_most_questions(start: Start) -> None:
    assert offers(start, "touch a", "curl example.org", "make") == [0, 0, 1]


def test_mode_is_not_offered_if_it_spares_few_questions(start: Start) -> None:
    assert offers(start, "touch a", "curl example.org", "git push", "touch b") == [0, 0, 0, 0]

"""The first run without a model: the ways to one are told, a key plays the demo, and leaving is what the error was."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from program import made_program
from repl_scene import AGAIN_SECONDS, CONFIG, DEAD_SECONDS, write_config
from rows import all_rows
from screen_scene import CTRL_C, CTRL_D, DOWN, ENTER, ESC, SECONDS, SPACE, PlayedTerminal, paste
from terminal_corpus import frame, problems_of_bytes, problems_of_screen

from harness.app.demo.first_run import first_run
from harness.errors import UsageError
from harness.session.config.provider import NO_PROVIDER
from harness.terminal.console import Look
from harness.terminal.screen import Screen

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

OFFER = "d = play the demo now"
# What the terminal is told while keys are read: bracketed paste on and off.
SEQUENCES = (r"\x1b\[\?2004[hl]",)


@contextmanager
def started(
    program: Program,
    *words: str,
    columns: int = 80,
    variables: Mapping[str, str] = {},
    configuration: str = CONFIG,
    ahead: str = "",
) -> Iterator[PlayedTerminal]:
    """Start the prompt in a terminal, without a provider."""
    environment = {**program.environment, **variables}
    write_config(program, configuration)
    before = "\n".join(frame()) + "\n"
    with PlayedTerminal(
        program.command(*words),
        columns=columns,
        cwd=program.workspace,
        environment=environment,
        before=before,
        ahead=ahead,
    ) as terminal:
        yield terminal


def press(terminal: PlayedTerminal, key: str, done: Callable[[], bool]) -> None:
    """Press a key until it has done what it does: nothing shows when the dead time is over."""
    terminal.wait_for(OFFER)
    end = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < end, f"{key!r} does nothing"
        time.sleep(DEAD_SECONDS + 0.15)
        terminal.send(key)
        try:
            terminal.wait_until(lambda: done() or terminal.ended, "nothing", AGAIN_SECONDS)
        except AssertionError:
            continue


def left(terminal: PlayedTerminal, key: str = "q") -> int:
    """Leave by a key, and return the exit code."""
    press(terminal, key, lambda: terminal.ended)
    return terminal.exit_code()


def test_first_run_lists_the_ways_to_a_model_and_leaves_no_files(program: Program) -> None:
    with started(program) as terminal:
        terminal.wait_for(OFFER)
        text = terminal.text()
        for way in ("export OPENAI_API_KEY=", "--provider ollama", "--base-url http://localhost"):
            assert way in text
        assert "harness/config.toml" in "".join(row.strip() for row in terminal.rows())
        assert left(terminal) == 2
        assert list(problems_of_bytes(terminal.raw, SEQUENCES)) == []
        assert list(problems_of_screen(terminal, frame())) == []
    assert program.logs() == []


@all_rows(
    "keys",
    [
        pytest.param("q", id="q"),
        pytest.param("Q", id="a large q"),
        pytest.param(ESC, id="escape"),
        pytest.param(CTRL_C, id="Ctrl-C"),
        pytest.param(CTRL_D, id="Ctrl-D"),
    ],
    anew={"program": made_program},
)
def test_a_key_that_leaves_is_the_usage_error_that_it_was(program: Program, keys: str) -> None:
    with started(program) as terminal:
        assert left(terminal, keys) == 2
        assert "SCRIPTED" not in terminal.text()


def test_a_hang_up_leaves(program: Program) -> None:
    with started(program) as terminal:
        terminal.wait_for(OFFER)
        terminal.hang_up()
        assert terminal.exit_code() != 0


def test_one_key_plays_the_demo_to_its_end(program: Program) -> None:
    with started(program, columns=40) as terminal:
        press(terminal, "d", lambda: "SCRIPTED" in terminal.text())
        terminal.wait_for("SCRIPTED: no model is asked")
        terminal.wait_keys()
        terminal.send(CTRL_C)
        terminal.wait_for("Everything is in the action log")
        assert terminal.exit_code() == 130
        assert terminal.rows()[:8] == frame()
    assert len(program.logs()) == 1


def test_other_keys_have_no_effect(program: Program) -> None:
    with started(program) as terminal:
        terminal.wait_for(OFFER)
        for keys in (ENTER, SPACE, "y", DOWN, paste("d\n"), "dd", "ddq\n"):
            time.sleep(0.2)  # on a busy machine some come in the dead time, or together: they do nothing then, either
            terminal.send(keys)
        time.sleep(0.2)
        assert not terminal.ended
        assert terminal.text().rstrip().endswith("q = leave")
        assert left(terminal) == 2


def test_configuration_sets_the_dead_time_and_the_drawing(program: Program) -> None:
    with started(program, configuration="[terminal]\ndead_seconds = 10\nscreen_reader = true\n") as terminal:
        terminal.wait_for(OFFER)
        time.sleep(1.0)
        terminal.send("d")  # the standard dead time is over, and the one that is set for long not
        time.sleep(0.5)
        assert left(terminal, CTRL_C) == 2
        assert "SCRIPTED" not in terminal.text()
        assert b"\x1b" not in terminal.raw


def test_keys_typed_before_the_offer_are_ignored(program: Program) -> None:
    with started(program, ahead="d") as terminal:
        assert left(terminal) == 2
        assert "SCRIPTED" not in terminal.text()


def test_a_key_of_another_provider_is_named(program: Program) -> None:
    with started(program, variables={"MISTRAL_API_KEY": "k-secret"}) as terminal:
        terminal.wait_for(OFFER)
        assert "MISTRAL_API_KEY is set: harness --provider mistral" in terminal.text()
        assert "k-secret" not in terminal.text()
        assert left(terminal) == 2


@all_rows(
    ("words", "variables"),
    [
        pytest.param(("--provider", "mistral", "--model", "m"), {}, id="a provider that is named and has no key"),
        pytest.param(("--provider", "ollama"), {}, id="a model that is not named"),
        pytest.param(("--policy", "nowhere.toml"), {}, id="a policy that is not there"),
    ],
    anew={"program": made_program},
)
def test_other_errors_make_no_offer(program: Program, words: tuple[str, ...], variables: Mapping[str, str]) -> None:
    with started(program, *words, variables=variables) as terminal:
        assert terminal.exit_code() == 2
        assert OFFER not in terminal.text()
        assert "harness: " in terminal.text()


@all_rows("words", [(), ("run", "go")], ids=["the prompt", "run"], anew={"program": made_program})
def test_missing_model_is_an_error_without_a_terminal(program: Program, words: tuple[str, ...]) -> None:
    done = program.run(*words)
    assert done.code == 2
    assert OFFER not in done.out + done.err


def test_run_in_a_terminal_asks_no_question(program: Program) -> None:
    with started(program, "run", "go") as terminal:
        assert terminal.exit_code() == 2
        assert "no model to talk to" in terminal.text()
        assert OFFER not in terminal.text()


def test_a_dumb_terminal_gets_no_escapes(program: Program) -> None:
    with started(program, variables={"TERM": "dumb"}) as terminal:
        assert left(terminal) == 2
        assert b"\x1b" not in terminal.raw


def test_only_the_error_that_no_provider_was_named_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert first_run(UsageError("which model of Ollama?"), {}, Screen(sys.stdout, Look()), dead_seconds=0.2) is None
    assert capsys.readouterr().out == ""
    assert NO_PROVIDER.startswith("no model to talk to")

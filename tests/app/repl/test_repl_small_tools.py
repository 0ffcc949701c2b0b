"""The small tools at the prompt: a list above it, and questions of the model; and what they are where nobody is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import Prompt, Start, prompts
from rows import all_rows
from screen_scene import CTRL_C, ENTER, ESC

from harness.app.repl.todo_list import standing_lines
from harness.models.scripted import Reply, call, replies
from harness.tools.todo import TodoItem

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

POLICY = 'version = 1\n[tools]\ntodo = "auto"\nask_user = "auto"\nweb_fetch = "confirm"\n'
DONE = Reply(text="Done.")
WHICH = Reply(calls=(call("ask_user", question="Which\x1b[2J one?", choices=["the first", "the second"]),))
LIST = Reply(
    calls=(call("todo", items=[{"text": "read\x1b[2J it", "status": "done"}, {"text": "write it", "status": "doing"}]),)
)


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def named(program: Program) -> tuple[str, str]:
    path = program.home / "policy.toml"
    path.write_text(POLICY)
    return "--policy", str(path)


def outcomes(program: Program) -> list[tuple[object, object]]:
    return [(record["status"], record["content"]) for record in program.records() if record["kind"] == "outcome"]


def asked(prompt: Prompt, count: int) -> None:
    prompt.wait_count("the model asks you", count)
    prompt.wait_keys()


def test_a_question_of_the_model_is_answered_at_the_terminal(program: Program, start: Start) -> None:
    prompt = start(replies(WHICH, DONE, WHICH, DONE, WHICH, DONE), *named(program))
    prompt.type("go")
    asked(prompt, 1)
    assert "Which\\x1b[2J one?" in prompt.unwrapped()
    prompt.send("2")
    prompt.wait_count("tokens in, ", 1)
    prompt.type("again")
    asked(prompt, 2)
    prompt.send("r")
    prompt.send_words("your answer (Enter sends it, Esc goes back): ", "neither")
    prompt.send(ENTER)
    prompt.wait_count("tokens in, ", 2)
    prompt.type("again")
    asked(prompt, 3)
    prompt.send(ESC)
    prompt.wait_count("tokens in, ", 3)
    assert prompt.leave() == 0
    said = [content for _, content in outcomes(program)]
    assert said[:2] == ["The person answered: the second", "The person answered: neither"]
    assert str(said[2]).startswith("The person gave no answer.")
    assert program.run("audit", "verify").code == 0


def test_ctrl_c_at_a_question_of_the_model_stops_the_turn(program: Program, start: Start) -> None:
    prompt = start(replies(WHICH, DONE), *named(program))
    prompt.type("go")
    asked(prompt, 1)
    prompt.send(CTRL_C)
    prompt.wait_count("tokens in, ", 1)
    assert len(program.players[0].requests) == 1
    prompt.ask("hello", "Done.")
    assert prompt.leave() == 0
    assert [status for status, _ in outcomes(program)] == ["interrupted"]


def test_task_list_is_shown_above_the_prompt_and_after_resuming(program: Program, start: Start) -> None:
    prompt = start(replies(LIST, DONE), *named(program))
    prompt.ask("go", "Done.")
    prompt.wait_for("[x] read\\x1b[2J it")
    prompt.wait_for("[>] write it")
    assert "todo  1 of 2 done, doing: write it" in prompt.unwrapped()
    assert prompt.leave() == 0
    again = start(replies(DONE), *named(program), "--continue")
    again.wait_for("[>] write it")
    assert again.leave() == 0


def items(*states: str) -> list[TodoItem]:
    return [TodoItem(text=str(number), status=state) for number, state in enumerate(states, 1)]


@all_rows(
    ("states", "max_lines", "lines"),
    [
        pytest.param(("done", "doing", "pending"), 5, ["[x] 1", "[>] 2", "[ ] 3"], id="all fit"),
        pytest.param(("done", "doing", "pending"), 1, ["1 of 3 done, doing: 2"], id="one line"),
        pytest.param(("done", "doing", "pending"), 0, [], id="no room"),
        pytest.param(("done", "done"), 5, [], id="all done"),
        pytest.param((), 5, [], id="no list"),
        pytest.param(
            ("done", "done", "done", "doing", "pending", "pending", "pending"), 5,
            ["3 of 7 done", "[x] 3", "[>] 4", "[ ] 5", "[ ] 6"], id="around the current one",
        ),
        pytest.param(
            ("pending",) * 7, 3, ["0 of 7 done", "[ ] 1", "[ ] 2"], id="none begun"
        ),
        pytest.param(
            (*("done",) * 6, "doing"), 4, ["6 of 7 done", "[x] 5", "[x] 6", "[>] 7"], id="the last one"
        ),
    ],
)  # fmt: skip
def test_standing_list_shows_the_items_around_the_current_one(
    states: tuple[str, ...], max_lines: int, lines: list[str]
) -> None:
    assert standing_lines(items(*states), max_lines) == lines


def test_task_list_stands_while_the_turn_goes_on(program: Program, start: Start) -> None:
    slow = Reply(calls=(call("bash", command="touch begun; until test -e over; do sleep 0.05; done"),))
    prompt = start(replies(LIST, slow, DONE), *named(program), lines=24)
    prompt.type("go")
    prompt.press("bash", "y")
    prompt.wait_until((program.workspace / "begun").exists, "the command did not begin")
    prompt.wait_until(
        lambda: prompt.display()[prompt.cursor[0] - 2 : prompt.cursor[0]] == ["[x] read\\x1b[2J it", "[>] write it"],
        "the list does not stand above the activity",
    )
    (program.workspace / "over").touch()
    prompt.wait_for("Done.")
    assert prompt.leave() == 0


def test_unattended_run_goes_on_without_an_answer(program: Program) -> None:
    url = program.serve(replies(WHICH, LIST, DONE))
    done = program.run("run", "go", "--base-url", url, *named(program))
    assert (done.code, done.out) == (0, "Done.\n")
    (question, answer), (listed, _) = outcomes(program)
    assert (question, listed) == ("failed", "ok")
    assert str(answer).startswith("Nobody is there to answer.")
    assert "+ todo  1 of 2 done, doing: write it" in done.err


def test_small_tools_are_offered_if_a_policy_names_them(program: Program) -> None:
    done = program.run("run", "go", "--base-url", program.serve(replies(DONE)), "--policy", "ci")
    assert done.code == 0
    tools = program.players[0].requests[0]["tools"]
    assert isinstance(tools, list)
    assert not any(name in str(tools) for name in ("'todo'", "'ask_user'", "'web_fetch'"))


def test_their_calls_are_explained_and_judged_again(program: Program) -> None:
    _, policy = named(program)
    rule = '[[rule]]\nid = "docs"\ndecision = "auto"\nhost = ["*.example.org"]\n'
    with open(policy, "a", encoding="utf-8") as file:
        file.write(rule)
    for url, said in (
        ("https://a.example.org/x", "rule docs"),
        ("https://other.example/", "default for web_fetch"),
        ("http://169.254.169.254/", "private-address"),
    ):
        done = program.run("policy", "explain", "--policy", policy, "--tool", "web_fetch", url)
        assert said in done.out + done.err, url
    url = program.serve(replies(LIST, DONE))
    assert program.run("run", "go", "--base-url", url, "--policy", policy).code == 0
    (log,) = program.logs()
    again = program.run("policy", "replay", "--policy", policy, str(log))
    assert again.code == 0
    assert "1 call" in again.out + again.err

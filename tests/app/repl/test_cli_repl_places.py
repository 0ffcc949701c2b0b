"""Protected places at the prompt: a granted program changes a hook, the person is asked, and what they granted sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import Start, prompts

from harness.models.scripted import Reply, call, replies
from harness.sandbox import enforces, probe
from harness.terminal.places_dialog import TITLE

if TYPE_CHECKING:
    from program import Program

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine"),
]


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def python(code: str) -> Reply:
    return Reply(calls=(call("bash", command=f'python3 -c "{code}"'),))


def test_a_changed_place_is_asked_about_and_answered_later(program: Program, start: Start) -> None:
    envrc = program.workspace / ".envrc"
    prompt = start(
        replies(
            python("print(1)"), python("open('.envrc', 'w').write('x')"), Reply(text="First."), Reply(text="Second.")
        )
    )
    prompt.type("go")
    prompt.press("bash", "s")
    prompt.wait_for("other keys go back")
    prompt.send("1")
    prompt.wait_for(TITLE)
    prompt.wait_for("+ x")
    prompt.wait_keys()
    prompt.send("n")
    prompt.wait_for("nobody answered: all stays as it is, and grant-1 sleeps")
    prompt.wait_for("First.")
    assert envrc.exists()
    prompt.say("/grants", "grant-1 sleeps: a command changed 1 protected place")
    prompt.type("/grants answer grant-1")
    prompt.wait_count(TITLE, 2)
    prompt.wait_keys()
    prompt.send("y")
    prompt.wait_for("put back: .envrc; grant-1 is awake again")
    assert not envrc.exists()
    prompt.say("/grants answer 1", "grant-1 does not sleep")
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0
    shown = program.run("audit", "show").out
    assert "created  .envrc  nothing -> " in shown
    assert "~ put back: .envrc; grant-1 is awake again" in shown


def test_window_closed_during_a_granted_program_suspends_the_grant(program: Program, start: Start) -> None:
    begun = program.workspace / "begun"
    slow = "import time; open('.envrc', 'w').write('x'); open('begun', 'w'); time.sleep(1000)"
    prompt = start(replies(python("print(1)"), python(slow), Reply(text="Never.")))
    prompt.type("go")
    prompt.press("bash", "p")
    prompt.wait_for("other keys go back")
    prompt.send("1")
    prompt.wait_for("for how long?")
    prompt.wait_until(lambda: "other keys go back" in prompt.cursor_row(), "no keys")
    prompt.send("3")
    prompt.wait_until(begun.exists, "the command did not begin")
    prompt.hang_up()
    prompt.exit_code()
    kinds = [record["kind"] for record in program.records()]
    assert kinds[-4:] == ["places_changed", "places_answered", "outcome", "session_ended"]
    later = start(replies(Reply(text="Hello.")), waits_for="sleeps: a command changed 1 protected place")
    assert later.leave() == 0

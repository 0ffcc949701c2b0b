"""`!vim`, `!tty COMMAND`: the person's terminal, lent to a command of theirs and given back however that ends."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest
from places import shell_word
from repl_scene import Prompt, Start, prompts
from screen_scene import CTRL_C, CTRL_D

from harness.models.scripted import Reply, replies

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

CTRL_Z = "\x1a"


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield partial(starting, columns=200)


def script(program: Program, text: str) -> None:
    (program.workspace / "it.sh").write_text(text)


def outcomes(program: Program) -> list[dict[str, object]]:
    return [record for record in program.records() if record["kind"] == "outcome"]


def sit_at(prompt: Prompt, line: str, shown: str) -> list[object]:
    """Type a command, wait for what it shows, and return how the terminal was set at the prompt before."""
    prompt.wait_prompt()
    before = prompt.mode()
    prompt.type(line)
    prompt.wait_for(shown)
    return before


def test_keys_reach_a_command_and_its_display_is_not_saved(program: Program, start: Start) -> None:
    script(program, "printf 'name? '; read -r name; echo hello $name; test -t 0 -a -t 1 -a -t 2 && tty | tr a-z A-Z\n")
    prompt = start(replies(Reply(text="I see.")))
    before = sit_at(prompt, "!tty sh it.sh", "name?")
    prompt.send("kiwi\r")
    prompt.wait_for("hello kiwi")
    prompt.wait_for("/DEV/")  # in namespaces, it is the console
    prompt.wait_for("at the terminal")
    prompt.wait_prompt()
    assert prompt.mode() == before
    prompt.ask("what was it?", "I see.")
    assert prompt.leave() == 0
    (outcome,) = outcomes(program)
    assert (outcome["terminal"], outcome["truncated"], outcome["exit_code"]) == (True, True, 0)
    log = program.logs()[0].read_text()
    assert ("sh it.sh" in log, "tty sh" in log, "kiwi" in log) == (True, False, False)
    asked = str(program.players[0].requests[0]["messages"])
    assert ("$ sh it.sh" in asked, "was not kept" in asked, "kiwi" in asked) == (True, True, False)
    assert program.run("audit", "verify").code == 0


def test_a_program_that_is_known_to_ask_for_keys_gets_it_unasked(program: Program, start: Start) -> None:
    """And one that only reads may set the modes of a terminal of its own, behind its walls."""
    if shutil.which("less") is None:
        pytest.skip("there is no less")
    (program.workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(500)))
    prompt = start(replies(), lines=20)
    sit_at(prompt, "!less long.txt", "line 18")
    prompt.send("G")
    prompt.wait_for("line 499")
    prompt.send("q")
    prompt.wait_for("at the terminal")
    assert prompt.leave() == 0


@pytest.mark.parametrize("colour", ["", "1"])
def test_killed_command_leaves_the_terminal_as_it_was(program: Program, start: Start, colour: str) -> None:
    program.environment["NO_COLOR"] = colour
    script(
        program, "printf '\\033[?1049h\\033[?25l\\033[?1000;1006h\\033[3;5r\\033[31mmid'\nstty raw -echo\nkill -9 $$\n"
    )
    prompt = start(replies(Reply(text="Good.")))
    before = sit_at(prompt, "!tty sh it.sh", "exit 137")
    prompt.wait_prompt()
    assert prompt.mode() == before
    for mode in (b"1049l", b"25h", b"1000l", b"1006l"):
        assert b"\x1b[?" + mode in prompt.raw.rpartition(b"mid")[2]
    prompt.ask("how is it?", "Good.")
    assert prompt.leave() == 0


def test_ctrl_c_reaches_the_command_and_ctrl_z_has_no_effect(program: Program, start: Start) -> None:
    script(program, "trap 'echo caught' INT\necho ready\nread -r x\nread -r x\necho got $x\n")
    prompt = start(replies())
    sit_at(prompt, "!tty bash it.sh", "ready")
    prompt.send(CTRL_Z)
    prompt.send(CTRL_C)
    prompt.wait_for("caught")
    prompt.send("\rpear\r")
    prompt.wait_for("got pear")
    prompt.wait_for("at the terminal")
    sit_at(prompt, "!tty echo be''gun; sleep 1000", "begun")
    prompt.send(CTRL_C)
    prompt.wait_for("exit 130")
    assert prompt.leave() == 0


def test_command_is_notified_of_a_resize_and_ends_with_the_window(program: Program, start: Start) -> None:
    script(program, "trap 'stty size' WINCH\necho ready\nwhile :; do sleep 0.05; done\n")
    prompt = start(replies())
    sit_at(prompt, "!tty bash it.sh", "ready")
    prompt.resize(77, 33)
    prompt.wait_for("33 77")
    prompt.hang_up()
    assert prompt.exit_code() == 143
    last = program.records()[-1]
    assert (last["kind"], last["stop"]) == ("session_ended", "terminal_closed")
    assert outcomes(program)[0]["status"] == "interrupted"


def test_it_stays_gated_and_confined(program: Program, start: Start) -> None:
    outside = program.home / "outside"
    script(program, f"echo x > {shell_word(outside)} || echo refused\n")
    prompt = start(replies())
    prompt.say("!tty git push -f", "Denied by rule force-push")
    prompt.say("!tty sh it.sh", "refused")
    prompt.wait_for("at the terminal")
    assert not outside.exists()
    prompt.type("!tty rm -rf it.sh")
    prompt.wait_for("bash asks")
    prompt.wait_keys()
    prompt.send(CTRL_D)
    prompt.wait_for("not run")
    assert (program.workspace / "it.sh").exists()
    assert prompt.leave() == 0


def test_the_model_cannot_have_it(program: Program, start: Start) -> None:
    from harness.models.scripted import call

    wants = call("bash", command="test -t 0 || echo no terminal; less it.sh")
    script(program, "echo it\n")
    prompt = start(replies(Reply(calls=(wants,)), Reply(text="None.")))
    prompt.ask("go", "None.")
    assert prompt.leave() == 0
    (outcome,) = outcomes(program)
    assert "terminal" not in outcome
    assert "no terminal" in str(outcome["content"])

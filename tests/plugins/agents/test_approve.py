"""`harness approve` at a terminal, and hooks that ask: each a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from process_scene import wait_until
from program import Done, Program
from repl_scene import write_config
from rows import all_rows
from screen_scene import CTRL_C, END, ENTER, ESC, PlayedTerminal, paste

from harness.log.verify import verify

pytestmark = pytest.mark.terminal

IDLE = "waiting for questions"


class Hook:
    """A hook that runs; it is ended with the test."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def end(self) -> Done:
        """Return what it answered the agent."""
        out, err = self.process.communicate(timeout=120)
        return Done(self.process.returncode, out.decode(), err.decode())

    def is_over(self) -> bool:
        """Say whether it has answered."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """End it in the midst of all."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=120)


def hook(program: Program, command: str = "touch made", *, session: str = "0198-session", agent: str = "codex") -> Hook:
    """Let an agent ask whether a command may run."""
    event = {
        "session_id": session,
        "cwd": str(program.workspace),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "c1",
    }
    process = program.start("hook", agent, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps(event).encode())
    process.stdin.close()
    process.stdin = None
    return Hook(process)


@contextmanager
def listening(program: Program, *flags: str, columns: int = 100, lines: int = 24) -> Iterator[PlayedTerminal]:
    """Start `harness approve`, and wait until it listens."""
    command = program.command("approve", *flags)
    environment = {**program.environment, "TERM": "xterm-256color"}
    with PlayedTerminal(
        command, columns=columns, lines=lines, cwd=program.workspace, environment=environment
    ) as terminal:
        terminal.wait_for(IDLE)
        yield terminal


def answers(program: Program) -> list[tuple[object, ...]]:
    """Return what the logs say of the questions, each log whole."""
    found: list[tuple[object, ...]] = []
    for path in program.logs():
        assert verify(str(path)).broken_line is None
        records = [json.loads(line) for line in path.read_text().splitlines()]
        found += [(one["answer"], one["by"], one["words"]) for one in records if one["kind"] == "approval_answered"]
    return found


def is_empty(program: Program) -> bool:
    """Say whether no question is left in the state folder."""
    return [one.name for one in Path(program.state, "harness", "approve").iterdir()] == ["listening"]


def press(terminal: PlayedTerminal, keys: Sequence[str]) -> None:
    """Press keys one by one, each when keys count."""
    for key in keys:
        terminal.wait_keys()
        terminal.send(key)


def press_until(terminal: PlayedTerminal, key: str, there: Callable[[], bool]) -> None:
    """Press a key again and again: what comes too soon behind another is dropped without a word."""
    for _ in range(100):
        terminal.send(key)
        if wait_until(there, 0.5):
            return
    raise AssertionError(f"{key!r} does nothing\n{terminal.text()}")


@all_rows(
    "keys,left,code,log",
    [
        (["y"], "+ yes  Codex CLI: bash: touch made  by you", 0, ("yes", "person", "")),
        (["n"], "x no  Codex CLI: bash: touch made  by you", 2, ("no", "person", "")),
        ([ESC], "x no  Codex CLI: bash: touch made  by you", 2, ("no", "person", "")),
        ([CTRL_C], "x no  Codex CLI: bash: touch made  by you", 2, ("stop", "person", "")),
    ],
    ids=lambda row: repr(row[0]),
    fresh=True,
)
def test_a_key_answers_the_agent(
    program: Program, keys: list[str], left: str, code: int, log: tuple[object, ...]
) -> None:
    with listening(program) as terminal:
        asking = hook(program)
        terminal.wait_for("bash asks for Codex CLI in workspace, session 0198-ses")
        terminal.wait_for("asked by: Codex CLI, session 0198-session, in")
        press(terminal, keys)
        done = asking.end()
        terminal.wait_for(left)
        assert (done.code, done.out) == (code, "")
        assert (done.err == "") == (code == 0)
        assert answers(program) == [log]
        assert is_empty(program)
        terminal.wait_for(IDLE)
        terminal.send(CTRL_C)
        assert terminal.exit_code() == 130


def test_words_with_a_no_reach_the_model(program: Program) -> None:
    with listening(program) as terminal:
        asking = hook(program)
        press(terminal, ["r"])
        terminal.send_words("goes back): ", "use the other branch")
        terminal.send(ENTER)
        done = asking.end()
    assert 'Denied by the person: "use the other branch"' in done.err
    assert "[[rule]]" not in done.err
    assert answers(program) == [("no", "person", "use the other branch")]


@all_rows(
    "keys",
    [[ENTER], [paste("y")], ["yy"], ["e"], ["h"], ["\t"], ["1"], [paste("destroy")]],
    ids=lambda row: repr(row[0]),
    fresh=True,
)
def test_other_keys_are_not_an_answer(program: Program, keys: list[str]) -> None:
    with listening(program) as terminal:
        asking = hook(program)
        press(terminal, keys)
        press_until(terminal, "n", asking.is_over)
        assert asking.end().code == 2
    assert answers(program) == [("no", "person", "")]


def test_approve_begins_in_the_home_folder(program: Program) -> None:
    """The configuration is there, and `harness approve` makes no calls that could change it."""
    config = program.home / ".config" / "harness" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "m"\n')
    program.environment["XDG_CONFIG_HOME"] = str(program.home / ".config")
    program.workspace = program.home
    with listening(program):
        pass


def test_refusal_names_the_line_of_the_configuration_that_cannot_be_used(program: Program) -> None:
    config = program.home / ".config" / "harness" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[agents]\nunjugded = "warn"\n')
    program.environment["XDG_CONFIG_HOME"] = str(program.home / ".config")
    done = hook(program, agent="kimi").end()
    why = f"nobody can be asked, since this cannot be used: {config}:2: [agents] unjugded: unknown key; did you mean"
    assert (done.code, why in done.err) == (2, True), done


def test_no_walls_are_promised_for_a_command_that_the_agent_runs_itself(program: Program) -> None:
    with listening(program) as terminal:
        asking = hook(program, agent="kimi")
        terminal.wait_for("bash asks for Kimi Code in workspace, session 0198-ses, NO WALLS")
        terminal.wait_for("confinement: none: Kimi Code runs it itself, outside our walls")
        press(terminal, ["?"])
        terminal.wait_for(
            "walls: NONE, a command can do all that you can (Kimi Code runs it itself, outside our walls)"
        )
        assert "workspace walls" not in terminal.text()
        press_until(terminal, "n", asking.is_over)
        asking.end()


def test_key_typed_before_the_question_is_not_an_answer(program: Program) -> None:
    with listening(program) as terminal:
        terminal.send("y")
        asking = hook(program)
        press_until(terminal, "n", asking.is_over)
        assert asking.end().code == 2
    assert answers(program) == [("no", "person", "")]


def test_destructive_call_needs_a_typed_word(program: Program) -> None:
    with listening(program) as terminal:
        asking = hook(program, "rm -rf src")
        press(terminal, ["y"])
        terminal.send_words("type destroy: ", "destroy")
        terminal.send(ENTER)
        assert asking.end().code == 0
    assert answers(program) == [("yes", "person", "")]


def test_a_long_question_takes_a_yes_once_all_of_it_was_seen(program: Program) -> None:
    with listening(program, columns=60, lines=12) as terminal:
        asking = hook(program, "\n".join(f"touch made-{number}" for number in range(12)))
        terminal.wait_for("[space]")
        terminal.wait_keys()
        terminal.send("y")
        terminal.wait_for("see the rest first (space)")
        press_until(terminal, END, lambda: "[y] yes" in terminal.cursor_row())
        press_until(terminal, "y", asking.is_over)
        assert asking.end().code == 0


def test_a_grant_for_the_project_spares_the_next_question(program: Program) -> None:
    with listening(program) as terminal:
        asking = hook(program)
        press(terminal, ["p"])
        terminal.wait_until(lambda: "press 1" in terminal.cursor_row(), "no list")
        assert "inside walls" not in terminal.text()
        terminal.send("1")
        terminal.wait_until(lambda: "press 1 to 3" in terminal.cursor_row(), "no times")
        terminal.send("2")
        assert asking.end().code == 0
        terminal.wait_for("granted for this workspace")
    for session in ("0198-session", "another"):  # nobody listens any more
        assert hook(program, session=session).end().code == 0
        assert hook(program, "touch other", session=session).end().code == 2


def test_first_answer_of_two_listeners_counts(program: Program) -> None:
    with listening(program) as one, listening(program) as other:
        asking = hook(program)
        other.wait_keys()
        press(one, ["y"])
        assert asking.end().code == 0
        other.wait_gone("[n] no")
        other.wait_for(IDLE)


def test_question_of_an_ended_hook_is_withdrawn(program: Program) -> None:
    with listening(program) as terminal:
        asking = hook(program)
        terminal.wait_keys()
        asking.kill()
        terminal.wait_for("x withdrawn, nobody asks any more  Codex CLI: bash: touch made")
        assert wait_until(lambda: is_empty(program))
        again = hook(program, session="another")
        press(terminal, ["y"])
        assert again.end().code == 0


@all_rows("how", ["killed", "hung up", "terminated"], fresh=True)
def test_call_is_refused_if_the_approver_is_gone(program: Program, how: str) -> None:
    with listening(program) as terminal:
        asking = hook(program)
        terminal.wait_keys()
        if how == "hung up":
            terminal.hang_up()
        else:
            terminal.signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
        done = asking.end()
    assert done.code == 2
    assert "`harness approve` ended without an answer: the person can start `harness approve`" in done.err
    assert [one[:2] for one in answers(program)] == [("nobody", "nobody")]


def test_questions_of_two_sessions_are_asked_one_after_the_other(program: Program) -> None:
    with listening(program) as terminal:
        first = hook(program, "touch one")
        terminal.wait_for("touch one")
        second = hook(program, "touch two", session="another")
        press(terminal, ["n"])
        assert first.end().code == 2
        terminal.wait_for("touch two")
        press(terminal, ["y"])
        assert second.end().code == 0


@all_rows("flags", [(), ("--ascii",), ("--screen-reader",)], fresh=True)
def test_every_terminal_can_answer(program: Program, flags: tuple[str, ...]) -> None:
    with listening(program, *flags, columns=40, lines=16) as terminal:
        asking = hook(program)
        terminal.wait_for("touch made")
        press_until(terminal, "y", asking.is_over)
        assert asking.end().code == 0


def test_hostile_text_of_an_agent_is_shown_and_not_done(program: Program) -> None:
    with listening(program) as terminal:
        asking = hook(program, "touch '\x1b[2Jmade'", session="\x1b]0;title\x07\u202e")
        terminal.wait_keys()
        assert b"\x1b[2J" not in terminal.raw
        assert b"\x1b]0;" not in terminal.raw
        assert "\\x1b[2Jmade" in terminal.text()
        press(terminal, ["n"])
        assert asking.end().code == 2


def test_waiting_calls_are_listed(program: Program) -> None:
    assert program.run("approve", "--list") == Done(0, "", "")
    with listening(program) as terminal:
        asking = hook(program)
        terminal.wait_keys()
        assert "waits: until " in terminal.text()
        done = program.run("approve", "--list")
        (listed,) = map(json.loads, done.out.splitlines())
        assert (listed["agent"], listed["session"], listed["tool"]) == ("Codex CLI", "0198-session", "bash")
        assert (listed["workspace"], listed["summary"]) == (str(program.workspace), "touch made")
        assert listed["asked"] < listed["until"]
        press(terminal, ["n"])
        asking.end()
    assert program.run("approve", "--list") == Done(0, "", "")


def test_approve_needs_a_terminal(program: Program) -> None:
    done = program.run("approve")
    assert (done.code, done.out) == (2, "")
    assert "asks at a terminal, and here is none" in done.err
    refused = hook(program).end()
    assert refused.code == 2
    assert "nobody is there to ask: the person can start `harness approve` in another terminal" in refused.err


APPROVER = """
import json, sys
question = json.loads(sys.stdin.readline())
open(WHERE, "w").write(json.dumps([question[name] for name in ("agent", "session", "workspace")]))
answer = {"id": question["id"], "sha256": question["sha256"], "answer": "yes", "by": "ann"}
"""


def approver(program: Program, script: str, folder: Path) -> None:
    """Configure an approver outside that is a program in `folder`."""
    path = folder / "approver.py"
    path.write_text(APPROVER.replace("WHERE", repr(str(program.home / "asked.json"))) + script)
    write_config(program, f"[approver]\ncommand = {json.dumps([sys.executable, '-I', '-S', str(path)])}\n")


@all_rows(
    "script, code, log, told",
    [
        ("print(json.dumps(answer))", 0, ("yes", "approver", ""), ""),
        ("print(json.dumps({**answer, 'answer': 'no', 'words': 'x'}))", 2, ("no", "approver", "x"), 'approver (ann): "x"'),
        ("", 2, ("nobody", "nobody", "from the approver's program: the answer is empty"), "the answer is empty"),
    ],
    fresh=True,
)  # fmt: skip
def test_configured_approver_answers_the_agent(
    program: Program, script: str, code: int, log: tuple[object, ...], told: str
) -> None:
    approver(program, script, program.home)
    done = hook(program).end()
    assert (done.code, told in done.err) == (code, True), done
    assert answers(program) == [log]
    asked = json.loads((program.home / "asked.json").read_text())
    assert asked == ["Codex CLI", "0198-session", str(program.workspace)]


def test_harness_approve_goes_before_the_configured_approver(program: Program) -> None:
    approver(program, "print(json.dumps(answer))", program.home)
    with listening(program) as terminal:
        asking = hook(program)
        press(terminal, ["n"])
        assert asking.end().code == 2
    assert answers(program) == [("no", "person", "")]
    assert not (program.home / "asked.json").exists()


def test_approver_that_a_call_could_write_is_not_asked(program: Program) -> None:
    approver(program, "print(json.dumps(answer))", program.workspace)
    done = hook(program).end()
    assert (done.code, "move it elsewhere" in done.err) == (2, True), done


def test_no_call_of_an_agent_may_write_the_approver(program: Program) -> None:
    approver(program, "print(json.dumps(answer))", program.home)
    done = hook(program, f"echo > {program.home}/approver.py").end()
    assert (done.code, answers(program)) == (2, [])

"""The question in a process of its own, as the controlling terminal has it: signals, resizes, hang-ups and editors."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from places import SUPPORT
from question_scene import together
from rows import all_rows
from screen_scene import PlayedTerminal

pytestmark = pytest.mark.terminal

SCRIPT = """
import json, os, sys
sys.path.insert(0, os.environ["TESTS"])
from question_scene import asked
from harness.terminal.console import look_of
from harness.session.signals import Signals
from harness.terminal.approver import TerminalApprover
from harness.terminal.screen import Screen
from harness.interrupt import Interrupt
about = asked(os.environ["ROOT"], os.environ["TOOL"], json.loads(os.environ["ARGUMENTS"]))
interrupt = Interrupt()
Signals(interrupt).install()
screen = Screen(sys.stdout, look_of(sys.stdout, os.environ))
ask = TerminalApprover(screen, interrupt, lambda *_: "kernel", environment=os.environ, offer=about.offer, dead_seconds=0.15)
approval = ask(about.action, about.verdict)
with open(os.environ["ANSWER"], "w") as file:
    json.dump([approval.answer.value, approval.words, approval.arguments], file)
print("answered", approval.answer.value)
"""


class Terminal(PlayedTerminal):
    """The question, played."""

    answer_file: str = ""

    def press(self, key: str) -> None:
        """Press a key alone, when keys count."""
        self.wait_keys()
        self.send(key)

    def answer(self) -> tuple[str, str, str]:
        self.exit_code()
        answer, words, arguments = json.loads(Path(self.answer_file).read_text())
        return answer, words, arguments


@contextmanager
def put(
    tmp_path: Path, tool: str = "bash", *, columns: int = 100, lines: int = 24, editor: str = "", **arguments: Any
) -> Iterator[Terminal]:
    root = tmp_path / "w"
    root.mkdir(exist_ok=True)
    environment: Mapping[str, str] = {
        **os.environ,
        "TERM": "xterm-256color",
        "TESTS": SUPPORT,
        "ROOT": str(root.resolve()),
        "TOOL": tool,
        "ARGUMENTS": json.dumps(arguments or {"command": "touch made"}),
        "ANSWER": str(tmp_path / "answer"),
        "VISUAL": "",
        "EDITOR": editor,
    }
    with Terminal([sys.executable, "-c", SCRIPT], columns=columns, lines=lines, environment=environment) as terminal:
        terminal.answer_file = environment["ANSWER"]
        terminal.wait_keys()
        yield terminal


def test_a_y_answers(tmp_path: Path) -> None:
    """The whole way, once."""
    with put(tmp_path) as terminal:
        terminal.press("y")
        assert terminal.answer() == ("yes", "", "")


def test_a_resize_draws_the_question_again(tmp_path: Path) -> None:
    """SIGWINCH wakes the question without a key; the y that comes at once is dropped."""
    with put(tmp_path) as terminal:
        terminal.resize(100, 30)
        terminal.send("y")
        terminal.wait_count("$ touch made", 2)
        terminal.press("n")
        assert terminal.answer()[0] == "no"


@all_rows("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop(tmp_path: Path, number: int) -> None:
    """What comes from elsewhere is a no and a stop."""
    with put(tmp_path) as terminal:
        terminal.signal(number)
        assert terminal.answer()[:2] == ("stop", "")


def test_hang_up_allows_no_call(tmp_path: Path) -> None:
    """The window is closed right behind a y."""
    with put(tmp_path) as terminal:
        terminal.stop()
        terminal.send("y")
        terminal.hang_up()
        terminal.signal(signal.SIGCONT)
        terminal.exit_code()
        answer = json.loads(Path(terminal.answer_file).read_text())[0]
    assert answer in ("no", "stop")


def test_going_on_after_a_stop_takes_no_key_of_before(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT: keys that came meanwhile are dropped, and the question is drawn again."""
    with put(tmp_path) as terminal:
        terminal.stop()
        terminal.send("y")
        terminal.signal(signal.SIGCONT)
        terminal.wait_count("$ touch made", 2)
        terminal.press("n")
        assert terminal.answer()[0] == "no"


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return shlex.quote(str(path))


@all_rows(
    ("tool", "arguments", "edit", "wanted"),
    [
        pytest.param(
            "bash", {"command": "touch made", "timeout_s": 50}, 'printf "touch other\\n" > "$1"',
            {"command": "touch other", "timeout_s": 50}, id="command",
        ),
        pytest.param(
            "write_file", {"path": "a.py", "content": "x = 1\n"}, 'printf "y = 2\\n" > "$1"',
            {"path": "a.py", "content": "y = 2\n"}, id="content",
        ),
        pytest.param(
            "write_file", {"path": "a.py", "content": "x"}, 'case $1 in *.py) printf é > "$1.new"; mv "$1.new" "$1";; esac',
            {"path": "a.py", "content": "é"}, id="renamed into its place",
        ),
    ],
)  # fmt: skip
def test_edited_arguments_are_returned_completely(
    tmp_path: Path, tool: str, arguments: dict[str, Any], edit: str, wanted: dict[str, Any]
) -> None:
    """As arguments of the call that is wanted; everything else in them stays."""
    with put(tmp_path, tool, editor=script(tmp_path, edit), **arguments) as terminal:
        terminal.press("e")
        answer, _, edited = terminal.answer()
    assert (answer, json.loads(edited)) == ("edit", wanted)


def test_editor_file_of_several_edits_has_the_suffix_of_the_edited_file(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.py").write_text("x = 1\ny = 2\n")
    edits = [{"old_string": "x = 1", "new_string": "x = 3"}, {"old_string": "y = 2", "new_string": "y = 4"}]
    edit = 'case $1 in *.py) sed -i s/3/5/ "$1";; esac'
    with put(tmp_path, "edit_file", editor=script(tmp_path, edit), path="a.py", edits=edits) as terminal:
        terminal.press("e")
        answer, _, edited = terminal.answer()
    assert (answer, json.loads(edited)["edits"][0]["new_string"]) == ("edit", "x = 5")


def test_editor_file_is_private_and_removed(tmp_path: Path) -> None:
    """Mode 0600 in a folder of mode 0700, and nothing is left."""
    told = tmp_path / "told"
    text = f'stat -c "%a %n" "$1" "$(dirname "$1")" > {shlex.quote(str(told))}; printf "touch b" > "$1"'
    with put(tmp_path, editor=script(tmp_path, text)) as terminal:
        terminal.press("e")
        assert terminal.answer()[0] == "edit"
    (mode, name), (folder_mode, folder) = (line.split(" ", 1) for line in told.read_text().splitlines())
    assert (mode, folder_mode) == ("600", "700")
    assert not os.path.exists(name)
    assert not os.path.exists(folder)


WRONG = {
    "unchanged": ("true", "nothing was changed"),
    "emptied": (': > "$1"', "the text is empty"),
    "blanks": ('printf " \\n\\n" > "$1"', "the text is empty"),
    "removed": ('rm "$1"', "not edited"),
    "a pipe in its place": ('rm "$1"; mkfifo "$1"', "not edited"),
    "huge": ('head -c 9000000 /dev/zero | tr "\\0" a > "$1"', "not edited"),
    "NUL": ('printf "a\\0b" > "$1"', "not UTF-8"),
    "not UTF-8": ('printf "a\\377b" > "$1"', "not UTF-8"),
}
WRONG_AT_THE_TERMINAL = {
    "fails": ('printf "touch b" > "$1"; exit 3', "exit code 3"),
    "crashes": ('printf "touch b" > "$1"; kill -9 $$', "signal 9"),
    "leaves the terminal raw": ('stty raw echo; printf "touch b" > "$1"; exit 1', "exit code 1"),
}
EDITS = """
import json, os, sys
sys.path.insert(0, os.environ["TESTS"])
from question_scene import asked
from harness.terminal.editor import NotEdited, edited_call
action = asked(sys.argv[1], "bash", {"command": "touch made"}).action
def why_not(editor):
    try:
        edited_call(action, {**os.environ, "VISUAL": "", "EDITOR": editor})
    except NotEdited as error:
        return f"not edited: {error}"
    return ""
print(json.dumps([why_not(editor) for editor in sys.argv[2:]]))
"""


def test_wrong_edit_is_reported_and_has_no_effect(tmp_path: Path) -> None:
    """Each is told, in a process without a terminal."""
    editors = []
    for number, (edit, _) in enumerate(WRONG.values()):
        (tmp_path / str(number)).mkdir()
        editors.append(script(tmp_path / str(number), edit))
    environment = {**os.environ, "TESTS": SUPPORT}
    done = subprocess.run(
        [sys.executable, "-c", EDITS, str(tmp_path), *editors],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = dict(zip(WRONG, json.loads(done.stdout), strict=True))
    assert {name: told[name] for name, (_, why) in WRONG.items() if why not in told[name]} == {}


def test_failed_editor_leaves_the_question(tmp_path: Path) -> None:
    """It says why; the y that was typed in the editor does not count, a n afterwards does."""

    def play(edit: str, why: str) -> None:
        folder = tmp_path / str(list(WRONG_AT_THE_TERMINAL.values()).index((edit, why)))
        folder.mkdir()
        waits = f"echo edits; until test -e {shlex.quote(str(folder))}/go; do sleep 0.05; done; {edit}"
        with put(folder, editor=script(folder, waits)) as terminal:
            terminal.press("e")
            terminal.wait_for("edits")
            terminal.send("y")
            (folder / "go").touch()
            terminal.wait_for("not edited")
            terminal.press("n")
            assert terminal.answer()[0] == "no"
            words = re.sub(rb"\x1b\[[0-9;]*m", b"", terminal.raw).decode().split()
            assert why in " ".join(words)  # a long path breaks the line anywhere

    together(play, WRONG_AT_THE_TERMINAL)


def test_an_editor_that_is_not_there(tmp_path: Path) -> None:
    """It is said, and the question stays."""
    with put(tmp_path, editor="no-such-editor") as terminal:
        terminal.press("e")
        terminal.wait_for("not edited")
        terminal.press("y")
        assert terminal.answer()[0] == "yes"


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    """What runs afterwards finds lines and echo."""
    with put(tmp_path) as terminal:
        terminal.press("n")
        terminal.wait_for("answered no")
        assert terminal.answer()[0] == "no"
    assert terminal.raw.rstrip().endswith(b"answered no")
    assert stat.S_ISREG(os.stat(terminal.answer_file).st_mode)

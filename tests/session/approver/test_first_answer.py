"""A question at a real terminal and outside at once: whoever answers first, wholly, and nothing of the other side with it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from places import SUPPORT
from question_scene import together
from screen_scene import ENTER, ESC, TAB, PlayedTerminal

pytestmark = pytest.mark.terminal

SCRIPT = """
import json, os, sys
sys.path.insert(0, os.environ["TESTS"])
from question_scene import asked
from harness.session.approver.approver_declaration import ApproverDeclaration
from harness.terminal.asked_outside import AskedBesides
from harness.session.approver.configured_approver import ConfiguredApprover, found_approver
from harness.terminal.console import look_of
from harness.session.signals import Signals
from harness.terminal.approver import TerminalApprover
from harness.terminal.screen import Screen
from harness.interrupt import Interrupt
root = os.environ["ROOT"]
about = asked(root, "bash", {"command": os.environ["COMMAND"]})
interrupt = Interrupt()
Signals(interrupt).install()
screen = Screen(sys.stdout, look_of(sys.stdout, os.environ))
declaration = ApproverDeclaration(command=(sys.executable, "-I", "-S", os.environ["APPROVER"]))
outside = ConfiguredApprover(
    found_approver(declaration, os.environ, (root,)),
    session=lambda: "S", redact=str, confinement=lambda *_: "kernel", offer=about.offer,
)
besides = AskedBesides(outside, screen)
terminal = TerminalApprover(
    screen, interrupt, lambda *_: "kernel", environment=os.environ, offer=about.offer, dead_seconds=0.15,
    keyboard_of=besides.keyboard,
)
one = besides.ask(terminal, about.action, about.verdict)
told = [one.answer.value, one.by, one.who, one.words, one.arguments, one.scope and one.scope.value, len(one.patterns)]
with open(os.environ["ANSWER"], "w") as file:
    json.dump(told, file)
"""
APPROVER = """
import json, os, sys, time
question = json.loads(sys.stdin.readline())
while not os.path.exists({go!r}):
    time.sleep(0.02)
print(json.dumps({{"id": question["id"], "sha256": question["sha256"], "by": "ann", **{fields!r}}}))
"""
YES: dict[str, Any] = {"answer": "yes"}
ANN: list[object] = ["yes", "approver", "ann", "", "", None, 0]
PLAIN, DESTROYS = "touch made", "rm -rf src"


class Asked(PlayedTerminal):
    """The question, played."""

    go: Path
    edited: Path

    def press(self, key: str) -> None:
        """Press a key alone, when keys count."""
        self.wait_keys()
        self.send(key)


@contextmanager
def put(folder: Path, command: str, fields: dict[str, Any]) -> Iterator[Asked]:
    root, approver, editor = folder / "w", folder / "approver.py", folder / "editor"
    root.mkdir()
    go, edited = folder / "go", folder / "edited"
    approver.write_text(APPROVER.format(go=str(go), fields=fields))
    edit = shlex.quote(str(edited))
    editor.write_text(f"#!/bin/sh\necho edits; until test -e {edit}; do sleep 0.05; done; . {edit}\n")
    editor.chmod(0o755)
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "TESTS": SUPPORT,
        "ROOT": str(root.resolve()),
        "COMMAND": command,
        "APPROVER": str(approver),
        "ANSWER": str(folder / "answer"),
        "VISUAL": "",
        "EDITOR": shlex.quote(str(editor)),
    }
    with Asked([sys.executable, "-c", SCRIPT], columns=100, lines=30, environment=environment) as terminal:
        terminal.go, terminal.edited = go, edited
        terminal.wait_keys()
        yield terminal


def words(terminal: Asked) -> None:
    terminal.press("r")
    terminal.send_words("no, but (Enter sends it, Esc goes back): ", "not today")


def words_that_are_kept(terminal: Asked) -> None:
    terminal.press(TAB)
    terminal.send_words("words for the model (Enter keeps them, Esc goes back): ", "be quick")
    terminal.send(ENTER)
    terminal.wait_for('your answer goes with these words: "be quick"')


def list_of_grants(terminal: Asked) -> None:
    terminal.press("s")
    terminal.wait_for("press 1")


def help_of_keys(terminal: Asked) -> None:
    terminal.press("?")
    terminal.wait_for("refuses and ends the turn")


def half_the_word(terminal: Asked) -> None:
    terminal.press("y")
    terminal.send_words("type destroy: ", "destro")


def half_a_paste(terminal: Asked) -> None:
    terminal.press("\x1b[200~y")


def nothing(terminal: Asked) -> None:
    pass


def editing(edit: str) -> Callable[[Asked], None]:
    """Answer outside while the editor has the terminal, and let the editor end behind that."""

    def play(terminal: Asked) -> None:
        terminal.press("e")
        terminal.wait_for("edits")
        terminal.go.touch()
        made = terminal.edited.with_suffix(".new")
        made.write_text(edit)
        made.rename(terminal.edited)

    return play


def no_behind(play: Callable[[Asked], None]) -> Callable[[Asked], None]:
    """Let the outside fail, and answer no at the terminal."""

    def and_no(terminal: Asked) -> None:
        play(terminal)
        terminal.go.touch()
        terminal.send(ESC)
        terminal.wait_for("nothing is allowed")
        terminal.press("n")

    return and_no


CASES: dict[str, tuple[str, dict[str, Any], Callable[[Asked], None], list[object]]] = {
    "nothing pressed": (PLAIN, YES, nothing, ANN),
    "words half typed": (PLAIN, YES, words, ANN),
    "words kept for the answer": (PLAIN, YES, words_that_are_kept, ANN),
    "a list of grants": (PLAIN, YES, list_of_grants, ANN),
    "a grant outside": (PLAIN, {"answer": "yes", "grant": 0}, nothing, ["yes", "approver", "ann", "", "", "session", 1]),
    "help": (PLAIN, YES, help_of_keys, ANN),
    "half a paste": (PLAIN, YES, half_a_paste, ANN),
    "a no outside": (PLAIN, {"answer": "no", "words": "w"}, words, ["no", "approver", "ann", "w", "", None, 0]),
    "half the word here, all of it outside": (DESTROYS, {"answer": "yes", "destroys": True}, half_the_word, ANN),
    "half the word here, none outside": (DESTROYS, YES, no_behind(half_the_word), ["no", "person", "", "", "", None, 0]),
    "an editor that crashes": (PLAIN, YES, editing("exit 3"), ANN),
}  # fmt: skip


def test_first_complete_answer_wins(tmp_path: Path) -> None:
    def play(name: str, case: tuple[str, dict[str, Any], Callable[[Asked], None], list[object]]) -> None:
        command, fields, keys, expected = case
        folder = tmp_path / str(list(CASES).index(name))
        folder.mkdir()
        with put(folder, command, fields) as terminal:
            keys(terminal)
            terminal.go.touch()
            assert terminal.exit_code() == 0, terminal.text()
        assert json.loads((folder / "answer").read_text()) == expected
        if expected[1] == "approver":
            assert f"answered by ann outside: {expected[0]}" in terminal.text()

    together(play, {name: (name, case) for name, case in CASES.items()}, at_once=4)


def test_finished_edit_precedes_a_waiting_outside_answer(tmp_path: Path) -> None:
    """The editor had the terminal: nobody looked outside meanwhile."""
    with put(tmp_path, PLAIN, YES) as terminal:
        editing('printf "touch other" > "$1"')(terminal)
        assert terminal.exit_code() == 0
    answer, by, who, *_ = json.loads((tmp_path / "answer").read_text())
    assert (answer, by, who) == ("edit", "person", "")

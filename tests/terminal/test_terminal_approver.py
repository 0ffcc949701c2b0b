"""The question at a real pseudo-terminal: every key at every stage, and what comes of it."""

from __future__ import annotations

import os
import re
import termios
from pathlib import Path
from typing import Any

import pytest
from question_scene import DEAD, Asked, Played, asked, at_once, command, from_outside, together
from rows import all_rows

from harness.actions import Action, Decision, Effects, Opening, ToolUse
from harness.grant_pattern import GrantScope
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.policy.policy import Policy
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import replace
from harness.terminal.console import Look
from harness.terminal.dialog import EARLY, READING_SECONDS
from harness.terminal.keys import SURE_SECONDS
from harness.terminal.question import Usual, usual_here

pytestmark = pytest.mark.terminal

PLAIN = Look()


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("one\n")
    return str(tmp_path.resolve())


@pytest.fixture
def touch(root: str) -> Asked:
    return command(root, "touch made")


def long_command(root: str, lines: int = 60) -> Asked:
    """Return a command of many lines."""
    return command(root, "touch made \\\n" + "\\\n".join(f"  file-{number} " for number in range(lines)))


KEYS = {
    "y": (["y"], Answer.YES, ""),
    "Y": (["Y"], Answer.YES, ""),
    "n": (["n"], Answer.NO, ""),
    "N": (["N"], Answer.NO, ""),
    "Esc": (["\x1b"], Answer.NO, ""),
    "h": (["h"], Answer.HALT, ""),
    "Ctrl-C": (["\x03"], Answer.STOP, ""),
    "Ctrl-D": (["\x04"], Answer.NO, ""),
    "Ctrl-C of another protocol": (["\x1b[99;5u"], Answer.STOP, ""),
    "Esc of another protocol": (["\x1b[27u"], Answer.NO, ""),
    "words among reports": (["r", "no\x1b[I", "\x1b[O", "w\x1b[?997;1n", "\r"], Answer.NO, "now"),
    "a line at once is a paste, and its Enter a blank": (["r", "too late today\r", "\r"], Answer.NO, "too late today"),
    "words": (["r", "no", "w", "\r"], Answer.NO, "now"),
    "pasted words": (["r", "\x1b[200~not\nnow\x1b[201~", "\r"], Answer.NO, "not now"),
    "backspace": (["r", "a", "\x7f", "b", "\r"], Answer.NO, "b"),
    "word erased": (["r", "a b", "\x17", "c", "\r"], Answer.NO, "a c"),
    "line erased": (["r", "ab", "\x15", "c", "\r"], Answer.NO, "c"),
    "not ASCII": (["r", "ä", "\r"], Answer.NO, "ä"),
    "Esc leaves the words": (["r", "\x1b", "y"], Answer.YES, ""),
    "no words go back": (["r", "\r", "n"], Answer.NO, ""),
    "Ctrl-C at the words": (["r", "x", "\x03"], Answer.STOP, ""),
    "Ctrl-D at the words": (["r", "\x04"], Answer.NO, ""),
    "Enter, then y": (["\r", "y"], Answer.YES, ""),
    "table, then y": (["?", "y"], Answer.YES, ""),
    "again, then y": (["v", "y"], Answer.YES, ""),
    "no grant, but a yes": (["s", "n", "y"], Answer.YES, ""),
    "no grant, and a no": (["s", "\x1b", "n"], Answer.NO, ""),
    "Ctrl-C at the grant": (["s", "\x03"], Answer.STOP, ""),
    "Ctrl-D at the grant": (["p", "\x04"], Answer.NO, ""),
    "words with a yes": (["\t", "sm", "all", "\r", "y"], Answer.YES, "small"),
    "words with a no": (["\t", "a", "\r", "n"], Answer.NO, "a"),
    "words with a halt": (["\t", "a", "\r", "h"], Answer.HALT, "a"),
    "words instead of them": (["\t", "a", "\r", "r", "b", "\r"], Answer.NO, "b"),
    "words that are left": (["\t", "a", "\x1b", "y"], Answer.YES, ""),
    "words that are taken back": (["\t", "a", "\r", "\t", "\r", "y"], Answer.YES, ""),
    "words are no answer": (["\t", "y", "\r", "n"], Answer.NO, "y"),
    "Ctrl-C at the words with it": (["\t", "y", "\x03"], Answer.STOP, ""),
    "Tab among words": (["\t", "a", "\t", "b", "\r", "y"], Answer.YES, "ab"),
}


def test_keys(touch: Asked) -> None:
    """Each key alone, after a rest."""

    def play(keys: list[str], answer: Answer, words: str) -> None:
        with Played(touch, emulate=False) as played:
            for key in keys:
                played.press(key)
            approval = played.answer()
        assert (approval.answer, approval.by, approval.words, approval.scope) == (answer, "person", words, None)

    together(play, KEYS)


HASTY = {
    "typing ahead": ("you should", 0.15, 0.4, True),
    "and slowly": ("yes", 0.2, DEAD, True),
    "a slow paste": ("yes please", 0.06, DEAD, True),
    "hello": ("he", 0.2, DEAD, True),
    "session": ("s1", 0.2, DEAD, True),
    "y, and away": ("y\x1b", 0.2, DEAD, True),
    "y, and a stop": ("y\x03", 0.2, DEAD, False),
    "n is quick": ("n", 0.0, DEAD, False),
}
"""Keys, the seconds from one to the next, the dead time, and whether the question is open afterwards."""


def test_approving_key_counts_only_after_a_pause(touch: Asked) -> None:
    """`y` may begin a sentence of one who believes that they type ahead; what refuses is not waited for."""

    def play(keys: str, gap: float, dead: float, is_open: bool) -> None:
        with Played(touch, emulate=False, dead_seconds=dead) as played:
            played.rest()
            for key in keys:
                played.send(key)
                played.go_on(gap)
            assert played.is_open == is_open
            assert played.approval is None or played.approval.answer is not Answer.YES

    together(play, HASTY)


LINES = {
    "y": ("y\r", 0.1, Answer.YES),
    "y, quickly": ("y\r", 0.02, Answer.YES),
    "Y, slowly": ("Y\r", 0.24, Answer.YES),
    "y and a line feed": ("y\n", 0.1, Answer.YES),
    "yes": ("yes\r", 0.1, Answer.YES),
    "YES, slowly": ("YES\r", 0.2, Answer.YES),
    "n": ("n\r", 0.1, Answer.NO),
    "no": ("no\r", 0.1, Answer.NO),
    "n, rolled": ("n\r", 0.03, Answer.NO),
    "no, rolled": ("no\r", 0.03, Answer.NO),
    "yes, very slowly": ("yes\r", 0.4, Answer.YES),
    "ye": ("ye\r", 0.1, None),
    "yy": ("yy\r", 0.1, None),
    "yesy": ("yesy\r", 0.1, None),
    "yesterday": ("yesterday\r", 0.1, None),
    "yes please": ("yes please\r", 0.1, None),
    "why": ("why\r", 0.1, None),
    "my": ("my\r", 0.1, None),
    "Enter twice": ("y\r\r", 0.1, None),
    "a line behind it": ("y\rmore\r", 0.1, None),
    "pasted": ("yes\r", 0.0, None),
    "pasted piece by piece": ("yes\r", 0.005, None),
    "two keys at once": ("ye", 0.0, None),
}
"""Keys, the seconds between two of them, and the answer. All keys without a rest between them are sent at once."""


def test_yes_and_no_can_be_typed_as_a_line(touch: Asked) -> None:
    """A hand types `y`, `yes`, `n` or `no`, and Enter; another line that ends with Enter answers nothing."""

    def play(keys: str, gap: float, answer: Answer | None) -> None:
        with Played(touch, emulate=False) as played:
            played.rest()
            for key in keys if gap else [keys]:
                played.send(key)
                played.go_on(gap)
            assert played.is_open == (answer is None)
            assert played.approval is None or played.approval.answer is answer

    together(play, LINES)


EARLY_KEYS = {
    "y": (["y"], 1.0, None),
    "y in time": (["y"], READING_SECONDS, Answer.YES),
    "y and Enter": (["y", "\r"], 1.0, None),
    "y and Enter, in time": (["y", "\r"], READING_SECONDS, Answer.YES),
    "n": (["n"], 0.5, Answer.NO),
    "Ctrl-C": (["\x03"], 0.0, Answer.STOP),
}


def test_acting_key_waits_until_a_typing_user_can_have_read(touch: Asked) -> None:
    def play(keys: list[str], seconds: float, answer: Answer | None) -> None:
        with Played(touch, emulate=False, typed=2.0) as played:
            played.time.settle()
            played.go_on(seconds)
            for key in keys:
                played.send(key)
                played.go_on(0.1)
            assert played.is_open == (answer is None)
            assert (EARLY in played.shown()) == (answer is None)
            assert played.approval is None or played.approval.answer is answer
            if answer is None:
                played.go_on(READING_SECONDS)
                played.press("y")
                assert played.answer().answer is Answer.YES

    together(play, EARLY_KEYS)


@all_rows(("ahead", "during"), [("so why", ""), ("", "w")], ids=["unread", "while it appears"])
def test_keys_before_the_question_make_its_yes_wait(touch: Asked, ahead: str, during: str) -> None:
    played = Played(touch)
    played.send(ahead)
    with played:
        played.send(during)
        played.press("y")
        assert played.is_open
        assert EARLY in played.text()


def test_number_of_a_grant_waits_until_a_typing_user_can_have_read(touch: Asked) -> None:
    with Played(touch, typed=2.0) as played:
        played.time.settle()
        played.go_on(READING_SECONDS)
        played.press("s")
        played.press("1")
        played.wait_for(EARLY)
        played.go_on(READING_SECONDS)
        played.press("1")
        assert played.answer().scope is GrantScope.SESSION


def test_rest_of_an_answer_does_not_answer_the_next_question(touch: Asked) -> None:
    with Played(touch, answered=0.0) as played:
        for key in "es":
            played.go_on(DEAD + 0.15)
            played.send(key)
        assert played.is_open
        assert "[1]" not in played.text()


def test_a_key_that_only_refuses_is_quick(touch: Asked) -> None:
    """No key waits longer than it must."""
    with Played(touch, emulate=False) as played:
        played.rest()
        began = played.time.monotonic()
        played.send("n")
        played.answer()
        assert played.time.monotonic() - began < SURE_SECONDS


NOTHING = {
    "Enter": ("\r",),
    "line feed": ("\n",),
    "space where nothing is paged": (" ",),
    "arrow": ("\x1b[A",),
    "function key": ("\x1bOP",),
    "long sequence": ("\x1b[24;5~",),
    "a sequence that ends in y": ("\x1b[?1;2y",),
    "Alt-y": ("\x1by",),
    "y of another protocol": ("\x1b[121u",),
    "y and a report": ("y\x1b[I",),
    "a report and y": ("\x1b[Iy",),
    "a report that y ends": ("\x1b[?2026;2$y",),
    "a report that begins": ("\x1b]y",),
    "another letter": ("x",),
    "digit": ("1",),
    "backspace": ("\x7f",),
    "y with an accent": ("ý",),
    "Cyrillic u, which looks like y": ("\u0443",),
    "fullwidth y": ("\uff59",),
    "twice": ("yy",),
    "y and Enter, pasted raw": ("y\r",),
    "y and a line end, pasted raw": ("y\n",),
    "pasted y": ("\x1b[200~y\x1b[201~",),
    "pasted y and a line end": ("\x1b[200~y\n\x1b[201~",),
    "y right behind a paste": ("\x1b[200~x\x1b[201~y",),
    "paste without its end": ("\x1b[200~y",),
    "end of a paste that did not begin": ("\x1b[201~y",),
    "lines": ("yes\ny\ny\n",),
    "NUL": ("\x00",),
    "C1": ("\x80",),
    "Ctrl-Y": ("\x19",),
}


def test_other_keys_give_no_answer(touch: Asked) -> None:
    """The question stays, and a lone n answers it afterwards."""

    def play(keys: str) -> None:
        with Played(touch, emulate=False) as played:
            played.press(keys)
            assert played.is_open
            played.go_on(1.0 if keys == "\x1b[200~y" else 0)
            played.press("n")
            assert played.answer().answer is Answer.NO

    together(play, NOTHING)


def test_broken_utf_8_gives_no_answer(touch: Asked) -> None:
    """A byte that is no character is no key."""
    with Played(touch) as played:
        played.rest()
        played.send(b"\xff")
        played.press("\x1b")
        assert played.answer().answer is Answer.NO


def test_paste_in_two_pieces_gives_no_answer(touch: Asked) -> None:
    """Between its marks nothing is a key, however long the pieces take."""
    with Played(touch) as played:
        played.press("\x1b[200~ls")
        played.go_on(2 * DEAD)
        played.send("y")
        played.go_on(2 * DEAD)
        played.send("n\x1b[201~")
        assert played.is_open
        played.go_on(READING_SECONDS)
        played.press("y")
        assert played.answer().answer is Answer.YES


@all_rows("gap", [0.0, 0.02, DEAD * 0.6])
def test_keys_typed_while_the_question_appears_are_dropped(touch: Asked, gap: float) -> None:
    """Keys that never rest for the dead time are dropped, whatever they are."""
    played = Played(touch)
    played.send("yyy\ry")
    with played:
        for _ in range(8):
            played.send("y")
            played.go_on(gap)
        assert played.is_open
        played.press("n")
        assert played.answer().answer is Answer.NO


def test_a_keyboard_that_never_rests_is_a_no(touch: Asked) -> None:
    """A stuck key refuses in the end."""
    with Played(touch, noisy_seconds=0.6) as played:
        for _ in range(40):
            played.send("y")
            played.go_on(0.04)
        approval = played.answer()
    assert (approval.answer, approval.words) == (Answer.NO, "keys kept coming while the question was put")


def test_ctrl_c_takes_effect_immediately(touch: Asked) -> None:
    """To stop needs no dead time, and comes through among other keys."""
    with Played(touch, dead_seconds=5.0) as played:
        played.wait_for("touch made")
        began = played.time.monotonic()
        played.send("yy\x03")
        assert played.answer().answer is Answer.STOP
        assert played.time.monotonic() - began < SURE_SECONDS


def test_a_second_question_takes_no_key_of_the_first(root: str) -> None:
    """The y that is still held down when the next question comes answers nothing."""
    with Played(command(root, "touch a")) as first:
        first.press("y")
        assert first.answer().answer is Answer.YES
    with Played(command(root, "touch b")) as second:
        for _ in range(5):
            second.send("y")
            second.go_on(0.03)
        assert second.is_open


def test_the_end_of_the_terminal_is_a_no(touch: Asked) -> None:
    """A hang-up refuses, also with a y on the way."""
    with Played(touch) as played:  # the question notices at once, whatever key waited to be sure
        played.rest()
        played.hang_up("y")
        assert (played.answer().answer, played.answer().by) == (Answer.NOBODY, "nobody")


def test_missing_terminal_denies_the_call(touch: Asked, tmp_path: Path) -> None:
    """A file is no keyboard."""
    import os

    from harness.interrupt import Interrupt
    from harness.terminal.approver import TerminalApprover
    from harness.terminal.screen import Screen

    (tmp_path / "keys").write_text("y\ny\n")
    with (tmp_path / "shown").open("w") as shown, (tmp_path / "keys").open() as keys:
        screen = Screen(shown, PLAIN)
        ask = TerminalApprover(
            screen,
            Interrupt(),
            lambda *_: "",
            environment=os.environ,
            dead_seconds=DEAD,
            descriptors=(keys.fileno(), shown.fileno()),
        )
        approval = ask(touch.action, touch.verdict)
    assert approval.answer is Answer.NOBODY


def test_the_terminal_is_left_as_it_was(touch: Asked) -> None:
    """Modes and the switch of bracketed paste go back."""
    with Played(touch) as played:
        played.press("s")
        played.press("x")
        assert not termios.tcgetattr(played.slave)[3] & termios.ICANON
        played.press("n")
        played.answer()
        assert termios.tcgetattr(played.slave) == played.modes
    assert played.written().count(b"\x1b[?2004h") == played.written().count(b"\x1b[?2004l") > 0


def test_an_interrupt_from_elsewhere_stops(touch: Asked) -> None:
    """A request that came before is obeyed at the question."""
    played = Played(touch)
    played.interrupt.request_later()
    with played:
        assert played.answer().answer is Answer.STOP


def test_ctrl_z_suspends_and_resumes(touch: Asked) -> None:
    """The question is there again afterwards, with dead keys first."""
    with Played(touch) as played:
        played.press("\x1a")
        played.go_on(0.08)
        played.send("y")
        assert played.is_open
        assert played.suspended == 1
        played.go_on(READING_SECONDS)
        played.press("y")
        assert played.answer().answer is Answer.YES


# Grants


@at_once(
    ("s1", GrantScope.SESSION, None),
    ("p11", GrantScope.SESSION, None),
    ("p12", GrantScope.WORKSPACE, 7),
    ("P13", GrantScope.WORKSPACE, None),
)
def test_grant_is_exactly_the_shown_one(touch: Asked, keys: str, scope: GrantScope, days: int | None) -> None:
    """What it covers and for how long stands on the screen before the key that grants it."""
    with Played(touch) as played:
        played.press(keys[0])
        played.wait_for("[1] touch made")
        played.press(keys[1])
        if keys[2:]:
            played.wait_for("[3] until you revoke it")
            played.press(keys[2])
        approval = played.answer()
    assert (approval.answer, approval.scope, approval.days) == (Answer.YES, scope, days)
    assert [pattern.text for pattern in approval.patterns] == [
        f"touch made, workspace only, offline; in {touch.action.cwd}"
    ]


def test_walls_of_a_grant_are_explained_before_its_number(touch: Asked) -> None:
    with Played(touch) as played:
        played.press("s")
        played.wait_for("press 1 to 3, ? explains; other keys go back")
        assert "workspace walls: " not in played.text()
        played.press("?")
        played.wait_for("workspace walls: the command reads")
        played.press("1")
        approval = played.answer()
    assert (approval.answer, approval.scope, len(approval.patterns)) == (Answer.YES, GrantScope.SESSION, 1)


def test_grant_that_ends_with_the_session_says_so_in_the_offer_for_the_project(root: str) -> None:
    with Played(asked(root, "write_file", {"path": "a.py", "content": "x"})) as played:
        played.press("p")
        played.wait_for("all edits in the workspace  this session only")


def test_enter_sent_with_the_words_is_reported(touch: Asked) -> None:
    """It is a blank of a paste, as far as anybody can tell; the next one alone sends."""
    for look in (None, Look()):
        with Played(touch, look=look) as played:
            played.press("r")
            played.press("too late today\r")
            played.wait_for("Enter came at once with the words")
            played.press("\r")
            assert played.answer().words == "too late today"


def test_with_ascii_alone_a_wrapped_row_is_marked_in_ascii(root: str) -> None:
    with Played(command(root, "touch " + "a" * 100), look=Look(ascii=True, repaints=True)) as played:
        played.rest()
        assert any(row.startswith("  \\ aaa") for row in played.rows())
        assert played.written().isascii()


def test_comment_can_accompany_a_grant(touch: Asked) -> None:
    with Played(touch) as played:
        for key in ("\t", "a", "\r", "s", "1"):
            played.press(key)
        assert (played.answer().words, played.answer().scope) == ("a", GrantScope.SESSION)


@at_once(
    ("1", "/src/b.py", "[1] edits of src/b.py"),
    ("2", "/src/**", "[2] edits in src/"),
    ("3", "/**", "[3] all edits in the workspace"),
)
def test_files_have_wider_choices(root: str, key: str, path: str, shown: str) -> None:
    """The folder, and all edits in the workspace: each stands on the screen with its number."""
    about = asked(root, "write_file", {"path": "src/b.py", "content": "x\n"})
    for first, more in (("s", ""), ("p", "2" if key != "3" else "")):
        with Played(about) as played:
            played.press(first)
            played.wait_for(shown)
            for each in key + more:
                played.press(each)
            approval = played.answer()
        assert [pattern.path for pattern in approval.patterns] == [path]
        assert approval.scope is (GrantScope.WORKSPACE if more else GrantScope.SESSION)


@at_once(("\r",), ("y",), ("0",), ("4",), ("12",), ("\x1b[200~1\x1b[201~",), ("1\r",))
def test_single_number_chooses_the_scope(touch: Asked, keys: str) -> None:
    with Played(touch) as played:
        for key in ("p", "1", keys):
            played.press(key)
        played.wait_for("nothing is granted")
        assert played.is_open


def test_unoffered_number_is_ignored(touch: Asked) -> None:
    """It goes back to the question."""
    with Played(touch) as played:
        played.press("s")
        played.press("9")
        played.wait_for("nothing is granted")
        assert played.is_open
        played.press("n")
        assert played.answer().answer is Answer.NO


@at_once(
    ("11",),
    ("\x1b[200~1\x1b[201~",),
    ("\r",),
    ("y",),
    ("1\r",),
)
def test_only_a_single_key_grants(touch: Asked, pasted: str) -> None:
    """What is pasted at the second step grants nothing, either."""
    with Played(touch) as played:
        played.press("s")
        played.press(pasted)
        played.wait_for("nothing is granted")
        assert played.is_open


def test_second_key_of_a_hasty_pair_grants_no_permission(touch: Asked) -> None:
    """s and 1 in a row: the 1 comes before the pattern could be read."""
    with Played(touch) as played:
        played.press("s")
        played.go_on(0.06)
        played.send("1")
        assert played.is_open
        assert "nothing is granted" not in played.text()


def test_unkeepable_grant_is_not_offered_for_the_project(root: str) -> None:
    with Played(from_outside(root, '{"path": "a.py"}')) as played:
        played.rest()
        assert ("[s]" in played.key_line(), "[p]" in played.key_line()) == (True, False)
        played.press("s")
        played.wait_for("[2] mcp__srv__do with any arguments")
        played.press("n")
        assert played.is_open


def test_reason_for_a_missing_grant_is_shown(root: str) -> None:
    """A rule asks: s and p are not offered, and say why not."""
    with Played(command(root, "git push origin main")) as played:
        played.rest()
        assert "[s]" not in played.key_line()
        played.press("s")
        played.wait_for("nothing can be granted: rule push")
        played.press("p")
        assert played.is_open


def test_advice_on_a_rule_is_shown_if_granting_is_impossible(root: str) -> None:
    """`?` says why s and p are missing, and what rule would do it; it is text of ours and of the call, behind our gutter."""
    about = command(root, "git push origin main")
    with Played(about, advise=lambda *_: "a rule in p.toml does it:\n[[rule]]\nid = 'x'\x1b[2J") as played:
        played.rest()
        assert "[s]" not in played.key_line()
        played.press("?")
        played.wait_for("s and p are not offered: rule push")
        rows = played.rows()
    where = rows.index("  a rule in p.toml does it:")
    assert rows[where + 1 : where + 3] == ["    [[rule]]", "    id = 'x'\\x1b[2J"]


# Opening more for one call


def _usual(about: Asked) -> Usual:
    return usual_here(about.action.cwd, "kernel", about.policy)


@at_once(
    ("1", (Opening.NETWORK,), "a yes opens: network: any host"),
    ("2", (Opening.SOCKETS,), "a yes opens: Unix sockets"),
    ("3", (Opening.PLACES,), "a yes opens: changes any protected place"),
    ("4", tuple(Opening), "a yes opens: network: any host; changes any protected place; Unix sockets"),
)
def test_opened_walls_are_shown_before_the_yes(touch: Asked, key: str, opens: tuple[Opening, ...], row: str) -> None:
    with Played(touch, usual=_usual(touch), columns=120) as played:
        played.wait_for("bash asks, workspace only, offline")
        played.press("o")
        played.wait_for("press 1 to 4; other keys go back")
        played.press(key)
        played.wait_for(row)
        assert played.is_open
        played.press("y")
        approval = played.answer()
    assert (approval.answer, approval.opens, approval.scope) == (Answer.YES, opens, None)


@at_once(("\x1b[200~1\x1b[201~",), ("11",), ("\r",), ("y",), ("9",))
def test_only_a_single_number_opens(touch: Asked, pasted: str) -> None:
    with Played(touch, usual=_usual(touch)) as played:
        played.press("o")
        played.press(pasted)
        played.wait_for("nothing is opened")
        played.press("y")
        assert played.answer().opens == ()


@at_once(("o1y",), ("\x1b[200~o1\x1b[201~",), ("o\r1",))
def test_pasted_keys_open_nothing(touch: Asked, pasted: str) -> None:
    with Played(touch, usual=_usual(touch)) as played:
        played.press(pasted)
        assert played.is_open
        assert "open for this one call" not in played.text()


def test_hasty_number_after_the_key_opens_nothing(touch: Asked) -> None:
    with Played(touch, usual=_usual(touch)) as played:
        played.press("o")
        played.go_on(0.06)
        played.send("1")
        assert played.is_open
        assert "a yes opens" not in played.text()


def test_opened_call_cannot_be_granted_and_more_can_be_opened(touch: Asked) -> None:
    with Played(touch, usual=_usual(touch), columns=40) as played:
        played.press("o")
        played.press("1")
        played.wait_for("! a yes opens: network: any host")
        played.press("s")
        played.wait_for("what you opened is for this call")
        played.press("o")
        played.wait_for("[1] Unix sockets")
        played.press("1")
        played.press("y")
        assert played.answer().opens == (Opening.NETWORK, Opening.SOCKETS)


def test_destroying_call_still_needs_its_word_after_more_was_opened(root: str) -> None:
    about = command(root, "rm -rf src")
    with Played(about, usual=_usual(about)) as played:
        played.press("o")
        played.press("2")
        played.press("y")
        played.wait_for("type destroy")
        assert played.is_open


def test_nothing_is_opened_for_edits_other_agents_and_unconfined_calls(root: str) -> None:
    unconfined = command(root, "touch a", unconfined=True, justification="x")
    edit = asked(root, "write_file", {"path": "a.py", "content": "x"})
    for about in (unconfined, edit):
        usual = usual_here(root, "kernel", about.policy)
        with Played(about, usual=usual) as played:
            played.rest()
            assert "[o]" not in played.key_line()
            played.press("o")
            assert "open for this one call" not in played.text()


def own_question(root: str, tool: str) -> Asked:
    """Return a question of the program's own."""
    use = ToolUse(tool=tool)
    action = Action(
        call=ToolCall(id="", name=tool, arguments=""), tool=tool, arguments={}, facets=(use,), summary="put back",
        preview="src/a.py is put back", request=None,
    )  # fmt: skip
    why = FacetVerdict(facet=use, decision=Decision.CONFIRM, source=Source.BUILT_IN, reason="asked for", by=f"/{tool}")
    effects = Effects(read=None, write=None, network=False, unasked=False)
    verdict = Verdict(decision=Decision.CONFIRM, facets=(why,), effects=effects)
    return Asked(action, verdict, command(root, "ls").policy)


@at_once(("undo", "speh" + "r"), ("trust", "speh" + "r"), ("plan", "speh"))
def test_a_question_of_the_program_itself_offers_no_grant_edit_or_halt(root: str, tool: str, dead: str) -> None:
    """Undo, trust and plan ask with y, n and ?; words are taken only where somebody hears them."""
    reply = "" if "r" in dead else "[r] no, but ...  "
    with Played(own_question(root, tool)) as played:
        played.rest()
        assert played.key_line() == f"[y] yes  [n] no  {reply}[v] view  [?] help"
        for key in dead:
            played.press(key)
            assert played.is_open
        played.press("y")
        assert played.answer().answer is Answer.YES
        played.rest()
        assert [row for row in played.rows() if row][-1].startswith("+ yes  put back  by you, after ")


def test_comment_on_a_plan_is_returned(root: str) -> None:
    with Played(own_question(root, "plan")) as played:
        for key in ("r", "a", "b", "\r"):
            played.press(key)
        approval = played.answer()
    assert (approval.answer, approval.words) == (Answer.NO, "ab")


PAGING = {
    "PageDown": ("\x1b[6~", 3),
    "Down": ("\x1b[B", 3),
    "Down, of a keypad": ("\x1bOB", 3),
    "End": ("\x1b[F", 1),
    "End, of a keypad": ("\x1bOF", 1),
    "End, of other terminals": ("\x1b[4~", 1),
}


def test_page_keys_page(root: str) -> None:
    """Like space, and End shows all that is left; a yes counts afterwards, and not before."""
    about = long_command(root)

    def play(keys: str, times: int) -> None:
        with Played(about) as played:
            played.press("y")
            played.wait_for("see the rest first (space)")
            for _ in range(times):
                assert played.is_open
                played.press(keys)
            played.rest()
            assert "file-59" in played.text()
            played.go_on(2 * DEAD)
            played.press("y")
            assert played.answer().answer is Answer.YES

    together(play, PAGING)


def test_page_keys_are_ignored_on_a_single_page(touch: Asked) -> None:
    """And nothing in the words of a no, where they come as keys as well."""
    with Played(touch) as played:
        for keys in ("\x1b[6~", "\x1b[F", "r", "\x1b[6~", "a", "\x1b[F", "\r"):
            played.press(keys)
        assert played.answer().words == "a"


def test_meaningless_key_is_not_called_several(touch: Asked) -> None:
    with Played(touch) as played:
        played.press("\x1b[A")
        played.wait_for("that key is no answer")
        assert "several keys" not in played.text()


# What destroys


WORDS = {
    "the word, typed": (["de", "str", "oy", "\r"], Answer.YES),
    "the word, key by key": ([*"destroy", "\r"], Answer.YES),
    "the word, pasted": (["destroy", "n"], Answer.NO),
    "the word, pasted in brackets": (["\x1b[200~destroy\x1b[201~", "n"], Answer.NO),
    "the word with its line end, pasted": (["destroy\r", "n"], Answer.NO),
    "too short": ([*"destro", "\r", "n"], Answer.NO),
    "too long": ([*"destroyy", "\r", "n"], Answer.NO),
    "in capitals": ([*"DES", *"TROY", "\r", "n"], Answer.NO),
    "another y": (["y", "\r", "n"], Answer.NO),
    "Enter": (["\r", "n"], Answer.NO),
    "Esc goes back": (["\x1b", "n"], Answer.NO),
    "Ctrl-D": (["\x04"], Answer.NO),
    "Ctrl-C": ([*"dest", "\x03"], Answer.STOP),
}


def test_destructive_call_asks_for_a_word(root: str) -> None:
    """y alone allows nothing."""
    about = command(root, "rm -rf src")

    def play(typed: list[str], answer: Answer) -> None:
        with Played(about) as played:
            played.wait_for("this destroys: rm -r")
            played.press("y")
            played.wait_for("type destroy:")
            played.rest()
            shown = "type destroy: "
            for keys in typed:
                if keys == "n":
                    played.rest()
                played.send(keys)
                shown += keys
                if answer is Answer.YES and keys != "\r":
                    played.wait_for(shown)  # what is read at once is a paste
                else:
                    played.go_on(0.05)
            assert played.answer().answer is answer

    together(play, WORDS)


def test_destructive_command_typed_by_the_user_asks_for_a_word(root: str) -> None:
    about = command(root, "rm -rf src")
    typed = replace(about.action, call=replace(about.action.call, id=""))
    with Played(about._replace(action=typed)) as played:
        played.press("y")
        played.wait_for("type destroy:")
        played.rest()
        played.send("\r")
        played.rest()
        played.send("n")
        assert played.answer().answer is Answer.NO


def test_word_typed_too_soon_is_requested_again(root: str) -> None:
    """What is typed right behind the y is dropped, and that is said where it is to be typed."""
    with Played(command(root, "rm -rf src"), columns=40) as played:
        played.press("y")
        played.go_on(SURE_SECONDS + 0.03)
        played.send("de")
        played.wait_for("too soon: type destroy again:")
        for key in "destroy":
            played.send(key)
            played.go_on(0.05)
        assert played.key_line() == "too soon: type destroy again: destroy"
        played.send("\r")
        assert played.answer().answer is Answer.YES


def test_destructive_call_cannot_be_granted(root: str) -> None:
    """s and p are not offered, though the gate could."""
    with Played(command(root, "rm -rf src"), columns=100) as played:
        played.rest()
        assert "[y] yes" in played.key_line()
        assert "[s]" not in played.key_line()
        played.press("s")
        played.press("y")
        assert played.is_open
        played.press("\x1b")
        played.press("n")
        assert played.answer().answer is Answer.NO


# Pages


def test_yes_is_off_until_all_was_seen(root: str) -> None:
    """At 40 by 10 a long command takes pages; y, s, p and e do nothing before the last one."""
    with Played(long_command(root, 24), columns=40, lines=10) as played:
        pages = 0
        played.rest()
        while "more" in played.key_line():
            assert "y" not in played.key_line().partition(":")[2]
            played.press("yspe"[pages % 4])
            played.rest()
            assert played.is_open
            played.press(" ")
            played.rest()
            pages += 1
        assert pages >= 3
        assert [number for number in range(24) if not re.search(rf"file-{number}\b", played.text())] == []
        played.go_on(2 * DEAD)
        played.press("y")
        assert played.answer().answer is Answer.YES


@at_once(
    ("n", Answer.NO),
    ("h", Answer.HALT),
    ("\x1b", Answer.NO),
    ("\x03", Answer.STOP),
)
def test_a_no_needs_no_reading(root: str, key: str, answer: Answer) -> None:
    """Refusing works on the first page."""
    with Played(long_command(root), columns=40, lines=10) as played:
        played.press("?")
        played.press(key)
        assert played.answer().answer is answer


def test_a_key_that_pages_fast_does_not_carry_a_yes(root: str) -> None:
    """Spaces that are held down page; the y right behind the last page is dropped."""
    with Played(long_command(root, 20), columns=60, lines=10) as played:
        played.rest()
        for _ in range(30):
            played.send(" ")
            played.go_on(0.07)
            if "more" not in played.key_line():
                break
        played.send("y")
        assert played.is_open
        played.press("y")
        assert played.answer().answer is Answer.YES


def test_a_new_size_has_to_be_seen_again(root: str) -> None:
    """After a resize y does nothing until what is asked was drawn at the new width."""
    with Played(command(root, "touch " + "a" * 150), columns=120, lines=40) as played:
        played.rest()
        played.resize(40, 8)
        played.press("y")
        assert played.is_open
        played.wait_for("more")
        played.press("y")
        assert played.is_open
        for _ in range(8):
            played.press(" ")
        played.go_on(2 * DEAD)
        played.press("y")
        assert played.answer().answer is Answer.YES


@at_once(
    (20, 24),
    (80, 4),
    (1, 1),
)
def test_tiny_terminal_allows_no_call(touch: Asked, columns: int, lines: int) -> None:
    """It says so; a no works, and so does a larger terminal."""
    with Played(touch, columns=columns, lines=lines, emulate=columns > 1) as played:
        for key in ("y", " ", "y"):
            played.press(key)
        assert played.is_open
        assert b"too small" in played.written() or columns < 20
        played.resize(80, 24)
        played.press("\r")
        played.press("y")
        assert played.answer().answer is Answer.YES


def test_incompletely_shown_call_cannot_be_allowed(touch: Asked) -> None:
    """y, s and p are off; a plain no tells the model what to do instead."""
    from harness.record import replace

    about = touch._replace(action=replace(touch.action, shown_whole=False))
    with Played(about) as played:
        played.wait_for("cannot be approved here")
        for key in "ysp":
            played.press(key)
            assert played.is_open
        assert "[y]" not in played.key_line()
        played.press("n")
        assert "smaller steps" in played.answer().words


# How it is told


BEFORE = [f"before {number}" for number in range(6)]


def after(about: Asked, *keys: str, columns: int = 80, lines: int = 24, **more: Any) -> list[str]:
    """Return the rows that are there when a question was answered with those keys, on a screen with some above it."""
    played = Played(about, columns=columns, lines=lines, **more)
    os.write(played.slave, "\n".join((*BEFORE, "")).encode())
    with played:
        for key in keys:
            played.press(key)
            played.go_on(2 * DEAD)
        played.answer()
        return [row for row in played.rows() if row]


@at_once(
    ("y",), ("n",), ("h",), ("\x03",), ("?", "y"), ("v", "v", "n"), ("\r", "x", "y"), ("s", "x", "n"), ("r", "a", "\r"),
    ("\t", "a", "\r", "y"),
)  # fmt: skip
def test_answered_question_disappears_and_rows_above_stay(touch: Asked, *keys: str) -> None:
    """The trace of the call says in one line what was answered."""
    assert after(touch, *keys, lines=60) == BEFORE


def test_note_and_list_replace_the_rows_below_the_question(root: str) -> None:
    with Played(command(root, "rm -rf src"), lines=60) as played:
        played.rest()
        asked_alone = played.rows()
        for key, note in (
            ("s", "what destroys, or cannot"),
            ("\r", "Enter answers nothing"),
            ("\x1b[A", "that key is no"),
        ):
            for _ in range(2):
                played.press(key)
                played.rest()
                rows = [row for row in played.rows() if row not in asked_alone]
                assert [row[2 : 2 + len(note)] for row in rows] == [note], key
    with Played(command(root, "touch made")) as played:
        for _ in range(2):
            played.press("s")
            played.wait_for("press 1 to")
            played.press("x")
            played.rest()
            assert played.text().count("allow for this session") == 0
        assert played.text().count("nothing is granted") == 1


@at_once((60, "touch made"), (24, "rm -rf src"), (10, "touch made"))
def test_help_disappears_with_its_key_and_with_the_answer(root: str, lines: int, line: str) -> None:
    """From the screen, also where it is longer than that."""
    shown = "refuses and ends the turn"
    for again in (True, False):
        with Played(command(root, line), lines=lines) as played:
            played.press("?")
            played.rest()
            assert shown in played.shown()
            assert "[n] no" in played.key_line()
            if again:
                played.press("?")
                played.rest()
                played.rows()
                display = "\n".join(played.screen.display)
                assert (f"$ {line}" in display, shown in display, "undo: " in display) == (True, False, False)
            played.press("n")
            played.answer()
            played.rows()
            assert "undo: " not in "\n".join(played.screen.display)


@at_once(
    ("touch " + "a" * 300,),
    ("touch '漢字 é👩‍💻 ☰ 🇩🇪 " + "\u0627" * 30 + "'",),
    ("touch a\n" * 9,),
    ("git push \u202e\x1b[9A",),
)
def test_rows_of_all_kinds_are_counted(root: str, line: str) -> None:
    """Wide and wrapped ones: at no width is anything taken that was there before."""
    for columns in (24, 40, 80, 120):
        assert after(command(root, line), "v", "?", "n", columns=columns, lines=200) == BEFORE


def test_a_question_that_is_longer_than_the_screen_stays(root: str) -> None:
    rows = after(long_command(root, 12), "\x1b[F", "y", columns=40, lines=10)
    assert rows[: len(BEFORE)] == BEFORE
    assert [number for number in range(12) if not any(f"file-{number}" in row for row in rows)] == []


@at_once((40, 24), (120, 24), (80, 40), (30, 30))
def test_a_question_of_another_size_stays_above_the_new_one(root: str, columns: int, lines: int) -> None:
    """Nobody knows where its rows are now."""
    played = Played(command(root, "touch " + "a" * 60), columns=80, lines=24)
    os.write(played.slave, "\n".join((*BEFORE, "")).encode())
    with played:
        played.rest()
        played.resize(columns, lines)
        played.press("\r")
        played.press("n")
        played.answer()
        rows = [row for row in played.rows() if row]
    width = min(columns, 80)
    assert [row for row in rows if row.startswith("before")] == [row[:width] for row in BEFORE]


def test_foreign_output_during_a_question_stays(touch: Asked) -> None:
    with Played(touch) as played:
        played.rest()
        played.console.line("something else")
        played.press("n")
        played.answer()
        rows = [row for row in played.rows() if row]
    assert rows[-1] == "something else"
    assert any("$ touch made" in row for row in rows)


SHELL = [f"shell {number}" for number in range(9)]
AT_ONCE = "Ctrl-Z while keys do not count"


@at_once(
    ("\x1a",), ("s", "\x1a"), ("p", "1", "\x1a"), ("r", "\x1a", "\x1b"), ("r", "\x1a", "a", "\r"), ("\t", "\x1a", "\r"),
    ("?", "\x1a"), ("\r", AT_ONCE), ("s", AT_ONCE), ("s", "\x1a", "1"),
)  # fmt: skip
def test_shell_output_during_a_suspension_stays(touch: Asked, *keys: str) -> None:
    """Wherever the question was; it is put anew then, and what was there stays, too."""
    played = Played(touch, lines=60)
    played.meanwhile = "\r\n".join(("", *SHELL, ""))
    with played:
        for key in keys:
            if key == AT_ONCE:
                played.go_on(SURE_SECONDS + 0.03)
                played.send("\x1a")
            else:
                played.press(key)
        if played.is_open:
            assert played.text().count("$ touch made") == 2
            played.press("n")
        assert played.answer().answer is Answer.NO
        assert played.suspended == 1
        assert [row for row in played.rows() if row.startswith("shell")] == SHELL
        assert "$ touch made" in played.text()


def test_terminal_without_repainting_gets_sentences(touch: Asked) -> None:
    """No escape reaches a dumb terminal, and each key still works."""
    with Played(touch, look=Look(ascii=True)) as played:
        played.press("r")
        played.wait_for("no, but (")
        played.press("b")
        played.press("\x7f")
        played.press("c")
        played.press("\x1b")
        played.wait_for("y: yes, n: no")
        played.press("y")
        assert played.answer().answer is Answer.YES
    assert b"\x1b" not in played.written().replace(b"\x07", b"")
    assert played.written().isascii()


def test_user_is_alerted_when_a_long_turn_asks(touch: Asked) -> None:
    """At once after a turn of more than 10 s; a bell."""
    with Played(touch) as early:
        early.rest()
        assert b"\x07" not in early.written()
    late = Played(touch)
    late.approver._last -= 11
    with late:
        late.rest()
        assert b"\x07" in late.written()


def test_policies_are_those_of_the_scene(touch: Asked) -> None:
    """The scene judges by a real policy: an auto command would not be asked about."""
    assert isinstance(touch.policy, Policy)
    assert touch.verdict.decision is Decision.CONFIRM

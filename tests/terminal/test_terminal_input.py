"""The input line on a pseudo-terminal: every key that is its own, and the exact text that comes of it."""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from input_scene import NO_KEYS, PlayedLine
from rows import all_rows
from screen_scene import (
    ALT_ENTER,
    CTRL_A,
    CTRL_C,
    CTRL_D,
    CTRL_J,
    CTRL_L,
    CTRL_R,
    CTRL_U,
    CTRL_X,
    CTRL_Z,
    ENTER,
    ESC,
    LEFT,
    SECONDS,
    TAB,
    UP,
    paste,
)  # fmt: skip

from harness.app.commands.help import KEYS
from harness.terminal.key_panel import panel_rows
from harness.terminal.prompt_line import PASTE_HINT
from harness.terminal.row_text import cells

pytestmark = pytest.mark.terminal

CTRL_E, CTRL_Y, BACKSPACE, CTRL_UNDO = "\x05", "\x19", "\x7f", "\x1f"
LONG = "\n".join(f"line {number}" for number in range(1, 215))
MARK = "[paste 1: 214 lines]"


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedLine]:
    """One program for all tests that leave the line empty."""
    with PlayedLine(tmp_path_factory.mktemp("line")) as played:
        yield played


@all_rows(
    ("keys", "text"),
    [
        pytest.param("hello" + ENTER, "hello", id="enter sends"),
        pytest.param(ENTER, "", id="an empty line"),
        pytest.param("a" + CTRL_J + "b" + ENTER, "a\nb", id="ctrl-j"),
        pytest.param("a" + ALT_ENTER + "b" + ENTER, "a\nb", id="alt-enter"),
        pytest.param("a\\" + ENTER + "b" + ENTER, "a\nb", id="a trailing backslash goes on, and goes away"),
        pytest.param("a\\\\" + ENTER, "a\\\\", id="a pair of backslashes is text"),
        pytest.param("!ls \\" + ENTER + "-l" + ENTER, "!ls \\\n-l", id="of a command the backslash stays"),
        pytest.param("a\\b" + LEFT + ENTER, "a\\b", id="a backslash in the middle"),
        pytest.param("  a" + ENTER, "  a", id="blanks stay"),
        pytest.param("ü \u4e2d\u6587 \u0915\u094d\u0937" + ENTER, "ü \u4e2d\u6587 \u0915\u094d\u0937", id="any script"),
        pytest.param(paste("one\ntwo") + ENTER, "one\ntwo", id="a short paste"),
        pytest.param(paste("one\r\ntwo\rthree") + ENTER, "one\ntwo\nthree", id="line ends of a paste"),
        pytest.param(paste("y\n") + CTRL_U + CTRL_U + BACKSPACE + BACKSPACE + "z" + ENTER, "z", id="a paste sends nothing"),
        pytest.param(paste("a\x1b[2Jb\x07\tc\x00") + ENTER, "a\x1b[2Jb\x07\tc\x00", id="controls are sent as they are"),
        pytest.param(paste("a\u202eb\u200bc") + ENTER, "a\u202eb\u200bc", id="so is what could not be seen"),
        pytest.param(paste("a\udcffb") + ENTER, "a\ufffdb", id="bytes that are no UTF-8"),
        pytest.param(paste("a\U0010fe00b") + ENTER, "a\ufffdb", id="what could be taken for a mark"),
        pytest.param(paste(LONG) + ENTER, LONG, id="a long paste"),
        pytest.param(f"see {paste(LONG)} and {paste(LONG.upper())}." + ENTER, f"see {LONG} and {LONG.upper()}.", id="two"),
        pytest.param(f"{MARK} {paste(LONG)}" + ENTER, f"{MARK} {LONG}", id="a typed mark is text"),
        pytest.param(paste(LONG) + BACKSPACE + "x" + ENTER, "x", id="a long paste is deleted as one"),
        pytest.param(paste(LONG) + LEFT + "x" + CTRL_E + "y" + ENTER, f"x{LONG}y", id="and passed as one"),
        pytest.param(paste(LONG) + CTRL_U + CTRL_Y + CTRL_Y + ENTER, LONG * 2, id="and yanked twice"),
        pytest.param("a" + CTRL_C + "b" + ENTER, "b", id="ctrl-c clears"),
        pytest.param("a" + CTRL_C + CTRL_Y + ENTER, "a", id="what it cleared comes back"),
        pytest.param(CTRL_C, {"raised": "KeyboardInterrupt"}, id="ctrl-c on empty"),
        pytest.param("ab" + CTRL_A + CTRL_D + ENTER, "b", id="ctrl-d deletes where there is text"),
        pytest.param("a\x1b[13;2ub\x1b[27;2;13~c" + ENTER, "a\nb\nc", id="shift-enter"),
        pytest.param("a\x1b[99;5ub" + ENTER, "b", id="ctrl-c of another protocol"),
        pytest.param("hello \0world" + ENTER, "hello world", id="ctrl-space selects nothing"),
        pytest.param("a\x1b[32;5ub" + ENTER, "ab", id="nor does it in another protocol"),
        pytest.param("a\x1b[1;2D\x1b]11;rgb:0/0/0" + ENTER, "a", id="enter ends a report without an end"),
        *(pytest.param(f"a{sequence}b" + ENTER, "ab", id=name) for name, sequence in NO_KEYS.items()),
    ],
)  # fmt: skip
def test_keys_become_exactly_this_text(line: PlayedLine, keys: str, text: object) -> None:
    line.reads(keys, text)


def test_ctrl_c_ends_an_unfinished_paste(line: PlayedLine) -> None:
    """What came of it stands in the line, to be sent or cleared."""
    line.stands("see ", "> see ")
    line.send("\x1b[200~abc")
    line.wait_for(PASTE_HINT)
    line.send(f"/quit{ENTER}{CTRL_D}")
    line.send(CTRL_C)
    line.wait_until(lambda: "> see abc/quit" in line.display(), "the paste goes on")
    line.reads("!" + ENTER, f"see abc/quit\n{CTRL_D}!")


def test_ctrl_c_in_a_paste_with_an_end_is_text(line: PlayedLine) -> None:
    line.reads(paste(f"a{CTRL_C}b\r!rm x\r") + ENTER, f"a{CTRL_C}b\n!rm x\n")


UNMARKED = {
    "lines": ("hello there\r!touch pasted\rsecond\r", "hello there\n!touch pasted\nsecond\n", ". "),
    "short lines": ("a\rb\r", "a\nb\n", ". "),
    "one line": ("!touch pasted\r", "!touch pasted\n", ". "),
    "an Enter before text": ("\r!w", "\n!w", ". !w"),
    "tabs": ("if x:\r\ty\r", "if x:\n\ty\n", ". "),
    "longer than a read": (
        f"{LONG}\n!rm x\n".replace("\n", "\r") * 4,
        f"{LONG}\n!rm x\n" * 4,
        "> [paste 1: 860 lines]",
    ),
    "as long as a read, and Enter": ("x" * 1024 + "\r", "x" * 1024 + "\n", "> [paste 1: 1025 characters]"),
}


@all_rows(("pasted", "text", "shown"), list(UNMARKED.values()), ids=list(UNMARKED))
def test_paste_that_the_terminal_does_not_mark_sends_nothing(
    line: PlayedLine, pasted: str, text: str, shown: str
) -> None:
    """It stands in the line, and an Enter alone sends it."""
    before = line.told
    line.stands(pasted, shown)
    assert line.told == before
    line.reads(ENTER, text)


def test_few_keys_and_enter_at_once_are_typed(line: PlayedLine) -> None:
    """A slow connection delivers them so."""
    before = line.told
    line.send("ls\x1b]11;rgb:0/0/0" + ENTER)  # it ends a report without an end, too
    line.wait_until_told([*before, "ls"])
    line.wait_ready()


def test_ctrl_d_on_an_empty_line_is_the_end(tmp_path: Path) -> None:
    with PlayedLine(tmp_path) as line:
        line.reads(CTRL_D, {"raised": "EOFError"})
        assert line.exit_code() == 0


def test_a_hang_up_is_the_end(tmp_path: Path) -> None:
    with PlayedLine(tmp_path) as line:
        line.send("half a line")
        line.wait_for("half a line")
        line.hang_up()
        assert line.exit_code() in (0, 1, -1)
        assert "half a line" not in line.told


def test_invisible_characters_are_shown_and_a_long_paste_is_summarized(line: PlayedLine) -> None:
    line.send(paste("a\x1b]0;t\x07\u202eb\xa0c\te\u0301"))
    line.wait_for("a\\x1b]0;t\\x07\\u202eb\\xa0c    \u00e9")  # the emulator composes
    line.send(paste("\u200b\x1b[2J" + LONG))
    line.wait_for("[paste 1: 214 lines, 2 hidden")
    assert line.screen.title == ""
    line.reads(ENTER, "a\x1b]0;t\x07\u202eb\xa0c\te\u0301\u200b\x1b[2J" + LONG)


@all_rows("lines", [(11, True), (10, False)], ids=["11 lines", "10 lines"])
def test_only_a_long_paste_is_folded(line: PlayedLine, lines: tuple[int, bool]) -> None:
    number, folded = lines
    text = "\n".join(["word"] * number)
    line.send(paste(text))
    line.wait_for("[paste 1: 11 lines]" if folded else ". word")
    line.reads(ENTER, text)


def test_later_lines_have_a_mark_and_wrapped_ones_blanks(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, columns=40) as line:
        line.send("one" + CTRL_J + "x" * 50)
        rows = ["> one", ". " + "x" * 38, "  " + "x" * 12]
        line.wait_until(lambda: line.display()[:3] == rows, "it is not drawn like this")


def test_default_text_is_editable(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, default="typed ahead\nand more") as line:
        line.wait_for(". and more")
        line.reads("!" + ENTER, "typed ahead\nand more!")


def test_ctrl_l_clears_the_screen_and_keeps_the_scrollback(tmp_path: Path) -> None:
    with PlayedLine(tmp_path) as line:
        line.reads("earlier words" + ENTER, "earlier words")
        line.send("now" + CTRL_L)
        line.wait_until(lambda: line.display()[0] == "> now", "no fresh screen")
        assert "> earlier words" in line.scrollback()
        line.reads(ENTER, "now")


def test_ctrl_z_suspends_and_the_line_is_there_again(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, shell=True) as line:
        line.send("half")
        line.wait_for("> half")
        line.send(CTRL_Z)
        line.wait_for("Stopped")
        line.send("fg\r")
        line.wait_ready()
        line.wait_until(lambda: line.cursor_row() == "> half", "the line is not there again")
        line.reads(" whole" + ENTER, "half whole")


def test_a_change_of_the_width_is_seen_without_asking_for_it(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, columns=80) as line:
        line.send("x" * 60)
        line.wait_for("x" * 60)
        line.resize(40, 24)
        line.wait_for("  " + "x" * 22)
        line.reads(ENTER, "x" * 60)


# vi


def test_vi_mode_moves_and_edits(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, vi=True) as line:
        line.stands("one two", "> one two")
        line.wait_for("vi insert")
        line.stands(ESC, "> one tw", "o")
        line.wait_for("vi normal")
        line.stands("bcwtres", "> one tres")
        line.stands(ESC, "> one tre", "s")
        line.reads(ENTER, "one tres")
        line.reads("a" + CTRL_J + "b" + ENTER, "a\nb")
        line.stands("x", "> x")
        line.stands(CTRL_C, "> ")
        line.reads("y" + ENTER, "y")


# The history


def test_lines_are_kept_and_found_again_in_the_next_program(tmp_path: Path) -> None:
    with PlayedLine(tmp_path) as line:
        for text in ("alpha beta", "gamma", "a\nb"):
            line.reads(text.replace("\n", CTRL_J) + ENTER, text)
        line.reads(f"x {paste(LONG)}" + ENTER, f"x {LONG}")
        line.reads(" not this" + ENTER, " not this")
        line.reads("my s3cr3t-value-0815" + ENTER, "my s3cr3t-value-0815")
    mode = stat.S_IMODE(os.stat(tmp_path / "state" / "history").st_mode)
    assert mode == 0o600
    assert "s3cr3t" not in (tmp_path / "state" / "history").read_text()
    with PlayedLine(tmp_path, lines=24) as line:
        for row in ("> x line 1[and 213 lines]", ". b", "> a", "> gamma"):  # within an entry it goes up
            line.stands(UP, row)
        line.reads(ENTER, "gamma")
        search(line, "alph", "alpha beta")
        line.reads(ENTER, "alpha beta")
        search(line, "x line 1", "x line 1[and 213 lines]")
        line.reads(CTRL_E + "!" + ENTER, f"x {LONG}!")


def search(line: PlayedLine, text: str, found: str) -> None:
    """Look for `text` in the history, and take what is found into the line."""
    line.stands(CTRL_R, "(reverse-i-search)`", "':")
    line.stands(text, f"(reverse-i-search)`{text}", f"': {found}")
    line.send(ENTER)
    line.wait_until(lambda: line.cursor_row() == f"> {found}", "what was found is not in the line")


@all_rows("vi", [False, True])
def test_ctrl_r_searches_in_both_modes(tmp_path: Path, vi: bool) -> None:
    with PlayedLine(tmp_path, vi=vi) as line:
        line.reads("needle in hay" + ENTER, "needle in hay")
        line.reads("other" + ENTER, "other")
        search(line, "NEEDLE", "needle in hay")
        line.reads(ENTER, "needle in hay")


# The editor


def _editor(folder: Path, body: str) -> dict[str, str]:
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {"EDITOR": f"{shlex.quote(str(path))} --wait", "VISUAL": ""}


def test_the_editor_gets_the_unfolded_text_in_a_private_file(tmp_path: Path) -> None:
    editor = _editor(tmp_path, 'cp "$2" seen; stat -c %a "$2" "$(dirname "$2")" > modes; echo "edited text" > "$2"')
    with PlayedLine(tmp_path, variables=editor) as line:
        line.send(f"x {paste(LONG)}")
        line.wait_for(MARK)
        line.send(CTRL_X + "\x05")
        line.wait_for("> edited text")
        line.reads("!" + ENTER, "edited text!")
    assert (tmp_path / "seen").read_text() == f"x {LONG}"
    assert (tmp_path / "modes").read_text().split() == ["600", "700"]
    assert list(tmp_path.glob("harness-*")) == []


def test_a_long_text_from_the_editor_is_folded(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, variables=_editor(tmp_path, 'seq 1 50 > "$2"')) as line:
        line.send(CTRL_X + "\x05")
        line.wait_for("> [text 1: 50 lines]")
        line.reads(ENTER, "\n".join(map(str, range(1, 51))))


@all_rows(
    ("editor", "said"),
    [
        pytest.param("exit 3", "ended with exit code 3", id="fails"),
        pytest.param("kill -9 $$", "was ended by signal 9", id="killed"),
        pytest.param('rm "$2"', "the edited text cannot be read", id="takes the file away"),
        pytest.param('rm "$2"; mkfifo "$2"', "the edited text cannot be read", id="leaves a pipe"),
        pytest.param("stty raw -echo; exit 1", "ended with exit code 1", id="leaves the terminal raw"),
        pytest.param("", "names a missing program", id="missing"),
    ],
)
def test_editor_failure_is_reported_and_the_text_stays(tmp_path: Path, editor: str, said: str) -> None:
    variables = _editor(tmp_path, editor) if editor else {"EDITOR": "/nowhere/editor"}
    with PlayedLine(tmp_path, variables=variables) as line:
        line.send(f"keep {paste(LONG)}")
        line.wait_for(MARK)
        line.send(CTRL_X + "\x05")
        wanted = "".join(said.split())
        line.wait_until(lambda: wanted in "".join(line.text().split()), said)  # wherever the width wraps it
        line.wait_for("> [text 1: 214 lines]")
        line.reads(ENTER, f"keep {LONG}")


@all_rows("end", ["kill -9 $$", "exit 0"])
def test_keys_typed_for_the_editor_are_not_sent(tmp_path: Path, end: str) -> None:
    editor = _editor(tmp_path, f"stty raw -echo; echo running; while [ ! -e go ]; do sleep 0.02; done; {end}")
    with PlayedLine(tmp_path, variables=editor) as line:
        line.send("some text" + CTRL_X + "\x05")
        line.wait_for("running")
        line.send(f"{CTRL_C}typed meanwhile{ENTER}")
        (tmp_path / "go").touch()
        line.wait_until(lambda: line.cursor_row().endswith("> some text"), "the line is not there again")
        line.reads(ENTER, "some text")
        assert (b"\x1b[?1047l" in line.raw) == end.startswith("kill")


def test_ctrl_c_in_the_editor_is_for_the_editor(tmp_path: Path) -> None:
    editor = _editor(
        tmp_path, 'trap "echo by the trap > \\"$2\\"; exit 0" INT; echo running; while :; do sleep 0.05; done'
    )
    with PlayedLine(tmp_path, variables=editor) as line:
        line.send("text" + CTRL_X + "\x05")
        line.wait_for("running")
        line.send(CTRL_C)
        line.wait_for("> by the trap")
        line.reads(ENTER, "by the trap")


# Terminals that show less


def test_status_line_marks_loosened_rules_in_words_and_red(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, loosened=["UNCONFINED allowed"]) as line:
        line.wait_for("! UNCONFINED allowed | mode ask | model-1 | 2 grants | ? shows the keys")
        assert {(cell.bg, cell.reverse) for cell in line.cells("UNCONFINED")} == {("red", False)}
        assert {(cell.bg, cell.reverse) for cell in line.cells("model-1")} == {("default", False)}
        line.reads("gone when sent" + ENTER, "gone when sent")
    assert b"\x1b[6n" not in line.raw, "it asks where the cursor is"
    assert b"\x1b[?1049h" not in line.raw, "it takes another screen"


def test_colours_are_disabled_by_no_color(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, loosened=["UNCONFINED allowed"], variables={"NO_COLOR": "1"}) as line:
        line.wait_for("! UNCONFINED allowed")
        seen = {(cell.fg, cell.bg, cell.bold, cell.reverse) for cell in line.cells("UNCONFINED")}
        assert seen == {("default", "default", True, True)}


def test_status_line_has_one_row_at_40_columns(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, columns=40, loosened=["UNCONFINED allowed"]) as line:
        rows = [">", "! UNCONFINED allowed | mode ask"]
        line.wait_until(lambda: [row for row in line.display() if row] == rows, "it is not one row")


def test_ascii_mode_draws_ascii_only(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, ascii=True) as line:
        line.send("/")
        line.send("h" + TAB)
        line.wait_for("what there is")
        line.send(CTRL_C)
        line.reads("a" + CTRL_J + "b" + ENTER, "a\nb")
        assert line.raw.isascii()


def test_screen_reader_mode_has_the_keys_of_readline_and_tab_lists(tmp_path: Path) -> None:
    (tmp_path / "one two.txt").touch()
    with PlayedLine(tmp_path, screen_reader=True, loosened=["UNCONFINED allowed"]) as line:
        line.send("/h" + TAB)
        rows = ["> /h", "/help  what there is", "/history  lines", "> /h"]
        line.wait_until(lambda: [row for row in line.display() if row] == rows, "Tab does not list")
        line.send("e" + TAB)  # one is left
        line.wait_for("> /help")
        line.reads(ENTER, "/help")
        line.send("/mo" + TAB)
        line.wait_for("> /model")
        line.reads(CTRL_U + "/model x" + ENTER, "/model x")
        line.send("/x" + TAB)
        line.wait_for("(nothing completes this)")
        line.reads(ENTER, "/x")
        line.stands("see\\" + ENTER, ". ")
        line.send("@tw" + TAB)
        line.wait_for('. @"one two.txt"')
        line.reads(" now" + ENTER, 'see\n@"one two.txt" now')
        line.send("!ls one" + TAB)
        line.wait_for("> !ls 'one two.txt'")
        line.reads(ENTER, "!ls 'one two.txt'")
        line.reads("hello" + LEFT + LEFT + "X" + CTRL_A + "Y" + CTRL_E + "Z" + ENTER, "YhelXloZ")
        line.reads(UP + ENTER, "YhelXloZ")
        line.reads("a\x1b[Ib\x1b[13;2uc" + ENTER, "abc")  # reports, and keys of another protocol
        line.reads(CTRL_C, {"raised": "KeyboardInterrupt"})
        assert "UNCONFINED" not in line.text()
        line.reads(CTRL_D, {"raised": "EOFError"})
        assert b"\x1b[?2004h" not in line.raw


def test_a_dumb_terminal_gets_lines_without_escapes(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, variables={"TERM": "dumb"}, default="some words") as line:
        line.wait_for("> some words")
        line.reads(" more" + ENTER, "some words more")
        line.stands("one\\" + ENTER, ". ")
        line.reads("two" + ENTER, "one\ntwo")
        line.stands("!ls \\" + ENTER, ". ")
        line.reads("-l" + ENTER, "!ls \\\n-l")
        line.reads(" a secret: s3cr3t-value-0815" + ENTER, " a secret: s3cr3t-value-0815")
        line.reads("word" + LEFT + "X" + ENTER, "worXd")
        before = line.told
        line.send(f"one{ENTER}!touch pasted{ENTER}three{ENTER}")
        line.wait_for(". three")
        line.wait_until(lambda: line.before_cursor() == ". ", "the paste does not wait")
        assert line.told == before
        line.reads(ENTER, "one\n!touch pasted\nthree")
        line.stands(CTRL_R + "orX", "(reverse-i-search)`orX': w", "orXd")
        line.reads(ENTER, "worXd")
        line.stands(UP, "> worXd")
        line.stands(UP, "> worXd")  # what stands between them has several lines, or is a secret
        line.stands(UP, "> some words more")
        line.stands(CTRL_U, "> ")
        line.reads(CTRL_C, {"raised": "KeyboardInterrupt"})
        line.reads(CTRL_D, {"raised": "EOFError"})
        assert line.exit_code() == 0
        assert b"\x1b" not in line.raw
    with PlayedLine(tmp_path, variables={"TERM": "dumb"}) as line:
        line.stands(UP, "> worXd")
        line.reads(ENTER, "worXd")


def test_a_dumb_terminal_shows_the_line_as_it_is_below_completions(tmp_path: Path) -> None:
    with PlayedLine(tmp_path, variables={"TERM": "dumb"}) as line:
        line.reads("do edits" + ENTER, "do edits")
        line.stands("zz" + LEFT + LEFT + "/h" + TAB, "> /h", "zz")
        line.stands(LEFT + CTRL_U, "> ", "hzz")
        line.stands(UP, "> do edits")
        line.stands(CTRL_U + "/" + TAB, "> /")
        line.stands("h" + TAB, "> /h")
        line.stands("i" + TAB, "> /history")
        line.stands(CTRL_U + "/nothing" + TAB + LEFT + TAB + "x", "> /nothinx", "g")
        line.reads(ENTER, "/nothinxg")


# The menu, and the keys on one screen: a line that stands is drawn, so no menu of the line before is seen any more


def test_shift_tab_acts_at_once_and_keeps_the_line(line: PlayedLine) -> None:
    line.stands("one two" + LEFT, "> one tw", "o")
    line.reads("\x1b[Z", "next mode")
    line.stands("x", "> one twx", "o")
    line.reads(ENTER, "one twxo")
    line.reads(paste("a\x1b[Zb") + ENTER, "a\x1b[Zb")


def test_the_menu_opens_with_a_slash_and_enter_finishes_before_it_runs(line: PlayedLine) -> None:
    line.stands("/", "> /")
    line.wait_for("show or switch")
    line.wait_for("Up, Down choose; Esc closes")
    line.stands("\x1b[B\x1b[B", "> /history")
    line.reads(ENTER, "/history")  # what was chosen stands in the line
    line.stands("/mo", "> /mo")
    line.wait_for("show or switch")
    line.stands(ENTER, "> /model")
    line.reads(ENTER, "/model")
    line.stands("/", "> /")
    line.wait_for("show or switch")
    line.reads(ENTER, "/")  # nothing was begun that could be finished


def test_esc_closes_the_menu_and_leaves_the_line_as_it_was_typed(line: PlayedLine) -> None:
    line.stands("/h", "> /h")
    line.wait_gone("show or switch")  # the menu is that of `/h`, no longer that of `/`
    line.wait_for("what there is")
    line.stands(TAB, "> /help")
    line.stands(ESC, "> /h")
    line.wait_gone("what there is")
    line.wait_until(lambda: "model-1" in line.display()[line.cursor[0] + 1], "the room for the menu is still there")
    line.reads(ENTER, "/h")


def test_command_arguments_are_chosen_in_the_same_menu(tmp_path: Path) -> None:
    models = [["small-1", "configured"], ["large-1", "the one now"], ["ev\x1b[2Jil", "x"]]
    with PlayedLine(tmp_path, models=models) as line:
        line.send("/model ")
        line.wait_for("the one now")
        line.wait_for("ev\\x1b[2Jil")
        line.send("now")
        line.wait_gone("configured")
        line.wait_until(lambda: any("the one now" in row for row in line.display()), "the menu is not filtered")
        line.stands(ENTER, "> /model large-1")
        line.reads(ENTER, "/model large-1")
        line.stands("/model ", "> /model ")
        line.wait_for("configured")
        line.reads(ENTER, "/model ")  # nothing is chosen by Enter alone
        line.send(paste("/model sma\n"))
        line.wait_for("> /model sma")
        line.reads(CTRL_U + CTRL_U + BACKSPACE + CTRL_U + ENTER, "")
    assert b"\x1b[2J" not in line.raw


def test_a_question_mark_shows_the_keys_and_the_next_key_closes_them(line: PlayedLine) -> None:
    line.send("?")
    line.wait_for("a new line")
    line.wait_gone("model-1")
    line.stands("x", "> x")
    line.wait_gone("a new line")
    line.wait_for("model-1")
    line.stands("?", "> x?")
    line.reads(ENTER, "x?")
    line.send("?")
    line.wait_for("a new line")
    line.send("?")
    line.wait_gone("a new line")
    line.reads("? at once is text" + ENTER, "? at once is text")


@all_rows("size", [(120, 36), (80, 24), (40, 12), (30, 4)])
def test_the_keys_fit_the_window(size: tuple[int, int]) -> None:
    columns, lines = size
    text = "".join(piece for _, piece in panel_rows(KEYS, columns, lines - 1))
    rows = text.split("\n")
    assert len(rows) < lines
    assert all(cells(row.rstrip()) <= columns for row in rows)
    assert "commands" in rows[0]
    if columns > 30:
        assert not any("..." in row for row in rows)
        assert "/help" in text


# What it costs


def _ticks(pid: int) -> int:
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def _wakings(pid: int) -> int:
    """Return how often its threads began to wait: what else the machine does, does not count (proc_pid_status(5))."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        rows = (task / "status").read_text().splitlines()
        found += sum(int(row.split()[1]) for row in rows if row.startswith("voluntary_ctxt_switches"))
    return found


def test_an_idle_prompt_does_not_wake(tmp_path: Path) -> None:
    """Half a second and 1.5 s after a key it wakes, and then never: what polls would not sleep a second at any time."""
    with PlayedLine(tmp_path) as line:
        line.send("@rea")
        line.wait_for("  reader.py")
        end = time.monotonic() + SECONDS
        while True:
            before = (_ticks(line.pid), _wakings(line.pid))
            time.sleep(1.0)
            if (_ticks(line.pid), _wakings(line.pid)) == before:
                break
            assert time.monotonic() < end, "it never sleeps for a second"

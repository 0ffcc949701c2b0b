"""The terminal that tests play: what it shows is what was written, and no wait is without an end."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from screen_scene import CTRL_C, DOWN, ENTER, PlayedTerminal, paste

pytestmark = pytest.mark.terminal

READS = """
import os, sys, termios, tty
tty.setcbreak(0)
print("ready", flush=True)
while (data := os.read(0, 100)) != b"q":
    print(repr(data), flush=True)
print("left", flush=True)
sys.exit(7)
"""
SIZES = """
import os, signal, time
def say(*_):
    size = os.get_terminal_size(0)
    print(f"size {size.columns}x{size.lines}", flush=True)
signal.signal(signal.SIGWINCH, say)
say()
while True: time.sleep(10)
"""


def python(script: str, *, columns: int = 80, lines: int = 24) -> PlayedTerminal:
    return PlayedTerminal([sys.executable, "-c", script], columns=columns, lines=lines)


def test_keys_are_sent_and_output_is_drawn() -> None:
    with python(READS) as terminal:
        terminal.wait_for("ready")
        for keys, shown in (
            ("a", "b'a'"),
            (ENTER, r"b'\n'"),
            (DOWN, r"b'\x1b[B'"),
            (paste("b"), r"b'\x1b[200~b\x1b[201~'"),
        ):
            terminal.send(keys)
            terminal.wait_for(shown)
        terminal.send("q")
        assert terminal.exit_code() == 7
        assert terminal.rows() == ["ready", r"b'a'", r"b'\n'", r"b'\x1b[B'", r"b'\x1b[200~b\x1b[201~'", "left"]


def test_scrolled_and_wrapped_rows_are_found() -> None:
    with python("for n in range(2000): print('row', n)\nprint('x' * 50 + 'the end')", columns=40, lines=10) as terminal:
        terminal.wait_for("xxthe end")
        assert terminal.exit_code() == 0
        assert terminal.rows()[:2000] == [f"row {n}" for n in range(2000)]
        assert terminal.rows()[2000:] == ["x" * 40, "x" * 10 + "the end"]
        assert len(terminal.display()) == 10


def test_colours_are_known_for_each_cell() -> None:
    with python(r"print('plain \x1b[1;31m漢字 bad\x1b[0m \x1b[7mback\x1b[0m')") as terminal:
        terminal.wait_for("back")
        assert {(cell.fg, cell.bold) for cell in terminal.cells("字 bad")} == {("red", True)}
        assert all(cell.reverse for cell in terminal.cells("back"))
        assert not any(cell.reverse or cell.bold for cell in terminal.cells("plain"))
        with pytest.raises(AssertionError, match="'green' is not on the screen"):
            terminal.cells("green")


def test_earlier_rows_stay_above() -> None:
    with PlayedTerminal(["echo", "after"], before="one\ntwo\n") as terminal:
        assert terminal.exit_code() == 0
        assert terminal.rows() == ["one", "two", "after"]
        assert terminal.raw == b"after\r\n"


def test_a_resize_reaches_the_program() -> None:
    with python(SIZES, columns=40, lines=10) as terminal:
        terminal.wait_for("size 40x10")
        terminal.resize(100, 30)
        terminal.wait_for("size 100x30")
        assert (terminal.screen.columns, terminal.screen.lines) == (100, 30)


def test_a_hang_up_and_a_ctrl_c_are_signals() -> None:
    with python(SIZES) as terminal:
        terminal.wait_for("size")
        terminal.hang_up()
        assert terminal.exit_code() == -signal.SIGHUP
    with PlayedTerminal(["sh", "-c", "echo ready; exec sleep 1000"]) as terminal:
        terminal.wait_for("ready")
        terminal.send(CTRL_C)
        assert terminal.exit_code() == -signal.SIGINT
        assert terminal.rows() == ["ready", "^C"]


def test_cursor_position_is_reported_on_request() -> None:
    asks = "import os, tty; tty.setcbreak(0); os.write(1, b'ab\\x1b[6n'); print(repr(os.read(0, 20)))"
    with python(asks) as terminal:
        terminal.wait_for(r"b'\x1b[1;3R'")


def test_waits_are_limited_and_the_program_ends_with_the_test() -> None:
    with PlayedTerminal(["sh", "-c", "stty raw -echo; echo here; sleep 1000"]) as terminal:
        terminal.wait_for("here")
        with pytest.raises(AssertionError, match="'there' did not come in 0"):
            terminal.wait_for("there", seconds=0.3)
        with pytest.raises(AssertionError, match="'here' did not go in 0"):
            terminal.wait_gone("here", seconds=0.3)
        with pytest.raises(AssertionError, match="did not end in 0"):
            terminal.exit_code(seconds=0.3)
        with pytest.raises(AssertionError, match="takes no keys"):
            terminal.send("x" * 1_000_000, seconds=0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(terminal.pid, 0)


def test_program_reads_input_typed_before_its_start() -> None:
    with PlayedTerminal(["head", "-n", "1"], ahead="early\n") as terminal:
        assert terminal.exit_code() == 0
        assert terminal.rows() == ["early", "early"]


def test_words_are_typed_key_by_key() -> None:
    reads = "import os, tty; tty.setcbreak(0); os.write(1, b'say: ')\nwhile key := os.read(0, 9): os.write(1, key[:2])"
    with python(reads) as terminal:
        terminal.send_words("say: ", "a bc")
        assert terminal.before_cursor() == "say: a bc"
        assert terminal.cursor_row() == "say: a bc"


def test_stopped_program_reads_no_input_until_continued() -> None:
    with python(READS) as terminal:
        terminal.wait_for("ready")
        terminal.stop()
        terminal.send("q")
        terminal.signal(signal.SIGCONT)
        assert terminal.exit_code() == 7


def test_a_program_that_ended_is_not_waited_for() -> None:
    with PlayedTerminal(["true"]) as terminal, pytest.raises(AssertionError, match="'more' did not come: ended"):
        terminal.wait_for("more")

"""Progress of long work: one live line at a terminal that may be written over, and nothing anywhere else."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest
from rows import all_rows
from screen_scene import PlayedTerminal

from harness.app.audit.logs import ChosenLogs
from harness.errors import LogError
from harness.terminal.console import Look
from harness.terminal.long_work import LongWork

WORK = """
import os, sys, termios
from harness.terminal.console import look_of
from harness.terminal.long_work import LongWork

silent = termios.tcgetattr(0)
silent[3] &= ~termios.ECHO  # what is typed would move the line
termios.tcsetattr(0, termios.TCSANOW, silent)
done = 0
look = look_of(sys.stderr, os.environ, ascii_only="ascii" in sys.argv, screen_reader="reader" in sys.argv)
with LongWork(sys.stderr, look, 3, lambda: f"{done} of 3 [red]logs[/red]\\x1b[2J", soon=0.0) as work:
    for _ in range(3):
        sys.stdin.readline()
        done += 1
        work.step()
        if "tells" in sys.argv:
            work.tell(f"[bold]told[/bold] {done}")
print("the end")
"""


def play(*words: str, columns: int = 80, **environment: str) -> PlayedTerminal:
    given = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", **environment}
    return PlayedTerminal([sys.executable, "-c", WORK, *words], columns=columns, environment=given)


@all_rows("columns", [120, 80, 40, 24])
def test_progress_line_is_overwritten_and_removed(columns: int) -> None:
    with play(columns=columns) as terminal:
        terminal.wait_for("0 of 3")
        terminal.send("\n")
        terminal.wait_for("1 of 3")
        live = [row for row in terminal.display() if "of 3" in row]
        assert (len(live), len(live[0]) <= columns) == (1, True)
        assert ("━" in live[0]) == (columns >= 60)
        terminal.send("\n\n")
        terminal.wait_for("the end")
        assert "of 3" not in terminal.text()
        assert b"\x1b[2J" not in terminal.raw
        assert b"\x1b[?25l" not in terminal.raw  # the cursor stays, whatever ends the program


def test_messages_stay_above_the_progress_line_as_text() -> None:
    with play("tells") as terminal:
        terminal.wait_for("0 of 3")
        for _ in range(3):
            terminal.send("\n")
        terminal.wait_for("the end")
        rows = [row for row in terminal.rows() if "told" in row]
        assert rows == [f"[bold]told[/bold] {number}" for number in (1, 2, 3)]


def test_an_interrupt_takes_the_line_away() -> None:
    with play() as terminal:
        terminal.wait_for("0 of 3")
        terminal.send("\x03")
        terminal.wait_for("KeyboardInterrupt")
        assert "of 3" not in terminal.text()


def test_progress_line_is_removed_before_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    logs = ChosenLogs([str(tmp_path / "a.jsonl"), str(tmp_path / "gone.jsonl")])
    before = threading.active_count()
    with pytest.raises(LogError) as raised:
        logs.verify_all(Look(repaints=True))
    assert (raised.value.__traceback__ is not None, threading.active_count()) == (True, before)


def test_plain_ascii_output_has_neither_colour_nor_unicode() -> None:
    with play("ascii", NO_COLOR="1") as terminal:
        terminal.wait_for("0 of 3")
        terminal.send("\n\n\n")
        terminal.wait_for("the end")
        assert terminal.raw.isascii()
        assert b"\x1b[3" not in terminal.raw


@all_rows(("words", "term"), [(("reader",), "xterm"), ((), "dumb"), ((), "")])
def test_screen_reader_and_plain_terminal_get_no_progress_line(words: tuple[str, ...], term: str) -> None:
    with play(*words, TERM=term) as terminal:
        terminal.send("\n\n\n")
        terminal.wait_for("the end")
        assert (b"of 3" in terminal.raw, b"\x1b" in terminal.raw) == (False, False)


def test_plain_stream_gets_messages_only() -> None:
    stream = io.StringIO()
    with LongWork(stream, Look(), 1, lambda: "1 of 1", soon=0.0) as work:
        work.step()
        work.tell("one\nline \x1b")
    assert stream.getvalue() == "one\\nline \\x1b\n"

"""The screen, drawn by a terminal emulator: append-only but for one line, readable at every width, column 1 only ours."""

from __future__ import annotations

import io
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from process_scene import wait_until
from rows import all_rows

from harness.actions import JsonValue
from harness.redaction.redactor import Redactor
from harness.terminal.activity import TURNS_A_SECOND
from harness.terminal.change_rows import Diffs
from harness.terminal.console import Look, look_of
from harness.terminal.markdown_stream import Markdown
from harness.terminal.row_text import Row
from harness.terminal.screen import Notices, Screen
from harness.terminal.styles import SIXTEEN, Tone

PLAIN = Look(colour=True, repaints=True)
STILL = Look()
SPINNERS = re.compile("^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏|/\\\\-] ")


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


class Tape(io.StringIO):
    """A stream that is a terminal, drawn as it is written."""

    encoding = "utf-8"

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        super().__init__()
        self.drawn = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.001)
        self.drawn.set_mode(pyte.modes.LNM)  # as the line discipline does: LF also returns
        self._feed = pyte.Stream(self.drawn).feed
        self.raw: list[str] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.raw.append(text)
        self._feed(text)
        return len(text)

    @property
    def size(self) -> tuple[int, int]:
        return self.drawn.columns, self.drawn.lines

    def permanent(self) -> list[str]:
        """Return the lines above the one that the cursor is in, the scrollback included."""
        drawn = self.drawn
        above = ["".join(row[x].data for x in range(drawn.columns)).rstrip() for row in drawn.history.top]
        return above + [line.rstrip() for line in drawn.display[: drawn.cursor.y]]

    def written_over(self) -> str:
        return str(self.drawn.display[self.drawn.cursor.y]).rstrip()


def screen_on(
    tape: Tape, look: Look = PLAIN, *, clock: Clock | None = None, redactor: Redactor | None = None,
    notices: Notices = Notices.BELL, diffs: Diffs = Diffs.SHORT, diff: str = "", way: str = "",
) -> Screen:  # fmt: skip
    return Screen(
        tape, look, size=lambda: tape.size, monotonic=clock or Clock(), redactor=redactor, notices=notices,
        way_to_output=way, diffs=diffs, diff_of=lambda outcome: diff if "changed_path" in outcome else "",
    )  # fmt: skip


def record(kind: str, **fields: JsonValue) -> Mapping[str, JsonValue]:
    return {"kind": kind, "session": "s", "call": 1, **fields}


BEGIN = record("intent", tool="bash")
ANSWER = (
    "# Title\n\nSome **bold** prose with `code` that is long enough to be wrapped wherever the line ends, surely.\n\n"
    "- one\n- two\n  1. three\n\n```python\ndef f():\n    return 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\nEnd."
)


@all_rows("columns", [40, 80, 200])
def test_printed_lines_never_change(columns: int) -> None:
    """A whole turn, token by token: after every write, the lines above the last are those from before, and some more."""
    clock, tape = Clock(), Tape(columns, 10)
    screen = screen_on(tape, clock=clock)
    before: list[str] = []

    def checked() -> None:
        nonlocal before
        now = tape.permanent()
        assert now[: len(before)] == before
        assert len(tape.written_over()) < columns
        before = now
        clock.now += 0.02

    steps: list[Callable[[], None]] = [lambda: screen.record(record("model_request", turn=1))]
    steps += [lambda piece=ANSWER[at : at + 4]: screen.text(piece) for at in range(0, len(ANSWER), 4)]  # type: ignore[misc]
    steps += [lambda: screen.record(record("model_response")), lambda: screen.queued("> and then")]
    steps += [
        lambda: screen.record(record("decision", summary="make all", decision="auto", by="policy.toml:3")),
        lambda: screen.record(BEGIN),
    ]
    steps += [lambda number=number: screen.live(f"line {number}\n" * 3) for number in range(20)]  # type: ignore[misc]
    steps += [
        lambda: screen.record(record("outcome", tool="bash", status="ok", exit_code=0, duration_ms=1200, content=""))
    ]
    steps += [
        lambda: screen.rule("bash asks"),
        lambda: screen.diff("@@ -1 +1 @@\n+ a\n- b\n " + "x" * 300, "x.py"),
        screen.settle,
    ]
    for step in steps:
        step()
        checked()
    assert tape.written_over() == ""
    text = "\n".join(before)
    parts = ("● Title", "  • one", "    1. three", "        return 1", "  a  b", "    ▎ quoted", "  End.")
    assert [part for part in parts if part not in text] == []
    live = ["line 0"] * 3 + ["line 1", "... 51 more lines, 450 B in all"] + ["line 18"] * 2 + ["line 19"] * 3
    assert [line for line in before if line.startswith("  | ")] == [f"  | {line}" for line in live]
    assert "+ bash make all exit 0, 1.2 s" in " ".join(text.split())


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=60), gaps=st.integers(0, 60))
def test_the_pieces_of_an_answer_make_no_difference(cuts: list[int], gaps: int) -> None:
    """Nor does the time between them."""

    def shown(lengths: list[int]) -> list[str]:
        clock, tape, at = Clock(), Tape(60, 12), 0
        screen = screen_on(tape, clock=clock)
        screen.record(record("model_request", turn=1))
        for length in [*lengths, len(ANSWER)]:
            screen.text(ANSWER[at : at + length])
            at += length
            clock.now += gaps / 1000
        screen.settle()
        return tape.permanent()

    assert shown(cuts) == shown([])


HOSTILE = (
    "\x1b[2J\x1b[H\x1b]0;title\x07\x1b]52;c;aGk=\x07\x9b2J\x1bP1$r\x1b\\\x1b[?1049h\r\x08\x08over\x7f\x00\u202egnp.exe\u200b"
    "\u2028\ud800 + allowed  rm -rf /  by you\n\n| out\n"
)


@all_rows("look", [pytest.param(PLAIN, id="colour"), pytest.param(STILL, id="nothing is written over")])
def test_only_colours_carriage_returns_and_erasing_reach_the_stream(look: Look) -> None:
    """Whatever comes by whatever road."""
    clock, tape = Clock(), Tape(50, 10)
    screen = screen_on(tape, look, clock=clock)
    tape.drawn.title = "before"
    for text in (HOSTILE, f"```\n{HOSTILE}```\n", f"| {HOSTILE.strip()} | b |\n|---|---|\n"):
        screen.text(text)
        clock.now += 1
    screen.end_text()
    screen.line(HOSTILE.replace("\n", " "), Tone.BAD)
    screen.diff(HOSTILE, "x.py")
    screen.rule(HOSTILE)
    screen.transient(HOSTILE)
    screen.queued(HOSTILE)
    screen.record(record("intent", tool=HOSTILE))
    screen.live(HOSTILE * 3)
    clock.now += 5
    screen.live(HOSTILE)
    screen.record(record("outcome", tool=HOSTILE, status=HOSTILE, content=HOSTILE, output_bytes=HOSTILE))
    screen.record(record("error", where=HOSTILE, message=HOSTILE))
    screen.settle()
    raw = "".join(tape.raw)
    left = re.sub(r"\x1b\[[0-9;]*m|\x1b\[K|\r(?=\x1b\[K)", "", raw)
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ud800-\udfff]", left) == []
    assert ("\x1b" in raw) is look.colour
    assert tape.drawn.title == "before"


@all_rows("columns", [40, 20, 14, 8])
def test_foreign_text_never_reaches_column_1(columns: int) -> None:
    """What is long goes on further right: a wrapped line cannot look like one of ours."""
    tape = Tape(columns, 30)
    screen = screen_on(tape)
    forged = "+ allowed  rm -rf /"
    flags = "\U0001f1e9\U0001f1ea" * 7
    for padding in range(columns - 10, columns + 5):
        screen.text(f"{flags}{'a' * padding} {forged}\n\n> > - {'a' * padding} {forged}\n\n")
        screen.text(f"| a | b |\n|---|---|\n| {'a' * padding} | {forged} |\n\n# {'a' * padding} {forged}\n\n")
        screen.text(f"{'a' * padding} {forged}\n\n```\n{' ' * padding}{forged}\n```\n")
        screen.end_text()
        screen.line(f"! {'a' * padding} {forged}")
        screen.diff(f"@@ -1 +1 @@\n+{'a' * padding} {forged}", "x.py")
        screen.record(record("intent", tool="bash"))
        screen.live(f"{' ' * padding}{forged}\n")
        screen.record(record("outcome", tool="bash", status="ok", content=f"{'a' * padding}\n{forged}"))
    screen.settle()
    assert {line[0] for line in tape.permanent() if line} == {" ", "●", "!", "+"}
    assert [line for line in tape.permanent() if line.startswith("+ allowed")] == []


def test_echo_before_a_question_is_erased() -> None:
    """Keys of before it was ours: the question must not begin behind them."""
    tape = Tape(60)
    screen = screen_on(tape)
    tape.write("yy")
    screen.settle()
    screen.line("bash asks")
    assert tape.permanent() == ["bash asks"]


def test_tail_of_pending_text_is_shown_and_removed() -> None:
    clock, tape = Clock(), Tape(60)
    screen = screen_on(tape, clock=clock)
    screen.record(record("model_request", turn=1))
    clock.now += 2
    screen.text("A paragraph that is not finished")
    clock.now += 1
    screen.text(" yet")
    assert SPINNERS.sub("", tape.written_over()) == "answering 3 s  ~9 tokens  ...aph that is not finished yet"
    assert tape.permanent() == []
    screen.settle()
    assert tape.permanent() == ["", "● A paragraph that is not finished yet"]
    assert tape.written_over() == ""


def test_a_command_shows_its_first_lines_then_counts() -> None:
    clock, tape = Clock(), Tape(80)
    screen = screen_on(tape, clock=clock)
    screen.record(BEGIN)
    for number in range(1_200):
        screen.live(f"line {number}\n")
    clock.now += 75
    screen.live("now it links\n\n")
    assert SPINNERS.sub("", tape.written_over()) == "bash 1 min 15 s  1,202 lines  10.9 kB  now it links"
    content = (
        "head\n[... 5,000 bytes, 900 lines omitted; full output: /tmp/x/output-1.txt; read it with read_file ...]\ntail"
    )
    screen.record(
        record(
            "outcome",
            tool="bash",
            status="ok",
            exit_code=0,
            duration_ms=75_000,
            output_bytes=12_345,
            truncated=True,
            content=content,
        )
    )
    assert tape.permanent()[:11] == [
        *(f"  | line {number}" for number in range(4)), "  | ... at least 1,193 more lines, 12.3 kB in all; all of it:",
        "    /tmp/x/output-1.txt", "  | line 1197", "  | line 1198", "  | line 1199", "  | now it links", "  |",
    ]  # fmt: skip


def test_parallel_calls_are_shown_one_after_the_other() -> None:
    """What the second prints is shown in its turn; whose time is counted is the one that is told."""
    clock, tape = Clock(), Tape(80)
    screen = screen_on(tape, clock=clock)
    for number in (1, 2):
        screen.record({**record("decision", decision="auto", summary=f"cat {number}"), "call": number})
    for number in (1, 2):
        screen.record({**BEGIN, "call": number})
    clock.now += 3
    screen.live("")
    assert SPINNERS.sub("", tape.written_over()) == "bash (and 1 more) 3 s  cat 1"
    for number in (1, 2):
        screen.live(f"from {number}\n")
        ended = record("outcome", tool="bash", status="ok", exit_code=0, duration_ms=1_000 * number, content="x")
        screen.record({**ended, "call": number})
        if number == 1:
            clock.now += 1
            screen.live("")
            assert SPINNERS.sub("", tape.written_over()) == "bash 4 s  cat 2"
    assert [line.partition("  exit")[0] for line in tape.permanent()] == [
        "  | from 1", "+ bash  cat 1", "  | from 2", "+ bash  cat 2",
    ]  # fmt: skip
    assert tape.written_over() == ""


@all_rows("look", [pytest.param(PLAIN, id="repaints"), pytest.param(STILL, id="still")])
@all_rows(
    ("lines", "shown"),
    [
        pytest.param(2, ["0", "1"], id="first lines alone"),
        pytest.param(12, [str(number) for number in range(12)], id="short: whole"),
        pytest.param(
            13, [*"0123", "... 4 more lines, 30 B in all; /output 1 shows all", *"8 9 10 11 12".split()], id="cut"
        ),
    ],
)
@all_rows("end", ["\n", ""])
def test_the_end_of_an_output_is_shown_when_it_has_ended(look: Look, lines: int, shown: list[str], end: str) -> None:
    tape = Tape(80)
    screen = Screen(tape, look, size=lambda: tape.size, monotonic=Clock(), way_to_output="/output")
    text = "\n".join(map(str, range(lines))) + end
    screen.record(BEGIN)
    for at in range(0, len(text), 3):
        screen.live(text[at : at + 3])
    screen.record(record("outcome", tool="bash", status="ok", exit_code=0, duration_ms=5, content="x"))
    bars = [line.removeprefix("  | ") for line in tape.permanent() if line.startswith("  | ")]
    # Still, the last line so far comes every two seconds, from the beginning on.
    assert [line for line in bars if line in shown or "more lines" in line] == [
        line.replace("30 B", f"{len(text)} B") for line in shown
    ]  # fmt: skip


def test_command_output_has_no_place_in_the_trace() -> None:
    """What it prints may look like the words of the result: then there are two, and none is repeated."""
    clock, tape = Clock(), Tape(100)
    screen = screen_on(tape, clock=clock)
    screen.record(BEGIN)
    screen.live("x\n" * 10)
    real = "[... 5,000 bytes, 900 lines omitted; full output: /tmp/x/output-1.txt; read it with read_file ...]"
    content = f"{real}\n{real.replace('/tmp/x', '/home/evil')}"
    screen.record(record("outcome", tool="bash", status="ok", truncated=True, output_bytes=9_000, content=content))
    assert [line for line in tape.permanent() if "output-1" in line and line.startswith("  |")] == []


def test_a_short_output_is_shown_whole() -> None:
    tape = Tape(80)
    screen = screen_on(tape)
    screen.record(BEGIN)
    screen.live("one\ntw")
    screen.live("o\nno end")
    screen.record(record("outcome", tool="bash", status="ok", exit_code=0, duration_ms=5, output_bytes=14, content="x"))
    assert tape.permanent()[:3] == ["  | one", "  | two", "  | no end"]
    assert "more" not in "".join(tape.permanent())


SECRET = "hunter2-correct-horse-battery"


@all_rows("step", [1, 3, 11, 1000])
@all_rows("look", [pytest.param(PLAIN, id="repaints"), pytest.param(STILL, id="still")])
def test_parts_of_a_secret_are_never_shown(step: int, look: Look) -> None:
    """Not in text, not in what waits, not in the first lines of a command, and not in its last."""
    clock, tape = Clock(), Tape(100)
    screen = screen_on(tape, look, clock=clock, redactor=Redactor([SECRET], key=b"k"))
    text = f"The password is {SECRET}, and `{SECRET}` too\n\n"
    for at in range(0, len(text), step):
        screen.text(text[at : at + step])
        clock.now += 0.1
    screen.end_text()
    screen.record(BEGIN)
    output = f"the key: {SECRET} is used\n" * 12
    for at in range(0, len(output), step):
        screen.live(output[at : at + step])
        clock.now += 0.7
    screen.record(record("outcome", tool="bash", status="ok", content=""))
    screen.settle()
    raw = "".join(tape.raw)
    assert SECRET[:12] not in raw


def test_live_line_is_removed_before_a_question() -> None:
    tape = Tape(60)
    screen = screen_on(tape)
    screen.record(record("model_request", turn=1))
    screen.queued("> typed ahead")
    assert tape.written_over().endswith("> typed ahead")
    screen.settle()
    assert tape.written_over() == ""
    screen.line("bash asks")
    assert (tape.written_over(), tape.permanent()) == ("", ["bash asks"])
    screen.transient("[y] once  [n] no")
    assert tape.written_over().startswith("[y] once  [n] no")


def test_typed_text_is_visible_at_any_width() -> None:
    tape = Tape(40)
    screen = screen_on(tape)
    screen.record(BEGIN)
    for number in range(9):
        screen.live(f"a line of output {number}\n")
    screen.queued("> a rather long line that the person types, which goes on")
    shown = tape.written_over()
    assert len(shown) < 40
    assert shown.endswith("which goes on")
    assert "bash 0 s" in shown


def overwritable(tape: Tape) -> list[str]:
    """Return the rows from the first spinner or standing row to the cursor."""
    rows = [str(row).rstrip() for row in tape.drawn.display[: tape.drawn.cursor.y + 1]]
    return rows[rows.index("[>] it") :] if "[>] it" in rows else rows[-1:]


def test_standing_rows_stay_above_the_activity_until_it_ends() -> None:
    tape = Tape(40, 24)
    screen = screen_on(tape)
    screen.stand(lambda width, height: ["[>] it", "x" * 100])
    screen.line("first")
    screen.record(record("model_request", turn=1))
    for number in range(40):
        screen.line(f"line {number}")
        rows = overwritable(tape)
        assert rows[:2] == ["[>] it", "x" * 36 + "..."]
        assert "thinking" in rows[2]
    screen.queued("> ab", ("a hint that is longer than the terminal is wide", "a hint"))
    assert overwritable(tape)[2] == "a hint"
    assert overwritable(tape)[3].endswith("> ab")
    screen.queued("")
    assert len(overwritable(tape)) == 3
    screen.settle()
    assert tape.permanent() == ["first", *(f"line {number}" for number in range(40))]


@all_rows(
    ("lines", "columns", "standing", "left"),
    [
        pytest.param(24, 60, "[>] it", [], id="wider"),
        pytest.param(24, 30, "[>] it", [], id="narrower, and it fits"),
        pytest.param(24, 30, "[>] " + "x" * 28, ["[>] " + "x" * 26], id="narrower, and it may have been wrapped"),
    ],
)
def test_resize_never_erases_rows_above_the_standing_ones(
    lines: int, columns: int, standing: str, left: list[str]
) -> None:
    tape = Tape(40, 24)
    screen = screen_on(tape)
    screen.stand(lambda width, height: [standing])
    screen.record(record("model_request", turn=1))
    screen.line("first")
    tape.drawn.resize(lines, columns)
    screen.line("second")
    screen.settle()
    assert tape.permanent() == ["first", *left, "second"]


@all_rows("lines", [4, 11])
def test_low_terminal_has_one_overwritable_row(lines: int) -> None:
    tape = Tape(40, lines)
    screen = screen_on(tape)
    screen.stand(lambda width, height: ["[>] it"])
    screen.record(record("model_request", turn=1))
    screen.queued("> ab", ("a hint",))
    assert tape.permanent() == []


@all_rows("columns", [40, 80])
def test_way_to_stop_is_shown_during_a_turn(columns: int) -> None:
    clock, tape = Clock(), Tape(columns, 10)
    screen = Screen(tape, PLAIN, size=lambda: tape.size, monotonic=clock, way_to_stop="Esc stops")
    screen.record(record("model_request", turn=1))
    clock.now += 62
    screen.text("word " * 300)
    clock.now += 1
    screen.text("word")
    assert SPINNERS.sub("", tape.written_over()).startswith("answering 1 min 03 s  Esc stops")
    screen.record(record("model_response"))
    screen.record(BEGIN)
    screen.live("a line\n" * 2_000)
    assert SPINNERS.sub("", tape.written_over()).startswith("bash 0 s  Esc stops  ")


def test_long_table_is_announced_while_it_streams() -> None:
    clock, tape = Clock(), Tape(80, 10)
    screen = screen_on(tape, clock=clock)
    screen.record(record("model_request", turn=1))
    screen.text("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 30)
    clock.now += 1
    screen.text("| 1 ")
    assert tape.written_over().endswith("a table: 30 rows so far")


def test_end_of_a_figure_is_not_left_alone_on_a_line() -> None:
    tape = Tape(20, 10)
    screen_on(tape).line("- bash exits 0, 0.1 s")
    assert tape.permanent() == ["- bash exits 0,", "    0.1 s"]


def test_still_screen_prints_few_complete_lines() -> None:
    """TERM=dumb and screen readers: no escape, no spinner; a line of a running command every two seconds."""
    clock, tape = Clock(), Tape(80)
    screen = screen_on(tape, STILL, clock=clock)
    screen.record(record("model_request", turn=1))
    screen.transient("anything")
    screen.queued("> typing")
    screen.queued("queued: typed")
    screen.text("An *answer*")
    screen.record(record("model_response"))
    screen.record(BEGIN)
    for number in range(50):
        screen.live(f"line {number}\n")
        clock.now += 0.1
    screen.settle()
    assert "\r" not in "".join(tape.raw)
    assert tape.permanent() == [
        "queued: typed", "", "● An *answer*", *(f"  | line {number}" for number in (0, 1, 2, 3, 20, 40)),
    ]  # fmt: skip


def test_a_path_is_left_to_the_terminal_to_wrap() -> None:
    """Who copies it gets it whole."""
    stream = io.StringIO()
    screen = Screen(stream, PLAIN, size=lambda: (40, 24), monotonic=Clock())
    screen.unbroken(f"  harness audit show /{'a' * 90}.jsonl\x1b[2J")
    assert stream.getvalue() == f"  harness audit show /{'a' * 90}.jsonl\\x1b[2J\n"


def test_a_new_width_holds_from_the_next_line_on() -> None:
    tape = Tape(80)
    columns = [80]
    screen = Screen(tape, STILL, size=lambda: (columns[0], 24), monotonic=Clock())
    screen.text("word " * 14 + "\n\n")
    screen.end_text()
    columns[0] = 40
    screen.text("word " * 14 + "\n\n")
    screen.end_text()
    assert [len(line) for line in tape.permanent() if line] == [71, 36, 36]


def test_a_stream_without_unicode_is_measured_as_it_is_written() -> None:
    """LANG=C: what the stream lacks is an escape, and counts as one."""

    class Poor(Tape):
        encoding = "ascii"

    tape = Poor(40)
    screen = screen_on(tape, Look(ascii=True, repaints=True))
    screen.record(BEGIN)
    screen.text("日本語 " * 8 + "\n\n- x")
    screen.queued("日本語" * 20)
    screen.line("日本語" * 10)
    screen.rule("日本")
    assert "".join(tape.raw).isascii()
    assert max(map(len, tape.permanent())) <= 40
    assert len(tape.written_over()) < 40


def test_screen_reader_gets_sentences_and_no_drawing() -> None:
    tape = Tape()
    look = look_of(tape, {"TERM": "xterm", "NO_COLOR": "1"}, screen_reader=True)
    screen = screen_on(tape, look)
    screen.text("I look.\n\n")
    screen.end_text()
    screen.rule("bash asks")
    screen.record({"kind": "decision", "call": 1, "decision": "auto", "summary": "make \x1b[2Jall"})
    screen.record({"kind": "intent", "call": 1, "tool": "bash"})
    screen.settle()
    screen.record({"kind": "decision", "call": 2, "decision": "auto", "summary": "a.py"})
    screen.record({"kind": "intent", "call": 2, "tool": "read_file"})
    screen.settle()
    assert [line for line in tape.permanent() if line] == ["  I look.", "bash asks", "running: make \\x1b[2Jall"]


def test_plain_stream_gets_unwrapped_lines() -> None:
    stream = io.StringIO()
    screen = Screen(stream, Look())
    screen.text("word " * 100 + "\n\n```\n" + "x" * 300 + "\n```\n")
    screen.line("! " + "word " * 100)
    screen.rule("a title")
    assert [len(line) for line in stream.getvalue().splitlines()] == [0, 501, 0, 304, 502, 120]
    assert "\x1b" not in stream.getvalue()


@all_rows(
    ("notices", "look", "expected"),
    [
        pytest.param(Notices.BELL, PLAIN, "\x07", id="bell"),
        pytest.param(Notices.OSC9, PLAIN, "\x1b]9;bash asks\\x07\\x1b]0;x\x07", id="a notice"),
        pytest.param(Notices.OSC9, STILL, "\x07", id="a notice on a plain terminal is a bell"),
        pytest.param(Notices.OSC777, PLAIN, "\x1b]777;notify;harness;bash asks\\x07\\x1b]0;x\x07", id="another notice"),
        pytest.param(Notices.OFF, PLAIN, "", id="neither"),
    ],
)
def test_user_is_alerted(notices: Notices, look: Look, expected: str) -> None:
    tape = Tape()
    screen_on(tape, look, notices=notices).notify("bash asks\x07\x1b]0;x")
    assert "".join(tape.raw) == expected


def test_spinner_turns_only_during_activity() -> None:
    """In real time: a thread paints some times a second, and is gone after the end."""
    tape = Tape()
    screen = Screen(tape, PLAIN, size=lambda: tape.size)
    before = _ticking()
    screen.record(record("model_request", turn=1))
    assert wait_until(lambda: len(tape.raw) >= 4)
    assert len(_ticking() - before) == 1
    screen.record(record("model_response"))
    count = len(tape.raw)
    assert wait_until(lambda: not _ticking() - before)
    assert len(tape.raw) == count
    assert tape.written_over() == ""


def _ticking() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "ticker"}


def test_countdown_is_shown_and_removed() -> None:
    tape = Tape()
    clock = Clock()
    screen = Screen(tape, PLAIN, size=lambda: tape.size)
    screen.countdown(1.25, monotonic=clock, sleep=clock.sleep)
    assert clock.slept == [0.25, 1.0]
    raw = "".join(tape.raw)
    assert "again in 2 s (Ctrl-C stops)" in raw
    assert "again in 1 s (Ctrl-C stops)" in raw
    assert (tape.permanent(), tape.written_over()) == ([], "")


def test_threads_do_not_get_into_each_others_lines() -> None:
    """Text, keys and lines at once: every line is whole."""
    tape = Tape(60, 20)
    screen = Screen(tape, PLAIN, size=lambda: tape.size)
    done = threading.Event()

    def keys() -> None:
        number = 0
        while not done.is_set():
            screen.queued(f"> key {number}")
            number += 1

    typist = threading.Thread(target=keys)
    typist.start()
    try:
        for number in range(300):
            screen.text(f"paragraph {number}\n\n")
            if number % 10 == 0:
                screen.line(f"line {number}")
    finally:
        done.set()
        typist.join()
    screen.queued("")
    screen.settle()
    expected = {f"line {number}" for number in range(0, 300, 10)}
    lines = tape.permanent()
    assert expected <= set(lines)
    assert [line for line in lines if not re.fullmatch(r"|[● ] paragraph \d+|line \d+", line)] == []
    assert sum("paragraph" in line for line in lines) == 300


def test_closed_stream_is_ignored() -> None:
    class Gone(Tape):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    screen = screen_on(Gone())
    screen.text("x\n\n")
    screen.line("y")
    assert screen.broken
    screen.settle()
    screen._stream.close()


def test_an_interrupt_in_a_write_leaves_a_screen_that_works() -> None:
    class Interrupted(Tape):
        times = 0

        def flush(self) -> None:
            self.times += 1
            if self.times == 2:
                raise KeyboardInterrupt

    clock, tape = Clock(), Interrupted()
    screen = screen_on(tape, clock=clock)
    screen.record(record("model_request", turn=1))
    with pytest.raises(KeyboardInterrupt):
        screen.text("one\n\n")
    clock.now += 1
    screen.text("two\n\n")
    screen.settle()
    screen.line("after")
    assert tape.permanent() == ["", "● one", "", "  two", "after"]
    assert tape.written_over() == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment_leave_a_screen_that_works(tmp_path: Path) -> None:
    """A signal raises in the middle of whatever the main thread does, hundreds of times; then everything goes on."""
    stream = open(tmp_path / "written", "w", encoding="utf-8")  # noqa: SIM115 - closed below; interrupted like a terminal
    screen = Screen(stream, PLAIN, size=lambda: (60, 20), redactor=Redactor([SECRET], key=b"k"))
    chance, before = random.Random(5), _ticking()
    Markdown(lambda: 60, SIXTEEN).feed("`a` **b**\n\n")  # what it imports is imported, as it is behind the prompt
    waiting = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        if waiting:
            raise KeyboardInterrupt

    def write() -> None:
        nonlocal waiting
        waiting = True
        try:
            # Again after a while: Python drops an interrupt that comes while it clears something up (`__del__`).
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0002, 0.004), 0.1)
            screen.record(record("model_request", turn=1))
            while True:
                screen.text("a **word** `or` two\n\n")
                screen.line("a line")
                screen.transient("something")
        except KeyboardInterrupt:
            waiting = False

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(200):
            with suppress(KeyboardInterrupt):  # one that comes again right then
                write()
    finally:
        waiting = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    screen.settle()
    screen.line("after all")
    waited = threading.Thread(target=lambda: screen.line("from another thread"), daemon=True)
    waited.start()
    waited.join(60)
    stream.close()
    tape = Tape(60, 20)
    tape.write((tmp_path / "written").read_bytes().decode())
    assert (tape.permanent()[-2:], tape.written_over()) == (["after all", "from another thread"], "")
    # What was being written may be lost with the turn that ended, or run together; nothing else is left of it.
    words = {"", "a", "word", "or", "two", "line", "●"}
    assert [line for line in tape.permanent()[:-2] if not set(line.split()) <= words] == []
    assert wait_until(lambda: not _ticking() - before)


def test_waiting_is_reported_periodically_on_a_still_screen() -> None:
    clock, tape = Clock(), Tape()
    screen = screen_on(tape, STILL, clock=clock)
    screen.record(record("model_request", turn=1))
    for _ in range(2):
        clock.now += 11
        count = len(tape.raw)
        assert wait_until(lambda count=count: len(tape.raw) > count)  # type: ignore[misc]
    time.sleep(2 / TURNS_A_SECOND)  # for a third line, which does not come
    screen.settle()
    assert tape.permanent() == ["the model is thinking (11 s)", "the model is thinking (22 s)"]


OURS = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[K|\n")
HOSTILE_VALUE = "\x1b[2J\x9b9A\r\x07\x1b]0;t\x07\u202e"


def test_records_of_any_make_are_survived() -> None:
    """And what they hold moves no cursor."""
    tape = Tape()
    screen = screen_on(tape)
    odd: tuple[JsonValue, ...] = (None, 3, -1, 1.5, True, [], {}, HOSTILE_VALUE, [{"a": 1}], [HOSTILE_VALUE])
    for kind in (
        "model_request",
        "intent",
        "outcome",
        "model_response",
        "error",
        "decision",
        "approval_answered",
        "limit",
        "x",
    ):
        for value in odd:
            names = (
                "tool",
                "content",
                "status",
                "output_bytes",
                "duration_ms",
                "exit_code",
                "summary",
                "message",
                "limit",
                "where",
            )
            screen.record({"kind": kind, "call": value, "session": value, **dict.fromkeys(names, value)})
            screen.live("x\n")
    screen.settle()
    written = OURS.sub("", "".join(tape.raw))
    assert "\\x1b[2J" in written
    assert written.isprintable()


def reads(screen: Screen, number: int, path: str, **more: JsonValue) -> None:
    """Play a reading of a file that runs unasked."""
    about: Mapping[str, JsonValue] = {"call": number, "tool": "read_file"}
    effects: JsonValue = {"write": [], "level": "reader", "network": False}
    screen.record({**record("decision", decision="auto", summary=path, effects=effects), **about})
    screen.record({**record("intent"), **about})
    screen.record({**record("outcome", status="ok", duration_ms=5, content="x"), **about, **more})


def runs(screen: Screen, number: int, command: str, printed: str, **more: JsonValue) -> None:
    """Play a command that reads, and runs unasked."""
    about: Mapping[str, JsonValue] = {"call": number, "tool": "bash"}
    effects: JsonValue = {"write": [], "level": "reader", "network": False}
    facets: JsonValue = [{"kind": "Command", "facet": part} for part in command.split(" | ")]
    screen.record({**record("decision", decision="auto", summary=command, effects=effects, facets=facets), **about})
    screen.record({**record("intent"), **about})
    screen.live(printed)
    ended = record("outcome", status="ok", exit_code=0, duration_ms=5, content="x", output_bytes=len(printed))
    screen.record({**ended, **about, **more})


def test_readings_in_a_row_share_one_line() -> None:
    tape = Tape(60)
    screen = screen_on(tape, way="/output")
    screen.line("above")
    reads(screen, 1, "a.py")
    assert tape.permanent() == ["above", "+ read_file  a.py  ok"]
    reads(screen, 2, "b\x1b.py")
    assert tape.permanent() == ["above", "+ read 2 files: a.py, b\\x1b.py  /output 1-2"]
    runs(screen, 3, "ls | head -3", "one\ntwo\n")
    assert tape.permanent() == ["above", "+ 3 readings: a.py, b\\x1b.py, ls | head -3  /output 1-3"]
    reads(screen, 4, "c" * 100)
    assert tape.permanent() == ["above", "+ 4 readings: a.py, b\\x1b.py, ls | head -3,...  /output 1-4"]


@all_rows("columns", [8, 12, 20, 40])
def test_line_of_readings_is_one_row_at_every_width(columns: int) -> None:
    tape = Tape(columns)
    screen = screen_on(tape, way="/output")
    screen.line("above")
    for number in range(1, 12):
        reads(screen, number, "名" * number)
        assert len(tape.permanent()) == 2
    assert tape.permanent()[0] == "above"


def failed_reading(screen: Screen, tape: Tape) -> list[str]:
    runs(screen, 2, "cat b", "no b\n", status="failed", exit_code=1)
    return ["  | no b", "! bash  cat b  exit 1"]


def other_command(screen: Screen, tape: Tape) -> list[str]:
    runs(screen, 2, "git log", "one\n")
    return ["  | one", "+ bash  git log  exit 0"]


def words_of_the_model(screen: Screen, tape: Tape) -> list[str]:
    screen.text("Well.")
    screen.record(record("model_response"))
    return ["", "● Well."]


def prompt_of_another(screen: Screen, tape: Tape) -> list[str]:
    screen.settle()
    tape.write("typed\n")
    return ["typed"]


def new_size(screen: Screen, tape: Tape) -> list[str]:
    tape.drawn.resize(24, 70)
    return []


@all_rows(
    "between",
    [failed_reading, other_command, words_of_the_model, prompt_of_another, new_size],
    ids=lambda each: each.__name__,
)
def test_reading_after_something_else_begins_a_new_line(between: Callable[[Screen, Tape], list[str]]) -> None:
    tape = Tape(60)
    screen = screen_on(tape, way="/output")
    reads(screen, 1, "a.py")
    rows = between(screen, tape)
    reads(screen, 3, "c.py")
    assert tape.permanent() == ["+ read_file  a.py  ok", *rows, "+ read_file  c.py  ok"]


def test_reading_command_hides_its_output_and_names_the_way_to_it() -> None:
    tape = Tape(60)
    screen = screen_on(tape, way="/output")
    runs(screen, 7, "cat a.txt", "one\ntwo\n")
    assert tape.permanent() == ["+ bash  cat a.txt  exit 0, 8 B: /output 7"]


def test_output_of_a_typed_command_is_shown() -> None:
    tape = Tape(60)
    screen = screen_on(tape, way="/output")
    screen.record(record("call_proposed", by="person"))
    runs(screen, 1, "cat a.txt", "one\n")
    assert tape.permanent() == ["  | one", "+ bash  cat a.txt  exit 0  [you]"]


def test_still_screen_shows_each_reading() -> None:
    tape = Tape(60)
    screen = screen_on(tape, STILL, way="/output")
    reads(screen, 1, "a.py")
    runs(screen, 2, "cat a.txt", "one\n")
    assert tape.permanent() == ["+ read_file  a.py  ok", "  | one", "+ bash  cat a.txt  exit 0"]


DIFF = "@@ -1,2 +1,2 @@\n a\n-b\n+c\x1b"
LONG = "@@ -0,0 +1,20 @@\n" + "\n".join(f"+line {number}" for number in range(1, 21))
EDITED = record("outcome", tool="edit_file", status="ok", changed_path="/w/a.py", content="x")


@all_rows(
    "look",
    [
        pytest.param(PLAIN, id="colour"),
        pytest.param(Look(repaints=True), id="no colour"),
        pytest.param(STILL, id="still"),
    ],
)
@all_rows(
    ("diffs", "diff", "rows"),
    [
        pytest.param(Diffs.SHORT, DIFF, ["  1   a", "  2 - b", "  2 + c\\x1b"], id="short"),
        pytest.param(
            Diffs.SHORT, LONG, [*(f"  {n:2} + line {n}" for n in range(1, 13)), "  ... 8 more rows: /diff 1"], id="cut"
        ),
        pytest.param(Diffs.FULL, LONG, [f"  {n:2} + line {n}" for n in range(1, 21)], id="full"),
        pytest.param(Diffs.NONE, DIFF, [], id="none"),
    ],
)
def test_diff_of_an_edit_follows_its_line(look: Look, diffs: Diffs, diff: str, rows: list[str]) -> None:
    tape = Tape(80)
    screen = screen_on(tape, look, diffs=diffs, diff=diff)
    screen.record(EDITED)
    assert tape.permanent() == ["+ edit_file  x  ok", *rows]


@all_rows(
    ("stays", "count"),
    {"the question is taken back": (False, 1), "the question stays on the screen": (True, 1)},
)
def test_diff_is_shown_once(stays: bool, count: int) -> None:
    """An approved edit has it below its line, or in the question if that is still there."""
    tape = Tape(80)
    screen = screen_on(tape, Look(repaints=not stays), diff=DIFF)
    screen.record(record("approval_asked"))
    screen.passing([Row(text="  2 - b")], title="edit_file asks")
    screen.take_back()
    screen.record(EDITED)
    assert sum(row == "  2 - b" for row in tape.permanent()) == count
    screen.record({**EDITED, "call": 2})
    assert sum(row == "  2 - b" for row in tape.permanent()) == count + 1


def test_files_of_a_command_are_named_and_what_undo_leaves_out_once() -> None:
    tape = Tape(60)
    screen = screen_on(tape)
    file: JsonValue = {"kind": "file"}
    paths: JsonValue = [
        {"path": "a.py", "before": file, "after": file},
        {"path": "b\x1b.py", "before": None, "after": file},
        {"path": "c.py", "before": file, "after": None},
        {"path": "lib", "before": None, "after": {"kind": "folder"}},
    ]
    left_out: JsonValue = [
        {"path": "big.bin", "reason": "too large", "size": 9, "is_changed": True},
        {"path": "other.bin", "reason": "too large", "size": 9, "is_changed": False},
        {"path": "gone.bin", "reason": "over 10 MB", "size": 0, "is_changed": True, "is_removed": True},
    ]
    changes: JsonValue = {"added": 1, "changed": 1, "removed": 1, "paths": paths, "left_out": left_out}
    ended = record("outcome", tool="bash", status="ok", exit_code=0, content="make", changes=changes)
    screen.record(ended)
    screen.record({**ended, "call": 2, "changes": {"left_out": left_out}})
    assert tape.permanent() == [
        "+ bash  make  exit 0",
        "  new b\\x1b.py; changed a.py; removed c.py  /diff 1",
        "  changed big.bin, which undo cannot put back: too large",
        "  removed gone.bin, which undo cannot put back: over 10 MB",
        "+ bash  make  exit 0",
    ]

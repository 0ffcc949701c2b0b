"""What is typed while a turn runs: kept in order, never an answer, and the terminal is always put back."""

from __future__ import annotations

import os
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest
from clocks import Clock
from rows import all_rows
from screen_scene import CTRL_BACKSLASH, CTRL_C, CTRL_Z, DOWN, ENTER, ENTER_KEY, ESC, UP, PlayedTerminal, paste

from harness.terminal.type_ahead import (
    ENTER_STEERS,
    MOST_CHARACTERS,
    MOST_LINES,
    Keyed,
    TypeAhead,
    Typing,
    waiting_text,
)
from harness.terminal.typing_times import TypingTimes


def fed(*reads: bytes) -> tuple[list[str], str]:
    """Return the lines and the draft that reads come to."""
    typing = Typing()
    for raw in reads:
        typing.feed(raw)
    lines = []
    while (line := typing.take()) is not None:
        lines.append(line)
    return lines, typing.draft


@all_rows(
    ("reads", "lines", "draft"),
    [
        pytest.param([b"one\r", b"two", b"\r", b"thr"], ["one", "two"], "thr", id="lines in order"),
        pytest.param([b"one\r!two\r", b"x"], [], "one\n!two\nx", id="lines read at once are a paste"),
        pytest.param([b"three\r"], [], "three\n", id="so is a line with its end"),
        pytest.param([b"if x:\r\ty\r"], [], "if x:\n\ty\n", id="with its tabs"),
        pytest.param([b"a\tb\t"], [], "a\tb\t", id="so are tabs among text"),
        pytest.param([b"a\x1b[Ab\x7f\rc"], [], "a\nc", id="and lines among other keys"),
        pytest.param([b"a\nb\r"], ["a\nb"], "", id="Ctrl-J"),
        pytest.param([b"a\x1b\rb\r"], ["a\nb"], "", id="Alt-Enter"),
        pytest.param([b"\r", b"\r", b"  \r"], [], "  ", id="Enter alone ends nothing"),
        pytest.param([b"ab\x7fc\x08d"], [], "ad", id="backspace"),
        pytest.param([b"abc\x15d"], [], "d", id="Ctrl-U"),
        pytest.param([b"ab cd  \x17e"], [], "ab e", id="Ctrl-W"),
        pytest.param([b"\xe6\x97", b"\xa5", b"\x7f\xc3", b"\xa9"], [], "é", id="UTF-8 over reads"),
        pytest.param([b"a\xffb"], [], "a\ufffdb", id="no UTF-8"),
        pytest.param([b"a\x1b[Ab\x1b[1;5Cc\x1bOPd\x1b[3~"], [], "abcd", id="arrows and function keys do nothing"),
        pytest.param([b"a\x1b", b"[", b"A", b"b"], [], "ab", id="a sequence over reads"),
        pytest.param([b"a\x1bxb"], [], "ab", id="Alt and a letter"),
        pytest.param([b"a\x1b[13;2ub\x1b[27;2;13~c", b"\r"], ["a\nb\nc"], "", id="Shift-Enter"),
        pytest.param([b"a\x1b[I\x1b[M !!\x1b]11;rgb:0/0/0\x1b\\\x1bP>|x\x1b\\b"], [], "ab", id="reports"),
        pytest.param([b"a\x1b]11;rgb\r", b"b"], ["a"], "b", id="a report without an end"),
        pytest.param([b"a\x1b[97;1:3u\x1b[97ub\x1b[201~"], [], "aab", id="keys of another protocol"),
        pytest.param([b"a\x00\x01\x04\x05b"], [], "ab", id="other controls"),
        pytest.param([b"ab\x1b[Zc"], ["/mode next"], "abc", id="shift-tab waits for the end of the turn"),
        pytest.param([b"\x1b[200~a\x1b[Zb\x1b[201~"], [], "ab", id="and is no key in a paste"),
        pytest.param([b"\x1b[200~a\rb\nc\r\nd\x1b[201~"], [], "a\nb\nc\nd", id="a paste ends no line"),
        pytest.param([b"x \x1b[200~a\ry\r\x1b[201~ z", b"\r"], ["x a\ny\n z"], "", id="a paste within a line"),
        pytest.param([b"\x1b[200~a\x1b[Ab\x7f\x15\x03\x1b[201~c"], [], "abc", id="controls in a paste are dropped"),
        pytest.param([b"\x1b[200~a\x1b", b"[20", b"1~b\r"], ["ab"], "", id="the end of a paste over reads"),
        pytest.param([b"\x1b[200~\x1b[200~a\r\x1b[201~b\r"], ["a\nb"], "", id="a paste in a paste"),
        pytest.param([b"a\t", b"b\t", b"\t"], ["a", "b"], "", id="Tab ends a line too"),
        pytest.param([b"\x1b[" + b"1" * 100 + b"a"], [], "1" * 37 + "a", id="a sequence without an end"),
    ],
)  # fmt: skip
def test_keys_become_lines(reads: list[bytes], lines: list[str], draft: str) -> None:
    got = fed(*reads)
    assert got == (lines, draft)


REST_OF_ANSWERS = {
    "slow yes": ([(0.4, "e"), (0.2, "s"), (0.2, "\r")], [], "draft"),
    "very slow yes": ([(0.6, "e"), (0.6, "s"), (0.6, "\r")], [], "draft"),
    "no": ([(0.1, "o"), (0.1, "\r")], [], "draft"),
    "Enter of y": ([(0.1, "\r")], [], "draft"),
    "yeah": ([(0.1, "eah"), (0.3, "\r")], [], "draft"),
    "a command": ([(0.5, "\x15/cost"), (0.1, "\r")], ["/cost"], ""),
    "a later word": ([(1.0, "go"), (0.1, "\r")], ["draftgo"], ""),
    "the second line": ([(0.1, "\r"), (1.0, "go"), (0.1, "\r")], ["draftgo"], ""),
}


@all_rows(("presses", "lines", "draft"), list(REST_OF_ANSWERS.values()), ids=list(REST_OF_ANSWERS))
def test_rest_of_an_answer_is_no_line(presses: list[tuple[float, str]], lines: list[str], draft: str) -> None:
    clock = Clock()
    times = TypingTimes(clock)
    typing = Typing(times=times)
    typing.feed(b"draft")
    times.answer()
    typing.begin_after_answer()
    for seconds, keys in presses:
        clock.now += seconds
        typing.feed(keys.encode())
    read = []
    while (line := typing.take()) is not None:
        read.append(line)
    assert (read, typing.draft) == (lines, draft)


@all_rows(("rest", "draft"), [("es", "draft"), ("e", "draft"), ("o", "draft"), ("x", "draftx"), ("", "draft")])
def test_unfinished_rest_of_an_answer_is_dropped_at_the_next_question(rest: str, draft: str) -> None:
    times = TypingTimes(Clock())
    typing = Typing(times=times)
    typing.feed(b"draft")
    times.answer()
    typing.begin_after_answer()
    typing.feed(rest.encode())
    typing.drop_rest_of_answer()
    assert typing.draft == draft


def test_an_esc_alone_stops_and_one_of_a_sequence_does_not() -> None:
    typing = Typing()
    assert (typing.feed(b"a\x1b"), typing.in_escape) == ([], True)
    assert (typing.lone_escape(), typing.in_escape) == ([Keyed.STOP], False)
    assert typing.feed(b"\x1b\x1b") == [Keyed.STOP]
    assert typing.lone_escape() == [Keyed.STOP]
    typing.feed(b"\x1b[")
    assert (typing.in_escape, typing.lone_escape()) == (False, [])
    typing.feed(b"A\x1b[200~\x1b")
    assert (typing.in_escape, typing.lone_escape()) == (False, [])


@all_rows(
    ("before", "told", "after"),
    [
        pytest.param(b"\x1b", [Keyed.STOP], b"[A", id="an Esc"),
        pytest.param(b"\x1b[", [], b"[A", id="half a sequence"),
        pytest.param(b"\x1b[200~", [], b"[A", id="a paste"),
        pytest.param(b"\x1b[200~\x1b[20", [], b"[A", id="a paste, and half a sequence"),
        pytest.param(b"\x1b[200~\x1b", [], b"[A", id="a paste, and an Esc"),
        pytest.param(b"\xe6\x97", [], b"[A", id="half a character"),
    ],
)
def test_key_sequences_do_not_continue_after_the_end(before: bytes, told: list[Keyed], after: bytes) -> None:
    """What came before the end is over; what comes after it is all there is of it."""
    typing = Typing()
    typing.feed(before)
    assert typing.end_keys() == told
    assert (typing.in_paste, typing.in_key, typing.end_keys()) == (False, False, [])
    typing.feed(after + b"\r")
    assert typing.take() == "[A"


@all_rows(
    ("raw", "steers", "tab_steers", "with_results", "lines"),
    [
        pytest.param(b"one\rtwo\tthree\r", True, False, ["one", "three"], ["two"], id="Enter steers"),
        pytest.param(b"one\rtwo\tthree\r", True, True, ["two"], ["one", "three"], id="Tab steers"),
        pytest.param(b"one\rtwo\t", False, False, [], ["one", "two"], id="no turn of the model"),
        pytest.param(b"/cost\r  !ls\rone\r", True, False, ["one"], ["/cost", "  !ls"], id="no messages"),
        pytest.param(b"\x1b[Zone\r", True, False, ["one"], ["/mode next"], id="Shift-Tab"),
        pytest.param(b"\x1b[200~!a\n/b\x1b[201~\rone\r", True, False, ["one"], ["!a\n/b"], id="a paste"),
    ],
)  # fmt: skip
def test_key_decides_when_the_model_gets_a_line(
    raw: bytes, steers: bool, tab_steers: bool, with_results: list[str], lines: list[str]
) -> None:
    typing = Typing(is_message=lambda line: line[0] not in "/!", tab_steers=tab_steers)
    typing.steers = steers
    for key in raw.replace(b"\r", b"\r|").replace(b"\t", b"\t|").split(b"|"):
        typing.feed(key[:-1])
        typing.feed(key[-1:])
    assert list(iter(lambda: typing.take(steering=True), None)) == with_results
    assert list(iter(typing.take, None)) == lines


def test_hint_names_both_keys_while_a_message_is_typed() -> None:
    typing = Typing(is_message=lambda line: line[0] not in "/!")
    typing.feed(b"ab")
    assert not typing.standing.keys
    typing.steers = True
    assert list(typing.standing.keys) == list(ENTER_STEERS)
    typing.feed(b"\r")
    assert (list(typing.standing.keys), waiting_text(typing.standing)) == ([], "with the next results: ab")
    typing.feed(b"/cost")
    assert not typing.standing.keys


def test_queued_text_is_bounded() -> None:
    typing = Typing()
    assert typing.feed(b"x\x1b[13u" * MOST_LINES) == []
    assert typing.feed(b"y\r") == [Keyed.DROPPED]
    assert (typing.draft, typing.standing.waiting) == ("", MOST_LINES)  # a draft that stayed would join the next line
    typing = Typing()
    assert typing.feed(b"x" * (MOST_CHARACTERS + 5)) == [Keyed.DROPPED]
    assert len(typing.draft) == MOST_CHARACTERS
    typing.feed(b"\r")
    assert typing.feed(b"z") == [Keyed.DROPPED]
    typing.take()
    assert (typing.feed(b"z"), typing.draft, typing.take_draft(), typing.draft) == ([], "z", "z", "")


def test_queued_and_unfinished_text_is_shown() -> None:
    typing = Typing()
    assert waiting_text(typing.standing) == ""
    typing.feed(b"one\r")
    assert waiting_text(typing.standing) == "queued: one"
    typing.feed(b"two\r")
    assert waiting_text(typing.standing) == "queued (and 1 before): two"
    typing.feed(b"thr")
    assert waiting_text(typing.standing) == "(2 queued) > thr"


# At a pseudo-terminal


PROGRAM = """
import sys, time, os, termios, signal, threading
from harness.terminal.type_ahead import TypeAhead
def out(text):
    try: os.write(1, f"<{text}>\\n".encode())
    except OSError: pass  # hung up
told = [""]
def tell(text, hint):
    told[0] = text
    out(f"tell {text}")
def until(there):
    while not there(): time.sleep(0.01)
def taken():
    while (line := ahead.take()) is None: time.sleep(0.01)
    return line
ahead = TypeAhead(0, tell=tell, stop=lambda: out("stop"))
vars(ahead).update(OPTIONS)
"""
PATIENT = {"paste_seconds": 1000.0, "longest_paste_seconds": 1000.0}
"""A paste does not end by itself, however late its pieces come."""

Play = Callable[..., PlayedTerminal]


@pytest.fixture
def play() -> Iterator[Play]:
    """Start programs, and end them."""
    with ExitStack() as stack:
        yield lambda code, options=PATIENT: stack.enter_context(
            PlayedTerminal([sys.executable, "-c", program(code, options)], columns=200)
        )


def program(code: str, options: Mapping[str, float] = PATIENT) -> str:
    return PROGRAM.replace("OPTIONS", repr(options)) + code


def is_raw(played: PlayedTerminal) -> bool:
    return not played.mode()[3] & (termios.ECHO | termios.ICANON)


def takes_pastes(played: PlayedTerminal) -> bool:
    return played.raw.rfind(b"\x1b[?2004h") > played.raw.rfind(b"\x1b[?2004l")


def begun(played: PlayedTerminal) -> list[object]:
    """Wait for the program, and return how the terminal was before it took it."""
    played.wait_for("<begun>")
    assert is_raw(played)
    return played.mode_before


@pytest.mark.terminal
def test_keys_are_read_and_the_terminal_is_put_back(play: Play) -> None:
    played = play("""
with ahead:
    out("begun")
    out(f"took {taken()}")
    until(lambda: told[0] == "> x\u65e5y")
out(f"draft {ahead.take_draft()}")
sys.stdin.readline()
""")
    before = begun(played)
    assert played.mode()[3] & termios.ISIG
    played.send("hello")
    played.wait_for("<tell > hello>")
    played.send(ENTER)
    played.wait_for("<tell queued: hello>")
    played.wait_for("<took hello>")
    played.send("x\u65e5y")
    played.wait_for("<draft x\u65e5y>")
    assert played.mode() == before
    assert b"<draft" in played.raw.partition(b"> hello")[2]
    assert not takes_pastes(played)


@pytest.mark.terminal
def test_pasted_text_is_one_line(play: Play) -> None:
    played = play("""
with ahead:
    out("begun")
    out(f"took {taken()!r}")
out("ended")
time.sleep(1000)
""")
    begun(played)
    assert takes_pastes(played)
    played.send(paste("one\rtwo\r"))
    played.wait_for("<tell > one\ntwo")
    played.send(ENTER)
    played.wait_for("<took 'one\\ntwo\\n'>")
    played.wait_for("<ended>")
    assert not takes_pastes(played)


@pytest.mark.terminal
def test_a_paste_that_the_end_of_a_turn_cuts_is_still_read_as_one(play: Play) -> None:
    """Else its line ends would be Enter to whoever reads next, and a line of it that begins with `!` a command."""
    played = play("""
with ahead:
    out("begun")
    until(lambda: "one" in told[0])
    out("ending")
out(f"draft {ahead.take_draft()!r}")
line = sys.stdin.readline()
out(f"next {line!r}")
""")
    begun(played)
    played.send(f"{ESC}[200~one\r")
    played.wait_for("<ending>")
    time.sleep(0.1)  # sooner, it is read by the turn itself, and no other thing is seen
    played.send(f"!two\r{ESC}[20")
    time.sleep(0.1)
    played.send("1~")
    played.wait_for("<draft 'one\\n!two\\n'>")
    played.send("three\n")
    played.wait_for("<next 'three\\n'>")


@pytest.mark.terminal
def test_a_paste_without_an_end_is_over_after_a_while(play: Play) -> None:
    """In the turn and after it: Enter and Esc are keys again."""
    played = play(
        """
for turn in (1, 2):
    with ahead:
        out(f"turn {turn}")
        until(lambda: "half" in told[0])
        if turn == 1: out(f"took {taken()!r}")
    out(f"draft {ahead.take_draft()!r}")
with ahead:
    out("turn 3")
    out(f"took {taken()!r}")
    time.sleep(1000)
""",
        {"paste_seconds": 0.4},
    )
    played.wait_for("<turn 1>")
    played.send(f"{ESC}[200~half")
    played.wait_count("<tell > half>", 2)  # when it came, and when it was over
    played.send(" line" + ENTER_KEY)
    played.wait_for("<took 'half line'>")
    played.wait_for("<turn 2>")
    played.send(f"{ESC}[200~half\r")
    played.wait_for("<draft 'half\\n'>")
    played.wait_for("<turn 3>")
    played.send("whole" + ENTER_KEY)
    played.wait_for("<took 'whole'>")
    played.send(ESC)
    played.wait_for("<stop>")


@pytest.mark.terminal
@all_rows(("pauses", "stops"), [(False, 0), (True, 1)])
def test_an_esc_at_the_end_of_a_turn_stops_no_other(play: Play, pauses: bool, stops: int) -> None:
    """Before a question it is for the turn that asks."""
    played = play(
        f"""
with ahead:
    out("begun")
    until(lambda: ahead._typing.in_escape)
    ahead.escape_seconds = 0.05
    if {pauses}:
        with ahead.paused(): out("asking")
with ahead:
    out("next")
    out(f"took {{taken()}}")
""",
        {"escape_seconds": 1000},
    )
    begun(played)
    played.send(f"x{ESC}")
    played.wait_for("<next>")
    played.send(f"y{ENTER}")
    played.wait_for("<took xy>")
    assert played.text().count("<stop>") == stops


@pytest.mark.terminal
def test_esc_alone_stops_the_turn_and_an_arrow_does_not(play: Play) -> None:
    played = play("""
with ahead:
    out("begun")
    time.sleep(1000)
""")
    begun(played)
    played.send(f"{UP}{DOWN}x")
    played.wait_for("<tell > x>")
    assert "stop" not in played.text()
    played.send(ESC)
    played.wait_for("<stop>")


@pytest.mark.terminal
def test_ctrl_c_stays_a_signal_and_an_exception_puts_the_terminal_back(play: Play) -> None:
    played = play("""
try:
    with ahead:
        out("begun")
        time.sleep(1000)
except KeyboardInterrupt:
    out("interrupted")
time.sleep(1000)
""")
    before = begun(played)
    played.send(f"dra{CTRL_C}")
    played.wait_for("<interrupted>")
    assert played.mode() == before


@pytest.mark.terminal
def test_ctrl_backslash_does_not_end_the_program_with_the_terminal_as_it_is(play: Play) -> None:
    played = play("""
with ahead:
    out("begun")
    out(f"took {taken()}")
""")
    before = begun(played)
    played.send(f"a{CTRL_BACKSLASH}b{ENTER}")
    played.wait_for("<took ab>")
    assert played.exit_code() == 0
    assert played.mode() == before


@pytest.mark.terminal
def test_a_question_has_the_terminal_for_itself(play: Play) -> None:
    """While paused, nothing is read; what was typed before stays a draft, and is no answer."""
    played = play("""
with ahead:
    out("begun")
    until(lambda: told[0] == "> yy")
    with ahead.paused():
        out("asking")
        answer = sys.stdin.readline().strip()
        out(f"answer {answer}")
    out("on")
    out(f"took {taken()}")
time.sleep(1000)
""")
    before = begun(played)
    played.send("yy")
    played.wait_for("<asking>")
    assert played.mode() == before
    played.send(f"no{ENTER}")
    played.wait_for("<answer no>")
    played.wait_for("<on>")
    assert is_raw(played)
    played.send(f"z{ENTER}")
    played.wait_for("<took yyz>")


SHELL = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if not pid:
    os.setpgid(0, 0)
    if {foreground}: os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-c", {code!r}])
before = termios.tcgetattr(0)
def read():
    return os.read(0, 100).decode().strip()
def in_foreground():
    os.tcsetpgrp(0, pid)
if not {foreground}:
    read()
    in_foreground()
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpgrp())
    echoes = bool(termios.tcgetattr(0)[3] & termios.ECHO)
    os.write(1, f"<stopped, echo {{echoes}}>\\n".encode())
    if read() == "bg":
        os.killpg(pid, signal.SIGCONT)
        os.write(1, b"<runs>\\n")
        read()
        in_foreground()  # it runs already, and is told nothing
    else:
        in_foreground()
        os.killpg(pid, signal.SIGCONT)
"""
"""What a shell does for one job: Ctrl-Z stops it, lines of input continue it."""
JOB = """
with ahead:
    out("begun")
    out(f"took {taken()}")
out("ended")
"""


def shell_with(code: str, *, foreground: bool = True) -> str:
    return SHELL.format(code=program(code), foreground=foreground)


@pytest.mark.terminal
def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(play: Play) -> None:
    played = play(shell_with(JOB))
    before = begun(played)
    for number, (typed, words) in enumerate([("a", ["fg"]), ("ab", ["bg", "fg"]), ("abc", ["fg"])], 1):
        played.send(typed[-1])
        played.wait_for(f"<tell > {typed}>")
        played.send(CTRL_Z)
        played.wait_count("<stopped, echo True>", number)
        assert played.mode() == before
        for word in words:
            played.send(f"{word}{ENTER}")
            if word == "bg":
                played.wait_for("<runs>")
        played.wait_until(lambda: is_raw(played), "it does not take the terminal again")
    played.send(f"d{ENTER}")
    played.wait_for("<took abcd>")
    played.wait_for("<ended>")
    assert played.mode() == before


@pytest.mark.terminal
def test_a_turn_that_begins_in_the_background_takes_the_terminal_when_it_may(play: Play) -> None:
    played = play(shell_with(JOB, foreground=False))
    before = played.mode_before
    played.wait_for("<begun>")
    assert played.mode() == before
    played.send(f"fg{ENTER}")
    played.wait_until(lambda: is_raw(played), "it does not take the terminal")
    played.send("typed" + ENTER_KEY)
    played.wait_for("<took typed>")
    played.wait_for("<ended>")
    assert played.mode() == before


@pytest.mark.terminal
def test_a_hang_up_ends_the_reading(play: Play) -> None:
    played = play("""
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with ahead:
    out("begun")
    until(lambda: threading.active_count() == 1)
os._exit(7)
""")
    begun(played)
    played.hang_up()
    assert played.exit_code() == 7


@pytest.mark.terminal
def test_idle_type_ahead_uses_no_thread_and_no_time(play: Play) -> None:
    """After a turn nothing is left; while it waits for keys, it takes no time."""
    played = play("""
def used(): t = os.times(); return t.user + t.system
with ahead:
    before = used(); time.sleep(0.7); out(f"idle {used() - before < 0.2}")
out(f"threads {threading.active_count()}")
""")
    played.wait_for("<idle True>")
    played.wait_for("<threads 1>")


def test_missing_terminal_disables_type_ahead() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"y\r")
    told: list[str] = []
    ahead = TypeAhead(reading, tell=lambda text, _: told.append(text), stop=lambda: told.append("stop"))
    with ahead, ahead.paused():
        time.sleep(0.05)  # for a thread that is not there
    assert (ahead.take(), ahead.take_draft(), [text for text in told if text]) == (None, "", [])
    assert os.read(reading, 10) == b"y\r"
    os.close(reading)
    os.close(writing)

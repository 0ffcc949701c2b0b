"""What is typed while a turn runs: kept in order, never an answer, and the terminal is always put back."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from harness.cli.terminal.ahead import TypedAhead, shown
from harness.cli.terminal.typing_ahead import MOST_CHARACTERS, MOST_LINES, Keyed, Typing


def fed(*reads: bytes) -> tuple[list[str], str]:
    """Return the lines and the draft that reads come to."""
    typing = Typing()
    for raw in reads:
        typing.feed(raw)
    lines = []
    while (line := typing.take()) is not None:
        lines.append(line)
    return lines, typing.draft


@pytest.mark.parametrize(
    ("reads", "lines", "draft"),
    [
        pytest.param([b"one\rtwo\rthr"], ["one", "two"], "thr", id="lines in order"),
        pytest.param([b"a\nb\r"], ["a\nb"], "", id="Ctrl-J"),
        pytest.param([b"a\x1b\rb\r"], ["a\nb"], "", id="Alt-Enter"),
        pytest.param([b"\r\r  \r"], [], "  ", id="Enter alone ends nothing"),
        pytest.param([b"ab\x7fc\x08d"], [], "ad", id="backspace"),
        pytest.param([b"abc\x15d"], [], "d", id="Ctrl-U"),
        pytest.param([b"ab cd  \x17e"], [], "ab e", id="Ctrl-W"),
        pytest.param([b"\xe6\x97", b"\xa5", b"\x7f\xc3", b"\xa9"], [], "é", id="UTF-8 over reads"),
        pytest.param([b"a\xffb"], [], "a\ufffdb", id="no UTF-8"),
        pytest.param([b"a\x1b[Ab\x1b[1;5Cc\x1bOPd\x1b[3~"], [], "abcd", id="arrows and function keys do nothing"),
        pytest.param([b"a\x1b", b"[", b"A", b"b"], [], "ab", id="a sequence over reads"),
        pytest.param([b"a\x1bxb"], [], "ab", id="Alt and a letter"),
        pytest.param([b"a\x00\x01\x04\x05b"], [], "ab", id="other controls"),
        pytest.param([b"\x1b[200~a\rb\nc\r\nd\x1b[201~"], [], "a\nb\nc\nd", id="a paste ends no line"),
        pytest.param([b"x \x1b[200~a\ry\r\x1b[201~ z\r"], ["x a\ny\n z"], "", id="a paste within a line"),
        pytest.param([b"\x1b[200~a\x1b[Ab\x7f\x15\x03\x1b[201~c"], [], "abc", id="controls in a paste are dropped"),
        pytest.param([b"\x1b[200~a\x1b", b"[20", b"1~b\r"], ["ab"], "", id="the end of a paste over reads"),
        pytest.param([b"\x1b[200~\x1b[200~a\r\x1b[201~b\r"], ["a\nb"], "", id="a paste in a paste"),
        pytest.param([b"a\tb"], [], "a\tb", id="a tab"),
        pytest.param([b"\x1b[" + b"1" * 100 + b"a"], [], "1" * 37 + "a", id="a sequence without an end"),
    ],
)  # fmt: skip
def test_keys_become_lines(reads: list[bytes], lines: list[str], draft: str) -> None:
    got = fed(*reads)
    assert got == (lines, draft)


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


def test_there_is_an_end_to_what_is_kept() -> None:
    typing = Typing()
    assert typing.feed(b"x\r" * MOST_LINES) == [Keyed.LINE] * MOST_LINES
    assert typing.feed(b"y\r") == [Keyed.DROPPED]
    assert (typing.draft, typing.standing.waiting) == ("y", MOST_LINES)
    typing = Typing()
    assert typing.feed(b"x" * (MOST_CHARACTERS + 5)) == [Keyed.DROPPED]
    assert len(typing.draft) == MOST_CHARACTERS
    typing.feed(b"\r")
    assert typing.feed(b"z") == [Keyed.DROPPED]
    typing.take()
    assert (typing.feed(b"z"), typing.draft, typing.take_draft(), typing.draft) == ([], "z", "z", "")


def test_what_is_shown() -> None:
    typing = Typing()
    assert shown(typing.standing) == ""
    typing.feed(b"one\r")
    assert shown(typing.standing) == "queued: one"
    typing.feed(b"two\r")
    assert shown(typing.standing) == "queued (and 1 before): two"
    typing.feed(b"thr")
    assert shown(typing.standing) == "(2 queued) > thr"


# At a pseudo-terminal


PROGRAM = """
import sys, time, os, termios, signal
from harness.cli.terminal.ahead import TypedAhead
def out(text):
    try: os.write(1, f"<{text}>\\n".encode())
    except OSError: pass  # hung up
ahead = TypedAhead(0, tell=lambda text: out(f"tell {text}"), stop=lambda: out("stop"))
"""


class Played:
    """A program on a pseudo-terminal that is its controlling one."""

    def __init__(self, code: str) -> None:
        self.master, self.slave = pty.openpty()
        launch = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", launch, sys.executable, "-c", PROGRAM + code],
            stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
        )  # fmt: skip
        self.seen = ""

    def wait_for(self, text: str, seconds: float = 15.0) -> None:
        until = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < until, f"no {text!r} in {self.seen!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65_536).decode()
        self.seen = self.seen.partition(text)[2]

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def mode(self) -> list[object]:
        return list(termios.tcgetattr(self.slave))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close_terminal()

    def close_terminal(self) -> None:
        for descriptor in (self.master, self.slave) if self.master >= 0 else ():
            os.close(descriptor)
        self.master = -1


@pytest.fixture
def play() -> Iterator[type[Played]]:
    """Start programs, and end them."""
    made: list[Played] = []

    class Kept(Played):
        def __init__(self, code: str) -> None:
            super().__init__(code)
            made.append(self)

    yield Kept
    for played in made:
        played.close()


def is_raw(mode: list[object]) -> bool:
    flags = mode[3]
    assert isinstance(flags, int)
    return not flags & (termios.ECHO | termios.ICANON)


@pytest.mark.terminal
def test_keys_are_read_and_the_terminal_is_put_back(play: type[Played]) -> None:
    played = play("""
with ahead:
    out("begun")
    while (line := ahead.take()) is None: time.sleep(0.01)
    out(f"took {line}")
    while len(ahead.draft) < 3: time.sleep(0.01)
out(f"draft {ahead.take_draft()}")
sys.stdin.readline()
""")
    before = played.mode()
    played.wait_for("<begun>")
    assert is_raw(played.mode())
    flags = played.mode()[3]
    assert isinstance(flags, int)
    assert flags & termios.ISIG
    played.press("hello")
    played.wait_for("<tell > hello>")
    played.press("\r")
    played.wait_for("<tell queued: hello>")
    played.wait_for("<took hello>")
    played.press("x\u65e5y")
    played.wait_for("<tell > x\u65e5y>")
    played.wait_for("<draft x\u65e5y>")
    assert played.mode() == before
    assert "hello" not in played.seen


@pytest.mark.terminal
def test_what_is_pasted_is_one_line(play: type[Played]) -> None:
    played = play("""
with ahead:
    while (line := ahead.take()) is None: time.sleep(0.01)
    out(f"took {line!r}")
out("ended")
time.sleep(60)
""")
    played.wait_for("\x1b[?2004h")
    played.press("\x1b[200~one\rtwo\r\x1b[201~")
    time.sleep(0.2)
    played.press("\r")
    played.wait_for("<took 'one\\ntwo\\n'>")
    played.wait_for("\x1b[?2004l")
    played.wait_for("<ended>")


@pytest.mark.terminal
def test_esc_alone_stops_the_turn_and_an_arrow_does_not(play: type[Played]) -> None:
    played = play("""
with ahead:
    out("begun")
    time.sleep(60)
""")
    played.wait_for("<begun>")
    played.press("\x1b[A\x1b[Bx")
    played.wait_for("<tell > x>")
    time.sleep(0.2)
    assert "stop" not in played.seen
    played.press("\x1b")
    played.wait_for("<stop>", 2.0)


@pytest.mark.terminal
def test_ctrl_c_stays_a_signal_and_an_exception_puts_the_terminal_back(play: type[Played]) -> None:
    played = play("""
try:
    with ahead:
        out("begun")
        time.sleep(60)
except KeyboardInterrupt:
    out("interrupted")
time.sleep(60)
""")
    before = played.mode()
    played.wait_for("<begun>")
    played.press("dra\x03")
    played.wait_for("<interrupted>")
    assert played.mode() == before


@pytest.mark.terminal
def test_a_question_has_the_terminal_for_itself(play: type[Played]) -> None:
    """While paused, nothing is read; what was typed before stays a draft, and is no answer."""
    played = play("""
with ahead:
    out("begun")
    while len(ahead.draft) < 2: time.sleep(0.01)
    with ahead.paused():
        out("asking")
        answer = sys.stdin.readline().strip()
        out(f"answer {answer}")
    out("on")
    while (line := ahead.take()) is None: time.sleep(0.01)
    out(f"took {line}")
time.sleep(60)
""")
    before = played.mode()
    played.wait_for("<begun>")
    played.press("yy")
    played.wait_for("<asking>")
    assert played.mode() == before
    played.press("no\r")
    played.wait_for("<answer no>")
    played.wait_for("<on>")
    assert is_raw(played.mode())
    played.press("z\r")
    played.wait_for("<took yyz>")


SHELL = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if not pid:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-c", {code!r}])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpgrp())
    echoes = bool(termios.tcgetattr(0)[3] & termios.ECHO)
    os.write(1, f"<stopped, echo {echoes}>\\n".encode())
    os.read(0, 100)
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
"""
"""What a shell does for one job: Ctrl-Z stops it, a line of input continues it."""


@pytest.mark.terminal
def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(play: type[Played]) -> None:
    code = (
        PROGRAM
        + """
with ahead:
    out("begun")
    while (line := ahead.take()) is None: time.sleep(0.01)
    out(f"took {line}")
out("ended")
"""
    )
    played = play(SHELL.replace("{code!r}", repr(code)))
    before = played.mode()
    played.wait_for("<begun>")
    assert is_raw(played.mode())
    for typed in ("a", "ab"):
        played.press(typed[-1])
        played.wait_for(f"<tell > {typed}>")
        played.press("\x1a")
        played.wait_for("<stopped, echo True>")
        assert played.mode() == before
        played.press("fg\r")
        until = time.monotonic() + 5
        while not is_raw(played.mode()) and time.monotonic() < until:
            time.sleep(0.01)
        assert is_raw(played.mode())
    played.press("c\r")
    played.wait_for("<took abc>")
    played.wait_for("<ended>")
    assert played.mode() == before


@pytest.mark.terminal
def test_a_hang_up_ends_the_reading(play: type[Played]) -> None:
    played = play("""
signal.signal(signal.SIGHUP, signal.SIG_IGN)
import threading
with ahead:
    out("begun")
    while threading.active_count() > 1: time.sleep(0.01)
os._exit(7)
""")
    played.wait_for("<begun>")
    played.close_terminal()
    assert played.process.wait(10) == 7


@pytest.mark.terminal
def test_no_thread_and_no_work_while_nothing_runs(play: type[Played]) -> None:
    """After a turn nothing is left; while it waits for keys, it takes no time."""
    played = play("""
import threading
def used(): t = os.times(); return t.user + t.system
with ahead:
    before = used(); time.sleep(1.5); out(f"cpu {used() - before:.2f}")
out(f"threads {threading.active_count()}")
""")
    played.wait_for("<cpu 0.00>")
    played.wait_for("<threads 1>")


def test_without_a_terminal_nothing_happens() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"y\r")
    told: list[str] = []
    ahead = TypedAhead(reading, tell=told.append, stop=lambda: told.append("stop"))
    with ahead, ahead.paused():
        time.sleep(0.05)
    assert (ahead.take(), ahead.draft, [text for text in told if text]) == (None, "", [])
    assert os.read(reading, 10) == b"y\r"
    os.close(reading)
    os.close(writing)

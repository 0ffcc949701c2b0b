"""A question on a pseudo-terminal inside the test's own process: real calls, judged, really shown, answered by keys."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import select
import struct
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Self

import pyte
import pytest

from harness.actions import Action, Effects, ToolUse
from harness.app.policy.judged_call import call_from_outside
from harness.files.baselines import Baselines
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.gate.tool import Tool
from harness.interrupt import Interrupt
from harness.messages import ToolCall
from harness.policy.grant_offers import Offer, offer_for
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict, evaluate
from harness.policy.walls_here import WallsHere
from harness.record import replace
from harness.terminal.approver import TerminalApprover, nothing_to_advise
from harness.terminal.console import Look
from harness.terminal.keys import Event, Keyboard
from harness.terminal.question import Usual
from harness.terminal.screen import Screen
from harness.terminal.typing_times import TypingTimes
from harness.tools.bash import BashTool
from harness.tools.edit_file import EditFileTool
from harness.tools.write_file import WriteFileTool

DEAD = 0.15
SECONDS = 60.0
"""How long the program may take for anything. No test needs it: the seconds of the question itself are played."""
LATE = 0.001
"""Seconds that a wait takes longer than it was told to, as every wait does."""

POLICY = """
version = 1
[tools]
default = "confirm"
readers = true
[sandbox]
network = true
write = ["."]
[[rule]]
id = "push"
decision = "confirm"
argv = ["git", "push"]
reason = "others see it"
match = ["git push origin main"]
not_match = ["git pull"]
"""


class Asked(NamedTuple):
    """A call and what the policy says of it."""

    action: Action
    verdict: Verdict
    policy: Policy

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return what the gate would offer."""
        return offer_for(self.policy, action, verdict, WallsHere(root=action.cwd, confines=True))


def asked(root: str, tool: str, arguments: Mapping[str, object], *, policy: str = POLICY) -> Asked:
    """Return a call of a real tool in the workspace `root`, judged."""
    workspace = Workspace(root)
    baselines = Baselines()
    tools: dict[str, Tool] = {
        "bash": BashTool(workspace),
        "write_file": WriteFileTool(workspace, baselines=baselines),
        "edit_file": EditFileTool(workspace, baselines=baselines),
    }
    call = ToolCall(id="call-1", name=tool, arguments=json.dumps(arguments))
    action = tools[tool].prepare(call, json.loads(call.arguments))
    rules = parse_policy(policy.encode(), "/policies/base.toml")
    return Asked(action, evaluate(rules, action), rules)


def from_outside(root: str, arguments: str, *, policy: str = POLICY, **told: object) -> Asked:
    """Return a call of a tool from outside, judged; `told` is what is known of the tool."""
    use = replace(ToolUse(tool="mcp__srv__do"), **told)
    action = replace(call_from_outside(use, arguments, Workspace(root)), preview=arguments)
    rules = parse_policy(policy.encode(), "/policies/base.toml")
    return Asked(action, evaluate(rules, action), rules)


def command(root: str, line: str, **more: object) -> Asked:
    """Return a command of bash, judged."""
    return asked(root, "bash", {"command": line, **more})


def together(play: Callable[..., None], cases: Mapping[str, tuple[Any, ...]], *, at_once: int = 16) -> None:
    """Play cases at the same time, and name those that fail."""

    def problem(case: tuple[Any, ...]) -> str:
        try:
            play(*case)
        except BaseException as error:  # noqa: BLE001 - it is told below
            return f"{type(error).__name__}: {error}"
        return ""

    with ThreadPoolExecutor(at_once) as threads:
        problems = dict(zip(cases, threads.map(problem, cases.values()), strict=True))
    failed = {name: told for name, told in problems.items() if told}
    assert not failed, failed


def at_once(*cases: tuple[Any, ...]) -> Callable[[Callable[..., None]], Callable[[pytest.FixtureRequest], None]]:
    """Play a test with all these arguments at the same time, behind the fixture that its first parameter names."""

    def of(test: Callable[..., None]) -> Callable[[pytest.FixtureRequest], None]:
        def play(request: pytest.FixtureRequest) -> None:
            subject = request.getfixturevalue(test.__code__.co_varnames[0])
            together(partial(test, subject), {f"{number} {case!r}": case for number, case in enumerate(cases)})

        play.__name__, play.__doc__ = test.__name__, test.__doc__
        return play

    return of


class PlayedTime:
    """The time of a question: it passes only when the test lets it, and what was sent before is always seen first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._now = 1000.0
        self._until = math.inf
        self._waits = self._counts = self._over = self._flies = False

    def monotonic(self) -> float:
        """Return what time it is."""
        with self._changed:
            return self._now

    # What the question does.

    def readable(self, descriptors: Sequence[int], seconds: float | None, *, counts: bool) -> Sequence[int]:
        """Wait for keys as `select` does; `counts` says whether one that comes now is looked at."""
        with self._changed:
            until = math.inf if seconds is None else self._now + seconds
            while True:
                ready = select.select(descriptors, [], [], 0)[0]
                if ready or self._now >= until or (self._flies and until < math.inf):
                    self._waits = False
                    return ready
                self._until, self._counts, self._waits = until, counts, True
                self._changed.notify_all()
                self._changed.wait()

    def end(self) -> None:
        """The question has its answer."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    # What the test does.

    @contextmanager
    def earlier(self, seconds: float) -> Iterator[None]:
        """Let it be earlier within the block, before the question is put."""
        self._now -= seconds
        yield
        self._now += seconds

    @property
    def is_over(self) -> bool:
        return self._over

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change what the question waits for: it looks again."""
        with self._changed:
            yield
            self._waits = False
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until the question waits, having read all that was sent, or has its answer."""
        with self._changed:
            waits = self._changed.wait_for(lambda: self._waits or self._over, SECONDS)
            assert waits, "the question does something else"

    def until_keys_count(self) -> None:
        """Let time pass until the question waits for a key, or has its answer."""
        with self._changed:
            self.settle()
            while not self._counts and not self._over:
                self._pass_wait()

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        with self._changed:
            end = self._now + seconds
            self.settle()
            while self._until <= end and not self._over:
                self._pass_wait()
            self._now = max(self._now, end)

    def fly(self) -> None:
        """From now on let no wait for something else than a key take time."""
        with self.changing():
            self._flies = True

    def _pass_wait(self) -> None:
        with self.changing():
            self._now = self._until + LATE
        self.settle()


class WatchedKeyboard(Keyboard):
    """A keyboard that waits by a time that is played."""

    def __init__(self, time: PlayedTime, descriptor: int, **more: Any) -> None:
        super().__init__(descriptor, monotonic=time.monotonic, readable=self._waited, **more)
        self._time = time
        self._resting = False

    def rest(self, seconds: float) -> Event | None:
        self._resting = True
        try:
            return super().rest(seconds)
        finally:
            self._resting = False

    def _waited(self, descriptors: Sequence[int], seconds: float | None) -> Sequence[int]:
        begins = len(descriptors) > 1  # for the terminal alone it waits when something may follow a key
        return self._time.readable(descriptors, seconds, counts=begins and not self._resting)


class Played:
    """A question that is put, on a terminal with an emulator at its other end; its seconds pass when the test lets them."""

    def __init__(
        self,
        about: Asked,
        *,
        columns: int = 80,
        lines: int = 24,
        look: Look | None = None,
        environment: Mapping[str, str] | None = None,
        offer: Callable[[Action, Verdict], Offer | str] | None = None,
        advise: Callable[[Action, Verdict], str] = nothing_to_advise,
        usual: Usual = Usual(),  # noqa: B008 - it never changes
        dead_seconds: float = DEAD,
        noisy_seconds: float = 5.0,
        emulate: bool = True,
        typed: float | None = None,
        answered: float | None = None,
    ) -> None:
        """`typed` and `answered` are the seconds since the person typed text, and answered a question before."""
        self._about = about
        self.master, self.slave = os.openpty()
        self.resize(columns, lines, emulator=False)
        self.screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=0.5)
        self._emulator = pyte.ByteStream(self.screen) if emulate else None
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.time = PlayedTime()
        self.times = TypingTimes(self.time.monotonic)
        for seconds, note in ((typed, self.times.type), (answered, self.times.answer)):
            if seconds is not None:
                with self.time.earlier(seconds):
                    note()
        self.raw = b""
        self.approval: Approval | None = None
        self.problem: BaseException | None = None
        self.interrupt = Interrupt()
        self.modes = termios.tcgetattr(self.slave)
        self.suspended = 0
        self.meanwhile = ""
        """What the shell writes while the program is suspended."""
        self._stream = open(self.slave, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        look = look or Look(colour=True, repaints=True)
        self.approver = self._approver(look, environment, offer, advise, usual, dead_seconds, noisy_seconds)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._worker = threading.Thread(target=self._ask, daemon=True)
        self._reader.start()

    def _approver(
        self,
        look: Look,
        environment: Mapping[str, str] | None,
        offer: Callable[[Action, Verdict], Offer | str] | None,
        advise: Callable[[Action, Verdict], str],
        usual: Usual,
        dead_seconds: float,
        noisy_seconds: float,
    ) -> TerminalApprover:
        def suspend() -> None:
            self.suspended += 1
            os.write(self.slave, self.meanwhile.encode())

        def keyboard(source: int, brackets: Callable[[str], None], on_return: Callable[[], None]) -> Keyboard:
            return WatchedKeyboard(
                self.time,
                source,
                brackets=brackets,
                on_return=on_return,
                suspend=suspend,
                noisy_seconds=noisy_seconds,
            )

        self.console = Screen(self._stream, look, size=self.size)
        return TerminalApprover(
            self.console,
            self.interrupt,
            _confined,
            environment=environment or {"PATH": os.defpath},
            offer=offer or self._about.offer,
            advise=advise,
            usual=lambda: usual,
            dead_seconds=dead_seconds,
            descriptors=(self.slave, self.slave),
            keyboard_of=keyboard,
            times=self.times,
            monotonic=self.time.monotonic,
        )

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker.is_alive():
            self.interrupt.request_later()
            self.time.fly()
            self.time.settle()  # a paste without an end is over; until then Ctrl-C is text
            self.send("\x03")
            self._worker.join(SECONDS)
        alive = self._worker.is_alive()
        self._stopped.set()
        self._reader.join(SECONDS)
        for stream in {self._stream, self.console._stream}:
            try:
                stream.close()
            except OSError:
                pass
        self._drain()
        for descriptor in (self.slave, self.master):
            if descriptor >= 0:
                os.close(descriptor)
        self.slave = self.master = -1
        assert not alive, "the question does not end"

    def size(self) -> tuple[int, int]:
        try:
            lines, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(self.slave, termios.TIOCGWINSZ, b"\0" * 8))
        except OSError:
            return 80, 24
        return columns, lines

    def resize(self, columns: int, lines: int, *, emulator: bool = True) -> None:
        if emulator:
            with self._lock:
                self.screen.resize(lines, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def send(self, keys: str | bytes) -> None:
        """Press keys, all of them at once."""
        with self.time.changing():
            try:
                os.write(self.master, keys.encode() if isinstance(keys, str) else keys)
            except OSError:
                pass

    def press(self, key: str) -> None:
        """Press a key alone, after a time in which the question is alive."""
        self.rest()
        self.send(key)

    def rest(self) -> None:
        """Let time pass until keys count again, or the question has its answer."""
        self.time.until_keys_count()

    def go_on(self, seconds: float) -> None:
        """Let so much time pass."""
        self.time.go_on(seconds)

    def hang_up(self, last: str = "") -> None:
        """Close the other end, right behind a last key: when nobody waits on it any more, which would keep it open."""
        self._stopped.set()
        self._reader.join(SECONDS)
        with self.time.changing():
            self.send(last)
            os.close(self.master)
            self.master = -1

    def answer(self) -> Approval:
        self.rest()
        if self.problem is not None:
            raise self.problem
        assert self.approval is not None, f"no answer\n{self.text()}"
        return self.approval

    @property
    def is_open(self) -> bool:
        """Whether the question still has no answer, once the next key would count."""
        self.rest()
        return not self.time.is_over

    def rows(self) -> list[str]:
        """Return the rows of all that was written until the question waited."""
        self.time.settle()
        self._drain()
        with self._lock:
            columns = self.screen.columns
            top = ["".join(line[x].data for x in range(columns)) for line in self.screen.history.top]
            return [row.rstrip() for row in (*top, *self.screen.display)]

    def text(self) -> str:
        return "\n".join(self.rows())

    def key_line(self) -> str:
        """Return the line that the cursor stands on."""
        self.time.settle()
        self._drain()
        with self._lock:
            return str(self.screen.display[self.screen.cursor.y]).rstrip()

    def wait_for(self, text: str) -> None:
        """See that `text` was written, or is before the next key counts."""
        if text not in self.text():
            self.rest()
            assert text in self.text(), f"{text!r} did not come\n{self.text()}"
        assert self.problem is None, repr(self.problem)

    def written(self) -> bytes:
        """Return all that was written until the question waited."""
        self.time.settle()
        self._drain()
        return self.raw

    def shown(self) -> str:
        """Return all that was ever written, without sequences and line ends: an answered question is taken back."""
        return " ".join(re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", self.written().decode("utf-8", "replace")).split())

    def _ask(self) -> None:
        try:
            self.approval = self.approver(self._about.action, self._about.verdict)
        except BaseException as error:  # noqa: BLE001 - the test tells it
            self.problem = error
        finally:
            self.time.end()

    def _read(self) -> None:
        """Read while the question writes, which would wait for room otherwise."""
        while not self._stopped.is_set():
            try:
                select.select([self.master], [], [], 0.05)
            except (OSError, ValueError):
                return
            if not self._drain():
                return

    def _drain(self) -> bool:
        """Draw what has been written; return whether more can come."""
        with self._lock:
            try:
                while select.select([self.master], [], [], 0)[0]:
                    data = os.read(self.master, 65536)
                    if not data:
                        return False
                    self.raw += data
                    if self._emulator is not None:
                        self._emulator.feed(data)
            except (OSError, ValueError):
                return False
        return True


def _confined(tool: str, effects: Effects) -> str:
    return "kernel"

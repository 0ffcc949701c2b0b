"""The resident process that answers events: it answers as a process of its own would, and whatever happens to it refuses.

An event that it did not answer shows by its modules: the client alone loads none of the gate.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from hook_process import Hooked, is_refusal
from hook_scene import word_of
from places import ROOT
from program import Done, Program, made_program
from rows import all_rows

from harness import shipped
from harness.plugins.agents.commands.resident import MOST_IDLE
from harness.plugins.agents.guarded_agent import HookAnswer
from harness.plugins.agents.resident_client import COMMANDS, GREETING, NUMBER, WAITS, WORKS, socket_path, surroundings
from harness.sandbox import probe, why_no_namespaces

pytestmark = pytest.mark.skipif(
    surroundings("self") is None, reason="these processes are confined, or without namespaces: no resident serves them"
)
QUICK = [sys.executable, "-I", "-S", "-X", "importtime"]
MANY = 40
LONGEST = 120.0
"""Maximum seconds until a process has ended or answered."""
OTHER_USER = 65_534


class Answered(NamedTuple):
    """A finished client."""

    done: Done
    by_resident: bool
    modules: frozenset[str]
    """Those that the client loaded."""


class Residing(Hooked):
    """A workspace whose agent starts the hook as `harness hook install` writes it."""

    def __init__(self, program: Program, runtime: str, main: Path = Path(ROOT, "harness", "__main__.py")) -> None:
        super().__init__(program)
        self.main = str(main)
        self.runtime = Path(runtime)
        self.environment["XDG_RUNTIME_DIR"] = runtime

    @property
    def raw_environment(self) -> dict[bytes, bytes]:
        """The environment as bytes."""
        return {os.fsencode(name): os.fsencode(value) for name, value in self.environment.items()}

    @property
    def socket(self) -> Path | None:
        """The socket of the resident, if there is one."""
        names = os.listdir(self.runtime / "harness") if (self.runtime / "harness").exists() else []
        return next((self.runtime / "harness" / name for name in names if "." not in name), None)

    @property
    def pid(self) -> int:
        """The process that listens at the socket."""
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(self.socket))
            pid = int.from_bytes(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
            assert link.recv(1) == GREETING
            served = children(pid)
        until(lambda: len(children(pid)) < len(served))  # that of this connection has ended
        return pid

    def begin(self, data: bytes, *words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a client with an event as its input."""
        reads, writes = os.pipe()
        os.write(writes, data)
        os.close(writes)
        process = subprocess.Popen(
            [*QUICK, self.main, "hook", "claude", *words],
            env=self.environment if environment is None else environment,
            cwd=self.workspace,
            stdin=reads,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(reads)
        return process

    def ask(self, data: bytes, *words: str, environment: dict[str, str] | None = None) -> Answered:
        """Have an event answered."""
        return answered(self.begin(data, *words, environment=environment))

    def settle(self) -> int:
        """Have a resident started, wait until it listens, and return its number."""
        assert self.ask(self.event(use_id="first")).done.code == 0
        until(lambda: self.socket)
        return self.pid


def answered(process: subprocess.Popen[bytes]) -> Answered:
    out, err = process.communicate(timeout=LONGEST)
    lines = err.decode().splitlines(keepends=True)
    imports = [line for line in lines if line.startswith("import time:")]
    modules = frozenset(line.rpartition("|")[2].strip() for line in imports)
    said = "".join(line for line in lines if not line.startswith("import time:"))
    gate = "harness.plugins.agents.guarded_agent" in modules
    return Answered(Done(process.returncode, out.decode(), said), by_resident=not gate, modules=modules)


def word_in(done: Done) -> str:
    """Return the decision of an answer in one word."""
    return word_of(HookAnswer(stdout=done.out, stderr=done.err, code=done.code))


@contextmanager
def short_folder() -> Iterator[str]:
    """Yield a folder with a short path, as the one of sockets is. The resident there ends with it."""
    folder = tempfile.mkdtemp(prefix="h-", dir="/tmp")
    try:
        yield folder
    finally:
        for process in processes(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(folder)


def processes(folder: str) -> list[int]:
    """Return the residents whose socket is in this folder, and the processes of their events."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if b"resident" in words and any(word.startswith(f"{folder}/".encode()) for word in words):
                found.append(int(name))
    return found


def new_residing(tmp_path: Path) -> Iterator[Residing]:
    with short_folder() as folder:
        for program in made_program(tmp_path):
            yield Residing(program, folder)


@pytest.fixture
def residing(program: Program) -> Iterator[Residing]:
    with short_folder() as folder:
        yield Residing(program, folder)


def until(holds: Callable[[], object]) -> None:
    """Wait for a state, at most LONGEST seconds."""
    end = time.monotonic() + LONGEST
    while not holds():
        assert time.monotonic() < end, "the awaited state did not come"
        time.sleep(0.005)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def waiting_child(residing: Residing, pid: int) -> int:
    """Wait until a process of the resident `pid` waits for the session, and return its number."""
    lock = str(residing.session / "lock")
    found = []

    def is_waiting() -> bool:
        for child in children(pid):
            with suppress(OSError):
                names = os.listdir(f"/proc/{child}/fd")
                if lock in [os.readlink(f"/proc/{child}/fd/{name}") for name in names]:
                    found.append(child)
        return bool(found)

    until(is_waiting)
    return found[0]


@contextmanager
def held(residing: Residing) -> Iterator[None]:
    """Hold the session, so that its next event waits."""
    with (residing.session / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- it answers -----------------------------------------------------------------------------------------------------


def test_the_first_event_starts_a_resident_that_answers_the_next_ones(residing: Residing) -> None:
    first = residing.ask(residing.event(use_id="c0"))
    assert (first.done.code, first.by_resident) == (0, False)
    until(lambda: residing.socket)
    for number, (command, word) in enumerate((("ls", "allow"), ("touch made", "ask"), ("cat .env", "deny")), start=1):
        answer = residing.ask(residing.event(command=command, use_id=f"c{number}"))
        assert (word_in(answer.done), answer.by_resident) == (word, True), answer
    answer = residing.ask(residing.event("PostToolUse", use_id="c1"))
    assert answer.by_resident
    agents = "harness.plugins.agents"
    ours = {name for name in answer.modules if name.startswith("harness")}
    assert ours == {"harness", "harness.plugins", agents, f"{agents}.resident_client"}
    assert answer.modules.isdisjoint({"os", "site", "socket"})
    assert [record["call"] for record in residing.records() if record["kind"] == "decision"] == [1, 2, 3, 4]
    assert residing.socket is not None
    assert (residing.socket.stat().st_mode & 0o777, residing.socket.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_an_event_is_answered_in_the_surroundings_of_its_client(residing: Residing, tmp_path: Path) -> None:
    residing.settle()
    folder, secret = tmp_path / "other", "Zk3vQ9" * 6
    folder.mkdir()
    (folder / ".git").mkdir()
    own = {
        **residing.environment,
        "CLAUDE_PROJECT_DIR": str(folder),
        "XDG_STATE_HOME": str(tmp_path),
        "A_TOKEN": secret,
    }
    event = residing.event(command=f"echo {secret}", session_id="T", cwd=str(folder))
    answer = residing.ask(event, "--policy", "readonly", environment=own)
    assert answer.by_resident
    (path,) = tmp_path.glob("harness/sessions/*/*.jsonl")
    assert f'"workspace":"{folder}"' in path.read_text().replace(" ", "")
    assert secret not in path.read_text()
    assert "readonly.toml" in path.read_text()
    assert residing.ask(residing.event(use_id="c2")).done.code == 0
    assert len(residing.program.logs()) == 1


def test_forty_events_at_once_of_many_sessions_get_their_own_answers(residing: Residing, tmp_path: Path) -> None:
    residing.settle()
    commands = ["echo {}", "touch made{}", "cat .env{}"]
    begun = []
    for number in range(MANY):
        state = tmp_path / f"state{number % 8}"
        own = {**residing.environment, "XDG_STATE_HOME": str(state)}
        command = commands[number % 3].format("" if number % 3 == 2 else number)
        begun.append(residing.begin(residing.event(command=command, use_id=f"c{number}"), environment=own))
    for number, process in enumerate(begun):
        answer = answered(process)
        assert answer.by_resident
        if number % 3 == 2:
            assert word_in(answer.done) == "deny"
            continue
        command = json.loads(answer.done.out)["hookSpecificOutput"]["updatedInput"]["command"]
        assert command.endswith(f"{commands[number % 3].format(number)}'"), (number, command)
    for number in range(8):
        (path,) = (tmp_path / f"state{number}").glob("harness/sessions/*/*.jsonl")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        asked = {record["id"] for record in records if record["kind"] == "call_proposed"}
        assert asked == {f"c{at}" for at in range(number, MANY, 8)}


def test_the_command_of_an_answer_runs_by_the_quick_start(residing: Residing) -> None:
    residing.settle()
    for number, command in enumerate(("cat f.txt", "touch made"), start=2):
        answer = residing.ask(residing.event(command=command, use_id=f"c{number}"))
        assert answer.by_resident
        line = json.loads(answer.done.out)["hookSpecificOutput"]["updatedInput"]["command"]
        assert f" -I -S {residing.main} exec --ticket " in line
        done = subprocess.run(
            ["sh", "-c", line], env=residing.environment, cwd=residing.workspace, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b""), done
        assert done.stdout == (b"alpha\n" if number == 2 else b"")
        assert residing.ask(residing.event("PostToolUse", command=line, use_id=f"c{number}")).by_resident
    assert (residing.workspace / "made").exists()
    assert residing.outcomes() == {2: ("ok", 0), 3: ("ok", 0)}


def test_events_of_one_environment_share_a_process_and_those_of_another_get_theirs(residing: Residing) -> None:
    pid = residing.settle()
    other = {**residing.environment, "OTHER": "1"}
    served: list[list[int]] = []
    for number, environment in enumerate([residing.environment, other] * 3, start=2):
        assert residing.ask(residing.event(use_id=f"c{number}"), environment=environment).by_resident
        until(lambda: len(children(pid)) == min(len(served) + 1, 2))
        served.append(children(pid))
    assert served[1:] == [served[1]] * 5
    for child in served[1]:
        names = os.listdir(f"/proc/{child}/fd")
        files = {os.readlink(f"/proc/{child}/fd/{name}").partition(":")[0] for name in names}
        assert files == {"/dev/null", "socket"}, files
        assert os.readlink(f"/proc/{child}/cwd") == "/"


def test_sessions_of_one_environment_get_their_own_tickets_and_folders(residing: Residing, tmp_path: Path) -> None:
    pid = residing.settle()
    folders = [residing.workspace, tmp_path / "other"]
    (folders[1] / ".git").mkdir(parents=True)
    environment = {name: value for name, value in residing.environment.items() if name != "CLAUDE_PROJECT_DIR"}
    tickets: list[tuple[str, str]] = []
    for number in range(6):
        event = residing.event(use_id=f"c{number}", session_id=f"S{number % 2}", cwd=str(folders[number % 2]))
        answer = residing.ask(event, environment=environment)
        assert answer.by_resident
        line = json.loads(answer.done.out)["hookSpecificOutput"]["updatedInput"]["command"]
        session, _, name = line.partition("--ticket ")[2].split()[0].rpartition(".")
        tickets.append((session, name))
        until(lambda: len(children(pid)) == 1)
    assert len({session for session, _ in tickets[::2]}) == len({session for session, _ in tickets[1::2]}) == 1
    assert len(set(tickets)) == 6
    agents = Path(residing.environment["XDG_STATE_HOME"], "harness", "agents")
    for number, (session, name) in enumerate(tickets):
        stored = json.loads((agents / session / "tickets" / name).read_text())
        assert stored["cwd"] == str(folders[number % 2])


@pytest.mark.skipif(bool(why_no_namespaces(probe())), reason="this machine gives commands no namespaces")
def test_event_that_leaves_a_child_ends_its_process(residing: Residing) -> None:
    pid = residing.settle()
    assert residing.ask(residing.event(command="cat .env", use_id="c2")).by_resident  # starts a keeper
    until(lambda: not children(pid))
    assert residing.ask(residing.event(command="cat .env", use_id="c3")).by_resident  # knows that there are namespaces
    until(lambda: len(children(pid)) == 1)


def test_idle_processes_are_few(residing: Residing) -> None:
    pid = residing.settle()
    for number in range(MOST_IDLE + 2):
        own = {**residing.environment, "OTHER": str(number)}
        assert residing.ask(residing.event(use_id=f"c{number + 2}"), environment=own).by_resident
    until(lambda: len(children(pid)) == MOST_IDLE)


def test_process_refuses_an_event_with_another_environment(residing: Residing) -> None:
    residing.settle()
    words = [sys.executable, "-I", "-S", "-c", OTHERWISE, str(ROOT)]
    codes = [
        subprocess.run(
            [*words, name],
            input=residing.event(use_id=name),
            env=residing.environment,
            capture_output=True,
            check=False,
        )
        for name in ("", "OTHER")
    ]
    assert [done.returncode for done in codes] == [0, 2]
    assert (codes[1].stdout, b"another environment" in codes[1].stderr) == (b"", True), codes[1]


def test_a_client_with_a_closed_stream_is_refused(residing: Residing) -> None:
    residing.settle()
    line = 'exec "$0" "$@" <&-'
    words = ["bash", "-c", line, *QUICK, residing.main, "hook", "claude"]
    done = subprocess.run(words, env=residing.environment, cwd=residing.workspace, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_commands_of_a_user_are_not_sent_to_the_resident(residing: Residing) -> None:
    assert set(COMMANDS) == {name.removeprefix("hook ") for name in shipped.COMMANDS if name.startswith("hook ")}
    residing.settle()
    words = [sys.executable, "-I", "-S", residing.main, "hook"]
    for command, code in (("status", 0), ("clod", 2)):
        done = subprocess.run([*words, command], env=residing.environment, capture_output=True, check=False)
        assert (done.returncode, bool(done.stdout), bool(done.stderr)) == (code, not code, bool(code))


OTHERWISE = """
import os, sys
sys.path.append(sys.argv[1])
from harness.plugins.agents.resident_client import exit_code
environment = {**os.environb, **({sys.argv[2].encode(): b"1"} if sys.argv[2] else {})}
os._exit(exit_code(["hook", "claude"], environment))
"""
"""A client that tells of another environment than its own."""


def status_line(residing: Residing) -> str:
    """The line of `hook status` on the resident."""
    words = [sys.executable, "-I", "-S", residing.main, "hook", "status", "claude"]
    done = subprocess.run(
        words, env=residing.environment, cwd=residing.workspace, capture_output=True, check=False, text=True
    )
    return next(line for line in done.stdout.splitlines() if line.startswith("resident: "))


def test_status_says_whether_a_resident_answers(residing: Residing) -> None:
    words = [sys.executable, "-I", "-S", residing.main, "hook", "install", "claude", "--yes"]
    subprocess.run(words, env=residing.environment, cwd=residing.workspace, capture_output=True, check=True)
    assert status_line(residing) == "resident: not running; the next event starts it"
    pid = residing.settle()
    assert status_line(residing) == f"resident: process {pid} answers"
    os.kill(pid, signal.SIGSTOP)
    until(lambda: surroundings(str(pid)) is None)
    assert status_line(residing) == f"resident: process {pid} is stopped or not ours, so each event takes longer"
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid))
    assert status_line(residing) == "resident: not running; the next event starts it"


WARM = """
import os, sys
sys.path.append(sys.argv.pop(1))
from harness.plugins.agents.commands import each_call, resident
resident.warm()
known, leave = set(sys.modules), os._exit
def tell(code):
    os.write(2, "\\n".join(set(sys.modules) - known).encode())
    leave(0)
os._exit = tell
each_call.start_for_agent(sys.argv[1:], os.environ)
"""
"""A process that has loaded what the resident loads, and tells what an event loads besides."""


@all_rows(
    "event,tool,arguments",
    {
        "a command": ("PreToolUse", "Bash", {"command": "ls | head -3 && git status"}),
        "a command that writes": ("PreToolUse", "Bash", {"command": "touch made"}),
        "a command that is refused": ("PreToolUse", "Bash", {"command": "cat .env"}),
        "a file": ("PreToolUse", "Read", {"file_path": "f.txt"}),
        "a change": ("PreToolUse", "Edit", {"file_path": "f.txt", "old_string": "alpha", "new_string": "beta"}),
        "an outcome": ("PostToolUse", "Read", {"file_path": "f.txt"}),
    },
)
def test_the_resident_has_loaded_what_an_event_needs(
    event: str, tool: str, arguments: dict[str, str], residing: Residing
) -> None:
    residing.hook(residing.event(use_id="first"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", WARM, str(ROOT), "hook", "claude"],
        input=residing.event(event, tool_name=tool, tool_input=arguments),
        env=residing.environment,
        cwd=residing.workspace,
        capture_output=True,
        check=True,
    )
    late = [
        line for line in done.stderr.decode().splitlines() if line.startswith(("harness", "json", "ctypes", "tomllib"))
    ]
    assert late == []


# --- it fails -------------------------------------------------------------------------------------------------------


def test_killed_resident_loses_nothing_and_another_begins(residing: Residing) -> None:
    pid = residing.settle()
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid))
    answer = residing.ask(residing.event(use_id="c2"))
    assert (answer.done.code, answer.by_resident) == (0, False)
    until(lambda: len(processes(str(residing.runtime))) == 1)
    until(lambda: residing.ask(residing.event("PostToolUse", use_id="none")).by_resident)
    assert residing.pid != pid
    assert [record["call"] for record in residing.records() if record["kind"] == "decision"] == [1, 2]


@all_rows("number", [signal.SIGKILL, signal.SIGTERM], anew={"residing": new_residing})
def test_resident_that_is_killed_while_it_decides_refuses(number: int, residing: Residing) -> None:
    pid = residing.settle()
    with held(residing):
        process = residing.begin(residing.event(use_id="c2"))
        child = waiting_child(residing, pid)
        os.kill(pid, number)
        answer = answered(process)
        until(lambda: is_gone(child))
    assert (answer.by_resident, is_refusal(answer.done)) == (True, True), answer
    assert residing.ask(residing.event(use_id="c3")).done.code == 0
    residing.records()


def test_event_process_that_is_killed_refuses_its_call_alone(residing: Residing) -> None:
    pid = residing.settle()
    with held(residing):
        process = residing.begin(residing.event(use_id="c2"))
        os.kill(waiting_child(residing, pid), signal.SIGKILL)
        answer = answered(process)
    assert (answer.by_resident, is_refusal(answer.done)) == (True, True), answer
    answer = residing.ask(residing.event(use_id="c3"))
    assert (answer.done.code, answer.by_resident, residing.pid) == (0, True, pid)


def test_stopped_event_process_is_replaced(residing: Residing) -> None:
    pid = residing.settle()
    assert residing.ask(residing.event(use_id="c2")).by_resident
    (stopped,) = children(pid)
    os.kill(stopped, signal.SIGSTOP)
    until(lambda: surroundings(str(stopped)) is None)
    answer = residing.ask(residing.event(use_id="c3"))
    assert (answer.done.code, answer.by_resident) == (0, True)
    assert stopped not in children(pid)


def test_event_that_waits_says_so_to_its_client(residing: Residing) -> None:
    residing.settle()
    fields = [b"18", b"2", b"hook", b"claude", *(b"%b=%b" % pair for pair in residing.raw_environment.items())]
    body = b"\0".join(fields)
    with held(residing), socket.socket(socket.AF_UNIX) as link, ExitStack() as opened:
        reads, writes = os.pipe()
        os.write(writes, residing.event(use_id="c2"))
        os.close(writes)
        null = opened.enter_context(open(os.devnull, "r+b"))
        streams = [opened.enter_context(open(reads, "rb")).fileno(), null.fileno(), null.fileno()]
        folder = os.open(residing.workspace, os.O_PATH)
        link.settimeout(LONGEST)
        link.connect(str(residing.socket))
        assert link.recv(1) == GREETING
        socket.send_fds(link, [len(body).to_bytes(NUMBER, "big") + body], [*streams, folder])
        os.close(folder)
        assert link.recv(1) == WAITS
        link_after = link.dup()
    with link_after:
        assert [link_after.recv(1) for _ in range(2)] == [WORKS, b"\0"]


def test_event_process_ends_with_its_client(residing: Residing) -> None:
    pid = residing.settle()
    with held(residing):
        process = residing.begin(residing.event(use_id="c2"))
        child = waiting_child(residing, pid)
        process.kill()
        process.communicate()
        until(lambda: is_gone(child) and child not in children(pid))
    assert residing.ask(residing.event(use_id="c3")).by_resident


def test_resident_gets_signals_that_the_first_agent_ignores_or_blocks(residing: Residing) -> None:
    words = [sys.executable, "-c", DEAF, *QUICK, residing.main, "hook", "claude"]
    subprocess.run(
        words, input=residing.event(), env=residing.environment, cwd=residing.workspace, capture_output=True, check=True
    )
    until(lambda: residing.socket)
    answer = residing.ask(residing.event(use_id="c2"))
    assert (answer.done.code, answer.by_resident) == (0, True)
    assert "SigBlk:\t0000000000000000\n" in Path(f"/proc/{residing.pid}/status").read_text()


def test_stopped_resident_is_passed_by(residing: Residing) -> None:
    pid = residing.settle()
    os.kill(pid, signal.SIGSTOP)
    until(lambda: surroundings(str(pid)) is None)  # so that no client waits for a greeting
    answer = residing.ask(residing.event(use_id="c2"))
    assert (answer.done.code, answer.by_resident) == (0, False)
    os.kill(pid, signal.SIGCONT)
    assert residing.ask(residing.event(use_id="c3")).by_resident
    decided = [record["call"] for record in residing.records() if record["kind"] == "decision"]
    assert decided == [1, 2, 3]


CLIENT = """
import os, sys
sys.path.append(sys.argv[1])
from harness.plugins.agents.guarded_agent import HookAnswer
from harness.plugins.agents.resident_client import exit_code
code = exit_code(["hook", "claude"], os.environb, greeting_seconds=float(sys.argv[2]), silent_seconds=float(sys.argv[2]))
os._exit(99 if code is None else code)
"""
NOT_ANSWERED = 99


@all_rows(
    "says,seconds,code",
    {
        "nothing": ((), "0.2", NOT_ANSWERED),
        "its end": ((b"",), "300", NOT_ANSWERED),
        "another greeting": ((b"-",), "300", NOT_ANSWERED),
        "its end instead of an answer": ((GREETING, b""), "300", 2),
        "nothing after the greeting": ((GREETING,), "0.2", 2),
        "that it may": ((GREETING, b"\0"), "300", 0),
        "that it waits, and that it may": ((GREETING + WAITS, None, b"\0"), "0.2", 0),
        "that it waits and goes on, and nothing more": ((GREETING + WAITS, None, WORKS), "0.2", 2),
    },
    anew={"residing": new_residing},
)
def test_client_refuses_whatever_fails_after_the_greeting(
    says: tuple[bytes | None, ...], seconds: str, code: int, residing: Residing
) -> None:
    """`None` is a wait of more than `seconds`."""
    here = surroundings("self")
    assert here is not None
    path = socket_path(residing.raw_environment, here)
    os.mkdir(os.path.dirname(path), mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CLIENT, str(ROOT), seconds],
            env=residing.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        link, _ = listener.accept()
        with link:
            for data in says:
                if data is None:
                    time.sleep(2 * float(seconds))
                    continue
                link.sendall(data)
                if data.startswith(GREETING):
                    assert link.recv(1 << 16)
            if b"" in says:
                link.shutdown(socket.SHUT_RDWR)
            out, err = process.communicate(timeout=LONGEST)
    assert (process.returncode, out) == (code, b""), err
    assert (b"harness refuses" in err) is (code == 2)


def test_client_waits_at_no_full_queue(residing: Residing) -> None:
    ours = surroundings("self")
    assert ours is not None
    path = socket_path(residing.raw_environment, ours)
    os.mkdir(os.path.dirname(path), mode=0o700)
    with ExitStack() as waiting, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        with suppress(BlockingIOError):
            while True:
                link = waiting.enter_context(socket.socket(socket.AF_UNIX))
                link.setblocking(False)
                link.connect(path)
        answer = residing.ask(residing.event())
    assert (answer.done.code, answer.by_resident) == (0, False)


def test_resident_without_a_socket_ends(residing: Residing) -> None:
    path = residing.runtime / "s"
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", IDLE, str(ROOT), str(path), "300", "0.05"])
    until(path.exists)
    path.unlink()
    assert process.wait(timeout=LONGEST) == 0


def test_changed_program_is_not_asked_any_more(residing: Residing, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(Path(ROOT, "harness"), copied / "harness")
    shutil.copytree(Path(ROOT, "policies"), copied / "policies")
    residing.main = str(copied / "harness" / "__main__.py")
    pid = residing.settle()
    assert residing.ask(residing.event(use_id="c2")).by_resident
    changed = copied / "harness" / "policy" / "verdict.py"
    changed.write_text(changed.read_text() + "\n")
    answer = residing.ask(residing.event(use_id="c3"))
    assert (answer.done.code, answer.by_resident) == (0, False)
    until(lambda: is_gone(pid))
    until(lambda: residing.ask(residing.event("PostToolUse", use_id="none")).by_resident)


DEAF = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
os.execv(sys.argv[1], sys.argv[1:])
"""

IDLE = """
import os, sys
sys.path.append(sys.argv[1])
from harness.plugins.agents.commands.resident import Resident
Resident(sys.argv[2], os.environ, idle_seconds=float(sys.argv[3]), look_seconds=float(sys.argv[4])).run()
"""


def test_resident_without_events_ends(residing: Residing) -> None:
    path = residing.runtime / "s"
    subprocess.run([sys.executable, "-I", "-S", "-c", IDLE, str(ROOT), str(path), "0.05", "20"], check=True)
    assert not path.exists()


# --- others ---------------------------------------------------------------------------------------------------------

CONNECT = """
import ctypes, os, resource, socket, sys
exec(sys.argv[2])
with socket.socket(socket.AF_UNIX) as link:
    link.connect(sys.argv[1])
    print(link.recv(1))
"""


@all_rows(
    "becomes,greeting",
    {
        "as it is": ("pass", GREETING),
        "confined": ("ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)", b""),  # PR_SET_NO_NEW_PRIVS, as every wall of ours has
        "with other limits": ("resource.setrlimit(resource.RLIMIT_NOFILE, (77, 77))", b""),
        "another user": (f"os.setgroups([]); os.setgid({OTHER_USER}); os.setuid({OTHER_USER})", b""),
    },
)
def test_resident_serves_only_processes_like_itself(becomes: str, greeting: bytes, residing: Residing) -> None:
    if "setuid" in becomes and os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    residing.settle()
    assert residing.socket is not None
    residing.runtime.chmod(0o755)
    residing.socket.parent.chmod(0o755)
    residing.socket.chmod(0o666)
    done = subprocess.run(
        [sys.executable, "-I", "-c", CONNECT, str(residing.socket), becomes], capture_output=True, check=True
    )
    assert done.stdout.decode() == f"{greeting!r}\n"


@all_rows(
    "owner,mode", {"another's": (OTHER_USER, 0o700), "open to others": (0, 0o777)}, anew={"residing": new_residing}
)
def test_folder_that_others_may_write_is_not_used(owner: int, mode: int, residing: Residing) -> None:
    if owner and os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    residing.settle()
    assert residing.socket is not None
    folder = residing.socket.parent
    os.chown(folder, owner or os.geteuid(), -1)
    folder.chmod(mode)
    answer = residing.ask(residing.event(use_id="c2"))
    assert (answer.done.code, answer.by_resident) == (0, False)


def test_listener_of_another_user_is_not_asked(residing: Residing) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    here = surroundings("self")
    assert here is not None
    path = socket_path(residing.raw_environment, here)
    os.mkdir(os.path.dirname(path), mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        pid = os.fork()
        if pid == 0:
            os.setuid(OTHER_USER)
            listener.listen()  # the credentials of a listener are those of who called this
            signal.pause()
        try:
            until(lambda: f"{path}\n" in Path("/proc/net/unix").read_text() and _listens(path))
            answer = residing.ask(residing.event())
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert (answer.done.code, answer.by_resident) == (0, False)


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(path)
        except ConnectionRefusedError:
            return False
    return True


def test_full_disk_refuses(residing: Residing) -> None:
    """In mounts of its own: an event begins the resident, the disk fills up, and has room again."""
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("only root mounts a small disk")
    events = residing.runtime / "events"
    events.mkdir()
    for number in range(4):
        (events / str(number)).write_bytes(residing.event(use_id=f"c{number}"))
    script = f"""
        mount -t tmpfs -o size=400k full "$XDG_STATE_HOME" || exit 77
        ask() {{ "$@" < {events}/$n > {events}/$n.out 2> {events}/$n.err; echo $? >> {events}/codes; n=$((n+1)); }}
        n=0; ask "$@"
        until [ -e {residing.runtime}/harness/* ]; do :; done
        ask "$@"
        cat /dev/zero > "$XDG_STATE_HOME/fills" 2> /dev/null
        ask "$@"
        rm "$XDG_STATE_HOME/fills"
        ask "$@"
        grep -c intent "$XDG_STATE_HOME"/harness/sessions/*/*.jsonl > {events}/intents
    """
    words = [*QUICK, residing.main, "hook", "claude"]
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "-", *words],
        env=residing.environment,
        cwd=residing.workspace,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("nothing may be mounted here")
    first, second, full, last = (events / "codes").read_text().split()
    assert (first, second, last) == ("0", "0", "0")
    # An intent may fit the last page of the log. Only a call whose intent is on the disk may be allowed.
    intents = int((events / "intents").read_text())
    assert (full, (events / "2.out").read_bytes()) == ("2", b"") or (full, intents) == ("0", 4)
    assert intents in (3, 4)
    for number in (1, 2, 3):
        assert "harness.plugins.agents.guarded_agent" not in (events / f"{number}.err").read_text()

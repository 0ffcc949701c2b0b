"""Processes to their end: nothing that a command starts outlives it, whatever it does, nor the harness, however that ends."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from process_scene import (
    PATH,
    ROOT,
    alive,
    as_nobody,
    launch,
    no_new_privileges,
    readable_copy,
    run,
    sleep_token,
    wait_until,
)

from harness import procfs
from harness.guard import guard, told
from harness.interrupt import Interrupt
from harness.record import replace
from harness.tools.hardening import MAX_OPEN_FILES, OOM_SCORE
from harness.tools.live import KEPT_BYTES, Live
from harness.tools.output import Capture
from harness.tools.processes import Ended, Ending, run_group
from harness.tools.spill import OutputFolder
from harness.tools.start import NotConfinedError, start
from harness.tools.survivors import Survivors

token = pytest.fixture(sleep_token)
readable = pytest.fixture(readable_copy)
SYS_EXIT = {"x86_64": 60, "aarch64": 93}.get(os.uname().machine, 1)
"""The system call that ends one thread only (exit(2)), in the tables of the kernel."""


def gone(pid: int) -> bool:
    """Say whether a process has ended. The tests' own process adopts orphans, so that it has to take notice of them."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    return procfs.process(pid) is None


DAEMON = "if os.fork() == 0: os.setsid(); os.fork() and os._exit(0); os.execvp('sleep', ['sleep', '{}'])"
LEAVES = [
    pytest.param("sleep {} &", ("sleep",), id="a background job"),
    pytest.param("sleep {} > /dev/null 2>&1 &", ("sleep",), id="one that closed the pipe"),
    pytest.param("nohup sleep {} > /dev/null 2>&1 & disown", ("sleep",), id="one that hangups do not end"),
    pytest.param("setsid sleep {} & sleep 0.1", ("sleep",), id="a session of its own"),
    pytest.param(
        "setsid bash -c 'setsid bash -c \"setsid sleep {} & exit\" & exit' & sleep 0.1", ("sleep",), id="three"
    ),
    pytest.param(f'"$PYTHON" -c "import os\n{DAEMON}"; sleep 0.1', ("sleep",), id="a daemon"),
    pytest.param(
        f'env -i "$PYTHON" -c "import os\n{DAEMON}"; sleep 0.1', ("sleep",), id="a daemon that cleared its environment"
    ),
    pytest.param("env -i setsid sleep {} & sleep 0.1", ("sleep",), id="no environment"),
    pytest.param(
        "exec env -i setsid sleep {} < /dev/null > /dev/null 2>&1 &", ("sleep",), id="no environment, no pipe"
    ),
    pytest.param("ulimit -x 5; env -i setsid sleep {} & sleep 0.1", ("sleep",), id="that changed its mark"),
    pytest.param(
        "setsid bash -c \"trap '' TERM; while :; do sleep {}; done\" & sleep 0.1",
        ("bash", "sleep"),
        id="no ear for TERM",
    ),
    pytest.param("setsid bash -c 'kill -STOP $$; : {}' & sleep 0.1", ("bash",), id="stopped"),
    pytest.param("setsid yes {} & sleep 0.1", ("yes",), id="one that fills the pipe"),
    pytest.param("for i in {{1..60}}; do setsid sleep {} & done; sleep 0.1", ("sleep",) * 60, id="sixty"),
    pytest.param("coproc sleep {}", ("sleep",), id="a coprocess"),
    pytest.param(
        "exec sleep {} 3> >(sleep {}) & exec true", ("sleep", "sleep"), id="a shell that became another program"
    ),
]


@pytest.mark.parametrize(("command", "names"), LEAVES)
def test_what_a_command_leaves_is_ended_and_named(token: str, command: str, names: tuple[str, ...]) -> None:
    before = procfs.children(os.getpid())
    started = time.monotonic()

    ended, _ = run(command.format(*[token] * 2))

    assert (ended.ending, sorted(ended.terminated), ended.surviving) == (Ending.EXITED, sorted(names), ())
    assert alive(token) == []
    assert procfs.children(os.getpid()) - before <= {guard()._pid}
    assert time.monotonic() - started < 4.0


HEADLESS = f"""
import ctypes, os, sys, threading, time
def beat():
    while True:
        open(sys.argv[1], "a").write(".")
        time.sleep(0.01)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        threading.Thread(target=beat).start()
        ctypes.CDLL(None).syscall({SYS_EXIT})
"""
RELAY = """
use POSIX;
my $end = time + 10;
fork and exit;
POSIX::close($_) for 0..2;
while (time < $end) {
    open(my $beats, ">>", $ARGV[0]);
    syswrite($beats, ".");
    POSIX::setsid();
    fork and POSIX::_exit(0);
}
"""
ENDLESS = [
    pytest.param("$PYTHON", "-c", HEADLESS, id="whose first thread ended"),
    pytest.param("perl", "-e", RELAY, id="that starts the next and ends"),
]


@pytest.mark.parametrize(("program", "option", "code"), ENDLESS)
@pytest.mark.parametrize("start", ["", "env -i "], ids=["marked", "without environment"])
def test_what_looks_like_it_ended_is_ended_too(
    tmp_path: Path, program: str, option: str, code: str, start: str
) -> None:
    if program == "perl" and not shutil.which("perl"):
        pytest.skip("A CHAIN OF ENDING PROCESSES WAS NOT TRIED, this machine has no perl")
    beats = tmp_path / "beats"
    before = procfs.children(os.getpid())
    wait = f"until [ -s {beats} ]; do sleep 0.01; done"

    ended, _ = run(f"{start}{program} {option} '{code}' {beats}; {wait}")

    assert (ended.ending, ended.status, ended.surviving) == (Ending.EXITED, 0, ())
    assert ended.terminated
    size = beats.stat().st_size
    time.sleep(0.1)
    assert beats.stat().st_size == size
    assert procfs.children(os.getpid()) - before <= {guard()._pid}


@pytest.mark.parametrize(
    "command",
    [
        "setsid sleep {} & sleep {}",
        "setsid bash -c \"trap '' TERM; while :; do sleep {}; done\" & while :; do sleep {}; done",
        "env -i setsid sleep {} & kill -STOP $$; : {}",
        "f() {{ sleep {} & sleep 0.01; f & f; }}; f {}",
    ],
)
def test_a_timeout_ends_everything(token: str, command: str) -> None:
    ended, _ = run(command.format(token, token), seconds=0.3)

    assert (ended.ending, ended.surviving) == (Ending.TIMED_OUT, ())
    assert ended.seconds < 0.3 + 2.5
    assert alive(token) == []


def test_a_job_has_a_moment_to_put_its_files_in_order(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    job = f"trap 'rm {lock}; exit' TERM; touch {lock}; while :; do sleep 0.01; done"

    run(f'setsid bash -c "{job}" & until [ -e {lock} ]; do :; done')

    assert not lock.exists()


# Whose a process is


def test_what_a_librarys_user_starts_is_left_alone() -> None:
    """Before the command and while it runs; in a session of its own, without an environment; dead, too."""
    started = []

    def start() -> None:
        for seconds in ("60", "0"):
            child = subprocess.Popen(["/bin/sleep", seconds], env={}, start_new_session=True)
            started.append(child)

    start()
    timer = threading.Timer(0.1, start)
    timer.start()
    ended, _ = run("setsid sleep 60 & sleep 0.4", confine=no_new_privileges)
    timer.join()
    try:
        assert ended.terminated == ("sleep",)
        assert [child.poll() for child in started] == [None, 0, None, 0]
    finally:
        for child in started:
            child.kill()
            child.wait()


def test_a_command_does_not_end_what_another_left_running(token: str) -> None:
    results: list[tuple[Ended, str]] = []
    command = f"env -i setsid sleep {token} & setsid bash -c 'sleep 1; echo fine' & sleep 1.1"
    other = threading.Thread(target=lambda: results.append(run(command)))
    other.start()
    time.sleep(0.3)

    mine = [run("setsid sleep 60 & sleep 0.05")[0].terminated for _ in range(3)]
    other.join()

    assert mine == [("sleep",)] * 3
    assert [(ended.terminated, text) for ended, text in results] == [(("sleep",), "fine\n")]
    assert alive(token) == []


# Confinement


def test_walls_bind_the_command_and_no_thread_of_the_harness() -> None:
    ended, text = run("grep NoNewPrivs /proc/self/status", confine=no_new_privileges)

    assert text == "NoNewPrivs:\t1\n"
    assert wait_until(lambda: {procfs.walls(int(thread))[0] for thread in os.listdir("/proc/self/task")} == {0})
    assert run("grep NoNewPrivs /proc/self/status")[1] == "NoNewPrivs:\t0\n"
    assert ended.status == 0


def test_what_shed_every_other_sign_is_known_by_its_walls() -> None:
    """As it would be that was quicker than its mark. One without the walls is not the command's."""
    survivors = Survivors(confined=True)
    leader, stray, _ = started = [
        start(replace(launch("exec sleep 60"), confine=confine), subprocess.DEVNULL, subprocess.DEVNULL)
        for confine in (no_new_privileges, no_new_privileges, None)
    ]
    try:
        survivors.started(leader.pid)
        both = {leader.pid, stray.pid}
        assert wait_until(lambda: {one.pid for one in survivors.left()} == both)
    finally:
        survivors.close()
        for process in started:
            process.kill()
            process.wait()


def test_nothing_is_started_where_the_walls_cannot_be_put_up(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(errno.E2BIG, "too many walls")

    with pytest.raises(NotConfinedError, match="too many walls"):
        run(f"touch {tmp_path}/ran", confine=fail)
    with pytest.raises(ZeroDivisionError):
        run(f"touch {tmp_path}/ran", confine=lambda: 1 // 0)  # type: ignore[arg-type]

    assert list(tmp_path.iterdir()) == []


def test_a_program_may_stand_in_front_and_get_descriptors() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"passed")
    os.close(writing)
    output = Capture(30_000)
    front = replace(launch(f"echo $X; cat <&{reading}"), prefix=("/usr/bin/env", "X=1"), descriptors=(reading,))

    run_group(front, seconds=10, output=output)
    os.close(reading)

    assert output.readable().text == "1\npassed"


@pytest.mark.parametrize("confine", [None, no_new_privileges], ids=["unconfined", "confined"])
def test_a_command_is_bounded_and_marked_before_it_begins(confine: Callable[[], None] | None) -> None:
    text = run(
        "ulimit -Hx; ulimit -c; ulimit -Hn; ulimit -Hf; ulimit -Hd; cat /proc/self/oom_score_adj", confine=confine
    )[1]

    mark, *bounds = text.split()
    assert int(mark) >= 1 << 62
    assert bounds == ["0", str(MAX_OPEN_FILES), str(2 << 20), str(4 << 20), str(OOM_SCORE)]


def test_limits_are_only_lowered() -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))\n"
        "from tests.process_scene import run; print(run('ulimit -Sn; ulimit -Hn')[1].split())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout == "['100', '200']\n"


# The end of the harness


def harness(command: str, *, times: int = 1) -> subprocess.Popen[bytes]:
    """Start a process that runs a command several times."""
    code = f"from tests.process_scene import run\nfor _ in range({times}): run({command!r})"
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True)


@pytest.mark.parametrize(
    "command",
    [
        "sleep {} & setsid sleep {} & sleep 0.02",
        "env -i setsid sleep {} & sleep {}",
        "setsid bash -c \"trap '' TERM; sleep {}; :\" & sleep {}",
        "setsid env -i bash -c 'while :; do sleep {} & sleep 0.01; done' & sleep {}",
    ],
)
def test_nothing_outlives_a_harness_that_is_killed(token: str, command: str) -> None:
    """At a random moment: before the command, in its course, or at its end."""
    program = f"bash\0--noprofile\0--norc\0-c\0--\0{command.format(token, token)}"
    for turn in range(6):
        process = harness(command.format(token, token), times=100)
        if turn % 2 or wait_until(lambda: bool(alive(program))):
            time.sleep(random.random() * (0.4 if turn % 2 else 0.02))
        process.kill()
        process.wait()
        assert wait_until(lambda: not alive(token)), alive(token)


def test_what_looks_like_it_ended_does_not_outlive_the_harness(tmp_path: Path) -> None:
    """The first thread has. A chain of ending processes is not tried: its thousands of remains would be left to process 1."""
    beats = tmp_path / "beats"
    process = harness(f"{sys.executable} -c '{HEADLESS}' {beats}; sleep 100")
    assert wait_until(lambda: beats.exists() and beats.stat().st_size > 0)
    process.kill()
    process.wait()

    def stands_still() -> bool:
        size = beats.stat().st_size
        time.sleep(0.2)
        return beats.stat().st_size == size

    assert wait_until(stands_still)


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)"])
def test_nothing_is_left_of_a_harness_inside_a_command_of_another(token: str, end: str) -> None:
    """Also where the inner one is killed in the course of a command."""
    inner = f"env -i setsid sleep {token} & sleep {token} & sleep 0.2"
    code = (
        f"import os, sys, threading; sys.path.insert(0, {ROOT!r})\n"
        "from tests.process_scene import run\n"
        f"threading.Timer(0.1, lambda: {end or None}).start()\n"
        f"run({inner!r})"
    )

    ended, _ = run(f'"$PYTHON" -c "$(cat <<\'END\'\n{code}\nEND\n)"; exit 5')

    assert (ended.ending, ended.status, ended.surviving) == (Ending.EXITED, 5, ())
    assert alive(token) == []


def guards_of(pid: int) -> list[int]:
    return [number for number in alive("harness.guard") if (seen := procfs.process(number)) and seen.parent == pid]


def test_the_guard_ends_with_the_harness_and_not_with_ctrl_c() -> None:
    process = harness("sleep 0.05", times=60)
    assert wait_until(lambda: bool(guards_of(process.pid)))
    (number,) = guards_of(process.pid)
    time.sleep(0.3)  # it has begun
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(number, sent)
    time.sleep(0.2)
    assert guards_of(process.pid) == [number]
    assert process.wait(timeout=30) == 0
    assert wait_until(lambda: gone(number))


def test_a_guard_that_was_killed_is_replaced(token: str) -> None:
    """And the new one knows of the commands that already ran."""
    code = (
        "import os, threading, time; from tests.process_scene import alive, run, wait_until\n"
        "from harness.guard import guard\n"
        f"threading.Thread(target=run, args=('env -i setsid sleep {token} & sleep 100',), daemon=True).start()\n"
        f"assert wait_until(lambda: bool(alive('sleep\\x00{token}')) and guard()._pid > 0)\n"
        "first = guard()._pid; os.kill(first, 9)\n"
        "assert wait_until(lambda: guard()._pid not in (0, first))\n"
        "assert run('echo works')[1] == 'works\\n'\n"
        "print('killed', flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=False)

    assert (done.returncode, done.stdout) == (-9, b"killed\n")
    assert wait_until(lambda: not alive(f"sleep\0{token}"))


def test_the_guards_environment_is_empty() -> None:
    run("true")
    assert wait_until(lambda: guard()._pid > 0)
    assert Path(f"/proc/{guard()._pid}/environ").read_bytes() == b""


def test_a_process_forked_from_the_harness_does_not_keep_its_guard() -> None:
    code = (
        "import os, time; from tests.process_scene import run; from harness.guard import guard\n"
        "run('true')\n"
        "if os.fork() == 0: run('true'); time.sleep(60)\n"
        "print(guard()._pid, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        number = int(stdout.readline())
    process.kill()
    process.wait()
    try:
        assert wait_until(lambda: gone(number))
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become an ordinary user")
@pytest.mark.parametrize(("hardened", "status"), [(False, 0), (True, 1)])
def test_the_harnesss_environment_is_closed_to_an_ordinary_users_command(
    readable: Path, *, hardened: bool, status: int
) -> None:
    code = (
        "import os, sys; from harness.tools.hardening import undumpable\n"
        f"assert not {hardened} or undumpable()\n"
        "sys.exit(os.waitstatus_to_exitcode(os.system('cat /proc/$PPID/environ > /dev/null 2>&1')))"
    )
    done = subprocess.run(
        as_nobody("/usr/bin/env", "python3", "-c", code),
        cwd=readable,
        env={"PATH": PATH, "SECRET": "k"},
        check=False,
    )

    assert done.returncode == status


# Interrupts, live output, memory


def test_a_second_request_kills_at_once_where_only_the_first_raises(token: str) -> None:
    """As the program wires Ctrl-C: the second one is only counted."""
    interrupt = Interrupt()

    def on_signal(number: int, frame: object) -> None:
        interrupt.request()

    before = signal.signal(signal.SIGUSR1, on_signal)
    timers = [threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGUSR1)) for seconds in (0.3, 0.6)]
    for timer in timers:
        timer.start()
    try:
        with interrupt:
            ended = run_group(
                launch(f"trap '' TERM INT; while :; do sleep {token}; done"),
                seconds=20,
                output=Capture(30_000),
                interrupts=lambda: interrupt.count,
            )
    finally:
        for timer in timers:
            timer.join()
        signal.signal(signal.SIGUSR1, before)

    assert ended.ending is Ending.INTERRUPTED
    assert 0.5 < ended.seconds < 1.5
    assert alive(token) == []


def test_output_is_told_while_it_comes() -> None:
    told: list[tuple[float, str]] = []
    live = Live(lambda text: told.append((time.monotonic(), text)))
    run_group(
        launch(r"printf 'one\n\033[1mtw'; sleep 0.4; printf 'o\033[0m\n\xc3'; sleep 0.3; printf '\xa9 end'"),
        seconds=20,
        output=Capture(30_000),
        live=live,
    )

    assert [text for _, text in told] == ["one\n", "two\n", "é end"]
    assert told[1][0] - told[0][0] > 0.2


def test_a_slow_or_failing_observer_slows_and_harms_nothing() -> None:
    told: list[str] = []

    def observer(text: str) -> None:
        told.append(text)
        time.sleep(0.3)
        raise ValueError("the observer's own")

    output = Capture(30_000)
    ended = run_group(launch("seq 1000000"), seconds=20, output=output, live=Live(observer))

    assert (ended.ending, output.total) == (Ending.EXITED, 6_888_896)
    assert ended.seconds < 2.0
    assert all(len(text) < KEPT_BYTES + 100 for text in told)
    dropped = sum(int(text.split()[1].replace(",", "")) for text in told if text.startswith("[... "))
    shown = sum(len(text) - (text.index("\n") + 1 if text.startswith("[... ") else 0) for text in told)
    assert (dropped > 0, dropped + shown) == (True, 6_888_896)


def test_memory_stays_flat_whatever_is_printed(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from tests.process_scene import Capture, launch, run, run_group\n"
        "from harness.tools.spill import OutputFolder\n"
        "run('true')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "output = Capture(30_000, OutputFolder(sys.argv[1], call_bytes=1 << 20).spill())\n"
        "ended = run_group(launch('yes'), seconds=1.5, output=output)\n"
        "output.readable()\n"
        "print(output.total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )

    total, grown = map(int, done.stdout.split())
    assert total > 100_000_000
    assert grown < 20_000  # KiB


def test_a_spill_folder_is_not_made_for_nothing(tmp_path: Path) -> None:
    output = Capture(30_000, OutputFolder(str(tmp_path / "outputs")).spill())
    run_group(launch("seq 1000"), seconds=10, output=output)

    assert (output.readable().truncated, list(tmp_path.iterdir())) == (False, [])


@pytest.mark.parametrize(
    ("table", "running"),
    [
        (b"", {}),
        (b"\n", {}),
        (b"23 45\n\n", {23: 45}),
        (b"23 0\n67 8\n\n", {23: 0, 67: 8}),
        (b"\n23 45\n\n", {}),  # what is left of a longer table, once the last command has ended
        (b"67 8\n\n 0\n67 8\n\n", {67: 8}),
    ],
)
def test_a_table_is_read_up_to_its_first_empty_line(table: bytes, running: dict[int, int]) -> None:
    assert told(table) == running

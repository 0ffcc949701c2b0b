"""Processes to their end: nothing that a command starts outlives it, whatever it does, nor the harness, however that ends."""

from __future__ import annotations

import errno
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from places import ROOT, SUPPORT, shell_word
from process_scene import (
    ENOUGH,
    PATH,
    PATIENT,
    UNTIL_SLEEP,
    alive,
    as_nobody,
    launch,
    new_children,
    no_new_privileges,
    readable_copy,
    run,
    sleep_token,
    until_there,
    wait_until,
)
from rows import all_rows
from sizes import proof_size

from harness.interrupt import Interrupt
from harness.process import procfs
from harness.process.capture import FIRST_BYTES, KEPT_BYTES, Capture, Live, OutputFolder
from harness.process.command import run_group
from harness.process.ended import CommandEnding, Ended
from harness.process.guard import guard, running_commands
from harness.process.hardening import MAX_OPEN_FILES, OOM_SCORE
from harness.process.start import NotConfinedError, start
from harness.process.survivors import Survivors
from harness.record import replace

token = pytest.fixture(sleep_token)
readable = pytest.fixture(readable_copy)
SCENE = f"import sys; sys.path.append({SUPPORT!r}); "
"""What a program of a test begins with that uses what the tests share."""
SYS_EXIT = {"x86_64": 60, "aarch64": 93}.get(os.uname().machine, 1)
"""The system call that ends one thread only (exit(2)), in the tables of the kernel."""


def gone(pid: int) -> bool:
    """Say whether a process has ended. The tests' own process adopts orphans, so that it has to take notice of them."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    return procfs.process(pid) is None


@contextmanager
def when(condition: Callable[[], bool], then: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as a condition holds, while the block runs."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set() and not condition():
            time.sleep(0.01)
        if not over.is_set():
            then()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


DAEMON = "if os.fork() == 0: os.setsid(); os.fork() and os._exit(0); os.execvp('sleep', ['sleep', '{}'])"
LEAVES = [
    pytest.param("sleep {} & {wait}", ("sleep",), id="a background job"),
    pytest.param("sleep {} > /dev/null 2>&1 & {wait}", ("sleep",), id="one that closed the pipe"),
    pytest.param("nohup sleep {} > /dev/null 2>&1 & disown; {wait}", ("sleep",), id="one that hangups do not end"),
    pytest.param("setsid sleep {} & {wait}", ("sleep",), id="a session of its own"),
    pytest.param("setsid bash -c 'setsid bash -c \"setsid sleep {} & exit\" & exit' & {wait}", ("sleep",), id="three"),
    pytest.param(f'"$PYTHON" -c "import os\n{DAEMON}"; {{wait}}', ("sleep",), id="a daemon"),
    pytest.param(
        f'env -i "$PYTHON" -c "import os\n{DAEMON}"; {{wait}}', ("sleep",), id="a daemon that cleared its environment"
    ),
    pytest.param("env -i setsid sleep {} & {wait}", ("sleep",), id="no environment"),
    pytest.param(
        "exec env -i setsid sleep {} < /dev/null > /dev/null 2>&1 & {wait}", ("sleep",), id="no environment, no pipe"
    ),
    pytest.param("ulimit -x 5; env -i setsid sleep {} & {wait}", ("sleep",), id="that changed its mark"),
    pytest.param(
        "setsid bash -c \"trap '' TERM; while :; do sleep {}; done\" & {wait}", ("bash", "sleep"), id="no ear for TERM"
    ),
    pytest.param(
        "setsid bash -c 'kill -STOP $$; : {}' & until grep -q '^State:.T' /proc/$!/status; do :; done; {wait}",
        ("bash",),
        id="stopped",
    ),
    pytest.param("setsid yes {} & {wait}", ("yes",), id="one that fills the pipe"),
    pytest.param("for i in {{1..60}}; do setsid sleep {} & done; {wait}", ("sleep",) * 60, id="sixty"),
    pytest.param("coproc sleep {}; {wait}", ("sleep",), id="a coprocess"),
    pytest.param(
        "exec sleep {} 3> >(sleep {}) & {wait}; exec true", ("sleep", "sleep"), id="a shell that became another program"
    ),
]


def names_of(token: str, shell: str) -> list[str]:
    """Return the names of the processes with a token, but for the shell that started them, on whose line `shell` stands."""
    numbers = set(alive(token)) - set(alive(shell))
    return sorted(seen.name for number in numbers if (seen := procfs.process(number)) is not None)


@all_rows(("command", "names"), LEAVES, anew={"token": sleep_token})
def test_leftovers_of_a_command_are_ended_and_named(
    tmp_path: Path, token: str, command: str, names: tuple[str, ...]
) -> None:
    """It all runs before the shell ends."""
    before = procfs.children(os.getpid())
    go = tmp_path / "go"

    with when(lambda: names_of(token, str(go)) == sorted(names), go.touch):
        ended, _ = run(command.format(*[token] * 2, wait=until_there(go)))

    assert (ended.ending, sorted(ended.terminated), ended.surviving) == (CommandEnding.EXITED, sorted(names), ())
    assert alive(token) == []
    assert new_children(before) == set()


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
my $end = time + 120;
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
    pytest.param('"$PYTHON"', "-c", HEADLESS, id="whose first thread ended"),
    pytest.param("perl", "-e", RELAY, id="that starts the next and ends"),
]


@all_rows(("program", "option", "code"), ENDLESS)
@all_rows("start", ["", "env -i "], ids=["marked", "without environment"])
def test_processes_that_look_dead_are_ended_too(
    tmp_path: Path, program: str, option: str, code: str, start: str
) -> None:
    if program == "perl" and not shutil.which("perl"):
        pytest.skip("A CHAIN OF ENDING PROCESSES WAS NOT TRIED, this machine has no perl")
    beats = tmp_path / "beats"
    before = procfs.children(os.getpid())
    quoted = shell_word(beats)
    wait = f"until [ -s {quoted} ]; do sleep 0.01; done"

    ended, _ = run(f"{start}{program} {option} '{code}' {quoted}; {wait}")

    assert (ended.ending, ended.status, ended.surviving) == (CommandEnding.EXITED, 0, ())
    assert ended.terminated
    size = beats.stat().st_size
    time.sleep(0.1)  # a busy machine can only hide a beat
    assert beats.stat().st_size == size
    assert new_children(before) == set()


@all_rows(
    "command",
    [
        "setsid sleep {} & sleep {}",
        "setsid bash -c \"trap '' TERM; while :; do sleep {}; done\" & while :; do sleep {}; done",
        "env -i setsid sleep {} & kill -STOP $$; : {}",
        "f() {{ sleep {} & sleep 0.01; f & f; }}; f {}",
    ],
    anew={"token": sleep_token},
)
def test_a_timeout_ends_everything(token: str, command: str) -> None:
    ended, _ = run(command.format(token, token), seconds=0.3)

    assert (ended.ending, ended.surviving) == (CommandEnding.TIMED_OUT, ())
    assert alive(token) == []


def test_a_job_has_a_moment_to_put_its_files_in_order(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    job = 'trap \'rm "$0"; exit\' TERM; touch "$0"; while :; do sleep 0.01; done'
    command = f"setsid {shlex.join(['bash', '-c', job, str(lock)])} & {until_there(lock)}"

    run(command, pace=replace(PATIENT, term_seconds=ENOUGH))

    assert not lock.exists()


def test_job_that_ends_by_itself_prints_all_its_output() -> None:
    ended, text = run("(sleep 0.05; echo late) &", pace=replace(PATIENT, settle_seconds=ENOUGH))

    assert (ended.terminated, text) == ((), "late\n")


# Whose a process is


def test_processes_of_the_library_user_are_left_alone(tmp_path: Path) -> None:
    """Before the command and while it runs; in a session of its own, without an environment; dead, too."""
    started = []
    begun, go = tmp_path / "begun", tmp_path / "go"

    def start() -> None:
        for seconds in ("1000", "0"):
            child = subprocess.Popen(["/bin/sleep", seconds], env={}, start_new_session=True)
            started.append(child)
        wait_until(lambda: (seen := procfs.process(child.pid)) is not None and seen.has_ended)

    def start_and_go_on() -> None:
        start()
        go.touch()

    try:
        start()
        with when(begun.exists, start_and_go_on):
            ended, _ = run(
                f"setsid sleep 1000 & {UNTIL_SLEEP}; touch {shell_word(begun)}; {until_there(go)}",
                confine=no_new_privileges,
            )
        assert ended.terminated == ("sleep",)
        assert [child.poll() for child in started] == [None, 0, None, 0]
    finally:
        for child in started:
            child.kill()
            child.wait()


def test_command_never_ends_leftovers_of_another(tmp_path: Path, token: str) -> None:
    results: list[tuple[Ended, str]] = []
    begun, go = tmp_path / "begun", tmp_path / "go"
    last = f"touch {shell_word(begun)}; {until_there(go)}; echo fine"
    command = f"env -i setsid sleep {token} & {UNTIL_SLEEP}; setsid bash -c {shlex.quote(last)} & wait $!"
    other = threading.Thread(target=lambda: results.append(run(command)))
    other.start()
    try:
        assert wait_until(begun.exists)
        mine = [run(f"setsid sleep 1000 & {UNTIL_SLEEP}")[0].terminated for _ in range(3)]
    finally:
        go.touch()
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


def test_unmarked_process_is_recognized_by_its_walls() -> None:
    """As it would be that was quicker than its mark. One without the walls is not the command's."""
    survivors = Survivors(confined=True)
    leader, stray, _ = started = [
        start(replace(launch("exec sleep 1000"), confine=confine), subprocess.DEVNULL, subprocess.DEVNULL)
        for confine in (no_new_privileges, no_new_privileges, None)
    ]
    try:
        survivors.started(leader.pid)
        both = {leader.pid, stray.pid}
        assert wait_until(lambda: {one.pid for one in survivors.remaining()} == both)
    finally:
        survivors.close()
        for process in started:
            process.kill()
            process.wait()


def test_failed_confinement_prevents_the_start(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(errno.E2BIG, "too many walls")

    with pytest.raises(NotConfinedError, match="too many walls"):
        run(f"touch {shell_word(tmp_path)}/ran", confine=fail)
    with pytest.raises(ZeroDivisionError):
        run(f"touch {shell_word(tmp_path)}/ran", confine=lambda: 1 // 0)  # type: ignore[arg-type]

    assert list(tmp_path.iterdir()) == []


def test_program_can_be_prefixed_and_get_descriptors() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"passed")
    os.close(writing)
    output = Capture(30_000)
    front = replace(launch(f"echo $X; cat <&{reading}"), prefix=("/usr/bin/env", "X=1"), descriptors=(reading,))

    run_group(front, seconds=ENOUGH, output=output)
    os.close(reading)

    assert output.readable().text == "1\npassed"


@all_rows("confine", [None, no_new_privileges], ids=["unconfined", "confined"])
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
        f"{SCENE}from process_scene import run; print(run('ulimit -Sn; ulimit -Hn')[1].split())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout == "['100', '200']\n"


# The end of the harness


KILLS = proof_size("KILLS", 2, full=6)


def harness(command: str, *, times: int = 1) -> subprocess.Popen[bytes]:
    """Start a process that runs a command several times."""
    code = f"{SCENE}from process_scene import run\nfor _ in range({times}): run({command!r})"
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True)


@all_rows(
    "command",
    [
        "sleep {} & setsid sleep {} & sleep 0.02",
        "env -i setsid sleep {} & sleep {}",
        "setsid bash -c \"trap '' TERM; sleep {}; :\" & sleep {}",
        "setsid env -i bash -c 'while :; do sleep {} & sleep 0.01; done' & sleep {}",
    ],
    anew={"token": sleep_token},
)
def test_commands_never_outlive_a_killed_harness(token: str, command: str) -> None:
    """At a random moment: before the command, in its course, or at its end."""
    program = f"bash\0--noprofile\0--norc\0-c\0--\0{command.format(token, token)}"
    for turn in range(KILLS):
        process = harness(command.format(token, token), times=100)
        if turn % 2 or wait_until(lambda: bool(alive(program))):
            time.sleep(random.random() * (0.4 if turn % 2 else 0.02))
        process.kill()
        process.wait()
        assert wait_until(lambda: not alive(token)), alive(token)


def test_processes_that_look_dead_do_not_outlive_the_harness(tmp_path: Path) -> None:
    """The first thread has. A chain of ending processes is not tried: its thousands of remains would be left to process 1."""
    beats = tmp_path / "beats"
    process = harness(f"{shell_word(sys.executable)} -c '{HEADLESS}' {shell_word(beats)}; sleep 1000")
    assert wait_until(lambda: beats.exists() and beats.stat().st_size > 0)
    process.kill()
    process.wait()

    def stands_still() -> bool:
        size = beats.stat().st_size
        time.sleep(0.2)  # a busy machine can only hide a beat
        return beats.stat().st_size == size

    assert wait_until(stands_still)


@all_rows("end", ["", "os.kill(os.getpid(), 9)"], anew={"token": sleep_token})
def test_nested_harness_leaves_no_processes_behind(token: str, end: str) -> None:
    """Also where the inner one is killed in the course of a command; behind it, where the machine is too busy."""
    inner = f"env -i setsid sleep {token} & sleep {token} & sleep 0.2"
    code = (
        f"import os, sys, threading; sys.path[:0] = [{ROOT!r}, {SUPPORT!r}]\n"
        "from process_scene import run\n"
        f"threading.Timer(0.1, lambda: {end or None}).start()\n"
        f"run({inner!r})"
    )

    ended, _ = run(f'"$PYTHON" -c "$(cat <<\'END\'\n{code}\nEND\n)"; exit 5')

    assert (ended.ending, ended.status, ended.surviving) == (CommandEnding.EXITED, 5, ())
    assert alive(token) == []


def guards_of(pid: int) -> list[int]:
    return [
        number for number in alive("harness.process.guard") if (seen := procfs.process(number)) and seen.parent == pid
    ]


def ignores(pid: int, *numbers: signal.Signals) -> bool:
    """Say whether a process ignores signals."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return all(mask >> number - 1 & 1 for number in numbers)


def test_the_guard_ends_with_the_harness_and_not_with_ctrl_c(tmp_path: Path) -> None:
    sent = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    go = tmp_path / "go"
    process = harness(until_there(go))
    assert wait_until(lambda: bool(guards_of(process.pid)))
    (number,) = guards_of(process.pid)
    assert wait_until(lambda: ignores(number, *sent))  # it has begun
    for one in sent:
        os.kill(number, one)
    time.sleep(0.2)  # a busy machine can only hide its end
    assert guards_of(process.pid) == [number]
    go.touch()
    assert process.wait(timeout=ENOUGH) == 0
    assert wait_until(lambda: gone(number))


def test_a_guard_that_was_killed_is_replaced(token: str) -> None:
    """And the new one knows of the commands that already ran."""
    code = (
        f"{SCENE}import os, threading, time; from process_scene import alive, run, wait_until\n"
        "from harness.process.guard import guard\n"
        f"threading.Thread(target=run, args=('env -i setsid sleep {token} & sleep 1000',), daemon=True).start()\n"
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
        f"{SCENE}import os, time; from process_scene import run; from harness.process.guard import guard\n"
        "run('true')\n"
        "if os.fork() == 0: run('true'); time.sleep(1000)\n"
        "print(guard()._pid, flush=True); time.sleep(1000)"
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
@all_rows(("hardened", "status"), [(False, 0), (True, 1)])
def test_the_harnesss_environment_is_closed_to_an_ordinary_users_command(
    readable: Path, *, hardened: bool, status: int
) -> None:
    code = (
        "import os, sys; from harness.process.hardening import undumpable\n"
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


@all_rows("counted", [True, False], ids=["the second is counted", "both raise"], anew={"token": sleep_token})
def test_second_request_kills_immediately(token: str, counted: bool) -> None:
    """As the program wires Ctrl-C, the second one is only counted. The command asks again when it gets SIGTERM."""
    interrupt = Interrupt()
    asked: list[int] = []

    def on_signal(number: int, frame: object) -> None:
        asked.append(number)
        if not counted:
            raise KeyboardInterrupt
        interrupt.request()

    # No program is started: bash would wait for one that the signal had met before it was itself, and run its trap after it.
    command = f"trap 'kill -USR1 $PPID' TERM; kill -USR1 $PPID; while :; do : {token}; done"
    before = signal.signal(signal.SIGUSR1, on_signal)
    ended = None
    try:
        with interrupt:
            ended = run_group(
                launch(command),
                seconds=ENOUGH,
                output=Capture(30_000),
                stops=(lambda: interrupt.stops) if counted else None,
                pace=replace(PATIENT, grace_seconds=1000.0),
            )
    except KeyboardInterrupt:
        pass  # on a busy machine it can come outside of the waiting: then it is passed on, and the command is ended as well
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert ended is None or (ended.ending, len(asked)) == (CommandEnding.INTERRUPTED, 2)
    assert alive(token) == []


def test_output_is_passed_on_while_it_comes(tmp_path: Path) -> None:
    """The command goes on when it was told."""
    told: list[str] = []

    def observer(text: str) -> None:
        told.append(text)
        (tmp_path / str(len(told))).touch()

    first, second = (until_there(tmp_path / name) for name in "12")
    run_group(
        launch(rf"printf 'one\n\033[1mtw'; {first}; printf 'o\033[0m\n\xc3'; {second}; printf '\xa9 end'"),
        seconds=ENOUGH,
        output=Capture(30_000),
        live=Live(observer),
    )

    assert told == ["one\n", "two\n", "é end"]


def test_slow_or_failing_observer_has_no_effect_on_the_command(tmp_path: Path) -> None:
    """It takes until the command has printed everything, which is more than a pipe holds."""
    told: list[str] = []
    begun, printed = tmp_path / "begun", tmp_path / "printed"

    def observer(text: str) -> None:
        told.append(text)
        begun.touch()
        assert wait_until(printed.exists)
        raise ValueError("the observer's own")

    output = Capture(30_000)
    command = f"echo; {until_there(begun)}; seq 1000000; touch {shell_word(printed)}"
    ended = run_group(launch(command), seconds=ENOUGH, output=output, live=Live(observer))

    assert (ended.ending, printed.exists(), output.total) == (CommandEnding.EXITED, True, 6_888_897)
    assert all(len(text) < FIRST_BYTES + KEPT_BYTES + 100 for text in told)
    note = r"\[\.\.\. ([\d,]+) bytes not shown \.\.\.\]\n"
    dropped = sum(int(count.replace(",", "")) for text in told for count in re.findall(note, text))
    shown = sum(len(re.sub(note, "", text)) for text in told)
    assert dropped > 0
    assert dropped + shown - 6_888_897 in (0, 1), "a beginning that ends within a line gets a line end"


@all_rows("count", [300, 5_000, 200_000])
def test_beginning_and_end_of_a_fast_output_are_delivered(count: int) -> None:
    told: list[str] = []
    live = Live(told.append)
    output = "".join(f"{number}\n" for number in range(1, count + 1)).encode()
    for at in range(0, len(output), 4_000):
        live.add(output[at : at + 4_000])
    live.deliver(last=True)
    live.deliver(last=True)
    (text,) = told
    assert text.startswith("1\n2\n3\n")
    assert text.endswith(f"\n{count}\n")
    assert ("bytes not shown" in text) is (count > 300)


def test_memory_stays_flat_for_any_output(tmp_path: Path) -> None:
    code = (
        f"{SCENE}import resource\n"
        "from process_scene import ENOUGH, Capture, launch, run, run_group\n"
        "from harness.process.capture import OutputFolder\n"
        "run('true')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "output = Capture(30_000, OutputFolder(sys.argv[1], call_bytes=1 << 20).spill())\n"
        "ended = run_group(launch('yes | head -c 300000000'), seconds=ENOUGH, output=output)\n"
        "output.readable()\n"
        "print(output.total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )

    total, grown = map(int, done.stdout.split())
    assert total == 300_000_000
    assert grown < 20_000  # KiB


def test_spill_folder_is_created_only_if_needed(tmp_path: Path) -> None:
    output = Capture(30_000, OutputFolder(str(tmp_path / "outputs")).spill())
    run_group(launch("seq 1000"), seconds=ENOUGH, output=output)

    assert (output.readable().truncated, list(tmp_path.iterdir())) == (False, [])


@all_rows(
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
    assert running_commands(table) == running

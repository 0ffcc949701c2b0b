"""`harness hook` as a process: whatever is wrong around it ends in a refusal, and processes side by side write one log."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from git_scene import run_git
from hook_process import Hooked, finished, is_refusal
from places import shell_word
from program import Program, made_program
from rows import all_rows
from sizes import proof_size

from harness.plugins.agents.commands.each_call import LEAST_SECONDS, MOST_SECONDS, OWN_SECONDS, HookTime
from harness.plugins.agents.event import MOST_BYTES

Spoiling = Callable[[Hooked], None]


def new_hooked(tmp_path: Path) -> Iterator[Hooked]:
    for program in made_program(tmp_path):
        yield Hooked(program)


@pytest.fixture
def hooked(program: Program) -> Hooked:
    return Hooked(program)


def state_file(hooked: Hooked) -> Path:
    return hooked.session / "session.json"


def the_log(hooked: Hooked) -> Path:
    (path,) = hooked.program.logs()
    return path


# --- input -----------------------------------------------------------------------------------------------------------


@all_rows(
    "data,flags",
    {
        "nothing": (b"", ()),
        "a line end": (b"\n", ()),
        "cut": (b'{"session_id": "S", "hook_event_name": "PreToolUse", "cwd"', ()),
        "bytes": (bytes(range(256)), ()),
        "two objects": (b"{}{}", ()),
        "too much": (b'{"session_id": "' + b"x" * MOST_BYTES + b'"}', ()),
        "deep": (b'{"session_id":' * 50_000, ()),
        "an unknown flag": (b"{}", ("--polcy", "default")),
        "a flag without its value": (b"{}", ("--policy",)),
        "words behind": (b"{}", ("--policy", "default", "more")),
        "no such policy": (b"{}", ("--policy", "/nowhere.toml")),
    },
    anew={"hooked": new_hooked},
)
def test_input_that_makes_no_sense_is_refused(hooked: Hooked, data: bytes, flags: tuple[str, ...]) -> None:
    if data == b"{}":
        data = hooked.event()
    done = hooked.hook(data, *flags)
    assert is_refusal(done), done
    assert hooked.program.logs() == []


def test_hook_for_an_unknown_agent_is_refused(hooked: Hooked) -> None:
    done = finished(hooked.program.start("hook", "clod", stdin=subprocess.PIPE), hooked.event())
    assert (done.code, done.out) == (2, "")


# --- surroundings ------------------------------------------------------------------------------------------------------


def _policy(text: str) -> Spoiling:
    def spoil(hooked: Hooked) -> None:
        folder = Path(hooked.environment["XDG_CONFIG_HOME"]) / "harness"
        folder.mkdir(parents=True)
        (folder / "policy.toml").write_text(text)

    return spoil


def _state_is_a_file(hooked: Hooked) -> None:
    (hooked.program.state / "harness").write_text("")


def _agents_is_a_file(hooked: Hooked) -> None:
    (hooked.program.state / "harness").mkdir()
    (hooked.program.state / "harness" / "agents").write_text("")


def _state_in_the_workspace(hooked: Hooked) -> None:
    hooked.environment["XDG_STATE_HOME"] = str(hooked.workspace)


def _no_workspace(hooked: Hooked) -> None:
    hooked.environment["CLAUDE_PROJECT_DIR"] = str(hooked.workspace / "gone")


def _project_policy_is_a_folder(hooked: Hooked) -> None:
    (hooked.workspace / ".harness" / "policy.toml").mkdir(parents=True)


def _log_removed(hooked: Hooked) -> None:
    the_log(hooked).unlink()


def _log_emptied(hooked: Hooked) -> None:
    os.truncate(the_log(hooked), 0)


def _state_file(text: str) -> Spoiling:
    def spoil(hooked: Hooked) -> None:
        state_file(hooked).write_text(text)

    return spoil


def _state_without(name: str) -> Spoiling:
    def spoil(hooked: Hooked) -> None:
        held = json.loads(state_file(hooked).read_text())
        del held[name]
        state_file(hooked).write_text(json.dumps(held))

    return spoil


def _state_with(**fields: object) -> Spoiling:
    def spoil(hooked: Hooked) -> None:
        held = json.loads(state_file(hooked).read_text())
        state_file(hooked).write_text(json.dumps({**held, **fields}))

    return spoil


def _state_is_a_folder(hooked: Hooked) -> None:
    state_file(hooked).unlink()
    state_file(hooked).mkdir()


def _lock_is_a_link(hooked: Hooked) -> None:
    (hooked.session / "lock").unlink()
    (hooked.session / "lock").symlink_to(hooked.workspace / "f.txt")


@all_rows(
    "spoil",
    {
        "a broken policy of the person": _policy("version = 1\n[tools]\nbash = 'perhaps'\n"),
        "a policy whose example fails": _policy(
            'version = 1\n[[rule]]\nid = "a"\ndecision = "auto"\nargv = ["ls"]\nmatch = ["pwd"]\n'
        ),
        "a policy that is no text": _policy("\x00"),
        "a project policy that is a folder": _project_policy_is_a_folder,
        "a state folder that is a file": _state_is_a_file,
        "a folder of agents that is a file": _agents_is_a_file,
        "a state folder in the workspace": _state_in_the_workspace,
        "a workspace that is not there": _no_workspace,
    },
    anew={"hooked": new_hooked},
)
def test_unusable_surroundings_refuse_the_call(hooked: Hooked, spoil: Spoiling) -> None:
    spoil(hooked)
    done = hooked.hook(hooked.event())
    assert is_refusal(done), done


@all_rows(
    "spoil",
    {
        "empty": _state_file(""),
        "cut": _state_file('{"v": 1, "log": '),
        "a list": _state_file("[]"),
        "nested": _state_file("[" * 100_000),
        "another version": _state_with(v=2),
        "no log named": _state_without("log"),
        "no latch": _state_without("latch"),
        "no open calls": _state_without("open"),
        "open calls that are none": _state_with(open=[{"number": 1}]),
        "a number that is a text": _state_with(proposed="1"),
        "grants that are none": _state_with(grants=[{"id": "x"}]),
        "a folder": _state_is_a_folder,
        "the log removed": _log_removed,
        "the log emptied": _log_emptied,
        "another's lock": _lock_is_a_link,
    },
    anew={"hooked": new_hooked},
)
def test_a_session_that_makes_no_sense_refuses(hooked: Hooked, spoil: Spoiling) -> None:
    assert hooked.hook(hooked.event()).code == 0
    spoil(hooked)
    done = hooked.hook(hooked.event(use_id="c2"))
    assert is_refusal(done), done


def test_log_that_lost_its_end_is_not_continued(hooked: Hooked) -> None:
    hooked.hook(hooked.event(use_id="c1"))
    hooked.hook(hooked.event(use_id="c2"))
    lines = the_log(hooked).read_bytes().splitlines(keepends=True)
    the_log(hooked).write_bytes(b"".join(lines[:4]))
    done = hooked.hook(hooked.event(use_id="c3"))
    assert is_refusal(done), done
    assert "gone" in done.err


def test_event_without_a_folder_is_judged_in_that_of_the_hook(hooked: Hooked) -> None:
    for path, code in (("f.txt", 0), (hooked.workspace / "f.txt", 0), (hooked.workspace.parent, 2)):
        event = {"agent_action_name": "pre_read_code", "trajectory_id": "S", "tool_info": {"file_path": str(path)}}
        process = hooked.program.start("hook", "windsurf", stdin=subprocess.PIPE)
        assert finished(process, json.dumps(event).encode()).code == code, path


def test_linked_worktree_is_a_workspace_with_its_own_policy(hooked: Hooked, tmp_path: Path) -> None:
    top, linked = tmp_path / "top", tmp_path / "linked"
    top.mkdir()
    run_git(top, "init", "-q")
    rule = '[[rule]]\nid = "no-make"\ndecision = "deny"\nargv = ["make"]\nreason = "Not here."\n'
    (top / ".harness").mkdir()
    (top / ".harness" / "policy.toml").write_text(f'version = 1\nname = "p"\n{rule}')
    run_git(top, "add", "-A")
    run_git(top, "commit", "-qm", "x")
    run_git(top, "worktree", "add", "-q", str(linked))
    (linked / "sub").mkdir()
    hooked.environment["CLAUDE_PROJECT_DIR"] = str(linked / "sub")
    done = hooked.hook(hooked.event(command="make", cwd=str(linked / "sub")))
    assert f"rule no-make ({linked}/.harness/policy.toml:3)" in done.out
    assert hooked.records()[0]["workspace"] == str(linked)
    outside = hooked.hook(hooked.event(command=f"cat {top}/f", use_id="c2", cwd=str(linked / "sub")))
    assert "lies outside" in outside.out


def test_hook_works_without_account_variables(hooked: Hooked) -> None:
    for name in ("HOME", "LANG", "TERM"):
        hooked.environment.pop(name)
    assert hooked.hook(hooked.event()).code == 0


def test_hook_works_in_a_deleted_folder(hooked: Hooked, tmp_path: Path) -> None:
    gone = shell_word(tmp_path / "gone")
    line = f"cd {gone} && rmdir {gone} && exec {shlex.join(hooked.program.command('hook', 'claude'))}"
    (tmp_path / "gone").mkdir()
    process = subprocess.run(
        ["bash", "-c", line],
        input=hooked.event(),
        env={**hooked.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process


# --- streams ---------------------------------------------------------------------------------------------------------


@all_rows("streams", ["<&-", ">&-", "<&- >&-", ">/dev/full", "<&- >&- 2>&-", ">&- 2>&-"])
def test_unreadable_answer_is_a_refusal_and_not_logged(streams: str, hooked: Hooked) -> None:
    line = f"exec {shlex.join(hooked.program.command('hook', 'claude'))} {streams}"
    process = subprocess.run(
        ["bash", "-c", line],
        input=hooked.event(use_id=streams),
        env=hooked.environment,
        cwd=hooked.workspace,
        capture_output=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (2, b"")
    hooked.records()  # no answer stands in a log


# --- time ------------------------------------------------------------------------------------------------------------


def _until_caught(process: subprocess.Popen[bytes], number: int) -> None:
    """Wait until a process handles a signal."""
    while True:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1]
        if int(caught, 16) >> (number - 1) & 1:
            return
        os.sched_yield()


def _until_open(process: subprocess.Popen[bytes], path: Path) -> None:
    """Wait until a process has opened a file, or is gone."""
    while os.path.exists(f"/proc/{process.pid}/fd"):
        with suppress(OSError):
            for number in os.listdir(f"/proc/{process.pid}/fd"):
                if os.readlink(f"/proc/{process.pid}/fd/{number}") == str(path):
                    return
        os.sched_yield()


def test_a_decision_that_takes_too_long_is_a_refusal(hooked: Hooked) -> None:
    process = hooked.start()  # its event never comes
    _until_caught(process, signal.SIGALRM)
    process.send_signal(signal.SIGALRM)
    code = process.wait(timeout=300)
    out, err = process.communicate(timeout=300)
    assert (code, out) == (2, b"")
    assert b"longer" in err


def test_hook_gives_up_before_its_agent_does() -> None:
    """An agent lets the call run where its hook takes longer than it waits: `wanted` tells it 600 s."""
    now, caught = [1000.0], signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        hook_time = HookTime(monotonic=lambda: now[0])
        left = []
        for seconds in (0.0, 400.0, 300.0):  # a session that is held, a question, another question
            with hook_time.stopped():
                left.append(signal.getitimer(signal.ITIMER_REAL)[0])
                now[0] += seconds
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= OWN_SECONDS
        with hook_time.stopped():
            assert signal.getitimer(signal.ITIMER_REAL)[0] < LEAST_SECONDS
        assert MOST_SECONDS < 600.0
        assert left[0] > MOST_SECONDS - 400.0 >= left[2]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, caught)


def test_a_session_that_another_process_holds_is_waited_for_and_then_refused(hooked: Hooked) -> None:
    hooked.hook(hooked.event())
    lock = hooked.session / "lock"
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = hooked.start()
        assert process.stdin is not None
        process.stdin.write(hooked.event(use_id="c2"))
        process.stdin.close()
        process.stdin = None
        _until_open(process, lock)
        process.send_signal(signal.SIGALRM)  # as at the end of its time
        done = finished(process)
    assert is_refusal(done), done


@all_rows("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV])
def test_the_line_that_an_agent_is_given_refuses_for_a_hook_that_is_killed(number: int, hooked: Hooked) -> None:
    line = f"{shlex.join(hooked.program.command('hook', 'claude'))} || {{ echo 'the hook failed' >&2; exit 2; }}"
    process = subprocess.Popen(
        ["sh", "-c", line],
        env=hooked.environment,
        cwd=hooked.workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child = 0
    while not child:
        text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        child = int(text[0]) if text else 0
    os.kill(child, number)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, b"")
    assert b"the hook failed" in err


# --- a disk that is full -----------------------------------------------------------------------------------------------


def test_disk_full_at_any_byte_never_runs_an_unlogged_call(hooked: Hooked) -> None:
    """Files grow to so many bytes and no further: of log, session, heads, ticket, key."""
    assert hooked.hook(hooked.event(use_id="c0")).code == 0
    size = max(path.stat().st_size for path in hooked.program.state.rglob("*") if path.is_file())
    steps = proof_size("FULL_DISKS", 24, full=400)
    for number in range(1, steps + 1):
        limit = size * 2 * number // steps
        done = hooked.hook(hooked.event(use_id=f"c{number}", command="true"), file_size=limit)
        assert is_refusal(done) or (done.code == 0 and "intent" in _kinds_of(hooked, f"c{number}")), (limit, done)
    assert hooked.hook(hooked.event(use_id="last")).code == 0
    hooked.records()


@all_rows("limit", [0, 1, 31, 32, 100, 500, 2000, 6000, 9000, 12_000], anew={"hooked": new_hooked})
def test_session_started_on_a_full_disk_runs_no_unlogged_call(hooked: Hooked, limit: int) -> None:
    done = hooked.hook(hooked.event(), file_size=limit)
    assert is_refusal(done) or (done.code == 0 and "intent" in _kinds_of(hooked, "c1")), done
    again = hooked.hook(hooked.event(use_id="c2"))
    assert again.code == 0, again
    hooked.records()


def _kinds_of(hooked: Hooked, use_id: str) -> list[object]:
    records = hooked.records()
    numbers = [record["call"] for record in records if record.get("id") == use_id]
    return [record["kind"] for record in records if record.get("call") in numbers]


# --- many at once --------------------------------------------------------------------------------------------------------


def test_command_that_ran_is_never_reported_as_not_run(hooked: Hooked) -> None:
    words = hooked.words("echo begun; cat")
    process = hooked.program.start(*words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    the_log(hooked).unlink()
    done = finished(process, b"end\n")
    assert (done.code, done.out) == (0, "end\n")
    assert "not run" not in done.err
    assert "could not be recorded" in done.err


def test_hooks_side_by_side_write_one_log(hooked: Hooked) -> None:
    many = 20
    commands = ["ls", "touch x", "cat .env"]
    processes = [hooked.start() for _ in range(many)]
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(hooked.event(use_id=f"c{number}", command=commands[number % 3]))
        process.stdin.close()
        process.stdin = None
    answers = [finished(process) for process in processes]
    assert all(done.code == 0 for done in answers)
    refused = ['"permissionDecision": "deny"' in done.out for done in answers]
    assert refused == [number % 3 == 2 for number in range(many)]
    records = hooked.records()
    assert len(hooked.program.logs()) == 1
    for kind in ("call_proposed", "decision"):
        assert {record["call"] for record in records if record["kind"] == kind} == {*range(1, many + 1)}
        assert [record["kind"] for record in records].count(kind) == many
    assert [record["kind"] for record in records].count("session_started") == 1


def test_hooks_and_commands_side_by_side_write_one_log(hooked: Hooked) -> None:
    lines = [hooked.words("true", f"t{number}") for number in range(6)]
    processes = []
    for number, words in enumerate(lines):
        processes.append(hooked.program.start(*words))
        process = hooked.start()
        assert process.stdin is not None
        process.stdin.write(hooked.event(use_id=f"c{number}"))
        process.stdin.close()
        process.stdin = None
        processes.append(process)
    assert [finished(process).code for process in processes] == [0] * 12
    assert hooked.outcomes() == dict.fromkeys(range(1, 7), ("ok", 0))
    numbers = [record["call"] for record in hooked.records() if record["kind"] == "call_proposed"]
    assert numbers == list(range(1, 13))


def test_sessions_side_by_side_have_a_log_each(hooked: Hooked) -> None:
    processes = [hooked.start() for _ in range(4)]
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(hooked.event(session_id=str(number)))
        process.stdin.close()
        process.stdin = None
    assert [finished(process).code for process in processes] == [0] * 4
    hooked.records()
    assert len(hooked.program.logs()) == 4


def test_killed_hook_leaves_a_session_that_continues(hooked: Hooked) -> None:
    """Whenever it is killed: what it had written counts, and the next call has another number."""
    hooked.hook(hooked.event(use_id="c0"))
    for number in range(1, 9):
        process = hooked.start()
        assert process.stdin is not None
        process.stdin.write(hooked.event(use_id=f"c{number}"))
        process.stdin.close()
        process.stdin = None
        if number % 2:
            _until_open(process, hooked.session / "lock")
        process.send_signal(signal.SIGKILL)
        finished(process)
    assert hooked.hook(hooked.event(use_id="last")).code == 0
    numbers = [record["call"] for record in hooked.records() if record["kind"] == "call_proposed"]
    assert len(numbers) == len(set(numbers))

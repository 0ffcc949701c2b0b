"""`harness exec` as a process: by which ticket what runs, behind which walls, and that all passes through as it is."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_process import Hooked, exec_words, finished
from places import shell_word
from process_scene import wait_until
from program import Done, Program, made_program
from rows import all_rows

from harness.files.recorded_changes import changes_from
from harness.plugins.agents.confined_run import NOT_STARTED
from harness.plugins.agents.tickets import ASKED_SECONDS
from harness.process import procfs
from harness.process.environment import child_environment
from harness.process.start import find_bash
from harness.sandbox import enforces, probe, tried, why_no_namespaces

pytestmark = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine commands")

BASH = f"{find_bash(())} --noprofile --norc"
FETCH = r"""
import os, socket, sys
def asked(port):
    proxy = os.environ["http_proxy"].removeprefix("http://").split(":")
    with socket.create_connection((proxy[0], int(proxy[1])), 60) as wire:
        wire.sendall(b"GET http://localhost:%%d/ HTTP/1.0\r\n\r\n" %% port)
        head, _, body = wire.makefile("rb").read().decode().partition("\r\n\r\n")
        return body if " 200 " in head else head.split()[1]
def direct(port):
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
        return "reached"
    except OSError:
        return "refused"
print(asked(%d), asked(%d), direct(%d))
sys.exit(3)
"""
"""A program that asks two ports through the proxy, and one beside it."""
LEFT_RUNNING = r"""
import os, sys
from harness.plugins.agents.confined_run import run_confined
from harness.plugins.agents.tickets import Ticket
from harness.record import replace
from harness.redaction.redactor import Redactor
from harness.sandbox import Walls, probe, tried

level, workspace, images = sys.argv[1:]
abilities = replace(tried(replace(probe(), in_session=True)), in_session=True)
if level != "namespaces":
    abilities = replace(abilities, no_namespaces="left out", landlock=0 if level == "bubblewrap" else abilities.landlock)
if level == "landlock":
    abilities = replace(abilities, bubblewrap="")
late = "mkdir -p .claude .vscode; echo x > .claude/settings.json; echo x > .vscode/tasks.json; touch .envrc"
waits = f"cd {workspace}; trap : TERM; until test -e go; do sleep 0.02; done; {late}"
command = f"(exec setsid bash -c '{waits}') >/dev/null 2>&1 & ({waits}) >/dev/null 2>&1 & sleep 0; echo begun"
ticket = Ticket(
    command=command,
    cwd=workspace,
    walls=Walls(write=(workspace,), network=False),
    keeps_temporary=False,
    good_seconds=600.0,
    required=False,
    watched=workspace,
)
end = run_confined(ticket, dict(os.environ), images, Redactor(()), abilities=abilities)
open(f"{workspace}/go", "w").close()
print(*end.notes, sep="\n", flush=True)
"""
"""A program that runs a command which leaves processes running, on a machine with one kind of walls."""
WAITS = 'echo ready; read -r line; echo "got $line"'
"""A command that goes on when it is told to."""


def new_hooked(tmp_path: Path) -> Iterator[Hooked]:
    for program in made_program(tmp_path):
        yield Hooked(program)


@pytest.fixture
def hooked(program: Program) -> Hooked:
    return Hooked(program)


def ticket_of(hooked: Hooked, words: list[str]) -> Path:
    """Return the file of the ticket that these words name."""
    return hooked.session / "tickets" / words[2].rpartition(".")[2]


def is_not_run(done: Done) -> bool:
    return done.code == NOT_STARTED and done.out == "" and "not run" in done.err


def in_a_shell(hooked: Hooked, line: str, **options: Any) -> Done:
    """Run a line as the agent's own shell does."""
    given: dict[str, Any] = {"cwd": hooked.workspace, "env": hooked.environment, **options}
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, check=False, **given)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


WRITES_AND_ENDS = {
    "exit 0": 0,
    "exit 7": 7,
    "kill -9 $$": 137,
    "kill $$": 143,
    "kill -INT $$": 130,
    "kill -USR1 $$": 138,
}
needs_namespaces = pytest.mark.skipif(why_no_namespaces(probe()) != "", reason="commands get no namespaces here")

# --- what ends how -----------------------------------------------------------------------------------------------------


@all_rows(
    "command,code",
    [
        *((f"exit {code}", code) for code in (0, 1, 2, 7, 77, 125, 126, 127, 128, 130, 137, 254, 255)),
        ("kill -9 $$", 137),
        ("kill $$", 143),
        ("kill -SEGV $$", 139),
        ("kill -INT $$", 130),
        ("true", 0),
        ("false", 1),
        ("no-such-program", 127),
        ("cat nowhere", 1),
        ("echo (", 2),
        *((f"touch made; {command}", code) for command, code in WRITES_AND_ENDS.items()),
    ],
)
def test_the_end_of_a_command_is_ours(command: str, code: int, hooked: Hooked) -> None:
    done = hooked.run(command, use_id=command)
    assert done.code == code, done
    number = max(hooked.outcomes())
    assert hooked.outcomes()[number] == ("ok" if code == 0 else "failed", code)


def test_outcome_recorded_by_exec_is_not_recorded_again(hooked: Hooked) -> None:
    words = hooked.words("ls")
    hooked.exec(words)
    line = shlex.join(["harness", *words])
    hooked.hook(hooked.event("PostToolUse", command=line, tool_response={"stdout": "other"}))
    outcomes = [record for record in hooked.records() if record["kind"] == "outcome"]
    assert [(one["seen_by"], one["exit_code"]) for one in outcomes] == [("harness exec", 0)]


def test_approved_command_has_an_intent_before_it_runs(hooked: Hooked) -> None:
    done = hooked.run("touch made")
    assert (done.code, (hooked.workspace / "made").exists()) == (0, True)
    kinds = [record["kind"] for record in hooked.records()]
    assert kinds[-5:] == ["decision", "approval_asked", "approval_answered", "intent", "outcome"]


def test_outcome_of_a_writing_command_names_its_changes_and_undo_takes_them_back(hooked: Hooked) -> None:
    (hooked.workspace / ".env").write_text("KEY=1\n")
    assert hooked.run("cat f.txt; ls", use_id="1").code == 0
    assert hooked.run("touch made && cp made other", use_id="2").code == 0
    read, wrote = [record for record in hooked.records() if record["kind"] == "outcome"]
    assert "changes" not in read
    assert isinstance(wrote["changes"], dict)
    assert [change.path for change in changes_from(wrote["changes"]).changes] == ["made", "other"]
    done = hooked.program.run("undo")
    assert [line.split()[:2] for line in done.out.splitlines()[1:3]] == [["removed", "made"], ["removed", "other"]], (
        done
    )
    assert sorted(path.name for path in hooked.workspace.iterdir() if path.name in ("made", "other")) == []


# --- tickets -----------------------------------------------------------------------------------------------------------

Spoiling = Callable[[Hooked, list[str]], list[str] | None]


def _edited(**fields: object) -> Spoiling:
    def spoil(hooked: Hooked, words: list[str]) -> None:
        path = ticket_of(hooked, words)
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return spoil


def _text(text: str) -> Spoiling:
    def spoil(hooked: Hooked, words: list[str]) -> None:
        ticket_of(hooked, words).write_text(text)

    return spoil


def _named(form: str) -> Spoiling:
    return lambda hooked, words: [words[0], words[1], form.format(words[2]), *words[3:]]


def _old(hooked: Hooked, words: list[str]) -> None:
    path = ticket_of(hooked, words)
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "made": held["made"] - ASKED_SECONDS - 1}))


def _from_the_future(hooked: Hooked, words: list[str]) -> None:
    path = ticket_of(hooked, words)
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "made": held["made"] + 1e6}))


def _used(hooked: Hooked, words: list[str]) -> None:
    assert hooked.exec(words).code == 0
    (hooked.workspace / "made").unlink()


def _blocked(hooked: Hooked, words: list[str]) -> None:
    hooked.hook(hooked.event(command="rm -rf /", use_id="c2"))


def _ended(hooked: Hooked, words: list[str]) -> None:
    hooked.hook(hooked.event("SessionEnd"))


def _lock_is_a_folder(hooked: Hooked, words: list[str]) -> None:
    (hooked.session / "lock").unlink()
    (hooked.session / "lock").mkdir()


def _log_is_gone(hooked: Hooked, words: list[str]) -> None:
    (path,) = hooked.program.logs()
    path.unlink()


def _session_is_broken(hooked: Hooked, words: list[str]) -> None:
    (hooked.session / "session.json").write_text("{")


def _session_is_gone(hooked: Hooked, words: list[str]) -> None:
    (hooked.session / "session.json").unlink()


def _ticket_is_a_folder(hooked: Hooked, words: list[str]) -> None:
    path = ticket_of(hooked, words)
    path.unlink()
    path.mkdir()


@all_rows(
    "spoil",
    {
        "used": _used,
        "too old": _old,
        "from the future": _from_the_future,
        "unknown": lambda _, words: [*words[:2], f"{words[2].rpartition('.')[0]}.{'0' * 16}", *words[3:]],
        "of no session": _named("claude-0.{0}"),
        "without a session": lambda _, words: [*words[:2], words[2].rpartition(".")[2], *words[3:]],
        "a path": _named("../agents/{0}"),
        "above": lambda _, words: [*words[:2], f"...{words[2].rpartition('.')[2]}", *words[3:]],
        "another case": lambda _, words: [*words[:2], words[2].upper(), *words[3:]],
        "empty": lambda _, words: [*words[:2], "", *words[3:]],
        "another command": lambda _, words: [*words[:4], "touch other"],
        "a command with a blank behind": lambda _, words: [*words[:4], f"{words[4]} "],
        "several words": lambda _, words: [*words[:4], "touch", "made"],
        "no command": lambda _, words: words[:4],
        "no words": lambda _, words: words[:1],
        "another command in the ticket": _edited(command="touch other"),
        "another folder in the ticket": _edited(cwd="/"),
        "more in the ticket": _edited(more=1),
        "walls that are none": _edited(walls=None),
        "walls with more": _edited(walls={"write": [], "more": 1}),
        "a call that is not open": _edited(call=7),
        "a time that is none": _edited(good_seconds="long"),
        "no text": _text(""),
        "cut": _text('{"command": '),
        "a list": _text("[]"),
        "a folder": _ticket_is_a_folder,
        "blocked meanwhile": _blocked,
        "ended meanwhile": _ended,
        "no lock": _lock_is_a_folder,
        "no log": _log_is_gone,
        "a broken session": _session_is_broken,
        "no session any more": _session_is_gone,
    },
    anew={"hooked": new_hooked},
)
def test_command_without_a_valid_ticket_does_not_run(hooked: Hooked, spoil: Spoiling) -> None:
    words = hooked.words("touch made")
    words = spoil(hooked, words) or words
    done = hooked.exec(words)
    assert is_not_run(done), done
    assert not [*hooked.workspace.glob("made"), *hooked.workspace.glob("other")]


def test_a_ticket_is_for_the_folder_in_which_it_was_judged(hooked: Hooked) -> None:
    (hooked.workspace / "sub").mkdir()
    done = hooked.exec(hooked.words("touch made"), cwd=hooked.workspace / "sub")
    assert is_not_run(done), done
    (hooked.workspace / "link").symlink_to("sub")
    words = hooked.words("touch made", "c2", cwd=str(hooked.workspace / "link"))
    assert hooked.exec(words, cwd=hooked.workspace / "sub").code == 0
    assert (hooked.workspace / "sub" / "made").exists()


def test_a_folder_that_was_removed_is_named(hooked: Hooked) -> None:
    gone = hooked.workspace / "gone"
    gone.mkdir()
    words = hooked.words("ls", cwd=str(gone))
    line = f"cd gone; rmdir ../gone; exec {shlex.join([sys.executable, '-m', 'harness', *words])}"
    done = in_a_shell(hooked, line)
    assert is_not_run(done), done
    assert "the current folder was removed" in done.err


def test_ticket_is_used_by_one_of_two_concurrent_runs(hooked: Hooked) -> None:
    for number in range(5):
        words = hooked.words("echo ran >> made", f"c{number}")
        both = [finished(process) for process in [hooked.program.start(*words), hooked.program.start(*words)]]
        assert sorted(done.code for done in both) == [0, NOT_STARTED]
    assert (hooked.workspace / "made").read_text() == "ran\n" * 5


def test_asked_command_does_not_run_on_a_full_disk(hooked: Hooked) -> None:
    words = hooked.words("touch made")
    done = hooked.exec(words, file_size=500)
    assert is_not_run(done), done
    assert not (hooked.workspace / "made").exists()


def test_a_command_that_ran_ends_as_it_ended_though_it_cannot_be_recorded(hooked: Hooked) -> None:
    process = hooked.program.start(*hooked.words(f"{WAITS}; exit 5"), stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    _lock_is_a_folder(hooked, [])
    done = finished(process, b"go\n")
    assert (done.code, done.out) == (5, "got go\n")
    assert "recorded" in done.err
    assert hooked.outcomes() == {}


# --- what passes through -------------------------------------------------------------------------------------------------


@all_rows("command", ["tee /dev/stderr", "touch made; tee /dev/stderr"], anew={"hooked": new_hooked})
def test_bytes_pass_through_both_ways(hooked: Hooked, command: str) -> None:
    data = bytes(range(256)) * 4000
    process = hooked.program.start(*hooked.words(command), stdin=subprocess.PIPE)
    out, err = process.communicate(data, timeout=300)
    assert (out == data, err == data, process.returncode) == (True, True, 0)


@all_rows(
    "command",
    [
        "echo /proc/self/fd/*",
        "pwd",
        "echo $0 $# $- $SHLVL",
        "echo $GIVEN",
        "umask",
        "ulimit -n",
        "trap",
        "alias; declare -F",
        "yes | head -n 1; echo ${PIPESTATUS[0]}",
        "type ls",
        "kill -l 13; sh -c 'trap' ",
        "printf '%s\\n' \"$PATH\"",
        "touch made; echo /proc/self/fd/* $0 $# $- $SHLVL $GIVEN; umask; ulimit -n; trap; pwd",
    ],
)
def test_command_runs_as_in_the_shell_of_the_agent_with_the_variables_of_our_prompt(
    command: str, hooked: Hooked
) -> None:
    hooked.environment["GIVEN"] = "given"
    words = hooked.words(command, command)
    done = in_a_shell(hooked, f"exec {shlex.join(hooked.program.command(*words))}")
    bare = in_a_shell(hooked, f"exec {BASH} -c -- {shlex.quote(command)}", env=child_environment(hooked.environment))
    assert done == bare


KEY = "Gh4xT0keN9vQ2mLp7RsZ"
PASSWORD = "correct-horse-battery"  # of a variable whose name sounds secret; nothing in it looks made by chance


@all_rows(
    "command",
    [
        "printenv GITHUB_TOKEN",
        "env",
        'echo "$DB_PASSWORD"',
        "printf '%s\\n' $GITHUB_TOKEN",
        "awk 'BEGIN{print ENVIRON[\"GITHUB_TOKEN\"]}'",
        'cat <<< "$DB_PASSWORD"',
        "bash -c 'echo $GITHUB_TOKEN'",
        "declare -p",
        "export -p; set",
        "cat /proc/self/environ",
        "python3 -c 'import os; print(os.environ)'",
        "touch made; env",
    ],
)
def test_no_key_of_the_agent_reaches_a_command(command: str, hooked: Hooked) -> None:
    hooked.environment.update(GITHUB_TOKEN=KEY, DB_PASSWORD=PASSWORD)
    done = hooked.run(command, command)
    assert "not run" not in done.err
    assert KEY not in f"{done}"
    assert PASSWORD not in f"{done}"
    assert "[redacted:" not in f"{done}"  # it was not there to be masked


def test_secrets_in_the_output_of_a_command_are_masked(hooked: Hooked) -> None:
    hooked.environment.update(GITHUB_TOKEN=KEY, DB_PASSWORD=PASSWORD)
    (hooked.workspace / ".git" / "config").write_text(f'[remote "o"]\nurl = https://u:{KEY}@example.org/x\n')
    (hooked.workspace / "settings").write_text(f"first\nlogin {PASSWORD} of ann\nl\xe4st \0", "latin-1")
    done = hooked.run("cat .git/config settings; cat settings >&2", "1")
    assert re.fullmatch(r"first\nlogin \[redacted:\S+\] of ann\nl\ufffdst \0", done.err), done
    assert (done.out.count("[redacted:"), KEY in done.out, PASSWORD in done.out) == (2, False, False), done
    done = hooked.run("touch made; cat settings; exit 3", "2")
    assert (done.code, done.out.count("[redacted:"), PASSWORD in done.out) == (3, 1, False)


def test_token_in_the_address_of_a_remote_is_masked(hooked: Hooked) -> None:
    subprocess.run(["git", "init", "-q", hooked.workspace], check=True)
    address = f"https://ann:{KEY}@example.org/x.git"
    subprocess.run(["git", "-C", hooked.workspace, "remote", "add", "origin", address], check=True)
    done = hooked.run("git remote -v")
    assert (done.code, done.out.count("ann:[redacted:"), KEY in done.out) == (0, 2, False), done


def test_both_outputs_into_one_file_keep_their_order(hooked: Hooked, tmp_path: Path) -> None:
    command = "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; done"
    with (tmp_path / "both").open("wb") as file:
        assert hooked.exec(hooked.words(command), stdout=file, stderr=file).code == 0
    assert (tmp_path / "both").read_text() == "".join(f"{word} {n}\n" for n in range(1, 10) for word in ("out", "err"))


def test_last_output_of_a_background_process_is_masked(hooked: Hooked) -> None:
    hooked.environment["DB_PASSWORD"] = PASSWORD
    (hooked.workspace / "settings").write_text(f"login {PASSWORD}\n")
    ends = "trap 'cat settings; exit' TERM; echo ready > made; while :; do sleep 0.01; done"
    done = hooked.run(f"touch made; ({ends}) & until test -s made; do sleep 0.01; done; printf begun")
    assert done.code == 0
    assert re.fullmatch(r"begunlogin \[redacted:\S+\]\n", done.out)


def test_command_ends_when_nobody_reads_its_output(hooked: Hooked) -> None:
    with hooked.program.start(*hooked.words("yes")) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(timeout=300) == 128 + signal.SIGPIPE


@all_rows("streams", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", "</dev/zero", ">/dev/full"])
def test_closed_and_odd_streams_are_the_commands_own(streams: str, hooked: Hooked) -> None:
    for first in ("ls -l /proc/self/fd > /dev/null", "touch made"):
        command = f"{first}; head -c 3 | od; echo out; echo err >&2"
        words = hooked.words(command, f"{first} {streams}")
        done = in_a_shell(hooked, f"exec {shlex.join(hooked.program.command(*words))} {streams}")
        bare = in_a_shell(hooked, f"exec {BASH} -c -- {shlex.quote(command)} {streams}")
        assert done == bare
    hooked.records()


@all_rows("command", ["true", "touch made && echo over > /dev/stderr"], anew={"hooked": new_hooked})
def test_a_terminal_stays_one(hooked: Hooked, command: str) -> None:
    words = hooked.words(
        f'test -t 0 && test -t 1 && test -t 2 && tty | tr a-z A-Z; {command}; read -r line; echo "got $line"'
    )
    outer, inner = os.openpty()
    process = hooked.program.start(*words, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    os.write(outer, b"typed\n")
    seen = b""
    try:
        while data := os.read(outer, 65_536):
            seen += data
    except OSError:  # Linux reports the closed other side as an error
        pass
    os.close(outer)
    assert process.wait(timeout=300) == 0
    assert b"/DEV/" in seen
    assert (b"over\r\n" in seen) == ("over" in command)
    assert b"got typed\r\n" in seen


@all_rows(
    "name,value",
    {
        "BASH_ENV": ("BASH_ENV", "{file}"),
        "ENV": ("ENV", "{file}"),
        "a function": ("BASH_FUNC_ls%%", "() {{ echo evil; }}"),
        "a function for a builtin": ("BASH_FUNC_echo%%", "() {{ builtin echo evil; }}"),
        "an old function": ("BASH_FUNC_ls()", "() {{ echo evil; }}"),
        "options": ("SHELLOPTS", "xtrace"),
        "options of bash": ("BASHOPTS", "extglob:nullglob"),
        "a prompt of xtrace": ("PS4", "$(echo evil >&2)"),
        "POSIX": ("POSIXLY_CORRECT", "1"),
        "words": ("IFS", "l"),
        "folders of cd": ("CDPATH", "/"),
        "names that are passed over": ("GLOBIGNORE", "*"),
        "the command before a prompt": ("PROMPT_COMMAND", "echo evil"),
        "other characters": ("LC_ALL", "xx_YY.GBK"),
        "another order": ("LC_COLLATE", "xx_YY.UTF-8"),
    },
    anew={"hooked": new_hooked},
)
def test_environment_cannot_change_the_meaning_of_a_command(
    hooked: Hooked, name: str, value: str, tmp_path: Path
) -> None:
    file = tmp_path / "evil"
    file.write_text("echo evil\n")
    command = 'cd .git 2>/dev/null; cd ..; ls f*; echo a:b; x="l l"; echo $x; set +o | grep -c xtrace'
    plain = hooked.run(command, "plain")
    done = hooked.exec(hooked.words(command), env={**hooked.environment, name: value.format(file=file)})
    assert done == plain
    assert "evil" not in f"{done.out}{done.err}"


def test_a_signal_to_us_reaches_the_command(hooked: Hooked) -> None:
    for number, first in ((signal.SIGTERM, ""), (signal.SIGHUP, "touch made; "), (signal.SIGUSR1, "touch made; ")):
        name = signal.Signals(number).name[3:]
        command = f"{first}trap 'kill $!; echo caught; exit 7' {name}; sleep 1000 & echo ready; wait"
        process = hooked.program.start(*hooked.words(command, name))
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        done = finished(process)
        assert (done.code, done.out) == (7, "caught\n")
    assert hooked.outcomes() == dict.fromkeys((1, 2, 3), ("failed", 7))


def test_a_signal_that_kills_the_command_is_its_end(hooked: Hooked) -> None:
    process = hooked.program.start(*hooked.words("echo ready; exec sleep 1000"))
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert finished(process).code == 143
    assert hooked.outcomes() == {1: ("failed", 143)}


def test_a_command_ends_with_us(hooked: Hooked) -> None:
    process = hooked.program.start(*hooked.words("echo $$; exec sleep 1000"))
    assert process.stdout is not None
    number = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    finished(process)
    assert wait_until(lambda: not _is_running(number))
    # Its effect is not known, and another ticket is as good as before.
    assert hooked.outcomes() == {}
    assert hooked.run("true", "c2").code == 0


@needs_namespaces
def test_writing_command_ends_with_us_and_all_that_it_started(hooked: Hooked) -> None:
    command = "touch made; cat /proc/1/comm; sleep 4321 & setsid sleep 4321 & echo ready; wait"
    process = hooked.program.start(*hooked.words(command))
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"harness-keeper\n", b"ready\n"]
    keeper = _children(process.pid)
    running = [*keeper, *(number for one in keeper for number in _children(one))]
    assert len(running) == 3  # the keeper, the first process of its namespace, and the shell
    running += [number for one in running[1:] for number in _children(one)]
    process.send_signal(signal.SIGKILL)
    finished(process)
    assert wait_until(lambda: not any(map(_is_running, running)))


@all_rows(
    "lacking",
    {"namespaces": "namespaces", "bubblewrap": "bubblewrap", "Landlock alone": "landlock"},
)
def test_processes_left_running_end_with_the_command_before_protected_places_are_looked_at(
    lacking: str, tmp_path: Path
) -> None:
    """The places did not exist, so nothing could protect them, and the processes are in no session of the command."""
    if lacking == "namespaces" and why_no_namespaces(probe()):
        pytest.skip("commands get no namespaces here")
    if lacking == "bubblewrap" and not tried(probe()).bubblewrap:
        pytest.skip("bubblewrap does not work here")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", LEFT_RUNNING, lacking, str(workspace), str(tmp_path / "images")],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.splitlines()[0] == "begun"
    (note,) = done.stdout.splitlines()[1:]
    assert re.search(r"\[(\d+) background processes? (was|were) still running", note), note
    assert not running_with(str(tmp_path).encode())
    assert not [*workspace.glob(".claude/*"), *workspace.glob(".vscode/*"), *workspace.glob(".envrc")]


def test_the_agent_is_told_of_background_processes_that_ended_with_their_command(hooked: Hooked) -> None:
    seconds = 1_000_000 + os.getpid()
    done = hooked.run(f"touch made; sleep {seconds} > /dev/null 2>&1 < /dev/null & echo begun")
    assert (done.code, done.out) == (0, "begun\n")
    assert not running_with(b"sleep\0%d\0" % seconds)
    (line,) = done.err.splitlines()
    assert "1 background process was still running and has been ended: sleep" in line
    (outcome,) = [record for record in hooked.records() if record["kind"] == "outcome"]
    assert outcome["extra"] == {"jobs_ended": 1}


def test_a_late_write_to_the_settings_of_the_agent_never_comes(hooked: Hooked) -> None:
    policy = hooked.workspace.parent / "p.toml"
    policy.write_text('version = 1\nextends = ["workspace"]\n')
    (hooked.workspace / "late.py").write_text(
        "import os, time\n"
        "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
        "os.mkdir('.claude')\nopen('.claude/settings.json', 'w')\nopen('.envrc', 'w')\n"
    )
    line = "(python3 late.py) >/dev/null 2>&1 & echo bg"
    done = hooked.exec(exec_words(hooked.hook(hooked.event(command=line), "--policy", str(policy))))
    (hooked.workspace / "go").touch()
    assert (done.code, done.out) == (0, "bg\n")
    assert "1 background process was still running" in done.err or "2 background processes" in done.err
    assert not [*hooked.workspace.glob(".claude"), *hooked.workspace.glob(".envrc")]


def test_keys_reach_a_writing_command(hooked: Hooked) -> None:
    words = hooked.words("touch made; trap 'echo caught; exit 5' INT; echo ready; read -r line")
    outer, inner = os.openpty()
    process = hooked.program.start(
        *words, stdin=inner, stdout=inner, stderr=inner, start_new_session=True, controlling_terminal=True
    )
    os.close(inner)
    while b"ready" not in os.read(outer, 65_536):
        pass
    os.write(outer, b"\x03\n")  # a signal just before bash waits for the line is noticed only after the line
    assert process.wait(timeout=300) == 5
    os.close(outer)


def _children(number: int) -> list[int]:
    return sorted(procfs.children(number))


def running_with(words: bytes) -> list[int]:
    """Return the numbers of the processes whose command line has these words."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if words in _content(path)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _is_running(number: int) -> bool:
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


# --- walls -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def impostor(hooked: Hooked, tmp_path: Path) -> Callable[[str], None]:
    """Put another program in the place of `ls`: what the policy takes for a look does something else."""

    def put(body: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "ls").write_text(f"#!/bin/bash\n{body}\n")
        (folder / "ls").chmod(0o755)
        hooked.environment["PATH"] = f"{folder}:{hooked.environment['PATH']}"

    return put


def test_reading_command_cannot_write(hooked: Hooked, impostor: Callable[[str], None], tmp_path: Path) -> None:
    impostor(
        f"echo x > made; echo x >> f.txt; echo x > {shell_word(tmp_path)}/outside; rm f.txt; mkdir folder; echo done"
    )
    done = hooked.run("ls")
    assert (done.code, done.out) == (0, "done\n")
    assert (hooked.workspace / "f.txt").read_text() == "alpha\n"
    assert not [*hooked.workspace.glob("made"), *hooked.workspace.glob("folder"), *tmp_path.glob("outside")]


def test_reading_command_cannot_reach_the_network(hooked: Hooked, impostor: Callable[[str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        impostor(f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached || echo not")
        done = hooked.run("ls")
    assert (done.code, done.out) == (0, "not\n")


@needs_namespaces
def test_command_reaches_its_hosts_through_the_proxy_and_no_other(hooked: Hooked, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port, other_port = server.getsockname()[1], other.getsockname()[1]
        policy = tmp_path / "p.toml"
        policy.write_text(
            'version = 1\n[[rule]]\nid = "fetch"\ndecision = "auto"\nargv = ["python3", "fetch.py"]\nwrite = ["."]\n'
            f'network = ["localhost:{port}"]\n'
        )
        (hooked.workspace / "fetch.py").write_text(FETCH % (port, other_port, port))
        done = hooked.hook(hooked.event(command="python3 fetch.py"), "--policy", str(policy))
        process = hooked.program.start(*exec_words(done))
        with server.accept()[0] as client:
            client.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello")
        done = finished(process)
    assert (done.code, done.out) == (3, "hello 403 refused\n")
    assert f"harness: [network: refused: localhost:{other_port} is not among the hosts" in done.err
    (outcome,) = [record for record in hooked.records() if record["kind"] == "outcome"]
    assert outcome["connection_count"] == 2


def test_command_cannot_reach_the_state_of_the_harness(hooked: Hooked) -> None:
    state = hooked.program.state / "harness"
    hooked.hook(hooked.event(use_id="c0"))
    (log,) = hooked.program.logs()
    done = hooked.run(f"python3 -c 'import os, sys; sys.stdout.write(open(\"{log}\").read())'")
    assert (done.code, done.out) == (1, "")
    done = hooked.run(f'python3 -c \'open("{state}/made", "w")\'', "c2")
    assert (done.code, (state / "made").exists()) == (1, False)


def test_writing_command_has_its_own_temporary_folder(hooked: Hooked) -> None:
    done = hooked.run('test -d "$TMPDIR" && touch "$TMPDIR/x" && echo "$TMPDIR"; touch made')
    assert done.code == 0, done
    assert done.out.strip()
    assert not os.path.exists(done.out.strip())


# --- the folder that a command goes to -------------------------------------------------------------------------------------


def _line(hooked: Hooked, command: str, use_id: str) -> str:
    done = hooked.hook(hooked.event(command=command, use_id=use_id))
    assert exec_words(done)
    return str(json.loads(done.out)["hookSpecificOutput"]["updatedInput"]["command"])


@all_rows(
    "command",
    [
        "cd sub",
        "cd sub && true",
        "cd sub; false",
        "cd nowhere",
        "cd nowhere; true",
        "(cd sub)",
        "cd sub/deeper && cd ..",
        "pushd sub > /dev/null",
        "cd 'with space'",
        "cd $'new\\nline'",
        "cd link",
        "cd /",
        "cd sub; exit 4",
        "bash -c 'cd sub'",
        "cd sub; rmdir ../gone; cd ../gone",
        "echo cd sub",
    ],
)
def test_working_directory_is_kept_as_without_the_harness(command: str, hooked: Hooked) -> None:
    for name in ("sub/deeper", "with space", "new\nline", "gone"):
        (hooked.workspace / name).mkdir(parents=True, exist_ok=True)
    if not (hooked.workspace / "link").is_symlink():
        (hooked.workspace / "link").symlink_to("sub")
    # As Claude Code keeps it: `pwd -P` behind a command that ended well.
    form = "eval {} && pwd -P > {}"
    told = hooked.workspace.parent / "told"
    seen = []
    for line in (_line(hooked, command, command), command):
        told.unlink(missing_ok=True)
        (hooked.workspace / "gone").mkdir(exist_ok=True)
        done = in_a_shell(hooked, form.format(shell_word(line), shell_word(told)))
        quiet = re.sub(r"(?m)^.*(?:line \d+: |\bKilled\b).*\n?", "", done.err)  # bash names itself and the line
        seen.append((done.code, done.out, quiet, told.read_text() if told.exists() else ""))
    assert seen[0] == seen[1]


def test_a_program_of_the_workspace_does_not_take_our_place(hooked: Hooked) -> None:
    """Where the program is started as a module, Python looks for it in the current folder first."""
    for name in ("harness/__init__.py", "json.py", "signal.py"):
        path = hooked.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("import os\nos._exit(99)\n")
    line = _line(hooked, "echo ours", "c1")
    shutil.rmtree(hooked.workspace / "__pycache__", ignore_errors=True)
    done = in_a_shell(hooked, line)
    assert (done.code, done.out) == (0, "ours\n")

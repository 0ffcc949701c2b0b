"""`harness run` in surroundings that are odd, poor or hostile: streams, terminals, signals, disks, environments."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from places import ROOT
from process_scene import until_there
from process_scene import wait_until as holds
from program import made_program
from rows import all_rows
from run_scene import DONE, TOUCH, bash, flags_of, left_in, small_disk, wait_until, written

from harness.models.scripted import replies, say
from policies import AUTO, CONFIRM

if TYPE_CHECKING:
    from program import Program

WAITS = bash("touch begun; sleep 1000 | sleep 1001; touch made")


def text_flags(program: Program, url: str, rules: str = AUTO) -> tuple[str, ...]:
    return (*flags_of(program, url, rules)[:-1], "text")


def is_whole(program: Program) -> bool:
    """Say whether the only log ends as it should, and verifies."""
    return program.records()[-1]["kind"] == "session_ended" and program.run("audit", "verify").code == 0


# --- standard streams -----------------------------------------------------------------------------------------------


def _closed(program: Program) -> dict[str, Any]:
    return {"stdin": None, "preexec_fn": lambda: os.close(0)}


def _null(program: Program) -> dict[str, Any]:
    return {"stdin": subprocess.DEVNULL}


def _empty_file(program: Program) -> dict[str, Any]:
    return {"stdin": open(written(program.home / "empty", ""), "rb")}


def _write_only(program: Program) -> dict[str, Any]:
    return {"stdin": os.open(os.devnull, os.O_WRONLY)}


def _endless_device(program: Program) -> dict[str, Any]:
    return {"stdin": os.open("/dev/zero", os.O_RDONLY)}


def _empty_pipe(program: Program) -> dict[str, Any]:
    reader, writer = os.pipe()
    os.close(writer)
    return {"stdin": reader}


@all_rows(
    "stdin", [_closed, _null, _empty_file, _write_only, _endless_device, _empty_pipe], anew={"program": made_program}
)
def test_empty_stdin_is_not_attached(program: Program, stdin: Callable[[Program], dict[str, Any]]) -> None:
    """It changes nothing; a command sees an end of file there, and the log and the like do not become stdin."""
    url = program.serve(replies(bash("cat > made"), DONE))
    given = stdin(program)
    done = program.run("run", "go", *text_flags(program, url), **given)
    opened = given.get("stdin")
    if opened is not None and hasattr(opened, "close"):
        opened.close()
    elif isinstance(opened, int) and opened > 2:
        os.close(opened)
    assert (done.code, done.out) == (0, "All done.\n"), done.err
    assert (program.workspace / "made").read_bytes() == b""
    assert [record["text"] for record in program.records() if record["kind"] == "user_message"] == ["go"]


def test_piped_data_is_added_to_the_prompt(program: Program) -> None:
    """What comes is attached, and said; with --no-stdin it is left where it is."""
    for flags, attached in (((), True), (("--no-stdin",), False)):
        url = program.serve(replies(DONE))
        reader, writer = os.pipe()
        os.write(writer, b"a line of a build\n")
        os.close(writer)
        done = program.run("run", "go", *text_flags(program, url), *flags, stdin=reader)
        left = os.read(reader, 100)
        os.close(reader)
        assert (done.code, left) == (0, b"" if attached else b"a line of a build\n"), done.err
        assert ("a line of a build" in json.dumps(program.players[-1].requests[0]["messages"])) == attached


def test_open_pipe_is_skipped_with_the_no_stdin_flag(program: Program) -> None:
    """A runner that leaves stdin open and silent: the run goes on at once."""
    url = program.serve(replies(DONE))
    reader, writer = os.pipe()
    done = program.run("run", "go", *text_flags(program, url), "--no-stdin", stdin=reader)
    os.close(reader)
    os.close(writer)
    assert (done.code, done.out) == (0, "All done.\n"), done.err


def test_closed_full_or_broken_stderr_is_survived(program: Program) -> None:
    """Nobody hears the trace; the answer, the exit code and the log are as ever."""
    reader, gone = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    ways: tuple[dict[str, Any], ...] = ({"preexec_fn": lambda: os.close(2)}, {"stderr": gone}, {"stderr": full})
    for number, options in enumerate(ways):
        url = program.serve(replies(bash(f"touch made{number}"), DONE))
        process = program.start("run", "go", *text_flags(program, url), **options)
        out, _ = process.communicate(timeout=300)
        assert (process.returncode, out) == (0, b"All done.\n"), options
        assert (program.workspace / f"made{number}").exists()
    os.close(gone)
    os.close(full)
    for path in program.logs():
        assert json.loads(path.read_text().splitlines()[-1])["exit_code"] == 0


def test_both_outputs_are_one_pipe_that_closes(program: Program) -> None:
    """`2>&1 | head -1`: no traceback, no hang, 141, and a log that says how it ended."""
    url = program.serve(replies(*(bash(f"echo {n}; sleep 0.1") for n in range(20)), DONE))
    process = program.start("run", "go", *flags_of(program, url), "--output", "jsonl", stderr=subprocess.STDOUT)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(300) == 141
    assert (is_whole(program), program.records()[-1]["exit_code"]) == (True, 141)


@all_rows("closed", [(1,), (0, 1), (0, 1, 2)], anew={"program": made_program})
def test_a_stdout_that_is_closed_at_the_start(program: Program, closed: tuple[int, ...]) -> None:
    """There is nowhere to write the answer: exit 2 before any request, and before any log."""
    url = program.serve(replies(DONE))

    def close() -> None:
        for number in closed:
            os.close(number)

    done = program.run("run", "go", *text_flags(program, url), stdin=None, stdout=None, preexec_fn=close)
    assert (done.code, program.players[0].requests, program.logs()) == (2, [], [])


# --- terminals ------------------------------------------------------------------------------------------------------

LEADER = """\
"$@"
echo "$?" > ../code
IFS= read -r left && printf '%s' "$left" > ../left
"""
"""A shell that leads the terminal's session, and reads what was typed when the program has ended."""


def on_a_terminal(program: Program, command: list[str], typed: bytes, **streams: object) -> tuple[int, str, bytes]:
    """Run a command whose controlling terminal, and whose streams that are not given, are a pseudo-terminal.

    Returns its exit code, the line that is still to be read there afterwards, and what it showed.
    """
    master, slave = pty.openpty()
    os.write(master, typed)
    options = {"stdin": slave, "stdout": slave, "stderr": slave, **streams}

    def lead() -> None:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(  # type: ignore[call-overload]
        ["bash", "-c", LEADER, "bash", *command],
        cwd=program.workspace, env=program.environment, preexec_fn=lead, pass_fds=(slave,), **options,  # noqa: PLW1509
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # EIO: nobody has the terminal any more
            break
        if not piece:
            break
        shown += piece
    assert process.wait(300) is not None
    os.close(master)
    left = program.state.parent / "left"
    return int((program.state.parent / "code").read_text()), left.read_text() if left.exists() else "", shown


@pytest.mark.terminal
@all_rows("form", ["text", "json", "jsonl"], anew={"program": made_program})
def test_a_terminal_is_never_read(program: Program, form: str) -> None:
    """Streams and controlling terminal are one: what was typed is still there, and a confirm is refused."""
    url = program.serve(replies(TOUCH, bash("cat; cat /dev/tty"), DONE))
    command = program.command("run", "go", *flags_of(program, url, CONFIRM), "--output", form)
    code, left, shown = on_a_terminal(program, command, b"y\n")
    assert (code, left, (program.workspace / "made").exists()) == (7, "y", False), shown
    assert is_whole(program)


@pytest.mark.terminal
def test_a_command_cannot_read_the_terminal_either(program: Program) -> None:
    """Neither through its stdin nor through /dev/tty."""
    url = program.serve(replies(bash("cat; cat /dev/tty; touch made"), DONE))
    code, left, shown = on_a_terminal(program, program.command("run", "go", *text_flags(program, url)), b"secret\n")
    assert (code, left) == (0, "secret"), shown
    outcomes = [str(record["content"]) for record in program.records() if record["kind"] == "outcome"]
    assert "secret" not in "".join(outcomes)
    assert (program.workspace / "made").exists()


@pytest.mark.terminal
def test_controlling_terminal_without_stdin_is_not_asked(program: Program) -> None:
    """stdin is no terminal, but one controls the session: /dev/tty is not opened to ask."""
    url = program.serve(replies(TOUCH, DONE))
    command = program.command("run", "go", *text_flags(program, url, CONFIRM))
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    code, _, shown = on_a_terminal(program, command, b"y\n", **streams)
    assert (code, (program.workspace / "made").exists()) == (7, False), shown


@pytest.mark.terminal
def test_disconnected_terminal_ends_the_run(program: Program) -> None:
    """Its window is closed in the middle of a command: the run ends with a whole log, and leaves no process."""
    url = program.serve(replies(WAITS, DONE))
    pid, master = pty.fork()
    if not pid:  # the child: its session's leader
        os.chdir(program.workspace)
        command = program.command("run", "go", *text_flags(program, url))
        os.execve(command[0], command, program.environment)
    assert holds((program.workspace / "begun").exists)
    os.close(master)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 143
    assert is_whole(program)
    assert program.records()[-1]["exit_code"] == 143
    assert (left_in(program.workspace), (program.workspace / "made").exists()) == ([], False)


# --- signals as they were left ---------------------------------------------------------------------------------------


def ignoring(*numbers: signal.Signals) -> Callable[[], None]:
    """Return what a child does before it becomes the program: what is ignored stays so (execve(2))."""

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return ignore


@all_rows("restored", [True, False], ids=["SIGPIPE as usual", "SIGPIPE ignored"], anew={"program": made_program})
def test_sigpipe_however_it_was_left(program: Program, restored: bool) -> None:
    """The code is 141 by its own doing; a command has SIGPIPE as usual."""
    (program.workspace / "check.sh").write_text("yes | head -1\necho ${PIPESTATUS[0]} > made\n")
    url = program.serve(replies(bash("bash check.sh"), DONE))
    reader, writer = os.pipe()
    os.close(reader)
    left: dict[str, Any] = {} if restored else {"restore_signals": False, "preexec_fn": ignoring(signal.SIGPIPE)}
    process = program.start("run", "go", *flags_of(program, url), stdout=writer, **left)
    os.close(writer)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, b"Traceback" in err) == (141, False), err
    url = program.serve(replies(bash("bash check.sh"), DONE))
    done = program.run("run", "go", *text_flags(program, url), **left)
    assert (done.code, (program.workspace / "made").read_text()) == (0, "141\n"), done.err


def test_ignored_signals_stay_ignored(program: Program) -> None:
    """`nohup harness run`, and `harness run &` in a script: the signal is not for this program (POSIX, sh, 2.11)."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    go = program.workspace / "go"
    url = program.serve(replies(bash(f"touch begun; {until_there(go)}; touch made"), DONE))
    process = program.start("run", "go", *text_flags(program, url), preexec_fn=ignoring(*numbers))
    wait_until((program.workspace / "begun").exists, process)
    for number in numbers:
        process.send_signal(number)
    go.touch()
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, (program.workspace / "made").exists()) == (0, b"All done.\n", True), err


def test_sigterm_counts_although_it_was_ignored(program: Program) -> None:
    """A job that is to end must be able to end."""
    url = program.serve(replies(WAITS, DONE))
    process = program.start("run", "go", *flags_of(program, url), preexec_fn=ignoring(signal.SIGTERM, signal.SIGCHLD))
    wait_until((program.workspace / "begun").exists, process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, program.records()[-1]["exit_code"]) == (143, 143), err
    assert left_in(program.workspace) == []


def test_kill_9_leaves_no_command(program: Program) -> None:
    """Nothing can be written any more: no end in the log, no process of a command, and the log is read as open."""
    url = program.serve(replies(WAITS, DONE))
    process = program.start("run", "go", *flags_of(program, url))
    wait_until((program.workspace / "begun").exists, process)
    process.kill()
    process.communicate(timeout=300)
    assert left_in(program.workspace) == []
    assert program.records()[-1]["kind"] != "session_ended"
    assert not (program.workspace / "made").exists()


# --- disks ----------------------------------------------------------------------------------------------------------


@all_rows("form", ["md", "junit", "sarif", "html"], anew={"program": made_program})
def test_a_report_that_does_not_fit_on_the_disk(program: Program, tmp_path: Path, form: str) -> None:
    """Exit 1, a line that names it, no half of it; the other report, the answer and the log are there."""
    url = program.serve(replies(*(bash(f"touch made; echo {n} {'x' * 900}") for n in range(12)), DONE))
    with small_disk(tmp_path / "small") as disk:
        report = disk / f"run.{form}"
        (disk / "ballast").write_bytes(b"x" * 64 * 1024)
        other = program.home / "other.md"
        flags = ("--report", f"{form}:{report}", "--report", f"md:{other}")
        done = program.run("run", "go", *text_flags(program, url), *flags)
        left = sorted(path.name for path in disk.iterdir() if path.name != "ballast")
        whole = not left or (left == [report.name] and report.stat().st_size == 0)
    assert (done.code, done.out) in ((1, "All done.\n"), (2, "")), done.err
    assert str(report) in done.err
    assert whole, left
    if done.code == 1:
        assert "completed" in other.read_text() or "done" in other.read_text().lower()
        assert is_whole(program)


@all_rows("elsewhere", [True, False], anew={"program": made_program})
def test_unwritable_heads_are_reported_before_the_first_request(program: Program, elsewhere: bool) -> None:
    """The run could only end with 8. Nothing is left that a later start would take for a log."""
    url, log = program.serve(replies(TOUCH, DONE)), program.home / "log.jsonl"
    (program.state / "harness" / "heads.jsonl").mkdir(parents=True)
    done = program.run("run", "go", *text_flags(program, url), *(("--log", str(log)) if elsewhere else ()))
    assert (done.code, "heads.jsonl" in done.err, program.players[0].requests) == (8, True, []), done
    assert (log.exists(), program.logs()) == (False, [])


def test_read_only_state_folder_is_reported_before_the_first_request(program: Program) -> None:
    url, log = program.serve(replies(TOUCH, DONE)), program.home / "log.jsonl"
    with small_disk(program.state / "harness") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        done = program.run("run", "go", *text_flags(program, url), "--log", str(log))
    assert (done.code, "Read-only file system" in done.err, program.players[0].requests) == (8, True, []), done
    assert not log.exists()


def test_full_state_folder_is_reported_before_the_first_command(program: Program) -> None:
    """Whether a note fits, only writing it shows: that is the first thing after the log's first record."""
    url, log = program.serve(replies(TOUCH, DONE)), program.home / "log.jsonl"
    with small_disk(program.home / "small") as disk:
        environment = {**program.environment, "XDG_STATE_HOME": str(disk)}
        (disk / "harness").mkdir()
        (disk / "harness" / "redaction_key").write_bytes(b"x" * 32)
        (disk / "harness" / "redaction_key").chmod(0o600)
        (disk / "ballast").write_bytes(b"x" * (64 * 1024 - os.sysconf("SC_PAGE_SIZE")))
        done = program.run("run", "go", *text_flags(program, url), "--log", str(log), env=environment)
    assert (done.code, 0 <= done.err.find("No space left on device") < done.err.find("touch made")) == (8, True), done


def test_a_cassette_that_does_not_fit_on_the_disk(program: Program, tmp_path: Path) -> None:
    """It is said, and no success; the run itself is not disturbed in the middle."""
    url = program.serve(replies(*(bash(f"echo {n} {'x' * 9000}") for n in range(12)), DONE))
    with small_disk(tmp_path / "small") as disk:
        done = program.run("run", "go", *text_flags(program, url), "--record", str(disk / "cassette.jsonl"))
    assert (done.code, "cassette" in done.err, "Traceback" in done.err) == (1, True, False), done.err
    assert is_whole(program)


@all_rows("variable", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"], anew={"program": made_program})
def test_a_file_of_the_runner_that_is_on_a_full_disk(program: Program, tmp_path: Path, variable: str) -> None:
    """What the step's outputs lack is said, and is no success."""
    url = program.serve(replies(TOUCH, DONE))
    with small_disk(tmp_path / "small") as disk:
        program.environment |= {"GITHUB_ACTIONS": "true", variable: written(disk / "file", "")}
        (disk / "ballast").write_bytes(b"x" * 64 * 1024)
        done = program.run("run", "go", *text_flags(program, url))
    assert (done.code, variable in done.err, "Traceback" in done.err) == (1, True, False), done.err
    assert is_whole(program)


# --- environments ---------------------------------------------------------------------------------------------------

ODD = [
    pytest.param({"HOME": None}, id="no HOME"),
    pytest.param({"HOME": ""}, id="an empty HOME"),
    pytest.param({"HOME": "/proc/nowhere"}, id="a HOME that cannot be made"),
    pytest.param({"HOME": "relative"}, id="a relative HOME"),
    pytest.param({"TERM": None}, id="no TERM"),
    pytest.param({"TERM": "dumb"}, id="a dumb TERM"),
    pytest.param({"TERM": "no such\x1b[31m"}, id="an odd TERM"),
    pytest.param({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="LANG=C, not coerced"),
    pytest.param({"LANG": "C"}, id="LANG=C"),
    pytest.param({"LC_ALL": "xx_YY.nothing"}, id="a locale that is not there"),
    pytest.param({"PYTHONIOENCODING": "ascii"}, id="ASCII streams"),
    pytest.param({"COLUMNS": "0", "LINES": "x"}, id="no columns"),
    pytest.param({"TZ": "Nowhere/Nothing:99"}, id="an odd TZ"),
    pytest.param({"TMPDIR": "/proc/nowhere"}, id="no TMPDIR"),
    pytest.param({"PATH": None}, id="no PATH"),
    pytest.param({"PATH": ""}, id="an empty PATH"),
    pytest.param({"PYTHONWARNINGS": "error"}, id="warnings are errors"),
    pytest.param({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}, id="unbuffered"),
    pytest.param({"NO_COLOR": "1", "FORCE_COLOR": "1", "CI": "true"}, id="colours"),
    pytest.param({"XDG_CONFIG_HOME": "/proc/nowhere"}, id="no configuration"),
    pytest.param({"A" * 10_000: "x" * 100_000}, id="a long variable"),
]


@all_rows("changes", ODD, anew={"program": made_program})
def test_an_odd_environment(program: Program, changes: dict[str, str | None]) -> None:
    """The run is as ever: a command runs, the answer arrives with every character, the log is whole."""
    url = program.serve(replies(bash("echo hi > made"), say("Fertig: \u00fc \u4e16 \U0001f600")))
    program.environment |= {name: value for name, value in changes.items() if value is not None}
    for name, value in changes.items():
        if value is None:
            del program.environment[name]
    done = program.run("run", "go", *text_flags(program, url))
    plain = "Fertig: \\xfc \\u4e16 \\U0001f600\n"
    assert (done.code, done.out in (plain, "Fertig: \u00fc \u4e16 \U0001f600\n")) == (0, True), done.err
    assert (program.workspace / "made").read_text() == "hi\n"
    assert "Traceback" not in done.err
    for name in changes:
        program.environment.pop(name, None)
    program.environment.setdefault("PATH", os.environ["PATH"])
    assert is_whole(program)


def test_hardly_any_environment(program: Program) -> None:
    """`env -i` with the one variable that keeps this test out of the user's own folders."""
    url = program.serve(replies(TOUCH, DONE))
    program.environment = {"XDG_STATE_HOME": str(program.state)}
    done = program.run("run", "go", *text_flags(program, url))
    assert (done.code, done.out) == (0, "All done.\n"), done.err
    assert (program.workspace / "made").exists()


@all_rows("state", ["/proc/nowhere", "/dev/null", "/sys"], anew={"program": made_program})
def test_a_state_folder_that_cannot_be_made(program: Program, state: str) -> None:
    """Exit 8, before any request; what a home that is no folder comes to as well."""
    for changes in ({"XDG_STATE_HOME": state}, {"XDG_STATE_HOME": "", "HOME": state}):
        url = program.serve(replies(TOUCH, DONE))
        program.environment |= changes
        done = program.run("run", "go", *text_flags(program, url))
        assert (done.code, done.out, program.players[-1].requests) == (8, "", []), done.err
        assert ("Traceback" in done.err, bool(done.err)) == (False, True)


UMASKS = [0, 0o077, *([0o277] if os.geteuid() == 0 else [])]
"""With the last, only root can write to a file that it made before."""


@all_rows("umask", UMASKS, anew={"program": made_program})
def test_a_umask_of_any_kind(program: Program, umask: int) -> None:
    """What the program keeps is its user's alone; reports are what the umask makes of a file."""
    url = program.serve(replies(bash("umask > made"), DONE))
    report = program.home / "run.md"
    done = program.run("run", "go", *text_flags(program, url), "--report", f"md:{report}", umask=umask)
    assert done.code == 0, done.err
    kept = [path for path in (program.state / "harness").rglob("*") if not path.is_symlink()]
    assert [str(path) for path in kept if path.stat().st_mode & 0o077] == []
    assert report.read_text().strip()
    assert int((program.workspace / "made").read_text(), 8) == umask


def test_three_thousand_open_files(program: Program) -> None:
    """They are inherited, and get no further: a command has none of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4000:
        pytest.skip(f"only {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(3000)]
    try:
        (program.workspace / "check.sh").write_text("ls /proc/self/fd | wc -l > made\n")
        url = program.serve(replies(bash("bash check.sh"), DONE))
        done = program.run("run", "go", *text_flags(program, url), pass_fds=opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (done.code, done.out) == (0, "All done.\n"), done.err
    assert int((program.workspace / "made").read_text()) < 10


def test_a_current_folder_that_is_gone(program: Program) -> None:
    """Exit 2 and one line, and with --cwd nothing is missed."""
    url = program.serve(replies(TOUCH, DONE))
    gone = program.home / "gone"
    gone.mkdir()
    program.environment["PYTHONPATH"] = ROOT
    command = program.command("run", "go", *text_flags(program, url))
    removed = ["bash", "-c", 'rmdir ../gone; exec "$@"', "bash"]
    for flags, code in (((), 2), (("--cwd", str(program.workspace)), 0)):
        gone.mkdir(exist_ok=True)
        done = subprocess.run(
            [*removed, *command, *flags], cwd=gone, env=program.environment, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert (program.workspace / "made").exists()


@all_rows("files", [16, 24, 32], anew={"program": made_program})
def test_few_files_may_be_open(program: Program, files: int) -> None:
    """A low limit is survived or told; nothing runs that the log does not have."""
    url = program.serve(replies(TOUCH, DONE))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    done = program.run("run", "go", *text_flags(program, url), preexec_fn=limit)
    assert (done.code in (0, 1, 8), "Traceback" in done.err) == (True, False), done.err
    intents = [record for record in program.records() if record["kind"] == "intent"]
    assert (program.workspace / "made").exists() <= bool(intents)


def test_another_user_owns_the_workspace(program: Program) -> None:
    """A checkout that a container's other user made: read and written as far as the system lets it."""
    if os.getuid():
        pytest.skip("only root can give a folder to somebody else")
    os.chown(program.workspace, 12345, 12345)
    url = program.serve(replies(TOUCH, DONE))
    done = program.run("run", "go", *text_flags(program, url))
    assert (done.code, (program.workspace / "made").exists()) == (0, True), done.err


def test_the_interpreter_ends_with_the_run(program: Program) -> None:
    """No thread and no child keeps the process: it ends behind its answer."""
    program.environment["PYTHONPATH"] = ROOT  # the program as it is installed: a fork does not end as Python does
    url = program.serve(replies(TOUCH, DONE))
    process = program.start("run", "go", *text_flags(program, url))
    assert process.stdout is not None
    assert process.stdout.readline() == b"All done.\n"
    assert process.wait(300) == 0
    process.communicate()

"""The tool `bash` on real processes: what is judged, what runs, how it ends, and what is left of it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

import pytest
from log_scene import begun, unsynced
from places import shell_word
from process_scene import ENOUGH, PATIENT, UNTIL_SLEEP, alive, sleep_token
from rows import all_rows

from harness import ActionLog, Answer, Approval, Limits, ToolError, ToolRegistry, Verdict, Workspace, builtin_tools
from harness.actions import Access, Act, Action, Command, Effects, Facet, Opaque, PathAccess, Place
from harness.gate.gate import Gate
from harness.log.order import LogRecord
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.loader import parse_policy
from harness.process.environment import walled_variables
from harness.process.temporary import TemporaryFolder
from harness.record import Record, replace
from harness.sandbox import enforces, probe
from harness.shell.parser import parse
from harness.tool_kinds import SHIPPED_TOOLS
from harness.tools.bash import BashRequest, BashTool
from harness.tools.command_runner import CommandRunner
from policies import AUTO

token = pytest.fixture(sleep_token)
SECONDS = re.compile(r"(?<=, )\d+\.\d(?= s\]$)|(?<=user after )\d+(?= s\]$)")
PATH = "/usr/local/bin:/usr/bin:/bin"


def say_yes(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.YES, by="script")


UNCONFINED: dict[str, Any] = {"unconfined": True, "justification": "it sends a signal to this process"}


class Road:
    """The whole road from a call to its result, in a workspace of its own; every question is answered yes."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits,
        tool: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        self.workspace = Workspace(str(self.root), home=str(folder))
        given = {"limits": limits, "environment": environment, "pace": PATIENT, **tool}
        self.registry = ToolRegistry((BashTool(self.workspace, CommandRunner(self.workspace, **given)),))
        policy = parse_policy(AUTO.encode(), "test.toml")
        self.log = begun(ActionLog.open(str(folder / "log.jsonl"), sync=unsynced), policy)
        self.gate = Gate(policy=policy, approver=say_yes, log=self.log, tools=self.registry)

    def call(self, **arguments: object) -> ToolCall:
        return ToolCall(id="c1", name="bash", arguments=json.dumps(arguments))

    def prepare(self, **arguments: object) -> Action:
        return self.registry.prepare(self.call(**arguments))

    def run(self, seconds: float | None = None, **arguments: object) -> ToolResult:
        """Return the result, its times (which are no two times the same) put to zero; `seconds` is what the run has left."""
        return self.run_while(lambda: None, seconds, **arguments)

    def run_while(
        self, meanwhile: Callable[[], object], seconds: float | None = None, /, **arguments: object
    ) -> ToolResult:
        """Do as `run`; `meanwhile` is done between the judgement and the run."""

        def at(record: LogRecord) -> None:
            if record["kind"] == "intent":
                meanwhile()

        self.log.observers.append(at)
        try:
            result = self.gate.call(self.gate.propose(self.call(**arguments)), seconds_left=lambda: seconds).result
        finally:
            self.log.observers.remove(at)
        return replace(result, duration_ms=0, content=SECONDS.sub("T", result.content))


def new_road(tmp_path: Path) -> Iterator[Road]:
    made = Road(tmp_path, {"PATH": PATH}, Limits())
    yield made
    made.log.close()


road = pytest.fixture(new_road, name="road")


def ended(pid: int) -> bool:
    """Say whether a process ends, waiting for it with a descriptor and not by asking again."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], ENOUGH)[0])
    finally:
        os.close(descriptor)


class End(Record):
    """What a result says of how a command ended."""

    status: ResultStatus
    exit_code: int | None
    output_bytes: int
    content: str
    truncated: bool = False


@all_rows(
    ("command", "expected"),
    [
        pytest.param(
            "echo out; echo err >&2; echo again",
            End(status=ResultStatus.OK, exit_code=0, output_bytes=14, content="out\nerr\nagain\n[exit code 0, T s]"),
            id="both streams come as one text, in order",
        ),
        pytest.param(
            "exit 3",
            End(status=ResultStatus.FAILED, exit_code=3, output_bytes=0, content="(no output)\n[exit code 3, T s]"),
            id="an exit code other than 0 is a failure",
        ),
        pytest.param(
            "true",
            End(status=ResultStatus.OK, exit_code=0, output_bytes=0, content="(no output)\n[exit code 0, T s]"),
            id="no output is said to be none",
        ),
        pytest.param(
            "printf 'no end'",
            End(status=ResultStatus.OK, exit_code=0, output_bytes=6, content="no end\n[exit code 0, T s]"),
            id="a last line without an end gets one before the status",
        ),
        pytest.param(
            "kill -SEGV $$",
            End(
                status=ResultStatus.FAILED,
                exit_code=139,
                output_bytes=0,
                content="(no output)\n[killed by signal 11 (SIGSEGV), T s]",
            ),
            id="a shell that a signal ends is named with the signal",
        ),
        pytest.param(
            "kill -40 $$",
            End(
                status=ResultStatus.FAILED,
                exit_code=168,
                output_bytes=0,
                content="(no output)\n[killed by signal 40, T s]",
            ),
            id="a signal without a name keeps its number",
        ),
        pytest.param(
            # Behind walls it is closed too ("Permission denied") while a person sits at a terminal.
            "cat; read x; echo got=$x; tty; cat /dev/tty 2>&1 | grep -o 'No such device\\|Permission denied' | wc -l",
            End(status=ResultStatus.OK, exit_code=0, output_bytes=17, content="got=\nnot a tty\n1\n[exit code 0, T s]"),
            id="there is no input and no terminal",
        ),
        pytest.param(
            "-ls",
            End(
                status=ResultStatus.FAILED,
                exit_code=127,
                output_bytes=37,
                content="bash: line 1: -ls: command not found\n[exit code 127, T s]",
            ),
            id="a command that begins with a dash is no option of bash",
        ),
        pytest.param(
            "head -c 20000 /dev/zero",
            End(
                status=ResultStatus.OK,
                exit_code=0,
                output_bytes=20_000,
                content="[binary output, 20,000 bytes]\n[exit code 0, T s]",
                truncated=True,
            ),
            id="binary output is counted and not shown",
        ),
        pytest.param(
            r"printf 'a\xff\xc3\xa9b\n'",
            End(
                status=ResultStatus.OK,
                exit_code=0,
                output_bytes=6,
                content="a\N{REPLACEMENT CHARACTER}éb\n[exit code 0, T s]",
            ),
            id="bytes that are no UTF-8 are replaced, the others kept",
        ),
        pytest.param(
            r"printf '\033[1;31mred\033[0m \033]0;title\007plain \033]8;;http://x\033\\link \033(B.\n'",
            End(status=ResultStatus.OK, exit_code=0, output_bytes=56, content="red plain link .\n[exit code 0, T s]"),
            id="terminal sequences are taken out",
        ),
        pytest.param(
            r"printf 'bell\007 esc\033 bidi\342\200\256\n'",
            End(
                status=ResultStatus.OK,
                exit_code=0,
                output_bytes=19,
                content="bell\\x07 esc\\x1b bidi\\u202e\n[exit code 0, T s]",
            ),
            id="other control and hidden characters become visible",
        ),
        pytest.param(
            r"printf '10%%\r50%%\r100%%\r\ndone\r\nlast\rline\n'",
            End(status=ResultStatus.OK, exit_code=0, output_bytes=30, content="100%\ndone\nline\n[exit code 0, T s]"),
            id="a line that is written over keeps its last state",
        ),
    ],
    anew={"road": new_road},
)
def test_a_command_ends(road: Road, command: str, expected: End) -> None:
    result = road.run(command=command)

    printed = expected.content.rpartition("\n")[0].removeprefix("(no output)")  # without the words of the tool
    assert replace(result, printed=(result.printed or "").removesuffix("\n")) == ToolResult(
        call_id="c1", printed=printed, **{name: getattr(expected, name) for name in End._fields}
    )


def test_shell_keeps_no_state_between_calls(road: Road) -> None:
    road.run(command="x=1; export y=2; cd /; f() { :; }")

    assert road.run(command="echo $x$y; pwd; type -t f").content == f"\n{road.root}\n[exit code 1, T s]"


def test_files_from_mktemp_are_written_unasked_in_the_temporary_folder(tmp_path: Path) -> None:
    temporary = TemporaryFolder(str(tmp_path))
    road = Road(tmp_path, {"PATH": PATH}, Limits(), {"temporary": temporary})
    kinds: list[object] = []
    road.log.observers.append(lambda record: kinds.append(record["kind"]))
    result = road.run(command='f=$(mktemp) && echo x > "$f" && cat "$f" && echo "$f"')
    road.log.close()

    assert result.content.startswith(f"x\n{temporary.path()}/tmp."), result.content
    assert "approval_asked" not in kinds


def test_a_command_starts_in_its_folder(road: Road) -> None:
    (road.root / "sub" / "deep").mkdir(parents=True)

    assert road.run(command="pwd", cwd="sub/deep").content == f"{road.root}/sub/deep\n[exit code 0, T s]"


# Time, signals, and what is left behind


def struck(road: Road, command: str, *, of_the_run: bool = False) -> tuple[ToolResult, float]:
    """Run a command that makes `begun`, and has no end, into a limit of time; return the result and the limit.

    A machine that was too busy for it to make the file gives it five times as long.
    """
    result, seconds = None, 0.04
    while not (road.root / "begun").exists():
        seconds *= 5
        result = road.run(seconds, command=command) if of_the_run else road.run(command=command, timeout_s=seconds)
    assert result is not None
    return result, seconds


@all_rows(
    "command",
    [
        pytest.param("{begun}; sleep {token}", id="a child that obeys"),
        pytest.param("sleep {token} & {begun}; sleep {token}", id="a grandchild that holds the pipe"),
        pytest.param("trap '' TERM; {begun}; while :; do sleep {token}; done", id="a shell that ignores SIGTERM"),
        pytest.param("(trap '' TERM; {begun}; sleep {token}) & wait", id="a child that ignores SIGTERM"),
        pytest.param("{begun}; kill -STOP $$; : {token}", id="a shell that stopped itself"),
        pytest.param("{begun}; exec > /dev/null 2>&1; sleep {token}", id="a shell that closed its output"),
    ],
    anew={"road": new_road},
)
def test_a_timeout_ends_the_whole_group(road: Road, token: str, command: str) -> None:
    result, seconds = struck(road, command.format(token=token, begun="touch begun"))

    assert (result.status, result.exit_code) == (ResultStatus.TIMEOUT, None)
    assert result.content.endswith(f"\n[timed out after {seconds:g} s; process tree killed]")
    assert alive(token) == []


def test_output_before_a_timeout_is_kept(road: Road) -> None:
    result, seconds = struck(road, "echo before; touch begun; sleep 1000")

    assert result.content == f"before\n[timed out after {seconds:g} s; process tree killed]"


def test_a_command_is_ended_when_the_time_of_the_run_is_over(road: Road) -> None:
    """Whatever it asked for; one that asked for less is not given more."""
    result, seconds = struck(road, "echo before; touch begun; sleep 1000", of_the_run=True)
    assert result.status is ResultStatus.TIMEOUT
    words = f"timed out after {seconds:g} s, when the time of the run was over"
    assert result.content == f"before\n[{words}; process tree killed]"
    content = road.run(20, command="sleep 1000", timeout_s=0.3).content
    assert content == "(no output)\n[timed out after 0.3 s; process tree killed]"


@all_rows(
    ("command", "note"),
    [
        pytest.param(
            f"sleep N & {UNTIL_SLEEP}",
            "[1 background process was still running and has been terminated: sleep]",
            id="one that holds the output",
        ),
        pytest.param(
            f"sleep N > /dev/null 2>&1 & {UNTIL_SLEEP}",
            "[1 background process was still running and has been terminated: sleep]",
            id="one that does not",
        ),
        pytest.param(
            f"setsid sleep N & {UNTIL_SLEEP}; sleep N & {UNTIL_SLEEP}",
            "[2 background processes were still running and have been terminated: sleep, sleep]",
            id="one in a session of its own",
        ),
        pytest.param(
            f"for i in {{1..12}}; do sleep N & {UNTIL_SLEEP}; done",
            "[12 background processes were still running and have been terminated: "
            f"{', '.join(['sleep'] * 10)} and 2 more]",
            id="more than are worth naming",
        ),
    ],
    anew={"road": new_road},
)
def test_a_background_job_ends_with_the_call(road: Road, command: str, note: str, token: str) -> None:
    result = road.run(command=command.replace("sleep N", f"sleep {token}"))

    assert (result.status, result.content) == (ResultStatus.OK, f"(no output)\n{note}\n[exit code 0, T s]")
    assert result.extra == {"jobs_ended": int(note[1:3])}
    assert not alive(token)


def test_an_interrupt_ends_the_group_and_keeps_the_output(road: Road) -> None:
    # The shell's parent is this process: the signal comes at a moment when the command is certainly running.
    command = "sleep 1000 & echo $! > pid; echo partly; kill -INT $PPID; sleep 1000"
    result = road.run(command=command, **UNCONFINED)

    assert result == ToolResult(
        call_id="c1",
        status=ResultStatus.INTERRUPTED,
        content="partly\n[interrupted by user after T s]",
        output_bytes=7,
        printed="partly\n",
    )
    assert ended(int((road.root / "pid").read_text()))


def test_a_second_interrupt_does_not_wait_for_the_obstinate(tmp_path: Path) -> None:
    """It asks again when it gets SIGTERM, and would be waited for without end. What raises is in test_processes.py."""
    asked: list[int] = []
    pace = replace(PATIENT, grace_seconds=1000.0)
    road = Road(tmp_path, {"PATH": PATH}, Limits(), {"stops": lambda: len(asked), "pace": pace})
    command = "trap 'kill -USR1 $PPID' TERM; echo $$ > pid; kill -USR1 $PPID; while :; do sleep 0.01; done"
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: asked.append(number))
    try:
        result = road.run(command=command, **UNCONFINED)
    finally:
        signal.signal(signal.SIGUSR1, before)
        road.log.close()

    assert (result.status, len(asked)) == (ResultStatus.INTERRUPTED, 2)
    assert ended(int((road.root / "pid").read_text()))


def test_command_does_not_run_if_its_end_cannot_be_learned(road: Road) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as a parent may have left it
    try:
        result = road.run(command="touch ran")
    finally:
        signal.signal(signal.SIGCHLD, before)

    content = "Error: Cannot start the command: SIGCHLD is ignored in this process, so no command's end can be learned."
    assert result == ToolResult(call_id="c1", status=ResultStatus.FAILED, content=content, output_bytes=len(content))
    assert not (road.root / "ran").exists()


ALONE = """
import json, runpy, sys
print(json.dumps(runpy.run_path(sys.argv[1])["left_by_commands"](sys.argv[2])))
"""


def left_by_commands(folder: str) -> list[list[str]]:
    """Return what this process holds before and after some commands."""
    road = Road(Path(folder), {"PATH": PATH}, Limits())
    for command in ("true", "sleep 1000 &"):
        road.run(command=command)
    before = threads_and_descriptors()
    for command in ("true", "sleep 1000 &", "no-such-program", "kill -9 $$"):
        road.run(command=command)
    road.run(command="sleep 1000", timeout_s=0.1)
    return [before, threads_and_descriptors()]


def threads_and_descriptors() -> list[str]:
    """Return the threads of this process, and what its descriptors lead to: walls that are made anew have other numbers."""
    with os.scandir("/proc/self/fd") as found:
        return [
            *sorted(f"thread {thread.name}" for thread in threading.enumerate()),
            *sorted(os.readlink(one.path) for one in found),
        ]


def test_threads_and_descriptors_are_released(tmp_path: Path) -> None:
    # In a process of its own: what other tests left may end at any moment.
    words = [sys.executable, "-c", ALONE, __file__, str(tmp_path)]
    support = str(Path(__file__).parents[1] / "support")
    told = subprocess.check_output(words, env={**os.environ, "PYTHONPATH": support}, timeout=ENOUGH)
    before, after = json.loads(told)
    assert "thread MainThread" in before
    assert after == before


def test_a_descriptor_of_the_harness_is_not_inherited(road: Road, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        result = road.run(command="ls -l /proc/self/fd")

    assert str(secret) not in result.content


# Output that is too long


def test_the_middle_of_long_output_is_cut_at_line_ends_and_counted(tmp_path: Path) -> None:
    road = Road(tmp_path, {"PATH": PATH}, Limits(result_characters=2_000))

    result = road.run(command="seq 1 20000")
    road.log.close()

    lines = result.content.split("\n")
    (cut,) = [index for index, line in enumerate(lines) if line.startswith("[... ")]
    head, tail = lines[:cut], lines[cut + 1 : -1]
    missing = 20_000 - len(head) - len(tail)
    size = len("".join(f"{number}\n" for number in range(len(head) + 1, len(head) + missing + 1)))
    assert lines == [
        *(str(number) for number in range(1, len(head) + 1)),
        f"[... {size:,} bytes, {missing:,} lines omitted ...]",
        *(str(number) for number in range(20_001 - len(tail), 20_001)),
        "[exit code 0, T s]",
    ]
    assert 1_500 < len(result.content) <= 2_000
    assert len("\n".join(head)) < len("\n".join(tail))
    assert (result.output_bytes, result.truncated) == (108_894, True)


def test_single_long_line_is_cut_inside(tmp_path: Path) -> None:
    road = Road(tmp_path, {"PATH": PATH}, Limits(result_characters=1_000))

    result = road.run(command="head -c 5000 /dev/zero | tr '\\0' x")
    road.log.close()

    assert result.content == f"{'x' * 280}\n[... 4,300 bytes, 0 lines omitted ...]\n{'x' * 420}\n[exit code 0, T s]"


@all_rows("size", [699, 700, 701])
def test_output_is_cut_only_where_it_is_longer_than_the_limit(tmp_path: Path, size: int) -> None:
    road = Road(tmp_path, {"PATH": PATH}, Limits(result_characters=1_000))

    result = road.run(command=f"head -c {size} /dev/zero | tr '\\0' x")
    road.log.close()

    assert (result.truncated, result.content.startswith("x" * size)) == (size > 700, size <= 700)


def test_endless_output_takes_little_memory(road: Road) -> None:
    road.run(command="true")
    tracemalloc.start()
    try:
        result = road.run(command="yes | head -c 100000000")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (result.output_bytes, result.truncated, result.exit_code) == (100_000_000, True, 0)
    assert peak < 4_000_000


# What a command is given


def test_the_environment_is_a_list_of_names(tmp_path: Path) -> None:
    given = {
        "PATH": f".:{PATH}::relative",
        "HOME": "/home/someone",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": "/somewhere",
        "LC_API_KEY": "k",
        "OPENAI_API_KEY": "k",
        "GITHUB_TOKEN": "k",
        "HARNESS_LOG": "k",
        "BASH_ENV": str(tmp_path / "start"),
        "ENV": str(tmp_path / "start"),
        "BASH_FUNC_ls%%": "() { echo mine; }",
        "LD_PRELOAD": "/nowhere.so",
        "PYTHONSTARTUP": "k",
        "GIT_CONFIG_COUNT": "9",
        "TERM": "xterm",
    }
    road = Road(tmp_path, given, Limits())

    result = road.run(command="f() { :; }; env")  # opaque, so a person is asked
    road.log.close()

    shown = dict(line.partition("=")[::2] for line in result.content.splitlines()[:-1])
    temporary = shown.pop("TMPDIR")
    assert re.fullmatch(re.escape(tempfile.gettempdir()) + r"/harness-\w+", temporary)
    if enforces(probe()):  # caches that these walls keep closed
        moved = {name: shown.pop(name) for name in ("GOCACHE", "UV_CACHE_DIR")}
        assert moved == {"GOCACHE": f"{temporary}/gocache", "UV_CACHE_DIR": f"{temporary}/uv_cache_dir"}
    offline = {name: shown.pop(name) for name in walled_variables()}
    assert offline == walled_variables()
    assert {name: value for name, value in shown.items() if name not in ("PWD", "SHLVL", "_", "HARNESS_CALL")} == {
        "PATH": PATH,
        "HOME": "/home/someone",
        "LANG": "C.UTF-8",
        "LC_COLLATE": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "EDITOR": "true",
        "GIT_OPTIONAL_LOCKS": "0",
        "DEBIAN_FRONTEND": "noninteractive",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "false",
        "GIT_CONFIG_KEY_1": "safe.bareRepository",
        "GIT_CONFIG_VALUE_1": "explicit",
    }


def test_unasked_git_gets_no_hooks_no_pager_and_no_transports(road: Road) -> None:
    shown = dict(line.partition("=")[::2] for line in road.run(command="env").content.splitlines()[:-1])
    settings = {
        shown[f"GIT_CONFIG_KEY_{n}"]: shown[f"GIT_CONFIG_VALUE_{n}"] for n in range(int(shown["GIT_CONFIG_COUNT"]))
    }
    assert (settings, shown["GIT_ALLOW_PROTOCOL"]) == (
        {
            "core.fsmonitor": "false",
            "safe.bareRepository": "explicit",
            "core.hooksPath": "/dev/null",
            "core.pager": "cat",
            "core.attributesFile": "/dev/null",
            "log.showSignature": "false",
            "diff.ignoreSubmodules": "all",
            "protocol.allow": "never",
            "filter.lfs.process": "",
            "filter.lfs.clean": "",
            "filter.lfs.required": "false",
        },
        "none",
    )


def test_a_changed_file_of_git_lfs_is_compared_without_git_lfs(tmp_path: Path) -> None:
    """It would write below `.git/lfs`, which no reader may, and git would end with an error."""
    road = Road(tmp_path, {"PATH": f"{tmp_path}/bin:{PATH}"}, Limits())
    program = tmp_path / "bin" / "git-lfs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {shell_word(tmp_path)}/started\nexit 1\n")
    program.chmod(0o755)
    (road.root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (road.root / "a.bin").write_text("one\n")
    for words in ("init -q", "add -A", "-c user.name=n -c user.email=e commit -qm one"):
        subprocess.run(["git", *words.split()], cwd=road.root, check=True)
    (road.root / "a.bin").write_text("another\n")
    with open(road.root / ".git" / "config", "a") as config:
        config.write('[filter "lfs"]\nrequired = true\nprocess = git-lfs filter-process\nclean = git-lfs clean -- %f\n')

    shown = [road.run(command=command).content for command in ("git status --short", "git diff --name-only")]
    road.log.close()

    assert ([text.splitlines()[0] for text in shown], os.path.exists(tmp_path / "started")) == (
        [" M a.bin", "a.bin"],
        False,
    )


def test_an_unasked_command_that_may_reach_out_keeps_its_transports(road: Road) -> None:
    shown = dict(line.partition("=")[::2] for line in road.run(command="env; netcat").content.splitlines())
    assert (shown["GIT_CONFIG_KEY_2"], shown.get("GIT_ALLOW_PROTOCOL")) == ("core.hooksPath", None)


@all_rows(
    ("command", "printed"),
    [
        pytest.param("tac a.txt", "real\n", id="a reader is the system's"),
        pytest.param("tac a.txt; tool", "fake\n", id="what does more is found as the person set it"),
    ],
)
def test_workspace_folder_in_the_path_comes_last_for_readers(tmp_path: Path, command: str, printed: str) -> None:
    road = Road(tmp_path, {"PATH": f"{tmp_path}/workspace/bin:{PATH}"}, Limits())
    (road.root / "bin").mkdir()
    (road.root / "a.txt").write_text("real\n")
    fake = road.root / "bin" / "tac"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)

    result = road.run(command=command)
    road.log.close()

    assert result.content.startswith(printed)


@all_rows(
    ("given", "locale"),
    [
        pytest.param({}, "C.UTF-8", id="none is the locale of C, in which a pattern counts bytes"),
        pytest.param({"LANG": "de_DE.UTF-8"}, "de_DE.UTF-8", id="UTF-8"),
        pytest.param({"LC_ALL": "C"}, "C.UTF-8", id="bytes"),
        pytest.param(
            {"LANG": "zh_CN.GBK"}, "C.UTF-8", id="a character set in which a quote may be half of a character"
        ),
        pytest.param({"LANG": "de_DE.UTF-8", "LC_CTYPE": "ja_JP.SJIS"}, "C.UTF-8", id="the one that counts"),
        pytest.param({"LC_ALL": "C.UTF-8", "LC_CTYPE": "ja_JP.SJIS"}, "C.UTF-8", id="one that does not count"),
        pytest.param({"LANG": "de_DE"}, "C.UTF-8", id="one that is not named"),
    ],
)
def test_bash_reads_a_line_in_the_character_set_in_which_it_was_judged(
    tmp_path: Path, given: dict[str, str], locale: str
) -> None:
    """And the words that a pattern stands for come in the order of their bytes, as they were judged."""
    road = Road(tmp_path, {"PATH": PATH, **given}, Limits())
    result = road.run(command="printenv | grep -E '^(LC_|LANG)' | sort")
    road.log.close()
    assert result.content.splitlines()[:-1] == [f"LANG={locale}", "LC_COLLATE=C.UTF-8"]


def test_workspace_program_does_not_replace_another(tmp_path: Path) -> None:
    road = Road(tmp_path, {"PATH": f".::{PATH}"}, Limits())
    fake = road.root / "ls"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)

    result = road.run(command="ls")
    road.log.close()

    assert result.content == "ls\n[exit code 0, T s]"


# What is judged


def inside(road: Road, word: str, name: str, access: Access) -> PathAccess:
    return PathAccess(written=word, real=str(road.root / name), names=(name,), access=access, place=Place.INSIDE)


def looks(text: str, *paths: PathAccess, folder: str, fed: bool = False) -> Command:
    """Return a command of which a model knows that it only looks."""
    argv = tuple(text.split())
    return Command(text=text, argv=argv, paths=paths, act=Act.LOOKS, model=argv[0], folder=folder, fed=fed)


def test_an_action_holds_the_command_as_it_was_read(road: Road) -> None:
    (road.root / "src").mkdir()
    call = ToolCall(
        id="c1", name="bash", arguments='{"command": "cat a | sort -u b\\nls", "cwd": "src", "timeout_s": 5}'
    )

    action = road.registry.prepare(call)

    folder = inside(road, "src", "src", Access.READ)
    facets: tuple[Facet, ...] = (
        looks("cat a", inside(road, "a", "src/a", Access.READ), folder=folder.real),
        looks("sort -u b", inside(road, "b", "src/b", Access.READ), folder=folder.real, fed=True),
        looks("ls", inside(road, ".", "src", Access.READ), folder=folder.real),
        Command(text="cd src", argv=("cd", "src"), paths=(folder,), act=Act.WRAPS, model="cd"),
    )
    assert isinstance(action.request, BashRequest)
    assert action == Action(
        call=call,
        tool="bash",
        described=SHIPPED_TOOLS["bash"],
        arguments={"command": "cat a | sort -u b\nls", "cwd": "src", "timeout_s": 5},
        facets=facets,
        summary="cat a | sort -u b ...",
        preview="cat a | sort -u b\nls\ncwd: src\ntimeout: 5 s",
        request=BashRequest(
            command="cat a | sort -u b\nls", cwd=folder, seconds=5.0, judged_on=action.request.judged_on
        ),
        text="cat a | sort -u b\nls",
        cwd=folder.real,
        seconds=5.0,
    )


def test_an_operand_is_judged_where_a_link_leads(road: Road, tmp_path: Path) -> None:
    (road.root / "link").symlink_to(tmp_path / "elsewhere")

    (facet,) = road.prepare(command="cat link/x").facets

    assert facet == looks(
        "cat link/x",
        PathAccess(
            written="link/x",
            real=str(tmp_path / "elsewhere" / "x"),
            names=("link/x", str(tmp_path / "elsewhere" / "x")),
            access=Access.READ,
            place=Place.OUTSIDE,
        ),
        folder=str(road.root),
    )


def test_unusual_command_is_one_opaque_facet(road: Road) -> None:
    action = road.prepare(command="f() { rm x; }")

    assert [type(facet) for facet in action.facets] == [Opaque]


def test_the_last_two_lines_of_a_preview_are_not_the_commands(road: Road) -> None:
    action = road.prepare(command="rm x\ncwd: somewhere\x1b[2K\ntimeout: 1 s")

    assert action.preview == "rm x\ncwd: somewhere\\x1b[2K\ntimeout: 1 s\ncwd: .\ntimeout: 120 s"


@all_rows(
    ("limits", "asked", "seconds"),
    [
        pytest.param(Limits(), {}, 120.0, id="two minutes where nobody says anything"),
        pytest.param(Limits(), {"timeout_s": 600}, 600.0, id="as long as the limit, when asked"),
        pytest.param(Limits(command_seconds=30.0), {}, 30.0, id="the limit, where it is shorter than two minutes"),
        pytest.param(Limits(command_seconds=30.0), {"timeout_s": 0.1}, 0.1, id="a tenth of a second at least"),
    ],
)
def test_a_command_has_a_time_limit(tmp_path: Path, limits: Limits, asked: dict[str, float], seconds: float) -> None:
    workspace = Workspace(str(tmp_path))
    tool = BashTool(workspace, CommandRunner(workspace, limits=limits, environment={}))

    request = tool.prepare(ToolCall(id="c1", name="bash", arguments=""), {"command": "ls", **asked}).request

    assert isinstance(request, BashRequest)
    assert request.seconds == seconds


@all_rows(
    ("arguments", "message"),
    [
        pytest.param(
            {"command": "x" * 1_000_001},
            "Invalid arguments for bash: command: is 1000001 characters long; at most 1000000 are taken.",
            id="too many characters",
        ),
        pytest.param(
            {"command": "é" * 500_001},
            "The command is 1,000,002 bytes long; at most 1,000,000 are taken. "
            "Put it into a script with write_file, and run that.",
            id="too many bytes",
        ),
        pytest.param({"command": ""}, "Invalid arguments for bash: command: must not be empty.", id="empty"),
        pytest.param({"command": "a\0b"}, "Invalid arguments for bash: command: contains a NUL character.", id="NUL"),
        pytest.param(
            {"command": "ls", "timeout_s": 0.05},
            "Invalid arguments for bash: timeout_s: must be at least 0.1.",
            id="too short a time",
        ),
        pytest.param(
            {"command": "echo x > made\necho 'y"},
            "bash: unexpected EOF while looking for matching `''. Nothing was run: correct the command line and send it again.",
            id="a quote that is not closed",
        ),
        pytest.param(
            {"command": "ls &&"},
            "bash: syntax error: unexpected end of file. Nothing was run: correct the command line and send it again.",
            id="a command that ends early",
        ),
        pytest.param(
            {"command": " \t\n "}, "Invalid arguments for bash: command: must not be blank.", id="a command of blanks"
        ),
        pytest.param(
            {"command": "ls", "timeout_s": 601},
            "Invalid arguments for bash: timeout_s: must be at most 600.0.",
            id="too long a time",
        ),
        pytest.param(
            {"command": "ls", "cwd": ".."},
            "cwd is outside the workspace: ... Leave it out to start in the workspace folder.",
            id="a folder above the workspace",
        ),
        pytest.param(
            {"command": "ls", "cwd": "way-out"},
            "cwd is outside the workspace: way-out. Leave it out to start in the workspace folder.",
            id="a link that leads out",
        ),
        pytest.param(
            {"command": "ls", "cwd": "file"},
            "cwd is not an existing folder: file. It is taken from the workspace folder.",
            id="a file as the folder",
        ),
        pytest.param(
            {"command": "ls", "cwd": "/" + "z" * 400},
            f"cwd is outside the workspace: /{'z' * 400}. Leave it out to start in the workspace folder.",
            id="a long folder outside, told whole",
        ),
        pytest.param(
            {"command": "ls", "cwd": "none"},
            "cwd is not an existing folder: none. It is taken from the workspace folder.",
            id="a folder that is not there",
        ),
        pytest.param(
            {"command": "ls", "background": True},
            "Invalid arguments for bash: unknown field 'background'; "
            "the fields are command, cwd, timeout_s, unconfined, justification.",
            id="an unknown field",
        ),
    ],
    anew={"road": new_road},
)
def test_a_call_that_makes_no_sense_is_refused(road: Road, arguments: dict[str, object], message: str) -> None:
    (road.root / "file").write_text("")
    (road.root / "way-out").symlink_to("/usr")

    with pytest.raises(ToolError) as caught:
        road.prepare(**arguments)

    assert str(caught.value) == message


@all_rows("size", [120_000, 120_001, 1_000_000], anew={"road": new_road})
def test_the_longest_command_runs(road: Road, size: int) -> None:
    """One that is too long for an argument is read by bash from a file in memory."""
    result = road.run(command="echo begun; exit 7 #".ljust(size, "x"))

    assert (result.content, result.exit_code) == ("begun\n[exit code 7, T s]", 7)


def test_a_long_command_cannot_be_changed_while_it_runs(road: Road) -> None:
    """It finds the file that it is read from, and cannot write to it."""
    command = "for script in /dev/fd/*; do echo touch ran >> $script; done 2> errors\nreadlink /dev/fd/*\n#"

    result = road.run(command=command.ljust(130_000, "x"))

    assert "/memfd:command (deleted)" in result.content
    assert "Operation not permitted" in (road.root / "errors").read_text()
    assert not (road.root / "ran").exists()


# What was judged is what runs


@all_rows("swapped", ["cwd", "operand"], anew={"road": new_road})
def test_a_link_that_is_swapped_after_the_judgement_stops_the_command(road: Road, tmp_path: Path, swapped: str) -> None:
    (road.root / "a").mkdir()
    (road.root / "link").symlink_to("a")
    arguments: dict[str, Any] = (
        {"command": "touch ran", "cwd": "link"} if swapped == "cwd" else {"command": "touch link/ran"}
    )

    def swap() -> None:
        (road.root / "link").unlink()
        (road.root / "link").symlink_to(tmp_path)

    result = road.run_while(swap, **arguments)

    assert result == ToolResult(
        call_id="c1",
        status=ResultStatus.FAILED,
        content=(
            "Error: A path in this command leads to another file than when the command was checked. The command was "
            "not run."
        ),
        output_bytes=111,
    )
    assert list(tmp_path.rglob("ran")) == []


def test_a_command_is_read_once(road: Road) -> None:
    """At the run the disk is asked again what it was asked; the line is not read anew."""
    read: list[str] = []
    on_call = sys.getprofile()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is parse.__code__:
            read.append(str(frame.f_locals["text"]))

    sys.setprofile(note)
    try:
        road.run(command="cat a | head -2; ls")
    finally:
        sys.setprofile(on_call)

    assert read == ["cat a | head -2; ls"]


def test_name_xargs_would_misread_stops_the_command_after_its_judgement(road: Road, tmp_path: Path) -> None:
    (tmp_path / "out.py").write_text("SECRET")
    (road.root / "a.py").write_text("plain")
    arguments: dict[str, Any] = {"command": "find . -name '*.py' | xargs cat"}
    assert "plain" in road.run(**arguments).content
    made = Path(f"{road.root}/x {tmp_path}/out.py")

    def make() -> None:
        made.parent.mkdir(parents=True)
        made.write_text("x")

    result = road.run_while(make, **arguments)

    assert "leads to another file" in result.content
    assert "SECRET" not in result.content


def test_folder_deleted_after_the_judgement_is_an_error(road: Road) -> None:
    (road.root / "sub").mkdir()
    result = road.run_while((road.root / "sub").rmdir, command="ls", cwd="sub")

    assert (result.status, result.content) == (
        ResultStatus.FAILED,
        "Error: Cannot start the command: No such file or directory.",
    )


def test_an_action_of_another_tool_is_not_run(road: Road) -> None:
    action = road.prepare(command="touch ran")
    tool = BashTool(road.workspace, CommandRunner(road.workspace, environment={"PATH": PATH}))

    with pytest.raises(TypeError, match="was not prepared by bash"):
        tool.run(replace(action, request="touch ran"), Effects(read=None, write=None, network=True, unasked=False))

    assert not (road.root / "ran").exists()


def test_builtin_tools_are_listed(road: Road) -> None:
    specs = [tool.spec for tool in builtin_tools(road.workspace, environment={})]

    assert tuple(spec.name for spec in specs) == tuple(SHIPPED_TOOLS)
    assert all(spec.parameters["additionalProperties"] is False for spec in specs)

"""Commands in the background: started, read, stopped, bounded, reachable by later calls, and never orphaned."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from grant_scene import LANDLOCK
from playing import Playing
from process_scene import wait_until
from rows import all_rows

from harness import ActionLog, Agent, ToolRegistry, Workspace
from harness.actions import Effects
from harness.errors import ToolError
from harness.files.recorded_changes import changes_from
from harness.files.tree_changes import TreeChanges
from harness.files.tree_undo import CallChanges, plan_undo
from harness.gate.approval import deny_all
from harness.gate.tool import ToolOutput
from harness.log.verify import verify
from harness.messages import ResultStatus, Role, ToolCall
from harness.models.scripted import call
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate
from harness.process.job import MOST_BYTES, MOST_JOBS, BackgroundJob, JobOutput, Jobs, Mask, Unmasked
from harness.record import replace
from harness.redaction.redactor import Redactor
from harness.redaction.stream import RedactedStream
from harness.sandbox import Machine, bubblewrap, probe, why_no_namespaces
from harness.session.jobs_in_background import JobsInBackground
from harness.tools.bash import BashTool
from harness.tools.command_changes import CommandChanges
from harness.tools.command_runner import CommandRunner
from harness.tools.command_walls import CommandWalls
from harness.tools.job import JobTool

WRITER = Effects(read=None, write=None, granted=(".",), network=False, unasked=False)
FOREVER = "echo begun; exec sleep 100000"
ALL = "version = 1\n[tools]\nbash = 'auto'\njob = 'auto'\n[sandbox]\nnetwork = false\nwrite = ['.']\n"

MACHINES: dict[str, Callable[[], Machine]] = {
    "namespaces": probe,
    "bubblewrap": lambda: replace(probe(), landlock=0, no_namespaces="turned off"),
    "landlock": lambda: LANDLOCK,
}


def machine_of(name: str) -> Machine:
    machine = MACHINES[name]()
    if name == "namespaces" and why_no_namespaces(machine):
        pytest.skip("this machine has no namespaces")
    if name == "bubblewrap" and not bubblewrap.find():
        pytest.skip("this machine has no bubblewrap")
    if name == "landlock" and not machine.landlock:
        pytest.skip("this machine has no Landlock")
    return machine


class Calls:
    """The tools of one session, called without a gate."""

    def __init__(self, folder: Path, machine: Machine, mask: Callable[[], Mask] = Unmasked) -> None:
        workspace = Workspace(str(folder))
        self.jobs = Jobs(mask)
        runner = CommandRunner(workspace, walls=CommandWalls(workspace, machine=machine), jobs=self.jobs)
        self.tools = (BashTool(workspace, runner), JobTool(self.jobs))
        self.registry = ToolRegistry(self.tools)

    def call(self, tool: str, effects: Effects = WRITER, /, **arguments: object) -> ToolOutput:
        action = self.registry.prepare(ToolCall(id="c", name=tool, arguments=json.dumps(arguments)))
        return self.registry[tool].run(action, effects)

    def begin(self, name: str, command: str = FOREVER) -> ToolOutput:
        return self.call("bash", command=command, background=True, name=name)


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    made = Calls(tmp_path, probe())
    yield made
    made.jobs.close()


@pytest.mark.parametrize("name", MACHINES)
def test_command_goes_on_until_it_is_stopped(tmp_path: Path, name: str) -> None:
    calls = Calls(tmp_path, machine_of(name))
    try:
        begun = calls.begin("dev", "echo begun; while ! test -e go; do sleep 0.05; done; echo gone; exec sleep 100000")
        assert begun.content.startswith("begun\n[dev runs in the background until the session ends")
        assert ("[other calls cannot reach its ports" in begun.content) == (name != "namespaces")
        (tmp_path / "go").touch()
        texts: list[str] = []

        def is_gone() -> bool:
            texts.append(calls.call("job", name="dev").content)
            return "gone" in texts[-1]

        assert wait_until(is_gone)
        assert texts[-1].startswith("gone\n[dev is running, ")
        assert calls.call("job", name="dev").content.startswith("(no new output)\n[dev is running")
        stopped = calls.call("job", name="dev", action="stop").content
        assert stopped.startswith("(no new output)\n[dev ended: stopped by the model, ")
        assert [job.name for job in calls.jobs.running] == []
    finally:
        calls.jobs.close()


def test_end_in_the_first_second_is_the_result(calls: Calls) -> None:
    output = calls.begin("dev", "echo oops >&2; exit 3")
    assert (output.status, output.exit_code) == (ResultStatus.FAILED, 3)
    assert output.content.startswith("oops\n[exit code 3, ")
    assert (calls.jobs.all, calls.jobs.take_ended()) == ((), [])


class EndsWhileRead(Unmasked):
    """A mask during whose work the command ends, right after its output was taken."""

    def __init__(self, running: Callable[[], Sequence[BackgroundJob]], go: Path) -> None:
        self._running, self._go = running, go

    def feed(self, piece: str) -> str:
        self._go.touch()
        while self._running():
            time.sleep(0.01)
        return piece


def test_output_right_before_the_end_is_not_lost(tmp_path: Path) -> None:
    here = Calls(tmp_path, probe(), mask=lambda: EndsWhileRead(lambda: here.jobs.running, tmp_path / "go"))
    begun = here.begin("dev", "echo begun; while ! test -e go; do sleep 0.05; done; echo oops; exit 3")
    rest = here.call("job", name="dev")
    assert begun.content.startswith("begun\n")
    assert rest.content.startswith("oops\n[dev ended: exit code 3, ")


@pytest.mark.parametrize(("name", "hosts"), [("namespaces", ()), ("landlock", ("127.0.0.1:3000",))])
def test_yes_to_a_local_address_means_the_job_that_serves_it(tmp_path: Path, name: str, hosts: tuple[str, ...]) -> None:
    calls = Calls(tmp_path, machine_of(name))
    policy = parse_policy(b"version = 1\n[tools]\nbash = 'confirm'\n", "p.toml")

    def reached(command: str) -> tuple[bool, tuple[str, ...]]:
        arguments = json.dumps({"command": command})
        action = calls.registry.prepare(ToolCall(id="c", name="bash", arguments=arguments))
        effects = evaluate(policy, action).effects
        return effects.meets_servers, effects.hosts

    try:
        assert reached("curl http://127.0.0.1:3000/") == (False, ("127.0.0.1:3000",))
        calls.begin("dev")
        assert reached("sleep 1; curl http://127.0.0.1:3000/ || echo down") == (not hosts, hosts)
        assert reached("curl http://127.0.0.1:3000/ https://example.org/") == (False, ("127.0.0.1:3000", "example.org"))
        assert reached("echo down") == (False, ())
    finally:
        calls.jobs.close()


def test_later_call_reaches_its_port_and_no_other_loopback(tmp_path: Path) -> None:
    calls = Calls(tmp_path, machine_of("namespaces"))
    server = "import socket\ns = socket.create_server(('127.0.0.1', 3000))\nprint('up', flush=True)\n"
    (tmp_path / "server.py").write_text(f"{server}while True: s.accept()[0].send(b'hello')\n")
    with socket.create_server(("127.0.0.1", 0)) as other:
        try:
            calls.begin("dev", f"exec {sys.executable} server.py")
            assert wait_until(lambda: b"up" in calls.jobs.get("dev").output.latest())
            look = "head -c 5 < /dev/tcp/127.0.0.1/3000"
            for effects in (WRITER, replace(WRITER, read=(), write=(), granted=(), meets_servers=True)):
                assert calls.call("bash", effects, command=look).content.startswith("hello\n[exit code 0"), effects
            outside = calls.call("bash", command=f"head -c 5 < /dev/tcp/127.0.0.1/{other.getsockname()[1]}")
            assert "Connection refused" in outside.content
        finally:
            calls.jobs.close()


@all_rows(
    ("arguments", "problem"),
    [
        ({"background": True}, "background needs a name"),
        ({"background": True, "name": "a b"}, "background needs a name"),
        ({"background": True, "name": "-x"}, "background needs a name"),
        ({"name": "dev"}, "name is for background commands"),
    ],
)
def test_wrong_arguments_are_refused(calls: Calls, arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        calls.call("bash", command="true", **arguments)


def test_names_are_taken_once_and_jobs_are_bounded(calls: Calls) -> None:
    for number in range(MOST_JOBS):
        calls.begin(f"dev{number}")
    with pytest.raises(ToolError, match="run already, which is the most"):
        calls.begin("more")
    calls.call("job", name="dev0", action="stop")
    with pytest.raises(ToolError, match="'dev1' runs already"):
        calls.begin("dev1")
    assert calls.begin("dev0").content.startswith("begun\n")  # the name of an ended one is free again
    with pytest.raises(ToolError, match="No command runs in the background as 'nobody'"):
        calls.call("job", name="nobody")


def test_background_is_offered_only_where_jobs_are(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    assert "background" not in BashTool(workspace).spec.parameters["properties"]  # type: ignore[operator]
    with pytest.raises(ToolError, match="unknown"):
        ToolRegistry([BashTool(workspace)]).prepare(
            ToolCall(id="c", name="bash", arguments=json.dumps({"command": "true", "background": True, "name": "dev"}))
        )


def test_process_behind_an_ampersand_is_proposed_as_a_background_command(calls: Calls) -> None:
    content = calls.call("bash", command="sleep 100000 & echo begun").content
    assert "[1 background process was still running" in content
    assert "run it as a command of its own with background: true, without &" in content


ORPHAN = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from test_jobs import Calls, machine_of
calls = Calls(Path({folder!r}), machine_of({name!r}))
calls.begin("dev", "exec 9> fifo; (trap '' TERM HUP; setsid sleep 100000) & echo begun; exec sleep 100000")
print("begun", flush=True)
sys.stdin.read()
{end}
"""


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("end", ["killed", "ended"])
def test_no_process_outlives_the_session(tmp_path: Path, name: str, end: str) -> None:
    """The pipe closes when the last process that has it open has ended."""
    machine_of(name)
    os.mkfifo(tmp_path / "fifo")
    reading = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    code = ORPHAN.format(
        paths=[*sys.path, str(Path(__file__).parent)],
        folder=str(tmp_path),
        name=name,
        end="calls.jobs.close()" if end == "ended" else "",
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            if end == "killed":
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
            poll = select.poll()
            poll.register(reading, select.POLLIN)
            assert poll.poll(60_000) == [(reading, select.POLLHUP)]
        finally:
            process.kill()
            os.close(reading)


def test_output_is_bounded_and_begins_with_a_whole_line() -> None:
    output = JobOutput()
    line = b"x" * 999 + b"\n"
    for _ in range(4 * MOST_BYTES // len(line)):
        output.add(line)
    output.add(b"half")
    raw, dropped = output.unread(last=False)
    assert (len(raw) % 1000, dropped + len(raw) + 4) == (0, output.total)
    assert len(raw) <= MOST_BYTES
    assert output.unread(last=False) == (b"", 0)
    assert output.unread(last=True) == (b"half", 0)
    assert output.latest().startswith(b"x" * 999 + b"\n")


def test_secret_that_is_split_between_two_reads_is_masked() -> None:
    secret = "line one of it\nline two of it"
    job = BackgroundJob("dev", "x", ("", 1), writes=False, mask=RedactedStream(Redactor([secret])))
    job.output.add(b"before line one of it\n")
    first = job.read()
    job.output.add(b"line two of it\nafter\n")
    text = first + job.read()
    assert "line one" not in text
    assert "line two" not in text
    assert text.startswith("before")


# -- in a session


def records_of(folder: Path, agent_calls: list[ToolCall], *, jobs: Jobs | None = None) -> list[dict[str, object]]:
    workspace, path = Workspace(str(folder / "w")), str(folder / "log.jsonl")
    jobs = jobs or Jobs()
    log = ActionLog.open(path)
    jobs.call_now = lambda: (log.session, log.running_call)
    agent = Agent(
        model=Playing(agent_calls),
        tools=(BashTool(workspace, CommandRunner(workspace, jobs=jobs)), JobTool(jobs)),
        policy=parse_policy(ALL.encode(), "p.toml"),
        approver=deny_all,
        log=log,
        background=JobsInBackground(jobs),
    )
    session = agent.start()
    agent.run("go", session)
    agent.end(session)
    assert verify(path).broken_line is None
    told = [message.content for message in session.messages if message.role is Role.USER][1:]
    return [*map(json.loads, Path(path).read_text().splitlines()), {"kind": "told", "told": told}]


def begin(name: str, command: str) -> ToolCall:
    return call("bash", command=command, background=True, name=name)


def test_its_end_is_recorded_and_told_once(tmp_path: Path) -> None:
    """The model is told with the next results, and not again about an end that it has read."""
    (tmp_path / "w").mkdir()
    wait = call(
        "bash", command="while test -e w2; do sleep 0.05; done; until test -e dead; do sleep 0.05; done; sleep 1"
    )
    made = [
        begin("dies", "until test -e go; do sleep 0.05; done; touch dead; exit 7"),
        call("bash", command="touch go"),
        wait,
        begin("stopped", FOREVER),
        call("job", name="stopped", action="stop"),
        begin("lives", FOREVER),
    ]
    records = records_of(tmp_path, made)
    ends = {record["name"]: record for record in records if record["kind"] == "job_ended"}
    assert [
        (ends[name]["call"], ends[name]["by"], ends[name]["exit_code"]) for name in ("dies", "stopped", "lives")
    ] == [
        (1, "itself", 7),
        (4, "model", None),
        (6, "session", None),
    ]
    assert records[-2]["kind"] == "session_ended"
    told = records[-1]["told"]
    assert isinstance(told, list)
    assert [text.partition(",")[2].partition(",")[0] for text in told] == [" dies ended: exit code 7"]


def test_changes_beside_a_writing_job_name_it(tmp_path: Path) -> None:
    """Undo says so: what the job changes between two calls is in no record, and never counts as a later call's."""
    (tmp_path / "w").mkdir()
    workspace, jobs = Workspace(str(tmp_path / "w")), Jobs()
    changes = CommandChanges(workspace.root, str(tmp_path / "stores"), {})
    runner = CommandRunner(workspace, jobs=jobs, changes=changes)
    policy = parse_policy(ALL.encode(), "p.toml")
    registry = ToolRegistry([BashTool(workspace, runner)])

    def changed(**arguments: object) -> TreeChanges:
        action = registry.prepare(ToolCall(id="c", name="bash", arguments=json.dumps(arguments)))
        compare = runner.note_files(WRITER, policy)
        assert compare is not None
        registry["bash"].run(action, WRITER)
        return changes_from(compare())

    try:
        loop = "until test -e go; do sleep 0.05; done; touch between; exec sleep 100000"
        assert changed(command=loop, background=True, name="dev").beside == ("dev",)
        (tmp_path / "w" / "go").touch()
        assert wait_until((tmp_path / "w" / "between").exists)
        later = changed(command="touch later")
    finally:
        jobs.close()
    assert ([change.path for change in later.changes], later.beside) == (["later"], ("dev",))
    assert changed(command="touch last").beside == ()
    plan = plan_undo(workspace.root, [CallChanges(call=1, changes=later)], {1}, lambda _: True)
    assert [place.reason.partition(":")[0] for place in plan.cannot] == ["dev ran in the background"]


def test_unread_output_of_unmasked_reader_is_returned_as_it_is() -> None:
    job = BackgroundJob("dev", "x", ("", 1), writes=False, mask=Unmasked())
    job.output.add(b"a\nb")
    assert job.read() == "a\n"

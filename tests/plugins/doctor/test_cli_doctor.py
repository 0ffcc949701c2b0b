"""`harness doctor`: the real program as root and as an ordinary user, on this machine and as if on lesser ones."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from places import ROOT
from program import made_program
from rows import all_rows
from sizes import proof_size

from harness.errors import ModelError, ModelFault
from harness.messages import FinishReason, ModelResponse, ToolCall, Usage
from harness.models.endpoint import Quirks
from harness.models.exchange import Timing
from harness.models.scripted import Failure, Raw, Reply, ScriptedAnswer, call, replies, say
from harness.plugins.doctor.attempts import ATTEMPTS, Behind, Expectation, Ground, WallAttempt
from harness.plugins.doctor.doctor_command import MachineFindings, Report, tell
from harness.plugins.doctor.doctor_model import Asked, findings
from harness.plugins.doctor.trials import DONE, Scene, TrialOutcome, make, outcome_of
from harness.record import replace
from harness.sandbox import Machine, Walls, bubblewrap, probe
from harness.session.config.config_file import ConfigFile
from harness.session.config.settings import resolve
from harness.terminal.styles import Tone

if TYPE_CHECKING:
    from program import Program

NOBODY = 65534
AS_IT_SHOULD_BE = {
    attempt.action: {Expectation.STOPPED: "stopped", Expectation.ALLOWED: "allowed", Expectation.WORKS: "works"}[
        attempt.expected
    ]
    for attempt in ATTEMPTS
}
HIDDEN_FILE = "read a hidden file inside the workspace"
NONE = Machine(landlock=0, seccomp="", bubblewrap="", reasons=("this kernel has no Landlock",))


def _interpreter(uid: int) -> str:
    """Return a Python that the user can run: the one of the tests may lie where only root can read."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if not os.path.exists(python):
            continue
        check = [
            python,
            "-c",
            "import sys; sys.exit(sys.version_info < (3, 11) or sys.executable != sys.argv[1])",
            python,
        ]
        try:
            if subprocess.run(check, user=uid, group=uid, extra_groups=[], cwd="/", check=False).returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip(f"no Python 3.11 that user {uid} can run")


class Someone:
    """A user with a home folder, and a folder for temporary files whose path is long."""

    def __init__(self, uid: int, folder: Path) -> None:
        self.uid = uid
        self.python = sys.executable if uid == os.getuid() else _interpreter(uid)
        self.home = folder / "home"
        self.temporary = folder / ("t" * 120)
        for made in (folder, self.home, self.temporary):
            made.mkdir(exist_ok=True)
            os.chown(made, uid, uid)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "TERM": "xterm",
            "PYTHONPATH": ROOT,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start Python with `words`."""
        pipe = subprocess.PIPE
        given: dict[str, Any] = {"stdout": pipe, "stderr": pipe, "stdin": subprocess.DEVNULL, "env": self.environment}
        user = {} if self.uid == os.getuid() else {"user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.Popen([self.python, *words], text=True, cwd=self.home, **{**given, **user, **options})

    def doctor(self, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return self._ended(self.start("-m", "harness", "doctor", *flags, env={**self.environment, **environment}))

    def examine(self, machine: Machine, walls: str = "Scene.walls") -> subprocess.CompletedProcess[str]:
        """Examine as if on `machine`, behind `walls` (code of a function of the scene): JSON to stdout, text to stderr."""
        code = (
            "import os, sys\n"
            "from contextlib import redirect_stdout\n"
            "from harness.plugins.doctor.doctor_command import examine, tell\n"
            "from harness.plugins.doctor.trials import Scene\n"
            "from harness.sandbox import Machine, Walls\n"
            "from harness.plugins.doctor.attempts import Behind\n"
            f"report = examine({machine!r}, os.environ, {walls})\n"
            "with redirect_stdout(sys.stderr):\n"
            "    code = tell(report, as_json=False, environment=os.environ)\n"
            "assert code == tell(report, as_json=True, environment=os.environ)\n"
            "sys.exit(code)\n"
        )
        return self._ended(self.start("-c", code))

    def left(self) -> list[str]:
        """Return the names of all that was left behind."""
        return [*os.listdir(self.home), *os.listdir(self.temporary)]

    @staticmethod
    def _ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own lies in one that is closed to others."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=[pytest.param(0, id="root"), pytest.param(NOBODY, id="ordinary user")])
def someone(request: pytest.FixtureRequest, folder: Path) -> Someone:
    """Root, and an ordinary user; whoever runs the tests, where that is not root."""
    uid: int = request.param
    if os.getuid() != 0:
        if uid == 0:
            pytest.skip("only root can run it as root")
        uid = os.getuid()
    return Someone(uid, folder)


@pytest.fixture
def me(folder: Path) -> Someone:
    """Whoever runs the tests."""
    return Someone(os.getuid(), folder)


@pytest.fixture
def machine() -> Machine:
    """This machine, which has to have the walls that are tested."""
    found = probe()
    if found.landlock < 6 or not found.seccomp:
        pytest.skip(f"needs Landlock 6 and seccomp: {found}")
    return replace(found, no_namespaces="turned off by the test")


def _outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {attempt["what"]: attempt["outcome"] for attempt in json.loads(done.stdout)["attempts"]}


def _different(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the outcomes that are not those of a good machine."""
    return dict(_outcomes(done).items() - AS_IT_SHOULD_BE.items())


def _may_trace() -> bool:
    """Tell whether this process holds CAP_SYS_PTRACE, as root mostly does."""
    status = Path("/proc/self/status").read_text()
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) & 1 << 19)


def test_walls_stop_every_attempt_that_succeeds_without_them(someone: Someone, machine: Machine) -> None:
    done = someone.examine(machine)
    report = json.loads(done.stdout)
    expected = dict(AS_IT_SHOULD_BE)
    if not report["bubblewrap"]:
        expected[HIDDEN_FILE] = "NOT STOPPED"
    if shutil.which("git") is None:
        expected["git init"] = "skipped"
    assert (done.returncode, _outcomes(done), someone.left()) == (0, expected, [])
    assert {attempt["without_walls"] for attempt in report["attempts"] if attempt["outcome"] != "skipped"} == {DONE}
    assert {
        attempt["behind_walls"].partition(":")[0] for attempt in report["attempts"] if attempt["outcome"] == "stopped"
    } == {"refused"}
    assert (report["confines"], report["exit_code"], report["root"]) == (True, 0, someone.uid == 0)
    assert (report["state_folder"], report["state_writable"]) == (f"{someone.home}/.local/state/harness", True)
    assert os.access(report["bash"], os.X_OK)
    assert [path for path in report["own_code"] if path == ROOT or f"{ROOT}/harness".startswith(path)]
    assert report["environment_closed"] == (someone.uid != 0 or not _may_trace()), "PR_SET_DUMPABLE"
    lines = done.stderr.splitlines()
    text = " ".join(done.stderr.split())
    assert [a.action for a in ATTEMPTS if a.action not in text] == []
    assert [a.reason for a in ATTEMPTS if a.expected is Expectation.ALLOWED and a.reason not in text] == []
    assert "  stopped     make a file outside the workspace" in lines
    assert "  works       a here-document of 200 kB" in lines
    assert lines[0].startswith("harness ")
    assert any(line.startswith("walls         Landlock ") for line in lines)
    assert lines[-1] == "This machine can confine commands, so policies with required = true (ci) run."
    assert ("run harness as an ordinary user" in text) == (someone.uid == 0)
    assert "\x1b" not in done.stderr


def test_missing_walls_stop_no_attempt_and_advice_is_given(me: Someone) -> None:
    done = me.examine(NONE)
    stopped = {a.action: "NOT STOPPED" for a in ATTEMPTS if a.expected is Expectation.STOPPED}
    assert done.returncode == 2
    assert _different(done) == stopped
    assert me.left() == []
    text = " ".join(done.stderr.split())
    assert "walls none" in text
    assert "this kernel has no Landlock" in text
    assert "This machine cannot confine commands, so policies with required = true (ci) do not run." in text
    assert "What to do: in a container, run it with a seccomp profile that allows the landlock_* calls" in text


def _report(machine: Machine, walls: Mapping[Behind, Walls], different: Iterable[str], scene: Scene) -> Report:
    """Make the attempts that should end differently and some others (all of them with HARNESS_FULL), and report."""
    every = proof_size("DOCTOR_STEP", 6, full=1)
    others = [attempt for attempt in ATTEMPTS if attempt.action not in different][::every]
    attempts = [attempt for attempt in ATTEMPTS if attempt.action in different or attempt in others]
    found = MachineFindings(
        system="Linux", machine=machine, bash="/bin/bash", state="", state_writable=True, root=False
    )
    return Report(findings=found, trials=make(attempts, scene, machine, walls), environment_closed=True)


def _not_as_it_should_be(report: Report) -> dict[str, str]:
    outcomes = {trial.attempt.action: trial.outcome.value for trial in report.trials}
    return dict(outcomes.items() - AS_IT_SHOULD_BE.items())


NOTHING_STOPPED = tuple(a.action for a in ATTEMPTS if a.expected is Expectation.STOPPED)
LESSER: dict[str, tuple[int, bool, bool, tuple[str, ...]]] = {
    "no bubblewrap": (7, True, True, (HIDDEN_FILE,)),
    "Landlock 5": (
        5,
        True,
        True,
        (HIDDEN_FILE, "send a signal to the harness"),
    ),
    "Landlock 2": (2, True, False, NOTHING_STOPPED),
    "no seccomp": (7, False, False, NOTHING_STOPPED),
}
"""Which version of Landlock, whether there is seccomp, whether policies that require walls run, and what is not stopped."""


@pytest.mark.parametrize("name", LESSER)
def test_lesser_machine_stops_fewer_attempts(machine: Machine, name: str) -> None:
    landlock, has_seccomp, holds, different = LESSER[name]
    lesser = Machine(landlock=landlock, seccomp=machine.seccomp if has_seccomp else "", bubblewrap="")
    with Scene("/bin/bash", os.environ) as scene:
        report = _report(lesser, scene.walls(), different[:8], scene)
    assert (report.holds, _not_as_it_should_be(report)) == (
        holds,
        {trial.attempt.action: "NOT STOPPED" for trial in report.trials if trial.attempt.action in different},
    )


def test_namespaces_stop_more(someone: Someone, machine: Machine) -> None:
    done = someone.examine(replace(machine, no_namespaces=None, bubblewrap=""))
    if not json.loads(done.stdout)["network_by_host"]:
        pytest.skip("this machine gives this user no namespaces")
    assert (done.returncode, _different(done)) == (
        0,
        {
            "change the mode of a file outside, as a writer": "stopped",
            "read the size of a file in a hidden folder": "stopped",
        },
    )


def test_bubblewrap_alone_is_enough(someone: Someone, machine: Machine) -> None:
    """It hides names, and lets no mode be changed, for a writer too."""
    done = someone.examine(Machine(landlock=0, seccomp=machine.seccomp))
    if json.loads(done.stdout)["bubblewrap"] is None:
        pytest.skip("bubblewrap does not work here")
    assert (done.returncode, _different(done)) == (
        0,
        {
            "change the mode of a file outside, as a writer": "stopped",
            "read the size of a file in a hidden folder": "stopped",
        },
    )


WRITES_OUTSIDE = (
    "make a file outside the workspace",
    "write to a file outside, through a link inside",
    "empty a file outside",
    "delete a file outside",
    "move a file out of the workspace",
    "link a file from outside into the workspace",
)


def _open_walls(scene: Scene) -> dict[str, tuple[Behind, Walls, tuple[str, ...]]]:
    """Return walls with a hole, whose they are, and what they do not stop."""
    workspace = (scene.workspace,)
    return {
        "everything may be written": (
            Behind.WRITER,
            Walls(write=(scene.folder,), network=False),
            (*WRITES_OUTSIDE, "read a hidden folder"),
        ),
        "the network is open": (
            Behind.WRITER,
            Walls(write=workspace, network=True, hide=(f"{scene.folder}/hidden",)),
            ("connect over TCP", "send over UDP"),
        ),
        "readers write": (
            Behind.READER,
            Walls(write=workspace, network=False),
            (
                "make a file inside the workspace, as a reader",
                "change the mode of a file outside, as a reader",
                "connect to a Unix socket, as a reader",
            ),
        ),
        "the hidden file is not hidden": (Behind.MASKED, Walls(write=workspace, network=False), (HIDDEN_FILE,)),
    }


def test_failing_wall_is_reported(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    found = bubblewrap.find()
    if not found:
        pytest.skip("bubblewrap does not work here")
    with Scene("/bin/bash", os.environ) as scene:
        for name, (behind, open_walls, different) in _open_walls(scene).items():
            walls = {**scene.walls(), behind: open_walls}
            report = _report(replace(machine, bubblewrap=found), walls, different, scene)
            assert _not_as_it_should_be(report) == dict.fromkeys(different, "NOT STOPPED"), name
            assert tell(report, as_json=False, environment={}) == 2
            told = capfd.readouterr().out
            assert f"  NOT STOPPED  {different[0]}" in told, name
            assert f"The walls do not hold here: {len(different)} of the attempts" in " ".join(told.split()), name


def test_walls_that_are_too_tight_to_work_in_fail(machine: Machine) -> None:
    what = "make, move and delete files in the workspace"
    with Scene("/bin/bash", os.environ) as scene:
        report = _report(machine, {**scene.walls(), Behind.WRITER: Walls(write=(), network=False)}, (what,), scene)
    assert (report.holds, _not_as_it_should_be(report)[what]) == (False, "FAILS")


@pytest.mark.usefixtures("machine")
def test_attempts_with_missing_programs_are_skipped(me: Someone, folder: Path) -> None:
    (folder / "bin").mkdir()
    for name in ("mkdir", "mv", "ln", "rm", "wc", "yes", "head"):
        (folder / "bin" / name).symlink_to(str(shutil.which(name)))
    done = me.doctor("--json", PATH=str(folder / "bin"))
    assert (done.returncode, _outcomes(done)["git init"], "git: command not found" in done.stdout) == (
        0,
        "skipped",
        True,
    )


def test_folder_writable_by_every_command_cannot_try_walls(me: Someone) -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no /dev/shm here")
    done = me.doctor(TMPDIR="/dev/shm")
    assert (done.returncode, done.stdout, "set TMPDIR=/tmp" in done.stderr) == (2, "", True)


def test_failed_process_start_is_reported(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("the limit is an ordinary user's")
    code = "import resource, sys\nfrom harness.app.main import main\n"
    code += "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\nsys.exit(main(['doctor']))\n"
    process = Someone(NOBODY, folder).start("-c", code)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, "nothing could be tried" in err) == (2, "", True), err


@pytest.mark.usefixtures("machine")
def test_unwritable_state_folder_is_reported(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    nobody = Someone(NOBODY, folder)
    os.chown(nobody.home, 0, 0)
    done = nobody.doctor()
    assert (done.returncode, "NOT WRITABLE" in done.stdout) == (0, True)


COLOURS = """
import os
from harness.plugins.doctor.doctor_command import MachineFindings, Report, tell
from harness.plugins.doctor.attempts import ATTEMPTS
from harness.plugins.doctor.trials import DONE, Trial, TrialOutcome
from harness.sandbox import probe

trial = Trial(attempt=ATTEMPTS[0], outcome=TrialOutcome.STOPPED, without=DONE, within="refused: EACCES")
found = MachineFindings(system="Linux", machine=probe(), bash="/bin/bash", state="/", state_writable=True, root=False)
for more in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
    tell(Report(findings=found, trials=(trial,), environment_closed=True), as_json=False, environment={**os.environ, **more})
    print("---")
"""


def test_colours_on_a_terminal_only_where_they_are_wanted(me: Someone) -> None:
    ours, its = pty.openpty()
    process = me.start("-c", COLOURS, stdout=its)
    os.close(its)
    shown = b""
    while select.select([ours], [], [], 120)[0]:
        try:
            block = os.read(ours, 65_536)
        except OSError:
            break
        shown += block
        if not block:
            break
    os.close(ours)
    process.communicate()
    plain, *others = shown.split(b"---")[:3]
    assert b"\x1b[32m  stopped" in plain
    assert [(b"\x1b" in one, b"  stopped " in one) for one in others] == [(False, True)] * 2


@pytest.mark.usefixtures("machine")
def test_reader_that_disconnects_is_not_an_error(me: Someone) -> None:
    reading, writing = os.pipe()
    process = me.start("-m", "harness", "doctor", stdout=writing)
    os.close(writing)
    os.close(reading)
    process.communicate()
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_signal_during_doctor_leaves_no_files(me: Someone, number: signal.Signals, code: int) -> None:
    ended = 0
    for _ in range(50):  # unless it was over before the signal came
        process = me.start("-m", "harness", "doctor")
        while not os.listdir(me.temporary) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
        if ended := process.returncode:
            break
    assert (ended, me.left()) == (code, [])


def test_it_takes_no_other_words(me: Someone) -> None:
    assert (me.doctor("extra").returncode, me.doctor("--help").returncode) == (2, 0)


REFUSED = "refused: EACCES"
BROKEN = "it ended with status -31"
NO_WALLS = "no walls: this machine has none"


TWO_ANSWERS = [
    (Expectation.STOPPED, DONE, REFUSED, TrialOutcome.STOPPED),
    (Expectation.STOPPED, DONE, DONE, TrialOutcome.NOT_STOPPED),
    (Expectation.STOPPED, DONE, NO_WALLS, TrialOutcome.NOT_STOPPED),
    (Expectation.STOPPED, REFUSED, REFUSED, TrialOutcome.CLOSED),
    (Expectation.STOPPED, REFUSED, NO_WALLS, TrialOutcome.CLOSED),
    (Expectation.STOPPED, REFUSED, DONE, TrialOutcome.NOT_STOPPED),
    (Expectation.STOPPED, BROKEN, REFUSED, TrialOutcome.CLOSED),
    (Expectation.STOPPED, DONE, BROKEN, TrialOutcome.UNCLEAR),
    (Expectation.STOPPED, BROKEN, NO_WALLS, TrialOutcome.UNCLEAR),
    (Expectation.ALLOWED, DONE, DONE, TrialOutcome.ALLOWED),
    (Expectation.ALLOWED, DONE, REFUSED, TrialOutcome.STOPPED),
    (Expectation.ALLOWED, DONE, BROKEN, TrialOutcome.UNCLEAR),
    (Expectation.WORKS, DONE, DONE, TrialOutcome.WORKS),
    (Expectation.WORKS, DONE, NO_WALLS, TrialOutcome.WORKS),
    (Expectation.WORKS, DONE, REFUSED, TrialOutcome.FAILS),
    (Expectation.WORKS, DONE, BROKEN, TrialOutcome.FAILS),
    (Expectation.WORKS, BROKEN, BROKEN, TrialOutcome.SKIPPED),
]


def test_attempt_counts_as_stopped_only_if_both_answers_prove_it() -> None:
    """INVARIANT: nothing counts as stopped that did not say so, and that did not have its way without walls."""
    wrong = [row for row in TWO_ANSWERS if outcome_of(row[0], row[1], row[2]) is not row[3]]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("os._exit(3)", "it ended with status 3"),
        ("os.kill(os.getpid(), 9)", "it ended with status -9"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise OSError(13, 'no')", "refused: EACCES"),
        ("pass", DONE),
    ],
)
def test_aborted_attempt_is_unclear(machine: Machine, code: str, says: str) -> None:
    attempt = WallAttempt(ground=Ground.OTHERS, action="try", code=code)
    with Scene("/bin/bash", os.environ) as scene:
        (trial,) = make((attempt,), scene, machine, scene.walls())
    assert (trial.without, trial.within) == (says, says)
    assert trial.outcome is {DONE: TrialOutcome.NOT_STOPPED, REFUSED: TrialOutcome.CLOSED}.get(
        says, TrialOutcome.UNCLEAR
    )


def test_walls_that_cannot_be_set_up_are_reported(
    machine: Machine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A folder that is reached over a link is refused before anything is started, and that is said."""
    (tmp_path / "link").symlink_to(tmp_path)
    walls = dict.fromkeys(Behind, Walls(write=(f"{tmp_path}/link",), network=False))
    with Scene("/bin/bash", os.environ) as scene:
        report = _report(machine, walls, ("make a file outside the workspace",), scene)
    (trial, *_) = report.trials
    assert (trial.outcome, "reached over a link" in trial.within) == (TrialOutcome.NOT_STOPPED, True)
    assert (
        tell(report, as_json=False, environment={}),
        "no walls: cannot allow writing to" in capfd.readouterr().out,
    ) == (
        2,
        True,
    )


def test_attempts_have_different_descriptions() -> None:
    assert len(AS_IT_SHOULD_BE) == len(ATTEMPTS)


# --- doctor --model ---

OK = call("report", status="ok")


def ask(program: Program, *answers: ScriptedAnswer, words: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
    """Have the model examined that gives these answers; return the exit code and what was found, as JSON."""
    url = program.serve(replies(*answers))
    done = program.run("doctor", "--model", "m", "--base-url", url, "--json", *words)
    assert done.err == ""
    report = json.loads(done.out)
    assert (report["exit_code"], report["usable"]) == (done.code, done.code == 0)
    return done.code, report


def found(report: dict[str, Any]) -> dict[str, str]:
    """Return what was found good, a warning or bad."""
    return {finding["about"]: finding["outcome"] for finding in report["findings"] if finding["about"] != "time"}


@all_rows("api", ["chat", "responses"], anew={"program": made_program})
def test_a_model_that_calls_the_tool_is_usable(program: Program, api: str) -> None:
    """One request, with one tool; nothing is logged, and nothing in the workspace is touched."""
    code, report = ask(program, Reply(calls=(OK,)), words=("--api", api))
    looked_at = ("address", "key", "model", "streaming", "tool call", "arguments", "end", "usage")
    assert (code, found(report)) == (0, dict.fromkeys(looked_at, "good"))
    assert (report["model"], report["api"], report["fault"]) == ("m", api, None)
    assert 0 <= report["connected_ms"] <= report["first_event_ms"] <= report["total_ms"] < 60_000
    (request,) = program.players[0].requests
    assert "report" in json.dumps(request["tools"])
    assert (program.logs(), list(program.workspace.iterdir())) == ([], [])


def test_model_is_tried_in_the_requested_form(program: Program) -> None:
    as_text = ("--calls", "text")
    code, report = ask(program, say("```bash\necho ok\n```"), words=as_text)
    assert (code, found(report)["tool call"], found(report)["arguments"]) == (0, "good", "good")
    assert "tools" not in program.players[0].requests[0]
    code, report = ask(program, say("```bash\necho ok"), words=as_text)
    assert (code, found(report)["arguments"]) == (6, "bad")
    code, report = ask(program, say("ok"), words=as_text)
    advice = next(one["advice"] for one in report["findings"] if one["outcome"] == "bad")
    assert (code, "take another model" in advice, "--calls" in advice) == (6, True, False)


PAGE = Raw(body=b"<html>login</html>", content_type="text/html")
# The answer, what is bad about it, what is said of that, and the fault.
UNUSABLE: dict[str, tuple[ScriptedAnswer, str, str, str | None]] = {
    "text": (say("The status is ok."), "tool call", "came as text: 'The status is ok.'", None),
    "silence": (Reply(), "tool call", "none", None),
    "another tool": (Reply(calls=(call("bash", command="touch made"),)), "tool call", "'bash', which it was not", None),
    "arguments that cannot be read": (
        Reply(calls=(ToolCall(id="", name="report", arguments='{"status": '),)), "arguments", "not valid JSON", None,
    ),
    "arguments of another tool": (Reply(calls=(call("report", state=1),)), "arguments", "Invalid arguments", None),
    "a cut at the greatest length": (Reply(calls=(OK,), finish_reason="length"), "end", "greatest length", None),
    "the content filter": (Reply(finish_reason="content_filter", calls=(OK,)), "end", "content filter", None),
    "a key that is refused": (Failure(status=401), "key", "HTTP 401", "authentication"),
    "a model that is not there": (Failure(status=404), "model", "Unknown model 'm'", "not_found"),
    "tools that are refused": (
        Failure(status=400, body='{"error": {"message": "no tools"}}'), "request", "no tools", "request",
    ),
    "a server that is overloaded": (Failure(status=503), "server", "HTTP 503", "server"),
    "a page": (PAGE, "reply", "", "reply"),
}  # fmt: skip


@all_rows(("answer", "about", "said", "fault"), UNUSABLE.values(), ids=UNUSABLE, anew={"program": made_program})
def test_a_model_that_cannot_be_used(
    program: Program, answer: ScriptedAnswer, about: str, said: str, fault: str | None
) -> None:
    """Exit 6; one thing is bad, and it says which; it is asked once, and nothing is run."""
    code, report = ask(program, answer)
    bad = [finding for finding in report["findings"] if finding["outcome"] == "bad"]
    assert (code, [finding["about"] for finding in bad], report["fault"]) == (6, [about], fault)
    assert said in bad[0]["said"]
    assert (len(program.players[0].requests), list(program.workspace.iterdir())) == (1, [])


def test_oddities_are_warnings(program: Program) -> None:
    two = Reply(calls=(OK, OK))
    other = Reply(calls=(call("report", status="fine"),))
    assert {about for about, outcome in found(ask(program, two)[1]).items() if outcome == "warning"} == {"tool call"}
    code, report = ask(program, other)
    assert (code, found(report)["arguments"]) == (0, "warning")


def test_an_answer_as_text_has_a_hint(program: Program) -> None:
    url = program.serve(replies(say("I would call report.")))
    done = program.run("doctor", "--model", "m", "--base-url", url)
    text = " ".join(done.out.split())
    assert (done.code, "--enable-auto-tool-choice" in text, "--jinja" in text) == (6, True, True)
    assert "The harness cannot use this model as things are." in text


def test_unreachable_address_is_reported(program: Program) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        done = program.run("doctor", "--model", "m", "--base-url", url, "--json")
    report = json.loads(done.out)
    assert (done.code, found(report), report["fault"]) == (6, {"address": "bad"}, "connection")


def test_the_key_is_named_and_never_shown(program: Program) -> None:
    program.environment |= {
        "OPENAI_API_KEY": "sk-0123456789",
        "OPENAI_BASE_URL": program.serve(replies(Reply(calls=(OK,)))),
    }
    done = program.run("doctor", "--model")
    assert (done.code, "sk-0123456789" in done.out + done.err) == (0, False)
    assert "the one in OPENAI_API_KEY was accepted" in done.out
    assert "The harness can use this model." in done.out


@all_rows(
    ("words", "message"),
    [
        (("--model",), "no model to talk to"),
        (("--model", "--provider", "opnai"), "unknown provider 'opnai'"),
        (("--model", "--provider", "ollama"), "which model of Ollama"),
        (("--provider", "ollama"), "--provider is about the model: say `harness doctor --model` too"),
        (("--base-url", "http://127.0.0.1:9"), "--base-url is about the model"),
        (("--api", "rest"), "invalid choice"),
    ],
    anew={"program": made_program},
)
def test_invalid_settings_send_no_request(program: Program, words: tuple[str, ...], message: str) -> None:
    done = program.run("doctor", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def _asked(**more: Any) -> Asked:
    reply = ModelResponse(
        text="",
        tool_calls=(replace(OK, id="c"),),
        finish_reason=FinishReason.DONE,
        usage=Usage(unreported=1),
        echo="{}",
    )
    return Asked(reply=reply, error=None, seconds=0.5, first_text_seconds=None, **more)


NO_STREAMS = Failure(status=400, body='{"error": {"message": "streaming is not supported with tools"}}')


@all_rows("api", ["chat", "responses"], anew={"program": made_program})
def test_settings_learned_from_a_refusal_are_reported(program: Program, api: str) -> None:
    code, report = ask(program, NO_STREAMS, Reply(calls=(OK,)), words=("--api", api))
    told = {finding["about"]: finding["said"] for finding in report["findings"]}
    assert (code, found(report)["streaming"], told["learned"]) == (0, "warning", "stream = False, by a refusal")
    assert [request["stream"] for request in program.players[0].requests] == [True, False]
    assert report["first_event_ms"] is None


def test_missing_abilities_of_a_server_are_reported() -> None:
    settings = resolve({"base_url": "http://llm.example.org/v1"}, {"OPENAI_API_KEY": "k"}, ConfigFile(path="c"))
    timing = Timing(connected=0.002, first_event=0.03)
    asked = _asked(quirks=Quirks(stream=False), again=("The provider could not answer.",), timing=timing)
    told = {finding.subject: (finding.tone, finding.text) for finding in findings(settings, asked)}
    assert told["address"] == (Tone.WARNING, "http://llm.example.org/v1 was reached, unencrypted: so is the key")
    assert told["usage"] == (Tone.WARNING, "not reported")
    assert told["reasoning"][0] is Tone.GOOD
    assert told["streaming"][0] is Tone.WARNING
    assert told["learned"] == (Tone.PLAIN, "stream = False, by a refusal")
    assert told["sent again"] == (Tone.WARNING, "The provider could not answer.")
    assert told["time"] == (Tone.PLAIN, "connected after 2 ms, first event after 30 ms, all of it after 500 ms")


@all_rows("fault", list(ModelFault))
def test_each_fault_is_reported_as_bad(fault: ModelFault) -> None:
    settings = resolve({"base_url": "http://127.0.0.1:9"}, {}, ConfigFile(path="c"))
    asked = Asked(reply=None, error=ModelError("It broke.", fault=fault), seconds=0.1, first_text_seconds=None)
    assert [finding.text for finding in findings(settings, asked) if finding.tone is Tone.BAD] == ["It broke."]

"""What the tests share: the real program in a process, a scripted server, folders of its own; a look at every log."""

from __future__ import annotations

import compileall
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from harness.models.loopback import ScriptServer
from harness.models.scripted import Player, Script

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "support")
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from log_census import Census  # noqa: E402 - lies beside this file

# However busy the machine is, an example takes as long as it takes.
settings.register_profile("harness", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("harness")

CENSUS = pytest.StashKey[Census]()
LEAST_RECORDS = 100_000
"""How many records the whole suite writes at the very least into folders that its tests leave behind."""

LogRecord = dict[str, object]


class Done(NamedTuple):
    """A finished process."""

    code: int
    out: str
    err: str


class Program:
    """The installed program, run in a workspace, with state and configuration folders of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.state = folder / "state"
        for made in (self.home, self.workspace, self.state):
            made.mkdir()
        self.players: list[Player] = []
        self._servers = ExitStack()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.state),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",  # the test terminal answers no questions about its cursor
        }

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of the program."""
        return [sys.executable, "-m", "harness", *arguments]

    def serve(self, script: Script, *, fragment: int = 7) -> str:
        """Serve `script` until the test is over, and return the base URL."""
        self.players.append(Player(script))
        return self._servers.enter_context(ScriptServer(self.players[-1], fragment=fragment)).base_url

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        """Start the program without waiting for it."""
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            self.command(*arguments),
            **{
                "cwd": self.workspace,
                "env": self.environment,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **options,
            },
        )

    def run(self, *arguments: str, **options: object) -> Done:
        """Run the program to its end (at most five minutes)."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"the program hung: {out!r} {err!r}") from None
        return Done(process.returncode, (out or b"").decode(), (err or b"").decode())

    def logs(self) -> list[Path]:
        """Return every action log of this test."""
        return sorted(self.state.glob("harness/sessions/**/*.jsonl"))

    def records(self) -> list[LogRecord]:
        """Return the records of the only log."""
        (path,) = self.logs()
        return [json.loads(line) for line in path.read_text().splitlines()]

    def close(self) -> None:
        """Stop the servers."""
        self._servers.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program, with everything it touches below tmp_path."""
    made = Program(tmp_path)
    yield made
    made.close()


@pytest.fixture
def in_workspace(program: Program) -> Callable[[str, str], Path]:
    """Write a file of the workspace."""

    def write(name: str, content: str) -> Path:
        path = program.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    return write


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the package once: a process that runs out of disk in a test would leave half a module's bytecode behind."""
    if not hasattr(session.config, "workerinput"):
        compileall.compile_dir(str(Path(__file__).parent.parent / "harness"), quiet=2)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the records of action logs."""
    config.stash[CENSUS] = Census()


@pytest.fixture(autouse=True)
def every_record_fits_the_schema(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold each record of each action log that a test leaves in its folder against the schema.

    A test that writes by hand what no harness writes says so: `forges_logs`.
    """
    if "tmp_path" not in request.fixturenames or request.node.get_closest_marker("forges_logs"):
        yield
        return
    folder = request.getfixturevalue("tmp_path")
    yield
    assert list(request.config.stash[CENSUS].problems(str(folder))) == []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of the whole suite in which hardly any record was looked at: the check must not be empty."""
    census, options = session.config.stash[CENSUS], session.config.option
    if hasattr(session.config, "workeroutput"):  # one of several processes (pytest-xdist): the first one judges
        session.config.workeroutput["census"] = census.counts()
        return
    whole = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS and not options.collectonly
    if not whole or options.keyword or options.markexpr or session.exitstatus != pytest.ExitCode.OK:
        return
    if census.records < LEAST_RECORDS or census.missing():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over what another process counted."""
    if "census" in getattr(node, "workeroutput", {}):
        node.config.stash[CENSUS].add(node.workeroutput["census"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many records were looked at, and of which kinds there was none."""
    census = config.stash[CENSUS]
    if census.logs:
        missing = f"; none of the kinds {', '.join(census.missing())}" if census.missing() else ""
        terminalreporter.write_line(f"{census.told()}{missing}")

"""What the tests share: the real program in a process, a scripted server, folders of its own; a look at every log."""

from __future__ import annotations

import compileall
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from log_census import Census
from places import in_memory
from program import Program

if TYPE_CHECKING:
    from fleet_scene import Fleet
    from postgres_server import PostgresServer

# However busy the machine is, an example takes as long as it takes.
settings.register_profile("harness", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("harness")

CENSUS = pytest.StashKey[Census]()
IN_MEMORY = frozenset(("audit", "gate", "models"))
FEW_FILES = 30
"""So many test files each worker compiles for itself."""
LEAST_RECORDS = 30_000
"""How many records the whole suite writes at the very least into folders that its tests leave behind."""


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of each test's own: in memory for the rooms that write many logs, each record of which waits for a disk."""
    if request.path.parent.name in IN_MEMORY:
        yield from in_memory()
    else:
        yield tmp_path


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
        if getattr(session.config.option, "numprocesses", None):
            compile_tests()


def compile_tests() -> None:
    """Have pytest compile each test file once, a part of them on each core: else every worker compiles them all."""
    tests = Path(__file__).parent
    stale = [str(file) for file in sorted(tests.rglob("test_*.py")) if not is_compiled(file)]
    if len(stale) > FEW_FILES:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
        ]  # in one process
        cores = os.cpu_count() or 1
        parts = [subprocess.Popen([*command, *stale[n::cores]], stdout=subprocess.DEVNULL) for n in range(cores)]
        for part in parts:
            part.wait()


def is_compiled(file: Path) -> bool:
    """Say whether there is bytecode of a test file, as pytest names it, that is no older than the file."""
    made = (file.parent / "__pycache__").glob(f"{file.stem}.{sys.implementation.cache_tag}-pytest-*.pyc")
    return any(one.stat().st_mtime >= file.stat().st_mtime for one in made)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes `-n auto` means: two a core, since most tests wait for a program or a disk."""
    return 2 * (os.cpu_count() or 1)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the records of action logs, and keep bytecode. Undo what a start in the background did to the signals."""
    sys.dont_write_bytecode = False  # of test files, whatever the environment says
    config.stash[CENSUS] = Census()
    hear_signals(is_worker=hasattr(config, "workerinput"))


def hear_signals(*, is_worker: bool) -> None:
    """Give started programs the signals that a shell's `&` or `nohup` had this process ignore: they would inherit that.

    A signal with a function of Python's has its default in a started program. Ctrl-C ends a foreground start as ever;
    that a terminal closes, or Ctrl-Backslash, does nothing to a background start and its workers.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if is_worker or signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


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


@pytest.fixture
def fleet(program: Program, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet whose queue is a SQLite file, with a model behind it."""
    from batch_scene import serving
    from fleet_scene import Fleet  # needs the extra `fleet`

    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, player):
        made = Fleet(program, tmp_path, f"sqlite:///{tmp_path}/queue.db", url, player)
        yield made
        made.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running Postgres; a test that asks for it is skipped where there is none."""
    from postgres_server import postgres_server

    with postgres_server() as server:
        if server is None:
            pytest.skip("there is no initdb: no Postgres is installed")
        yield server

"""A real Postgres on loopback, started as an ordinary user. It can be stopped in the middle, and started again."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "fleet"
NOBODY = "nobody"
"""Postgres refuses to run as root: then it runs as this user."""


def postgres_programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`; None where there is no Postgres."""
    found = shutil.which("initdb")
    folders = [Path(os.path.realpath(found)).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if all((folder / name).exists() for name in ("initdb", "pg_ctl"))), None)


class PostgresServer:
    """A cluster in a folder of its own, with a port of its own."""

    def __init__(self, programs: Path, folder: Path) -> None:
        """Make the cluster. It is not started yet."""
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._as_user: list[str] = []
        if os.getuid() == 0:
            shutil.chown(folder, NOBODY)
            self._as_user = ["setpriv", f"--reuid={NOBODY}", "--regid=nogroup", "--clear-groups"]
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def url(self, name: str) -> str:
        """Return the address of a data base, which need not exist yet."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        """Start the server, and return when it answers."""
        sockets = shlex.quote(str(self._folder))
        options = f"-p {self.port} -k {sockets} -c listen_addresses=127.0.0.1 -c max_connections=200"
        log = self._folder / "log"
        # What is lost with the power is of no use to a test.
        self._run("pg_ctl", "-D", self._data, "-l", log, "-o", f"{options} -c fsync=off", "-w", "-t", "120", "start")

    def stop(self) -> None:
        """End the server as a crash does: no connection is ended in order."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "-t", "120", "stop")

    def _run(self, program: str, *words: object) -> None:
        done = subprocess.run(
            [*self._as_user, str(self._programs / program), *map(str, words)],
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            # The server keeps these for as long as it lives: a pipe would never end.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        log = self._folder / "log"
        assert done.returncode == 0, (program, log.read_text() if log.exists() else "")


@contextmanager
def postgres_server() -> Iterator[PostgresServer | None]:
    """Have a server run until the block ends; yield None where there is no Postgres."""
    programs = postgres_programs()
    if programs is None:
        yield None
        return
    # Not below the folder of a test, which its user alone can enter.
    with tempfile.TemporaryDirectory(prefix="harness-postgres-") as folder:
        server = PostgresServer(programs, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()

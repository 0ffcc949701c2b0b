"""A PostgreSQL of a measurement's own, and what it counts."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine

_OTHERS = "query !~ 'pg_stat_|pg_current_wal|pg_total_relation|pg_catalog'"


@contextmanager
def postgres(folder: str) -> Iterator[str]:
    """Start a server on loopback, and yield the address of an empty database."""
    programs = max(glob("/usr/lib/postgresql/*/bin/initdb"), default=shutil.which("initdb") or "")
    if not programs:
        raise SystemExit("there is no initdb: install PostgreSQL")
    programs = os.path.dirname(programs)
    as_who = {}
    if not os.getuid():
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_who = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": ()}
    data = os.path.join(folder, "data")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = [f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "fleet", "-E", "UTF8"]
    subprocess.run(made, check=True, cwd=folder, stdout=subprocess.DEVNULL, **as_who)  # type: ignore[call-overload]
    settings = {
        "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder,
        "shared_preload_libraries": "pg_stat_statements", "track_io_timing": "on",
    }  # fmt: skip
    command = [f"{programs}/postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())]
    with open(os.path.join(folder, "log"), "wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **as_who)  # type: ignore[call-overload]
    try:
        ready = [f"{programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        while subprocess.run(ready, check=False).returncode:
            if server.poll() is not None:
                raise SystemExit(f"PostgreSQL did not start: see {log.name}")
            time.sleep(0.1)
        at = ["-h", "127.0.0.1", "-p", str(port), "-U", "fleet"]
        counting = "create extension pg_stat_statements"  # in every database that is made from here on
        subprocess.run([f"{programs}/psql", *at, "-qc", counting, "template1"], check=True)
        yield f"postgresql://fleet@127.0.0.1:{port}/harness"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


class Counters:
    """What the server counts, read on a connection of its own."""

    def __init__(self, url: str) -> None:
        import sqlalchemy as sa

        self.engine: Engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))

    def value(self, query: str) -> float:
        """Return the one number that a query asks for."""
        import sqlalchemy as sa

        with self.engine.connect() as connection:
            return float(connection.execute(sa.text(query)).scalar() or 0)

    def begin(self) -> None:
        """Count from here on."""
        self._wal = self.value("select pg_current_wal_lsn() - '0/0'::pg_lsn")
        self._began = time.monotonic()
        self.value("select 1 from pg_stat_statements_reset()")

    def statements(self) -> float:
        """Return how many statements others made: all but BEGIN and COMMIT, and what this class asks."""
        return self.value(f"select sum(calls) from pg_stat_statements where {_OTHERS} and query !~* '^(begin|commit)'")

    def wal(self) -> float:
        """Return the bytes of the log that the server wrote."""
        return self.value("select pg_current_wal_lsn() - '0/0'::pg_lsn") - self._wal

    def seconds(self) -> float:
        """Return how long it counts."""
        return time.monotonic() - self._began

    def connections(self) -> float:
        """Return how many connections others hold."""
        return self.value("select count(*) - 1 from pg_stat_activity where usename = 'fleet'")

    def cpu(self) -> float:
        """Return the CPU seconds of all processes of the server that serve a connection."""
        with self.engine.connect() as connection:
            served = connection.exec_driver_sql("select pid from pg_stat_activity where usename = 'fleet'")
            return sum(cpu(number) for number in served.scalars())

    def size(self, table: str) -> float:
        """Return the bytes of a table with its indices."""
        return self.value(f"select pg_total_relation_size('{table}')")


def cpu(number: int) -> float:
    """Return the CPU seconds of a process."""
    with open(f"/proc/{number}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

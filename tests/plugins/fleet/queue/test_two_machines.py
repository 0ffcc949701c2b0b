"""Two machines and a database on a third, played by network namespaces: links that are slow, and links that are cut."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from batch_scene import SECONDS, add_gate, serving, until
from fleet_scene import Fleet, WorkerProcess, until_running
from postgres_server import PostgresServer
from program import Program
from sizes import proof_size

from harness.plugins.fleet.queue.open_queue import open_queue
from harness.session.exits import Exit

LEASE = 60.0
"""Of workers that are not to be lost, however busy the machine is."""
SHORT = 20.0
"""Of the worker that is cut off. It ends what it runs after three quarters of that."""
HALF_WAY = proof_size("SLOW_MILLISECONDS", 5, full=100) / 1000
"""Seconds that bytes take in one direction over a slow link."""
MOST_CONNECTIONS = 8
"""Of one worker to the database, whatever it is at."""
COUNT = proof_size("SLOW_TASKS", 3, full=12)
CLONE_NEWNET = 0x40000000


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"there are no network namespaces here: ip {' '.join(words)}: {done.stderr.strip()}")


def listening(namespace: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens in a network namespace: a thread enters it, and only that thread."""
    found: list[socket.socket] = []

    def enter() -> None:
        with open(f"/run/netns/{namespace}", "rb") as file:
            assert ctypes.CDLL(None).setns(file.fileno(), CLONE_NEWNET) == 0
        found.append(socket.create_server((host, port)))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return found[0]


class Road:
    """Takes connections in one namespace, and leads them to a port on the loopback of the tests' own; slowly, if asked to."""

    def __init__(self, listener: socket.socket, port: int, *, seconds: float = 0.0) -> None:
        """Take what listens, where it leads to, and how long bytes take in each direction."""
        self._listener = listener
        self._port = port
        self._seconds = seconds
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._port))
            self._open += near, far
            for one, other in ((near, far), (far, near)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._lead, args=(one, other), daemon=True).start()

    def _lead(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                time.sleep(self._seconds)
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Network:
    """Three namespaces: that of the database, and those of two machines, each with a link of its own to it."""

    def __init__(self, database_port: int, model_port: int, *, seconds: float) -> None:
        """Take the ports of both servers, and how long bytes take to the database and back, in each direction."""
        self._mark = secrets.token_hex(3)
        self._roads: list[Road] = []
        self.machines = f"a-{self._mark}", f"b-{self._mark}"
        self._database = f"db-{self._mark}"
        try:
            for name in (self._database, *self.machines):
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            ip("-n", self._database, "address", "add", "10.77.0.1/32", "dev", "lo")
            for number, name in enumerate(self.machines, 1):
                ip("-n", name, "link", "add", "up0", "type", "veth", "peer", f"m{number}", "netns", self._database)
                for where, link, end in ((name, "up0", 2), (self._database, f"m{number}", 1)):
                    ip("-n", where, "address", "add", f"10.77.{number}.{end}/24", "dev", link)
                    ip("-n", where, "link", "set", link, "up")
                ip("-n", name, "route", "add", "default", "via", f"10.77.{number}.1")
                self._lead(name, "127.0.0.1", model_port)
            self._lead(self._database, "10.77.0.1", database_port, seconds)
        except BaseException:
            self.close()
            raise

    def _lead(self, namespace: str, host: str, port: int, seconds: float = 0.0) -> None:
        self._roads.append(Road(listening(namespace, host, port), port, seconds=seconds))

    def link(self, machine: str, state: str) -> None:
        """Cut the link of a machine (`down`), or mend it (`up`): what is on its way is lost, and no end hears of it."""
        ip("-n", machine, "link", "set", "up0", state)
        if state == "up":  # the routes went with the link
            ip("-n", machine, "route", "replace", "default", "via", f"10.77.{self.machines.index(machine) + 1}.1")

    def close(self) -> None:
        for road in self._roads:
            road.close()
        for name in (self._database, *self.machines):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


class TwoMachines:
    """A fleet whose workers live on two machines."""

    def __init__(self, fleet: Fleet, network: Network, database: str) -> None:
        self.fleet = fleet
        self.network = network
        self._queue = f"postgresql://fleet@10.77.0.1:{fleet.queue.rpartition(':')[2].partition('/')[0]}/{database}"

    def worker(self, machine: str, *more: str, lease: float = LEASE) -> WorkerProcess:
        """Start a worker on a machine, with a state folder of that machine's own."""
        before = ["ip", "netns", "exec", machine]
        return self.fleet.worker("--queue", self._queue, *more, machine=machine, lease=lease, before=before)


@pytest.fixture
def two_machines(program: Program, postgres: PostgresServer, tmp_path: Path) -> Iterator[Callable[..., TwoMachines]]:
    """Make two machines; to do so takes seconds that bytes take to the database."""
    if os.getuid() or shutil.which("ip") is None:
        pytest.skip("only root makes network namespaces, with ip(8)")
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, player), ExitStack() as closing:

        def make(seconds: float = 0.0) -> TwoMachines:
            name = f"two_{secrets.token_hex(4)}"
            network = Network(postgres.port, int(url.rpartition(":")[2].partition("/")[0]), seconds=seconds)
            closing.callback(network.close)
            fleet = Fleet(program, tmp_path, postgres.url(name), url, player)
            closing.callback(fleet.close)
            return TwoMachines(fleet, network, name)

        yield make


def test_a_machine_that_is_cut_off_ends_its_task_and_another_does_it_again(
    two_machines: Callable[..., TwoMachines],
) -> None:
    two = two_machines()
    fleet, (first, second) = two.fleet, two.network.machines
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    fleet.tasks({"held": "bash python3 s.py"})
    fleet.put()
    cut = two.worker(first, "-j", "1", lease=SHORT)
    assert until_running(fleet, "held").worker == cut.name
    other = two.worker(second, "-j", "1")
    until(lambda: len(fleet.status()["workers"]) == 2)

    two.network.link(first, "down")
    assert cut.end() == Exit.INTERNAL, cut.said
    assert "the queue was not told" in cut.said
    assert "what ran here was killed, and others do it" in cut.said
    assert not [words for words in fleet.processes().values() if f"harness-workers/{cut.name}" in words]
    fleet.lose(cut.name)
    assert until_running(fleet, "held", 2).worker == other.name
    assert len(fleet.running()) == 1
    gate.touch()
    until(lambda: fleet.state()["done"] == 1)
    assert [(row.number, row.how, row.worker) for row in fleet.attempts()] == [
        (1, "lost", cut.name),
        (2, "done", other.name),
    ]
    assert other.end(signal.SIGTERM) == 0, other.said
    assert not fleet.log("held", 1).exists()  # it lies on the machine that nobody reaches

    two.network.link(first, "up")
    fleet.tasks({"held": "bash python3 s.py", "more": "write f more"})
    fleet.put()
    again = two.worker(first, "--drain")
    assert again.end() == 0, again.said
    assert [row.worker for row in fleet.attempts("more")] == [again.name]
    assert fleet.log("held", 1).exists(), again.said
    assert list((again.machine / "harness-workers").iterdir()) == []
    done = fleet.wait()
    assert done.code == 0, done
    held, more = fleet.rows()
    assert (held["exit_code"], held["tries"], more["exit_code"]) == (0, 2, 0)
    assert "1 earlier attempt lost with its worker: effect unknown" in str(held["problem"])
    assert (fleet.player.prompts.count("bash python3 s.py"), len(fleet.attempts())) == (2, 3)
    assert fleet.processes() == {}


def test_two_machines_share_tasks_over_a_slow_link_with_few_connections(
    two_machines: Callable[..., TwoMachines],
) -> None:
    two = two_machines(HALF_WAY)
    fleet = two.fleet
    fleet.tasks([f"write f {number}" for number in range(COUNT)])
    fleet.put()
    workers = [two.worker(machine, "--drain", "-j", "2") for machine in two.network.machines]
    most, names = (
        0,
        "SELECT count(*) FROM pg_stat_activity WHERE application_name <> 'look' AND datname = current_database()",
    )
    look = sa.create_engine(f"{fleet.queue.replace('postgresql:', 'postgresql+psycopg:')}?application_name=look")
    while any(worker.is_alive for worker in workers):
        with look.connect() as connection:
            most = max(most, int(connection.execute(sa.text(names)).scalar() or 0))
        time.sleep(0.05)
    look.dispose()
    assert [worker.end() for worker in workers] == [0, 0], [worker.said for worker in workers]
    assert [(row.number, row.how) for row in fleet.attempts()] == [(1, "done")] * COUNT
    assert most <= 2 * MOST_CONNECTIONS
    assert fleet.wait().code == 0


def test_worker_cut_off_during_a_beat_does_not_block_others(postgres: PostgresServer) -> None:
    url = postgres.url(f"beat_{secrets.token_hex(4)}")
    with closing(open_queue(url)) as queue:
        limit = sa.text("SHOW idle_in_transaction_session_timeout")
        assert queue.ledger.within(lambda connection: connection.execute(limit).scalar()) == "10s"
    # The same with a limit that passes sooner.
    cut, other = open_queue(f"{url}?options=-c%20idle_in_transaction_session_timeout=500"), open_queue(url)
    is_held, is_over = threading.Event(), threading.Event()
    cut.join(worker="cut", version="v", jobs=1, lease=0.01)
    other.join(worker="other", version="v", jobs=1, lease=LEASE)

    def beat_that_does_not_end(connection: sa.Connection) -> None:
        connection.execute(sa.text("UPDATE harness_workers SET lease = lease WHERE name = 'cut'"))
        is_held.set()
        is_over.wait()

    beating = threading.Thread(target=cut.ledger.within, args=(beat_that_does_not_end,), daemon=True)
    beating.start()
    assert is_held.wait(SECONDS)
    reaped: list[tuple[str, ...]] = []
    reaping = threading.Thread(target=lambda: reaped.append(other.ledger.reap()), daemon=True)
    reaping.start()
    reaping.join(SECONDS)
    assert reaped == [()]
    # The server ends the transaction, and then the worker is one that was lost.
    until(lambda: "cut" in other.ledger.reap())
    is_over.set()
    beating.join(SECONDS)
    for queue in (cut, other):
        queue.close()

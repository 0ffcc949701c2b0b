"""`harness worker`: runs tasks of a queue until it is asked to end."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.plugins.fleet.queue.open_queue import open_queue
from harness.plugins.fleet.queue.queue import QueueAwayError
from harness.plugins.fleet.queue.version import version_of
from harness.plugins.fleet.queue.worker import BEATS, LEASE_SECONDS, Worker, bring_in
from harness.process.hardening import undumpable
from harness.process.lifeline import Lifeline
from harness.session.config.provider import endpoint_of_any_model
from harness.session.config.settings import settings_from
from harness.session.exits import Exit
from harness.session.own_folders import fix_modes
from harness.session.signals import Stopping
from harness.session.state import State
from harness.system import processors
from harness.terminal.console import complain
from harness.text.amounts import count_of
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.plugins.fleet.queue.dbos_queue import DbosQueue

EVERY_SECONDS = 0.2
"""Seconds between two checks of signals and the lease."""
SOON_SECONDS = 0.25
"""With --drain: seconds from the start, and from the end of a task, to a check whether the queue is empty."""
IDLE_SECONDS = 2.0
"""Seconds between two of these checks at most: while no task ends, each wait is twice the one before."""
FOR_EVER = 1e9


def worker_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Take tasks and run them. Return the exit code: 0 for a requested end, otherwise that of the problem.

    The first signal lets running tasks finish, the second returns them to the queue, and the third kills them. Raises
    UsageError and PolicyError before the first task is taken.
    """
    state = State.of(environment)
    fix_modes(state, complain)
    version = version_of(arguments)
    _check_model(arguments, environment)
    jobs = arguments.jobs or processors()
    lease = arguments.lease or LEASE_SECONDS
    undumpable()  # the environment holds credentials for the queue, the stores and the models
    stopping = Stopping()
    queue = open_queue(arguments.queue, key=arguments.key, is_gone=lambda: stopping.count > 2)
    name = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    tell = _quiet if arguments.quiet else complain
    # Next to the state folder, not inside it, since tasks may not write in the state folder.
    workers = os.path.join(os.path.dirname(state.state), "harness-workers")
    with _own_folder(workers, name, environment) as folder:
        lifeline = Lifeline()
        worker = Worker(queue, arguments, environment, folder=folder, lifeline=lifeline, tell=tell, lease=lease)
        queue.join(worker=name, version=version, jobs=jobs, lease=lease)
        tell(f"worker {name}: {count_of(jobs, 'task')} at once, from {arguments.queue}")
        tell(f"it takes tasks for {version}")
        if queue.is_new:
            tell("there was no queue at this address: it was made now")
        _Work(queue, worker, arguments, stopping, version=version, lease=lease).until_ended()
        if worker.is_lost:
            # The threads of the queue may wait for the database forever.
            sys.stderr.flush()
            os._exit(int(worker.code))
        try:
            if arguments.drain:
                for other, count in queue.waiting_for().items():
                    tell(f"{count_of(count, 'task')} left for workers of another kind: {other}")
            queue.leave()
        except QueueAwayError as error:
            complain(f"the queue was not told of the end: {error}")
        queue.close()
        lifeline.close()
    tell(f"{count_of(worker.done, 'task')} brought to an end")
    return worker.code if worker.code is not Exit.DONE else _exit_code(stopping)


def _check_model(arguments: Namespace, environment: Mapping[str, str]) -> None:
    """Raise UsageError if no model can be reached with the settings, since every task would fail.

    The model need not be set, since a task may name its own.
    """
    endpoint_of_any_model(settings_from(arguments, environment, os.path.realpath(os.curdir)), environment)


class _Work:
    """A running worker: heartbeats on one thread, tasks on the queue's threads, and signals on the main thread."""

    def __init__(
        self, queue: DbosQueue, worker: Worker, arguments: Namespace, stopping: Stopping, *, version: str, lease: float
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._arguments = arguments
        self._stopping = stopping
        self._version = version
        self._lease = lease
        self._end_event = Event()
        self._is_idle = False

    def until_ended(self) -> None:
        """Run tasks until the worker ends: after a signal, after a problem, or by the flags --drain and --for."""
        Thread(target=self._beat, daemon=True).start()
        self._queue.take(self._worker.do)
        if self._arguments.drain:
            Thread(target=self._look, daemon=True).start()
        ends_at = time.monotonic() + (self._arguments.up_for or FOR_EVER)
        last = None
        while not self._worker.is_lost:
            self._worker.check()
            if self._stopping.count and not self._worker.is_closing:
                self._worker.close("ending: nothing more is taken; once more gives back what runs")
            elif self._is_idle and not self._worker.running:
                self._worker.close("nothing is left to do")
            elif time.monotonic() > ends_at:
                self._worker.close("its time is up: nothing more is taken")
            if self._stopping.count > 1:
                self._worker.end(kill=self._stopping.count > 2)
            if self._worker.is_closing and last is None:
                last = Thread(target=self._queue.stop_taking, args=(FOR_EVER,), daemon=True)
                last.start()
            if last is not None and not last.is_alive():
                break
            time.sleep(EVERY_SECONDS)
        self._end_event.set()

    def _beat(self) -> None:
        while not self._end_event.is_set() and not self._worker.is_lost:
            self._worker.beat()
            with suppress(QueueAwayError):  # the next heartbeat reports the outage
                self._queue.give_back_lost()
            self._end_event.wait(self._lease / BEATS)

    def _look(self) -> None:
        pause, done = SOON_SECONDS, self._worker.done
        while not self._end_event.wait(pause):
            self._is_idle = self._queue.is_idle(self._version)
            pause = min(2 * pause, IDLE_SECONDS) if done == self._worker.done else SOON_SECONDS
            done = self._worker.done


@contextmanager
def _own_folder(workers: str, name: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Make the folder of a worker, upload the logs of dead workers on this machine, and remove the folder at the end.

    Each worker locks its folder, so that others can detect whether it is alive. Raises UsageError.
    """
    folder = os.path.join(workers, name)
    with ExitStack() as locks:
        try:
            os.makedirs(workers, mode=0o700, exist_ok=True)
            with _locked(workers, waits=True):  # so that others do not see the new folder before it is locked
                os.mkdir(folder, 0o700)
                locks.enter_context(_locked(folder, waits=True))
                other_folders = [
                    path for path in map(partial(os.path.join, workers), sorted(os.listdir(workers))) if path != folder
                ]
                dead = [path for path in other_folders if locks.enter_context(_locked(path))]
        except OSError as error:
            raise UsageError(f"{folder} cannot be made: {error}") from None
        for path in dead:
            if problem := bring_in(path, environment):
                complain(f"what a dead worker left stays: {visible_line(problem, 500)}")
        try:
            yield folder
        finally:
            if problem := bring_in(folder, environment):
                complain(f"what the worker left stays: {visible_line(problem, 500)}")


@contextmanager
def _locked(folder: str, *, waits: bool = False) -> Iterator[bool]:
    """Lock a folder during the block. Yield whether it is locked: false if it is busy and `waits` is not set.

    Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _exit_code(stopping: Stopping) -> Exit:
    """Return the exit code after signals. It is 0 after only one signal, since all running tasks were finished."""
    return (stopping.exit_code or Exit.DONE) if stopping.count > 1 else Exit.DONE


def _quiet(line: str) -> None:
    pass

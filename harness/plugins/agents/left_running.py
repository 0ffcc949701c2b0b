"""The processes that a confined command leaves running. They end with it: later, protected places are not compared."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection

from harness.process import procfs
from harness.process.hardening import adopt_orphans
from harness.process.procfs import Process
from harness.process.survivors import QUIET_LOOKS, send
from harness.system import HAS_PROC
from harness.text.amounts import count_of
from harness.text.visible import visible_names

_SETTLE_SECONDS, _TERM_SECONDS, _KILL_SECONDS = 0.15, 0.25, 2.0
"""Seconds for the processes to exit by themselves, those after SIGTERM, and those of repeated SIGKILL (command.Pace)."""
_STEP_SECONDS = 0.01
MOST_NAMED = 5
"""Maximum number of processes named to the agent."""


class LeftRunning:
    """The processes below this one that did not exist before its command. A system without `/proc` does not show them."""

    def __init__(self) -> None:
        """Note the processes before the command, and become the parent of the command's orphans."""
        adopt_orphans()
        self._before = {(process.pid, process.started) for process in _descendants()}

    def end(self, kept_numbers: Collection[int]) -> tuple[int, tuple[str, ...]]:
        """End the processes but for the numbers `kept_numbers`, first by SIGTERM. The first process of the command has ended.

        Return their number, and sentences for the agent.
        """
        if not HAS_PROC or not self._running(kept_numbers, 0.0):
            return 0, ()
        names: dict[tuple[int, int], str] = {}
        running = self._running(kept_numbers, _SETTLE_SECONDS)
        for number, seconds in (
            (signal.SIGTERM, _TERM_SECONDS),
            *((signal.SIGKILL, _STEP_SECONDS) for _ in range(int(_KILL_SECONDS / _STEP_SECONDS))),
        ):
            if not running:
                break
            names |= {(process.pid, process.started): process.name for process in running}
            send(running, number, signal.SIGCONT)
            running = self._running(kept_numbers, seconds)
        alive = {(process.pid, process.started) for process in running}
        names_of_ended = [name for process, name in names.items() if process not in alive]
        return len(names_of_ended), tuple(_notes(names_of_ended, [process.name for process in running]))

    def _running(self, kept_numbers: Collection[int], seconds: float) -> list[Process]:
        """Return the processes that still run after at most `seconds`. Reap the ended orphans."""
        deadline = time.monotonic() + seconds
        quiet = 0
        while True:
            has_reaped = _reap()
            running = [
                process
                for process in _descendants()
                if not process.has_ended
                and process.pid not in kept_numbers
                and (process.pid, process.started) not in self._before
            ]
            quiet = 0 if running or has_reaped else quiet + 1
            if quiet == QUIET_LOOKS or (running and time.monotonic() >= deadline):
                return running
            if running:
                time.sleep(0.005)


def _descendants() -> list[Process]:
    this = procfs.process(os.getpid())
    return procfs.family([this])[1:] if this is not None else []


def _reap() -> bool:
    """Reap the ended children of this process. Return whether there was one."""
    has_reaped = False
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            has_reaped = True
    except ChildProcessError:
        pass
    return has_reaped


def _notes(names_of_ended: list[str], names_of_alive: list[str]) -> list[str]:
    notes = []
    if names_of_ended:
        verb = "was still running and has" if len(names_of_ended) == 1 else "were still running and have"
        notes.append(
            f"[{count_of(len(names_of_ended), 'background process', 'background processes')} {verb} been ended: "
            f"{visible_names(names_of_ended, MOST_NAMED)}. "
            "To run a server, use your own tool's background option instead of `&`]"
        )
    if names_of_alive:
        notes.append(
            f"[{len(names_of_alive)} of its processes could not be killed, and may still be running: "
            f"{visible_names(names_of_alive, MOST_NAMED)}]"
        )
    return notes

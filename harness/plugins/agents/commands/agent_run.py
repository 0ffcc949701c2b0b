"""One run of an installed agent, in a home of its own, against a played model."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from harness.plugins.agents.commands.agent_starts import AgentStart, PlayedPlace
from harness.record import Record


class AgentRun(Record):
    """Exit code and output of one agent run."""

    code: int | None
    """None where it had to be ended."""
    stdout: str
    stderr: str


def run_agent(
    start: AgentStart,
    place: PlayedPlace,
    prompt: str,
    *,
    program: str,
    seconds: float,
    more: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> AgentRun:
    """Start the agent's `program` with the prompt and wait for its end; the processes that it started end with it.

    `more` are arguments behind the prompt; `environment` is all that it has beside what its start gives. Raises
    OSError if the program does not exist.
    """
    process = subprocess.Popen(
        [program, *start.arguments(place), prompt, *more],
        cwd=place.workspace,
        env={**(environment or {}), "HOME": place.home, **start.environment(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    code: int | None
    try:
        stdout, stderr = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        _end(process.pid)
        stdout, stderr = process.communicate()
        code = None
    _end(process.pid)
    return AgentRun(code=code, stdout=stdout, stderr=stderr)


def _end(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nothing was left

"""One run of an installed agent against a played model, in a separate home folder."""

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
    """Exit code; `None` if the agent was killed after the timeout."""
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
    """Start the agent's `program` with the prompt, wait for it at most `seconds`, and kill its process group.

    `more` are arguments after the prompt. `environment` is the whole environment, except for HOME and the variables of
    `start`. Raises OSError if the program does not exist.
    """
    for path, content in start.files(place).items():
        file_path = os.path.join(place.home, path)
        os.makedirs(os.path.dirname(file_path), exist_ok=True)
        with open(file_path, "w", encoding="utf-8") as file:
            file.write(content)
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
        pass  # no process is left

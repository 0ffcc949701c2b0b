"""One run of an installed agent, in a home of its own, against a played model."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping

from harness.cli.hook.agent_starts import AgentStart, Place
from harness.record import Record


class AgentRun(Record):
    """What came of it."""

    code: int | None
    """None where it had to be ended."""
    stdout: str
    stderr: str


def run_agent(
    start: AgentStart,
    place: Place,
    prompt: str,
    *,
    program: str,
    seconds: float,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> AgentRun:
    """Start the agent's `program` with the prompt and wait for its end; what it started ends with it.

    `arguments` come after its own; `environment` is all that it has beside what its start gives.
    """
    for path, text in start.files(place).items():
        file = os.path.join(place.home, path)
        if not os.path.exists(file):
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w", encoding="utf-8") as opened:
                opened.write(text)
    given = {"HOME": place.home, **(environment or {}), **start.environment(place)}
    process = subprocess.Popen(
        [program, *start.arguments, *arguments, *start.prompt_option, prompt],
        cwd=place.workspace,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        stdout, stderr = process.communicate(timeout=seconds)
        return AgentRun(code=process.returncode, stdout=stdout, stderr=stderr)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return AgentRun(code=None, stdout=stdout, stderr=stderr)

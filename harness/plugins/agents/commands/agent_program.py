"""The programs of agents on this machine, and the command line of ours in their settings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

from harness.plugins.agents.commands.each_call import main_module, own_command
from harness.plugins.agents.guarded_agent import GuardedAgent
from harness.session.asked_call import quoted

VERSION_SECONDS = 20.0
"""Maximum seconds that an agent may take to print its version."""
DOES_NOT_START = "does not start"
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:-[\w.]+)?")


def isolated_command() -> str:
    """Return the command line of this program for settings: isolated Python if that can import harness."""
    words = [sys.executable, "-I", "-S", main_module()]
    try:
        process = subprocess.run([*words, "--version"], capture_output=True, timeout=VERSION_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return own_command(quoted)
    return " ".join(map(quoted, words)) if process.returncode == 0 else own_command(quoted)


def agent_program(agent: GuardedAgent, environment: Mapping[str, str]) -> str | None:
    """Return the path of the agent's program; `None` if it is not in PATH."""
    return shutil.which(agent.program, path=environment.get("PATH", os.defpath))


def version_of(program: str, environment: Mapping[str, str]) -> str:
    """Return the version that a program prints for `--version`: `?` if it prints none, DOES_NOT_START if it fails."""
    try:
        process = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environment),
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "?"
    except OSError:
        return DOES_NOT_START
    match = _VERSION.search(process.stdout.decode(errors="replace"))
    return match[0] if match else DOES_NOT_START if process.returncode else "?"


def is_in_path(agent: GuardedAgent, environment: Mapping[str, str]) -> bool:
    """Return whether PATH has a file of the agent's name, which may be a broken link or not executable."""
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    return any(os.path.lexists(os.path.join(folder, agent.program)) for folder in folders if folder)

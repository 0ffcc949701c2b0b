"""Install the agents that we guard, from npm, in the versions that were tried last: `install_agents.py FOLDER`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.plugins.agents.commands.agent_starts import AGENT_STARTS


def main(folder: str) -> int:
    """Install into `folder`; the tests in this folder find them there by HARNESS_AGENTS."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    packages = [start.package for start in AGENT_STARTS.values()]
    command = ["npm", "install", "--prefix", folder, "--no-fund", "--no-audit", "--loglevel", "error", *packages]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

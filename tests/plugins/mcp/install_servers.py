"""Install MCP servers of others, from npm and PyPI, in the versions that were tried last: `install_servers.py FOLDER`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NPM = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/conformance@0.1.16",
)
"""The SDK for the examples that come with it, the conformance suite for test_conformance.py (node 22)."""
PYPI = ("mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")


def main(folder: str) -> int:
    """Install into `folder`; test_servers_of_others.py finds them there by HARNESS_PEERS."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    venv = Path(folder, "mcp-servers")
    commands = (
        [
            "npm",
            "install",
            "--prefix",
            folder,
            "--no-fund",
            "--no-audit",
            "--ignore-scripts",
            "--loglevel",
            "error",
            *NPM,
        ],
        [sys.executable, "-m", "venv", str(venv)],
        [str(venv / "bin" / "pip"), "install", "--quiet", *PYPI],
    )
    return next((code for one in commands if (code := subprocess.run(one, check=False).returncode)), 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

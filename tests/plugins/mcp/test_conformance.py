"""The client scenarios of the MCP conformance suite, played by harness (see conformance_client.py).

HARNESS_PEERS names the folder into which install_servers.py put the suite, which needs node 22. Otherwise they are skipped.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = os.environ.get("HARNESS_PEERS", "")
SUITE = os.path.join(FOLDER, "node_modules", ".bin", "conformance")
CLIENT = Path(__file__).with_name("conformance_client.py")
SECONDS = 300
NODE = 22
"""Oldest version of node that runs the suite."""
SCENARIOS = """
    initialize tools_call elicitation-sep1034-client-defaults sse-retry
    auth/metadata-default auth/metadata-var1 auth/metadata-var2 auth/metadata-var3
    auth/basic-cimd auth/pre-registration auth/resource-mismatch
    auth/scope-from-www-authenticate auth/scope-from-scopes-supported auth/scope-omitted-when-undefined
    auth/scope-step-up auth/scope-retry-limit auth/offline-access-scope auth/offline-access-not-supported
    auth/token-endpoint-auth-basic auth/token-endpoint-auth-post auth/token-endpoint-auth-none
    auth/2025-03-26-oauth-endpoint-fallback
    auth/client-credentials-jwt auth/client-credentials-basic
""".split()
REFUSED = ("auth/2025-03-26-oauth-metadata-backcompat", "auth/cross-app-access-complete-flow")
"""Scenarios that fail, for the reasons in docs/decisions/secrets.md."""


def node_version() -> int:
    """Return the main version of node. 0 if there is none."""
    node = shutil.which("node")
    if node is None:
        return 0
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(version.lstrip("v").partition(".")[0] or 0)


pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_PEERS names no folder: no third-party peer is tried"),
]


@pytest.fixture(scope="module")
def suite() -> str:
    """The suite's program."""
    if not os.path.exists(SUITE):
        pytest.skip("the suite is not in HARNESS_PEERS: install_servers.py puts it there")
    if node_version() < NODE:
        pytest.skip(f"the suite needs node {NODE}")
    return SUITE


def played(suite: str, scenario: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Let the suite play a scenario."""
    words = [
        suite,
        "client",
        "--command",
        shlex.join([sys.executable, str(CLIENT)]),
        "--scenario",
        scenario,
        "--timeout",
        "240000",
    ]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_passes(suite: str, scenario: str, tmp_path: Path) -> None:
    done = played(suite, scenario, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("scenario", REFUSED)
def test_scenario_is_refused_as_documented(suite: str, scenario: str, tmp_path: Path) -> None:
    assert played(suite, scenario, tmp_path).returncode == 1


def test_each_scenario_of_the_suite_is_named_here(suite: str) -> None:
    listed = subprocess.run([suite, "list", "--client"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}
    assert names == {*SCENARIOS, *REFUSED}

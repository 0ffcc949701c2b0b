"""harness as the client of the MCP conformance suite (npm `@modelcontextprotocol/conformance`, node 22).

    conformance client --command "python tests/plugins/mcp/conformance_client.py" --scenario tools_call
    conformance client --command "python tests/plugins/mcp/conformance_client.py" --suite auth

The suite appends the URL of its server. Here the commands of a user follow, with settings of their own: where a login is
wanted, `harness mcp login` with a browser that says yes at once, and then `harness run` with a scripted model, which calls
the first tool. A second login follows where the call lacks rights.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

from harness.models.loopback import ScriptServer
from harness.models.scripted import Player, Reply, call, replies, say

ROOT = Path(__file__).resolve().parents[3]
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
HARNESS = [sys.executable, "-c", "import sys; from harness.__main__ import program; sys.exit(program())"]
WANTED = "harness mcp login suite"
ARGUMENTS: dict[str, dict[str, int]] = {"add_numbers": {"a": 5, "b": 3}}
POLICY = 'version = 1\n[tools]\n"mcp__suite__*" = "auto"\n'


class Client:
    """A user with a configuration of their own, and the suite's server in it."""

    def __init__(self, place: Path, url: str) -> None:
        context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
        is_document = os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd"
        self.table: dict[str, object] = {"url": url, "start_seconds": 10}
        if client := CLIENT_DOCUMENT if is_document else context.get("client_id"):
            self.table["client"] = client
        if "client_secret" in context:
            self.table["client_secret"] = "SUITE_SECRET"
        if "private_key_pem" in context:
            key = place / "client.pem"
            key.write_text(context["private_key_pem"])
            self.table["client_key"] = str(key)
        if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/client-credentials"):
            self.table["issuer"] = issuer_of(url)
        self.config = place / "config" / "harness" / "config.toml"
        self.config.parent.mkdir(parents=True)
        self.policy = place / "policy.toml"
        self.policy.write_text(POLICY)
        self.folder = place / "work"
        self.folder.mkdir()
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(place),
            "XDG_CONFIG_HOME": str(place / "config"),
            "XDG_STATE_HOME": str(place / "state"),
            "OPENAI_API_KEY": "none",
            "SUITE_SECRET": str(context.get("client_secret", "")),
            "BROWSER": f"{sys.executable} {__file__} --browser %s",
        }

    def run(self, *words: str) -> str:
        """Run harness, and return its output."""
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in self.table.items()]
        answers = json.dumps([sys.executable, __file__, "--approve"])
        self.config.write_text(f"[approver]\ncommand = {answers}\n[mcp.servers.suite]\n{''.join(lines)}")
        done = subprocess.run(
            [*HARNESS, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"$ harness {' '.join(words)}\n{done.stdout}{done.stderr}[{done.returncode}]", flush=True)
        return done.stdout + done.stderr

    def check(self) -> list[str]:
        """List the server's tools, and log in first if it wants that. Return their names."""
        text = self.run("mcp", "check", "suite")
        if WANTED in text:
            self.run("mcp", "login", "suite")
            text = self.run("mcp", "check", "suite")
        if digest := re.search(r'pinned = "(\w+)"', text):
            self.table["pinned"] = digest.group(1)
        return re.findall(r"^  new: (.+), sha256", text, re.MULTILINE)

    def call(self, tool: str) -> str:
        """Let a scripted model call a tool."""
        calls = Reply(calls=(call(f"mcp__suite__{tool}", **ARGUMENTS.get(tool, {})),))
        with ScriptServer(Player(replies(calls, say("Done.")))) as model:
            url = ("--base-url", model.base_url, "--model", "scripted")
            return self.run("run", "go", "--ask", *url, "--policy", str(self.policy))


def issuer_of(url: str) -> str:
    """Return the authorization server of the suite, which users know of their client."""
    parts = urlsplit(url)
    with urlopen(
        f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}", timeout=20
    ) as answer:
        return str(json.load(answer)["authorization_servers"][0])


def main(url: str) -> int:
    """Be the client of one scenario."""
    with tempfile.TemporaryDirectory() as name:
        client = Client(Path(name), url)
        tools = client.check()
        if tools and WANTED in client.call(tools[0]):
            client.run("mcp", "login", "suite")
            client.call(tools[0])
    return 0


def approve() -> int:
    """Say yes to a question, by the protocol of approvers."""
    question = json.loads(sys.stdin.readline())
    print(json.dumps({"id": question["id"], "sha256": question["sha256"], "answer": "yes", "by": "suite"}))
    return 0


def browse(address: str) -> int:
    """Open a page of the suite, which sends the browser on to the answer at once."""
    with urlopen(address, timeout=20) as page:
        return 0 if page.status == 200 else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--browser", address]:
            sys.exit(browse(address))
        case ["--approve"]:
            sys.exit(approve())
        case [address]:
            sys.exit(main(address))
        case _:
            sys.exit(__doc__)

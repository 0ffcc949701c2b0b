"""The parts of Linux that macOS lacks: no module names them but those that replace them, and what replaces them works.

No Mac was at hand. `darwin` (tests/support/darwin) takes from a Python on Linux what macOS lacks. The program must do without.
"""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from places import ROOT

from harness.models.loopback import ScriptServer
from harness.models.scripted import Player, Reply, call, replies, say
from harness.process.procfs import process

SUPPORT = f"{ROOT}/tests/support/darwin"
SECONDS = 120
LINUX_ONLY = ("harness/sandbox/", "harness/system.py", "harness/process/survivors.py", "harness/process/procfs.py")
"""Modules that run on Linux alone, or that ask what is there. The last two read `/proc`."""
ASKS = {
    "harness/session/approver/outside_socket.py": "SO_PEERCRED",
    "harness/plugins/agents/resident_client.py": "SO_PEERCRED",
    "harness/plugins/agents/commands/resident.py": "SO_PEERCRED pidfd_open",
    "harness/plugins/agents/commands/event_process.py": "SO_PEERCRED MSG_CMSG_CLOEXEC P_ALL pidfd_open waitid",
    "harness/process/hardening.py": "prlimit",
    "harness/process/command.py": "F_SETPIPE_SZ",
    "harness/files/atomic.py": "removexattr listxattr setxattr getxattr",
}
"""Modules that name such a part and do without it. A resident is never found without `/proc`."""


def _missing_names() -> Mapping[str, frozenset[str]]:
    tree = ast.parse(Path(SUPPORT, "sitecustomize.py").read_text())
    (table,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MISSING"
    )
    return {module: frozenset(names.split()) for module, names in ast.literal_eval(table).items()}


def _named() -> Iterator[tuple[str, int, str]]:
    missing = _missing_names()
    for path in sorted(Path(ROOT, "harness").rglob("*.py")):
        module = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in missing.get(ast.unparse(node.value), ()):
                yield module, node.lineno, node.attr


def test_no_module_needs_what_macos_lacks() -> None:
    found = [
        f"{module}:{line} {name}"
        for module, line, name in _named()
        if not module.startswith(LINUX_ONLY) and name not in ASKS.get(module, "").split()
    ]
    assert found == [], "use harness/system.py"


PROGRAM = f"import sys; sys.path.insert(0, {ROOT!r}); from harness.__main__ import program; program()"
"""Code that runs the program of this checkout."""


class Mac:
    """A Python as on macOS, with a home folder and a workspace."""

    def __init__(self, folder: Path) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PYTHONPATH": SUPPORT,
            "HARNESS_TESTS_ON": "darwin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "OPENAI_API_KEY": "none",
        }

    def python(self, code: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run code to its end."""
        return subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {ROOT!r})\n{code}", *words],
            env=self.environment,
            cwd=self.workspace,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def harness(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return self.python(PROGRAM, *words, stdin=stdin)


def _runs(pid: int) -> bool:
    """Return whether a process has not ended. It may wait for a parent that reaps it."""
    found = process(pid)
    return found is not None and not found.has_ended


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


IMPORTS = """
import importlib, pkgutil, harness
for module in pkgutil.walk_packages(harness.__path__, "harness."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all")
"""
PARTS = """
import os, pty, select, signal, threading, time
from harness import system
print(system.HAS_PROC, system.processors() > 0)
file = system.memory_file("part")
os.write(file, b"abc")
system.seal(file)
print(os.read(file, 9), os.get_inheritable(file))
system.sync_data(file)
for code in (3, None):
    pid = os.fork()
    if pid == 0:
        os._exit(3) if code else signal.pause()
    exit = system.exit_descriptor(pid)
    if code is None:
        print(system.ended_child(pid))
        os.kill(pid, signal.SIGTERM)
    print(bool(select.select([exit], [], [], 60)[0]), system.ended_child(pid, wait=True), system.ended_child(pid))
    os.waitpid(pid, 0)
    try:
        system.ended_child(pid)
    except ChildProcessError:
        print("reaped")
bell = system.Bell()
bell.ring(), bell.ring()
ready = lambda: bool(select.select([bell.descriptor], [], [], 0)[0])
print(ready(), bell.quiet(), ready())
near, far = pty.openpty()
poll = system.poll_for(near)
poll.register(near, select.POLLIN)
print(type(poll).__name__, poll.poll(0))
os.write(far, b"x\\n")
print([events for _, events in poll.poll(60000)] == [select.POLLIN])
"""
PARTS_SAY = """\
False True
b'abc' False
True (True, 3) (True, 3)
reaped
None
True (False, 15) (False, 15)
reaped
True None False
TerminalPoll []
True
"""


def test_every_module_is_imported(mac: Mac) -> None:
    done = mac.python(IMPORTS)
    assert (done.stdout, done.stderr) == ("all\n", "")


def test_the_parts_work_without_those_of_linux(mac: Mac) -> None:
    done = mac.python(PARTS)
    assert (done.stdout, done.stderr) == (PARTS_SAY, "")


POLICY = """
version = 1
name = "mac"
[tools]
read_file = "auto"
write_file = "auto"
bash = "walls"
default = "confirm"
[[rule]]
id = "script"
decision = "auto"
argv = ["./script.sh"]
"""


def test_a_run_without_walls(mac: Mac, tmp_path: Path) -> None:
    """Readers run, other commands ask, a written rule holds; what a command leaves is ended, and undo takes back."""
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    (mac.workspace / "script.sh").write_text("#!/bin/sh\nsleep 1000 & echo $! > left; echo ran")
    (mac.workspace / "script.sh").chmod(0o755)
    script = replies(
        Reply(calls=(call("write_file", path="new.txt", content="hello"), call("bash", command="cat new.txt"))),
        Reply(calls=(call("bash", command="./script.sh"), call("bash", command="rm new.txt"))),
        say("Done."),
    )
    with ScriptServer(Player(script)) as server:
        flags = ("--base-url", server.base_url, "--model", "m", "--policy", str(policy), "--output", "json")
        done = mac.harness("run", "work", *flags)
    assert done.returncode == 7, done.stderr
    assert (mac.workspace / "new.txt").read_text() == "hello"
    assert "harness has no walls on macOS" in done.stderr
    assert not _runs(int((mac.workspace / "left").read_text()))
    shown = mac.harness("audit", "show", "--all")
    assert "confirm  rm new.txt" in shown.stdout
    assert mac.harness("audit", "verify", "--all").returncode == 0
    assert mac.harness("sessions", "list").returncode == 0
    undone = mac.harness("undo")
    assert (undone.returncode, (mac.workspace / "left").exists()) == (0, False), undone.stdout + undone.stderr


def _event(mac: Mac, name: str, use: str, command: str, **more: object) -> str:
    fields = {"session_id": "S", "cwd": str(mac.workspace), "hook_event_name": name, "permission_mode": "default"}
    tool = {"tool_name": "Bash", "tool_use_id": use, "tool_input": {"command": command}}
    return json.dumps({**fields, **tool, **more})


def test_a_hook_decides_and_the_agent_runs_the_call(mac: Mac) -> None:
    """No command gets walls or a ticket here: a reader runs, a person at the agent's terminal is asked about others."""
    mac.environment |= {"CLAUDE_PROJECT_DIR": str(mac.workspace), "CLAUDE_CODE_SESSION_ATTENDED": "1"}
    (mac.home / ".claude").mkdir()
    installed = mac.harness("hook", "install", "claude", "--yes")
    assert installed.returncode == 0, installed
    assert "the hook is installed" in installed.stdout + installed.stderr
    hooks = json.loads((mac.home / ".claude" / "settings.json").read_text())["hooks"]
    assert {"PreToolUse", "PostToolUse"} <= set(hooks)
    status = mac.harness("hook", "status", "claude")
    assert "none can run here" in status.stdout, status  # the resident
    for use, command, decision in (("1", "cat a.txt", "allow"), ("2", "touch new", "ask"), ("3", "rm -r /", "deny")):
        done = mac.harness("hook", "claude", stdin=_event(mac, "PreToolUse", use, command))
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert (answer["permissionDecision"], "updatedInput" in answer) == (decision, False), done
        if decision != "deny":
            after = _event(mac, "PostToolUse", use, command, tool_response={"stdout": "", "interrupted": False})
            done = mac.harness("hook", "claude", stdin=after)
            assert (done.returncode, done.stdout) == (0, ""), done
    assert mac.harness("hook", "claude", stdin=_event(mac, "SessionEnd", "4", "", reason="other")).returncode == 0
    shown = mac.harness("audit", "show", "--all").stdout
    assert "asked: yes by client (claude)" in shown
    assert "walls: workspace, but none: harness has no walls on macOS" in shown
    assert mac.harness("audit", "verify", "--all").returncode == 0
    done = mac.harness("exec", "--ticket", "none", "--", "ls")
    assert (done.returncode, done.stdout, "invalid ticket" in done.stderr) == (126, "", True), done


SERVER_POLICY = 'version = 1\nname = "mac"\n[tools]\nread_file = "auto"\ndefault = "confirm"\n"mcp__srv__*" = "auto"\n'


def test_a_server_is_started_pinned_and_called(mac: Mac, tmp_path: Path) -> None:
    echo = {"name": "echo", "description": "Does it.", "inputSchema": {"type": "object"}}
    script, policy, folder = tmp_path / "script.json", tmp_path / "policy.toml", mac.home / ".config" / "harness"
    script.write_text(json.dumps({"seen": str(tmp_path / "seen"), "tools": [[echo]]}))
    policy.write_text(SERVER_POLICY)
    folder.mkdir(parents=True)
    words = json.dumps([sys.executable, f"{ROOT}/tests/support/scripted_server.py", str(script)])
    (folder / "config.toml").write_text(f"[mcp.servers.srv]\ncommand = {words}\n")
    checked = mac.harness("mcp", "check")
    assert (checked.returncode, "held by none" in checked.stdout) == (0, True), checked
    (digest,) = re.findall(r"pinned = (\S+)", checked.stdout)
    with (folder / "config.toml").open("a") as file:
        file.write(f"pinned = {digest}\n")
    replied = replies(Reply(calls=(call("mcp__srv__echo", word="hello"),)), say("Done."))
    with ScriptServer(Player(replied)) as server:
        flags = ("--base-url", server.base_url, "--model", "m", "--policy", str(policy))
        done = mac.harness("run", "work", *flags)
    assert done.returncode == 0, done.stderr
    called = [line for line in (tmp_path / "seen").read_text().splitlines() if '"tools/call"' in line]
    assert [json.loads(line)["params"]["arguments"] for line in called] == [{"word": "hello"}]


def test_walls_that_a_policy_requires_are_refused(mac: Mac) -> None:
    done = mac.harness("run", "work", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--policy", "ci")
    assert (done.returncode, "harness has no walls on macOS" in done.stderr) == (2, True), done.stderr


def test_the_prompt_says_it_first(mac: Mac) -> None:
    near, far = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--model", "m", "--base-url", "http://127.0.0.1:9/v1"],
        env=mac.environment,
        cwd=mac.workspace,
        stdin=far,
        stdout=far,
        stderr=far,
        start_new_session=True,
    )
    os.close(far)
    seen, deadline, asked = b"", time.monotonic() + SECONDS, False
    try:
        while (time.monotonic() < deadline and select.select([near], [], [], 1.0)[0]) or program.poll() is None:
            if select.select([near], [], [], 0)[0]:
                try:
                    seen += os.read(near, 65_536)
                except OSError:
                    break
            if b"NOT CONFINED" in seen and not asked:
                asked = True
                os.write(near, b"\x04")
            if time.monotonic() > deadline:
                break
        assert program.wait(SECONDS) == 0
    finally:
        program.kill()
        program.wait()
        os.close(near)
    assert b"walls: NONE, a command can do all that you can" in seen


KILLED = """
import os, signal, sys, threading
from harness.process.capture import Live
from harness.process.command import run_group
from harness.process.start import Launch
class Kept:
    def add(self, block):
        print(block.decode().strip(), flush=True)
launch = Launch(argv=("bash", "-c", "--", sys.argv[1]), executable="/bin/bash", cwd="/", environment={"PATH": "/bin:/usr/bin"})
print(run_group(launch, seconds=float(sys.argv[2]), output=Kept()).ending, flush=True)
"""


def test_a_command_is_ended_at_its_time(mac: Mac) -> None:
    done = mac.python(KILLED, "echo $$; sleep 1000", "1")
    leader, ending = done.stdout.splitlines()
    assert (ending, done.stderr) == ("CommandEnding.TIMED_OUT", "")
    assert not _runs(int(leader))


def test_a_killed_harness_leaves_no_command(mac: Mac) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {ROOT!r})\n{KILLED}", "echo $$; sleep 1000", "1000"],
        env=mac.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    leader = int(program.stdout.readline())
    program.kill()
    program.wait()
    program.stdout.close()
    deadline = time.monotonic() + SECONDS
    while _runs(leader) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(leader)


def test_windows_gets_one_sentence() -> None:
    code = (
        f"import os, sys; sys.path.insert(0, {ROOT!r}); os.name = 'nt'; from harness.__main__ import program; program()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "harness: Windows is not supported; run harness in WSL2 (https://learn.microsoft.com/windows/wsl)\n"
    )

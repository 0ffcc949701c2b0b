"""The approver on the phone of examples/, with a loopback server that speaks the documented endpoints of ntfy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ntfy_server import Message, NtfyServer, press
from places import ROOT
from process_scene import wait_until
from program import Program
from repl_scene import CONFIG, write_config
from rows import all_rows
from run_scene import DONE, bash, flags_of

from harness.models.scripted import replies

ASKS = 'version = 1\n[tools]\nbash = "confirm"\n'
ACCESS = {"own": ("read write", ""), "answer": ("write", "-answers")}


def forged(message: Message, server: NtfyServer) -> None:
    """Answer as somebody who knows the topics' names, and has not read the question."""
    for text in ("yes", "yes ", "yes guess", json.dumps(message["message"])):
        server.publish({"topic": f"{message['topic']}-answers", "message": text})
    press(message, "No")


PHONE = {
    "Yes": lambda message, _: press(message, "Yes"),
    "No": lambda message, _: press(message, "No"),
    "Yes, destroy": lambda message, _: press(message, "Yes, destroy"),
    "forged": forged,
}


def listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(path)) == 0


@contextmanager
def approver(program: Program, path: Path, url: str, token: str = "own") -> Iterator[None]:
    """Start the example."""
    names = {"NTFY_URL": url, "NTFY_TOPIC": "harness-1", "NTFY_TOKEN": token, "NTFY_ANSWER_TOKEN": "answer"}
    script = os.path.join(ROOT, "examples", "ntfy_approver.py")
    environment = {**program.environment, **names, "LOGNAME": "ann"}
    with subprocess.Popen([sys.executable, "-W", "error", script, str(path)], env=environment) as process:
        try:
            assert wait_until(lambda: listens(path), 60)
            yield
        finally:
            process.kill()


def run(program: Program, command: str) -> None:
    """Run a model that wants to run a command, and ask outside."""
    url = program.serve(replies(bash(command), DONE))
    program.run("run", "go", "--ask", *flags_of(program, url, ASKS))


def is_made(program: Program) -> bool:
    return (program.workspace / "made").exists()


@all_rows(
    ("command", "pressed", "made"),
    [
        ("touch made", "Yes", True),
        ("touch made", "No", False),
        ("touch made", "forged", False),
        ("rm -rf gone && touch made", "Yes, destroy", True),
    ],
    fresh=True,
)
def test_the_phone_answers(program: Program, command: str, pressed: str, made: bool) -> None:
    path = program.home / "approver"
    write_config(program, f"{CONFIG}[approver]\nsocket = {json.dumps(str(path))}\n")
    with NtfyServer(ACCESS, asked=PHONE[pressed]) as server, approver(program, path, server.url):
        run(program, command)
        assert server.refused == []
        (question,) = server.topics["harness-1"]
        assert json.loads(question["message"])[:2] == ["bash", {"command": command}]
    assert is_made(program) is made
    assert [one.get("who") for one in program.records() if one["kind"] == "approval_answered"] == ["ann"]


def test_call_too_long_for_a_phone_is_refused_unasked(program: Program) -> None:
    path = program.home / "approver"
    write_config(program, f"{CONFIG}[approver]\nsocket = {json.dumps(str(path))}\n")
    with NtfyServer(ACCESS, asked=PHONE["Yes"]) as server, approver(program, path, server.url):
        run(program, f"touch made; echo {'x' * 4_000}")
        assert server.topics == {}
    assert not is_made(program)


def test_server_that_refuses_the_token_is_a_no(program: Program) -> None:
    path = program.home / "approver"
    write_config(program, f"{CONFIG}[approver]\nsocket = {json.dumps(str(path))}\n")
    with NtfyServer(ACCESS, asked=PHONE["Yes"]) as server, approver(program, path, server.url, token="stranger"):
        run(program, "touch made")
        assert server.refused == ["write harness-1"]
    assert not is_made(program)

"""A repository, a file of tasks, and a server that answers many runs at once, each by what its request holds."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from responses_server import ServerOfBothApis

from harness.messages import ToolCall
from harness.models.scripted import Failure, Player, Reply, ScriptedAnswer, replies, request_problem

SECONDS = 120.0
"""Far away: a machine that is busy gets there, and what hangs is ended."""


def until(happened: Callable[[], object]) -> None:
    """Wait for what must happen."""
    end = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


POLICY = """\
version = 1
name = "batch"
[tools]
read_file = "auto"
write_file = "auto"
edit_file = "auto"
bash = "deny"
default = "deny"
[unattended]
confirm = "deny"
[[rule]]
id = "sleeping"
decision = "auto"
argv = ["sleep", "..."]
match = ["sleep 1"]
not_match = ["sleep 1; rm x"]
[[rule]]
id = "copying"
decision = "auto"
argv = ["cp", "..."]
write = ["."]
match = ["cp a b"]
not_match = ["mv a b"]
[[rule]]
id = "script"
decision = "auto"
argv = ["python3", "s.py"]
write = ["."]
match = ["python3 s.py"]
not_match = ["python3 t.py"]
[[rule]]
id = "halting"
decision = "block"
argv = ["shutdown"]
reason = "Not here."
match = ["shutdown"]
not_match = ["sleep 1"]
"""


def call(identity: str, tool: str, **arguments: object) -> ToolCall:
    return ToolCall(id=identity, name=tool, arguments=json.dumps(arguments))


class ByContent(Player):
    """Answers each request by its conversation alone: what the prompt says is done, a step a turn.

    A prompt is lines of `TOOL ARGUMENT...`: `write NAME TEXT`, `bash COMMAND`. A line is one turn; `;;` divides its
    calls.
    """

    def __init__(self) -> None:
        super().__init__(replies())
        self.prompts: list[str] = []
        """What was asked in first requests, in their order."""
        self.asked: list[object] = []
        """Every request."""
        self.refusing = False
        """Whether every request fails for good (status 401)."""

    def answer(self, request: object) -> ScriptedAnswer:
        self.asked.append(request)
        if self.refusing:
            return Failure(status=401, body='{"error": {"message": "no such key"}}')
        assert isinstance(request, dict)
        assert request_problem(request) == ""
        messages: list[Any] = request["messages"]
        prompt = next(str(message["content"]) for message in messages if message["role"] == "user")
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn == 0:
            self.prompts.append(prompt)
        steps = prompt.splitlines()
        if turn >= len(steps):
            return Reply(text=f"done: {steps[0]}")
        return Reply(calls=tuple(_call(f"c{turn}_{n}", one) for n, one in enumerate(steps[turn].split(" ;; "))))


def _call(identity: str, step: str) -> ToolCall:
    tool, _, rest = step.partition(" ")
    match tool:
        case "write":
            name, _, text = rest.partition(" ")
            return call(identity, "write_file", path=name, content=f"{text}\n")
        case "bash":
            return call(identity, "bash", command=rest)
        case _:
            raise AssertionError(step)


@contextmanager
def serving() -> Iterator[tuple[str, ByContent]]:
    """Serve until the block ends; yield the base URL, and the player."""
    player = ByContent()
    with ServerOfBothApis(player) as server:
        yield server.base_url, player


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, and return what it printed."""
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(folder: Path) -> Path:
    """Make a small repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    (folder / "a.txt").write_text("one\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("two\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


def add_gate(folder: Path, gate: Path) -> None:
    """Commit a script, `s.py`, that ends once the file `gate` is there: until then its run goes on."""
    code = (
        "import os, time\nfor _ in range(60_000):\n    if os.path.exists({!r}):\n        break\n    time.sleep(0.01)\n"
    )
    (folder / "s.py").write_text(code.format(str(gate)))
    git(folder, "add", "s.py")
    git(folder, "commit", "--quiet", "-m", "gate")


def write_tasks(path: Path, *tasks: dict[str, object]) -> Path:
    """Write a file of tasks."""
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def applied(repository_folder: Path, patch: Path, folder: Path) -> Path:
    """Return a fresh clone of the repository in `folder` to which the patch was applied."""
    git(repository_folder.parent, "clone", "--quiet", str(repository_folder), str(folder))
    if patch.stat().st_size:
        git(folder, "apply", "--binary", str(patch))
    return folder

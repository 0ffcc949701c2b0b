"""What a program of the workspace tries to reach beyond the workspace walls, whatever allowed it: one script."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = r"""
import json, os, socket
outcome = {}
def attempt(name, action):
    try:
        outcome[name] = str(action())
    except OSError as error:
        outcome[name] = type(error).__name__
def connected(family, address):
    with socket.socket(family) as client:
        client.settimeout(30)
        client.connect(address)
        return "reached"
def written(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        file.write("planted")
    return "written"
attempt("denied file", lambda: open(".env").read().strip())
attempt("denied file by another name", lambda: os.link(".env", "stolen") or open("stolen").read().strip())
attempt("denied file by a hard link from before", lambda: open(".git/notes").read().strip())
attempt("hook", lambda: written(".git/hooks/pre-commit"))
attempt("workflow", lambda: written(".github/workflows/ci.yml"))
attempt("file outside", lambda: written(%(outside)r))
del outcome["file outside"]  # a private /tmp may take it: whether the real file is there is looked at
attempt("TCP", lambda: connected(socket.AF_INET, ("127.0.0.1", %(port)d)))
attempt("Unix socket", lambda: connected(socket.AF_UNIX, %(socket)r))
print("outcome: " + json.dumps(outcome))
"""
"""A program of the workspace that prints what it reached."""
REACHED = {
    "denied file": "SECRET=1", "denied file by another name": "SECRET=1",
    "denied file by a hard link from before": "SECRET=1", "hook": "written", "workflow": "written",
    "TCP": "reached", "Unix socket": "reached",
}  # fmt: skip
"""The outcome without walls."""


@contextmanager
def attackable(root: Path, outside: Path) -> Iterator[None]:
    """Prepare a workspace with the attacking script `attack.py`, and keep listeners beside it while the block runs."""
    for folder in (".git/hooks", ".github/workflows"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in (".git/hooks/pre-commit", ".github/workflows/ci.yml"):
        (root / name).write_text("as before\n")
    (root / ".env").write_text("SECRET=1\n")
    (root / ".git" / "notes").hardlink_to(root / ".env")
    outside.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(outside / "s"))
        unix.listen()
        values = {"outside": str(outside / "file"), "port": tcp.getsockname()[1], "socket": str(outside / "s")}
        (root / "attack.py").write_text(SCRIPT % values)
        yield


def reached(printed: str) -> list[str]:
    """Return what the script reached, of what it printed. Raises StopIteration if it did not come to its end."""
    line = next(line for line in printed.splitlines() if line.startswith("outcome: "))
    told: dict[str, str] = json.loads(line.removeprefix("outcome: "))
    assert told.keys() == REACHED.keys()
    return [name for name, text in told.items() if text == REACHED[name]]


def planted(root: Path, outside: Path) -> list[str]:
    """Return the files that the script changed, and that it must not."""
    kept = [root / ".git/hooks/pre-commit", root / ".github/workflows/ci.yml"]
    changed = [str(path.relative_to(root)) for path in kept if path.read_text() != "as before\n"]
    return [*changed, *(["file outside"] if (outside / "file").exists() else [])]

"""What a person opens at a question, as real processes: it holds for that call, and as far as the policy allows."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

from forged_logs import encoded, rechained, write
from grant_scene import Scene, bash
from rows import all_rows
from sandbox_scene import needs_walls

from harness.actions import Action, Opening
from harness.gate.approval import Approval, Approver
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.loop.agent import Agent
from harness.policy.verdict import Verdict

pytestmark = needs_walls

POLICY = b'version = 1\n[tools]\ndefault = "confirm"\n[sandbox]\nnetwork = true\n'
CODE = """
import socket, sys

def attempt(name, run):
    try:
        run()
        print("DONE", name)
    except OSError as error:
        print("REFUSED", name, error)

folder, port = open("where").read().split("\\n")
attempt("network", lambda: socket.create_connection(("127.0.0.1", int(port)), 2))
attempt("sockets", lambda: socket.socket(socket.AF_UNIX).connect(folder + "/socket"))
attempt("places", lambda: open(".git/hooks/pre-commit", "w").write("x"))
"""
OPEN_ALL = tuple(Opening)


def opening(*openings: tuple[Opening, ...]) -> Callable[[Agent], Approver]:
    """Return what says yes to each call in turn, and opens these for it."""
    answers = iter(openings)

    def approve(action: Action, verdict: Verdict) -> Approval:
        return Approval(answer=Answer.YES, by="person", opens=next(answers))

    return lambda agent: approve


def ran(tmp_path: Path, *openings: tuple[Opening, ...], policy: bytes = POLICY) -> tuple[list[set[str]], Scene]:
    """Run the same program once for each answer. Return what it was able to do at each, and the scene."""
    hooks = tmp_path / "w" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (tmp_path / "w" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        (tmp_path / "w" / "where").write_text(f"{tmp_path}\n{server.getsockname()[1]}")
        (tmp_path / "w" / "x.py").write_text(CODE)
        scene = Scene(tmp_path, *(bash("python3 x.py") for _ in openings), approver=opening(*openings), policy=policy)
        scene.agent.run("go")
    outcomes = [str(record["content"]) for record in scene.records("outcome")]
    done = [{line.split()[1] for line in text.splitlines() if line.startswith("DONE ")} for text in outcomes]
    return done, scene


def test_call_gets_what_was_opened_and_the_next_one_nothing(tmp_path: Path) -> None:
    each = [(opening,) for opening in Opening]
    done, scene = ran(tmp_path, (), *each, OPEN_ALL, ())
    everything = {opening.value for opening in Opening}
    assert done == [set(), {"network"}, {"sockets"}, {"places"}, everything, set()]
    answers = [record.get("opens") for record in scene.records("approval_answered")]
    assert answers == [None, ["network"], ["sockets"], ["places"], ["network", "sockets", "places"], None]
    levels = [record["effects"]["level"] for record in scene.records("intent")]  # type: ignore[index,call-overload]
    assert levels == ["workspace", "opened", "opened", "opened", "opened", "workspace"]
    scene.close()


def test_closed_network_of_the_policy_is_not_opened(tmp_path: Path) -> None:
    done, scene = ran(tmp_path, OPEN_ALL, policy=POLICY.replace(b"network = true", b"network = false"))
    assert done == [{"sockets", "places"}]
    scene.close()


@all_rows(
    ("opens", "field", "problem"),
    [
        ((Opening.PLACES,), "network", "something else than was decided"),
        ((Opening.PLACES,), "sockets", "something else than was decided"),
        ((Opening.NETWORK,), "sockets", "something else than was decided"),
        ((Opening.NETWORK,), "network", ""),
        ((), "network", "something else than was decided"),
    ],
)
def test_audit_finds_effects_that_no_answer_opened(
    tmp_path: Path, opens: tuple[Opening, ...], field: str, problem: str
) -> None:
    _, scene = ran(tmp_path, opens)
    scene.close()
    lines = Path(scene.path).read_bytes().splitlines()
    (place,) = [number for number, line in enumerate(lines) if json.loads(line)["kind"] == "intent"]
    record = json.loads(lines[place])
    forged = {**record, "effects": {**record["effects"], field: True}}
    path = write(tmp_path / "forged.jsonl", rechained([*lines[:place], encoded(forged), *lines[place + 1 :]]))
    found = verify(str(path)).problem
    assert problem in found if problem else not found

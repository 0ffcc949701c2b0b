"""The program while several calls of one reply run at once: a signal, kill -9 and going on, and what people are shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from run_scene import flags_of, left_in, wait_until

from harness import Workspace
from harness.log.reader import read_log
from harness.log.transcript import NOT_RUN, UNKNOWN, rebuilt
from harness.models.scripted import Reply, call, replies, say
from harness.tools.command_walls import CommandWalls
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.skipif(
    not CommandWalls(Workspace("/")).confines, reason="this kernel confines no command, so that each runs alone"
)
PIPES = ("a", "b", "c")
GROUP = Reply(
    text="looking", calls=(*(call("bash", command=f"cat {name}") for name in PIPES), call("bash", command="touch made"))
)


class Pipes:
    """Pipes that commands read, and that are fed from here."""

    def __init__(self, program: Program) -> None:
        self._folder = program.workspace
        for name in PIPES:
            os.mkfifo(self._folder / name)
        self.ends: dict[str, int] = {}

    def opened(self, name: str) -> bool:
        """Open the end for writing; say whether somebody reads (fifo(7): ENXIO)."""
        try:
            self.ends[name] = os.open(self._folder / name, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        return True

    def end(self, name: str, text: str = "") -> None:
        """Feed one, and close it."""
        descriptor = self.ends.pop(name)
        os.write(descriptor, text.encode())
        os.close(descriptor)

    def close(self) -> None:
        """Close all that are open."""
        for name in tuple(self.ends):
            os.close(self.ends.pop(name))


def in_the_middle(program: Program, pipes: Pipes, *flags: str) -> subprocess.Popen[bytes]:
    """Start a run, and return it when all three commands read: the last is found first, so that they run at once."""
    url = program.serve(replies(GROUP, say("Done.")))
    process = program.start("run", "go", *flags_of(program, url, AUTO), *flags)
    for name in reversed(PIPES):
        wait_until(lambda name=name: pipes.opened(name), process)  # type: ignore[misc]
    return process


def outcomes(program: Program) -> list[tuple[object, object]]:
    """Return number and status of the calls that ended, in the order of the log."""
    return [(one["call"], one["status"]) for one in program.records() if one["kind"] == "outcome"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_ends_all_that_run(program: Program, number: signal.Signals, code: int) -> None:
    with ExitStack() as stack:
        pipes = Pipes(program)
        stack.callback(pipes.close)
        process = in_the_middle(program, pipes)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["end"]) == (code, "interrupted"), err
    assert outcomes(program) == [(1, "interrupted"), (2, "interrupted"), (3, "interrupted"), (4, "not_run")]
    assert program.run("audit", "verify", str(program.logs()[0])).code == 0
    assert not (program.workspace / "made").exists()
    assert left_in(program.workspace) == []


def test_killed_group_leaves_known_and_unknown_calls(program: Program) -> None:
    """The second had ended, and waited for the first to be told; nobody knows of it, nor of the third."""
    with ExitStack() as stack:
        pipes = Pipes(program)
        stack.callback(pipes.close)
        process = in_the_middle(program, pipes)
        pipes.end("a", "from a\n")
        wait_until(lambda: outcomes(program) == [(1, "ok")], process)
        pipes.end("b", "from b\n")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    verified = program.run("audit", "verify", str(program.logs()[0]))
    assert "every run was permitted beforehand" in verified.out, verified
    assert left_in(program.workspace) == []
    again = rebuilt(read_log(str(program.logs()[0])))
    results = [message.content for message in again.messages if message.tool_call_id is not None]
    assert results[0].startswith("from a\n")
    # Whether the second was told of before the kill came is chance.
    assert results[1] == UNKNOWN or results[1].startswith("from b\n")
    assert results[2:] == [UNKNOWN, NOT_RUN]
    assert not (program.workspace / "made").exists()


def test_people_are_shown_one_call_after_the_other(program: Program) -> None:
    """The last ends first; the lines, the log and the model have the order of the calls."""
    with ExitStack() as stack:
        pipes = Pipes(program)
        stack.callback(pipes.close)
        process = in_the_middle(program, pipes)
        for name in reversed(PIPES):
            pipes.end(name, f"from {name}\n")
        _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    lines = [line for line in err.decode().splitlines() if "bash" in line]
    assert [line.split("  ")[1] for line in lines] == ["cat a", "cat b", "cat c", "touch made"]
    assert [number for number, _ in outcomes(program)] == [1, 2, 3, 4]
    kinds = [(one["kind"], one["call"]) for one in program.records() if one["kind"] in ("intent", "outcome")]
    assert kinds[:4] == [("intent", 1), ("intent", 2), ("intent", 3), ("outcome", 1)]
    sent = program.players[0].requests[-1]["messages"]
    assert isinstance(sent, list)
    results = [one for one in sent if isinstance(one, dict) and one["role"] == "tool"]
    told = [str(one["content"]).partition("\n")[0] for one in results]
    assert told[:3] == ["from a", "from b", "from c"]

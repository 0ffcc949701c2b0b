"""Measure calls that only read run at once: three of them against one, and that one alone takes what it took.

Usage: python bench/together.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence

from road import POLICY, Replies
from tools import interleaved

from bench import row
from harness import ActionLog, Agent, Limits, Workspace, builtin_tools, deny_all, load_policy
from harness.messages import Role
from harness.session.running_session import calls_at_once

SLEEPERS = [f"sleep 1; cat {name}" for name in "abc"]


class Place:
    """A workspace with three files, and a log."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._runs = 0
        os.mkdir(os.path.join(folder, "w"))
        for name in "abc":
            with open(os.path.join(folder, "w", name), "w", encoding="utf-8") as file:
                file.write(f"{name}\n")

    def run(self, commands: Sequence[str], together: int) -> list[str]:
        """Run commands as one reply, so many at once; return what the model reads."""
        self._runs += 1
        agent = Agent(
            model=Replies(commands),
            tools=builtin_tools(Workspace(os.path.join(self._folder, "w"))),
            policy=load_policy(POLICY),
            approver=deny_all,
            log=ActionLog.open(os.path.join(self._folder, f"{self._runs}.jsonl")),
            limits=Limits(),
            together=together,
        )
        session = agent.start()
        agent.end(session, agent.run("go", session))
        agent.log.close()
        return [message.content for message in session.messages if message.role is Role.TOOL]


def main() -> None:
    runs = 3 if "--quick" in sys.argv else 11
    at_once = calls_at_once()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        ways: dict[str, Callable[[], object]] = {
            "one alone": lambda: place.run(["cat a"], 1),
            "one, where more may run at once": lambda: place.run(["cat a"], at_once),
            "three, one after the other": lambda: place.run(["cat a", "cat b", "cat c"], 1),
            "three at once": lambda: place.run(["cat a", "cat b", "cat c"], at_once),
        }
        taken = interleaved(ways, runs)
        floor = taken["one alone"]
        for name, milliseconds in taken.items():
            row(f"cat: {name}", f"{milliseconds:.1f} ms", f"{floor:.1f} ms", milliseconds / floor, "")
        taken = interleaved(
            {"one": lambda: place.run(SLEEPERS[:1], 1), "at once": lambda: place.run(SLEEPERS, at_once)}, 1
        )
        one, three = taken["one"], taken["at once"]
        row("sleep 1; cat: three at once", f"{three:.0f} ms", f"{one:.0f} ms", three / one, "little more than one")


if __name__ == "__main__":
    main()

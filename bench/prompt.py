"""Measure the prompt: how long until it is drawn, against a bare prompt of its line editor; and what it costs while idle.

Usage: python bench/prompt.py [--quick]. Needs a system with pseudo-terminals and /proc. Says of each goal whether it is met,
and always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import argparse
import os
import pty
import random
import select
import statistics
import sys
import tempfile
import time

IDLE_SECONDS = 10.0
MOST_TIMES = 1.4
"""How long our prompt may take, against a bare one."""
OURS = ["-m", "harness"]
BARE = ["-c", 'import prompt_toolkit; prompt_toolkit.PromptSession().prompt("> ")']
READY = b">"
"""What stands in front of the cursor when a prompt waits."""


def environment(folder: str) -> dict[str, str]:
    """Return the environment of a person with a key and nothing else."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "XDG_STATE_HOME": os.path.join(folder, "state"),
        "XDG_CONFIG_HOME": os.path.join(folder, "config"),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        # As installed: all of it compiled beforehand, which a tree that is worked in is not.
        "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"),
    }


class Prompt:
    """A program at a pseudo-terminal, until its prompt is drawn."""

    def __init__(self, folder: str, words: list[str]) -> None:
        workspace = os.path.join(folder, "workspace")
        os.makedirs(workspace, exist_ok=True)
        self._behind = b"/help" if words is OURS else b""  # the last line above our prompt
        started = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(workspace)
            os.execve(sys.executable, [sys.executable, *words], environment(folder))
        seen = b""
        while not self._is_ready(seen):
            if not select.select([self.terminal], [], [], 20)[0]:
                raise SystemExit(f"the prompt did not come: {seen!r}")
            seen += os.read(self.terminal, 65_536)
        self.seconds = time.perf_counter() - started

    def _is_ready(self, seen: bytes) -> bool:
        return READY in seen.partition(self._behind)[2] if self._behind else READY in seen

    def cpu(self) -> float:
        """Return the seconds of CPU that the process has used so far (proc_pid_stat(5): utime and stime)."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Leave it with Ctrl-D, and wait until it is gone."""
        os.write(self.terminal, b"\x04")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if select.select([self.terminal], [], [], 0.05)[0]:
                try:
                    os.read(self.terminal, 65_536)
                except OSError:
                    pass
        os.close(self.terminal)


def seconds_of(folder: str, words: list[str]) -> float:
    """Return how long a prompt takes to be drawn."""
    prompt = Prompt(folder, words)
    prompt.close()
    return prompt.seconds


def drawn(folder: str, rounds: int) -> None:
    """Print how long our prompt and a bare one take, in turn: which of the two is first in a round, chance says."""
    seconds: dict[str, list[float]] = {"bare": [], "ours": []}
    kinds = [("bare", BARE), ("ours", OURS)]
    for _, words in kinds:
        seconds_of(folder, words)  # the first of each compiles what it imports
    for _ in range(rounds):
        random.shuffle(kinds)
        for name, words in kinds:
            seconds[name].append(seconds_of(folder, words))
    bare, ours = statistics.median(seconds["bare"]), statistics.median(seconds["ours"])
    beside = statistics.median(one / other for one, other in zip(seconds["ours"], seconds["bare"], strict=True))
    goal = f"(goal: {MOST_TIMES}, {met(beside <= MOST_TIMES)})"
    print(f"a bare prompt drawn         {bare * 1000:7.1f} ms")
    print(f"our prompt drawn            {ours * 1000:7.1f} ms  {beside:.2f} times, round by round  {goal}")


def idle(folder: str) -> None:
    """Print what our prompt costs while nobody types."""
    prompt = Prompt(folder, OURS)
    time.sleep(3)  # what is imported behind it is there by then
    before = prompt.cpu()
    time.sleep(IDLE_SECONDS)
    used = prompt.cpu() - before
    print(f"CPU while idle for {IDLE_SECONDS:.0f} s     {used * 1000:7.1f} ms  (goal: 0, {met(not used)})")
    prompt.close()


def met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, and nothing while idle")
    quick: bool = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        drawn(folder, 5 if quick else 21)
        if not quick:
            idle(folder)


if __name__ == "__main__":
    main()

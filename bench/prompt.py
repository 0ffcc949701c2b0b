"""Measure the prompt: how long until it is there, against the import of its line editor alone; and what it costs while idle.

Usage: python bench/prompt.py. Needs a system with pseudo-terminals and /proc. Always exits 0: a bench measures, it does
not judge.
"""

from __future__ import annotations

import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
IDLE_SECONDS = 10.0
READY = b">"
"""What stands in front of the cursor when the prompt waits."""


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
    }


def floor(folder: str) -> float:
    """Return the seconds that importing the line editor takes, process and all."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import prompt_toolkit"], env=environment(folder), check=True)
    return time.perf_counter() - started


class Prompt:
    """The program at a pseudo-terminal, until its prompt is there."""

    def __init__(self, folder: str) -> None:
        workspace = os.path.join(folder, "workspace")
        os.makedirs(workspace, exist_ok=True)
        started = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(workspace)
            os.execve(sys.executable, [sys.executable, "-m", "harness"], environment(folder))
        seen = b""
        while not self._is_ready(seen):
            if not select.select([self.terminal], [], [], 20)[0]:
                raise SystemExit(f"the prompt did not come: {seen!r}")
            seen += os.read(self.terminal, 65_536)
        self.seconds = time.perf_counter() - started

    @staticmethod
    def _is_ready(seen: bytes) -> bool:
        return b"/help" in seen and READY in seen[seen.rindex(b"/help") :]

    def cpu(self) -> float:
        """Return the seconds of CPU that the process has used so far (proc_pid_stat(5): utime and stime)."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        os.write(self.terminal, b"\x04")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if select.select([self.terminal], [], [], 0.05)[0]:
                try:
                    os.read(self.terminal, 65_536)
                except OSError:
                    pass
        os.close(self.terminal)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        floors, prompts = [], []
        for _ in range(ROUNDS):
            floors.append(floor(folder))
            prompt = Prompt(folder)
            prompts.append(prompt.seconds)
            prompt.close()
        base, shown = statistics.median(floors), statistics.median(prompts)
        print(f"import prompt_toolkit       {base * 1000:7.1f} ms")
        print(f"prompt visible              {shown * 1000:7.1f} ms  {shown / base:.2f} times  (goal: 2.5)")
        prompt = Prompt(folder)
        time.sleep(3)  # what is imported behind it is there by then
        before = prompt.cpu()
        time.sleep(IDLE_SECONDS)
        print(f"CPU while idle for {IDLE_SECONDS:.0f} s     {(prompt.cpu() - before) * 1000:7.1f} ms  (goal: 0)")
        prompt.close()


if __name__ == "__main__":
    main()

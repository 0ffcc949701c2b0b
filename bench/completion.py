"""Measure the names of files while one types, in a repository of 100,000 files, and what the input line adds to the start.

Usage: python bench/completion.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial

from bench import row
from harness.terminal.file_names import FileIndex, walked_names

WORDS = "alpha beta gamma parser lexer main util config server client model view test index data core".split()
QUESTIONS = ("p", "parser_9", "src/parser", "prs99", "alpbetgamprs", "zzz", "config/ser", "_31.py")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
START = "import time, prompt_toolkit; b = time.perf_counter(); {}print((time.perf_counter() - b) * 1000)"
LINE = (
    "import os, sys; from harness.terminal.console import Look; from harness.terminal.prompt_line import PromptLine; "
    "from harness.terminal.line_history import KeptHistory; from harness.terminal.file_names import FileIndex; "
    "PromptLine(history=KeptHistory('/nonexistent/x', None), commands=[], offers={}, keys=(), "
    "files=FileIndex('/', os.environ).matches, vi=False, "
    "look=Look(repaints=True), toolbar=lambda hint: (), next_mode=lambda: None, environment={'TERM': 'xterm'}); "
)


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def make_repository(folder: str, count: int) -> None:
    """Make a repository of so many files, most of them tracked, some not, some ignored."""
    for number in range(count):
        below = os.path.join(folder, WORDS[number % 16], f"{WORDS[number // 16 % 16]}_{number // 256 % 100}")
        if number < 25_600:
            os.makedirs(below, exist_ok=True)
        os.close(os.open(os.path.join(below, f"{WORDS[number * 7 % 16]}_{number}.py"), os.O_CREAT | os.O_WRONLY))
    with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("*.o\nbuild/\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=folder, check=True, env=ENVIRONMENT)
    for number in range(count // 100):
        os.close(os.open(os.path.join(folder, "alpha", f"new_{number}.py"), os.O_CREAT | os.O_WRONLY))


def longest_pause(work: Callable[[], object]) -> float:
    """Return for how many milliseconds this thread was kept from running at most, while `work` ran in another one."""
    thread = threading.Thread(target=work)
    thread.start()
    longest, before = 0.0, time.perf_counter()
    while thread.is_alive():
        time.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    return longest * 1000


def started(code: str, runs: int) -> float:
    program = [sys.executable, "-c", START.format(code)]
    with open(os.devnull, encoding="utf-8") as null:
        outputs = [
            subprocess.check_output(program, stdin=null, stderr=subprocess.DEVNULL, text=True) for _ in range(runs)
        ]
    return statistics.median(float(output.split()[-1].rpartition("h")[2]) for output in outputs)


def main() -> None:
    quick = "--quick" in sys.argv
    count = 20_000 if quick else 100_000
    runs = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        make_repository(folder, count)
        git = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
        floor = milliseconds(lambda: subprocess.run(git, cwd=folder, check=True, capture_output=True, env=ENVIRONMENT))
        firsts = [milliseconds(lambda: FileIndex(folder, ENVIRONMENT).matches("parser")) for _ in range(runs)]
        row(f"first completion, {count} files (git ls-files)", f"{statistics.median(firsts):.0f} ms", f"{floor:.0f} ms",
            statistics.median(firsts) / floor, "< 300 ms")  # fmt: skip
        pause = longest_pause(lambda: FileIndex(folder, ENVIRONMENT).matches("parser"))
        row("  longest pause of another thread meanwhile", f"{pause:.1f} ms", "", None, "a key waits no longer")
        index = FileIndex(folder, ENVIRONMENT)
        index.matches("")
        time.sleep(0.5)
        for question in QUESTIONS:
            took = [milliseconds(partial(index.matches, question)) for _ in range(runs)]
            row(
                f"  later: {question}",
                f"{statistics.median(took):.1f} ms",
                f"{took[0]:.1f} ms",
                None,
                "< 60 ms",
            )
        walk = milliseconds(lambda: walked_names(folder))
        row(
            "walked, without git (git ls-files)",
            f"{walk:.0f} ms",
            f"{floor:.0f} ms",
            walk / floor,
            "in the background",
        )
    row("input line made, beyond import prompt_toolkit", f"{started(LINE, runs):.1f} ms", "", None, "< 15 ms")


if __name__ == "__main__":
    main()

"""Measure the looks at a workspace around a command, against a walk over all files taken in the same run.

Usage: python bench/undo.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from tools import milliseconds

from bench import row
from harness.files.tree_watch import TreeWatch

FILES_IN_FOLDER = 40


def make_tree(folder: str, files: int, *, in_git: bool) -> None:
    """Make files of 2.6 KB, 40 in a folder, with or without a repository that holds them."""
    block = "".join(f"line {number} of a file of text\n" for number in range(84))
    for number in range(files):
        inner = f"{folder}/package{number // 4_000}/part{number // FILES_IN_FOLDER}"
        if number % FILES_IN_FOLDER == 0:
            os.makedirs(inner)
        with open(f"{inner}/file{number}.txt", "w", encoding="utf-8") as file:
            file.write(f"{number}\n{block}")
    if in_git:
        git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
            subprocess.run([*git, *words], check=True)
    time.sleep(0.1)  # younger files are not taken for unchanged
    if in_git:
        subprocess.run(["git", "-C", folder, "update-index", "-q", "--refresh"], check=True)


def walked(folder: str) -> None:
    """Look at the status of all files but those of git, and read none."""
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)


def change(folder: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        with open(f"{folder}/package0/part0/new{number}.txt", "w", encoding="utf-8") as file:
            file.write(f"{number}\n" * 400)


def change_old(folder: str, count: int) -> None:
    for number in range(count):
        with open(f"{folder}/package{number // 4_000}/part{number // FILES_IN_FOLDER}/file{number}.txt", "a") as file:
            file.write("more\n")


def around(watch: TreeWatch, command: Callable[[], None], runs: int) -> tuple[float, float]:
    """Return the milliseconds of the look before and after a command."""
    before, after = [], []
    for _ in range(runs):
        started = time.perf_counter()
        noted = watch.note(fresh_seconds=0)
        before.append((time.perf_counter() - started) * 1e3)
        command()
        time.sleep(0.05)
        started = time.perf_counter()
        noted.compared()
        after.append((time.perf_counter() - started) * 1e3)
    return statistics.median(before), statistics.median(after)


def main() -> None:
    runs = 3 if "--quick" in sys.argv else 7
    goals = {(1_000, True): "10", (50_000, True): "350", (1_000, False): "25", (50_000, False): "1,000"}
    for (files, in_git), goal in goals.items():
        with tempfile.TemporaryDirectory() as folder:
            root, stores = f"{os.path.realpath(folder)}/tree", f"{folder}/stores"
            os.mkdir(root)
            make_tree(root, files, in_git=in_git)
            floor = min(milliseconds(lambda here=root: walked(here)) for _ in range(3))  # type: ignore[misc]
            watch = TreeWatch(root, stores, environment={"PATH": os.environ["PATH"]})
            first = milliseconds(watch.look_ahead)
            name = f"{files} files {'in' if in_git else 'outside'} git"
            row(f"{name}: first look (walk)", f"{first:.1f} ms", f"{floor:.1f} ms", first / floor, f"<= {goal} ms")
            later = "<= 4 ms" if files == 1_000 else "<= 130 ms"
            numbers = iter(range(0, 1_000_000, 5_000))
            for words, command, count in (
                ("nothing changed", lambda: None, runs),
                ("3 new files", lambda: change(root, next(numbers), 3), runs),  # noqa: B023
                ("5,000 new files", lambda: change(root, next(numbers), 5_000), 1),  # noqa: B023
                ("1,000 old files", lambda: change_old(root, 1_000), 1),  # noqa: B023
            ):
                before, after = around(watch, command, count)
                is_small = count == runs
                row(f"  before: {words}", f"{before:.1f} ms", f"{floor:.1f} ms", before / floor, later)
                row("  after", f"{after:.1f} ms", f"{floor:.1f} ms", after / floor, later if is_small else "")


if __name__ == "__main__":
    main()

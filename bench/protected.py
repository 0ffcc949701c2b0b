"""Measure the look at protected places around a granted program, against a walk over all files taken in the same run.

Usage: python bench/protected.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from tools import milliseconds

from bench import row
from harness.files.protected_places import ProtectedPlaces


def make_repository(folder: str, files: int) -> None:
    """Make a repository of packages, ten files in a folder, a Makefile and an editor's settings in each package."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    for number in range(max(files // 10, 1)):
        package = f"{folder}/package{number // 100}"
        source = f"{package}/source{number % 100}"
        os.makedirs(source)
        for module in range(min(files, 10)):
            with open(f"{source}/{module}.py", "w", encoding="utf-8") as file:
                file.write("x = 1\n")
    for name in (".npmrc", ".envrc", "Makefile"):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write("x=1\n")


def walked(folder: str) -> None:
    for _ in os.walk(folder):
        pass


def main() -> None:
    runs = 3 if "--quick" in sys.argv else 11
    for files in (10, 3_000, 50_000):
        with tempfile.TemporaryDirectory() as folder:
            make_repository(folder, files)
            time.sleep(2)  # what has just changed is read again each time
            floor = milliseconds(lambda here=folder: walked(here))  # type: ignore[misc]
            places = ProtectedPlaces(folder, None)
            first = milliseconds(places.note)
            before = statistics.median(milliseconds(places.note) for _ in range(runs))
            noted = places.note()
            after = statistics.median(milliseconds(noted.compared) for _ in range(runs))
            row(f"{files} files, first look (os.walk)", f"{first:.1f} ms", f"{floor:.1f} ms", first / floor, "once")
            row(
                "  later, before and after a command",
                f"{before + after:.1f} ms",
                "",
                None,
                "a few ms where it is small",
            )


if __name__ == "__main__":
    main()

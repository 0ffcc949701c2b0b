"""Measure redaction: a record, eight megabytes, and how many files of real source trees it touches.

Usage: python bench/redaction.py [FOLDER ...]; without one, the libraries of this interpreter. Always exits 0: a bench measures,
it does not judge. What is found in a folder is named by its file and rule, never shown.
"""

from __future__ import annotations

import json
import os
import random
import string
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator

from harness.actions import JsonValue
from harness.redaction.redactor import Redactor
from harness.redaction.stream import RedactedStream

SECRETS = 20
MOST_CHARACTERS = 2_000_000
"""Of one file."""


def texts(folders: list[str]) -> Iterator[tuple[str, str]]:
    """Yield path and content of every file that is text."""
    for root in folders:
        for folder, _, names in os.walk(root):
            for path in (os.path.join(folder, name) for name in names):
                if os.path.isfile(path) and not path.endswith((".pyc", ".so", ".gz", ".whl", ".exe", ".png")):
                    with open(path, encoding="utf-8", errors="replace") as file:
                        yield path, file.read(MOST_CHARACTERS)


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the shortest of some runs."""
    best = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def record() -> dict[str, JsonValue]:
    """Return the fields of an outcome of about 900 bytes."""
    arguments = json.dumps({"command": "python -m pytest -q tests && git diff --stat", "timeout_seconds": 120})
    content = "exit code 0\n" + "tests/test_one.py::test_it_works PASSED in 0.01 s\n" * 12
    return {"call": 7, "tool": "bash", "arguments": arguments, "arguments_sha256": "ab" * 32, "content": content}


def main() -> None:
    chance = random.Random(1)
    redactor = Redactor("".join(chance.choices(string.ascii_letters + string.digits, k=40)) for _ in range(SECRETS))
    fields = record()
    print(f"a record of {len(json.dumps(fields))} bytes: {1000 * seconds(lambda: redactor.fields(fields), 500):.3f} ms")
    source = "".join(text for (_, text), _ in zip(texts([sysconfig.get_path("stdlib")]), range(400), strict=False))
    large = (source * (8_000_000 // len(source) + 1))[:8_000_000]
    print(f"8 MB of source: {seconds(lambda: redactor.redact(large), 2):.2f} s")
    many = Redactor("".join(chance.choices(string.ascii_letters + string.digits, k=40)) for _ in range(300))
    few: dict[str, JsonValue] = {"content": "some ordinary text of a file = 1\n" * 150}
    print(f"a record of 5 KB, 300 secrets: {1000 * seconds(lambda: many.fields(few), 100):.3f} ms")
    keys = 'api_key="aB3dE5gH7jK9mN1p" ' * 37_000
    print(f"1 MB of assigned keys: {seconds(lambda: redactor.redact(keys), 2):.2f} s")
    words = "the quick answer is that the function returns, and " * 20_000
    pieces = [words[at : at + 3] for at in range(0, len(words), 3)]
    print(f"1 MB that streams: {seconds(lambda: list(map(RedactedStream(redactor).feed, pieces)), 1):.2f} s")
    folders = sys.argv[1:] or [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
    began, files, characters, touched, rules = time.perf_counter(), 0, 0, 0, Counter[str]()
    for path, text in texts(folders):
        hits = redactor.redact_and_count(text)[1]
        files, characters = files + 1, characters + len(text)
        if hits:
            touched += 1
            rules.update(hits)
            print(f"  {path}: {', '.join(sorted(hits))}")
    taken = time.perf_counter() - began
    share = touched / files if files else 0
    print(
        f"{touched} of {files} files touched ({share:.2%}), {characters / 1e6:.0f} MB in {taken:.1f} s: {dict(rules)}"
    )


if __name__ == "__main__":
    main()

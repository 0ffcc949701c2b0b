"""Measure the terminal: streamed text rendered against the same text written raw, and keys echoed while output floods.

Usage: python bench/terminal.py. Needs a system with pseudo-terminals. Always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import select
import statistics
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor

TOKENS = 200_000
CHARACTERS = 4
ROUNDS = 3
"""Of each measurement, the one that took least is told: the machine does other things too."""
KEYS, DRAFT = 200, 20
"""Keys pressed in all, and in one line."""
COLUMNS, LINES = 100, 40

_WORDS = (
    "the function returns a value that is read by every caller of this module and nothing else so that it can be changed "
    "later without any harm while tests which hold the old behaviour are kept until the new one has been proved"
).split()


def answer(characters: int) -> str:
    """Return Markdown like that of a coding model: prose, lists, code, some tables."""
    chance = random.Random(7)
    parts: list[str] = []
    size = 0

    def sentence(words: int) -> str:
        chosen = chance.choices(_WORDS, k=words)
        chosen[words // 3] = f"`{chosen[words // 3]}_id`"
        if chance.random() < 0.5:
            chosen[words // 2] = f"**{chosen[words // 2]}**"
        return " ".join(chosen).capitalize() + ("." if chance.random() < 0.9 else " — it is done.")

    while size < characters:
        match chance.randrange(8):
            case 0:
                part = f"## {sentence(6)}\n\n"
            case 1 | 2:
                part = "".join(f"- {sentence(12)}\n  - {sentence(9)}\n" for _ in range(4)) + "\n"
            case 3 | 4:
                code = "".join(
                    f"    if {chance.choice(_WORDS)} == {n}:\n        return call({n}, x)\n" for n in range(12)
                )
                part = f"```python\ndef {chance.choice(_WORDS)}(x):\n{code}```\n\n"
            case 5 if chance.random() < 0.5:
                rows = "".join(f"| {n} | {sentence(4)} | {sentence(8)} |\n" for n in range(6))
                part = f"| number | name | what it is |\n|---:|---|---|\n{rows}\n"
            case _:
                part = f"{sentence(60)} {sentence(30)} See [the docs](https://example.org/docs/page_{size}).\n\n"
        parts.append(part)
        size += len(part)
    return "".join(parts)[:characters]


def tokens() -> list[str]:
    text = answer(TOKENS * CHARACTERS)
    return [text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)]


def raw(pieces: list[str]) -> None:
    write, flush = sys.stdout.write, sys.stdout.flush
    for piece in pieces:
        write(piece)
        flush()


def redacted(pieces: list[str]) -> None:
    """Render the text as a session does: secrets are looked for first."""
    from harness.redaction.redactor import Redactor

    chance = random.Random(1)
    rendered(pieces, Redactor(["".join(chance.choices("abcdefghijklmnop0123456789", k=40)) for _ in range(20)]))


def rendered(pieces: list[str], redactor: Redactor | None = None) -> None:
    from harness.terminal.console import Look
    from harness.terminal.screen import Screen

    screen = Screen(sys.stdout, Look(colour=True, repaints=True), redactor=redactor)
    screen.record({"kind": "model_request", "turn": 1, "messages": 1})
    text = screen.text
    for piece in pieces:
        text(piece)
    screen.end_text()
    screen.settle()


def child(name: str) -> None:
    """Do one of the things to be measured, on stdout, and tell on stderr what it took."""
    if name == "keys":
        child_with_keys()
        return
    pieces = tokens()
    write = {"raw": raw, "rendered": rendered, "redacted": redacted}[name]
    write(pieces[:500])  # what is loaded once is no part of it
    began = time.process_time()  # user and system
    write(pieces)
    sys.stderr.write(json.dumps({"cpu": time.process_time() - began}))


def child_with_keys() -> None:
    """Stream text and the output of a command by turns, as fast as it goes, while keys are read."""
    from harness.terminal.console import Look
    from harness.terminal.screen import Screen
    from harness.terminal.type_ahead import TypeAhead

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal of this session: only then are its keys ours
    screen = Screen(sys.stdout, Look(colour=True, repaints=True))
    ahead = TypeAhead(0, tell=screen.queued, stop=lambda: None)
    pieces, until = tokens(), time.monotonic() + 12.0
    with ahead:
        while time.monotonic() < until and ahead.take() is None:
            screen.record({"kind": "model_request", "turn": 1, "messages": 1})
            for piece in pieces[:50_000]:
                screen.text(piece)
            screen.record({"kind": "model_response"})
            screen.record({"kind": "intent", "tool": "bash", "call": 1, "session": "s"})
            for _ in range(200):
                screen.live("a line of output that a command prints as fast as it can\n" * 280)
            screen.record({"kind": "outcome", "tool": "bash", "call": 1, "session": "s", "status": "ok", "content": ""})
    screen.settle()


class Played:
    """A child on a pseudo-terminal of its own, which takes in everything at once."""

    def __init__(self, name: str) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (LINES, COLUMNS))
        self._process = subprocess.Popen(
            [sys.executable, __file__, name], stdin=slave, stdout=slave, stderr=subprocess.PIPE, start_new_session=True
        )
        os.close(slave)

    def read(self, seconds: float) -> bytes | None:
        """Return what was written, empty if nothing was within this time; None at the end."""
        if not select.select([self._master], [], [], max(0.0, seconds))[0]:
            return b"" if self._process.poll() is None else None
        try:
            return os.read(self._master, 1 << 16) or None
        except OSError:
            return None

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait_for(self, text: bytes, seconds: float) -> bool:
        """Read until `text` came; say whether it did."""
        until, seen = time.monotonic() + seconds, b""
        while time.monotonic() < until and (read := self.read(until - time.monotonic())) is not None:
            seen = seen[-len(text) :] + read
            if text in seen:
                return True
        return False

    def rest(self) -> str:
        """Read to the end, and return what the child told on stderr."""
        while self.read(1.0) is not None:
            pass
        told = self._process.communicate()[1].decode()
        os.close(self._master)
        return told


def streamed_tokens() -> dict[str, float]:
    """Return the CPU seconds of the tokens written raw, rendered, and redacted and rendered; the least of some rounds each."""
    taken: dict[str, list[float]] = {"raw": [], "rendered": [], "redacted": []}
    for _ in range(ROUNDS):
        for name, figures in taken.items():
            figures.append(json.loads(Played(name).rest())["cpu"])
    return {name: min(figures) for name, figures in taken.items()}


def key_echo() -> list[float]:
    """Return the seconds from each key to its echo, while text and output come as fast as they can."""
    child, chance, echoes = Played("keys"), random.Random(3), []
    child.wait_for(b"tokens", 10.0)
    for _ in range(KEYS // DRAFT):
        child.press(b"\x15")  # a new draft: the old one would fill the line
        child.wait_for(b"never", 0.05)
        draft = b"> "
        for number in range(DRAFT):
            key = bytes([0x61 + number])
            draft += key
            pressed = time.monotonic()
            child.press(key)
            echoes.append(time.monotonic() - pressed if child.wait_for(draft, 1.0) else 1.0)
            child.wait_for(b"never", chance.uniform(0.005, 0.03))
    child.press(b"\r")
    child.rest()
    return echoes


def main() -> None:
    if len(sys.argv) > 1:
        child(sys.argv[1])
        return
    taken = streamed_tokens()
    for name in ("rendered", "redacted"):
        told = f"CPU raw {taken['raw']:.3f} s, {name} {taken[name]:.3f} s: {taken[name] / taken['raw']:.2f} times"
        print(f"{TOKENS:,} tokens of {CHARACTERS} characters: {told}")
    echoes = sorted(1000 * seconds for seconds in key_echo())
    print(
        f"a key echoed during a flood: median {statistics.median(echoes):.1f} ms, "
        f"95 of 100 within {echoes[len(echoes) * 95 // 100]:.1f} ms, all within {echoes[-1]:.1f} ms"
    )


if __name__ == "__main__":
    main()

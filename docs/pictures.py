"""Make the pictures of the README and the recording: the real program is played at a pseudo-terminal, nothing is drawn by hand.

Usage: python docs/pictures.py PROGRAM [HOME]. PROGRAM is an installed `harness`, HOME the home folder of the person who is
played (it is made if there is none). Writes docs/*.svg and docs/demo.cast (asciicast v2, as `asciinema play` takes it).
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS, LINES = 100, 32
_SGR = re.compile(r"\x1b\[[0-9;]*m")
SECONDS = 30.0
"""How long anything is waited for."""
ASKED = "[?] help"
"""The last of the keys of a question."""
READING_SECONDS = 1.2
"""How long the person who is played looks before a key is pressed."""
_COLOURS = {"brown": "yellow"}
"""Names of pyte that rich does not know."""


class Step(NamedTuple):
    """What is waited for, the key that is pressed then, and the picture that is taken before it."""

    wait_for: str
    keys: str
    picture: str = ""


class Played:
    """A program at a pseudo-terminal, recorded."""

    def __init__(self, command: Sequence[str], home: str, folder: str) -> None:
        self.events: list[tuple[float, str]] = []
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=10_000)
        self._stream = pyte.Stream(self._screen)
        self._seen = 0
        self._started = time.monotonic()
        pid, self._terminal = pty.fork()
        if not pid:
            os.chdir(folder)
            # First in PATH, so that it names itself `harness`, and no folder of this machine.
            path = f"{os.path.dirname(command[0])}:{os.environ['PATH']}"
            environment = {"PATH": path, "HOME": home, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
            os.execve(command[0], list(command), environment)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def play(self, steps: Sequence[Step]) -> None:
        """Take the steps in turn, and read to the end of the program."""
        for step in steps:
            self._read(until=lambda wanted=step.wait_for: wanted in _SGR.sub("", self._new()))  # type: ignore[misc]
            self._seen = len(self._written())
            self._read(seconds=READING_SECONDS)
            if step.picture:
                self.picture(step.picture)
            os.write(self._terminal, step.keys.encode())
        self._read(until=lambda: False)

    def picture(self, name: str) -> None:
        """Write what is on the screen as SVG."""
        console = Console(width=COLUMNS, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
        rows = [self._row(y) for y in range(LINES)]
        while rows and not rows[-1].plain.strip():
            rows.pop()
        for row in rows:
            console.print(row, no_wrap=True, overflow="ignore", crop=False)
        # Without the fonts that it would fetch from elsewhere.
        before, _, rest = CONSOLE_SVG_FORMAT.partition("    @font-face")
        plain = before + rest[rest.rindex("@font-face") :].partition("}}")[2]
        svg = console.export_svg(title=name.replace("-", " "), code_format=plain, unique_id=name)
        with open(os.path.join(HERE, f"{name}.svg"), "w", encoding="utf-8") as file:
            file.write("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")

    def save(self, name: str) -> None:
        """Write the recording (https://docs.asciinema.org/manual/asciicast/v2/)."""
        header = {"version": 2, "width": COLUMNS, "height": LINES, "env": {"TERM": "xterm-256color"}}
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(header) + "\n")
            file.writelines(json.dumps([round(at, 3), "o", text]) + "\n" for at, text in self.events)

    def _row(self, y: int) -> Text:
        text = Text()
        line = self._screen.buffer[y]
        for x in range(COLUMNS):
            cell = line[x]
            colour = None if cell.fg == "default" else _COLOURS.get(cell.fg, cell.fg)
            if colour is not None and len(colour) == 6 and all(one in "0123456789abcdef" for one in colour):
                colour = f"#{colour}"
            elif colour is not None and colour.startswith("bright"):
                colour = f"bright_{_COLOURS.get(colour[6:], colour[6:])}"
            style = Style(color=colour, bold=cell.bold, italic=cell.italics, reverse=cell.reverse)
            text.append(cell.data, style)
        text.rstrip()
        return text

    def _written(self) -> str:
        return "".join(text for _, text in self.events)

    def _new(self) -> str:
        return self._written()[self._seen :]

    def _read(self, *, until: Callable[[], bool] | None = None, seconds: float = SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while until is None or not until():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._terminal], [], [], left)[0]:
                if until is None:
                    return
                raise SystemExit(f"it did not come:\n{self._new()}")
            try:
                data = os.read(self._terminal, 65_536)
            except OSError:
                return
            text = data.decode("utf-8", "replace")
            self.events.append((time.monotonic() - self._started, text))
            self._stream.feed(text)


def main(arguments: Sequence[str]) -> None:
    program = os.path.abspath(arguments[0])
    home = arguments[1] if len(arguments) > 1 else os.path.expanduser("~")
    folder = os.path.join(home, "project")
    os.makedirs(folder, exist_ok=True)
    demo = Played([program, "demo"], home, folder)
    demo.play(
        [
            Step(ASKED, "y", picture="question"),
            Step(ASKED, "y", picture="demo"),
            Step(ASKED, "n"),
        ]
    )
    demo.save("demo.cast")


if __name__ == "__main__":
    main(sys.argv[1:])

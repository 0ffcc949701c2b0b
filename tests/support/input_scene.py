"""A program that reads lines and nothing else, played on a pseudo-terminal: what it read is compared exactly."""

from __future__ import annotations

import json
import os
import re
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from places import ROOT
from screen_scene import ENTER_KEY, SECONDS, PlayedTerminal

PROGRAM = """
import json, os, sys
from harness.terminal.console import look_of
from harness.terminal.completion import Offered
from harness.terminal.file_names import FileIndex
from harness.terminal.key_panel import KeyWords
from harness.terminal.line_history import KeptHistory
from harness.terminal.prompt_line import PromptLine
from harness.app.repl.status_line import Status, status_parts
from harness.record import replace
from harness.redaction.redactor import Redactor

told, options = sys.argv[1], json.loads(sys.argv[2])
look = look_of(sys.stdout, os.environ, ascii_only=options.get("ascii", False),
               screen_reader=options.get("screen_reader", False))
status = Status(model="model-1", policy="default", grants=2, loosened=tuple(options.get("loosened", ())))
def tell(text):
    with open(told, "a") as file:
        file.write(json.dumps(text) + "\\n")
files = FileIndex(os.getcwd(), os.environ)
files.first_seconds = options.get("first_seconds", 60.0)
line = PromptLine(
    history=KeptHistory(os.path.join(os.getcwd(), "state", "history"), Redactor(["s3cr3t-value-0815"])),
    commands=lambda: [("/help", "what there is"), ("/history", "lines"), ("/model", "show or switch")],
    files=files.matches,
    offers=lambda: {
        "/model": lambda: [Offered(text=name, label=name, description=about) for name, about in options.get("models", ())]
    },
    keys=[KeyWords(key=key, does=does) for key, does in (("Enter", "send"), ("Tab", "choose"), ("Alt-Enter", "a new line"))],
    vi=options.get("vi", False), look=look, environment=os.environ,
    next_mode=lambda: tell("next mode"),
    toolbar=lambda hint, vi: status_parts(replace(status, hint=hint, vi=vi), os.get_terminal_size(sys.stdout.fileno()).columns),
)
default, before = options.get("default", ""), lambda: tell({"ready": True})
while True:
    try:
        tell(line.read(default=default, pre_run=before))
    except (EOFError, KeyboardInterrupt) as error:
        tell({"raised": type(error).__name__})
        if isinstance(error, EOFError):
            break
    default, before = "", None
"""


class PlayedLine(PlayedTerminal):
    """The program in a folder, its first prompt on the screen."""

    def __init__(
        self,
        folder: Path,
        *,
        columns: int = 80,
        lines: int = 24,
        variables: Mapping[str, str] | None = None,
        prompt: str = "> ",
        shell: bool = False,
        **options: object,
    ) -> None:
        self._paints = (variables or {}).get("TERM") != "dumb" and not options.get("screen_reader")
        self._prompt = prompt
        self._told_in = folder / "told.jsonl"
        self._told_in.unlink(missing_ok=True)
        script = folder / "reader.py"
        script.write_text(PROGRAM)
        command = [sys.executable, str(script), str(self._told_in), json.dumps(options)]
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "TERM": "xterm-256color", "PS1": "ready$ ",
            "PYTHONPATH": ROOT, "TMPDIR": str(folder), **(variables or {}),
        }  # fmt: skip
        start = ["bash", "--norc", "--noprofile", "-i"] if shell else command
        super().__init__(start, columns=columns, lines=lines, cwd=folder, environment=environment)
        try:
            if shell:
                self.wait_for("ready$")
                self.send(" ".join(f"'{word}'" for word in command) + "\r")
            self.wait_until_told([{"ready": True}])
            self.wait_for(prompt.rstrip())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    @property
    def told(self) -> list[object]:
        """What the program read, and how reading ended otherwise."""
        if not self._told_in.exists():
            return []
        return [json.loads(line) for line in self._told_in.read_text().split("\n")[:-1]]

    def wait_until_told(self, texts: Sequence[object]) -> None:
        """Wait until the program has told just this since it began."""
        end = time.monotonic() + SECONDS
        while self.told != list(texts):
            if time.monotonic() > end or self.ended:
                told, rows = self.told, "\n".join(self.rows()[-30:])
                if told == list(texts):
                    return  # by now
                raise AssertionError(f"read {str(told)[-400:]}, not {str(list(texts))[-400:]}; on the screen:\n{rows}")
            time.sleep(0.01)

    def reads(self, keys: str, *texts: object) -> None:
        """Press keys, and see what was read: this and nothing else. Enter behind other keys is no paste."""
        before = self.told
        self.send(_ENTERS.sub(ENTER_KEY, keys) if self._paints else keys)
        self.wait_until_told([*before, *texts])
        self.wait_ready()

    def stands(self, keys: str, before: str, after: str = "") -> None:
        """Press keys, and wait until just this stands before and after the cursor in its row: they were taken."""
        self.send(keys)
        self.wait_until(
            lambda: (self.before_cursor(), self.cursor_row()) == (before, (before + after).rstrip()),
            f"the line is not {before!r} {after!r}",
        )

    def wait_ready(self) -> None:
        """Wait until the next line is read, or the program ended: in between the terminal does with keys what it likes.

        Where nothing is painted the terminal itself echoes the keys, also those that come before the prompt.
        """
        if not self._paints:
            self.wait_until(lambda: self.ended or self.before_cursor().endswith(self._prompt), "no prompt")
            return
        end = time.monotonic() + SECONDS
        while not self.ended and termios.tcgetattr(self._fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "no line is read any more"
            time.sleep(0.005)


_ENTERS = re.compile(r"(?<!\x1b)\r(?!(?:.(?!\x1b\[200~))*\x1b\[201~)", re.DOTALL)
"""Every Enter outside of a paste."""


NO_KEYS = {
    "focus comes": "\x1b[I",
    "focus goes": "\x1b[O",
    "mouse, SGR": "\x1b[<0;12;7M",
    "mouse, X10": "\x1b[M !!",
    "mouse, urxvt": "\x1b[96;14;13M",
    "the cursor's position": "\x1b[31;1R",
    "device attributes": "\x1b[?62;22c",
    "a mode": "\x1b[?2026;2$y",
    "a colour scheme": "\x1b[?997;1n",
    "a size": "\x1b[8;24;80t",
    "a colour, ended by ST": "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
    "a colour, ended by BEL": "\x1b]11;rgb:ffff/ffff/ffff\x07",
    "a version": "\x1bP>|XTerm(380)\x1b\\",
    "an answer about a picture": "\x1b_Gi=31;OK\x1b\\",
    "the end of a paste": "\x1b[201~",
    "the release of a key": "\x1b[97;1:3u",
    "the release of an arrow": "\x1b[1;1:3A",
    "Caps Lock": "\x1b[57358u",
    "Super and a letter": "\x1b[97;9u",
    "a key of Windows": "\x1b[65;30;97;1;0;1_",
    "a key of tomorrow": "\x1b[?1;2;3:4 !z",
    "a key of Linux": "\x1b[[A",
    "a key of rxvt": "\x1b[3$",
    "Ctrl-F5": "\x1b[15;5~",
}
"""What a terminal may send that is no key of the line, by name."""

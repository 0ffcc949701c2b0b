"""The prompt, played: started in a pseudo-terminal against a script, with a dead time that is as short as it may be."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from screen_scene import CTRL_U, ENTER, ESC, SECONDS, PlayedTerminal

from harness.models.scripted import ModelScript

if TYPE_CHECKING:
    from program import Program

DEAD_SECONDS = 0.15
AGAIN_SECONDS = 10.0
"""After so long a key that shows nothing is taken to have been dropped."""
WIDE = 400
"""Columns of a terminal in which no path of a test breaks a line."""
CONFIG = f"[terminal]\ndead_seconds = {DEAD_SECONDS}\n"

Start = Callable[..., "Prompt"]


AFTER_ANSWER_SECONDS = 1.1
"""A short word with Enter that comes sooner after an answer belongs to the answer."""


class Prompt(PlayedTerminal):
    """The prompt at a terminal."""

    answered = False
    """Whether no line was typed since the last answer."""

    def wait_prompt(self) -> None:
        """Wait until the prompt waits, with nothing in its line."""
        self.wait_until(lambda: self.cursor_row() in (">", "edits>", "plan>"), "no prompt")

    def type(self, line: str) -> None:
        """Type a line at the prompt, and send it."""
        self.write(line)
        self.send(ENTER)

    def write(self, line: str) -> None:
        """Type a line at the prompt, and wait until it stands there: no key of it is typed ahead."""
        self.wait_prompt()
        if self.answered and line.isalpha():
            time.sleep(AFTER_ANSWER_SECONDS)  # the prompt is there: the answer came before
        self.answered = False
        self.send(line)
        end = line[-8:].rstrip()
        self.wait_until(lambda: self.cursor_row().endswith(end), f"{line!r} is not in the line")

    def say(self, line: str, expected: str) -> None:
        """Type a line, and wait for a text that was there less often before, the line itself aside."""
        self.write(line)
        before = self.unwrapped().count(expected)
        self.send(ENTER)
        self.wait_count(expected, before + 1)

    def ask(self, line: str, answer: str) -> None:
        """Say something to the model, and wait for the end of the turn."""
        turns = self._turns()
        self.type(line)
        self.wait_for(answer)
        self.wait_until(lambda: self._turns() > turns, "the turn did not end")

    def _turns(self) -> int:
        """Return how many turns have ended, by the line that each leaves; the status line tells of tokens, too."""
        return len(re.findall(r"^\(\d+ requests?, .* tokens in, ", self.unwrapped(), re.MULTILINE))

    def press(self, tool: str, key: str, *, times: int = 1) -> None:
        """Wait until `tool` asks for the `times`th time, and answer with one key once keys count."""
        self.wait_question(tool, times)
        self.wait_keys()
        self.send(key)
        self.answered = True

    def show_again(self, tool: str) -> None:
        """Have a question shown once more, and wait until keys count: what is dropped in silence shows nothing, also no end.

        The key is dropped itself where it comes too early; then it is pressed again.
        """
        times = self.questions(tool)
        end = time.monotonic() + SECONDS
        while self.questions(tool) == times:
            assert time.monotonic() < end, "the question is not shown again"
            time.sleep(DEAD_SECONDS + 0.3)
            self.send("v")
            try:
                self.wait_question(tool, times + 1, seconds=AGAIN_SECONDS)
            except AssertionError:
                continue
        self.wait_keys()

    def close_menu(self) -> None:
        """Wait until a command has opened its menu, and close that: sooner, the key goes to the line before.

        A menu that was there while the command was typed does not count: in this one a blank follows the command.
        """
        self.wait_until(
            lambda: (
                re.search(r"/\w+ $", self.before_cursor()) is not None and "Esc closes" in "\n".join(self.display())
            ),
            "no menu",
        )
        self.send(ESC)
        self.wait_prompt()

    def go_back(self, shown: str) -> None:
        """Press Esc twice, until the menu of earlier messages shows a text: again, where the two came too far apart."""
        end = time.monotonic() + SECONDS
        while shown not in self.text():
            assert time.monotonic() < end, "no menu of earlier messages"
            self.send(ESC)
            time.sleep(0.2)  # read at once, they are another key
            self.send(ESC)
            with suppress(AssertionError):
                self.wait_for(shown, seconds=AGAIN_SECONDS)

    def clear(self, line: str) -> None:
        """Wait until the prompt waits with this in its line, and delete it."""
        self.wait_until(lambda: self.cursor_row().endswith(f"> {line}"), f"{line!r} is not in the line")
        self.send(CTRL_U)
        self.wait_prompt()

    def leave(self) -> int | None:
        """Leave, and return the exit code."""
        self.type("/exit")
        return self.exit_code()


def write_config(program: Program, text: str = CONFIG) -> None:
    """Write the person's configuration."""
    folder = os.path.join(program.environment["XDG_CONFIG_HOME"], "harness")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "config.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o600)


@contextmanager
def prompts(program: Program, config: str | None = CONFIG) -> Iterator[Start]:
    """Give what starts the prompt against a script; all that were started are ended.

    `config` is what the person configured, None: nothing.
    """
    if config is not None:
        write_config(program, config)
    with ExitStack() as stack:

        def start(
            script: ModelScript,
            *flags: str,
            columns: int = 120,
            lines: int = 50,
            before: Callable[[Prompt], None] | None = None,
            waits_for: str = "/help for help",
            ahead: str = "",
        ) -> Prompt:
            arguments = ("--base-url", program.serve(script), "--model", "scripted", *flags)
            played = Prompt(
                program.command(*arguments),
                columns=columns,
                lines=lines,
                cwd=program.workspace,
                environment=program.environment,
                ahead=ahead,
            )
            stack.enter_context(played)
            if before is not None:
                before(played)
            played.wait_for(waits_for)
            return played

        yield start

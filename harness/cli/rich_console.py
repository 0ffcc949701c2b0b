"""RichConsole: the console of interactive sessions, with rich for width, wrapping and colour; text is data, never markup."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console as Renderer
from rich.rule import Rule
from rich.text import Text

from harness.cli.console import Console
from harness.cli.trace import Tone
from harness.redaction.redactor import Redactor
from harness.visible import visible, visible_line

_STYLES = {Tone.PLAIN: "", Tone.QUIET: "dim", Tone.GOOD: "green", Tone.WARNING: "yellow", Tone.BAD: "bold red"}


class _Renderer(Renderer):
    def on_broken_pipe(self) -> None:
        """Raise like every other writer: rich would end the program here, in the middle of a run."""
        raise BrokenPipeError


class RichConsole(Console):
    """A console on a terminal."""

    def __init__(self, stream: TextIO, *, colour: bool, redactor: Redactor | None = None) -> None:
        super().__init__(stream, colour=colour, redactor=redactor)
        self._renderer = _Renderer(file=stream, no_color=not colour, highlight=False, markup=False, emoji=False)

    def line(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write one or more whole lines, wrapped at the terminal's width."""
        self.end_text()
        # Made safe before rich sees it: rich passes terminal escapes through, even with markup off.
        self._print(Text(visible(text), style=_STYLES[tone]), soft_wrap=True)

    def rule(self, title: str) -> None:
        """Write a line across the terminal with a title in it."""
        self.end_text()
        characters = "-" if self._renderer.options.ascii_only else "─"
        self._print(Rule(Text(visible_line(title, 60)), align="left", characters=characters, style="dim"))

    def _print(self, shown: Text | Rule, *, soft_wrap: bool = False) -> None:
        try:
            self._renderer.print(shown, soft_wrap=soft_wrap)
        except (OSError, ValueError):
            self.give_up()
            self._renderer.quiet = True

"""Every colour and sign that the terminal draws with."""

from __future__ import annotations

from enum import Enum

from harness.record import Record


class Tone(Enum):
    """How a line is meant; colour is only ever added to words that say the same."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Line(Record):
    """One line of the program, without colour."""

    tone: Tone
    text: str


class Signs(Record):
    """What is drawn besides text."""

    answer: str
    """At the first line of what the model says."""
    bullet: str
    rule: str
    broken: str
    """Before the rest of a line of code that was too long."""
    spinner: str
    """One of them at a time."""


UNICODE = Signs(answer="●", bullet="•", rule="─", broken="↪ ", spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
ASCII = Signs(answer="*", bullet="-", rule="-", broken="\\ ", spinner="|/-\\")


def signs(*, ascii_only: bool) -> Signs:
    """Return the signs that the terminal can show."""
    return ASCII if ascii_only else UNICODE


TONES = {Tone.PLAIN: "", Tone.QUIET: "\x1b[2m", Tone.GOOD: "\x1b[32m", Tone.WARNING: "\x1b[33m", Tone.BAD: "\x1b[1;31m"}
"""Of the program's own lines (SGR, ECMA-48 8.3.117)."""

MARKDOWN = {
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "bold",
    "markdown.h6": "bold",
    "markdown.strong": "bold",
    "markdown.em": "italic",
    "markdown.s": "strike",
    "markdown.code": "cyan",
    "markdown.url": "underline",
    "markdown.block_quote": "none",
    "markdown.item": "none",
    "markdown.table.header": "bold",
    "markdown.table.border": "none",
}
"""Of what the model says: names of rich's theme."""
CODE = "ansi_dark"
"""The theme of code: it is made of the terminal's own sixteen colours."""

TOOLBAR = {
    Tone.PLAIN: "dim",
    Tone.QUIET: "dim",
    Tone.GOOD: "ansigreen",
    Tone.WARNING: "ansiyellow bold",
    Tone.BAD: "reverse bold underline",
}
"""Of the status line below the prompt, as prompt_toolkit writes styles."""
TOOLBAR_RED = "bg:ansired fg:ansiwhite bold"
"""In the place of the last one where there are colours."""
PROMPT_STYLES = {
    "hidden-character": "reverse",
    "folded": "underline",
    "bottom-toolbar": "noreverse",
    "keys.key": "bold",
    "completion-menu": "bg:default fg:default",
    "completion-menu.completion": "ansicyan",
    "completion-menu.completion.current": "bg:default fg:default reverse bold",
    "completion-menu.meta.completion": "bg:default fg:default dim",
    "completion-menu.meta.completion.current": "bg:default fg:default",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:ansibrightblack",
}
"""Of the prompt itself."""

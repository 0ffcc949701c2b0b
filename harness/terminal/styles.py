"""All colours and signs for drawing on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from harness.record import Record, replace


class Tone(Enum):
    """The meaning of a line, which determines its colour. The words of the line must express the same meaning."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Line(Record):
    """One line of output, with a tone instead of colours."""

    tone: Tone
    text: str
    quiet: str = ""
    """The end of `text` that is less important, if there is one."""
    command: str = ""
    """A command to copy, on an unbroken row below the line. Empty without one."""


class Signs(Record):
    """Signs for drawing, in addition to text."""

    answer: str
    """Sign of the model's first line."""
    bullet: str
    rule: str
    quote: str
    """Sign before each line of a quote if there are colours. Without colours, `>` is used."""
    broken: str
    """Sign before the rest of a line of code that was too long."""
    spinner: str
    """Frames of the spinner: one sign is shown at a time."""


UNICODE = Signs(answer="●", bullet="•", rule="─", quote="▎", broken="↪ ", spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
ASCII = Signs(answer="*", bullet="-", rule="-", quote=">", broken="\\ ", spinner="|/-\\")


def signs(*, ascii_only: bool) -> Signs:
    """Return the signs that the terminal can show."""
    return ASCII if ascii_only else UNICODE


class Ink(Enum):
    """Meaning of a part of a row, which decides its colour."""

    STRONG = "strong"
    """The most important part."""
    KEYWORD = "keyword"
    NAME = "name"
    """Name of a function or class at its definition, or of a tag."""
    TYPE = "type"
    STRING = "string"
    NUMBER = "number"
    COMMENT = "comment"
    ADDED = "added"
    """Words that are in an added line, but not in the removed one."""
    REMOVED = "removed"


class Fill(Enum):
    """Background of a row, after its first two columns."""

    CODE = "code"
    ADDED = "added"
    REMOVED = "removed"


class Palette(Record):
    """All colours, as parameters of an SGR sequence (ECMA-48, 8.3.117). No meaning is expressed by colour alone.

    INVARIANT: each background comes with a text colour from the same table, so that text is readable on any terminal.
    """

    tones: Mapping[Tone, str]
    inks: Mapping[Ink, str]
    fills: Mapping[Fill, str]
    heading: str = "magenta"
    """Colour of headings and quotes in an answer, in rich's notation. `code` is the colour of inline code."""
    code: str = "cyan"
    fills_background: bool = True
    """Whether fills colour the background. Otherwise they colour the whole text of a changed line."""


_TONES = {Tone.PLAIN: "", Tone.QUIET: "2", Tone.GOOD: "32", Tone.WARNING: "33", Tone.BAD: "1;31"}
_DARK_INKS = {
    Ink.STRONG: "1",
    Ink.KEYWORD: "38;5;111",
    Ink.NAME: "38;5;222",
    Ink.TYPE: "38;5;116",
    Ink.STRING: "38;5;150",
    Ink.NUMBER: "38;5;180",
    Ink.COMMENT: "38;5;246",
    Ink.ADDED: "38;5;231;48;5;28",
    Ink.REMOVED: "38;5;231;48;5;88",
}
_DARK_FILLS = {
    Fill.CODE: "38;5;252;48;5;236",
    Fill.ADDED: "38;5;255;48;5;22",
    Fill.REMOVED: "38;5;255;48;5;52",
}
_TRUE_FILLS = {Fill.ADDED: "38;5;255;48;2;8;48;16", Fill.REMOVED: "38;5;255;48;2;64;12;16"}
"""Backgrounds for terminals with true colour. The greens among the 256 colours are too bright behind some text."""
_TRUE_INKS = {Ink.ADDED: "38;5;231;48;2;16;96;32", Ink.REMOVED: "38;5;231;48;2;128;24;32"}
_LIGHT_INKS = {
    Ink.STRONG: "1",
    Ink.KEYWORD: "38;5;25",
    Ink.NAME: "38;5;90",
    Ink.TYPE: "38;5;24",
    Ink.STRING: "38;5;22",
    Ink.NUMBER: "38;5;94",
    Ink.COMMENT: "38;5;241",
    Ink.ADDED: "38;5;16;48;5;157",
    Ink.REMOVED: "38;5;16;48;5;217",
}
_LIGHT_FILLS = {
    Fill.CODE: "38;5;235;48;5;255",
    Fill.ADDED: "38;5;16;48;5;194",
    Fill.REMOVED: "38;5;16;48;5;224",
}
SIXTEEN = Palette(
    tones=_TONES,
    inks={
        Ink.STRONG: "1",
        Ink.KEYWORD: "34",
        Ink.NAME: "1",
        Ink.TYPE: "36",
        Ink.STRING: "32",
        Ink.NUMBER: "35",
        Ink.COMMENT: "2",
        Ink.ADDED: "7",
        Ink.REMOVED: "7",
    },
    fills={Fill.CODE: "", Fill.ADDED: "32", Fill.REMOVED: "31"},
    fills_background=False,
)
"""The terminal's own sixteen colours, which its user has chosen to suit the background."""
DARK = Palette(
    tones={**_TONES, Tone.GOOD: "38;5;114", Tone.WARNING: "38;5;221", Tone.BAD: "1;38;5;210"},
    inks=_DARK_INKS,
    fills=_DARK_FILLS,
    heading="color(183)",
    code="color(116)",
)
LIGHT = Palette(
    tones={**_TONES, Tone.GOOD: "38;5;28", Tone.WARNING: "38;5;130", Tone.BAD: "1;38;5;160"},
    inks=_LIGHT_INKS,
    fills=_LIGHT_FILLS,
    heading="color(90)",
    code="color(24)",
)
UNKNOWN = Palette(tones=_TONES, inks=_DARK_INKS, fills=_DARK_FILLS)
"""Palette for an unknown background: the terminal's own colours, and our text colours on our own fills."""

_MANY_COLOURS = ("256", "direct", "kitty", "alacritty", "ghostty", "foot", "wezterm")


def palette_of(theme: str, environment: Mapping[str, str]) -> Palette:
    """Return the colours of a theme for the terminal that the environment describes.

    rxvt, Konsole and iTerm2 set COLORFGBG to their colours. The backgrounds 7 and 15 are light, all others dark.
    """
    term = environment.get("TERM", "")
    if not environment.get("COLORTERM") and not any(word in term for word in _MANY_COLOURS):
        return SIXTEEN
    if theme == "auto":
        ground = environment.get("COLORFGBG", "").rpartition(";")[2]
        theme = "" if not ground.isdecimal() else "light" if ground in ("7", "15") else "dark"
    palette = {"dark": DARK, "light": LIGHT}.get(theme, UNKNOWN)
    if palette is LIGHT or environment.get("COLORTERM") not in ("truecolor", "24bit"):
        return palette
    return with_true_colours(palette)


def with_true_colours(palette: Palette) -> Palette:
    """Return a palette for dark backgrounds with the true colours of fills and marks."""
    return replace(palette, inks={**palette.inks, **_TRUE_INKS}, fills={**palette.fills, **_TRUE_FILLS})


def rich_styles(palette: Palette) -> dict[str, str]:
    """Return the styles of rich's theme, by name."""
    return {
        **dict.fromkeys(("bar.complete", "bar.finished", "bar.pulse", "progress.spinner"), "green"),
        "bar.back": "dim",
        "progress.elapsed": "none",
        "table.header": "bold",
        "table.border": "dim",
        "markdown.h1": f"bold underline {palette.heading}",
        "markdown.h2": f"bold {palette.heading}",
        "markdown.h3": "bold",
        "markdown.h4": "bold italic",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.strong": "bold",
        "markdown.em": "italic",
        "markdown.s": "strike",
        "markdown.code": palette.code,
        "markdown.url": "underline",
        "markdown.quote": palette.heading,
        "markdown.block_quote": "none",
        "markdown.item": "none",
    }


TOOLBAR = {
    Tone.PLAIN: "dim",
    Tone.QUIET: "dim",
    Tone.GOOD: "ansigreen",
    Tone.WARNING: "ansiyellow bold",
    Tone.BAD: "reverse bold underline",
}
"""Styles of the status line below the prompt, in prompt_toolkit's notation."""
TOOLBAR_RED = "bg:ansired fg:ansiwhite bold"
"""Style for `Tone.BAD` instead of the one above, on a terminal with colours."""
PROMPT_STYLES = {
    "hidden-character": "reverse",
    "folded": "underline",
    "sent": "bold",
    "bottom-toolbar": "noreverse",
    "keys.key": "bold",
    "completion-menu": "bg:default fg:default",
    "completion-menu.completion": "ansicyan",
    "completion-menu.completion.current": "bg:default fg:default reverse bold",
    "completion-menu.meta.completion": "bg:default fg:default dim",
    "completion-menu.meta.completion.current": "bg:default fg:default",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:default",
}
"""Styles of the prompt itself."""

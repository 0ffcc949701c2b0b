"""Every colour and sign that the terminal draws with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from harness.record import Record, replace


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
    quote: str
    """Before each line of a quote, where there are colours; else it is as it was written."""
    broken: str
    """Before the rest of a line of code that was too long."""
    spinner: str
    """One of them at a time."""


UNICODE = Signs(answer="●", bullet="•", rule="─", quote="▎", broken="↪ ", spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
ASCII = Signs(answer="*", bullet="-", rule="-", quote=">", broken="\\ ", spinner="|/-\\")


def signs(*, ascii_only: bool) -> Signs:
    """Return the signs that the terminal can show."""
    return ASCII if ascii_only else UNICODE


class Ink(Enum):
    """What a part of a row is: it is coloured by that."""

    STRONG = "strong"
    """What is to be seen first."""
    KEYWORD = "keyword"
    NAME = "name"
    """Of a function or a class, where it is made; of a tag."""
    TYPE = "type"
    STRING = "string"
    NUMBER = "number"
    COMMENT = "comment"
    ADDED = "added"
    """Words of an added line that the removed one has not."""
    REMOVED = "removed"


class Fill(Enum):
    """What a row stands on, behind its first two columns."""

    CODE = "code"
    ADDED = "added"
    REMOVED = "removed"


class Palette(Record):
    """The colours of everything, each as the parameters of an SGR sequence (ECMA-48, 8.3.117); no text is told by them alone.

    INVARIANT: what stands on a ground has a letter's colour of the same table, so that it can be read on any terminal.
    """

    tones: Mapping[Tone, str]
    inks: Mapping[Ink, str]
    fills: Mapping[Fill, str]
    heading: str = "magenta"
    """Of the headings and quotes of an answer, as rich writes colours; likewise `code`, of words in it that are code."""
    code: str = "cyan"
    behind: bool = True
    """Whether the fills colour what is behind the letters; else a line that changed has one colour for all of it."""


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
"""Where the terminal has them: of the 256 colours no green is so dark that every letter stands out."""
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
    behind=False,
)
"""The terminal's own sixteen colours, which its user has chosen for its ground."""
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
"""Where nobody says what the ground is: the terminal's own colours, and on fills of our own the letters' as well."""

_MANY_COLOURS = ("256", "direct", "kitty", "alacritty", "ghostty", "foot", "wezterm")


def palette_of(theme: str, environment: Mapping[str, str]) -> Palette:
    """Return the colours of a theme on the terminal that the environment tells of.

    COLORFGBG is what rxvt, Konsole and iTerm2 say of their colours: 7 and 15 are light fills, all others dark.
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
    """Return a palette for dark grounds on a terminal that has more than 256 colours."""
    return replace(palette, inks={**palette.inks, **_TRUE_INKS}, fills={**palette.fills, **_TRUE_FILLS})


def rich_styles(palette: Palette) -> dict[str, str]:
    """Return how what rich draws is coloured, by the names of its theme."""
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
"""Of the status line below the prompt, as prompt_toolkit writes styles."""
TOOLBAR_RED = "bg:ansired fg:ansiwhite bold"
"""In the place of the last one where there are colours."""
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
"""Of the prompt itself."""

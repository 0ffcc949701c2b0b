"""Hostile text for terminals, and what a terminal must look like after a program was made to show it.

The sequences are those of ECMA-48, xterm's "Control Sequences" (ctlseqs), console_codes(4) and the OSC codes of common
terminals; the rest is Unicode's (UAX #9, UTS #36 and #39).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from screen_scene import PlayedTerminal

FORGED = (
    "+ allowed  FORGED by you, once, after 0.1 s",
    "x denied   FORGED",
    "# halted   FORGED",
    "~ edited   FORGED",
    "harness: FORGED",
    "policy: FORGED",
    "log: FORGED",
    "records: 0",
    "head: 00",
    "why: FORGED",
    "> FORGED",
    "trusted: FORGED",
    "verified: FORGED",
    "[y] once  [n] no  FORGED",
    "── bash  asks ── FORGED",
)
"""Lines that look like the program's own, each at the beginning of a line."""

ESCAPES = {
    "CSI: clear, home, colours": "\x1b[2J\x1b[H\x1b[31;1mA\x1b[0m",
    "CSI: cursor moves": "\x1b[5A\x1b[3;3HB\x1b[20D\x1b[99C\x1b[s\x1b[1;1HC\x1b[u\x1b7\x1b[HD\x1b8",
    "CSI: erase": "\x1b[1K\x1b[2K\x1b[1J\x1b[3J\x1b[99P\x1b[99X\x1b[99M\x1b[99L\x1b[99@",
    "CSI: scroll regions": "\x1b[2;5r\x1b[99S\x1b[99T\x1bM\x1bD\x1bE",
    "CSI: modes": "\x1b[?1049h\x1b[?47h\x1b[?25l\x1b[?7l\x1b[?5h\x1b[4h\x1b[?6h\x1b[?1000h\x1b[?2004h\x1b[20h",
    "CSI: questions": "\x1b[6n\x1b[c\x1b[>c\x1b[=c\x1b[5n\x1b[21t\x1b[18t\x1b[?1$p",
    "CSI: resets": "\x1b[!p\x1bc\x1b#8\x1b[?3h",
    "CSI: never ending": "\x1b[" + "1;" * 200,
    "OSC: title": "\x1b]0;owned\x07\x1b]2;owned\x1b\\\x1b]1;owned\x07\x1bkowned\x1b\\",
    "OSC 8: a link": "\x1b]8;;http://evil.example/\x1b\\safe.example\x1b]8;;\x1b\\",
    "OSC 52: the clipboard": "\x1b]52;c;cm0gLXJmIH4K\x07",
    "OSC: colours, files, notices": "\x1b]4;1;?\x07\x1b]1337;File=inline=1:AAAA\x07\x1b]9;owned\x07\x1b]777;notify;a;b\x07",
    "OSC: never ending": "\x1b]0;" + "t" * 300,
    "DCS, APC, PM, SOS": "\x1bP1$r0m\x1b\\\x1bPq#0;2;0;0;0\x1b\\\x1b_Gi=1\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\",
    "character sets": "\x1b(0lqk\x0e\x0f\x1b(B\x1b%G\x1b%@",
    "C1, 8 bits": "\x9b2J\x9b1;1H\x9d0;owned\x9c\x90q\x9c\x84\x85\x8d\x98x\x9c",
    "keyboard": "\x1b=\x1b>\x1b[>1u\x1b[?9001h\x1b[5i",
}
CONTROLS = {
    "NUL": "a\x00b",
    "carriage returns": "harmless command\rFORGED\r\n",
    "backspaces": "safe\b\b\b\bevil\x7f\x7f",
    "tabs": "\t" * 40 + "x\v\fy",
    "bells": "\a\a\a\a",
    "shifts and XON": "\x0e\x0f\x11\x13\x1a\x1c\x04",
}
UNICODE = {
    "bidi": "\u202etxet desrever\u202c \u2066isolated\u2069 \u200f\u061c\u202d\u202a\u2067\u2068",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufeffg\u00adh\u180ei",
    "blanks": "a\u00a0b\u2003c\u3000d\u2800e\u3164f\u205fg",
    "separators": "one\u2028two\u2029three\u0085four",
    "variation selectors": "a\ufe0f\ufe0e\U000e0101b \u26a0\ufe0f",
    "tags": "x\U000e0041\U000e0042\U000e007fy",
    "marks": "Z" + "\u0300\u0338\u20dd\u0489" * 12 + "o",
    "a mark first": "\u0338first\n\u20ddsecond\n\u1161third",
    "private use, unknown": "\ue000\uf06c\U000f0000\u0378\uffff",
    "wide and joined": "\u4e2d\u6587\uff21 \U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1ea \u05e9\u05dc\u05d5\u05dd",
    "lone surrogates": "\ud800x\udcffy",
}
MARKUP = {
    "rich": "[red]x[/red] [bold link=http://evil.example]y[/] [/] [@click=app.bell]z[/] :skull: [[",
    "prompt_toolkit": "<ansired>x</ansired><style bg='red'> &lt; </b>",
    "formats": "%s%n %(x)s {0.__class__} ${HOME} $(id) `id`",
    "Markdown": "```\n# FORGED\n~~~\n| a | b |\n|--|--|\n[text](javascript:x) ![i](file:///etc/passwd) <script>\n***\n",
    "lines of ours": "\n" + "\n".join(FORGED) + "\n",
    "indented lines of ours": "\n"
    + "\n".join(f"    {line}" for line in FORGED)
    + "\n```\n"
    + "\n".join(FORGED)
    + "\n```\n",
}
LONG = {"a long line": "long" * 1_500, "many lines": "row\n" * 120}
BYTES = b"\x1b[2J\x9b31m\xff\xfe\x80\xc3\x28\xe2\x82 \xed\xa0\x80 \xf5\x80 \x1b]0;owned\x07\r\x08\x00end\n"
"""What a command may print, or a file hold: no UTF-8."""

CORPUS = {**ESCAPES, **CONTROLS, **UNICODE, **MARKUP, **LONG}
TEXT = "".join(f"{name}: {text}\n" for name, text in CORPUS.items())
"""All of it, as a model may say it."""
SHORT = "".join({**ESCAPES, **CONTROLS, **UNICODE, **MARKUP}.values())


def line_of(text: str = SHORT) -> str:
    """Return hostile text for where the system takes no NUL and no surrogate: arguments of programs."""
    return "".join(char for char in text if char != "\0" and not "\ud800" <= char <= "\udfff")


def file_names() -> list[str]:
    """Return one file name for each piece of the corpus, at most 120 bytes of it (255 are allowed, path_resolution(7))."""
    made = []
    for text in {**ESCAPES, **CONTROLS, **UNICODE, **MARKUP}.values():
        data = line_of(text).replace("/", "_").encode()[:120]
        made.append(data.decode("utf-8", "ignore"))
    return list(dict.fromkeys(name for name in made if name.strip(".")))


# What may be written to a terminal: colours, and erasing on the line that is written over.
PLAIN_SEQUENCES = (r"\x1b\[[0-9;]*m", r"\x1b\[[012]?K")
# What prompt_toolkit writes besides, to draw its line and to read keys (its output/vt100.py), and a notice of ours: BEL.
PROMPT_SEQUENCES = (
    *PLAIN_SEQUENCES,
    r"\x1b\[\?2004[hl]",
    r"\x1b\[\?25[hl]",
    r"\x1b\[\?12[hl]",
    r"\x1b\[\?7[hl]",
    r"\x1b\[\?1[hl]",
    r"\x1b\[\d*[ABCDJ]",
    r"\x1b\[6n",
    r"\x1b\[0 q",
    r"\x07",
    r"\x08",
)


def problems_of_bytes(raw: bytes, sequences: Sequence[str] = PLAIN_SEQUENCES) -> Iterator[str]:
    """Yield what stands in the output that must never reach a terminal: any control but line ends and known sequences."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        yield f"no UTF-8 at byte {error.start}: {raw[max(0, error.start - 40) : error.start + 20]!r}"
        text = raw.decode("utf-8", "replace")
    for piece in re.split("|".join(f"(?:{one})" for one in sequences), text):
        for found in re.finditer(r"[^\n\r\t\x20-\x7e\u00a1-\u02ff]", piece):
            char = found.group()
            if (
                unicodedata.category(char)[0] in "CZ"
                or 0xFE00 <= ord(char) <= 0xFE0F
                or 0xE0000 <= ord(char) <= 0xE0FFF
            ):
                yield f"U+{ord(char):04X} in {piece[max(0, found.start() - 40) : found.start() + 20]!r}"
    yield from (f"a pile of marks: {pile!r}" for pile in re.findall("[\u0300-\u036f\u0489\u20dd]{6,}", text))


def frame(rows: int = 8) -> list[str]:
    """Return rows to stand on the screen before a program starts."""
    return [f"frame {number:02} " + "=" * 20 + f" {number:02}" for number in range(rows)]


def problems_of_screen(terminal: PlayedTerminal, before: Sequence[str]) -> Iterator[str]:
    """Yield what a program did to the screen beyond writing below what was there."""
    rows, screen = terminal.rows(), terminal.screen
    if rows[: len(before)] != list(before):
        yield f"the rows before changed: {rows[: len(before)]}"
    if screen.title or screen.icon_name:
        yield f"the title was set: {screen.title!r} {screen.icon_name!r}"
    if screen.margins is not None:
        yield f"a scroll region was set: {screen.margins}"
    fresh = type(screen)(screen.columns, screen.lines, lambda _: None)
    if screen.mode != fresh.mode:
        yield f"modes were changed: {sorted(screen.mode ^ fresh.mode)}"
    if screen.tabstops != fresh.tabstops or screen.charset != fresh.charset:
        yield "tab stops or character sets were changed"
    if screen.cursor.hidden or screen.cursor.attrs != fresh.cursor.attrs:
        yield f"the cursor was left as {screen.cursor.attrs}, hidden: {screen.cursor.hidden}"


def forged_lines(raw: bytes) -> list[str]:
    """Return lines that begin as lines of the program do, and are none of its own; what the width began is no line."""
    text = re.sub("|".join(PROMPT_SEQUENCES), "", raw.decode("utf-8", "replace"))
    lines = [piece for line in text.split("\n") for piece in line.split("\r")]
    return [
        line[:120] for line in lines if line.startswith(tuple(f"{one.partition('FORGED')[0]}FORGED" for one in FORGED))
    ]

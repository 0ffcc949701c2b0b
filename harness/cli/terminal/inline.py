"""Markdown within a line: emphasis, code, links; pure. Linear in the text, whatever the text is.

Styles become the marks of `marks`, which `painted` turns into colours. Where there is no colour, emphasis and code
keep the signs that they were written with. A link always shows where it leads.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from harness.cli.terminal.row_text import (
    ANY_MARK,
    BOLD,
    CODE,
    ITALIC,
    LINK,
    NOT_BOLD,
    NOT_CODE,
    NOT_ITALIC,
    NOT_LINK,
    NOT_STRUCK,
    STRUCK,
    cells,
    wrapped,
)

# SGR, ECMA-48 8.3.117: each style has a code of its own that ends it, and leaves the others alone.
_STYLES = {BOLD: "1", NOT_BOLD: "22", ITALIC: "3", NOT_ITALIC: "23", CODE: "36", NOT_CODE: "39",
           STRUCK: "9", NOT_STRUCK: "29", LINK: "4", NOT_LINK: "24"}  # fmt: skip
_PAIRS = ((BOLD, NOT_BOLD), (ITALIC, NOT_ITALIC), (CODE, NOT_CODE), (STRUCK, NOT_STRUCK), (LINK, NOT_LINK))
_ESCAPES = tuple((on, off, f"\x1b[{_STYLES[on]}m", f"\x1b[{_STYLES[off]}m") for on, off in _PAIRS)

_ANY_SIGN = re.compile(r"[`*_~\[\]\\<]")
_SIGN = re.compile(r"`[^`]++`(?!`)|`++|\*++|_++|~~++|!?\[|\]|\\[!-/:-@\[-`{-~]|<https?://[^\s<>]++>")
_TICKS = re.compile("`++")
# What follows a link's text; every part ends at a character that no part takes, so that nothing is tried twice.
_TARGET = re.compile(r"""\]\(\s*+((?:[^\s()]++|\([^\s()]*+\))*+(?:\s++"[^"]*+")?+)\s*+\)""")

_EMPHASIS = {
    ("*", 1): (ITALIC, NOT_ITALIC), ("_", 1): (ITALIC, NOT_ITALIC),
    ("*", 2): (BOLD, NOT_BOLD), ("_", 2): (BOLD, NOT_BOLD),
    ("*", 3): (BOLD + ITALIC, NOT_ITALIC + NOT_BOLD), ("_", 3): (BOLD + ITALIC, NOT_ITALIC + NOT_BOLD),
    ("~", 2): (STRUCK, NOT_STRUCK),
}  # fmt: skip


def inline(text: str, *, colour: bool) -> str:
    """Return a line or paragraph with its inline Markdown carried out; `text` is safe to show, and holds no marks."""
    return _Line(text, colour=colour).done() if _ANY_SIGN.search(text) else text


def painted(lines: list[str]) -> list[str]:
    """Return the lines of one paragraph with marks made escapes; each line begins and ends plain."""
    if len(lines) == 1:  # what is switched on in it is switched off in it, too
        return [_escaped(lines[0])] if ANY_MARK.search(lines[0]) else lines
    done, active = [], ""
    for line in lines:
        if not active and not ANY_MARK.search(line):
            done.append(line)
            continue
        before = active
        active = "".join(on for on, off in _PAIRS if _is_on(line, on, off, before))
        done.append(_escaped(before + line) + ("\x1b[0m" if active else ""))
    return done


def _escaped(line: str) -> str:
    for on, off, begins, ends in _ESCAPES:
        if on in line or off in line:
            line = line.replace(on, begins).replace(off, ends)  # a third of the time of `translate`
    return line


def _is_on(line: str, on: str, off: str, before: str) -> bool:
    begun = line.rfind(on)
    if begun < 0 and on not in before:
        return False
    ended = line.rfind(off)
    return begun > ended or (begun == ended and on in before)


class _Line:
    """One text on its way from signs to marks."""

    def __init__(self, text: str, *, colour: bool) -> None:
        self._text = text
        self._colour = colour
        self._out: list[str] = []
        self._open: list[tuple[tuple[str, int], int]] = []
        """Signs that may begin an emphasis, and where they stand in `_out`."""
        self._count: dict[tuple[str, int], int] = {}
        """Of each sign, how often it is in `_open`: what is not there is not looked for."""
        self._brackets: list[int] = []
        self._ticks: dict[int, list[int]] | None = None

    def done(self) -> str:
        text, out, at, code = self._text, self._out, 0, (CODE, NOT_CODE) if self._colour else ("", "")
        while (found := _SIGN.search(text, at)) is not None:
            start, end = found.span()
            sign = found[0]
            if start > at:
                out.append(text[at:start])
            if sign[0] in "*_~":
                self._emphasis(sign, start, end)
                at = end
            elif sign[0] == "`" and sign[1:2] not in ("", "`"):
                out += (code[0], sign, code[1])
                at = end
            else:
                at = self._sign(sign, start, end)
        out.append(text[at:])
        return "".join(out)

    def _sign(self, sign: str, start: int, end: int) -> int:
        """Take in a sign, and return from where to go on."""
        match sign[0]:
            case "`":
                return self._code(sign, start, end)
            case "\\":
                self._out.append(sign[1])
            case "<":
                self._out.append(sign[1:-1])
            case "[" | "!":
                self._brackets.append(len(self._out))
                self._out.append(sign)
            case _:
                return self._link(start, end)
        return end

    def _code(self, sign: str, start: int, end: int) -> int:
        if self._ticks is None:
            self._ticks = {}
            for found in _TICKS.finditer(self._text):
                self._ticks.setdefault(len(found[0]), []).append(found.start())
        places = self._ticks.get(len(sign), [])
        after = bisect_right(places, start)
        if after == len(places):
            self._out.append(sign)
            return end
        close = places[after] + len(sign)
        code = self._text[start:close]
        self._out.append(f"{CODE}{code}{NOT_CODE}" if self._colour else code)
        return close

    def _link(self, start: int, end: int) -> int:
        found = _TARGET.match(self._text, start) if self._brackets else None
        if found is None:
            if self._brackets:
                self._brackets.pop()
            self._out.append("]")
            return end
        opened, target = self._brackets.pop(), found[1].strip("<>")
        plain = len(self._out) == opened + 2 and self._out[opened + 1] == target
        self._out[opened] = ""
        if not plain:
            shown = f"{LINK}{target}{NOT_LINK}" if self._colour else target
            self._out.append(f" ({shown})")
        return found.end()

    def _emphasis(self, sign: str, start: int, end: int) -> None:
        text, key = self._text, (sign[0], len(sign))
        before = text[start - 1] if start else " "
        after = text[end] if end < len(text) else " "
        within = sign[0] == "_" and before.isalnum() and after.isalnum()
        if not self._colour or within or key not in _EMPHASIS:
            self._out.append(sign)
            return
        on, off = _EMPHASIS[key]
        if not before.isspace() and self._count.get(key):
            while True:  # every sign is taken off once at most: linear
                opened, place = self._open.pop()
                self._count[opened] -= 1
                if opened == key:
                    break
            self._out[place] = on
            self._out.append(off)
            return
        if not after.isspace():
            self._open.append((key, len(self._out)))
            self._count[key] = self._count.get(key, 0) + 1
        self._out.append(sign)


LEAST_COLUMN = 8
"""Cells of a column that is narrowed, at least."""
MOST_COLUMNS = 32
"""That are narrowed to fit; a row of more becomes named values."""
_GAP = "  "
_DELIMITERS = re.compile(r"\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+")
_PIPE = re.compile(r"(?<!\\)\|")


def cells_of(row: str) -> list[str]:
    """Return the cells of a row as they are written."""
    row = row.strip()
    row = row.removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _PIPE.split(row)]


def begins_table(header: str, line: str) -> bool:
    """Say whether `line`, below `header`, makes of it the first row of a table."""
    if "-" not in line or "|" not in header + line or not _DELIMITERS.fullmatch(line.strip()):
        return False
    return len(cells_of(line)) == len(cells_of(header))


class Table:
    """Rows that belong together; the first is the header."""

    def __init__(self, header: str, delimiters: str) -> None:
        self._header = cells_of(header)
        self._right = [cell.endswith(":") and not cell.startswith(":") for cell in cells_of(delimiters)]
        self._rows: list[list[str]] = []
        self._begun = False
        self.size = 0
        """Characters in the rows that wait."""

    def add(self, row: str) -> None:
        """Take in a row: what has no column of its own is shown in the last."""
        found, columns = cells_of(row), len(self._header)
        self.size += len(row)
        if len(found) > columns:
            found = [*found[: columns - 1], " | ".join(found[columns - 1 :])]
        self._rows.append(found + [""] * (columns - len(found)))

    def lines(self, room: int, *, colour: bool, line: str) -> list[str]:
        """Return what is to be shown of the rows that came, within `room` cells, and forget them; `line` draws the rule."""
        rows = [[inline(cell, colour=colour) for cell in row] for row in self._rows]
        header = [inline(cell, colour=colour) for cell in self._header]
        self._rows.clear()
        self.size = 0
        first, self._begun = not self._begun, True
        widths = _fit([max(map(cells, column)) for column in zip(header, *rows, strict=True)], room)
        if widths is None:
            return _named(header, rows, room)
        lines = []
        if first:
            strong = [f"{BOLD}{cell}{NOT_BOLD}" for cell in header] if colour else header
            lines = [*self._row(strong, widths), _GAP.join(line * width for width in widths)]
        for row in rows:
            lines += self._row(row, widths)
        return lines

    def _row(self, row: list[str], widths: list[int]) -> list[str]:
        columns = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        tall = max(map(len, columns))
        shown = []
        styled = [painted(column) for column in columns]
        for place in range(tall):
            parts = []
            for column, style, width, right in zip(columns, styled, widths, self._right, strict=True):
                plain, text = (column[place], style[place]) if place < len(column) else ("", "")
                blanks = " " * (width - cells(plain))
                parts.append(blanks + text if right else text + blanks)
            shown.append(_GAP.join(parts).rstrip(" "))
        return shown


def _fit(natural: list[int], room: int) -> list[int] | None:
    """Return the widths of the columns, the widest narrowed alike; None where they would be too narrow."""
    room -= len(_GAP) * (len(natural) - 1)
    natural = [max(1, width) for width in natural]
    if sum(natural) <= room:
        return natural
    if len(natural) > MOST_COLUMNS or sum(min(width, LEAST_COLUMN) for width in natural) > room:
        return None
    low, high = LEAST_COLUMN, max(natural)
    while low < high:  # the largest cap that fits
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(width, middle) for width in natural) <= room else (low, middle - 1)
    if len(natural) > 2 and low < 2 * LEAST_COLUMN and room < 60:
        return None
    return [min(width, low) for width in natural]


def _named(header: list[str], rows: list[list[str]], room: int) -> list[str]:
    lines: list[str] = []
    for number, row in enumerate(rows):
        lines += [""] if number else []
        for name, value in zip(header, row, strict=True):
            first, *rest = painted(wrapped(f"{name}: {value}" if name else value, room, max(1, room - 2)))
            lines += [first, *(f"  {line}" for line in rest)]
    return lines if rows else [" / ".join(header)]

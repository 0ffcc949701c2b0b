"""Markdown as it streams: each block becomes lines when it is finished, in order, once; pure: writes nothing.

What is given out depends on the text alone, not on the pieces in which it came. INVARIANTS: every line begins with blanks
(column 1 is the harness's own), no line is wider than the width, no line begins like the output of a command (`  | `),
and what waits is bounded: a line or a block that does not end is given out in parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.cli.terminal.inline import Table, begins_table, inline, painted
from harness.cli.terminal.row_text import BOLD, NOT_BOLD, pieces, wrapped
from harness.text.visible import visible_prose

BARS = tuple(
    "|\u00a6\u01c0\u2016\u2223\u23ae\u23d0\u2502\u2503\u2551\u258c\u258d\u258e\u258f\u2758\u2759\u275a\ufe31\uff5c\uffe8"
)
"""What a line of text does not begin with where the output of a command has its bar, and what could be taken for it."""

_COLOURS = re.compile(r"\A(?:\x1b\[[0-9;]*+m)++")
FENCE = re.compile(r"(?P<indent> *+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
HEADING = re.compile(r"(#{1,6})(?:\s++(.*))?", re.DOTALL)
RULE = re.compile(r"(?:\*\s*+){3,}+|(?:-\s*+){3,}+|(?:_\s*+){3,}+")
ITEM = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?:\s++(.*))?", re.DOTALL)
UNDERLINE = re.compile(r"={2,}+|-{2,}+")


class Fence:
    """A code block that is open."""

    def __init__(self, fence: str, indent: int, quotes: int, lead: str) -> None:
        self.fence = fence
        self.indent = indent
        self.quotes = quotes
        self.lead = lead
        self._is_plain = not (indent or quotes)

    def holds_as_it_is(self, line: str, columns: int) -> bool:
        """Say whether a line is code that is shown as it stands; a no says nothing."""
        return (
            self._is_plain
            and 0 < len(line) <= columns - len(self.lead)
            and line.isascii()
            and line.isprintable()
            and self.fence not in line
        )

    def is_closed_by(self, line: str) -> bool:
        """Say whether a line is the end of the block."""
        line = line.strip()
        return len(line) >= len(self.fence) and not line.strip(self.fence[0])


def begins_with_bar(line: str) -> bool:
    """Say whether a line that is ready to be shown begins, behind its colours, with a bar or what looks like one."""
    return line.startswith(BARS) or (line.startswith("\x1b") and _COLOURS.sub("", line).startswith(BARS))


def unquoted(line: str, most: int) -> tuple[int, str]:
    """Return how deep a line is quoted, at most so deep, and what is quoted."""
    quotes = 0
    while quotes < most and (body := line.lstrip(" ")).startswith(">"):
        quotes += 1
        line = body[1:].removeprefix(" ")
    return quotes, line


def title_of(text: str) -> str:
    """Return a heading without the signs that may close it."""
    title = text.rstrip(" #")
    return text.rstrip(" ") if title and text[len(title) : len(title) + 1] == "#" else title


def paragraph_of(lines: list[str]) -> str:
    """Return a paragraph in one line, but for the line ends that its writer asked for."""
    parts = []
    for line in lines[:-1]:
        if line.endswith("\\"):
            parts.append(f"{line[:-1]}\n")
        else:
            parts.append(f"{line.rstrip(' ')}\n" if line.endswith("  ") else f"{line} ")
    parts.append(lines[-1].rstrip(" "))
    return "".join(parts)


MARGIN = "  "
QUOTE = "> "
MOST_IN_A_LINE = 8_192
"""Characters of a line that is read as Markdown; what goes on is shown as it is, in parts of this length."""
MOST_IN_A_BLOCK = 16_384
"""Characters of a paragraph or of the rows of a table that wait; then what came is given out."""
DEEPEST_QUOTE = 8
"""Quotes in quotes that are told apart; deeper ones are text."""
LEAST_WIDTH = 20
"""Cells that a line is made for at least: below that, the margins alone would fill it."""
_BEGINS_A_BLOCK = frozenset("#-*+_=>`~|:0123456789")


class Markdown:
    """One text, from its first piece to `finish`."""

    def __init__(self, width: Callable[[], int], *, colour: bool = False, ascii_only: bool = False) -> None:
        """Take how many cells a line has, asked for each block anew."""
        self._width = width
        self._colour = colour
        self._bullet, self._line_sign = ("-", "-") if ascii_only else ("•", "─")
        self._broken = "\\ " if ascii_only else "↪ "
        self._columns = LEAST_WIDTH
        self._begin()

    def _begin(self) -> None:
        self._rest = ""
        self._lines: list[str] = []
        self._paragraph: list[str] = []
        self._size = 0
        self._lead = self._later = MARGIN
        self._items: list[tuple[int, str]] = []
        """Of the list items that are open: where their marker stands, and the margin of what is in them."""
        self._quotes = 0
        self._fence: Fence | None = None
        self._table: Table | None = None
        self._blank = self._began = self._endless = False

    def feed(self, text: str) -> list[str]:
        """Take the next piece, and return the lines that are finished with it."""
        self._columns = max(LEAST_WIDTH, self._width())
        whole, _, rest = text.rpartition("\n")
        if not _:
            self._rest += rest
        else:
            first, *others = whole.split("\n")
            self._whole(self._rest + first)
            self._rest = rest
            for line in others:
                self._whole(line)
        if len(self._rest) > MOST_IN_A_LINE:
            self._rest = self._parts(self._rest)
        return self._taken()

    def finish(self) -> list[str]:
        """Return what is left: no more comes. The next piece begins another text."""
        self._columns = max(LEAST_WIDTH, self._width())
        if self._rest:
            rest, self._rest = self._rest, ""
            self._whole(rest)
        self._end_block()
        lines = self._taken()
        self._begin()
        return lines

    @property
    def tail(self) -> str:
        """What came and is not given out yet, its end at least; not yet safe to show."""
        if self._rest.strip() or not self._paragraph:
            return self._rest[-400:]
        return self._paragraph[-1][-400:]

    def _taken(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def _whole(self, line: str) -> None:
        fence = self._fence
        if fence is not None and not (self._blank or self._endless) and fence.holds_as_it_is(line, self._columns):
            self._lines.append(fence.lead + line)  # most lines of code, and those come fast
            return
        if len(line) > MOST_IN_A_LINE:
            line = self._parts(line)
        if not (line.isascii() and line.isprintable()):
            line = visible_prose(line.removesuffix("\r"))
            if "\t" in line:
                line = line.expandtabs(4)
        if self._endless:
            self._endless = False
            self._show_plain(line)
        else:
            self._line(line)

    def _parts(self, line: str) -> str:
        """Give out all of an endless line but its end, as it is: no block of Markdown has such lines."""
        at = 0
        while len(line) - at > MOST_IN_A_LINE:
            if not self._endless:
                self._endless = True
                if self._fence is None:
                    self._end_block()
            self._show_plain(visible_prose(line[at : at + MOST_IN_A_LINE]).expandtabs(4))
            at += MOST_IN_A_LINE
        return line[at:]

    def _show_plain(self, line: str) -> None:
        if self._fence is not None:
            self._code(line, self._fence.lead)
        else:
            self._put(wrapped(line, self._room(MARGIN)), MARGIN, MARGIN)

    def _line(self, line: str) -> None:
        most = DEEPEST_QUOTE if self._fence is None else self._fence.quotes
        quotes, line = unquoted(line, most) if most and ">" in line else (0, line)
        if self._fence is not None and self._fence.quotes == quotes:
            self._in_fence(line, self._fence)
            return
        self._fence = None  # its quote ended, and so did it
        if quotes != self._quotes:
            self._end_block()
            self._items.clear()
            self._quotes = quotes
        body = line.lstrip(" ")
        if not body:
            self._end_block()
            self._blank = True
        elif self._table is not None and "|" in line:
            self._table.add(line)
            if self._table.size > MOST_IN_A_BLOCK:
                self._show_table(self._table)
        else:
            self._end_table()
            self._body(body.rstrip(" ") if not body.endswith("  ") else body, len(line) - len(body))

    def _in_fence(self, line: str, fence: Fence) -> None:
        if fence.is_closed_by(line):
            self._fence = None
            return
        outer = len(line) - len(line.lstrip(" "))
        self._code(line[min(outer, fence.indent) :], fence.lead)

    def _body(self, body: str, indent: int) -> None:
        """Take in a line that is not blank, without the signs of its quotes; `indent` is what was before it."""
        if body[0] not in _BEGINS_A_BLOCK:
            self._text(body, indent)
            return
        if body[0] in "`~" and (found := FENCE.fullmatch(body.rstrip(" "))):
            if found["fence"][0] == "~" or "`" not in found["info"]:
                self._end_block()
                self._leave_items(indent)
                self._fence = Fence(found["fence"], indent, self._quotes, self._margin() + "  ")
        elif body[0] == "#" and (found := HEADING.fullmatch(body.rstrip(" "))):
            self._heading(title_of(found[2] or ""), found[1])
        elif self._paragraph and self._is_table(body):
            self._table = Table(self._paragraph.pop(), body)
        elif self._paragraph and not self._items and UNDERLINE.fullmatch(body.rstrip(" ")):
            title = " ".join(self._paragraph)
            self._paragraph = []
            self._heading(title, "#" if body[0] == "=" else "##")
        elif body[0] in "*-_" and RULE.fullmatch(body):
            self._end_block()
            self._items.clear()
            self._put([self._line_sign * min(40, self._room(self._margin()))], self._margin(), self._margin())
        elif found := ITEM.fullmatch(body):
            self._item(found[1], found[2] or "", indent)
        else:
            self._text(body, indent)

    def _is_table(self, body: str) -> bool:
        return len(self._paragraph) == 1 and begins_table(self._paragraph[0], body)

    def _text(self, body: str, indent: int) -> None:
        if not self._paragraph:
            if indent >= 4 and not self._items:
                self._code(" " * (indent - 4) + body, self._margin() + "  ")
                return
            self._leave_items(indent)
            self._lead = self._later = self._margin()
        self._paragraph.append(body)
        self._size += len(body) + 1
        if self._size > MOST_IN_A_BLOCK:
            self._end_block()

    def _item(self, marker: str, body: str, indent: int) -> None:
        if self._paragraph and marker[0].isdigit() and not self._items and marker[:-1] != "1":
            self._text(f"{marker} {body}", indent)  # as CommonMark has it: a number at the beginning of a wrapped line
            return
        self._end_block()
        self._leave_items(indent)
        outer = self._margin()
        if len(outer) > max(12, self._columns // 3):
            outer = outer[: max(12, self._columns // 3)]
        shown = self._bullet if marker in "-*+" else marker
        inner = outer + " " * (len(shown) + 1)
        self._items.append((indent, inner))
        del self._items[:-16]
        self._lead, self._later = f"{outer}{shown} ", inner
        if body.startswith(("```", "~~~", "#")):
            self._put([""], self._lead, inner)
            self._body(body, indent + len(marker) + 1)
            return
        self._paragraph.append(body)
        self._size += len(body) + 1
        if not body:
            self._end_block()

    def _leave_items(self, indent: int) -> None:
        """Leave the list items that something at this place is no part of; two blanks more than the marker are enough."""
        while self._items and indent < self._items[-1][0] + 2:
            self._items.pop()

    def _margin(self) -> str:
        if self._items:
            return self._items[-1][1]
        return MARGIN + QUOTE * min(self._quotes, DEEPEST_QUOTE)

    def _heading(self, title: str, signs: str) -> None:
        self._end_block()
        self._items.clear()
        margin = self._margin()
        shown = inline(title, colour=self._colour)
        text = f"{BOLD}{shown}{NOT_BOLD}" if self._colour else f"{signs} {shown}".rstrip(" ")
        self._put(painted(wrapped(text, self._room(margin))), margin, margin)

    def _end_block(self) -> None:
        self._end_table()
        if not self._paragraph:
            return
        lines, self._paragraph, self._size = self._paragraph, [], 0
        lead, later = self._lead, self._later
        self._lead = later
        room = self._room(later)
        styled = inline(paragraph_of(lines), colour=self._colour)
        shown: list[str] = []
        for line in styled.split("\n") if "\n" in styled else (styled,):
            shown += wrapped(line, room)
        self._put(painted(shown) if self._colour else shown, lead, later)

    def _end_table(self) -> None:
        if self._table is not None:
            self._show_table(self._table)
            self._table = None

    def _show_table(self, table: Table) -> None:
        margin = self._margin()
        self._put(table.lines(self._room(margin), colour=self._colour, line=self._line_sign), margin, margin)

    def _code(self, line: str, lead: str) -> None:
        """Give out a line of code as it is; only what no line can hold is broken, with a mark in the margin."""
        room = self._room(lead)
        if len(line) <= room and line.isascii():
            self._put([line], lead, lead)
        else:
            self._put(list(pieces(line, room)), lead, lead[:-2] + self._broken)

    def _room(self, margin: str) -> int:
        return self._columns - len(margin) - (2 if margin == MARGIN else 0)

    def _put(self, lines: list[str], lead: str, later: str) -> None:
        if self._blank and self._began:
            self._lines.append("")
        self._blank, self._began = False, True
        for line in lines:
            if lead == MARGIN and begins_with_bar(line):
                line = f"  {line}"  # noqa: PLW2901 - else it could pass for the output of a command
            self._lines.append(f"{lead}{line}" if line else lead.rstrip(" "))
            lead = later

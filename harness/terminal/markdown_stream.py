"""Streamed Markdown: find the ends of blocks, and return each block once, in order, when it is finished.

Prose is returned line by line, as soon as a line is full. The output depends only on the text, not on how it was split
into pieces. INVARIANTS: every line begins with blanks, because column 1 belongs to the harness. No line is wider than the
width. No line begins like the output of a command (`  | `). The waiting text is bounded: an endless line or block is
returned in parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from harness.terminal.markdown_drawing import CodeInFence, Drawing, begins_table
from harness.terminal.row_text import wrapped
from harness.terminal.settled_prose import settled
from harness.terminal.styles import Palette, signs
from harness.text.amounts import count_of
from harness.text.visible import visible_prose

MARGIN = "  "
MOST_IN_A_LINE = 4_096
"""Maximum length of a line that is parsed as Markdown, in characters. A longer one is shown as plain text in parts."""
MOST_IN_A_BLOCK = 8_192
"""Maximum number of waiting characters of a block. Then it is ended and returned."""
LEAST_WIDTH = 20
"""Minimum width for which lines are made, in cells. On less, the margins alone would fill a line."""
BARS = tuple(
    "|\u00a6\u01c0\u2016\u2223\u23ae\u23d0\u2502\u2503\u2551\u258c\u258d\u258e\u258f\u2758\u2759\u275a\ufe31\uff5c\uffe8"
)
"""Signs with which text must not begin a line: the bar of a command's output, and signs that look like it."""

_COLOURS = re.compile(r"\A(?:\x1b\[[0-9;]*+m)++")
_COLOUR = re.compile(r"\x1b\[[0-9;]*+m")
_COLOUR_OR_SIGN = re.compile(rf"{_COLOUR.pattern}|\S")
_FENCE = re.compile(r"(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
_INNER_FENCE = re.compile(r"(?:>\s?+|[-*+]\s++|[0-9]{1,9}[.)]\s++)*+\s*+(?P<fence>`{3,}+|~{3,}+)[^`]*+")
_HEADING = re.compile(r"#{1,6}(?:\s.*)?", re.DOTALL)
_RULE = re.compile(r"(?:\*\s*+){3,}+|(?:-\s*+){3,}+|(?:_\s*+){3,}+")
_ITEM = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?:\s++(.*))?", re.DOTALL)
_UNDERLINE = re.compile(r"={2,}+|-{2,}+")
_RESHAPES = re.compile(r"(?=.*[-=])[-=|:\s]++")
"""Lines that may turn the line above into a heading or a table."""
_BEGINS_PROSE = re.compile(r"(?=.*[^\W_])(?:\S+\s|[^\x00-\x7f]|\S{12})", re.DOTALL)
"""Beginnings that are long enough to determine the kind of an unfinished line."""
_PROSE = re.compile(r"\s*+(?:(?:[-*+]|[0-9]{1,9}[.)])\s{1,4}(?!\s))*+(?![#>|\s]|```|~~~|\Z|(?:[-*+]|[0-9]{1,9}[.)])\s)")
_ENDS_PROSE = re.compile(r"[^\W_][^\n]*(?<!\\)\Z")
"""Safe ends for the part of a paragraph that is drawn early. After other ends, the last line might be of another kind."""


class Markdown:
    """Parses one text, from its first piece to `finish`, into drawn lines."""

    def __init__(self, width: Callable[[], int], palette: Palette | None = None, *, ascii_only: bool = False) -> None:
        """`width` returns the width in cells, and is called for each piece. `palette` has the colours, if any."""
        self._width = width
        self._drawing = Drawing(signs(ascii_only=ascii_only), palette)
        self._columns = LEAST_WIDTH
        self._begin()

    def _begin(self) -> None:
        self._rest = ""
        self._lines: list[str] = []
        self._block: list[str] = []
        self._size = 0
        self._item = 0
        """Indentation of the text in the open list item; 0 without one."""
        self._inner = ""
        """Fence of an open code block within the waiting block. Empty without one."""
        self._code: CodeInFence | None = None
        """The open code block, if any."""
        self._blank = self._began = self._endless = False
        self._given_signs = 0
        """Number of characters of the waiting block, without blanks, that were already returned."""
        self._tried = 0
        """Number of waiting characters at the last check."""

    def feed(self, text: str) -> list[str]:
        """Add the next piece, and return the lines that it finished."""
        self._columns = max(LEAST_WIDTH, self._width())
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = self._rest + lines[0]
            self._rest = ""
        for line in lines:
            self._take_line(line)
        self._rest += rest
        if len(self._rest) > MOST_IN_A_LINE:
            self._rest = self._parts(self._rest)
        if self.waiting >= self._tried + self._columns // 8:
            self._give_settled(self._rest)
        return self._take()

    def finish(self) -> list[str]:
        """Return the rest at the end of a text. The next piece begins another text."""
        self._columns = max(LEAST_WIDTH, self._width())
        if self._rest:
            rest, self._rest = self._rest, ""
            self._take_line(rest)
        self._end_block()
        lines = self._take()
        self._begin()
        return lines

    @property
    def tail(self) -> str:
        """The end of the text that was received but not returned, or the number of rows of a table. Not yet safe to show."""
        if self._is_table:
            return f"a table: {count_of(len(self._block) - 2, 'row')} so far"
        if self._rest.strip() or not self._block:
            return self._rest[-400:]
        return self._block[-1][-400:]

    @property
    def waiting(self) -> int:
        """Number of waiting characters."""
        return len(self._rest) + self._size

    def _take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def _take_line(self, line: str) -> None:
        if len(line) > MOST_IN_A_LINE:
            line = self._parts(line)
        line = visible_prose(line.removesuffix("\r")).expandtabs(4)
        if self._endless:
            self._endless = False
            self._show_plain(line)
        elif self._code is not None:
            self._in_code(line, self._code)
        else:
            self._line(line)

    def _parts(self, line: str) -> str:
        """Show an endless line as plain text in parts. Return its end, which is shorter than a part."""
        at = 0
        while len(line) - at > MOST_IN_A_LINE:
            if not self._endless:
                self._endless = True
                at += self._take_start(line[:MOST_IN_A_LINE])
                self._end_block()
                continue
            self._show_plain(visible_prose(line[at : at + MOST_IN_A_LINE]).expandtabs(4))
            at += MOST_IN_A_LINE
        return line[at:]

    def _take_start(self, line: str) -> int:
        """Add the beginning of an endless line to the block if part of it was already shown as prose.

        Return the number of characters added.
        """
        if self._code is not None:
            return 0
        self._give_settled(line)
        if not self._given_signs:
            return 0
        self._add(visible_prose(line).expandtabs(4))
        return len(line)

    def _show_plain(self, line: str) -> None:
        if self._code is not None:
            self._put(self._drawing.code(self._code, line, self._code_room()))
        else:
            self._put(wrapped(line, self._room()))

    def _in_code(self, line: str, code: CodeInFence) -> None:
        if _closes(line.strip(), code.fence):
            self._code = None
            return
        outer = len(line) - len(line.lstrip(" "))
        self._put(self._drawing.code(code, line[min(outer, code.indent) :], self._code_room()))

    def _line(self, line: str) -> None:
        """Add a line outside of code. It continues the waiting block, ends it, or begins another."""
        body = line.lstrip(" ")
        if self._inner:
            self._add(line)
            if _closes(body.lstrip("> "), self._inner):
                self._inner = ""
        elif not body:
            self._end_block()
            self._blank = True
        else:
            self._body(line, body, len(line) - len(body))

    def _body(self, line: str, body: str, indent: int) -> None:
        trimmed = body.rstrip(" ")
        if match := _FENCE.fullmatch(trimmed):
            self._end_block()
            self._leave_item(indent)
            self._code = CodeInFence(match["info"], match["fence"], indent)
        elif self._is_alone(trimmed, indent):
            self._end_block()
            self._leave_item(indent)
            self._add(body)
            self._end_block()
        elif self._underlines(trimmed, indent):
            self._add(line)
            self._end_block()
        else:
            self._settle_place(trimmed, indent)
            self._add(self._kept_prose(line, trimmed))
            if self._inner_fence(body):
                return
            if self._size > MOST_IN_A_BLOCK:
                self._end_block()

    def _is_alone(self, body: str, indent: int) -> bool:
        """Return whether a line is a block by itself: a heading or a rule."""
        if body[0] == "#":
            return indent < 4 and _HEADING.fullmatch(body) is not None
        is_rule = body[0] in "*-_" and indent < 4 and _RULE.fullmatch(body) is not None
        return is_rule and not self._underlines(body, indent)

    def _kept_prose(self, line: str, body: str) -> str:
        """Return a line, escaped if it would turn prose that was already shown into a heading or a table."""
        if not (self._block and _RESHAPES.fullmatch(body)) or self._is_table:
            return line
        self._give_settled()
        return line.replace(body, f"\\{body}", 1) if self._given_signs else line

    def _underlines(self, body: str, indent: int) -> bool:
        """Return whether a line turns the waiting block into a heading. False if part of it was already shown."""
        if not (self._block and indent < 2 and _UNDERLINE.fullmatch(body) and self._is_paragraph):
            return False
        self._give_settled()
        return not self._given_signs

    @property
    def _is_paragraph(self) -> bool:
        first = self._block[0].lstrip(" ") if self._block else ""
        return bool(first) and first[0] != ">" and not _ITEM.fullmatch(first) and not self._is_table

    @property
    def _is_table(self) -> bool:
        return len(self._block) > 1 and begins_table(self._block[0], self._block[1])

    def _begins_block(self, body: str, indent: int) -> bool:
        """Return whether a line begins a new block, and so ends the waiting one."""
        if not self._block:
            return False
        first = self._block[0].lstrip(" ")
        if (body[0] == ">") is not (first[0] == ">") and indent < 2:
            return True
        if body[0] == "|" and first[0] != "|" and not self._is_table:
            return True
        if body[0] == ">":
            return False
        item = _ITEM.fullmatch(body) if indent < 2 else None
        if item is None:
            return bool(_ITEM.fullmatch(first)) and self._block[-1].strip() == "" and indent < 2
        # As in CommonMark, a number other than 1 at the beginning of a wrapped line is text.
        return bool(_ITEM.fullmatch(first)) or not item[1][0].isdigit() or item[1][:-1] == "1"

    def _inner_fence(self, body: str) -> bool:
        """Return whether a line begins a code block within a quote or list item. Remember its fence."""
        match = _INNER_FENCE.fullmatch(body.rstrip(" ")) if "```" in body or "~~~" in body else None
        self._inner = match["fence"] if match else ""
        return bool(match)

    def _leave_item(self, indent: int) -> None:
        """Leave the list item if a block with this indentation is not part of it. Two blanks suffice to be part of it."""
        if indent < 2:
            self._item = 0

    def _add(self, line: str) -> None:
        self._block.append(line)
        self._size += len(line) + 1

    def _settle_place(self, body: str, indent: int) -> None:
        """End the waiting block, and leave the list item, if a line that begins like this is not part of them."""
        if self._begins_block(body, indent):
            self._end_block()
        if not self._block:
            self._leave_item(indent)

    def _end_block(self) -> None:
        """End the waiting block, and show the lines of it that were not shown yet."""
        self._inner = ""
        lines, signs = self._block, self._given_signs
        self._block, self._size, self._given_signs, self._tried = [], 0, 0, 0
        if not lines:
            return
        self._put(rows_after(self._drawn(lines), signs))
        first = lines[0].lstrip(" ")
        if not self._item and (item := _ITEM.fullmatch(first)) and not _RULE.fullmatch(first.rstrip(" ")):
            self._item = len(item[1]) + 1

    def _drawn(self, lines: Sequence[str]) -> list[str]:
        margin = self._item
        if margin:
            lines = [line[min(margin, len(line) - len(line.lstrip(" "))) :] for line in lines]
        return self._drawing.block(lines, self._room())

    # Prose, line by line

    def _give_settled(self, rest: str = "") -> None:
        """Show the full lines of the waiting paragraph whose look is final. `rest` is the unfinished line."""
        self._tried = self.waiting
        text = "\n".join(self._prose(rest))
        before = text[: settled(text)].rstrip()
        while before and not _ENDS_PROSE.search(before):
            before = before[: max(before.rfind(" "), before.rfind("\n"), 0)].rstrip()
        if not before:
            return
        lines = rows_after(self._drawn(before.split("\n")), self._given_signs)[:-1]
        while lines and not _signs_in(lines[-1]):
            lines.pop()  # blank rows have no signs that tell later that they were returned
        if lines:
            self._given_signs += sum(map(_signs_in, lines))
            self._put(lines)

    def _prose(self, rest: str) -> list[str]:
        """Return the lines of the waiting block, and the unfinished line `rest`, as far as they certainly are prose."""
        if self._code is not None or self._endless or self._inner or self._is_table:
            return []
        line = visible_prose(rest).expandtabs(4)
        body = line.lstrip(" ")
        lines = [*self._block]
        if _BEGINS_PROSE.match(body):
            self._settle_place(body, len(line) - len(body))
            lines = [*self._block, line]
        if len(lines) == 1:
            lines = [lines[0].partition("|")[0]]  # it may be the first row of a table
        if not lines or lines[0].startswith(" " * (4 + self._item)):
            return []
        if any(map(_RESHAPES.fullmatch, lines)):
            return []  # the parts that were safe to show were shown before that line arrived
        return list(takewhile(_PROSE.match, lines))

    def _room(self) -> int:
        return self._columns - len(MARGIN) - (self._item or 2)

    def _code_room(self) -> int:
        return self._columns - len(MARGIN) - self._item

    def _put(self, lines: Sequence[str]) -> None:
        """Add lines to the output."""
        if self._blank and self._began and lines:
            self._lines.append("")
        if lines:
            self._blank, self._began = False, True
        margin = MARGIN + " " * self._item
        for line in lines:
            safe = f"  {line}" if margin == MARGIN and begins_with_bar(line) else line
            self._lines.append(f"{margin}{safe}" if line else "")


def begins_with_bar(line: str) -> bool:
    """Return whether a drawn line begins, after its colours, with a bar or a sign that looks like one."""
    return line.startswith(BARS) or (line.startswith("\x1b") and _COLOURS.sub("", line).startswith(BARS))


def rows_after(rows: Sequence[str], signs: int) -> list[str]:
    """Return the drawn rows after the first `signs` characters, not counting blanks.

    Earlier rows may have been drawn for another width. If a row holds both returned and new text, the new text gets a row
    of its own, indented like the row.
    """
    for place, row in enumerate(rows):
        if signs <= 0:
            return [*rows[place:]]
        count = _signs_in(row)
        if signs < count:
            later = row if place else next(iter(rows[1:]), "")
            return [_indent_of(later) + _row_after(row, signs), *rows[place + 1 :]]
        signs -= count
    return []


def _signs_in(row: str) -> int:
    return sum(not char.isspace() for char in _COLOUR.sub("", row))


def _indent_of(row: str) -> str:
    text = _COLOUR.sub("", row)
    return " " * (len(text) - len(text.lstrip(" ")))


def _row_after(row: str, signs: int) -> str:
    """Return the end of a row after some characters, not counting blanks, in its colours."""
    colours, at = "", 0
    for match in _COLOUR_OR_SIGN.finditer(row):
        at = match.start()
        if match[0].startswith("\x1b"):
            colours += match[0]
        elif signs == 0:
            break
        else:
            signs -= 1
    return colours + row[at:]


def _closes(line: str, fence: str) -> bool:
    return len(line.rstrip(" ")) >= len(fence) and not line.strip(f"{fence[0]} ")

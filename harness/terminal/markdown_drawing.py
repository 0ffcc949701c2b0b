"""Blocks of Markdown, drawn with rich as lines that are ready to be written.

INVARIANTS: all text of the model is shown, except the titles of links. No line is wider than the room. Every text is made
safe to show after rich, because Markdown can encode a control character without containing it (`%1b` in an address).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType, RenderResult
from rich.containers import Lines
from rich.markdown import (
    BlockQuote,
    CodeBlock,
    Heading,
    HorizontalRule,
    ListElement,
    ListItem,
    MarkdownContext,
    Paragraph,
    TableElement,
)
from rich.markdown import Markdown as RichMarkdown
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from harness.record import replace
from harness.terminal.diff_drawing import patch_look
from harness.terminal.highlighting import Highlighter
from harness.terminal.rich_drawing import rich_console, rich_rows, rich_table
from harness.terminal.row_text import Row, breaks, cells, drawn, line_rows, wrapped
from harness.terminal.styles import Fill, Palette, Signs
from harness.text.visible import visible

WIDEST_RULE = 40
NARROW_COLUMN = 16
"""Minimum width of a wrapped column, in cells. If not all columns get it, each row is shown as named values."""
_DELIMITERS = re.compile(r"\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+")
_PIPE = re.compile(r"(?<!\\)\|")


class CodeInFence:
    """A block of code in a fence, and the colours of its language."""

    def __init__(self, info: str, fence: str = "", indent: int = 0) -> None:
        """`info` is the text after the opening fence, `fence` the fence itself, and `indent` its indentation."""
        language = info.strip().partition(" ")[0].lower()
        self.fence = fence
        self.indent = indent
        self.is_patch = language in ("diff", "patch")
        self.highlighter = Highlighter("" if self.is_patch else language)


class Drawing:
    """Draws blocks with rich, and returns them as lines."""

    def __init__(self, signs: Signs, palette: Palette | None) -> None:
        self._signs = signs
        self._palette = palette
        self._colour = palette is not None
        self._console = rich_console(palette, 80)

    def block(self, lines: Sequence[str], room: int) -> list[str]:
        """Return the drawn lines of a block. If drawing fails, return its source text."""
        text = "\n".join(_with_all_cells(lines))
        try:
            return self._drawn(_Block(text, self._signs, self._palette, self._inner_code), room)
        except Exception:  # noqa: BLE001 - no text of a model may end the program by how it is drawn
            return [row for line in lines for row in wrapped(line, room)]

    def code(self, code: CodeInFence, line: str, room: int) -> list[str]:
        """Return the rows of a line of code. A line that is too long is broken, with a mark in the margin."""
        return [drawn(row, self._palette, margin=0) for row in self._code_rows(code, line, room)]

    def _code_rows(self, code: CodeInFence, line: str, room: int) -> Iterator[Row]:
        tints = code.highlighter.line(line) if self._colour and not code.is_patch else ()
        fill, tints = patch_look(line) if code.is_patch else (Fill.CODE, tints)
        yield from line_rows(line, room, gutter="  ", later=self._signs.broken, tints=tints, fill=fill)

    def _inner_code(self, code: CodeInFence, line: str, room: int) -> list[Text]:
        """Return the rows of a line of code within a quote or list item. The background of all rows has the same end."""
        rows: Iterable[Row] = self._code_rows(code, line, room)
        if self._palette is not None and self._palette.fills_background:
            rows = (replace(row, text=row.text + " " * (room - cells(row.text))) for row in rows)
        return [Text.from_ansi(drawn(row, self._palette, to_the_end=False)) for row in rows]

    def _drawn(self, block: RenderableType, room: int) -> list[str]:
        rows = rich_rows(self._console, block, room)
        while rows and not rows[0]:  # rich adds blank rows around the elements of a block
            del rows[0]
        while rows and not rows[-1]:
            rows.pop()
        return rows


@cache
def _parser(*, colour: bool) -> MarkdownIt:
    """Return a Markdown parser without the constructs that hide text: HTML, entities, definitions of links.

    Without colours, the signs of emphasis are kept, because there is no other way to show it.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.disable(["entity", "reference", "html_block", "html_inline"])
    return parser.enable("strikethrough") if colour else parser.disable("emphasis")


class _Block(RichMarkdown):
    """A block of Markdown for rich, with our own drawing of some elements."""

    inlines = {"em", "strong", "code", "s", "url"}  # noqa: RUF012 - rich declares it so

    def __init__(
        self,
        text: str,
        signs: Signs,
        palette: Palette | None,
        code: Callable[[CodeInFence, str, int], list[Text]],
    ) -> None:
        # Without `super().__init__`, which creates a new parser for each block.
        self.markup, self.style, self.justify, self.hyperlinks = text, "none", None, False
        self.inline_code_lexer = None
        self.code_theme = self.inline_code_theme = "default"
        self.signs = signs
        self.palette = palette
        self.draw_code = code
        colour = palette is not None
        self.parsed = _parser(colour=colour).parse(text)
        for token in self.parsed:
            if token.children:
                token.children = list(_visible_tokens(token.children, colour=colour))


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _visible_tokens(tokens: Sequence[Token], *, colour: bool) -> Iterator[Token]:
    """Yield the tokens of a line. Links and pictures show their addresses; without colours, code keeps its backticks."""
    opened: list[tuple[str, str]] = []
    autolink = False
    for token in tokens:
        if token.type == "code_inline" and not colour:
            yield _text(f"{token.markup}{token.content}{token.markup}")
        elif token.type == "image":
            yield from (_text(f"{token.content} ("), *_address(str(token.attrs.get("src", ""))), _text(")"))
        elif token.type == "link_open":
            opened.append((str(token.attrs.get("href", "")), ""))
            autolink = token.markup == "autolink"
            if autolink:
                yield Token("url_open", "url", 1)
        elif token.type == "link_close":
            address, text = opened.pop()
            autolink = False
            if token.markup == "autolink":
                yield Token("url_close", "url", -1)
            elif text != address:
                yield from (_text(" ("), *_address(address), _text(")"))
        else:
            if opened:
                opened[-1] = (opened[-1][0], opened[-1][1] + token.content)
            yield _text(visible(token.content)) if autolink and token.type == "text" else token


def _address(address: str) -> tuple[Token, ...]:
    return Token("url_open", "url", 1), _text(visible(address)), Token("url_close", "url", -1)


class _Prose(Text):
    """Text that is wrapped by `row_text.breaks`, like the rest of the screen: no line begins with a closing sign."""

    def wrap(
        self,
        console: Console,  # noqa: ARG002
        width: int,
        *,
        justify: JustifyMethod | None = None,  # noqa: ARG002
        overflow: OverflowMethod | None = None,  # noqa: ARG002
        tab_size: int = 8,  # noqa: ARG002
        no_wrap: bool | None = None,  # noqa: ARG002
    ) -> Lines:
        lines = Lines()
        for line in self.split(allow_blank=True):
            parts = breaks(line.plain, width, width)
            lines.extend(line[start:end] for start, end in parts)
        return lines


class _Paragraph(Paragraph):
    def on_enter(self, context: MarkdownContext) -> None:
        super().on_enter(context)
        self.text = _Prose()


class _Heading(Heading):
    """A heading. Without colours, it begins with its `#` signs."""

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _Heading:
        heading = cls(token.tag)
        heading.signs = "" if isinstance(markdown, _Block) and markdown.palette else f"{'#' * int(token.tag[1:])} "
        return heading

    signs = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(self.signs, self.text)


class _Quote(BlockQuote):
    """A quote. Each line begins with a bar, or with `>` if there are no colours."""

    sign = Segment("> ")

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _Quote:  # noqa: ARG003 - as rich calls it
        quote = cls()
        if isinstance(markdown, _Block) and markdown.palette:
            quote.sign = Segment(f"{markdown.signs.quote} ", Style.parse(markdown.palette.heading))
        return quote

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _lines_after_sign(self.sign, self.sign, self.elements, console, options)


class _ListItem(ListItem):
    """A list item. A numbered item keeps the number from the source."""

    lead = ""

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _ListItem:
        item = cls()
        bullet = markdown.signs.bullet if isinstance(markdown, _Block) else "-"
        item.lead = f"{token.info}{token.markup} " if token.info else f"{bullet} "
        return item


class _List(ListElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for item in self.items:
            lead = item.lead if isinstance(item, _ListItem) else "- "
            yield from _lines_after_sign(Segment(lead), Segment(" " * len(lead)), item.elements, console, options)


def _lines_after_sign(
    first: Segment, later: Segment, inner: RenderableType, console: Console, options: ConsoleOptions
) -> Iterator[Segment]:
    """Yield the lines of the content: the first after the sign `first`, the others after `later`."""
    width = max(1, options.max_width - len(first.text))
    for number, line in enumerate(console.render_lines(inner, options.update(width=width), pad=False) or [[]]):
        yield later if number else first
        yield from line
        yield Segment.line()


class _Rule(HorizontalRule):
    def __init__(self, sign: str) -> None:
        self._sign = sign

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _Rule:  # noqa: ARG003 - as rich calls it
        return cls(markdown.signs.rule if isinstance(markdown, _Block) else "-")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self._sign * min(WIDEST_RULE, options.max_width))


class _CodeBlock(CodeBlock):
    """Code within a quote or list item, and indented code."""

    draw: Callable[[str, int], list[Text]]

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _CodeBlock:
        block = cls("text", "default")
        code = CodeInFence(token.info or "")
        block.draw = partial(markdown.draw_code, code) if isinstance(markdown, _Block) else lambda line, _: [Text(line)]
        return block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.plain.rstrip("\n").split("\n"):
            for text in self.draw(line, options.max_width):
                yield from text.render(console, end="")
                yield Segment.line()


class _Table(TableElement):
    """A table whose cells are never cut. If there is not enough room, its rows are shown as named values."""

    rule = "-"

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _Table:  # noqa: ARG003 - as rich calls it
        table = cls()
        table.rule = markdown.signs.rule if isinstance(markdown, _Block) else "-"
        return table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        header = [cell.content for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        cells_of = [max(cell.cell_len for cell in column) for column in zip(header, *rows, strict=False)]
        addresses = [max(map(_address_cells, column)) for column in zip(header, *rows, strict=False)]
        min_widths = [
            max(min(cells, NARROW_COLUMN), address) for cells, address in zip(cells_of, addresses, strict=True)
        ]
        gaps = 2 * (len(header) - 1)
        if sum(min_widths) + gaps > options.max_width:
            yield from self._labelled_rows(header, rows, options.max_width)
            return
        is_narrow = sum(cells_of) + gaps > options.max_width
        table = rich_table(self.rule)
        for heading, address, width in zip(header, addresses, min_widths, strict=True):
            fixed = width if is_narrow and address else None
            table.add_column(heading, overflow="fold", justify=heading.justify or "left", width=fixed)
        for row in rows:
            table.add_row(*row)
        yield table

    @staticmethod
    def _labelled_rows(header: Sequence[Text], rows: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
        """Yield the values of each row with their names, as many on one line as fit."""
        for name in header:
            name.stylize("table.header")
        for number, row in enumerate(rows):
            if number:
                yield Text()
            line = Text()
            for name, value in zip(header, row, strict=False):
                labelled = Text.assemble(name, ": " if name else "", value)
                if line and line.cell_len + 2 + labelled.cell_len > width:
                    yield line
                    line = Text()
                line = Text("  ").join((line, labelled)) if line else labelled
            yield line
        if not rows:
            yield Text(" / ").join(header)


def _address_cells(cell: Text) -> int:
    """Return the width of the longest address in a cell. Addresses must not be wrapped, or they cannot be opened."""
    return max((cells(word) for word in cell.plain.split() if "://" in word), default=0)


_Block.elements = {
    **RichMarkdown.elements,
    "paragraph_open": _Paragraph,
    "heading_open": _Heading,
    "fence": _CodeBlock,
    "code_block": _CodeBlock,
    "blockquote_open": _Quote,
    "hr": _Rule,
    "bullet_list_open": _List,
    "ordered_list_open": _List,
    "list_item_open": _ListItem,
    "table_open": _Table,
}


def begins_table(header: str, line: str) -> bool:
    """Return whether `line`, below `header`, makes `header` the first row of a table."""
    line = line.strip()
    return "-" in line and "|" in header + line and _DELIMITERS.fullmatch(line) is not None


def _with_all_cells(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a table in which surplus cells of a row are joined to its last cell, so that none is lost."""
    if len(lines) < 3 or not begins_table(lines[0], lines[1]):
        return lines
    columns = _columns(lines[0])
    return [*lines[:2], *(_joined(line, columns) if _columns(line) > columns else line for line in lines[2:])]


def _columns(row: str) -> int:
    row = row.strip().removeprefix("|")
    return len(_PIPE.split(row[:-1] if row.endswith("|") and not row.endswith("\\|") else row))


def _joined(row: str, columns: int) -> str:
    row = row.strip().removeprefix("|")
    cells = _PIPE.split(row[:-1] if row.endswith("|") and not row.endswith("\\|") else row)
    return "|" + "|".join([*cells[: columns - 1], "\\|".join(cells[columns - 1 :])]) + "|"

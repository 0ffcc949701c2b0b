"""Drawing with rich: text is never parsed as markup, and rich does not detect terminal features by itself."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO, TextIOWrapper

from rich.box import Box
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.theme import Theme

from harness.terminal.row_text import narrowed
from harness.terminal.styles import SIXTEEN, Palette, rich_styles
from harness.text.visible import visible


def rich_console(palette: Palette | None, width: int, *, ascii_only: bool = False) -> Console:
    """Return a console of `width` columns that renders into memory. Without a palette, it uses no colours."""
    return Console(
        file=TextIOWrapper(BytesIO(), "ascii" if ascii_only else "utf-8"),
        width=width,
        color_system="256" if palette else None,
        force_terminal=True,
        no_color=False,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        theme=Theme(rich_styles(palette or SIXTEEN)),
    )


def rich_table(rule: str) -> Table:
    """Return a table whose only line is the rule below its headings."""
    box = Box(f"    \n    \n {rule * 2} \n    \n    \n    \n    \n    \n", ascii=rule.isascii())
    return Table(box=box, pad_edge=False, show_edge=False, collapse_padding=True, border_style="table.border")


def rich_rows(console: Console, drawing: RenderableType, width: int) -> list[str]:
    """Return rich's drawing as rows of at most `width` cells, ready to be written.

    Only trailing blanks with a background are kept. The text is made safe to show again after rich. Rows are narrowed,
    because rich counts some characters as too narrow.
    """
    system = ColorSystem.EIGHT_BIT if console.color_system else None
    lines = console.render_lines(drawing, console.options.update(width=width), pad=False)
    return list(narrowed((_row(line, system) for line in lines), width))


def _row(segments: Iterable[Segment], system: ColorSystem | None) -> str:
    parts = [part for part in segments if not part.control]
    while parts and not parts[-1].text.strip() and not _has_background(parts[-1]):
        parts.pop()
    if parts and not _has_background(parts[-1]):
        parts[-1] = Segment(parts[-1].text.rstrip(), parts[-1].style)
    pieces = []
    for text, style, _ in parts:
        safe = text if text.isprintable() else visible(text.replace("\n", ""))
        pieces.append(style.render(safe, color_system=system) if style else safe)
    return "".join(pieces)


def _has_background(segment: Segment) -> bool:
    return segment.style is not None and segment.style.bgcolor is not None

"""What rich draws with: text is never markup for it, and it finds out nothing of its surroundings by itself."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.theme import Theme

from harness.cli.terminal.styles import SIXTEEN, Palette, rich_styles


def rich_console(palette: Palette | None, width: int, *, ascii_only: bool = False) -> Console:
    """Return what draws for a terminal of `width` columns, to be written elsewhere; without a palette, no colours."""
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
    """Return a table without lines but the rule below its headings."""
    box = Box(f"    \n    \n {rule * 2} \n    \n    \n    \n    \n    \n", ascii=rule.isascii())
    return Table(box=box, pad_edge=False, show_edge=False, collapse_padding=True, border_style="table.border")

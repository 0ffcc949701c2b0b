"""Tables of a report whose rows become cards where the page is narrow; HTML of cells in, HTML out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.audit.report.text import line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import TypeAlias

    Cells: TypeAlias = Sequence[str]
    """A row: a `<td ...>` or `<th ...>` for each head."""


def table(caption: str, heads: Sequence[str], rows: Iterable[Cells]) -> Iterator[str]:
    """Yield a table; where there is no room for heads, each cell is named by its own."""
    name = line(caption)
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table class="list">'
    yield f"<caption>{name}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{line(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>\n"
    for row in rows:
        yield f"<tr>{''.join(_headed(cell, head) for cell, head in zip(row, heads, strict=True))}</tr>\n"
    yield "</tbody></table></div>\n"


def _headed(cell: str, head: str) -> str:
    return f'{cell[:3]} data-head="{line(head)}"{cell[3:]}'
